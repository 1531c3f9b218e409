"""Gangs that come, go and make room for each other over time: none is ever split, and nobody is evicted in turn."""

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from scheduler.api import wire
from scheduler.api.door import events
from scheduler.api.door.decisions import Outcome
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.chores import PROMPT
from scheduler.engine.engine import Engine
from scheduler.state import checks
from tests import make

GANG = "gang.scheduling.koordinator.sh/"
# In the last two an extra pod was tried in the decision that sent its gang away.
SEEDS = [*range(25), 278, 339]


class World:
    """Nodes with four CPUs, gangs and single pods of a few priorities, and a kubelet that ends what is evicted.

    Attributes:
        placed: by uid, the pods that run.
        n_evicted, n_gangs_evicted: how many pods and whole gangs have gone.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.engine = Engine(Config(), pace=PROMPT)
        self.now = 1000.0
        self.placed: dict[str, wire.Pod] = {}
        self._pods: dict[str, wire.Pod] = {}
        self._gang_of: dict[str, str] = {}
        self._minimum: dict[str, int] = {}
        self._going: dict[str, str] = {}
        self.n_evicted = self.n_gangs_evicted = 0
        self._n = 0
        for i in range(self.rng.randint(2, 6)):
            rack = {"rack": f"r{i % 2}"}
            self.engine.handle(events.Seen(make.node(name=f"n{i}", cpu=4, labels=rack)), self.now)

    def happen(self) -> Outcome:
        """Let something come or end, and decide."""
        self.now += 1.0
        what = self.rng.randrange(8)
        if what < 2:
            self._gang_comes()
        elif what == 2:
            self._pod_comes("", self.rng.randrange(3))
        elif what == 3 and self.placed:
            self._end_one(self.rng.choice(sorted(self.placed)))
        for uid in sorted(self._going):
            if self.rng.random() < 0.5:
                self._finish_eviction(uid)
        outcome = self.engine.decide(self.now, Unlimited())
        self._check_evictions(outcome)
        for bind in outcome.binds:
            pod = self._pods[bind.uid]
            pod.spec.node_name = bind.node
            self.engine.handle(events.BindDone(bind.uid), self.now)
            self.engine.handle(events.Seen(pod), self.now)
            self.placed[bind.uid] = pod
        self._check_gangs(outcome)
        checks.verify(self.engine._cluster)
        return outcome

    def _gang_comes(self) -> None:
        self._n += 1
        name, n = f"g{self._n}", self.rng.randint(2, 5)
        self._minimum[name] = self.rng.randint(2, n)
        priority = self.rng.randrange(3)
        for _ in range(n):
            self._pod_comes(name, priority)

    def _pod_comes(self, gang: str, priority: int) -> None:
        self._n += 1
        notes = {}
        if gang:
            minimum = str(self._minimum[gang])
            notes = {GANG + "name": gang, GANG + "min-available": minimum}
        cpu = self.rng.choice((1, 2, 4))
        pod = make.pod(name=f"p{self._n}", cpu=cpu, priority=priority, annotations=notes)
        uid = f"default/p{self._n}"
        self._pods[uid], self._gang_of[uid] = pod, gang
        self.engine.handle(events.Seen(pod), self.now)

    def _end_one(self, uid: str) -> None:
        """End a pod, or its whole gang: a gang that lost a pod by itself would be below its minimum already."""
        gang = self._gang_of[uid]
        ends = [one for one in sorted(self._pods) if gang and self._gang_of[one] == gang] or [uid]
        for one in ends:
            self._forget(one)

    def _finish_eviction(self, uid: str) -> None:
        self._going.pop(uid)
        if uid in self._pods:
            self._forget(uid)

    def _forget(self, uid: str) -> None:
        self.engine.handle(events.Gone("Pod", uid), self.now)
        self._pods.pop(uid)
        self.placed.pop(uid, None)
        self._going.pop(uid, None)

    def _check_evictions(self, outcome: Outcome) -> None:
        """Of a gang whose pods are evicted, all go, or at least its minimum stays."""
        for evict in outcome.evicts:
            for uid in evict.victims:
                self._going[uid] = evict.makes_room_for
                self.n_evicted += 1
                self.engine.handle(events.EvictDone(uid), self.now)
                victim, winner = self._pods[uid], self._pods[evict.makes_room_for]
                assert victim.spec.priority < winner.spec.priority
            self.n_gangs_evicted += sum(len(unit) > 1 for unit in evict.units)
        for gang, stay in self._count_staying().items():
            gone = any(self._gang_of[uid] == gang for uid in self._going)
            assert not gone or stay == 0 or stay >= self._minimum[gang], (gang, stay)

    def _count_staying(self) -> Counter[str]:
        """Count the pods of each gang that run and do not leave."""
        counts = Counter(dict.fromkeys(filter(None, self._gang_of.values()), 0))
        counts.update(self._gang_of[uid] for uid in self.placed if uid not in self._going)
        del counts[""]
        return counts

    def _check_gangs(self, outcome: Outcome) -> None:
        """Of a gang that starts, at least its minimum starts at once."""
        before = Counter(self._gang_of[uid] for uid in self.placed)
        for plan in outcome.plans:
            if plan.group is not None and plan.binds:
                gang = self._gang_of[plan.binds[0].uid]
                assert before[gang] >= self._minimum[gang]


def play(seed: int, steps: int = 60) -> Iterator[tuple[World, Outcome]]:
    world = World(seed)
    for _ in range(steps):
        yield world, world.happen()


@pytest.mark.parametrize("seed", SEEDS)
def test_no_gang_is_ever_split_and_none_starts_in_part(seed: int) -> None:
    for world, _ in play(seed):
        assert sum(pod.spec.priority for pod in world.placed.values()) >= 0


def test_gangs_do_make_room_for_each_other() -> None:
    """The worlds of the test above have what it is about."""
    worlds = [[world for world, _ in play(seed)][-1] for seed in SEEDS]
    assert sum(world.n_evicted for world in worlds) > 50
    assert sum(world.n_gangs_evicted for world in worlds) > 10


@pytest.mark.parametrize("seed", SEEDS)
def test_evictions_end_once_nothing_comes(seed: int) -> None:
    """Two gangs that evict each other in turn would go on for ever."""
    world = [world for world, _ in play(seed)][-1]
    world._gang_comes = world._pod_comes = lambda *_: None  # type: ignore[assignment,method-assign]
    world._end_one = lambda *_: None  # type: ignore[method-assign]
    for _ in range(60):
        world.happen()
    evicted = world.n_evicted
    for _ in range(30):
        assert not world.happen().evicts
    assert world.n_evicted == evicted


def test_an_extra_pod_goes_with_its_gang_from_wherever_it_is() -> None:
    """The nodes of the gang cost least to clear, and its extra pod is elsewhere, beside a pod that costs more."""
    engine = Engine(Config())
    notes = {GANG + "name": "low", GANG + "min-available": "2"}
    pods = [
        make.pod(name=f"low{i}", cpu=cpu, node=f"n{i}", annotations=notes)
        for i, cpu in enumerate((4, 4, 1))
    ]
    pods += [make.pod(name=f"dear{i}", cpu=3, node=f"n{i}", priority=1) for i in range(2, 12)]
    wanted = {GANG + "name": "high", GANG + "min-available": "2"}
    pods += [make.pod(name=f"high{i}", cpu=4, priority=5, annotations=wanted) for i in range(2)]
    nodes = [make.node(name=f"n{i}", cpu=4) for i in range(12)]
    for node in nodes:
        engine.handle(events.Seen(node), 0.0)
    for pod in pods:
        engine.handle(events.Seen(pod), 0.0)
    [evict] = engine.decide(0.0, Unlimited()).evicts
    assert sorted(evict.victims) == ["default/low0", "default/low1", "default/low2"]
