"""Random clusters of shared cards in which pods of one priority evict others, under all policies for cards.

Nothing breaks a promise from outside: no node and no card goes, and no pod is more urgent than those that evict.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.chores import PROMPT
from scheduler.engine.engine import Engine
from tests import make

Json = dict[str, Any]
_POLICIES = ("mutex", "mutex", "binpack", "spread", "numa", "topology-aware", "mutex,spread")


class Sharing:
    """A cluster, and what has happened in it.

    Attributes:
        evicted: the victims of each pod by its uid, one tuple for each time that it has evicted any.
        bound: every pod that was ever bound.
        log: what happened, for who reads of a failure.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._engine = Engine(Config(), pace=PROMPT, is_shared=False)
        self._now = 0.0
        self._pods = 0
        self._running: set[str] = set()
        self._leaving: list[tuple[float, str]] = []
        self.evicted: dict[str, list[tuple[str, ...]]] = {}
        self.bound: set[str] = set()
        self.log: list[tuple[Any, ...]] = []
        pick = self._random.choice
        self._nodes = {f"n{i}": pick([1, 2, 4]) for i in range(pick([1, 2, 3]))}
        for name, size in self._nodes.items():
            cards = [
                make.card(uuid=f"{name}-{j}", index=j, numa=j % 2, sharers=pick([2, 10]))
                for j in range(size)
            ]
            self._handle(events.Seen(make.hami_node(name=name, cards=cards, cpu=64)))
        for _ in range(self._random.randint(2, 4 * sum(self._nodes.values()))):
            self._create("low", 0)
        self._decide()

    def something_happens(self) -> None:
        """Time passes, victims leave, pods come and go."""
        self._now += self._random.choice([0.5, 2, 12, 60])
        self._let_leave()
        if self._random.random() < 0.8:
            self._create("high", 10)
        if self._random.random() < 0.3:
            self._create("low", 0)
        if self._random.random() < 0.2 and self._running:
            uid = self._random.choice(sorted(self._running))
            if all(uid != victim for _, victim in self._leaving):
                self._delete(uid)
        self._decide()

    def settle(self) -> None:
        """All victims leave, and nobody comes."""
        for _ in range(10):
            self._now += 60
            self._let_leave()
            self._decide()

    def _handle(self, event: events.Event) -> None:
        self._engine.handle(event, self._now)

    def _decide(self) -> None:
        outcome = self._engine.decide(self._now, Unlimited())
        for bind in outcome.binds:
            self._handle(events.BindDone(bind.uid))
            self._running.add(bind.uid)
            self.bound.add(bind.uid)
            cards = [[use.uuid for use in uses] for uses in make.read_slots(bind.devices)]
            self.log.append((self._now, "bind", bind.uid, bind.node, cards))
        for evict in outcome.evicts:
            self.evicted.setdefault(evict.makes_room_for, []).append(evict.victims)
            self.log.append((self._now, "evict", evict.makes_room_for, evict.node, evict.victims))
            self._leaving += [
                (self._now + self._random.choice([0, 5, 40]), victim) for victim in evict.victims
            ]

    def _let_leave(self) -> None:
        due = [one for one in self._leaving if one[0] <= self._now]
        for one in due:
            self._leaving.remove(one)
            self._delete(one[1])

    def _delete(self, uid: str) -> None:
        self.log.append((self._now, "gone", uid))
        self._running.discard(uid)
        self._handle(events.Gone("Pod", uid))

    def _create(self, name: str, priority: int) -> None:
        self._pods += 1
        annotations = dict(self._annotations())
        containers = [self._container(i) for i in range(self._random.choice([1, 1, 1, 2]))]
        pod = make.pod(
            name=f"{name}{self._pods}",
            priority=priority,
            annotations=annotations,
            containers=containers,
        )
        self.log.append((self._now, "come", pod.metadata.name, annotations, containers))
        self._handle(events.Seen(pod))

    def _annotations(self) -> Iterator[tuple[str, str]]:
        pick, lot = self._random.choice, self._random.random
        if lot() < 0.85:
            yield "hami.io/gpu-scheduler-policy", pick(_POLICIES)
        if lot() < 0.2:
            yield "hami.io/node-scheduler-policy", pick(["binpack", "spread"])
        if lot() < 0.15:
            name = pick(list(self._nodes))
            wanted = [f"{name}-{j}" for j in range(self._nodes[name]) if lot() < 0.7]
            yield "nvidia.com/use-gpuuuid", ",".join(wanted) or f"{name}-0"
        if lot() < 0.1:
            yield "nvidia.com/numa-bind", "true"

    def _container(self, number: int) -> Json:
        pick = self._random.choice
        memory: Json = (
            {"gpumem": pick([1000, 4000, 8000, 15000])}
            if self._random.random() < 0.8
            else {"gpumem_percent": pick([10, 50, 100])}
        )
        cores = pick([0, 0, 10, 50, 100])
        return make.container(
            name=f"c{number}", cpu=1, gpu=pick([1, 1, 1, 2]), gpucores=cores, **memory
        )
