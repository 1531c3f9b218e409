"""What a pod with a node holds on its cards: as much of its claim as its own requests allow.

A claim is an annotation, and whoever may create a pod may write one. So it says which cards are held, and
never that more is held than was asked: a pod that asks none holds none, a container that asks two cards
holds two at most, and on each no more memory and cores than it asks. A pod that asks cards and does not
tell which, or tells it so that nobody can read it, is taken to hold the first cards of its node: what it
asks is charged, and no more is closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from scheduler.api import hami
from scheduler.api.gpus import WHOLE_CARD_PERCENT, ContainerAsk, Kind
from scheduler.kernels import columns as c

Slots = tuple[tuple[hami.CardUse, ...], ...]
Asks = tuple[ContainerAsk, ...]
Figures = tuple[int, int, int]


def allowed(slots: Slots, asks: Asks) -> Slots:
    """What counts of a claim: a slot per container, or nothing at all when no card of it counts.

    Memory asked as a share of a card is bounded by ``charges``, where the card is known.
    """
    if len(slots) != len(asks):
        slots = _realigned(slots, asks)
    counted = tuple(_within(uses, ask) for uses, ask in zip(slots, asks, strict=True))
    return counted if any(counted) else ()


def staying(asks: Asks) -> Asks:
    """What containers may hold once the init containers are done."""
    return tuple(ContainerAsk(ask.kind) if ask.kind == Kind.INIT else ask for ask in asks)


def tells_cards(claim: Slots, asks: Asks) -> bool:
    """Whether it is told which cards are held, where any are."""
    return bool(claim) or not any(ask.cards for ask in asks)


def charges(
    claim: Slots, asks: Asks, cards: Mapping[str, int], memory: c.Ints
) -> dict[int, Figures]:
    """Cores, MiB and slots that a pod holds at most on the cards of its node, by card row.

    App containers and sidecars add up; every other init container runs on top of the sidecars before
    it. ``cards`` are the rows of the node's cards by UUID, in the order of its register, ``memory`` [D]
    the MiB of each row. Cards that the node does not list count for nothing.
    """
    held: dict[int, Figures] = {}
    peak: dict[int, Figures] = {}
    for i, ask in enumerate(asks):
        if not ask.cards:
            continue
        for d, cores, mib in (
            _uses(claim[i], ask, cards, memory) if claim else _first(ask, cards, memory)
        ):
            before = held.get(d, (0, 0, 0))
            after = (before[0] + cores, before[1] + mib, before[2] + 1)
            most = peak.get(d)
            peak[d] = after if most is None else tuple(map(max, most, after))  # type: ignore[assignment]
            if ask.kind != Kind.INIT:
                held[d] = after
    return peak


def _realigned(slots: Slots, asks: Asks) -> Slots:
    """HAMi 2.10.0 leaves out the slots of containers without cards: those there are go to who asks."""
    told = iter([uses for uses in slots if uses])
    return tuple(next(told, ()) if ask.cards else () for ask in asks)


def _within(uses: tuple[hami.CardUse, ...], ask: ContainerAsk) -> tuple[hami.CardUse, ...]:
    counted: dict[str, hami.CardUse] = {}
    for use in uses if ask.cards else ():
        if use.uuid in counted:
            continue
        counted[use.uuid] = hami.CardUse(
            use.uuid,
            min(use.mem_mib, ask.mem_mib) if ask.mem_mib else use.mem_mib,
            min(use.cores, ask.cores),
        )
        if len(counted) == ask.cards:
            break
    return tuple(counted.values())


def _uses(
    uses: tuple[hami.CardUse, ...], ask: ContainerAsk, cards: Mapping[str, int], memory: c.Ints
) -> list[Figures]:
    found = [(cards.get(use.uuid, -1), use) for use in uses]
    return [
        (d, use.cores, min(use.mem_mib, _mib(ask, int(memory[d])))) for d, use in found if d >= 0
    ]


def _first(ask: ContainerAsk, cards: Mapping[str, int], memory: c.Ints) -> list[Figures]:
    rows = islice(cards.values(), ask.cards)
    return [(d, ask.cores, _mib(ask, int(memory[d]))) for d in rows]


def _mib(ask: ContainerAsk, memory: int) -> int:
    """As the kernel that places counts it: ``gpus.mib_asked``."""
    return max(1, ask.mem_mib or memory * ask.mem_percent // WHOLE_CARD_PERCENT)
