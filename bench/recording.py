"""What writing the engine's log costs: the same pods with and without ``--record``, in turns."""

from __future__ import annotations

import statistics
import sys
from typing import Any

from bench import end_to_end
from bench.floors import Floor

_N_NODES = 1_000
FLOORS = (Floor("throughput_kept", at_least=0.95),)


def run(quick: bool) -> dict[str, Any]:
    """Pods per second and CPU per pod with and without, medians over the turns, and their ratio."""
    n_pods, turns = (2_000, 1) if quick else (5_000, 3)
    found: dict[str, list[dict[str, Any]]] = {"evenkeel": [], "recording": []}
    for turn in range(turns):
        # The first of a pair runs on a cooler machine.
        for scheduler in (*found,) if turn % 2 else reversed((*found,)):
            figures = end_to_end.measure(scheduler, n_nodes=_N_NODES, n_pods=n_pods, gpu=False)
            print(f"bench: {figures}", file=sys.stderr, flush=True)
            found[scheduler].append(figures)
    medians = {
        scheduler: {
            figure: statistics.median(one[figure] for one in figures)
            for figure in ("pods_per_second", "cpu_ms_per_pod", "rss_mib")
        }
        for scheduler, figures in found.items()
    }
    kept = medians["recording"]["pods_per_second"] / medians["evenkeel"]["pods_per_second"]
    return {**medians, "throughput_kept": round(kept, 3)}
