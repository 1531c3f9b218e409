"""Gangs of several priorities whose binds and evictions fail, and whose scheduler dies: nothing stays promised after all."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator

import pytest

from scheduler.api import wire
from scheduler.api.door import events
from scheduler.api.groups.objects import KubePodGroup
from scheduler.config import Config
from scheduler.engine.chores import PROMPT
from scheduler.engine.engine import Engine
from scheduler.state import checks
from tests import make
from tests.unit.pausing import decide_at_once

GANG = "gang.scheduling.koordinator.sh/"
_GOING = "2026-01-01T00:00:00Z"
# How long the longest backoffs of a gang that is tried again after its victims have gone take, and then nothing happens.
_CALM, _REST = 40, 10
SEEDS = [*range(12), 25, 35, 37, 73, 76, 77, 81, 90, 95, 107, 108]


class World:
    """Nodes of four CPUs, gangs and single pods, and an API server that takes its time with what is decided.

    Attributes:
        pods: as the API server has them, by uid.
        n_failed, n_evicted, n_begun: how many binds failed, pods were evicted, and schedulers began.
    """

    decide = staticmethod(decide_at_once)

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.now = 1000.0
        self.pods: dict[str, wire.Pod] = {}
        self.n_failed = self.n_evicted = self.n_begun = 0
        self._gang_of: dict[str, str] = {}
        self._groups: list[KubePodGroup] = []
        self._nodes = [
            make.node(name=f"n{i}", cpu=4, labels={"rack": f"r{i % 2}"})
            for i in range(self.rng.randint(2, 6))
        ]
        # What was decided and is not done yet.
        self._binds: list[tuple[str, str]] = []
        self._nominations: list[tuple[str, str]] = []
        self._evictions: list[str] = []
        self._n = 0
        self.start_anew()

    def start_anew(self) -> None:
        """Kill the scheduler, and start another; of what was under way some was done, and the rest never will be."""
        self.n_begun += 1
        for uid, place in self._nominations:
            if self._may_be_done(uid):
                self.pods[uid].status.nominated_node_name = place
        for uid, place in self._binds:
            if self._may_be_done(uid):
                self._note_bound(uid, place)
        for uid in self._evictions:
            if self._may_be_done(uid):
                self.pods[uid].metadata.deletion_timestamp = _GOING
        self._binds, self._nominations, self._evictions = [], [], []
        self.engine = self._make_engine()
        for node in self._nodes:
            self._tell(events.Seen(node))
        for group in self._groups:
            self._tell(events.Seen(group))
        for pod in self.pods.values():
            self._tell(events.Seen(copy.deepcopy(pod)))

    def _make_engine(self) -> Engine:
        return Engine(Config(), pace=PROMPT)

    def happen(self) -> None:
        """Let something come, end or die."""
        what = self.rng.randrange(9)
        if what < 2:
            self._gang_comes()
        elif what == 2:
            self._pod_comes("", self.rng.randrange(3))
        elif what == 3:
            self._one_ends()
        elif what == 4:
            self.start_anew()

    def go_on(self, *, is_calm: bool = False) -> int:
        """Decide, and do some of what is decided; if it is calm, all of it, and nothing fails. Return how many were evicted."""
        self.now += 1.0
        for uid in [uid for uid, pod in self.pods.items() if pod.metadata.deletion_timestamp]:
            if self._happens(0.5, is_calm):
                self._forget(uid)
        outcome = self.decide(self.engine, self.now)
        self._nominations += [(one.uid, one.node) for one in outcome.nominates]
        self._evictions += [uid for evict in outcome.evicts for uid in evict.victims]
        self._binds += [(bind.uid, bind.node) for bind in outcome.binds]
        for uid in self._take_some(self._evictions, is_calm):
            self._end_eviction(uid, is_calm)
        for uid, node in self._take_some(self._nominations, is_calm):
            if uid in self.pods and not self.pods[uid].spec.node_name:
                self.pods[uid].status.nominated_node_name = node
                self._tell(events.Seen(copy.deepcopy(self.pods[uid])))
        for uid, node in self._take_some(self._binds, is_calm):
            self._end_bind(uid, node, is_calm)
        checks.verify(self.engine._cluster)
        return len(outcome.evicts)

    def list_promised(self) -> list[str]:
        """List the pods that are promised room, and those of which the API server says so."""
        nominations = self.engine._cluster.nominations
        written = [
            uid
            for uid, pod in self.pods.items()
            if pod.status.nominated_node_name and not pod.spec.node_name
        ]
        known = [uid for node in nominations.list_nodes() for uid in nominations.list_on(node)]
        return [*written, *known, *nominations.going]

    def _tell(self, event: events.Event) -> None:
        self.engine.handle(event, self.now)

    def _happens(self, share: float, is_calm: bool) -> bool:
        return is_calm or self.rng.random() < share

    def _may_be_done(self, uid: str) -> bool:
        """Whether what was under way for a pod was done before the scheduler died."""
        return uid in self.pods and self.rng.random() < 0.5

    def _take_some(self, waiting: list, is_calm: bool) -> Iterator:  # type: ignore[type-arg]
        for one in list(waiting):
            if self._happens(0.7, is_calm):
                waiting.remove(one)
                yield one

    def _end_eviction(self, uid: str, is_calm: bool) -> None:
        if uid not in self.pods:
            return
        if not is_calm and self.rng.random() < 0.1:
            self._tell(events.EvictFailed(uid, "refused"))
            return
        self._tell(events.EvictDone(uid))
        self.n_evicted += 1
        under_way = [one for one in self._binds if one[0] == uid]
        if under_way:
            # Its bind is taken back.
            self._binds.remove(under_way[0])
            self._tell(events.BindFailed(uid, "withdrawn"))
        elif self.pods[uid].spec.node_name:
            self.pods[uid].metadata.deletion_timestamp = _GOING
            self._tell(events.Seen(copy.deepcopy(self.pods[uid])))

    def _end_bind(self, uid: str, node: str, is_calm: bool) -> None:
        if uid not in self.pods:
            self._tell(events.BindFailed(uid, "gone", gone=True))
        elif not is_calm and self.rng.random() < 0.3:
            self.n_failed += 1
            self._tell(events.BindFailed(uid, "as the test has it"))
        else:
            self._note_bound(uid, node)
            self._tell(events.BindDone(uid))
            self._tell(events.Seen(copy.deepcopy(self.pods[uid])))

    def _note_bound(self, uid: str, node: str) -> None:
        self.pods[uid].spec.node_name = node
        self.pods[uid].status.nominated_node_name = ""

    def _gang_comes(self) -> None:
        self._n += 1
        name, n, priority = f"g{self._n}", self.rng.randint(2, 4), self.rng.randrange(3)
        minimum, notes = self.rng.randint(2, n), {}
        is_kube = self.rng.random() < 0.4
        if is_kube:
            mode = {self.rng.choice(("all", "single")): dict[str, str]()}
            where = self.rng.choice(("", "rack"))
            group = make.pod_group(
                name, minimum, priority=priority, topology=where, disruptionMode=mode
            )
            self._groups.append(group)
            self._tell(events.Seen(group))
        else:
            notes = {GANG + "name": name, GANG + "min-available": str(minimum)}
        for _ in range(n):
            self._pod_comes(name, priority, notes, is_kube=is_kube)

    def _pod_comes(
        self,
        gang: str,
        priority: int,
        notes: dict[str, str] | None = None,
        *,
        is_kube: bool = False,
    ) -> None:
        self._n += 1
        cpu = self.rng.choice((1, 2, 4))
        pod = make.pod(
            name=f"p{self._n}", cpu=cpu, priority=priority, annotations=dict(notes or {})
        )
        if is_kube:
            make.member(pod, gang)
        uid = pod.metadata.uid
        self.pods[uid], self._gang_of[uid] = pod, gang
        self._tell(events.Seen(copy.deepcopy(pod)))

    def _one_ends(self) -> None:
        """End a pod that runs, or its whole gang."""
        running = sorted(uid for uid, pod in self.pods.items() if pod.spec.node_name)
        if running:
            gang = self._gang_of[first := self.rng.choice(running)]
            ends = [uid for uid in self.pods if gang and self._gang_of[uid] == gang]
            for uid in ends or [first]:
                self._forget(uid)

    def _forget(self, uid: str) -> None:
        del self.pods[uid]
        self._tell(events.Gone("Pod", uid))


def play(world: World, seed: int) -> World:
    """Storms, each followed by a calm in which nothing comes any more."""
    for _ in range(4):
        for _ in range(25):
            world.happen()
            world.go_on()
        for _ in range(_CALM):
            world.go_on(is_calm=True)
        assert not any(world.go_on(is_calm=True) for _ in range(_REST)), f"seed {seed}"
        assert not world.list_promised(), f"seed {seed}"
    return world


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_promised_or_evicted_any_more_once_nothing_comes(seed: int) -> None:
    """Promised room that is never taken would be lost, and two gangs that wait for each other would wait for ever."""
    play(World(seed), seed)


def test_the_storms_have_what_they_are_about() -> None:
    worlds = [play(World(seed), seed) for seed in SEEDS[:5]]
    assert sum(world.n_failed for world in worlds) > 30
    assert sum(world.n_evicted for world in worlds) > 30
    assert sum(world.n_begun for world in worlds) > 20
