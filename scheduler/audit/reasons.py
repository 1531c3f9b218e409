"""Says in words why capacity of a node is stranded."""

from __future__ import annotations

from typing import NamedTuple

from scheduler.measure import figures as m
from scheduler.measure.figures import Figures

_SHORT_OF = {
    m.LACKS_CPU: "too little CPU",
    m.LACKS_MEMORY: "too little memory",
    m.LACKS_CARDS: "no GPU with enough free",
    m.LACKS_MORE_CARDS: "too few free GPUs for pods of {} or more GPUs",
    m.LACKS_PODS: "no room for another pod (maxPods)",
}
# Amounts below this part of a unit are not mentioned.
_LEAST = 0.005


class Why(NamedTuple):
    """Why a node strands something.

    Attributes:
        left: what is free on the node.
        cause: what most of the typical pods lack on the node; nodes may share a cause.
        misfits: how many of the typical pods lack it, as in ``30 of 40``; empty if it is all or none.
        pods: which pods lack it.
    """

    left: str
    cause: str
    misfits: str
    pods: str


def write_reason(figures: Figures, i: int, barrier: str = "") -> str:
    """Write the reason of node ``i``: what is free, and what most of the typical pods lack there.

    ``barrier`` says what keeps the typical GPU pods off a node that has room for them.
    """
    if figures.closed[i]:
        return "out of service: cordoned or unhealthy, so its free capacity is not evaluated"
    why = find_reason(figures, i, barrier)
    if why is None:
        return ""
    extent = f"; {why.misfits} {why.pods} do not fit" if why.misfits else ""
    return f"{why.left}: {why.cause}{extent}"


def find_reason(figures: Figures, i: int, barrier: str = "") -> Why | None:
    """Find the parts of the reason; None if nothing is stranded."""
    stranded = figures.amounts[m.STRANDED, :, i]
    if (stranded < _LEAST).all():
        return None
    free = describe_free(figures, i)
    is_gpu = stranded[m.GPU] >= _LEAST or stranded[m.GPU_MEMORY] >= _LEAST
    kinds = [m.ASKS_GPU] if is_gpu else [m.ASKS_GPU, m.ASKS_NONE]
    hosted, refused = figures.hosted[kinds, i].sum(), figures.refused[kinds, i].sum()
    pods = "typical GPU pods" if is_gpu else "typical pods"
    if not hosted and barrier:
        return Why(free, barrier, "", pods)
    if not hosted:
        return Why(free, f"none of the {pods} would fit even if the node were empty", "", pods)
    if not refused:
        cause = f"each of the {pods} fits, but some cards have too little free"
        return Why(free, cause, "", pods)
    short = figures.short[kinds, :, i].sum(axis=0)
    worst = int(short.argmax())
    cause = _SHORT_OF[worst].format(figures.fewest[i])
    return Why(free, cause, f"{_write_count(short[worst])} of {_write_count(hosted)}", pods)


def describe_free(figures: Figures, i: int) -> str:
    """Describe what is free, as in ``3 GPUs free (120 GiB), 2 cores and 40 GiB left``."""
    free, capacity = figures.amounts[m.FREE, :, i], figures.amounts[m.CAPACITY, :, i]
    rest = f"{_write_amount(free[m.CPU])} cores and {_write_amount(free[m.MEMORY])} GiB"
    if not capacity[m.GPU]:
        return f"{rest} free"
    of_memory = f" ({_write_amount(free[m.GPU_MEMORY])} GiB)" if capacity[m.GPU_MEMORY] else ""
    gpus = _write_amount(free[m.GPU])
    return f"{gpus} {'GPU' if gpus == '1' else 'GPUs'}{of_memory} free, {rest} left"


def _write_amount(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0") if value < 100 else f"{value:.0f}"


def _write_count(value: float) -> str:
    return f"{value:.0f}" if value >= 1 else "1"
