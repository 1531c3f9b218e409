"""What one leader began and another, or nobody, should end: locks, queues and binds that change hands."""

import pytest

from scheduler.api import kinds, names
from scheduler.engine.questions.pods import KnownPods
from tests import make, slices
from tests.model.server import Change, Json
from tests.oracles import allocation
from tests.virtual import climate
from tests.virtual.conftest import Make
from tests.virtual.network import Faults
from tests.virtual.replica import Replica
from tests.virtual.test_interleavings import cordon, led
from tests.virtual.world import World

pytestmark = pytest.mark.many

SEEDS = slices.pick_part(range(16))
REFUSED = Faults(refused=1.0, refusals=(503,))
NODE = "/api/v1/nodes/node-0"


def test_the_heap_of_each_replica_is_frozen_once_and_after_the_first_decisions(
    make_world: Make,
) -> None:
    world = make_world(0, climate.quiet(replicas=2))
    world.create("plain", count=1)
    leader = led(world)
    assert leader.n_freezes == 0
    world.run(0.5)
    assert (world.n_bound, leader.n_freezes) == (1, 0)
    world.run(30.0)
    assert [one.n_freezes for one in world.replicas] == [1, 1]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_leader_of_before_whose_read_of_the_lock_was_slow_leaves_its_successors_lock_alone(
    make_world: Make, seed: int
) -> None:
    """Else the device plugin would serve a pod without a lock, and the next pod get its cards."""
    world = make_world(seed, climate.quiet(plugin=(0.0, 0.0)))
    leader = led(world)
    read: list[float] = []

    def slow_and_cut_off(who: str, method: str, path: str) -> Faults | None:
        if who != leader.name:
            return None
        if (method, path) == ("GET", NODE) and not read:
            read.append(world.clock.now)
            return Faults(back_seconds=25.0)
        return REFUSED if read and "/leases/" in path else None

    world.network.special = slow_and_cut_off
    locks = locks_of(world)
    world.create("exclusive", count=1)
    world.run(24.0)
    assert world.n_bound == 1
    assert_given_up(world, leader)
    assert len(locks) == 1, world.report(locks)
    world.settle()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_leader_that_slept_in_its_lock_does_not_release_its_successors(
    make_world: Make, seed: int
) -> None:
    """Both locked the node for the same pod, so by its text the lock might be either's."""
    world = make_world(seed, climate.quiet(plugin=(0.0, 0.0)))
    leader = led(world)
    wrote: list[float] = []

    def sleep_in_the_lock(who: str, method: str, path: str) -> Faults | None:
        if (who, method, path) == (leader.name, "PATCH", NODE) and not wrote:
            wrote.append(world.clock.now)
            leader.pause(25.0)
        return None

    world.network.special = sleep_in_the_lock
    locks = locks_of(world)
    world.create("exclusive", count=1)
    world.run(24.0)
    assert world.n_bound == 1
    assert_given_up(world, leader)
    assert len(locks) == 2, world.report(locks)
    world.settle()


@pytest.mark.parametrize("seed", SEEDS)
def test_pods_that_queue_for_a_node_that_is_deleted_go_elsewhere_at_once(
    make_world: Make, seed: int
) -> None:
    """Else they would wait for minutes for a device plugin that is no more."""
    delete_with_a_queue(make_world(seed, climate.quiet(replicas=1, nodes=2)))


@pytest.mark.parametrize("seed", SEEDS)
def test_pods_that_queue_for_a_node_that_a_list_no_longer_has_go_elsewhere_at_once(
    make_world: Make, seed: int
) -> None:
    """The same when the deletion itself was never heard of: watches broke, history is compacted."""
    delete_with_a_queue(make_world(seed, climate.quiet(replicas=1, nodes=2)), unheard=True)


