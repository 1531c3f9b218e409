"""Runs an experiment in virtual time: with the operator's engine and no cluster.

Nodes and pods enter the state as ``objects`` makes them: as an API server would serve them.
"""

from __future__ import annotations

import functools
import heapq
import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import msgspec
import numpy as np

from scheduler.api import placement, wire
from scheduler.api.door import events
from scheduler.api.door.decisions import Bind
from scheduler.api.pods import templates
from scheduler.api.times import write_time
from scheduler.config import Config
from scheduler.devices.answers import write_answers
from scheduler.engine.allowance import Unlimited
from scheduler.engine.chores import PROMPT
from scheduler.engine.engine import Engine
from scheduler.engine.questions.contract import Readings
from scheduler.engine.questions.measures import Fragments, OccupiedNodes, UseByNode
from scheduler.engine.questions.nodes import CardDrivers
from scheduler.engine.questions.waiting import Queue
from scheduler.replay import demand, objects, workloads
from scheduler.replay.experiment import (
    RunOptions,
    Series,
    Tell,
    Trace,
    TracePod,
    Workload,
    ignore_progress,
)
from scheduler.replay.line import Line
from scheduler.replay.measures.stranded import Looks, StrandedGauge, find_typical
from scheduler.schema.columns import Floats, Ints
from scheduler.state.demand import DemandShape, read_shape

_NAMESPACE = "replay"
_UNLIMITED = Unlimited()
_QUEUE, _OCCUPIED = Queue(), OccupiedNodes()
_TOLD = 200  # how often the progress of a run is reported


def run_experiment(
    trace: Trace, workload: Workload, options: RunOptions, tell: Tell = ignore_progress
) -> Series:
    """Play a workload on a trace's cluster; ``tell`` gets the progress.

    Without a queue a pod that fits nowhere is lost. With a queue it waits as in the operator, with backoff;
    the workload says how long a unit of its time is. Pods that leave at some moment make room for all
    pods that arrive at the same moment, and for waiting pods before these.

    Raises:
        BadInput: a node of the trace is malformed.
    """
    return Replay(trace, workload, options).play(tell)


