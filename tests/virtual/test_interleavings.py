"""The interleavings by which cards were, or could be, given away twice; each by its own short story.

Random worlds meet them too, but seldom; here they happen in every world.
"""

import json
from collections import Counter

import pytest

from scheduler.kube.lead.lease import Lease
from tests import slices
from tests.model.server import Json
from tests.virtual import climate
from tests.virtual.conftest import Make
from tests.virtual.network import Faults
from tests.virtual.replica import Replica
from tests.virtual.world import World

pytestmark = pytest.mark.many

SEEDS = slices.pick_part(range(16))
LATE_NEWS = Faults(lag=1.0, lag_seconds=8.0)


def led(world: World) -> Replica:
    """The leader, as soon as there is one."""
    for _ in range(400):
        world.run(0.1)
        leader = world.leader()
        if leader is not None and leader.is_deciding():
            return leader
    raise AssertionError(world.report(["nobody leads"]))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_binding_that_took_effect_and_answered_500_or_nothing_is_asked_about(
    make_world: Make, seed: int
) -> None:
    world = make_world(seed, climate.quiet(replicas=1, calm=LATE_NEWS))
    tries: Counter[str] = Counter()

    def lose_first_answers(_: str, method: str, path: str) -> Faults | None:
        if method == "POST" and path.endswith("/binding"):
            tries[path] += 1
            return Faults(lost=1.0) if tries[path] == 1 else Faults()
        return None

    world.network.special = lose_first_answers
    world.create("exclusive", count=8)
    world.create("fat", count=4)
    led(world)
    world.run(40.0)
    world.settle()
    assert world.n_bound >= 3


@pytest.mark.parametrize("seed", SEEDS)
def test_a_binding_that_is_still_on_its_way_keeps_its_cards(make_world: Make, seed: int) -> None:
    """Its connection broke, but the server has it; the next try meets a server that has just started."""
    world = make_world(seed, climate.quiet(replicas=1))
    led(world)
    tries: Counter[str] = Counter()

    def first_is_late(_: str, method: str, path: str) -> Faults | None:
        if method != "POST" or "exclusive-2/" not in path:
            return None
        tries[path] += 1
        if tries[path] == 1:
            return Faults(late=1.0, late_seconds=5.0)
        return Faults(refused=1.0, refusals=(403,)) if tries[path] == 2 else None

    world.network.special = first_is_late
    world.create("exclusive", count=8)
    world.run(60.0)
    assert tries.total() >= 2
    world.settle()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_lease_that_is_lost_and_regained_frees_nothing_that_is_still_on_its_way(
    make_world: Make, seed: int
) -> None:
    """With the lease goes the right to write again; the first try may land when it is back."""
    world = make_world(seed, climate.quiet(replicas=1))
    leader = led(world)
    tries: Counter[str] = Counter()
    is_lost = True

    def cut_off(_: str, method: str, path: str) -> Faults | None:
        if "/leases/" in path:
            return Faults(refused=1.0, refusals=(503,)) if is_lost else None
        if method != "POST" or not path.endswith("/binding") or not is_lost:
            return None
        tries[path] += 1
        return Faults(late=1.0, late_seconds=5.0) if tries[path] == 1 else Faults(refused=1.0)

    world.network.special = cut_off
    lease = leader.parts.lease
    assert isinstance(lease, Lease)
    while lease.held.until - world.clock.now > 0.2:
        world.run(0.02)
    world.create("exclusive", count=1)
    while leader.is_deciding():
        world.run(0.05)
    world.run(0.5)
    assert tries.total() >= 1
    is_lost = False
    world.create("exclusive", count=6, priority=10)
    world.run(20.0)
    world.settle()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_refusal_that_comes_after_the_news_frees_nothing(make_world: Make, seed: int) -> None:
    """Somebody bound the pod by hand, to the same node: that is heard of first."""
    world = make_world(seed, climate.quiet(replicas=1))
    led(world)
    by_hand: list[int] = []

    def somebody_is_faster(_: str, method: str, path: str) -> Faults | None:
        if method != "POST" or not path.endswith("/binding") or by_hand:
            return None
        name = path.split("/")[-2]
        binding = {"metadata": {"name": name}, "target": {"name": "node-0"}}
        by_hand.append(world.server.handle("POST", path, {}, json.dumps(binding).encode())[0])
        return Faults(slow=1.0, slow_seconds=4.5)

    world.network.special = somebody_is_faster
    world.create("fat", count=4)
    world.run(30.0)
    assert by_hand == [201]
    world.settle()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_leader_whose_list_is_refused_lists_again(make_world: Make, seed: int) -> None:
    """Before it decides it waits for lists; one that failed must not be waited for for ever."""
    world = make_world(seed, climate.quiet())
    leader = led(world)
    world.run(3.0)
    refused: Counter[str] = Counter()

    def refuse_first_lists(who: str, _: str, path: str) -> Faults | None:
        if who != leader.name and path.endswith("/pods"):
            refused[path] += 1
            return Faults(refused=1.0) if refused[path] <= 2 else None
        return None

    world.network.special = refuse_first_lists
    leader.stop()
    world.run(20.0)
    assert refused
    assert led(world) is not leader


