"""Gangs whose binds fail, or whose scheduler dies between two of them: whatever others come, they are soon whole."""

import copy
import random
from collections import Counter

import pytest

from scheduler.api import wire
from scheduler.api.door import events
from scheduler.api.door.decisions import GroupResult
from scheduler.api.groups.definitions import GroupKey
from scheduler.api.groups.objects import KubePodGroup
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.chores import PROMPT
from scheduler.engine.engine import Engine
from scheduler.state import checks
from scheduler.state.entities import Team, make_entity
from scheduler.telling import groups
from scheduler.waiting.pending import Pending
from tests import make

GANG = "gang.scheduling.koordinator.sh/"
KUEUE = "kueue.x-k8s.io/pod-group-"
# The longest backoff, and what a decision takes.
_RETRY_SECONDS = 11
# In the last two an older pod took the room of a gang that the next scheduler had to make whole.
SEEDS = [*range(40), 105, 485]


class World:
    """Nodes of two CPUs, gangs in three systems' words and single pods, all of one priority.

    Attributes:
        pods: as the API server has them, by uid.
        n_failed: how many binds have failed.
        n_cut: how many times a gang had pods on nodes, and fewer than its minimum.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.now = 1000.0
        self.pods: dict[str, wire.Pod] = {}
        self._gang_of: dict[str, str] = {}
        self._minimum: dict[str, int] = {}
        self._groups: dict[str, KubePodGroup] = {}
        self._under_way: list[tuple[str, str]] = []
        self._nodes = [make.node(name=f"n{i}", cpu=2) for i in range(self.rng.randint(3, 8))]
        self.n_failed = self.n_cut = self._n = 0
        self.start_anew()

    def start_anew(self) -> None:
        """Kill the scheduler, and start another; a bind that was under way has landed or never will."""
        for uid, place in self._under_way:
            if self.rng.random() < 0.5:
                self.pods[uid].spec.node_name = place
        self._under_way = []
        self.engine = Engine(Config(), pace=PROMPT)
        for node in self._nodes:
            self._tell(events.Seen(node))
        for group in self._groups.values():
            self._tell(events.Seen(group))
        for pod in self.pods.values():
            self._tell(events.Seen(copy.deepcopy(pod)))

    def happen(self, *, is_calm: bool = False) -> None:
        """Let something come or end, decide, and end binds; if it is calm, none fails."""
        self.now += 1.0
        what = self.rng.randrange(8)
        if what < 3:
            self._gang_comes()
        elif what < 5:
            self._pod_comes(self.rng.choice((1, 2)), {})
        elif what == 5:
            self._one_ends()
        elif what == 6 and not is_calm:
            self.start_anew()
        outcome = self.engine.decide(self.now, Unlimited())
        assert not outcome.evicts
        self._under_way += [(bind.uid, bind.node) for bind in outcome.binds]
        ends = [one for one in self._under_way if is_calm or self.rng.random() < 0.7]
        self._under_way = [one for one in self._under_way if one not in ends]
        for uid, node in ends:
            if not is_calm and self.rng.random() < 0.3:
                self.n_failed += 1
                self._tell(events.BindFailed(uid, "as the test has it"))
            else:
                self.pods[uid].spec.node_name = node
                self._tell(events.BindDone(uid))
                self._tell(events.Seen(copy.deepcopy(self.pods[uid])))
        self.n_cut += len(self.list_cut())
        checks.verify(self.engine._cluster)

    def list_cut(self) -> list[str]:
        """List the gangs with pods on nodes, but fewer than their minimum."""
        running = Counter(
            self._gang_of[uid] for uid, pod in self.pods.items() if pod.spec.node_name
        )
        return [gang for gang, n in running.items() if n < self._minimum.get(gang, 0)]

    def _tell(self, event: events.Event) -> None:
        self.engine.handle(event, self.now)

    def _gang_comes(self) -> None:
        self._n += 1
        name, n = f"g{self._n}", self.rng.randint(2, 4)
        self._minimum[name] = minimum = self.rng.randint(2, n)
        system = self.rng.randrange(3)
        notes = {}
        if system == 0:
            self._groups[name] = make.pod_group(name, minimum)
            self._tell(events.Seen(self._groups[name]))
        elif system == 1:
            notes = {GANG + "name": name, GANG + "min-available": str(minimum)}
        else:
            self._minimum[name] = n
            notes = {KUEUE + "total-count": str(n)}
        for _ in range(n):
            pod = self._pod_comes(self.rng.choice((1, 2)), notes, name, in_object=system == 0)
            assert pod.metadata.uid in self.pods

    def _pod_comes(
        self, cpu: int, notes: dict[str, str], gang: str = "", *, in_object: bool = False
    ) -> wire.Pod:
        self._n += 1
        labels = {KUEUE + "name": gang} if KUEUE + "total-count" in notes else {}
        pod = make.pod(name=f"p{self._n}", cpu=cpu, annotations=dict(notes), labels=labels)
        if in_object:
            make.member(pod, gang)
        uid = pod.metadata.uid
        self.pods[uid], self._gang_of[uid] = pod, gang
        self._tell(events.Seen(copy.deepcopy(pod)))
        return pod

    def _one_ends(self) -> None:
        """End a pod that runs, or its whole gang."""
        running = sorted(uid for uid, pod in self.pods.items() if pod.spec.node_name)
        if not running:
            return
        first = self.rng.choice(running)
        gang = self._gang_of[first]
        under_way = {uid for uid, _ in self._under_way}
        ends = [uid for uid in self.pods if gang and self._gang_of[uid] == gang] or [first]
        if under_way.isdisjoint(ends):
            for uid in ends:
                del self.pods[uid]
                self._tell(events.Gone("Pod", uid))


def play(seed: int) -> World:
    """Storms in which binds fail and schedulers die, each followed by a calm that is as long as one retry."""
    world = World(seed)
    for _ in range(4):
        for _ in range(8):
            world.happen()
        for _ in range(_RETRY_SECONDS):
            world.happen(is_calm=True)
        assert not world.list_cut(), f"seed {seed}"
        assert not world.engine._cluster.nominations, f"seed {seed}"
    return world


@pytest.mark.parametrize("seed", SEEDS)
def test_a_gang_below_its_minimum_is_whole_after_one_retry(seed: int) -> None:
    play(seed)


def test_gangs_were_cut() -> None:
    """The worlds of the test above have what it is about."""
    worlds = [play(seed) for seed in SEEDS[:10]]
    assert sum(world.n_failed for world in worlds) > 30
    assert sum(world.n_cut for world in worlds) > 20


def test_a_queued_gang_that_is_below_its_minimum_now_comes_first() -> None:
    """The next scheduler hears of the pods one by one, and queues them as it does."""
    cluster = make.cluster(pods=[make.pod(name=name) for name in ("old", "member", "other")])
    old, member, other = cluster.pods.values()
    key = GroupKey("Test", "default", "gang")
    pending = Pending(Config())
    pending.offer(old, 0.0)
    pending.offer(make_entity(key, Team("", 2, (member, other))), 0.0)
    short = make_entity(key, Team("", 2, (other,), there=(member,)), n_short=1)
    pending.offer(short, 0.0)
    assert pending.pop(9, 0.0) == [short, old]


def test_it_is_said_how_many_pods_a_gang_runs_below_its_minimum() -> None:
    """The event on the group tells a person that what it holds is of no use."""
    engine = Engine(Config())
    engine.handle(events.Seen(make.node(name="a", cpu=4)), 0.0)
    notes = {GANG + "name": "g", GANG + "min-available": "4"}
    for i in range(4):
        node = "a" if i < 2 else ""
        pod = make.pod(name=f"p{i}", cpu=2, node=node, annotations=notes)
        engine.handle(events.Seen(pod), 0.0)
    [plan] = engine.decide(0.0, Unlimited()).plans
    assert isinstance(plan.group, GroupResult)
    said = groups.say_group(plan.group, plan.hold).message
    assert "0 of 2 pods fit; it runs 2 pods below its minimum. 0/1 nodes" in said


def test_a_gang_that_was_nominated_by_the_scheduler_before_never_loses_its_nominations() -> None:
    """Written first to have none and then to have one, each pod had none until its second write came back."""
    engine = Engine(Config())
    engine.handle(events.Seen(make.pod_group("gang", 2, priority=5)), 0.0)
    for name, other in (("a", "b"), ("b", "a")):
        engine.handle(events.Seen(make.node(name=name, cpu=2)), 0.0)
        engine.handle(events.Seen(make.pod(name=f"low-{name}", cpu=2, node=name)), 0.0)
        wanted = make.member(make.pod(name=f"high-{name}", cpu=2, priority=5))
        wanted.status.nominated_node_name = other
        engine.handle(events.Seen(wanted), 0.0)
    outcome = engine.decide(0.0, Unlimited())
    assert sorted(uid for evict in outcome.evicts for uid in evict.victims) == [
        "default/low-a",
        "default/low-b",
    ]
    written = [(one.uid, one.node) for one in outcome.nominates]
    assert len(written) == len({uid for uid, _ in written}) == 2
    assert {node for _, node in written} == {"a", "b"}


def test_a_gang_that_is_placed_by_the_search_waits_for_the_pod_that_found_no_node() -> None:
    """The first try put the large pod on the node, and held the small ones, which have it now."""
    engine = Engine(Config())
    engine.handle(events.Seen(make.node(name="a", cpu=2)), 0.0)
    engine.handle(events.Seen(make.pod_group("gang", 2)), 0.0)
    for name, cpu in (("large", 2), ("small", 1), ("smaller", 1)):
        engine.handle(events.Seen(make.member(make.pod(name=name, cpu=cpu))), 0.0)
    [plan] = engine.decide(0.0, Unlimited()).plans
    assert {bind.uid for bind in plan.binds} == {"default/small", "default/smaller"}
    assert plan.hold is not None
    assert plan.hold.uid == "default/large"


def test_room_for_a_gang_leaves_what_is_promised_to_others() -> None:
    """Beside a promise of its own priority a pod may have to go that would have had room without the promise."""
    engine = Engine(Config())
    for name in ("a", "b"):
        engine.handle(events.Seen(make.node(name=name, cpu=4)), 0.0)
    promised = make.pod(
        name="promised", cpu=3, priority=5, spec={"schedulingGates": [{"name": "g"}]}
    )
    promised.status.nominated_node_name = "a"
    pods = [
        promised,
        make.pod(name="low-a", cpu=1, node="a"),
        make.pod(name="low-b", cpu=4, node="b"),
    ]
    notes = {GANG + "name": "high", GANG + "min-available": "2"}
    pods += [make.pod(name=f"p{cpu}", cpu=cpu, priority=5, annotations=notes) for cpu in (1, 4)]
    for pod in pods:
        engine.handle(events.Seen(pod), 0.0)
    [evict] = engine.decide(0.0, Unlimited()).evicts
    assert sorted(evict.victims) == ["default/low-a", "default/low-b"]
