"""What writing the engine's log costs: the same pods with and without ``--record``, in turns."""

from __future__ import annotations

from typing import Any

from bench.floors import Floor
from bench.rows import comparing, table
from bench.rows.row import Size

_N_NODES = 1_000
FLOORS = (Floor("throughput_kept", at_least=0.95),)


def run(quick: bool) -> dict[str, Any]:
    """Pods per second and CPU per pod with and without, and the ratio of the former."""
    size, turns = Size(_N_NODES, 2_000 if quick else 5_000), 1 if quick else 3
    both = ("evenkeel", "recording")
    figures = comparing.medians(table.BY_NAME["plain"], size, both, turns)
    return {**figures, "throughput_kept": comparing.ratio(figures, "recording", "evenkeel")}
