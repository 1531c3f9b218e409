"""Binds that land when nobody waits for them any more: each is refused, whoever sent it and however late.

They are let go at the worst moment: when the card they were sent for has just been given to another pod.
"""

import pytest

from scheduler.api import hami, names
from tests import slices
from tests.model.server import Change, Json, Refused
from tests.virtual import climate
from tests.virtual.conftest import Make
from tests.virtual.network import Faults
from tests.virtual.replica import Replica
from tests.virtual.test_interleavings import LATE_NEWS, cordon, led
from tests.virtual.world import World

pytestmark = pytest.mark.many

SEEDS = slices.pick_part(range(8))
HOUR = 3600.0
# As many as all cards together can have at most: one pod fits, or the others do.
OTHERS = {"count": 6, "priority": 10}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_bind_of_a_leader_that_died_is_refused_when_its_card_is_given_away(
    make_world: Make, seed: int
) -> None:
    world, leader, late = held_bind(make_world(seed, climate.quiet()))
    world.kill(leader)
    world.create("exclusive", **OTHERS)
    assert let_go_when_bound(world) == [409]
    assert not node_of(world, late)
    world.settle()


@pytest.mark.parametrize("seed", SEEDS[:1])
def test_a_bind_that_lands_an_hour_later_is_refused(make_world: Make, seed: int) -> None:
    world, leader, late = held_bind(make_world(seed, climate.quiet()))
    world.kill(leader)
    world.create("exclusive", **OTHERS)
    world.run(HOUR)
    assert world.network.let_go() == [409]
    assert not node_of(world, late)
    world.settle()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_bind_of_a_leader_that_was_cut_off_is_refused(make_world: Make, seed: int) -> None:
    """It is alive, and another leads: the story of the proxy that holds a request."""
    world, leader, late = held_bind(make_world(seed, climate.quiet()))
    refused = Faults(refused=1.0, refusals=(503,))
    world.network.special = lambda who, *_: refused if who == leader.name else None
    world.create("exclusive", **OTHERS)
    answers = let_go_when_bound(world)
    assert set(answers) == {409}
    assert not node_of(world, late)
    world.network.special = lambda *_: None
    world.settle()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_bind_given_up_within_a_term_is_refused(make_world: Make, seed: int) -> None:
    """None of its tries was answered; the card goes to another pod, and then they land."""
    world, _, late = held_bind(make_world(seed, climate.quiet(replicas=1)), all_tries=True)
    world.run(10.0)
    world.create("exclusive", **OTHERS)
    answers = let_go_when_bound(world)
    assert len(answers) >= 6
    assert set(answers) == {409}
    assert not node_of(world, late)
    world.settle()


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_while_a_bind_cannot_be_fenced_its_cards_stay_taken(make_world: Make, seed: int) -> None:
    """Not for so many seconds, but for as long as it lasts."""
    world, _, late = held_bind(make_world(seed, climate.quiet(replicas=1)), all_tries=True)
    unfenced = Faults(refused=1.0, refusals=(503,))
    world.network.special = lambda _, method, path: unfenced if is_touch(method, path) else None
    world.run(10.0)
    world.create("exclusive", **OTHERS)
    world.run(HOUR)
    n_cards = len(world.server.of_kind("nodes")[0]["metadata"]["annotations"][names.HAMI_REGISTER].split("GPU-")) - 1  # fmt: skip
    assert world.n_bound < n_cards
    # The first of its tries takes effect after all, and only that.
    assert sorted(set(world.network.let_go())) == [201, 409]
    world.run(20.0)
    assert node_of(world, late) == "node-0"
    world.network.special = lambda *_: None
    world.settle()


@pytest.mark.parametrize("seed", SEEDS)
def test_who_stops_with_a_bind_on_its_way_is_followed_at_once_and_its_bind_refused(
    make_world: Make, seed: int
) -> None:
    """The lease goes back without the word that nothing is on its way, so the next fences first."""
    world, leader, late = held_bind(make_world(seed, climate.quiet()), all_tries=True)
    leader.stop()
    # While it stops it decides nothing, and the next one must know of them when it begins.
    world.create("exclusive", **OTHERS)
    while leader in world.replicas:
        world.run(0.1)
    stopped_at = world.clock.now
    answers = let_go_when_bound(world)
    assert set(answers) == {409}
    assert world.clock.now - stopped_at < 10.0, world.report(["the lease was waited out"])
    assert not node_of(world, late)
    world.settle()


@pytest.mark.parametrize("seed", SEEDS)
def test_who_stops_before_it_has_fenced_leaves_that_to_the_next(
    make_world: Make, seed: int
) -> None:
    """It has nothing on its way itself, but the leader before it has."""
    world, first, late = held_bind(make_world(seed, climate.quiet()))
    unfenced = Faults(refused=1.0, refusals=(503,))
    world.network.special = lambda _, method, path: unfenced if is_touch(method, path) else None
    world.kill(first)
    world.run(20.0)
    second = world.leader()
    assert second is not None
    assert not second.is_deciding()
    second.stop()
    while second in world.replicas:
        world.run(0.1)
    world.create("exclusive", **OTHERS)
    # The third hears of them before it may decide.
    world.run(0.5)
    world.network.special = lambda *_: None
    assert let_go_when_bound(world) == [409]
    assert world.leader() not in {first, second}
    assert not node_of(world, late)
    world.settle()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_bind_that_lands_between_the_list_and_the_fence_is_counted(
    make_world: Make, seed: int
) -> None:
    """The watch tells of it late, and its cards must not be given away meanwhile."""
    world, leader, late = held_bind(make_world(seed, climate.quiet(calm=LATE_NEWS)))
    landed: list[int] = []

    def lands_before_the_touch(who: str, method: str, path: str) -> Faults | None:
        if who != leader.name and is_touch(method, path) and not landed:
            landed.extend(world.network.let_go())
        return None

    world.network.special = lands_before_the_touch
    world.kill(leader)
    world.create("exclusive", **OTHERS)
    world.run(60.0)
    assert landed == [201]
    assert node_of(world, late) == "node-0"
    world.settle()


