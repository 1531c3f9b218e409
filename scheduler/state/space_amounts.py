"""What quotas of devices limit, and what the containers of a pod ask of it, by the cards that they may get."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from scheduler.api.pods.gpus import ContainerKind, GpuAsk
from scheduler.schema import columns as c

# The family and the figure: ``columns.SLOTS`` for cards, ``columns.MIB`` or ``columns.CORES``.
Key = tuple[int, int]
# The kind of a container, and an amount, or an amount by node.
Slot = tuple[ContainerKind, Any]
Sum = Callable[[Sequence[Slot]], int]

_PERCENT = 100


class Limit(NamedTuple):
    """One limit of a quota.

    Attributes:
        resource: the resource, as the quota names it.
        key: what it limits.
        unit: so much of that is one unit of the resource.
        hard: the limit, in the unit of the ledger.
    """

    resource: str
    key: Key
    unit: int
    hard: int


class Largest(NamedTuple):
    """The most that a card of a family has, and whether a card can be cut; 0 where nothing is known."""

    cores: int = 0
    mib: int = 0
    is_cut: bool = False


def is_relative(ask: GpuAsk) -> bool:
    """Whether it asks a part of each card, of whatever size the card is."""
    return any(one.cards and (not one.mem_mib or one.core_percent) for one in ask.containers)


def find_able(ask: GpuAsk, mib: c.Ints, pools: c.Ints) -> c.Flags:
    """Find [N] the nodes with devices that could serve it, by their MiB and pools: devices that are counted are whole."""
    parts = (one.cards and not one.mem_mib and one.mem_percent < _PERCENT for one in ask.containers)
    return mib > 0 if any(parts) else pools > c.NO_POOL


def list_mib(ask: GpuAsk, of_card: Any) -> list[Slot]:
    """List what each container asks of memory, if a card has so many MiB; likewise by node."""
    return [
        (one.kind, one.cards * (one.mem_mib or _take_part(of_card, one.mem_percent)))
        for one in ask.containers
        if one.cards
    ]


def _take_part(of_card: Any, percent: int) -> Any:
    """Take a part of a card's figure, which is never 0; likewise by node."""
    part = of_card * percent // _PERCENT
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


def raise_to_cards(ask: GpuAsk, amounts: Sequence[Slot], of_card: int) -> list[Slot]:
    """Raise what each container asks to all that its cards have."""
    asking = [one for one in ask.containers if one.cards]
    return [
        (kind, max(n, one.cards * of_card)) for one, (kind, n) in zip(asking, amounts, strict=True)
    ]


def list_largest_parts(ask: GpuAsk, models: Sequence[str]) -> tuple[list[Slot], list[Slot]]:
    """List the most MiB and the most cores that each container gets on cards of these models."""
    found = [ask.find_parts(model) for model in models] if ask.find_parts is not None else []
    parts = [one for one in found if one is not None]
    mib, cores = (
        [
            (one.kind, one.cards * max((of_model[i][figure] for of_model in parts), default=0))
            for i, one in enumerate(ask.containers)
            if one.cards
        ]
        for figure in (0, 1)
    )
    return mib, cores