@pytest.mark.parametrize("others", ["exclusive", "fat"])
@pytest.mark.parametrize("seed", slices.pick_part(range(8)))
def test_a_decision_of_an_old_term_is_not_carried_out_in_a_new_one(
    make_world: Make, seed: int, others: str
) -> None:
    """Between its terms another leader gave the same card away, or the same processors."""
    world = make_world(seed, climate.quiet())
    first = led(world)
    (second,) = (replica for replica in world.replicas if replica is not first)
    read: list[float] = []
    is_cut_off = False

    def slow_and_cut_off(who: str, method: str, path: str) -> Faults | None:
        if (who, method, path) == (first.name, "GET", NODE) and not read:
            read.append(world.clock.now)
            return Faults(back_seconds=28.0)
        if "/leases/" not in path:
            return None
        # Nor does whoever starts in place of the second get in between.
        return REFUSED if (is_cut_off and who == first.name) or who not in both else None

    both = {first.name, second.name}
    world.network.special = slow_and_cut_off
    world.create("heavy", count=1, gpu=1, cpu="2500m")
    (pod,) = world.server.of_kind("pods")
    while not read:
        world.run(0.02)
    is_cut_off = True
    while first.is_deciding():
        world.run(0.1)
    # What came meanwhile goes first under the next leader and leaves no room for the pod of before.
    world.create(others, count=6, priority=10)
    while not second.is_deciding():
        world.run(0.1)
    world.run(1.5)
    n_bound = world.n_bound
    assert n_bound
    is_cut_off = False
    second.stop()
    while not first.is_deciding():
        world.run(0.1)
    assert world.clock.now < read[0] + 27.0, world.report(["too late for this story"])
    world.run(30.0)
    world.settle()
    assert not node_of(world, pod)
    assert world.n_bound == n_bound
    node = world.server.find("nodes", "", "node-0")
    assert node is not None
    # A lock of the old decision would keep other schedulers of the node waiting.
    lock = node["metadata"]["annotations"].get(names.HAMI_LOCK, "")
    assert not lock.endswith(f",{pod['metadata']['name']}")


def delete_with_a_queue(world: World, *, unheard: bool = False) -> None:
    """Pods queue behind a plugin that never answers, and their node goes; there is another one."""
    led(world)
    world.silent.add("node-0")
    cordon(world, closed=True, name="node-1")
    world.run(1.0)
    world.create("exclusive", count=2)
    first, queued = world.server.of_kind("pods")
    world.run(5.0)
    assert (node_of(world, first), node_of(world, queued)) == ("node-0", None)
    cordon(world, closed=False, name="node-1")
    world.run(1.0)
    if unheard:
        for watch in world.network.watches:
            watch.tear()
    world.node_dies("node-0")
    if unheard:
        world.server.compacted = world.server.version
    world.run(8.0)
    assert node_of(world, queued) == "node-1", world.report(["it still waits"])
    world.settle()


def locks_of(world: World) -> list[str]:
    """Every lock that node-0 has from now on, each once."""
    locks: list[str] = []

    def see(change: Change) -> None:
        if change.kind == "nodes" and change.after is not None:
            lock = change.after["metadata"]["annotations"].get(names.HAMI_LOCK, "")
            if [lock] != locks[-1:]:
                locks.append(lock)

    world.server.on_change.append(see)
    return locks


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_who_starts_anew_knows_from_the_lease_how_fast_pods_leave(
    make_world: Make, seed: int
) -> None:
    """It stands in no pod; a mean over a thousand arrivals is a day's work on many a cluster."""
    world = make_world(seed, climate.quiet(replicas=1))
    leader = led(world)
    leader.parts.engine._cluster.demand.devices.recall(0.7, 1000)
    leader.parts.engine._cluster.demand.plain.recall(0.8, 1000)
    world.run(5.0)
    world.kill(leader)
    world.run(1.0)
    world.start_replica()
    successor = led(world)
    assert successor is not leader
    demand = successor.parts.engine._cluster.demand
    found = demand.devices.departures, demand.plain.departures
    assert found == pytest.approx((0.7, 0.8), abs=0.05), world.report([str(found)])


