"""The node that comes closest to accepting a pod, and what it lacks: resource by resource, and card by card."""

from __future__ import annotations

from dataclasses import replace as changed_template
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from scheduler.api import names
from scheduler.api.reasons import CardRefusal
from scheduler.plugins import cards_seen, container_requests, table
from scheduler.plugins.cards_seen import CardsSeen
from scheduler.plugins.claims import device_reasons
from scheduler.plugins.contract import Judged
from scheduler.schema import columns as c
from scheduler.state.pods import PodRecord
from scheduler.telling.advice.asking import Asking

# The cost of a card that does not suit the container, however much is free on it.
_UNFIT = 1.0


class Lack(NamedTuple):
    """Why one rule refuses a node, in the texts of the rule, and whether an eviction there could help."""

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
    """A card of a node, and why it does not suit the container that requests the most; None: it suits."""

    row: int
    refusal: CardRefusal | None


class ContainersSeen(NamedTuple):
    """Containers with equal requests, of a pod with several containers that request cards.

    Attributes:
        names: the names of the containers.
        wanted: how many cards each container requests.
        refusals: why each card does not suit them, before any container of the pod has a card; None: the card suits.
    """

    names: tuple[str, ...]
    wanted: int
    refusals: tuple[CardRefusal | None, ...]


class TogetherSeen(NamedTuple):
    """Containers that each fit by themselves, and that do not fit together.

    Attributes:
        name: the first container that does not fit once the containers ``before`` it are placed.
        wanted, fitting: how many cards this container requests, and how many cards suit it then.
    """

    name: str
    before: tuple[str, ...]
    wanted: int
    fitting: int


class Nearest(NamedTuple):
    """A node that refuses a pod.

    Attributes:
        lacks: one entry for every rule that refuses the node, in the order of the rules.
        short: the resources of which too little is free.
        cards: the cards of the family that the pod requests; none if they are not reported one by one.
        wanted: how many cards the container requests that requests the most.
        containers: if several containers request cards, how the cards suit each of them.
        together: None if one of the containers does not even fit by itself.
    """

    row: int
    lacks: tuple[Lack, ...]
    short: tuple[Short, ...]
    cards: tuple[CardSeen, ...]
    wanted: int
    containers: tuple[ContainersSeen, ...]
    together: TogetherSeen | None


class Ordered(NamedTuple):
    """All nodes that refuse a pod, with all refusal bits.

    Attributes:
        order: the positions of the nodes among the rows, the closest node first.
        hopeless: [n] how many reasons of each node no eviction could change.
    """

    judged: Judged
    order: c.Ints
    hopeless: c.Ints


def order_nodes(asking: Asking, pod: PodRecord) -> Ordered | None:
    """Order the nodes that refuse a pod by how close they come to accepting it.

    First come nodes with the fewest reasons that no eviction could change, then nodes with the fewest other reasons, then
    nodes that lack the smallest part of the request; ties by name. None if a mistake on the pod must be corrected first.
    """
    shape = asking.make_shape(pod)
    if shape is None:
        return None
    judged = asking.judge_rows(shape, pod=pod)
    judged.bits[0] |= _find_card_bits(asking, pod, judged)
    refused = np.flatnonzero(judged.bits[0])
    judged = judged._replace(rows=judged.rows[refused], bits=judged.bits[:, refused])
    hopeless, others = np.zeros((2, judged.rows.size), np.int64)
    for _, at, told in table.tell_all_reasons(judged):
        texts = told.which.sum(axis=1)
        hopeless[at] += texts * told.unresolvable
        others[at] += texts * ~told.unresolvable
    return Ordered(judged, np.lexsort((_measure_missing(judged), others, hopeless)), hopeless)


def describe_node(asking: Asking, judged: Judged, at: int) -> Nearest:
    """Describe what the node at position ``at`` of the rows lacks."""
    part = judged._replace(rows=judged.rows[[at]], bits=judged.bits[:, [at]])
    lacks = tuple(
        Lack(
            rule,
            tuple(told.texts[k] for k in np.flatnonzero(told.which[0])),
            not told.unresolvable[0],
        )
        for rule, _, told in table.tell_all_reasons(part)
    )
    return Nearest(int(part.rows[0]), lacks, _list_short(part), *_describe_cards(asking, part))


def _find_card_bits(asking: Asking, pod: PodRecord, judged: Judged) -> c.Ints:
    """Find the bit [n] of nodes whose cards do not suffice, also on nodes that another rule refuses."""
    if pod.template.gpu is None:
        return np.zeros(judged.rows.size, np.int64)
    requests, family = pod.template.requests, pod.template.family
    inner = asking.devices.inner_resources
    kept = tuple(one for one in requests.amounts if one[0] == family or one[0] in inner)
    only = changed_template(pod.template, requests=requests._replace(amounts=kept))
    shape = asking.make_shape(replace(pod, template=only))
    if shape is None:
        return np.zeros(judged.rows.size, np.int64)
    cards = 1 << int(shape.ask.prefers.bits[c.BIT_CARDS])
    bits: c.Ints = asking.judge_rows(shape, judged.rows).bits[0] & cards
    return bits


