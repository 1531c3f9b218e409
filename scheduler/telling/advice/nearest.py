"""The node that comes closest to accepting a pod, and what it lacks: resource by resource, and card by card."""

from __future__ import annotations

from dataclasses import replace as changed_template
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from scheduler.api import names
from scheduler.api.reasons import CardRefusal
from scheduler.devices.table import INNER_RESOURCES
from scheduler.plugins import cards_seen, container_requests, table
from scheduler.plugins.cards_seen import CardsSeen
from scheduler.plugins.contract import Judged
from scheduler.schema import columns as c
from scheduler.state.pods import PodRecord
from scheduler.telling.advice.asking import Asking

# The cost of a card that will not do whatever is free on it.
_UNFIT = 1.0


class Lack(NamedTuple):
    """Why one rule refuses a node, in its own words, and whether an eviction there could help."""

    rule: str
    texts: tuple[str, ...]
    resolvable: bool


class Short(NamedTuple):
    """A resource of which a node has less free than the pod requests, in base units."""

    resource: str
    requested: int
    free: int
    total: int


class CardSeen(NamedTuple):
    """A card of a node, and why it will not do for the container that asks the most; None: it would."""

    row: int
    refusal: CardRefusal | None


class ContainersSeen(NamedTuple):
    """Containers that request the same, of a pod of which several request cards.

    Attributes:
        names: theirs.
        wanted: how many cards each requests.
        refusals: by card why it will not do for them, before any of the pod has one; None: it would.
    """

    names: tuple[str, ...]
    wanted: int
    refusals: tuple[CardRefusal | None, ...]


class TogetherSeen(NamedTuple):
    """Containers of which each would fit by itself, and that do not fit together.

    Attributes:
        name: of the first that does not fit once those ``before`` it are placed.
        wanted, fitting: how many cards it requests, and how many would do then.
    """

    name: str
    before: tuple[str, ...]
    wanted: int
    fitting: int


class Nearest(NamedTuple):
    """A node that refuses a pod.

    Attributes:
        lacks: by every rule that refuses it, in the order of the rules.
        short: the resources behind that.
        cards: those of the family that the pod asks; none where they are not told one by one.
        wanted: how many cards the container asks that asks the most.
        containers: where several containers request cards, what the cards say to each.
        together: None where a container does not even fit by itself.
    """

    row: int
    lacks: tuple[Lack, ...]
    short: tuple[Short, ...]
    cards: tuple[CardSeen, ...]
    wanted: int
    containers: tuple[ContainersSeen, ...]
    together: TogetherSeen | None


class Ordered(NamedTuple):
    """All nodes that refuse a pod, with all their refusal bits.

    Attributes:
        order: their positions among the rows, the closest first.
        hopeless: [n] how many reasons each has that no eviction could change.
    """

    judged: Judged
    order: c.Ints
    hopeless: c.Ints


def ordered(asking: Asking, pod: PodRecord) -> Ordered | None:
    """The nodes that refuse a pod, by how close they come.

    First those with the fewest reasons that no eviction could change, then those with the fewest others, then
    those of which the least is short in parts of what is asked; ties by name. None when something on the pod
    must be mended first.
    """
    shape = asking.shape(pod)
    if shape is None:
        return None
    judged = asking.judge_rows(shape, pod=pod)
    judged.bits[0] |= _cards_too(asking, pod, judged)
    refused = np.flatnonzero(judged.bits[0])
    judged = judged._replace(rows=judged.rows[refused], bits=judged.bits[:, refused])
    hopeless, others = np.zeros((2, judged.rows.size), np.int64)
    for _, at, told in table.tell_all_reasons(judged):
        texts = told.which.sum(axis=1)
        hopeless[at] += texts * told.unresolvable
        others[at] += texts * ~told.unresolvable
    return Ordered(judged, np.lexsort((_missing(judged), others, hopeless)), hopeless)


def of_row(asking: Asking, judged: Judged, at: int) -> Nearest:
    """What the node at a position among the rows lacks."""
    part = judged._replace(rows=judged.rows[[at]], bits=judged.bits[:, [at]])
    lacks = tuple(
        Lack(
            rule,
            tuple(told.texts[k] for k in np.flatnonzero(told.which[0])),
            not told.unresolvable[0],
        )
        for rule, _, told in table.tell_all_reasons(part)
    )
    return Nearest(int(part.rows[0]), lacks, _short(part), *_cards(asking, part))


def _cards_too(asking: Asking, pod: PodRecord, judged: Judged) -> c.Ints:
    """[n] the bits of nodes whose cards do not suffice, also of those that are short of something else."""
    if pod.template.gpu is None:
        return np.zeros(judged.rows.size, np.int64)
    requests, family = pod.template.requests, pod.template.family
    kept = tuple(one for one in requests.amounts if one[0] == family or one[0] in INNER_RESOURCES)
    only = changed_template(pod.template, requests=requests._replace(amounts=kept))
    shape = asking.shape(replace(pod, template=only))
    if shape is None:
        return np.zeros(judged.rows.size, np.int64)
    cards = 1 << int(shape.ask.prefers.bits[c.BIT_CARDS])
    bits: c.Ints = asking.judge_rows(shape, judged.rows).bits[0] & cards
    return bits


