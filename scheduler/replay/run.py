"""One run of an experiment in virtual time: the operator's engine, no cluster.

Nodes and pods enter the state as the objects that an API server would serve. A share of a card is the same share of its cores and of its memory,
rounded up to whole percent.
"""

from __future__ import annotations

import functools
import heapq
import math
import time
from collections import Counter
from dataclasses import replace

import numpy as np

from scheduler.api import placement, wire
from scheduler.api.cards import Card
from scheduler.api.door import events
from scheduler.api.pods import templates
from scheduler.config import Config
from scheduler.devices import objects
from scheduler.engine.budget import Unlimited
from scheduler.engine.chores import PROMPT
from scheduler.engine.engine import Engine
from scheduler.modes.demand_tables import Counts
from scheduler.modes.fragmentation import FragmentGauge
from scheduler.replay.experiment import (
    RunOptions,
    Series,
    Tell,
    Trace,
    TraceNode,
    TracePod,
    Workload,
    ignore,
)
from scheduler.schema import columns as c
from scheduler.schema.columns import Floats, Ints
from scheduler.state.demand import DemandShape, shape_of

# Sharers per card, and pods per node: so many that neither decides.
_SHARERS, _PODS = 100, 1001
# MiB of the models that are known, and of those that are not disclosed.
_CARD_MIB = {"T4": 15360, "P100": 16384, "V100M16": 16384, "V100M32": 32768, "A10": 24576}
_OTHER_MIB = 81920
_NAMESPACE = "replay"
# Backoff is in seconds, lifetimes are in units of their mean.
_LIFETIME_SECONDS = 3600.0
_UNLIMITED = Unlimited()
_TOLD = 200  # times in a run


def node_object(node: TraceNode, place: int) -> wire.Node:
    """The node as the API server would serve it; names sort in the order of their places."""
    name = f"{place:05d}-{node.name}"
    allocatable: wire.Quantities = {
        "cpu": f"{node.cpu_milli}m",
        "memory": f"{node.memory_mib}Mi",
        "pods": _PODS,
    }
    cards = [
        Card(
            id=f"{name}-{i}",
            index=i,
            sharers=_SHARERS,
            mib=_CARD_MIB.get(node.model, _OTHER_MIB),
            cores=100,
            model=objects.model_word(node.model),
        )
        for i in range(node.gpus)
    ]
    return objects.node(name, allocatable, cards)


