"""Kueue's performance scenarios, played by the engine alone: how fast workloads come in, wait, run and end.

The scenarios are those of Kueue's test/performance/scheduler/configs: ``baseline``, ``large-scale`` and ``tas``. Workloads
come at intervals, run for some time and end; a workload that is evicted starts anew. Kueue plays them on the wall clock,
with an API server and its client's limit of requests. Here the clock of the workloads is virtual: it jumps to the next
arrival or end, and moves on by the CPU time that the engine takes to handle events and to decide. So nobody waits for an
API server, and figures are only comparable in one direction: what is above Kueue's limits here would be so there as well.

``published`` are the figures of Kueue's own runs, from the comments of its rangespec.yaml files, on its machines. No run of
Kueue is made here; the part ``queues`` of the bench runs the real one.

``longest_decision_ms`` is the longest time from the first event to the decisions that take it into account, which are made
in slices as by the operator: what some rounds of queues bring is carried out before the next ones.

In ``tas`` the pods are Evenkeel's own, so that each workload needs places for all its pods on 640 nodes. Kueue's word
"balanced" there means slices, each of which needs a rack.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from bench.floors import Floor
from bench.queue_cluster import NOW, QueueCluster, make_slice, read_object
from scheduler.api import kueue, names
from scheduler.api.door.workload_decisions import Admit, EvictWorkload, Preempt
from scheduler.api.times import write_time
from scheduler.kube import heap
from tests.differential.queues import throughput
from tests.differential.queues.quotas import API, NAMESPACE

Json = dict[str, Any]

_NOMINAL = 20
_BLOCK, _RACK = "cloud.provider.com/topology-block", "cloud.provider.com/topology-rack"
_POOL = {"tas-node-group": "tas-flavor"}
_RACKS, _NODES_A_RACK = 10, 64
_QUICK = 10


class Kind(NamedTuple):
    """Workloads of a queue that are alike.

    Attributes:
        size: small, medium or large.
        way: how its pods need a rack: required, preferred or balanced; empty for not at all.
        number: of them in a queue.
        every_ms: between two arrivals.
        runtime_ms: from its admission to its end.
        n_pods: it has as many, and all together ask for ``cores``.
        slice_size: of balanced pods.
    """

    size: str
    way: str
    number: int
    every_ms: int
    runtime_ms: int
    priority: int
    cores: int
    n_pods: int = 1
    slice_size: int = 0

    @property
    def name(self) -> str:
        """The size, and the way if there is one."""
        return f"{self.size}-{self.way}" if self.way else self.size


class Scenario(NamedTuple):
    """What Kueue plays, and what it has published of its runs.

    Attributes:
        n_queues: in each cohort.
        seconds: of the wall clock: the mean of its runs, and its limit.
        usage: of the nominal quota, in percent: the mean of its runs, and its limit.
        waits: seconds from creation to admission by kind: the mean of its runs, and its limit.
    """

    n_cohorts: int
    n_queues: int
    kinds: tuple[Kind, ...]
    seconds: tuple[float, float]
    usage: tuple[float, float]
    waits: dict[str, tuple[float, float]]

    @property
    def n_workloads(self) -> int:
        """Those of all queues."""
        return self.n_cohorts * self.n_queues * sum(kind.number for kind in self.kinds)


SCENARIOS = {
    "baseline": Scenario(
        5,
        6,
        (
            Kind("small", "", 350, 100, 200, 50, 1),
            Kind("medium", "", 100, 500, 500, 100, 5),
            Kind("large", "", 50, 1200, 1000, 200, 20),
        ),
        seconds=(351.1, 425),
        usage=(55.9, 50),
        waits={"large": (16.5, 23), "medium": (76.8, 90), "small": (215.5, 260)},
    ),
    "large-scale": Scenario(
        10,
        100,
        (
            Kind("small", "", 35, 60, 150, 50, 1),
            Kind("medium", "", 11, 300, 350, 100, 5),
            Kind("large", "", 4, 700, 700, 200, 20),
        ),
        seconds=(1179.4, 1416),
        usage=(38.6, 31.6),
        waits={"large": (105.6, 128), "medium": (256.4, 308), "small": (700.4, 841)},
    ),
    "tas": Scenario(
        5,
        6,
        (
            Kind("small", "required", 120, 100, 200, 50, 1, 2),
            Kind("small", "preferred", 120, 100, 200, 50, 1, 2),
            Kind("small", "balanced", 110, 100, 200, 50, 1, 2, 1),
            Kind("medium", "required", 34, 500, 500, 100, 5, 4),
            Kind("medium", "preferred", 33, 500, 500, 100, 5, 4),
            Kind("medium", "balanced", 33, 500, 500, 100, 5, 4, 2),
            Kind("large", "required", 17, 1200, 1000, 200, 20, 8),
            Kind("large", "preferred", 17, 1200, 1000, 200, 20, 8),
            Kind("large", "balanced", 16, 1200, 1000, 200, 20, 8, 4),
        ),
        seconds=(401.5, 482),
        usage=(62.4, 57),
        waits={
            "large-balanced": (37.9, 46),
            "large-preferred": (39.6, 48),
            "large-required": (39.6, 48),
            "medium-balanced": (106.3, 128),
            "medium-preferred": (106.3, 128),
            "medium-required": (107.1, 129),
            "small-balanced": (237.8, 286),
            "small-preferred": (246.1, 296),
            "small-required": (246.8, 297),
        },
    ),
}
# Kueue's own limits, and a pace of the engine. The usage in ``large-scale`` misses Kueue's limit: the run times are so short
# that usage is nearly all of workloads whose end was not seen yet, and the engine sees it soon.
FLOORS = (
    *(
        floor
        for name, one in SCENARIOS.items()
        for floor in (
            Floor(f"{name}.evenkeel.seconds", at_most=one.seconds[1]),
            Floor(f"{name}.evenkeel.usage_percent", at_least=one.usage[1]),
            *(
                Floor(f"{name}.evenkeel.seconds_to_admission.{kind}", at_most=limit)
                for kind, (_, limit) in one.waits.items()
            ),
        )
    ),
    *(Floor(f"{name}.evenkeel.longest_decision_ms", at_most=2000) for name in SCENARIOS),
    Floor("baseline.evenkeel.admitted_a_cpu_second", at_least=600),
    Floor("large-scale.evenkeel.admitted_a_cpu_second", at_least=400),
    Floor("tas.evenkeel.admitted_a_cpu_second", at_least=150),
)


def run(quick: bool) -> Json:
    """Play all scenarios; ``quick``: with a tenth of the workloads of each queue."""
    return {
        name: {"evenkeel": play(_shrink(one) if quick else one), "published": _publish(one)}
        for name, one in SCENARIOS.items()
    }


def _shrink(scenario: Scenario) -> Scenario:
    kinds = [one._replace(number=-(-one.number // _QUICK)) for one in scenario.kinds]
    return scenario._replace(n_cohorts=min(scenario.n_cohorts, 5), kinds=tuple(kinds))


def _publish(scenario: Scenario) -> Json:
    """Return what Kueue has published of its own runs."""
    mean, limit = scenario.seconds
    return {
        "by": "Kueue, in its own runs; not measured here",
        "workloads": scenario.n_workloads,
        "seconds": {"mean": mean, "limit": limit},
        "admitted_a_second": round(scenario.n_workloads / mean, 1),
        "usage_percent": dict(zip(("mean", "limit"), scenario.usage, strict=True)),
        "seconds_to_admission": {
            kind: dict(zip(("mean", "limit"), one, strict=True))
            for kind, one in scenario.waits.items()
        },
    }


def play(scenario: Scenario, clock: Callable[[], float] = time.thread_time) -> Json:
    """Play a scenario to its end, and return what was measured; ``clock`` says how long the engine takes."""
    one = _Play(scenario, clock)
    one.play()
    return one.sum_up()


class _Play:
    """A scenario that is played; times are seconds of its virtual clock."""

    def __init__(self, scenario: Scenario, clock: Callable[[], float]) -> None:
        self._scenario, self._clock = scenario, clock
        self._kinds: dict[str, Kind] = {}
        self._cluster = QueueCluster(make_objects(scenario))
        self._coming = self._make_workloads()
        # When those who run end, and which admission of theirs it is that ends then.
        self._ends: list[tuple[float, int, str]] = []
        self._serials: dict[str, int] = {}
        self._next_serial = itertools.count()
        self._came: dict[str, float] = {}
        self._admitted: dict[str, float] = {}
        self._now = self._changed_at = 0.0
        self._cores_in_use, self._core_seconds = 0, 0.0
        self._cpu_seconds, self._longest = 0.0, 0.0
        self._n_evictions, self._n_decisions = 0, 0
        heap.freeze()

    def _make_workloads(self) -> list[tuple[float, str, kueue.Workload]]:
        """All workloads in the order in which they come; the last one is the first to come."""
        coming = []
        n_queues = self._scenario.n_cohorts * self._scenario.n_queues
        for kind in self._scenario.kinds:
            for i, queue in itertools.product(range(kind.number), range(n_queues)):
                at = (i + 1) * kind.every_ms / 1e3
                found = read_object(make_workload(kind, f"{kind.name}-{queue}-{i}", queue, at))
                key = f"{NAMESPACE}/{found.metadata.name}"
                self._kinds[key] = kind
                coming.append((at, key, found))
        return sorted(coming, key=lambda one: one[:2], reverse=True)

    def play(self) -> None:
        """Play until all have ended."""
        is_quiet = True
        while self._coming or self._ends or self._cluster.running:
            if is_quiet:
                self._jump()
            began = self._clock()
            self._let_come()
            self._let_end()
            quotas = self._cluster.decide(NOW + self._now, make_slice)
            spent = self._clock() - began
            self._cpu_seconds += spent
            self._longest = max(self._longest, spent)
            self._now += spent
            for one in quotas:
                if isinstance(one, Admit):
                    self._take_up(one.key)
                elif isinstance(one, Preempt | EvictWorkload):
                    self._n_evictions += 1
                    self._put_down(one.key)
            self._n_decisions += len(quotas)
            now = NOW + self._now
            is_quiet = not quotas and self._cluster.engine.find_due(now) > now
        if self._cluster.workloads:
            raise AssertionError(f"{len(self._cluster.workloads)} wait, and nobody runs")

    def _jump(self) -> None:
        """Move the clock to the next arrival or end, unless it is there already."""
        first = [self._coming[-1][0]] if self._coming else []
        first += [self._ends[0][0]] if self._ends else []
        self._now = max(self._now, min(first))

    def _let_come(self) -> None:
        while self._coming and self._coming[-1][0] <= self._now:
            at, key, found = self._coming.pop()
            self._came[key] = at
            self._cluster.add(found, NOW + self._now)

    def _let_end(self) -> None:
        while self._ends and self._ends[0][0] <= self._now:
            _, serial, key = heapq.heappop(self._ends)
            if self._serials.get(key) == serial:
                self._put_down(key)
                self._cluster.end(key, NOW + self._now)

    def _take_up(self, key: str) -> None:
        self._count_cores(self._kinds[key].cores)
        self._admitted[key] = self._now
        self._serials[key] = serial = next(self._next_serial)
        ends_at = self._now + self._kinds[key].runtime_ms / 1e3
        heapq.heappush(self._ends, (ends_at, serial, key))

    def _put_down(self, key: str) -> None:
        if self._serials.pop(key, None) is not None:
            self._count_cores(-self._kinds[key].cores)

    def _count_cores(self, more: int) -> None:
        self._core_seconds += self._cores_in_use * (self._now - self._changed_at)
        self._changed_at = self._now
        self._cores_in_use += more

    def sum_up(self) -> Json:
        """Return what was measured, once all have ended."""
        one = self._scenario
        quota = one.n_cohorts * one.n_queues * _NOMINAL
        waits: dict[str, list[float]] = defaultdict(list)
        for key, at in self._admitted.items():
            kind = self._kinds[key]
            for name in dict.fromkeys((kind.size, kind.name)):
                waits[name].append(at - self._came[key])
        return {
            "workloads": one.n_workloads,
            "evictions": self._n_evictions,
            "seconds": round(self._now, 1),
            "cpu_seconds": round(self._cpu_seconds, 1),
            "admitted_a_second": round(one.n_workloads / self._now, 1),
            "admitted_a_cpu_second": round(one.n_workloads / max(self._cpu_seconds, 1e-9)),
            "longest_decision_ms": round(self._longest * 1e3, 1),
            "usage_percent": round(100 * self._core_seconds / (quota * self._now), 1),
            "seconds_to_admission": {
                name: round(sum(some) / len(some), 2) for name, some in sorted(waits.items())
            },
        }


def make_objects(scenario: Scenario) -> Iterator[Json]:
    """Queues, and nodes if the pods of workloads need racks."""
    needs_racks = any(kind.way for kind in scenario.kinds)
    spec: Json = {}
    if needs_racks:
        levels = [{"nodeLabel": label} for label in (_BLOCK, _RACK, names.HOSTNAME)]
        yield {
            "apiVersion": API,
            "kind": "Topology",
            "metadata": {"name": "default-topology"},
            "spec": {"levels": levels},
        }
        yield from (_make_node(number) for number in range(_RACKS * _NODES_A_RACK))
        spec = {"nodeLabels": _POOL, "topologyName": "default-topology"}
    yield from throughput.make_queues(
        scenario.n_cohorts, scenario.n_queues, _NOMINAL, flavor_spec=spec
    )


def _make_node(number: int) -> Json:
    name = f"node-{number:03}"
    labels = {_BLOCK: "block-0", _RACK: f"rack-{number // _NODES_A_RACK}", names.HOSTNAME: name}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels | _POOL},
        "status": {"allocatable": {"cpu": "96", "memory": "256Gi", "pods": "110"}},
    }


def make_workload(kind: Kind, name: str, queue: int, at: float) -> Json:
    requests = {"cpu": f"{kind.cores * 1000 // kind.n_pods}m"}
    container = {"name": "c", "image": "none", "resources": {"requests": requests}}
    template: Json = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    pod_set: Json = {"name": "main", "count": kind.n_pods, "template": template}
    if kind.way:
        template["spec"]["schedulerName"] = names.SCHEDULER
        if kind.way == "balanced":
            asked: Json = {
                "podSetSliceRequiredTopology": _RACK,
                "podSetSliceSize": kind.slice_size,
            }
        else:
            asked = {kind.way: _RACK}
        pod_set["topologyRequest"] = asked
    return {
        "apiVersion": API,
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": name,
            "creationTimestamp": write_time(NOW + at),
        },
        "spec": {"queueName": f"queue-{queue}", "priority": kind.priority, "podSets": [pod_set]},
    }
