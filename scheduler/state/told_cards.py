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

from collections.abc import Callable, Container, Iterable, Mapping

import numpy as np

from scheduler.api.cards import CardUse, Slots
from scheduler.api.pods.gpus import ContainerAsk, ContainerKind
from scheduler.kernels.devices import told_cards as kernel
from scheduler.schema import columns as c

Asks = tuple[ContainerAsk, ...]
# The card that a claim names, or names a partition of: see ``devices/contract``.
WholeOf = Callable[[str], str]
# By pod the cards that left the register under it, with rows that are none.
Gone = dict[str, dict[str, int]]

# Far beyond any card, and a figure that an array can hold.
_MIB_MAX = 1 << 53
_UNTOLD: c.Ints = np.zeros((0, kernel.N_TOLD), np.int64)
# [0, 4] what a pod holds that holds no cards, as ``Pods.holds``.
NOTHING: c.Ints = np.zeros((0, 4), np.int64)


def allowed(slots: Slots, asks: Asks) -> Slots:
    """What counts of a claim: a slot per container, or nothing at all when no card of it counts.

    ``asks`` is what the containers may hold by now. Memory asked as a share of a card is bounded by the
    kernel, where the card is known.
    """
    counted = tuple(_within(uses, ask) for uses, ask in zip(slots, asks, strict=True))
    return counted if any(counted) else ()


def staying(asks: Asks) -> Asks:
    """What containers may hold once the init containers are done."""
    return tuple(ContainerAsk(ask.kind) if ask.kind == ContainerKind.INIT else ask for ask in asks)


def tells_cards(claim: Slots, asks: Asks) -> bool:
    """Whether it is told which cards are held, where any are."""
    return bool(claim) or not any(ask.cards for ask in asks)


def incomplete(
    claim: Slots, asks: Asks, cards: Mapping[str, int], table: c.Cards, whole_of: WholeOf
) -> str:
    """What a claim leaves open of the cards that are asked, in words; empty when nothing.

    ``whole_of`` is the driver's. That there is no claim where cards are asked is for ``tells_cards`` to say.
    """
    if not claim:
        return ""
    for i, (uses, ask) in enumerate(zip(claim, asks, strict=True), 1):
        if untold := _untold(uses, ask, cards, table, whole_of):
            return (
                f"names {ask.cards - untold} of the {ask.cards} cards that container {i} requests, init "
                "containers counted first; only cards of the pod's node count, each once"
            )
    return ""


def read_told(claim: Slots, cards: Mapping[str, int], whole_of: WholeOf) -> c.Ints:
    """[t, N_TOLD] what a claim tells, as the kernel takes it.

    ``cards`` are the rows of the node's cards by UUID, and then of those that are ``gone`` from under the
    pod. A card that is not among them is one that is not told.
    """
    rows = [
        (
            i,
            cards.get(use.uuid, kernel.STRANGE),
            cards.get(whole_of(use.uuid), kernel.STRANGE),
            use.cores,
            min(use.mem_mib, _MIB_MAX),
        )
        for i, uses in enumerate(claim)
        for use in uses
    ]
    return np.array(rows, np.int64) if rows else _UNTOLD


def gone(
    held: Iterable[tuple[str, Slots, Mapping[str, int]]],
    there: Container[str],
    table: c.Cards,
    whole_of: WholeOf,
) -> Gone:
    """Of each pod the cards that it could tell until now, that it names, and that are not ``there`` any more.

    ``held`` are uids and claims, and the rows of the cards that each could tell. What a pod names no more
    when the node's cards change is forgotten, so that no more is known than pods say.
    """
    found: Gone = {}
    for uid, claim, before in held:
        named = {use.uuid for uses in claim for use in uses}
        lost = {
            uuid: kernel.GONE_CARVED if _is_carved(whole_of(uuid), before, table) else kernel.GONE
            for uuid in named.union(map(whole_of, named))
            if uuid in before and uuid not in there
        }
        if lost:
            found[uid] = lost
    return found


def _within(uses: tuple[CardUse, ...], ask: ContainerAsk) -> tuple[CardUse, ...]:
    counted: dict[str, CardUse] = {}
    for use in uses if ask.cards else ():
        if use.uuid in counted:
            continue
        counted[use.uuid] = CardUse(
            use.uuid,
            min(use.mem_mib, ask.mem_mib) if ask.mem_mib else use.mem_mib,
            min(use.cores, ask.cores),
        )
        if len(counted) == ask.cards:
            break
    return tuple(counted.values())


def _untold(
    uses: tuple[CardUse, ...],
    ask: ContainerAsk,
    cards: Mapping[str, int],
    table: c.Cards,
    whole_of: WholeOf,
) -> int:
    """How many of the cards that a container asks are not told."""
    if any(_is_carved(whole_of(use.uuid), cards, table) for use in uses):
        return 0
    return ask.cards - sum(use.uuid in cards for use in uses)


def _is_carved(uuid: str, cards: Mapping[str, int], table: c.Cards) -> bool:
    """Whether a card is cut into partitions: such a one serves a container several times."""
    d = cards.get(uuid, kernel.STRANGE)
    return bool(table.mig[d]) if d >= 0 else d == kernel.GONE_CARVED
