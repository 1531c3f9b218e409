"""MIG: what a decision costs beside a share of a GPU, and how full a cluster gets beside first fit and HAMi's order.

``decisions``: pods of which each has figures of its own, on GPUs that are cut and on the same GPUs when they are shared, on a
cluster that is new and on one from which pods have left. ``placements``: the experiments of docs/placement-figures.md on 24
GPUs, for three mixes of instances. ``first-fit`` takes the first node with room, ``most-allocated`` the fullest one as
HAMi's ``binpack`` does; both cut the GPU in HAMi's order. ``templates``: a churn on 12
GPUs that HAMi's plugin up to 2.9 cuts by the tables of its chart.
"""

from __future__ import annotations

import heapq
import random
import statistics
import time
from collections.abc import Iterator
from typing import Any

from bench.floors import Floor
from scheduler.api import wire
from scheduler.api.cards import Card
from scheduler.api.hami_config.maps import DeviceSettings
from scheduler.api.hami_config.sections import Geometries, Instances
from scheduler.config import Config, parse_config
from scheduler.cycle.schedule import Cycle
from scheduler.devices import objects, table
from scheduler.devices.mig_models import CUT_MODELS
from scheduler.devices.table import Devices
from scheduler.kube import heap
from scheduler.replay import run as engine
from scheduler.replay import workloads
from scheduler.replay.experiment import RunOptions, Trace, TraceNode, TracePod
from scheduler.replay.measures import fill, streams
from scheduler.shapes.policies import PolicyBook
from scheduler.state.cluster import Cluster

_MODEL = "A100-80GB"
_NODES, _CARDS, _PODS, _UNTIMED = 5_000, 8, 300, 20
_BEFORE, _BATCH, _LEFT = 20_000, 500, 4
_MODES = ("keel", "first-fit", "most-allocated")
# How many of 10 pods want an instance with 1, 2, 3 and 7 slices.
_MIXES = {"mixed": (4, 3, 2, 1), "small": (6, 3, 1, 0), "large": (3, 1, 3, 3)}
_FILL_SEEDS, _CHURN_SEEDS, _CHURN_PODS = 10, 3, 20_000

# As HAMi's chart had them: (MiB, slices, how many) of each template.
_TEMPLATES = (((9728, 1, 7),), ((9728, 1, 1), (19_968, 2, 3)), ((40_192, 3, 2),), ((80_896, 7, 1),))
_CUT_GPUS, _CUT_PODS, _CUT_SEEDS = 12, 1_500, 5

FLOORS = (
    Floor("decisions.*.ratio", at_most=1.5),
    Floor("placements.*.churn.over_first_fit", at_least=0.0),
    Floor("templates.*.over_hami", at_least=0.0),
)


def run(quick: bool) -> dict[str, Any]:
    """Measure both; ``quick`` leaves out the worn cluster, and all seeds but one."""
    decisions = [_compare_costs(worn=worn) for worn in ((False,) if quick else (False, True))]
    return {
        "decisions": decisions,
        "placements": [_compare_modes(mix, quick=quick) for mix in _MIXES],
        "templates": [_compare_templates(mix, quick=quick) for mix in _MIXES],
    }