def _which_short(judged: Judged) -> c.Flags:
    """[n, k] of which resources that are asked each row is short."""
    ask = judged.ask
    bits = ask.prefers.bits[c.BIT_FIRST_RESOURCE] + np.arange(ask.resources.size)
    short: c.Flags = ((judged.bits[bits // c.WORD] >> (bits % c.WORD)[:, None]) & 1).T == 1
    return short


def _missing(judged: Judged) -> c.Floats:
    """[n] how much is short, in parts of what is asked, over all resources and cards."""
    nodes, ask = judged.cluster.nodes.columns, judged.ask
    at = np.ix_(ask.resources, judged.rows)
    free = np.maximum(0, nodes.allocatable[at] - nodes.requested[at]).T
    parts = np.where(_which_short(judged), (ask.amounts - free) / ask.amounts, 0.0)
    missing: c.Floats = parts.sum(axis=1)
    lacking = np.flatnonzero(judged.bits[0] >> int(ask.prefers.bits[c.BIT_CARDS]) & 1)
    if lacking.size:
        missing[lacking] += _missing_cards(judged._replace(rows=judged.rows[lacking]))
    return missing


def _missing_cards(judged: Judged) -> c.Floats:
    """[n] of the best cards of each row what is short on them, in parts of a card."""
    slot = cards_seen.find_hardest(judged)
    seen = cards_seen.see_cards(judged, np.zeros((judged.rows.size, c.N_CARD_CODES), np.int64))
    codes = cards_seen.find_refusals(judged, seen, slot)
    cards, asked = judged.cluster.cards.columns, judged.ask.containers[:, slot]
    cost = np.where(codes == cards_seen.FITS, 0.0, _UNFIT)
    free = np.maximum(0, cards.total[:, seen.cards] - cards.used[:, seen.cards])
    mib = cards_seen.measure_requested_mib(judged, seen.cards, slot)
    of_memory, of_cores = codes == CardRefusal.MEMORY, codes == CardRefusal.CORES
    cost[of_memory] = ((mib - free[c.MIB]) / mib)[of_memory]
    cost[of_cores] = (1 - free[c.CORES] / max(1, int(asked[c.ASK_CORES])))[of_cores]
    wanted = int(asked[c.N_CARDS])
    order = np.lexsort((cost, seen.at))
    first = np.searchsorted(seen.at[order], np.arange(judged.rows.size))
    place = np.arange(order.size) - first[seen.at[order]]
    best = order[place < wanted]
    missing = np.bincount(seen.at[best], cost[best], judged.rows.size)
    n_best = np.bincount(seen.at[best], minlength=judged.rows.size)
    total: c.Floats = missing + _UNFIT * (wanted - n_best)
    return total


def _short(part: Judged) -> tuple[Short, ...]:
    nodes, ask, row = part.cluster.nodes.columns, part.ask, int(part.rows[0])
    # As ``Ask.resources`` has them.
    resources = (names.PODS, *(name for name, _ in part.asked.template.requests.amounts))
    found = []
    for k in np.flatnonzero(_which_short(part)[0]).tolist():
        at = ask.resources[k]
        total = int(nodes.allocatable[at, row])
        free = max(0, total - int(nodes.requested[at, row]))
        found.append(Short(resources[k], int(ask.amounts[k]), free, total))
    return tuple(found)


def _cards(
    asking: Asking, part: Judged
) -> tuple[tuple[CardSeen, ...], int, tuple[ContainersSeen, ...], TogetherSeen | None]:
    pool, row = part.ask.pool, int(part.rows[0])
    if pool < 0 or not asking.cluster.nodes.columns.managed[pool, row]:
        return (), 0, (), None
    slot = cards_seen.find_hardest(part)
    seen = cards_seen.see_cards(part, np.zeros((1, c.N_CARD_CODES), np.int64))
    cards = tuple(map(CardSeen, seen.cards.tolist(), _refusals(part, seen, slot)))
    wanted = int(part.ask.containers[c.N_CARDS, slot])
    if not container_requests.are_several(part):
        return cards, wanted, (), None
    requests = container_requests.group_requests(part)
    each = tuple(
        ContainersSeen(one.names, one.cards, _refusals(part, seen, one.slots[0]))
        for one in requests
    )
    return cards, wanted, each, _together(part, each)


def _refusals(part: Judged, seen: CardsSeen, slot: int) -> tuple[CardRefusal | None, ...]:
    codes = cards_seen.find_refusals(part, seen, slot).tolist()
    return tuple(None if code == cards_seen.FITS else CardRefusal(code) for code in codes)


def _together(part: Judged, each: tuple[ContainersSeen, ...]) -> TogetherSeen | None:
    """Where the walk ends, if every container by itself would fit."""
    if any(one.refusals.count(None) < one.wanted for one in each):
        return None
    end = container_requests.follow_walk(part, 0)
    if end is None or not end.served:
        return None
    name, *before = container_requests.list_names(part, [end.slot, *end.served])
    wanted = int(part.ask.containers[c.N_CARDS, end.slot])
    return TogetherSeen(name, tuple(before), wanted, end.fitting)