@pytest.mark.parametrize("seed", SEEDS)
def test_a_leader_that_slept_between_lock_and_bind_does_not_bind(
    make_world: Make, seed: int
) -> None:
    """Nor does it touch the lock, which may be its successor's by now, for the same pod."""
    world = make_world(seed, climate.quiet(replicas=2, calm=Faults(seconds=0.02)))
    leader = led(world)
    world.run(3.0)
    slept: list[float] = []
    wrote: list[str] = []

    def sleep_in_the_lock(who: str, method: str, path: str) -> Faults | None:
        if who == leader.name and slept and method != "GET" and path.startswith("/api/v1/"):
            wrote.append(f"{method} {path}")
        if who == leader.name and method == "PATCH" and "/nodes/" in path and not slept:
            slept.append(25.0)
            leader.pause(25.0)
        return None

    world.network.special = sleep_in_the_lock
    world.create("exclusive", count=1)
    world.run(2.0)
    assert slept
    # What came meanwhile goes first under the next leader and leaves no card for the pod of before.
    world.create("exclusive", count=6, priority=10)
    world.run(60.0)
    world.settle()
    assert not wrote


@pytest.mark.parametrize("seed", SEEDS)
def test_a_new_leader_knows_what_the_last_one_bound(make_world: Make, seed: int) -> None:
    hand_over(make_world(seed, climate.quiet()))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_new_leader_waits_for_a_newer_list_than_the_one_under_way(
    make_world: Make, seed: int
) -> None:
    hand_over(make_world(seed, climate.quiet()), list_under_way=True)


@pytest.mark.parametrize("seed", slices.pick_part(range(40)))
def test_a_new_leader_applies_its_lists_before_it_decides(make_world: Make, seed: int) -> None:
    hand_over(make_world(seed, climate.quiet()), throttled=True)


def hand_over(world: World, *, list_under_way: bool = False, throttled: bool = False) -> None:
    """A leader binds and gives the lease back; the next has not yet heard of what it bound."""
    leader = led(world)
    # Both see pods that wait and cards that are free; of what comes then only the leader hears. The
    # standby has the pods from a list, so it would begin with others.
    cordon(world, closed=True)
    world.create("exclusive", count=12)
    world.create("fat", count=4)
    for replica in list(world.replicas):
        if replica is not leader:
            world.kill(replica)
    world.run(6.0)
    (standby,) = (replica for replica in world.replicas if replica is not leader)
    lists: Counter[str] = Counter()
    late = Faults(lag=1.0, lag_seconds=20.0)

    def hears_late(who: str, method: str, path: str) -> Faults | None:
        if who == standby.name and method == "GET" and path.endswith("/pods"):
            lists[path] += 1
            return Faults(slow=1.0, slow_seconds=16.0) if list_under_way else None
        return late if (who, method, path) == (standby.name, "WATCH", "pods") else None

    world.network.special = hears_late
    if list_under_way:
        world.server.create("namespaces", {"metadata": {"name": "any-change"}})
        world.server.compacted = world.server.version
        for watch in world.network.watches:
            watch.tear()
        while not lists:
            world.run(0.1)
        world.run(1.0)
    cordon(world, closed=False)
    while not world.n_bound:
        world.run(0.2)
    world.run(0.5)
    leader.stop()
    while leader in world.replicas:
        world.run(0.1)
    # A process that gets little of its machine applies little at a turn.
    world.clock.slowness = 0.9 if throttled else 0.0
    world.run(8.0)
    world.clock.slowness = 0.0
    world.run(30.0)
    world.settle()
    assert world.leader() is not leader


def cordon(world: World, *, closed: bool, name: str = "node-0") -> None:
    def edit(node: Json) -> None:
        node["spec"]["unschedulable"] = closed

    world.server.change("nodes", "", name, edit)