def pod_spec(pod: TracePod, scheduler_name: str) -> tuple[wire.PodSpec, dict[str, str]]:
    """The spec and the annotations of a pod of the trace."""
    limits: wire.Quantities = {"cpu": f"{pod.cpu_milli}m", "memory": f"{pod.memory_mib}Mi"}
    if pod.gpus:
        percent = -(-pod.gpu_milli // 10)
        limits |= objects.limits(cards=pod.gpus, cores=percent, mib=pod.gpu_mib)
    container = wire.Container("main", wire.Resources(requests=limits, limits=limits))
    spec = wire.PodSpec(scheduler_name=scheduler_name, containers=[container])
    return spec, objects.only_models(pod.models)


def run(trace: Trace, workload: Workload, options: RunOptions, tell: Tell = ignore) -> Series:
    """Play a workload on a trace's cluster; ``tell`` hears how far it has come.

    Without a queue a pod that fits nowhere is lost. With one it waits as in the operator, backoff and
    all; a mean lifetime is then an hour.

    Raises:
        BadInput: a node of the trace is malformed.
    """
    return Replay(trace, workload, options).play(tell)


class Replay:
    """One run; ``engine`` can be looked at when it is over."""

    def __init__(self, trace: Trace, workload: Workload, options: RunOptions) -> None:
        self._trace, self._workload, self._options = trace, workload, options
        config = Config()
        mode = placement.Mode(options.mode)
        self._config = replace(config, placement=replace(config.placement, mode=mode))
        known = demand_of(trace, self._config) if options.learn == "trace" else None
        self.engine = Engine(
            self._config,
            pace=PROMPT,
            is_shared=False,
            explains=False,
            known=known,
            seed=options.seed,
        )
        self._nodes: dict[str, int] = {}
        for place, index in enumerate(workload.order.tolist()):
            self._see_node(index, place)
        # Like pods share one spec, as those of one Job do.
        spec = functools.cache(lambda pod: pod_spec(pod, self._config.scheduler_name))
        self._specs = [spec(_nameless(pod)) for pod in trace.pods]
        self._amounts = [pod.gpus * pod.gpu_milli for pod in trace.pods]
        self._leaving: list[tuple[float, int]] = []
        self._allocated = 0
        # The queue's backoff is in seconds, so all times inside are.
        self._seconds: list[float] = (workload.at * _LIFETIME_SECONDS).tolist()
        n = workload.pod.size
        self._placed_at = np.full(n, np.nan)
        self._node = np.full(n, -1, np.int64)

    def _see_node(self, index: int, place: int) -> None:
        node = node_object(self._trace.nodes[index], place)
        self.engine.handle(events.NodeSeen(node), 0.0)
        self._nodes[node.metadata.name] = index

    def play(self, tell: Tell = ignore) -> Series:
        """Play the workload, once."""
        began = time.perf_counter()
        workload, n = self._workload, self._workload.pod.size
        allocated, occupied = np.zeros(n, np.int64), np.zeros(n, np.int64)
        frag = np.full(n, np.nan)
        gauge = self._gauge() if self._options.measure_frag else None
        pods_on = self.engine.cluster.pods_on
        at, kinds = self._seconds, workload.pod.tolist()
        often = max(1, n // _TOLD)
        for i in range(n):
            if i % often == 0:
                tell(i / n)
            self._until(at[i])
            self._arrive(i, kinds[i], at[i])
            allocated[i], occupied[i] = self._allocated, len(pods_on)
            if gauge is not None:
                frag[i] = gauge.read()
        asked = np.cumsum(np.array(self._amounts, np.int64)[workload.pod])
        return self._series(asked, allocated, frag, occupied, time.perf_counter() - began)

    def _gauge(self) -> FragmentGauge:
        return FragmentGauge(self.engine.cluster, demand_of(self._trace, self._config))

    # Virtual time, in seconds.

    def _until(self, at: float) -> None:
        """Let everything happen up to a time: pods leave, waiting pods are tried again."""
        while True:
            leaving = self._leaving[0][0] if self._leaving else math.inf
            due = self.engine.pending.next_due()
            tried = math.inf if due is None else due
            if min(leaving, tried) > at:
                return
            if leaving <= tried:
                self._leave(leaving)
            if len(self.engine.pending):
                self._decide(min(leaving, tried))

    def _leave(self, at: float) -> None:
        _, i = heapq.heappop(self._leaving)
        self.engine.handle(events.PodGone(str(i)), at)
        self._allocated -= self._amounts[self._workload.pod[i]]

    def _arrive(self, i: int, which: int, at: float) -> None:
        spec, annotations = self._specs[which]
        uid = str(i)
        meta = wire.Meta(name=uid, namespace=_NAMESPACE, uid=uid, annotations=annotations)
        self.engine.handle(events.PodSeen(wire.Pod(meta, spec=spec)), at)
        self._decide(at)

    def _decide(self, at: float) -> None:
        outcome = self.engine.decide(at, _UNLIMITED)
        for bind in outcome.binds:
            self.engine.handle(events.BindDone(bind.uid), at)
            self._placed(int(bind.uid), bind.node, at)
        if not self._options.queue:
            for hold in outcome.holds:
                self.engine.handle(events.PodGone(hold.uid), at)

    def _placed(self, i: int, node: str, at: float) -> None:
        workload = self._workload
        waited = (at - self._seconds[i]) / _LIFETIME_SECONDS
        self._placed_at[i] = workload.at[i] + waited
        self._node[i] = self._nodes[node]
        self._allocated += self._amounts[workload.pod[i]]
        lifetime = float(workload.lifetime[i]) * _LIFETIME_SECONDS
        if lifetime < math.inf:
            heapq.heappush(self._leaving, (at + lifetime, i))

    def _series(
        self, asked: Ints, allocated: Ints, frag: Floats, occupied: Ints, seconds: float
    ) -> Series:
        cluster = self.engine.cluster
        nodes, cards = cluster.nodes.columns, cluster.cards.columns
        n = len(self._trace.nodes)
        cpu, memory = np.zeros(n, np.int64), np.zeros(n, np.int64)
        gpus: list[tuple[int, ...]] = [()] * n
        for name, index in self._nodes.items():
            row = cluster.nodes.row_of(name)
            cpu[index] = nodes.requested[c.CPU, row]
            memory[index] = nodes.requested[c.MEMORY, row] >> 20
            pool = int(nodes.pool[row])
            start, n_cards = int(nodes.card_start[pool, row]), int(nodes.card_count[pool, row])
            used = cards.used[c.CORES, start : start + n_cards]
            gpus[index] = tuple((used * 10).tolist())
        return Series(
            asked=asked,
            allocated=allocated,
            frag=frag,
            placed_at=self._placed_at,
            node=self._node,
            cpu_used=cpu,
            memory_used=memory,
            gpu_used=tuple(gpus),
            occupied=occupied,
            seconds=seconds,
        )


def demand_of(trace: Trace, config: Config) -> Counts:
    """The demand of a whole trace, as if every pod of it had been seen once."""
    counts: Counter[DemandShape] = Counter()
    for pod, n in Counter(map(_nameless, trace.pods)).items():
        spec, annotations = pod_spec(pod, config.scheduler_name)
        template = templates.of_pod(wire.Pod(wire.Meta(annotations=annotations), spec=spec))
        counts[shape_of(template)] += n
    return dict(counts)


def _nameless(pod: TracePod) -> TracePod:
    return replace(pod, name="")