def _find_short(judged: Judged) -> c.Flags:
    """Find which of k requested resources each of n rows is short of, [n, k]."""
    ask = judged.ask
    bits = ask.prefers.bits[c.BIT_FIRST_RESOURCE] + np.arange(ask.resources.size)
    short: c.Flags = ((judged.bits[bits // c.WORD] >> (bits % c.WORD)[:, None]) & 1).T == 1
    return short


def _measure_missing(judged: Judged) -> c.Floats:
    """Measure [n] how much each row lacks, in parts of the request, summed over resources and cards."""
    nodes, ask = judged.cluster.nodes.columns, judged.ask
    at = np.ix_(ask.resources, judged.rows)
    free = np.maximum(0, nodes.allocatable[at] - nodes.requested[at]).T
    # A pod may request 0 of a resource, and is never short of it.
    lacks = np.where(_find_short(judged), ask.amounts - free, 0)
    parts = lacks / np.maximum(1, ask.amounts)
    missing: c.Floats = parts.sum(axis=1)
    if ask.claims.first.size > 1:
        claims = judged.cluster.claims
        missing += device_reasons.measure_missing(claims, nodes, ask.claims, judged.rows)
    lacking = np.flatnonzero(judged.bits[0] >> int(ask.prefers.bits[c.BIT_CARDS]) & 1)
    if lacking.size:
        missing[lacking] += _measure_missing_cards(judged._replace(rows=judged.rows[lacking]))
    return missing


def _measure_missing_cards(judged: Judged) -> c.Floats:
    """Measure [n] how much the best cards of each row lack, in parts of a card."""
    slot = cards_seen.find_hardest(judged)
    seen = cards_seen.see_cards(judged, np.zeros((judged.rows.size, c.N_CARD_CODES), np.int64))
    codes = cards_seen.find_refusals(judged, seen, slot)
    cards, asked = judged.cluster.cards.columns, judged.ask.containers[:, slot]
    cost = np.where(codes == cards_seen.FITS, 0.0, _UNFIT)
    free = np.maximum(0, cards.total[:, seen.cards] - cards.used[:, seen.cards])
    mib = cards_seen.measure_requested_mib(judged, seen.cards, slot)
    of_memory, of_cores = codes == CardRefusal.MEMORY, codes == CardRefusal.CORES
    cost[of_memory] = 1 - free[c.MIB][of_memory] / mib[of_memory]
    cores = np.maximum(1, cards_seen.measure_requested_cores(judged, seen.cards, slot))
    cost[of_cores] = (1 - free[c.CORES] / cores)[of_cores]
    wanted = int(asked[c.N_CARDS])
    order = np.lexsort((cost, seen.at))
    first = np.searchsorted(seen.at[order], np.arange(judged.rows.size))
    place = np.arange(order.size) - first[seen.at[order]]
    best = order[place < wanted]
    missing = np.bincount(seen.at[best], cost[best], judged.rows.size)
    n_best = np.bincount(seen.at[best], minlength=judged.rows.size)
    total: c.Floats = missing + _UNFIT * (wanted - n_best)
    return total


def _list_short(part: Judged) -> tuple[Short, ...]:
    nodes, ask, row = part.cluster.nodes.columns, part.ask, int(part.rows[0])
    # The order is that of ``Ask.resources``.
    resources = (names.PODS, *(name for name, _ in part.asked.template.requests.amounts))
    found = []
    for k in np.flatnonzero(_find_short(part)[0]).tolist():
        at = ask.resources[k]
        total = int(nodes.allocatable[at, row])
        free = max(0, total - int(nodes.requested[at, row]))
        found.append(Short(resources[k], int(ask.amounts[k]), free, total))
    return tuple(found)


def _describe_cards(
    asking: Asking, part: Judged
) -> tuple[tuple[CardSeen, ...], int, tuple[ContainersSeen, ...], TogetherSeen | None]:
    row = int(part.rows[0])
    if asking.cluster.registers.find_driver(part.ask.family, row) is None:
        return (), 0, (), None
    slot = cards_seen.find_hardest(part)
    seen = cards_seen.see_cards(part, np.zeros((1, c.N_CARD_CODES), np.int64))
    cards = tuple(map(CardSeen, seen.cards.tolist(), _list_refusals(part, seen, slot)))
    wanted = int(part.ask.containers[c.N_CARDS, slot])
    if not container_requests.are_several(part):
        return cards, wanted, (), None
    requests = container_requests.group_requests(part)
    each = tuple(
        ContainersSeen(one.names, one.cards, _list_refusals(part, seen, one.slots[0]))
        for one in requests
    )
    return cards, wanted, each, _describe_together(part, each)


def _list_refusals(part: Judged, seen: CardsSeen, slot: int) -> tuple[CardRefusal | None, ...]:
    codes = cards_seen.find_refusals(part, seen, slot).tolist()
    return tuple(None if code == cards_seen.FITS else CardRefusal(code) for code in codes)


def _describe_together(part: Judged, each: tuple[ContainersSeen, ...]) -> TogetherSeen | None:
    """Describe where the walk ends, if every container by itself would fit."""
    if any(one.refusals.count(None) < one.wanted for one in each):
        return None
    end = container_requests.follow_walk(part, 0)
    if end is None or not end.served:
        return None
    name, *before = container_requests.list_names(part, [end.slot, *end.served])
    wanted = int(part.ask.containers[c.N_CARDS, end.slot])
    return TogetherSeen(name, tuple(before), wanted, end.fitting)
