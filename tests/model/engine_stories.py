"""The life of an engine of its own, to which random things happen, and the log of it."""

from __future__ import annotations

import random

import msgspec

from scheduler.api import limits, wire
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine.allowance import SpentAllowance, Unlimited, Work
from scheduler.engine.questions.nodes import NodeCounts
from scheduler.engine.questions.waiting import QueueCounts
from scheduler.engine.recorded import Recorded
from tests import make
from tests.model import clusters, workloads

WORDY = {f"k{i}": "v" for i in range(limits.LIGHT_WORDS + 1)}


class Story:
    """An engine to which random things happen, and the files of its log."""

    def __init__(self, seed: int, *, pauses: bool = False) -> None:
        self.rng, self._pauses = random.Random(seed), pauses
        self.files: list[list[bytes]] = [[]]
        self.engine = Recorded(Config(), "test", self._write)
        self.now = 1000.0
        self._n = 0
        self._under_way: list[str] = []
        # How often a decision had paused when a question was put.
        self.n_questions = 0
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
        if self._pauses and self.rng.random() < 0.5:
            self.n_questions += self.engine.is_deciding
            self.engine.ask(NodeCounts() if self.rng.random() < 0.5 else QueueCounts())
            self.now += self.rng.random()
        n_pods, n_kinds = self.rng.randrange(5), int(Work.STEP)
        if self._pauses:
            n_kinds += self.rng.randrange(2)
        some = SpentAllowance(n_pods, tuple(self.rng.randrange(4) for _ in range(n_kinds)))
        outcome = self.engine.decide(self.now, some if self.rng.random() < 0.5 else Unlimited())
        self._under_way += [bind.uid for bind in outcome.binds]

    def settle(self) -> None:
        """Bring a decision to its end that has paused."""
        while self.engine.is_deciding:
            outcome = self.engine.decide(self.now, Unlimited())
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
        self.settle()
        self.files.append([])
        self.engine.start_anew(self.now)


class GroupStory(Story):
    """A story in which groups come and go, too: what is said of them changes, and some make room for themselves."""

    def __init__(self, seed: int, *, pauses: bool = False) -> None:
        super().__init__(seed, pauses=pauses)
        self._groups: list[str] = []

    def tell(self, event: events.Event) -> None:
        """Two of three pods say for how long they run: for a shorter or a longer time."""
        match event:
            case events.Seen(wire.Pod() as pod):
                which = int(pod.metadata.name.rpartition("-")[2]) % 3
                pod.spec = msgspec.structs.replace(
                    pod.spec, active_deadline_seconds=(None, 20, 200)[which]
                )
        super().tell(event)

    def happen(self) -> None:
        match self.rng.randrange(6):
            case 0:
                self._group_comes()
            case 1 if self._groups:
                self._describe(self.rng.choice(self._groups))
            case 2 if self._groups:
                self._member_comes(self.rng.choice(self._groups))
            case 3 if self._groups and self.rng.random() < 0.3:
                gone = self._groups.pop(self.rng.randrange(len(self._groups)))
                self.tell(events.Gone("PodGroup.scheduling.k8s.io", f"default/{gone}"))
        super().happen()

    def _group_comes(self) -> None:
        self._n += 1
        name = f"group-{self._n}"
        self._groups.append(name)
        if self.rng.random() < 0.8:
            self._describe(name)
        for _ in range(self.rng.randint(1, 5)):
            self._member_comes(name)

    def _describe(self, name: str) -> None:
        """Describe a group for the first time, or otherwise than before."""
        topology = self.rng.choice(("", "", "zone", "kubernetes.io/hostname"))
        group = make.pod_group(
            name, self.rng.randrange(5), topology=topology, priority=_find_priority(name)
        )
        self.tell(events.Seen(group))

    def _member_comes(self, name: str) -> None:
        self._n += 1
        pod = workloads.pod(self.rng.choice(list(workloads.PODS)), f"pod-{self._n}")
        pod.spec.priority = _find_priority(name)
        self.tell(events.Seen(make.member(pod, name)))


def _find_priority(group: str) -> int:
    """Every third group comes before the others."""
    return 100 * (int(group.rpartition("-")[2]) % 3 == 0)