def _compare_costs(*, worn: bool) -> dict[str, Any]:
    costs = {}
    for cut in (False, True):
        cluster, config = Cluster(), Config()
        for i in range(_NODES):
            cluster.see_node(_make_node(f"node-{i:05}", cut=cut))
        cycle = Cycle(cluster, PolicyBook(config))
        heap.freeze()
        rng = random.Random(1)
        if worn:
            _decide(cluster, cycle, _draw_pods(rng, "before", _BEFORE), _BATCH)
            for uid in rng.sample(sorted(cluster.pods), _BEFORE // _LEFT):
                cluster.drop_pod(uid)
        pods = list(_draw_pods(rng, "pod", _UNTIMED + _PODS))
        _decide(cluster, cycle, pods[:_UNTIMED], 1)
        began = time.thread_time()
        _decide(cluster, cycle, pods[_UNTIMED:], 1)
        costs[cut] = (time.thread_time() - began) / _PODS * 1e6
    return {
        "cluster": "has run for a while" if worn else "new",
        "share_us_a_pod": round(costs[False], 1),
        "mig_us_a_pod": round(costs[True], 1),
        "ratio": round(costs[True] / costs[False], 2),
    }


def _make_node(name: str, *, cut: bool) -> wire.Node:
    model = CUT_MODELS[_MODEL]
    cards = [
        Card(
            id=f"{name}-{j}",
            index=j,
            sharers=10,
            mib=model.mib,
            cores=100,
            model=_MODEL,
            is_carved=cut,
            parts=model.parts if cut else (),
        )
        for j in range(_CARDS)
    ]
    return objects.make_node(name, {"cpu": "128", "memory": "1Ti", "pods": 256}, cards)


def _draw_pods(rng: random.Random, name: str, n: int) -> Iterator[wire.Pod]:
    """Draw pods of which each has figures of its own."""
    for i in range(n):
        asked: wire.Quantities = {
            "cpu": f"{rng.randint(100, 3_000)}m",
            "memory": f"{rng.randint(100, 30_000)}Mi",
        }
        limits = objects.make_limits(cards=1, mib=rng.randint(1_000, 20_000))
        container = wire.Container("main", wire.Resources(requests=asked | limits, limits=limits))
        yield wire.Pod(
            wire.Meta(name=f"{name}-{i}", namespace="default", uid=f"{name}-{i}"),
            wire.PodSpec(scheduler_name=Config().scheduler_name, containers=[container]),
        )


def _decide(cluster: Cluster, cycle: Cycle, pods: Any, batch: int) -> None:
    cycle.learn()
    listed = list(pods)
    for at in range(0, len(listed), batch):
        seen = [cluster.see_pod(pod) for pod in listed[at : at + batch]]
        cycle.schedule([pod for pod in seen if pod is not None])


def _compare_modes(mix: str, *, quick: bool) -> dict[str, Any]:
    trace = _make_trace(mix)
    found: dict[str, Any] = {"mix": mix}
    for experiment, seeds in (("fill", _FILL_SEEDS), ("churn", _CHURN_SEEDS)):
        row = {
            mode: statistics.mean(
                _measure_allocated(trace, experiment, mode, seed)
                for seed in range(1 if quick else seeds)
            )
            for mode in _MODES
        }
        found[experiment] = {mode: round(percent, 2) for mode, percent in row.items()}
        found[experiment]["over_first_fit"] = round(row["keel"] - row["first-fit"], 2)
    return found


def _make_trace(mix: str) -> Trace:
    sizes = sorted({part.slices: part.mib for part in CUT_MODELS[_MODEL].parts}.items())
    pods = [
        TracePod(f"{slices}-{i}", 100, 100, 1, 1000 * slices // 7, (), mib, by_memory=True)
        for (slices, mib), n in zip(sizes, _MIXES[mix], strict=True)
        for i in range(n)
    ]
    nodes = tuple(TraceNode(f"n{i}", 128_000, 1 << 20, 1, "A100", mig=_MODEL) for i in range(24))
    return Trace(mix, nodes, tuple(pods))


def _measure_allocated(trace: Trace, experiment: str, mode: str, seed: int) -> float:
    """Measure the percent of GPUs that are allocated: at the end of a fill, or over time."""
    if experiment == "fill":
        workload = workloads.draw_fill(trace, seed)
    else:
        workload = workloads.draw_churn(trace, seed, 1.0, _CHURN_PODS)
    options = RunOptions(mode=mode, learn="seen", queue=False, seed=seed, measure_frag=False)
    series = engine.run_experiment(trace, workload, options)
    if experiment == "fill":
        return float(fill.make_figures(trace, workload, series)["allocated_percent_at_end"] or 0)
    figures = streams.make_figures(trace, workload, series, is_queued=False)
    return float(figures["allocated_percent"] or 0)


def _compare_templates(mix: str, *, quick: bool) -> dict[str, Any]:
    row = {
        mode: statistics.mean(
            _measure_templates(mix, mode, seed) for seed in range(1 if quick else _CUT_SEEDS)
        )
        for mode in ("keel", "binpack")
    }
    over = row["keel"] - row["binpack"]
    figures = {mode: round(one, 2) for mode, one in row.items()}
    return {"mix": mix, **figures, "over_hami": round(over, 2)}


def _measure_templates(mix: str, mode: str, seed: int) -> float:
    """Measure the percent of slices that are allocated while as much comes as there is; pods without a place go away."""
    rng = random.Random(seed)
    policy = {} if mode == "keel" else {"nodePolicy": mode, "gpuPolicy": mode}
    config = parse_config({"placement": policy})
    cluster = Cluster(devices=Devices(table.list_drivers(config.hami_node_label, _make_settings())))
    for i in range(_CUT_GPUS):
        cluster.see_node(_make_cut_node(i))
    cycle = Cycle(cluster, PolicyBook(config))
    sizes = {slices: mib for template in _TEMPLATES for mib, slices, _ in template}
    wanted = [size for size, n in zip(sizes, _MIXES[mix], strict=True) for _ in range(n)]
    most = _CUT_GPUS * max(sizes)
    leaving: list[tuple[float, str, int]] = []
    now, used, area = 0.0, 0, 0.0
    for i in range(_CUT_PODS):
        arrives = now + rng.expovariate(most / statistics.mean(wanted))
        size, stays = rng.choice(wanted), rng.expovariate(1.0)
        heapq.heappush(leaving, (arrives, "", 0))
        while now < arrives:
            at, uid, left = heapq.heappop(leaving)
            # Of the first pods, which find an empty cluster, nothing is measured.
            area += used * (max(at, 1.0) - max(now, 1.0))
            now, used = at, used - left
            if uid:
                cluster.drop_pod(uid)
        pod = _make_pod(f"pod-{i}", sizes[size])
        record = cluster.see_pod(pod)
        cycle.learn()
        if record is not None and cycle.schedule([record]).binds:
            heapq.heappush(leaving, (now + stays, record.uid, size))
            used += size
        else:
            cluster.drop_pod(pod.metadata.uid)
    return 100.0 * area / (most * (now - 1.0))


def _make_settings() -> DeviceSettings:
    geometries = tuple(
        tuple(Instances(f"{slices}g.{mib}mb", mib, n, slices * 14) for mib, slices, n in template)
        for template in _TEMPLATES
    )
    plain = DeviceSettings()
    nvidia = plain.config.nvidia._replace(geometries=(Geometries((_MODEL,), geometries),))
    return plain._replace(config=plain.config._replace(nvidia=nvidia))


def _make_cut_node(i: int) -> wire.Node:
    card = Card(
        id=f"card-{i}",
        index=0,
        sharers=10,
        mib=CUT_MODELS[_MODEL].mib,
        cores=100,
        model=_MODEL,
        is_carved=True,
    )
    return objects.make_node(f"node-{i:02}", {"cpu": "128", "memory": "1Ti", "pods": 256}, [card])


def _make_pod(name: str, mib: int) -> wire.Pod:
    limits = objects.make_limits(cards=1, mib=mib)
    container = wire.Container("main", wire.Resources(requests=limits, limits=limits))
    return wire.Pod(
        wire.Meta(name=name, namespace="default", uid=f"default/{name}"),
        wire.PodSpec(scheduler_name=Config().scheduler_name, containers=[container]),
    )
