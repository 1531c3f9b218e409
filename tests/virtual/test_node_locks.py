"""Locks of nodes and the line before them: who is next, and what ends a lock, whoever dies meanwhile."""

import dataclasses
import random
from collections.abc import Callable
from typing import Any

import pytest

from scheduler.api import names
from tests import make, slices
from tests.model.server import Change, Json
from tests.virtual import climate, judge
from tests.virtual.conftest import Make
from tests.virtual.test_interleavings import led
from tests.virtual.world import World

pytestmark = pytest.mark.many

SEEDS = slices.pick_part(range(8))
NODE = "line"
LINE = climate.quiet(nodes=0, lock_timeout_seconds=60.0)
# Many times the age at which locks end that nothing else ends.
LONG = 400.0
_SETTLED_SECONDS = 1.0
FOREIGN = "hami-scheduler"


def with_node(world: World, *, is_silent: bool = True) -> list[str]:
    """Add a node with room for all pods; return the names of pods in the order in which they are bound, as it grows."""
    cards = [make.card(uuid=f"{NODE}-GPU-{i}", index=i, sharers=10) for i in range(8)]
    world.server.create("nodes", make.raw(make.hami_node(name=NODE, cards=cards, cpu=64)))
    if is_silent:
        world.silent.add(NODE)
    bound: list[str] = []

    def note(change: Change) -> None:
        if change.kind == "pods" and change.before and change.after:
            is_new = not change.before["spec"].get("nodeName")
            if is_new and change.after["spec"].get("nodeName"):
                bound.append(change.after["metadata"]["name"])

    world.server.on_change.append(note)
    return bound


def create(world: World, name: str, *, priority: int = 0, **more: Any) -> Json:
    pod = make.raw(make.pod(name=name, priority=priority, gpu=1, gpumem=500, **more))
    pod["metadata"]["uid"] = f"uid of {name}"
    pod["metadata"]["creationTimestamp"] = world.clock.wall().strftime("%Y-%m-%dT%H:%M:%SZ")
    world.server.create("pods", pod)
    return pod


def lock_of(world: World) -> str:
    node = world.server.find("nodes", "", NODE)
    assert node is not None
    return str(node["metadata"]["annotations"].get(names.HAMI_LOCK, ""))


def write_lock(world: World, name: str) -> None:
    """Write the lock as another scheduler does."""
    since = world.clock.wall().strftime("%Y-%m-%dT%H:%M:%SZ")

    def edit(node: Json) -> None:
        node["metadata"]["annotations"][names.HAMI_LOCK] = f"{since},default,{name}"

    world.server.change("nodes", "", NODE, edit)


def serve(world: World) -> str:
    """Let the plugin serve the pod that it has to, as soon as there is one; return its name."""
    for _ in range(400):
        pods = [pod for pod in world.server.of_kind("pods") if judge.is_unserved(pod, NODE)]
        if pods:
            (pod,) = pods
            name = str(pod["metadata"]["name"])
            world._allocated(name, NODE, ok=True)
            return name
        world.run(0.5)
    raise AssertionError(world.report(["nobody is bound"]))


def kill_leader(world: World) -> None:
    leader = world.leader()
    assert leader is not None
    world.kill(leader)


def stop_leader(world: World) -> None:
    leader = world.leader()
    assert leader is not None
    leader.stop()
    world.run(5.0)


DISTURBANCES: dict[str, Callable[[World], None]] = {
    "nothing": lambda _: None,
    "killed": kill_leader,
    "stopped": stop_leader,
    # All who wait are given back, and the node is closed.
    "silence": lambda world: world.run(30.0),
}


