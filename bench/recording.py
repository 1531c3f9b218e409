"""What writing the engine's log costs: the same pods with and without ``--record``, in turns."""

from __future__ import annotations

from typing import Any

from bench import end_to_end
from bench.floors import Floor

_N_NODES = 1_000
FLOORS = (Floor("throughput_kept", at_least=0.95),)


def run(quick: bool) -> dict[str, Any]:
    """Pods per second and CPU per pod with and without, and the ratio of the former."""
    figures = end_to_end.medians(("evenkeel", "recording"), _N_NODES, gpu=False, quick=quick)
    kept = figures["recording"]["pods_per_second"] / figures["evenkeel"]["pods_per_second"]
    return {**figures, "throughput_kept": round(kept, 3)}