class Replay:
    """One run; its ``engine`` can be looked at afterwards."""

    def __init__(self, trace: Trace, workload: Workload, options: RunOptions) -> None:
        self._trace, self._workload, self._options = trace, workload, options
        config = Config()
        mode = placement.Mode(options.mode)
        # No tenant of a trace keeps the cluster free on purpose.
        groups = replace(config.groups, promised_percent=100)
        placed = replace(config.placement, mode=mode)
        queues = config.queues if options.policy is None else options.policy.settings
        self._config = replace(config, placement=placed, groups=groups, queues=queues)
        known = find_demand(trace, self._config) if options.learn == "trace" else None
        self.engine = Engine(
            self._config,
            pace=PROMPT,
            is_shared=False,
            explains=False,
            known=known,
            seed=options.seed,
        )
        # Pods that are drawn one by one form no groups.
        self._has_groups = trace.has_groups and workload.is_recorded
        # Pods that nothing is read of need not be seen to run.
        self._shows_running = self._has_groups
        self._nodes: dict[str, int] = {}
        has_hostname = objects.needs_hostnames(trace)
        for place, index in enumerate(workload.order.tolist()):
            node = objects.make_node(trace.nodes[index], place, has_hostname=has_hostname)
            if options.policy is not None:
                objects.label_model(node, trace.nodes[index])
            self.engine.handle(events.Seen(node), 0.0)
            self._nodes[node.metadata.name] = index
        # Alike pods share one spec, as those of one Job do.
        spec = functools.cache(
            lambda pod: objects.make_spec(pod, self._config.scheduler_name, len(trace.nodes))
        )
        self._specs = [spec(pod.kind) for pod in trace.pods]
        self._labels = [objects.make_labels(pod) for pod in trace.pods]
        self._notes: list[dict[str, str]] = [{} for _ in trace.pods]
        if self._has_groups:
            sizes = Counter(pod.group for pod in trace.pods)
            says_run_time = options.waiting == "backfill"
            # The group of a pod that waits in a queue of Kueue's is a workload there.
            self._notes = [
                {}
                if options.policy is not None and not options.policy.kai and pod.queue
                else objects.annotate_waiting(pod, sizes[pod.group], says_run_time=says_run_time)
                for pod in trace.pods
            ]
        self._line: Line | None = None
        if options.waiting == "fifo" and options.queue:
            self._line = Line([trace.pods[which].group for which in workload.pod.tolist()])
        self._amounts = workloads.read_load(trace)[0].tolist()
        self._leaving: list[tuple[float, int]] = []
        self._allocated = 0
        self._now = -math.inf
        # All times inside are in seconds, because the queue's backoff is.
        self._seconds: list[float] = (workload.at * workload.unit_seconds).tolist()
        n = workload.pod.size
        self._placed_at = np.full(n, np.nan)
        self._node = np.full(n, -1, np.int64)

    def play(self, tell: Tell = ignore_progress) -> Series:
        """Play the workload, once."""
        began = time.perf_counter()
        workload, n = self._workload, self._workload.pod.size
        allocated, occupied = np.zeros(n, np.int64), np.zeros(n, np.int64)
        frag = np.full(n, np.nan)
        has_gauge = self._options.measure_frag and self._trace.has_gpus
        gauge = self._make_frag_gauge() if has_gauge else None
        looks = Looks(self._make_stranded_gauge(), self._seconds)
        ask = self.engine.ask
        at, kinds = self._seconds, workload.pod.tolist()
        often = max(1, n // _TOLD)
        for i in range(n):
            if i % often == 0:
                tell(i / n)
            while looks.next_at < at[i]:
                self._run_until(looks.next_at)
                looks.look(i - 1)
            self._run_until(at[i])
            self._arrive(i, kinds[i], at[i])
            if self._has_waiting():
                # Waiting pods must be tried before this arrival, and may be tried at the same moment.
                self._run_until(at[i])
            allocated[i], occupied[i] = self._allocated, ask(_OCCUPIED)
            if gauge is not None:
                frag[i] = next(gauge)
        looks.look(n - 1)
        asked = np.cumsum(np.array(self._amounts, np.int64)[workload.pod])
        series = self._make_series(asked, allocated, frag, occupied, time.perf_counter() - began)
        return replace(series, samples=looks.list_samples(workload.unit_seconds))

    def _make_frag_gauge(self) -> Readings[float]:
        return self.engine.ask(Fragments(find_demand(self._trace, self._config)))

    def _make_stranded_gauge(self) -> StrandedGauge:
        kinds = find_typical(self._trace, functools.partial(_read_shape, config=self._config))
        return StrandedGauge(self.engine, kinds, demand.read_demand(self._trace).names)

    # Virtual time, in seconds.

    def _run_until(self, at: float) -> None:
        """Let everything happen up to a time: pods leave, waiting pods are tried again."""
        while True:
            leaving = self._leaving[0][0] if self._leaving else math.inf
            queue = self.engine.ask(_QUEUE)
            # A pod that is due already is tried now: time does not go back.
            tried = math.inf if queue.next_due is None else max(queue.next_due, self._now)
            if min(leaving, tried) > at:
                return
            if leaving <= tried:
                while self._leaving and self._leaving[0][0] == leaving:
                    self._leave(leaving)
            # The pods that left may have been the last ones.
            if self._has_waiting():
                self._decide(min(leaving, tried))
            self._hand_in_next(min(leaving, tried))

    def _has_waiting(self) -> bool:
        """Whether anybody waits."""
        return self.engine.ask(_QUEUE).n_pods > 0

    def _leave(self, at: float) -> None:
        self._now = at
        _, i = heapq.heappop(self._leaving)
        self.engine.handle(events.Gone("Pod", str(i)), at)
        self._allocated -= self._amounts[self._workload.pod[i]]

    def _arrive(self, i: int, which: int, at: float) -> None:
        if self._line is not None:
            self._line.add(i)
            self._hand_in_next(at)
            return
        self.engine.handle(events.Seen(self._make_pod(i, which)), at)
        self._decide(at)

    def _hand_in_next(self, at: float) -> None:
        """Hand in those that stand in a line, one after another, until one has to wait."""
        if self._line is None:
            return
        while not self.engine.ask(_QUEUE).n_pods and (first := self._line.take_first()):
            for i in first:
                pod = self._make_pod(i, int(self._workload.pod[i]))
                self.engine.handle(events.Seen(pod), at)
            self._decide(at)

    def _make_pod(self, i: int, which: int) -> wire.Pod:
        spec, annotations = self._specs[which]
        uid, notes = str(i), self._notes[which]
        meta = wire.Meta(
            uid,
            _NAMESPACE,
            uid,
            creation_timestamp=write_time(self._seconds[i]) if self._has_groups else "",
            labels=self._labels[which],
            annotations=annotations | notes if notes else annotations,
        )
        return wire.Pod(meta, spec=spec)

    def _decide(self, at: float) -> None:
        self._now = at
        outcome = self.engine.decide(at, _UNLIMITED)
        for bind in outcome.binds:
            self._confirm_bind(bind, at)
            if self._shows_running:
                self._start_pod(bind, at)
        if not self._options.queue:
            for plan in outcome.plans:
                # A group that does not fit is lost as a whole.
                lost = plan.group.waiting if plan.group is not None else (plan.entity,)
                for uid in lost if plan.hold is not None else ():
                    self.engine.handle(events.Gone("Pod", uid), at)

    def _start_pod(self, bind: Bind, at: float) -> None:
        """Show a pod as its kubelet does once it runs, with its cards: the time until it ends counts from here."""
        i, node = int(bind.uid), bind.node
        pod = self._make_pod(i, int(self._workload.pod[i]))
        if bind.devices:
            drivers = self.engine.ask(CardDrivers())
            answer = write_answers(drivers, node, bind.devices, int(at))
            pod.metadata.annotations = {**(pod.metadata.annotations or {}), **answer.annotations}
        # Like pods share a spec.
        pod.spec = msgspec.structs.replace(pod.spec, node_name=node)
        pod.status = wire.PodStatus(phase="Running", start_time=write_time(at))
        self.engine.handle(events.Seen(pod), at)

    def _confirm_bind(self, bind: Bind, at: float) -> None:
        """Let the bind of a pod succeed at once."""
        self.engine.handle(events.BindDone(bind.uid), at)
        self._note_placed(int(bind.uid), bind.node, at)

    def _note_placed(self, i: int, node: str, at: float) -> None:
        workload = self._workload
        waited = (at - self._seconds[i]) / workload.unit_seconds
        self._placed_at[i] = workload.at[i] + waited
        self._node[i] = self._nodes[node]
        self._allocated += self._amounts[workload.pod[i]]
        lifetime = float(workload.lifetime[i]) * workload.unit_seconds
        if lifetime < math.inf:
            heapq.heappush(self._leaving, (at + lifetime, i))

    def _make_series(
        self, asked: Ints, allocated: Ints, frag: Floats, occupied: Ints, seconds: float
    ) -> Series:
        n = len(self._trace.nodes)
        cpu, memory = np.zeros(n, np.int64), np.zeros(n, np.int64)
        gpus: list[tuple[int, ...]] = [()] * n
        for name, use in self.engine.ask(UseByNode()).items():
            index = self._nodes[name]
            cpu[index], memory[index] = use.cpu_milli, use.memory_bytes >> 20
            gpus[index] = tuple(10 * percent for percent in use.cores)
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


def find_demand(trace: Trace, config: Config) -> Mapping[DemandShape, float]:
    """Find the demand of a whole trace, with every pod counted once."""
    counts: Counter[DemandShape] = Counter()
    for pod, n in Counter(pod.kind for pod in trace.pods).items():
        counts[_read_shape(pod, config)] += n
    return dict(counts)


def _read_shape(pod: TracePod, config: Config) -> DemandShape:
    spec, annotations = objects.make_spec(pod, config.scheduler_name)
    template = templates.make_template(wire.Pod(wire.Meta(annotations=annotations), spec=spec))
    return read_shape(template)
