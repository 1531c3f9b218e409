"""What a pod with a node holds on its cards: its claim, as far as its own requests allow.

A claim is an annotation, and everybody who may create a pod may write one. So a claim says which cards a pod
holds, and never that the pod holds more than it asks: a pod that asks no card holds none, and a container that
asks two cards holds two at most, and on each no more memory and cores than it asks.

A pod may ask for cards that its claim does not name, or names in words that cannot be read. The pod is on some
cards of the node all the same. It is charged to the node's first cards, and to those that the claim does not
name before the others: the pod is charged what it asks, and no more is closed.

A card may leave the node's register while pods hold it. The claims of these pods go on naming it, and what they
hold of it counts for nothing: they are charged to no other card instead. A pod that names the card later is on a
card that the node does not have. A scheduler that starts anew cannot know which cards have left, so it charges
what is held there to the node's first cards: too much may be closed then, and never too little.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping

import numpy as np

from scheduler.api.cards import CardUse, Place, Slots
from scheduler.api.pods.gpus import ContainerAsk, ContainerKind
from scheduler.kernels.devices import told_cards as kernel
from scheduler.schema import columns as c

Asks = tuple[ContainerAsk, ...]
# From a name in a claim to the card that it names, or names a partition of: see ``devices/contract``.
WholeOf = Callable[[str], str]
# From the row of a card and a place on it to the row of the part that is cut out there, ``NO_PART`` for none.
FindPart = Callable[[int, Place | None], int]
# By pod the cards that left the register while the pod held them, each with a code that is no row.
Gone = dict[str, dict[str, int]]

# Far more than any card has, and a figure that an array can hold.
_MIB_MAX = 1 << 53
_UNTOLD: c.Ints = np.zeros((0, kernel.N_TOLD), np.int64)
# [0, N_HOLD] what a pod without cards holds, as ``Pods.holds``.
NOTHING: c.Ints = np.zeros((0, c.N_HOLD), np.int64)


def limit_claim(slots: Slots, asks: Asks, *, initialized: bool) -> Slots:
    """Return what counts of a claim: a slot per container, or nothing at all when no card of the claim counts.

    ``asks`` is what the containers request. Of init containers only parts of cards count once the pod is ``initialized``:
    a part is the pod's until its end. Memory asked as a share of a card is bounded by the kernel, where the card is known.
    """
    counted = []
    for uses, ask in zip(slots, asks, strict=True):
        limited = _limit_uses(uses, ask)
        if initialized and ask.kind == ContainerKind.INIT:
            limited = tuple(use for use in limited if use.place is not None)
        counted.append(limited)
    return tuple(counted) if any(counted) else ()


def drop_init_asks(asks: Asks) -> Asks:
    """Return what the containers may hold once the init containers are done."""
    return tuple(ContainerAsk(ask.kind) if ask.kind == ContainerKind.INIT else ask for ask in asks)


def has_cards_named(claim: Slots, asks: Asks) -> bool:
    """Whether a claim names cards, if the containers ask any."""
    return bool(claim) or not any(ask.cards for ask in asks)


def describe_unnamed(
    claim: Slots, asks: Asks, cards: Mapping[str, int], table: c.Cards, whole_of: WholeOf
) -> str:
    """Say in words which of the cards that are asked a claim does not name; empty when it names all.

    ``whole_of`` is the driver's. Of an empty claim nothing is said: see ``has_cards_named``.
    """
    if not claim:
        return ""
    for i, (uses, ask) in enumerate(zip(claim, asks, strict=True), 1):
        if unnamed := _count_unnamed(uses, ask, cards, table, whole_of):
            return (
                f"names {ask.cards - unnamed} of the {ask.cards} cards that container {i} requests, init "
                "containers counted first; only cards of the pod's node count, each once"
            )
    return ""


def read_told(
    claim: Slots, cards: Mapping[str, int], whole_of: WholeOf, find_part: FindPart
) -> c.Ints:
    """Return [t, N_TOLD] the cards that a claim names, as the kernel takes them.

    ``cards`` are the rows of the node's cards by UUID, and the codes of the pod's cards that are ``Gone``. A card
    that is not among them counts as not named.
    """
    rows = [
        (
            i,
            cards.get(use.uuid, kernel.STRANGE),
            cards.get(whole_of(use.uuid), kernel.STRANGE),
            use.cores,
            min(use.mem_mib, _MIB_MAX),
            find_part(cards.get(use.uuid, kernel.STRANGE), use.place),
        )
        for i, uses in enumerate(claim)
        for use in uses
    ]
    return np.array(rows, np.int64) if rows else _UNTOLD


def find_gone(
    held: Iterable[tuple[str, Slots, Mapping[str, int]]],
    there: Container[str],
    table: c.Cards,
    whole_of: WholeOf,
) -> Gone:
    """Find the cards of each pod that its claim names, that the node had until now, and that are no longer ``there``.

    ``held`` are uids and claims, and the rows of the cards that each claim could name until now. A card that the
    claim no longer names when the node's cards change is forgotten, so that no more is known than pods say.
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


def _limit_uses(uses: tuple[CardUse, ...], ask: ContainerAsk) -> tuple[CardUse, ...]:
    counted: dict[tuple[str, Place | None], CardUse] = {}
    for use in uses if ask.cards else ():
        if (use.uuid, use.place) in counted:
            continue
        if use.place is None:
            use = use._replace(  # noqa: PLW2901 - what counts of it
                mem_mib=min(use.mem_mib, ask.mem_mib) if ask.mem_mib else use.mem_mib,
                cores=use.cores if ask.core_percent else min(use.cores, ask.cores),
            )
        # How much a part of a card has is known where the card is known.
        counted[use.uuid, use.place] = use
        if len(counted) == ask.cards:
            break
    return tuple(counted.values())


def _count_unnamed(
    uses: tuple[CardUse, ...],
    ask: ContainerAsk,
    cards: Mapping[str, int],
    table: c.Cards,
    whole_of: WholeOf,
) -> int:
    """Count the cards that a container asks and its claim does not name."""
    if any(_is_carved(whole_of(use.uuid), cards, table) for use in uses):
        return 0
    return ask.cards - sum(use.uuid in cards for use in uses)


def _is_carved(uuid: str, cards: Mapping[str, int], table: c.Cards) -> bool:
    """Whether a card is cut into partitions; a container may hold several of them."""
    d = cards.get(uuid, kernel.STRANGE)
    return bool(table.mig[d]) if d >= 0 else d == kernel.GONE_CARVED
