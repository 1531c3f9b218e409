"""What a pod with a node holds on its cards: as much of its claim as its own requests allow.

A claim is an annotation, and whoever may create a pod may write one. So it says which cards are held, and
never that more is held than was asked: a pod that asks none holds none, a container that asks two cards
holds two at most, and on each no more memory and cores than it asks.

What is asked and not told, or told so that nobody can read it, is somewhere on the node all the same. It
is taken to be on the node's first cards, before all on those that the claim does not name: what is asked
is charged, and no more is closed.

A card that left the node's register while pods held it is told by these pods, and counts for nothing: they
are on no other card for that. A pod that names it later is on a card that the node does not have. Which
cards those are nobody can tell a scheduler that starts anew, so it takes what is held there to be on the
node's first cards: too much may be closed then, and never too little.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from itertools import islice

import numpy as np

from scheduler.api import hami
from scheduler.api.gpus import WHOLE_CARD_PERCENT, ContainerAsk, Kind
from scheduler.schema import columns as c

Slots = tuple[tuple[hami.CardUse, ...], ...]
Asks = tuple[ContainerAsk, ...]
Figures = tuple[int, int, int]
# By pod the cards that left the register under it, with rows that are none.
Gone = dict[str, dict[str, int]]

# Rows of cards that a node had and has no more; what served several times, in MIG mode, did so to the end.
_GONE, _GONE_CARVED = -1, -2
# Containers from which on arrays are faster: a tenant's pod may have thousands, and each may ask all cards.
_MANY = 32


def allowed(slots: Slots, most: Asks, asks: Asks) -> Slots:
    """What counts of a claim: a slot per container, or nothing at all when no card of it counts.

    ``most`` is what all containers ask, by which a claim was written, ``asks`` what they may hold by
    now. Memory asked as a share of a card is bounded by ``charges``, where the card is known.
    """
    if len(slots) != len(most):
        slots = _realigned(slots, most)
    counted = tuple(_within(uses, ask) for uses, ask in zip(slots, asks, strict=True))
    return counted if any(counted) else ()


def staying(asks: Asks) -> Asks:
    """What containers may hold once the init containers are done."""
    return tuple(ContainerAsk(ask.kind) if ask.kind == Kind.INIT else ask for ask in asks)


def tells_cards(claim: Slots, asks: Asks) -> bool:
    """Whether it is told which cards are held, where any are."""
    return bool(claim) or not any(ask.cards for ask in asks)


def incomplete(claim: Slots, asks: Asks, cards: Mapping[str, int], table: c.Cards) -> str:
    """What a claim leaves open of the cards that are asked, in words; empty when nothing.

    That there is no claim where cards are asked is for ``tells_cards`` to say.
    """
    if not claim:
        return ""
    for i, (uses, ask) in enumerate(zip(claim, asks, strict=True), 1):
        if untold := _untold(uses, ask, cards, table):
            return (
                f"tells {ask.cards - untold} of the {ask.cards} cards that container {i} asks, init "
                "containers counted first; only cards of the pod's node count, each once"
            )
    return ""


def charges(
    claim: Slots, asks: Asks, cards: Mapping[str, int], table: c.Cards
) -> dict[int, Figures]:
    """Cores, MiB and slots that a pod holds at most on the cards of its node, by card row.

    App containers and sidecars add up; every other init container runs on top of the sidecars before
    it. ``cards`` are the rows of the node's cards by UUID, in the order of its register, and then of those
    that are ``gone`` from under the pod. A card that is not among them is one that is not told.
    """
    if not (asks and cards):
        # Most pods ask no card, and are charged as often as others.
        return {}
    rest = _unnamed_first(claim, cards)
    if len(asks) >= _MANY and rest:
        return _charges_of_many(claim, asks, rest, cards, table)
    held: dict[int, Figures] = {}
    peak: dict[int, Figures] = {}
    for i, ask in enumerate(asks):
        for d, cores, mib in _holding(claim[i] if claim else (), ask, rest, cards, table):
            before = held.get(d, (0, 0, 0))
            after = (before[0] + cores, before[1] + mib, before[2] + 1)
            most = peak.get(d)
            peak[d] = after if most is None else tuple(map(max, most, after))  # type: ignore[assignment]
            if ask.kind != Kind.INIT:
                held[d] = after
    return peak


def _charges_of_many(
    claim: Slots, asks: Asks, rest: list[str], cards: Mapping[str, int], table: c.Cards
) -> dict[int, Figures]:
    """As ``charges``, in arrays of containers by cards: one by one only what is told is looked at."""
    column = {cards[uuid]: j for j, uuid in enumerate(rest)}
    told = [
        (i, column[d], use)
        for i, uses in enumerate(claim)
        for use in uses
        if (d := cards.get(use.uuid, _GONE)) >= 0
    ]
    asked = [
        (
            min(_untold(claim[i] if claim else (), ask, cards, table), len(rest)),
            ask.cores,
            ask.mem_mib,
            ask.mem_percent,
        )
        for i, ask in enumerate(asks)
    ]
    untold, cores, mib, percent = np.array(asked, np.int64).T[:, :, None]
    others = np.ones((len(asks), len(rest)), np.bool_)
    for i, j, _ in told:
        others[i, j] = False
    holds = others & (others.cumsum(axis=1) <= untold)
    share = table.total[c.MIB, list(column)] * percent // WHOLE_CARD_PERCENT
    most = np.maximum(1, np.where(mib, mib, share))
    figures = np.stack((cores * holds, most * holds, holds))
    for i, j, use in told:
        figures[:, i, j] = (use.cores, min(use.mem_mib, int(most[i, j])), 1)
    stays = np.array([ask.kind != Kind.INIT for ask in asks])[:, None]
    held = np.where(stays, figures, 0)
    peak = (held.cumsum(axis=1) - held + figures).max(axis=1)
    return {d: tuple(peak[:, j].tolist()) for d, j in column.items() if peak[2, j]}


def gone(
    held: Iterable[tuple[str, Slots, Mapping[str, int]]], there: Container[str], table: c.Cards
) -> Gone:
    """Of each pod the cards that it could tell until now, that it names, and that are not ``there`` any more.

    ``held`` are uids and claims, and the rows of the cards that each could tell. What a pod names no more
    when the node's cards change is forgotten, so that no more is known than pods say.
    """
    found: Gone = {}
    for uid, claim, before in held:
        named = {use.uuid for uses in claim for use in uses}
        lost = {
            uuid: _GONE_CARVED if _is_carved(uuid, before, table) else _GONE
            for uuid in named.union(map(_whole, named))
            if uuid in before and uuid not in there
        }
        if lost:
            found[uid] = lost
    return found


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


def _holding(
    uses: tuple[hami.CardUse, ...],
    ask: ContainerAsk,
    rest: list[str],
    cards: Mapping[str, int],
    table: c.Cards,
) -> list[Figures]:
    """Card rows, cores and MiB of one container: first what it tells, then the rest, where it is taken to be."""
    holding = [
        (d, use.cores, min(use.mem_mib, _mib(ask, d, table)))
        for use in uses
        if (d := cards.get(use.uuid, _GONE)) >= 0
    ]
    if untold := _untold(uses, ask, cards, table):
        own = {use.uuid for use in uses}
        others = islice((cards[uuid] for uuid in rest if uuid not in own), min(untold, len(rest)))
        holding += [(d, ask.cores, _mib(ask, d, table)) for d in others]
    return holding


def _unnamed_first(claim: Slots, cards: Mapping[str, int]) -> list[str]:
    named = {use.uuid for uses in claim for use in uses}
    return sorted((uuid for uuid, d in cards.items() if d >= 0), key=named.__contains__)


def _untold(
    uses: tuple[hami.CardUse, ...], ask: ContainerAsk, cards: Mapping[str, int], table: c.Cards
) -> int:
    """How many of the cards that a container asks are not told."""
    if any(_is_carved(use.uuid, cards, table) for use in uses):
        return 0
    return ask.cards - sum(use.uuid in cards for use in uses)


def _is_carved(uuid: str, cards: Mapping[str, int], table: c.Cards) -> bool:
    """A card in MIG mode serves a container several times, up to HAMi 2.9 under names like ``UUID[0-1]``."""
    d = cards.get(_whole(uuid), _GONE)
    return bool(table.mig[d]) if d >= 0 else d == _GONE_CARVED


def _whole(uuid: str) -> str:
    return uuid.partition("[")[0]


def _mib(ask: ContainerAsk, d: int, table: c.Cards) -> int:
    """As the kernel that places counts it: ``gpus.mib_asked``."""
    memory = int(table.total[c.MIB, d])
    return max(1, ask.mem_mib or memory * ask.mem_percent // WHOLE_CARD_PERCENT)
