"""How fast the simulator's runs are, which is how fast the core decides: no API server, one core.

``fill`` and ``churn`` are the experiments of docs/placement-figures.md on openb; ``decisions`` is churn on larger
clusters: the nodes of spot_gpu_2026 (memory, which that table does not tell, as 8 GiB a core), once and
until there are 20,000, with openb's pods. ``learn`` is what it takes to learn the demand anew.
"""

from __future__ import annotations

import csv
import gzip
import io
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.floors import Floor
from scheduler.replay import run as engine
from scheduler.replay import traces, workloads
from scheduler.replay.experiment import RunOptions, Trace, TraceNode

_DATA = Path(__file__).parent / "data"
_GIB_PER_CORE = 8
_LARGE = 20_000
# A run on a large cluster lasts so many mean lifetimes: it is then about as full as it gets.
_LIFETIMES = 2.0
_SEED = 1000

# About half as fast as it is on two noisy cores.
FLOORS = (
    Floor("fill.keel.seconds", at_most=2),
    Floor("churn.keel.seconds", at_most=10),
    Floor("decisions.*.keel.per_second", at_least=2_000),
    Floor("decisions.*.learn_milliseconds", at_most=20),
)


def run(quick: bool) -> dict[str, Any]:
    openb = traces.read_trace(_DATA / "openb")
    fill = workloads.draw_fill(openb, _SEED)
    churn = workloads.draw_churn(openb, _SEED, 1.0, 50_000)
    modes = ("keel", "fgd", "best-fit", "least-allocated")
    result: dict[str, Any] = {}
    engine.run_experiment(openb, fill, _options("keel"))  # loads kernels
    for name, workload in (("fill", fill), ("churn", churn)):
        result[name] = {"decisions": int(workload.pod.size), "nodes": len(openb.nodes)}
        for mode in modes if not quick else modes[:1]:
            turns = range(1 if quick else 3)
            seconds = min(
                engine.run_experiment(openb, workload, _options(mode)).seconds for _ in turns
            )
            result[name][mode] = {"seconds": round(seconds, 2)}
    result["decisions"] = [
        _decisions(trace, modes if not quick else modes[:1])
        for trace in (openb, _large(openb, 1), *(() if quick else (_large(openb, _LARGE),)))
    ]
    return result


def _options(mode: str) -> RunOptions:
    return RunOptions(mode=mode, learn="seen", queue=False, seed=_SEED, measure_frag=False)


def _large(openb: Trace, least: int) -> Trace:
    """The nodes of spot_gpu_2026, repeated until there are at least so many."""
    text = gzip.decompress((_DATA / "spot_gpu_2026" / "node_info_df.csv.gz").read_bytes())
    rows = list(csv.DictReader(io.StringIO(text.decode())))
    nodes = [
        TraceNode(
            name=f"{row['node_name']}-{copy}",
            cpu_milli=int(float(row["cpu_num"]) * 1000),
            memory_mib=int(float(row["cpu_num"])) * _GIB_PER_CORE * 1024,
            gpus=int(float(row["gpu_capacity_num"])),
            model=row["gpu_model"],
        )
        for copy in range(-(-least // len(rows)))
        for row in rows
    ]
    # Its models are not openb's, but openb's default pods take any.
    return replace(openb, name="spot_gpu_2026", nodes=tuple(nodes[: max(least, len(rows))]))


def _decisions(trace: Trace, modes: tuple[str, ...]) -> dict[str, Any]:
    alive = trace.capacity / (workloads.list_milli(trace).mean())
    workload = workloads.draw_churn(trace, _SEED, 1.0, int(alive * _LIFETIMES))
    found: dict[str, Any] = {"nodes": len(trace.nodes), "decisions": int(workload.pod.size)}
    for mode in modes:
        series = engine.run_experiment(trace, workload, _options(mode))
        found[mode] = {
            "per_second": round(workload.pod.size / series.seconds),
            "allocated_percent_at_the_end": round(100 * series.allocated[-1] / trace.capacity, 1),
        }
    found["learn_milliseconds"] = round(1000 * _learn_seconds(trace), 1)
    return found


def _learn_seconds(trace: Trace) -> float:
    """Seconds to learn the demand anew on the cluster, when it is known where each shape may go."""
    played = engine.Replay(trace, workloads.draw_churn(trace, _SEED, 1.0, 2000), _options("keel"))
    played.play()
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        played.engine._cycle.learn(anew=True)
        seconds.append(time.perf_counter() - began)
    return sorted(seconds)[2]
