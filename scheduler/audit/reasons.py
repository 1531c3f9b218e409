"""Why capacity of a node is stranded, in words."""

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
# Less than this much of a unit is not worth a word.
_LEAST = 0.005


class Why(NamedTuple):
    """Why a node strands something.

    Attributes:
        left: what is free there.
        cause: what most of the typical pods lack there; nodes may share it.
        misfits: how many of the typical pods lack it, as in ``30 of 40``; empty where it is all or none.
        pods: which pods these are.
    """

    left: str
    cause: str
    misfits: str
    pods: str


def of_node(figures: Figures, i: int, barrier: str = "") -> str:
    """The reason of node ``i``: what is free, and what most of the typical pods lack there.

    ``barrier`` says what keeps the typical GPU pods off a node that has room for them.
    """
    if figures.closed[i]:
        return "out of service: cordoned or unhealthy, so its free capacity is not evaluated"
    why = why_of(figures, i, barrier)
    if why is None:
        return ""
    extent = f"; {why.misfits} {why.pods} do not fit" if why.misfits else ""
    return f"{why.left}: {why.cause}{extent}"


def why_of(figures: Figures, i: int, barrier: str = "") -> Why | None:
    """The reason in its parts; None where nothing is stranded."""
    stranded = figures.amounts[m.STRANDED, :, i]
    if (stranded < _LEAST).all():
        return None
    free = what_is_free(figures, i)
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
    return Why(free, cause, f"{_count(short[worst])} of {_count(hosted)}", pods)


def what_is_free(figures: Figures, i: int) -> str:
    """``3 GPUs free (120 GiB), 2 cores and 40 GiB left``."""
    free, capacity = figures.amounts[m.FREE, :, i], figures.amounts[m.CAPACITY, :, i]
    rest = f"{_amount(free[m.CPU])} cores and {_amount(free[m.MEMORY])} GiB"
    if not capacity[m.GPU]:
        return f"{rest} free"
    of_memory = f" ({_amount(free[m.GPU_MEMORY])} GiB)" if capacity[m.GPU_MEMORY] else ""
    gpus = _amount(free[m.GPU])
    return f"{gpus} {'GPU' if gpus == '1' else 'GPUs'}{of_memory} free, {rest} left"


def _amount(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0") if value < 100 else f"{value:.0f}"


def _count(value: float) -> str:
    return f"{value:.0f}" if value >= 1 else "1"
