"""Figures of runs in which running pods are moved."""

from __future__ import annotations

from scheduler.replay.experiment import Moved
from scheduler.replay.measures.averages import Record


def make_figures(moved: Moved) -> Record:
    """Make the figures of the whole run; what is counted for each move is None if there was none."""
    return {
        "moves": moved.moves,
        "moves_missed_percent": _divide(100.0 * moved.missed, moved.moves),
        "moves_freed_gpus_each": _divide(moved.cards, moved.moves),
        "moves_let_in_each": _divide(moved.let_in, moved.moves),
    }


def _divide(amount: float, moves: int) -> float | None:
    return amount / moves if moves else None
