"""The ways in which the nodes of a cluster share GPUs, as far as pods that request a share have to know."""

from __future__ import annotations

from typing import NamedTuple

from scheduler.api.plugin_parts import Way

# Shares of any size.
ANY_SIZE = "hami"
# Those that hold a container to its share come first.
WAYS = (ANY_SIZE, Way.MIG.value, Way.MPS.value, Way.TIME_SLICING.value)


class Backend(NamedTuple):
    """One size of shares that nodes offer; where shares have any size, the largest.

    Attributes:
        way: one of ``WAYS``.
        resource: by which pods request it.
        gpus: as how much of a GPU it counts.
        mib: its memory; 0 where that is not known.
        labels: of the nodes that offer it, where the resource alone does not say that.
        memory: as how much of the memory of a GPU it counts; 0 where that is not known.
    """

    way: str
    resource: str
    gpus: float
    mib: int
    labels: tuple[tuple[str, str], ...] = ()
    memory: float = 0.0
