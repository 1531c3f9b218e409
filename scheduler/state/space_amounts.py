"""What the containers of a pod ask of memory and cores, by the cards that they may get."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from scheduler.api.pods.gpus import ContainerKind, GpuAsk
from scheduler.schema import columns as c

# The kind of a container, and an amount, or an amount by node.
Slot = tuple[ContainerKind, Any]
Sum = Callable[[Sequence[Slot]], int]


def is_relative(ask: GpuAsk) -> bool:
    """Whether it asks a part of each card, of whatever size the card is."""
    return any(one.cards and (not one.mem_mib or one.core_percent) for one in ask.containers)


def list_mib(ask: GpuAsk, of_card: Any) -> list[Slot]:
    """List what each container asks of memory, if a card has so many MiB; likewise by node."""
    return [
        (one.kind, one.cards * (one.mem_mib or _take_part(of_card, one.mem_percent)))
        for one in ask.containers
        if one.cards
    ]


def _take_part(of_card: Any, percent: int) -> Any:
    """Take a part of a card's figure, which is never 0; likewise by node."""
    part = of_card * percent // 100
    # Python's own numbers have no bound, and nobody has checked yet what a pod in a review asks.
    return np.maximum(1, part) if isinstance(part, np.ndarray) else max(1, part)


def list_cores(ask: GpuAsk, of_card: Any) -> list[Slot]:
    """List what each container asks of cores, as ``list_mib``."""
    return [
        (
            one.kind,
            one.cards * (_take_part(of_card, one.core_percent) if one.core_percent else one.cores),
        )
        for one in ask.containers
        if one.cards
    ]


def sum_slots(amounts: Sequence[Slot]) -> int:
    """Sum up what containers ask: init containers run before the others, one after the other."""
    staying = sum(int(n) for kind, n in amounts if kind != ContainerKind.INIT)
    return max(staying, *(int(n) for kind, n in amounts if kind == ContainerKind.INIT), 0)


def sum_all(amounts: Sequence[Slot]) -> int:
    """Sum up what containers ask, as if all ran at once."""
    return sum(int(n) for _, n in amounts)


def sum_rows(amounts: Sequence[Slot]) -> c.Ints:
    """As ``sum_slots``, by node."""
    staying = sum((n for kind, n in amounts if kind != ContainerKind.INIT), np.int64(0))
    most: c.Ints = np.asarray(staying)
    for kind, n in amounts:
        if kind == ContainerKind.INIT:
            most = np.maximum(most, n)
    return most