@pytest.mark.parametrize("seed", SEEDS[:8])
def test_a_standby_goes_on_at_once_with_what_it_has_heard(make_world: Make, seed: int) -> None:
    """It neither waits out the lease's next look nor lists again what a tenant may have made huge."""
    world = make_world(seed, climate.quiet())
    leader = led(world)
    (standby,) = (replica for replica in world.replicas if replica is not leader)
    world.create("plain", count=2)
    world.run(3.0)
    assert world.n_bound == 2
    lists = [stream.n_lists for stream in standby.parts.streams]
    leader.stop()
    world.run(0.7)
    assert leader.is_stopped()
    assert standby.is_deciding(), world.report(["it has not heard that the lease is free"])
    assert [stream.n_lists for stream in standby.parts.streams] == lists


@pytest.mark.parametrize("whose", ["ours", "others"])
@pytest.mark.parametrize("seed", SEEDS[:8])
def test_a_standby_whose_watch_is_silent_lists_before_it_decides(
    make_world: Make, seed: int, whose: str
) -> None:
    """What the leader of before bound meanwhile, or another scheduler, it has not heard of."""
    world = make_world(seed, climate.quiet(plugin=(0.0, 0.0)))
    leader = led(world)
    (standby,) = (replica for replica in world.replicas if replica is not leader)
    # The leader may lead before the standby has listed.
    world.run(2.0)

    def refuse_others(who: str, _method: str, path: str) -> Faults | None:
        # Whoever starts in place of the leader does not get in between.
        is_other = who not in {leader.name, standby.name}
        return REFUSED if is_other and path.endswith("/leases/evenkeel") else None

    def deafen(who: str, method: str, path: str) -> Faults | None:
        if (who, method) == (standby.name, "WATCH"):
            return Faults(news_seconds=1e9)
        return refuse_others(who, method, path)

    world.network.special = deafen
    # What was on its way to the standby before arrives.
    world.run(2.0)
    if whose == "ours":
        world.create("exclusive", count=1)
    else:
        notes = {names.HAMI_ALLOCATED: "node-0-GPU-0,NVIDIA,15360,100:;"}
        pod = make.pod(
            name="theirs", node="node-0", scheduler_name="hami", annotations=notes, gpu=1
        )
        world.server.create("pods", make.raw(pod))
    world.run(2.0)
    bound = {
        pod["metadata"]["uid"] for pod in world.server.of_kind("pods") if "nodeName" in pod["spec"]
    }
    assert len(bound) == 1
    assert not bound & standby.parts.engine.ask(KnownPods()).keys()
    world.kill(leader)
    world.run(40.0)
    assert standby.is_deciding(), world.report(["it does not lead"])
    assert bound <= standby.parts.engine.ask(KnownPods()).keys()
    pods = [one for one in standby.parts.streams if one.source.kind == kinds.PODS]
    assert [stream.n_lists for stream in pods] == [2, 2]
    # Now the standby hears of a pod that wants a card of its own.
    world.network.special = refuse_others
    world.create("exclusive", count=1)
    world.run(5.0)
    nodes, there = world.server.of_kind("nodes"), world.server.of_kind("pods")
    assert not allocation.violations(nodes, there)


def assert_given_up(world: World, replica: Replica) -> None:
    """It comes back to a decision that another carried out meanwhile, and lets go of it."""
    binder = replica.parts.binder
    assert binder.backlog == 1, world.report(["it was given up too early for this story"])
    assert world.leader() is not replica
    world.run(8.0)
    assert binder.backlog == 0, world.report(["it was not given up"])


def node_of(world: World, pod: Json) -> str | None:
    """Where the pod is bound by now."""
    found = world.server.find("pods", "default", pod["metadata"]["name"])
    return found["spec"].get("nodeName") if found else None
