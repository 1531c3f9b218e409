"""The life of an engine of its own, to which random things happen, and the log of it."""

from __future__ import annotations

import random

import msgspec

from scheduler.api import limits
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine.allowance import SpentAllowance, Unlimited
from scheduler.engine.recorded import Recorded
from tests.model import clusters, workloads

WORDY = {f"k{i}": "v" for i in range(limits.LIGHT_WORDS + 1)}


class Story:
    """An engine to which random things happen, and the files of its log."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.files: list[list[bytes]] = [[]]
        self.engine = Recorded(Config(), "test", self._write)
        self.now = 1000.0
        self._n = 0
        self._under_way: list[str] = []
        for node in clusters.wired(clusters.nodes(self.rng, 8, clusters.SMALL)):
            self.tell(events.Seen(node))

    def _write(self, line: bytes) -> None:
        self.files[-1].append(line)

    def tell(self, event: events.Event) -> None:
        self.engine.handle(event, self.now)

    def happen(self) -> None:
        """One thing or another, and now and then a decision for a little or for much."""
        self.now += self.rng.expovariate(1 / 0.7)
        what = self.rng.randrange(10)
        pods = list(self.engine._cluster.pods.values())
        if what < 4:
            self._comes()
        elif what == 4 and pods:
            self.tell(events.Gone("Pod", self.rng.choice(pods).uid))
        elif what == 5 and self._under_way:
            uid = self._under_way.pop()
            self.tell(events.BindFailed(uid, "the bind failed"))
        elif what == 6:
            self._node_changes()
        for uid in self._under_way[:-2]:
            self.tell(events.BindDone(uid))
        self._under_way = self._under_way[-2:]
        some = SpentAllowance(self.rng.randrange(5), tuple(self.rng.randrange(4) for _ in range(3)))
        outcome = self.engine.decide(self.now, some if self.rng.random() < 0.5 else Unlimited())
        self._under_way += [bind.uid for bind in outcome.binds]

    def _comes(self) -> None:
        kind = self.rng.choice(list(workloads.PODS))
        self._n += 1
        pod = workloads.pod(kind, f"pod-{self._n}")
        if self.rng.random() < 0.1:
            pod.spec.node_selector = WORDY
        self.tell(events.Seen(pod))

    def _node_changes(self) -> None:
        name = f"node-{self.rng.randrange(8):03}"
        [node] = clusters.wired([clusters.node(self.rng, name, clusters.SMALL)])
        match self.rng.randrange(4):
            case 0:
                self.tell(events.Gone("Node", name))
            case 1:
                self.tell(events.PluginSilent(name, silent=self.rng.random() < 0.5))
            case 2:
                self.tell(events.Seen(node))
            case _:
                bare = msgspec.structs.replace(node.metadata, annotations=None)
                self.tell(events.Seen(msgspec.structs.replace(node, metadata=bare)))

    def anew(self) -> None:
        self.files.append([])
        self.engine.start_anew(self.now)