@pytest.mark.parametrize("disturb", DISTURBANCES)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_of_service_before_a_node_is_the_same_whoever_leads(
    make_world: Make, seed: int, disturb: str
) -> None:
    """By priority, then age, however often leaders and all that they remember go: judged by a line of names."""
    world, rng = make_world(seed, LINE), random.Random(seed)
    bound = with_node(world)
    led(world)
    create(world, "first")
    world.run(5.0)
    assert bound == ["first"]
    line: list[tuple[int, str, str]] = []
    expected, served, n_created = ["first"], [], 0
    for step in range(9):
        for _ in range(rng.choice((0, 1, 3)) if step else 3):
            n_created += 1
            # By their names they have another order, which counts among those of one second.
            name, priority = f"{rng.choice('xyz')}{n_created}", rng.choice((0, 0, 0, 10))
            pod = create(world, name, priority=priority)
            line.append((-priority, pod["metadata"]["creationTimestamp"], name))
        # So long that the leader knows them. Those that come while the plugin is silent are in their backoff.
        world.run(_SETTLED_SECONDS)
        if step in {2, 3, 7}:
            DISTURBANCES[disturb](world)
        served.append(serve(world))
        if line:
            line.sort()
            expected.append(line.pop(0)[2])
            world.run(40.0 if disturb == "killed" else 5.0)
        else:
            break
    assert bound[: len(expected)] == expected, world.report([str(bound), str(expected)])
    assert served == expected[: len(served)]


@pytest.mark.parametrize("n_silences", [1, 3])
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_a_pod_whose_turn_did_not_come_is_not_overtaken_by_younger_ones(
    make_world: Make, seed: int, n_silences: int
) -> None:
    """It is given back when the plugin falls silent; however often, it sits out no backoff when the plugin is back."""
    world = make_world(seed, LINE)
    bound = with_node(world)
    led(world)
    line = ["first", *(f"urgent-{n}" for n in range(1, n_silences)), "old", "young"]
    create(world, line[0])
    world.run(2.0)
    for name in line[1:-1]:
        create(world, name, priority=10 if name.startswith("urgent") else 0)
    for n in range(n_silences):
        _await_silence(world)
        if n == n_silences - 1:
            create(world, "young")
        world.run(0.3)
        assert serve(world) == line[n]
        world.run(0.6)
        assert bound == line[: n + 2], world.report([str(bound)])
        assert lock_of(world).endswith(f",default,{line[n + 1]}")
    assert serve(world) == "old"
    world.run(3.0)
    assert bound == line


def _await_silence(world: World) -> None:
    leader = world.leader()
    assert leader is not None
    for _ in range(300):
        if leader.parts.engine._cluster.nodes.silent.any():
            return
        world.run(0.1)
    raise AssertionError(world.report(["the plugin is not known to be silent"]))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_pod_that_is_not_served_keeps_its_lock_whoever_leads(make_world: Make, seed: int) -> None:
    """A plugin that wakes up serves the pod that the lock names: no other pod may be named by then."""
    world = make_world(seed, LINE)
    bound = with_node(world)
    led(world)
    create(world, "first")
    world.run(5.0)
    create(world, "second")
    for _ in range(3):
        world.run(LONG)
        kill_leader(world)
    world.run(120.0)
    assert bound == ["first"]
    assert lock_of(world).endswith(",default,first")
    assert serve(world) == "first"
    world.run(5.0)
    assert bound == ["first", "second"]


@pytest.mark.parametrize("is_ours", [True, False])
@pytest.mark.parametrize("seed", SEEDS[:4])
def test_the_lock_of_a_pod_that_went_while_nobody_led_is_removed_though_no_pod_comes(
    make_world: Make, seed: int, *, is_ours: bool
) -> None:
    """On a node of another scheduler it is none of our business."""
    world = make_world(
        seed, dataclasses.replace(LINE, foreign_nodes="" if is_ours else "scheduler=hami")
    )
    with_node(world)
    led(world)
    create(world, "first")
    world.run(5.0)
    assert lock_of(world).endswith(",default,first")

    def give_away(node: Json) -> None:
        node["metadata"]["labels"] = {"scheduler": "hami"}

    if not is_ours:
        world.server.change("nodes", "", NODE, give_away)
    kill_leader(world)
    world.server.delete("pods", "default", "first")
    world.run(40.0)
    assert bool(lock_of(world)) != is_ours, world.report([lock_of(world)])