@pytest.mark.parametrize("seed", SEEDS)
def test_without_a_lease_a_process_fences_what_the_one_before_it_has_sent(
    make_world: Make, seed: int
) -> None:
    world, leader, late = held_bind(make_world(seed, climate.quiet(replicas=1, has_lease=False)))
    world.kill(leader)
    world.create("exclusive", **OTHERS)
    assert let_go_when_bound(world) == [409]
    assert not node_of(world, late)
    world.settle()


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_after_a_lease_given_back_with_nothing_on_its_way_no_pod_is_touched(
    make_world: Make, seed: int
) -> None:
    """It would cost a write for each of maybe thousands of pods that wait."""
    world, touched = waiting_pods(make_world(seed, climate.quiet()))
    touched.clear()
    leader = led(world)
    leader.stop()
    while leader in world.replicas:
        world.run(0.1)
    assert led(world) is not leader
    world.run(5.0)
    assert not touched, world.report(touched)
    # The word is of that one handover: the next leader dies.
    world.kill(led(world))
    led(world)
    assert len(touched) == 12


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_who_loses_the_lease_and_takes_it_back_with_nobody_between_touches_no_pod(
    make_world: Make, seed: int
) -> None:
    """As when the API server restarts; what this leader has sent it follows to its end itself."""
    world, touched = waiting_pods(make_world(seed, climate.quiet(replicas=1)))
    touched.clear()
    leader = led(world)
    refused = Faults(refused=1.0, refusals=(503,))
    world.network.special = lambda _, __, path: refused if "/leases/" in path else None
    while leader.is_deciding():
        world.run(0.1)
    world.network.special = lambda *_: None
    assert led(world) is leader
    world.run(5.0)
    assert not touched, world.report(touched)


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_a_holder_that_somebody_struck_from_the_lease_is_no_clean_handover(
    make_world: Make, seed: int
) -> None:
    world, touched = waiting_pods(make_world(seed, climate.quiet()))
    leader = led(world)
    touched.clear()

    def strike(lease: Json) -> None:
        lease["spec"]["holderIdentity"] = ""

    world.kill(leader)
    world.server.change("leases", "evenkeel", "evenkeel", strike)
    assert led(world) is not leader
    assert len(touched) == 12


def held_bind(world: World, *, all_tries: bool = False) -> tuple[World, Replica, Json]:
    """A leader sends the bind of a pod, and it gets no further; the world, the leader and the pod."""
    leader = led(world)

    def holds(who: str, method: str, path: str) -> bool:
        is_bind = method == "POST" and path.endswith("/binding")
        return is_bind and who == leader.name and (all_tries or not world.network.held)

    world.network.holds = holds
    world.create("exclusive", count=1)
    (pod,) = world.server.of_kind("pods")
    while not world.network.held:
        world.run(0.02)

    def only_of_the_pod(who: str, method: str, path: str) -> bool:
        return holds(who, method, path) and pod["metadata"]["name"] in path

    world.network.holds = only_of_the_pod
    refuse_conditions(world)
    return world, leader, pod


def refuse_conditions(world: World) -> None:
    """A condition changes the version as well, but nobody can rely on its being written in time."""
    patch = world.server._patch_status

    def touches_only(namespace: str, name: str, sent: Json) -> Json:
        if "annotations" not in sent["metadata"] and not world.is_calm:
            raise Refused(503, "ServiceUnavailable")
        return patch(namespace, name, sent)

    world.server._patch_status = touches_only  # type: ignore[method-assign]


def let_go_when_bound(world: World) -> list[int]:
    """Fill all cards of the node with other pods, and let go what is held in the moment when they are full."""
    n_cards = cards_of(world)
    answers: list[int] = []

    def see(_: Change) -> None:
        if not answers and world.n_bound == n_cards:
            answers.extend(world.network.let_go())

    world.server.on_change.append(see)
    for _ in range(900):
        world.run(0.1)
        if answers:
            break
    world.network.holds = lambda *_: False
    world.run(5.0)
    return answers


def cards_of(world: World) -> int:
    """Cards of the only node."""
    (node,) = world.server.of_kind("nodes")
    return len(hami.decode_register(node["metadata"]["annotations"][names.HAMI_REGISTER]))


def waiting_pods(world: World) -> tuple[World, list[str]]:
    """Twelve pods wait for a node that is closed; the world and, as they happen, the pods touched."""
    touched: list[str] = []

    def see(change: Change) -> None:
        if change.kind == "pods" and change.before is not None and change.after is not None:
            before, after = (fenced(body) for body in (change.before, change.after))
            if before != after:
                touched.append(change.after["metadata"]["name"])

    world.server.on_change.append(see)
    led(world)
    cordon(world, closed=True)
    world.run(2.0)
    world.create("exclusive", count=12)
    world.run(10.0)
    return world, touched


def fenced(pod: Json) -> str | None:
    found: str | None = (pod["metadata"].get("annotations") or {}).get(names.FENCED)
    return found


def is_touch(method: str, path: str) -> bool:
    """Conditions are written on the same path; in these stories nobody misses them."""
    return method == "PATCH" and path.endswith("/status")


def node_of(world: World, pod: Json) -> str | None:
    """Where the pod is bound by now."""
    found = world.server.find("pods", "default", pod["metadata"]["name"])
    return found["spec"].get("nodeName") if found else None
