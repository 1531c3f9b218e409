"""Whole runs against a slow twin: every pod of a small trace goes where the twin puts it."""

import copy
import functools
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from scheduler.api.door.decisions import Outcome
from scheduler.cycle.schedule import Cycle
from scheduler.engine import engine as engine_room
from scheduler.replay import objects
from scheduler.replay import run as engine
from scheduler.replay.experiment import RunOptions, Trace, TraceNode, TracePod, Workload
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.entities import AnyEntity
from tests.oracles import demand, fleet, hami, keel, published, replay
from tests.unit import twin_worlds

pytestmark = pytest.mark.many

# Cores, GPUs, model, how many of ten; pods: share of a GPU, how many of a hundred. As in openb.
NODES = ((96, 8, "G2", 4), (104, 2, "T4", 3), (16, 2, "P100", 1), (32, 4, "V100M16", 1), (128, 8, "G3", 1))  # fmt: skip
SHARES = {1000: 45, 810: 14, 650: 4, 500: 12, 460: 8, 360: 4, 250: 7, 220: 3, 90: 3}
CPUS = (1000, 4000, 6000, 8000, 11908, 16000)
MIB = {"T4": 15360, "P100": 16384, "V100M16": 16384}


def small_trace(seed: int, n_nodes: int, n_pods: int) -> Trace:
    rng = np.random.default_rng(seed)
    kinds = [kind for kind in NODES for _ in range(kind[3])]
    nodes = []
    for i in range(n_nodes):
        cores, gpus, model, _ = kinds[i % len(kinds)]
        nodes.append(TraceNode(f"n{i}", cores * 1000, 262144, gpus, model))
    pods = []
    for i in range(n_pods):
        gpus, milli = 1, int(rng.choice([size for size, n in SHARES.items() for _ in range(n)]))
        chance = rng.random()
        if chance < 0.1:
            gpus, milli = 0, 0
        elif chance < 0.2:
            gpus, milli = int(rng.choice([2, 4, 8])), 1000
        models = ("T4", "P100") if chance > 0.93 else ("G2",) if chance > 0.86 else ()
        cpu = int(rng.choice(CPUS)) * max(1, gpus // 2)
        pods.append(TracePod(f"p{i}", cpu, 4096, gpus, milli, models))
    return Trace("small", tuple(nodes), tuple(pods))


def workload(trace: Trace, seed: int, arrivals: int, *, churn: bool) -> Workload:
    """A fixed order of nodes and pods; with churn pods leave and as much comes as there is room for."""
    rng = np.random.default_rng(seed)
    which = rng.integers(0, len(trace.pods), arrivals)
    milli = np.array([pod.gpus * pod.gpu_milli for pod in trace.pods])
    rate = trace.capacity / milli.mean()
    at = np.cumsum(rng.exponential(1 / rate, arrivals)) if churn else np.zeros(arrivals)
    lifetime = rng.exponential(1.0, arrivals) if churn else np.full(arrivals, math.inf)
    return Workload(rng.permutation(len(trace.nodes)), which, at, lifetime)


@pytest.fixture
def learnt(monkeypatch: pytest.MonkeyPatch) -> list[c.Demand]:
    """The tables by which each arrival of a run was decided."""
    log: list[c.Demand] = []

    class Watched(Cycle):
        known: c.Demand | None = None

        def schedule(
            self, batch: Sequence[AnyEntity], *, explain: bool = True, makes_room: bool = True
        ) -> Outcome:
            tables = self.learner.tables
            log.append(log[-1] if tables is self.known else copy.deepcopy(tables))
            self.known = tables
            return super().schedule(batch, explain=explain, makes_room=makes_room)

    monkeypatch.setattr(engine_room, "Cycle", Watched)
    return log


def twin_node(node: TraceNode, place: int) -> fleet.Node:
    name = f"{place:05d}-{node.name}"
    mib = MIB.get(node.model, 81920)
    cards = [
        hami.Card(f"{name}-{i}", i, 100, mib, model=node.model, mode="") for i in range(node.gpus)
    ]
    gpus = 100 * node.gpus
    return fleet.Node(name, node.cpu_milli, node.memory_mib << 20, cards, gpus, pods=1001)


@functools.cache
def twin_pod(pod: TracePod) -> fleet.Pod:
    made = fleet.Pod("p", pod.cpu_milli, pod.memory_mib << 20)
    if pod.gpus:
        percent = -(-pod.gpu_milli // 10)
        container = hami.Container(nums=pod.gpus, percent=percent, cores=percent)
        made.gpu = hami.Pod((container,), policy="", use_type=",".join(pod.models))
    return made


class Twin:
    """Judges by the twin's tables, made anew whenever the scheduler learnt, and checks those."""

    def __init__(
        self, trace: Trace, work: Workload, options: RunOptions, log: list[c.Demand]
    ) -> None:
        nodes = [twin_node(trace.nodes[n], place) for place, n in enumerate(work.order.tolist())]
        self.run, self.mode, self.log = replay.Replay(nodes), options.mode, log
        self.nodes, self.most = nodes, published.largest(nodes)
        self.cluster = Cluster()
        for place, n in enumerate(work.order.tolist()):
            self.cluster.see_node(objects.make_node(trace.nodes[n], place))
        self.known: Counter[demand.Shape] | None = None
        if options.learn == "trace":
            self.known = Counter(demand.shape_of(twin_pod(pod)) for pod in trace.pods)
        self.told: c.Demand | None = None
        self.checked = 0

    def learn(self, i: int) -> None:
        if self.log[i] is self.told:
            return
        self.told = self.log[i]
        came = [event.pod for event in self.run.events if event.what == "came"]
        known: dict[demand.Shape, float]
        known, seen = dict(self.known or {}), True
        if self.known is None:
            seen = sum(pod.gpu is not None for pod in came) >= demand.ENOUGH
            known = demand.counted(came) if seen else demand.assumed(self.nodes)
        assert not twin_worlds.wrong(self.cluster, self.told, known, self.nodes, seen=seen)
        departures = demand.departures([e.what for e in self.run.events if e.pod.gpu])
        used = float(self.told.rates[c.RATE_DEPARTURES])
        assert abs(used - departures) <= 0.1
        card = demand.mean_card(self.nodes)
        self.typical = demand.fgd_typical(known, card)
        possible = demand.possible(known, self.nodes)
        weights = demand.weights(possible, self.nodes, card, seen=seen)
        self.tables = keel.Tables(
            demand.prices(possible, self.nodes, used) if seen else {},
            twin_worlds.values(self.cluster, self.told),
            demand.kappa(possible, card),
            demand.kappa(possible, card, "memory"),
            demand.keel_typical(possible, card),
            used,
            short=weights.short,
            left=weights.left,
            left_cpu=weights.left_cpu,
        )
        self.checked += 1

    def judge(self, i: int, node: fleet.Node, pod: fleet.Pod) -> float | None:
        self.learn(i)
        found = self.choices(node, pod)
        if not found:
            return None
        return keel.points(found[0][0]) if self.mode == "keel" else found[0][0]

    def cards(self, _: int, node: fleet.Node, pod: fleet.Pod) -> fleet.Charge:
        chosen: fleet.Charge = self.choices(node, pod)[0][1]
        return chosen

    def choices(self, node: fleet.Node, pod: fleet.Pod) -> list[Any]:
        if self.mode == "keel":
            return keel.judged(node, pod, self.tables)
        return published.scored(self.mode, node, pod, self.most, self.typical)


def compare(
    trace: Trace, work: Workload, options: RunOptions, log: list[c.Demand]
) -> tuple[Twin, list[int]]:
    """Play both; the twin and where the pods went."""
    series = engine.run_experiment(trace, work, options)
    twin = Twin(trace, work, options, log)
    arrivals = [
        replay.Arrival(twin_pod(trace.pods[which]), at, stays)
        for which, at, stays in zip(
            work.pod.tolist(), work.at.tolist(), work.lifetime.tolist(), strict=True
        )
    ]
    names = {f"{p:05d}-{trace.nodes[n].name}": n for p, n in enumerate(work.order.tolist())}
    went = [names.get(name, -1) for name in twin.run.play(arrivals, twin.judge, twin.cards)]
    assert series.node.tolist() == went
    return twin, went


@pytest.mark.parametrize("mode", twin_worlds.MODES)
def test_a_run_that_fills_up_goes_pod_by_pod_as_its_twin(mode: str, learnt: list[c.Demand]) -> None:
    trace = small_trace(7, 20, 340)
    work = workload(trace, 11, 170, churn=False)
    options = RunOptions(mode, "trace", queue=False, seed=0, measure_frag=False)
    _, went = compare(trace, work, options, learnt)
    assert 10 < went.count(-1) < 100


@pytest.mark.parametrize("mode", ["keel", "fgd"])
def test_a_run_with_departures_that_learns_goes_pod_by_pod_as_its_twin(
    mode: str, learnt: list[c.Demand]
) -> None:
    trace = small_trace(8, 10, 200)
    work = workload(trace, 12, 420, churn=True)
    options = RunOptions(mode, "seen", queue=False, seed=0, measure_frag=False)
    twin, went = compare(trace, work, options, learnt)
    assert twin.checked > 3
    assert twin.tables.departures > 0.1
    assert went.count(-1) > 5