@pytest.mark.parametrize("is_new_leader", [False, True])
@pytest.mark.parametrize("end", ["deleted", "failed", "started", "served"])
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_what_ends_a_lock_is_heard_at_once_after_a_long_silence(
    make_world: Make, seed: int, end: str, *, is_new_leader: bool
) -> None:
    """The plugin died: the lock itself stays as it is."""
    world = make_world(seed, LINE)
    bound = with_node(world)
    led(world)
    create(world, "first")
    world.run(5.0)
    create(world, "second")
    if is_new_leader:
        kill_leader(world)
    world.run(LONG)

    def answer(pod: Json) -> None:
        pod["metadata"]["annotations"][names.HAMI_BIND_PHASE] = names.BIND_SUCCESS

    match end:
        case "deleted":
            world.server.delete("pods", "default", "first")
        case "served":
            world.server.change("pods", "default", "first", answer)
        case _:
            world._phase("first", "Running" if end == "started" else "Failed")
    # Far less than the time after which a silent plugin is tried again.
    world.run(6.0)
    assert bound == ["first", "second"], world.report([lock_of(world)])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_scheduler_that_locks_the_node_again_and_again_does_not_starve_ours(
    make_world: Make, seed: int
) -> None:
    """It tries twice a second, as soon as its last pod is served; ours hears of the lock's end and is there before it."""
    world = make_world(seed, climate.quiet(nodes=0, plugin_seconds=0.3))
    bound = with_node(world, is_silent=False)
    led(world)

    def bind(pod: Json) -> None:
        notes = {names.HAMI_NODE: NODE, names.HAMI_BIND_PHASE: "allocating"}
        pod["metadata"].setdefault("annotations", {}).update(notes)
        pod["spec"]["nodeName"] = NODE

    def lock_and_bind(n: int) -> None:
        if n == 40 or world.is_calm:
            return
        if not lock_of(world):
            name = f"theirs-{n}"
            write_lock(world, name)
            create(world, name, scheduler_name=FOREIGN)
            world.server.change("pods", "default", name, bind)
            n += 1
        world.clock.after(0.5, lambda: lock_and_bind(n))

    lock_and_bind(0)
    world.run(0.1)
    for i in range(10):
        create(world, f"ours-{i}")
    world.run(30.0)
    mine = [name for name in bound if name.startswith("ours")]
    assert len(mine) == 10, world.report(bound)
    # Theirs were never more than two in a row before ours were all served.
    last = max(i for i, name in enumerate(bound) if name.startswith("ours"))
    row = "".join("t" if name.startswith("theirs") else "o" for name in bound[:last])
    assert "ttt" not in row, row


@pytest.mark.parametrize("seed", SEEDS)
def test_the_lock_of_a_scheduler_that_died_before_its_bind_ends_by_its_age(
    make_world: Make, seed: int
) -> None:
    world = make_world(seed, LINE)
    bound = with_node(world)
    led(world)
    create(world, "theirs", scheduler_name=FOREIGN)
    write_lock(world, "theirs")
    create(world, "ours")
    world.run(50.0)
    assert bound == []
    world.run(60.0)
    assert bound == ["ours"], world.report([lock_of(world)])


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_the_lock_of_an_unbound_pod_of_another_scheduler_ends_with_the_pod(
    make_world: Make, seed: int
) -> None:
    """No stream has such a pod, so that is found by looking."""
    world = make_world(seed, LINE)
    bound = with_node(world)
    led(world)
    create(world, "theirs", scheduler_name=FOREIGN)
    write_lock(world, "theirs")
    create(world, "ours")
    world.run(10.0)
    world.server.delete("pods", "default", "theirs")
    world.run(3.0)
    assert bound == ["ours"], world.report([lock_of(world)])
