"""The containers of a pod that request cards: which request the same, why each is refused, where the walk ends."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scheduler.api.reasons import CardRefusal
from scheduler.kernels import diagnose
from scheduler.plugins import words
from scheduler.plugins.contract import Judged
from scheduler.schema import columns as c

# The figures by which requests differ.
_FIGURES = (c.N_CARDS, c.ASK_MIB, c.ASK_PERCENT, c.ASK_CORES)
# How many of the largest requests of each figure are evaluated: a pod may have a thousand containers.
_LARGEST = 4


class Request(NamedTuple):
    """What one container requests, or several containers that request the same.

    Attributes:
        slots, names: the containers' places in the pod and their names.
        cards: how many cards each requests.
    """

    slots: tuple[int, ...]
    names: tuple[str, ...]
    cards: int


class Alone(NamedTuple):
    """Why nodes refuse one request by itself, before any container of the pod has a card.

    Attributes:
        codes: [n, N_CARD_CODES] how many cards of each row refuse the request for each reason; 0 on rows where it fits.
        fits: [n] whether the request fits on the row.
    """

    request: Request
    codes: c.Ints
    fits: c.Flags


class Walk(NamedTuple):
    """Where the walk over the containers ends on one node.

    Attributes:
        slot: the first container that finds too few cards.
        served: the containers before that one that keep their cards; init containers do not keep cards.
        held: [3, n] what the served containers hold on the node's n cards.
        fitting: on how many cards the container at ``slot`` would fit.
    """

    slot: int
    served: tuple[int, ...]
    held: c.Ints
    fitting: int


def are_several(judged: Judged) -> bool:
    """Whether several containers request cards."""
    return bool((judged.ask.containers[c.N_CARDS] > 0).sum() > 1)


def group_requests(judged: Judged) -> list[Request]:
    """Group the containers that request cards by equal requests, in the order of the pod."""
    containers = judged.ask.containers
    alike: dict[tuple[int, ...], list[int]] = {}
    for slot in np.flatnonzero(containers[c.N_CARDS] > 0).tolist():
        alike.setdefault(tuple(containers[list(_FIGURES), slot].tolist()), []).append(slot)
    return [
        Request(tuple(slots), tuple(list_names(judged, slots)), key[0])
        for key, slots in alike.items()
    ]


def find_largest(judged: Judged) -> tuple[list[Request], bool]:
    """Find the largest requests, in the order of the pod, and whether there are other requests."""
    requests = group_requests(judged)
    containers = judged.ask.containers
    largest = set()
    for figure in _FIGURES:
        amounts = [int(containers[figure, one.slots[0]]) for one in requests]
        largest |= set(np.argsort(amounts, kind="stable")[-_LARGEST:].tolist())
    found = [one for i, one in enumerate(requests) if i in largest]
    return found, len(found) < len(requests)


def list_names(judged: Judged, slots: Sequence[int]) -> list[str]:
    """List the names of containers; a container without a name gets its number."""
    gpu = judged.asked.template.gpu
    called = gpu.names if gpu is not None and gpu.names else ()
    return [(called[slot] if slot < len(called) else "") or f"number {slot + 1}" for slot in slots]


def name_containers(names: Sequence[str]) -> str:
    """Write ``container a`` or ``containers a and b``; of many containers the first names, and how many more there are."""
    return f"container{'s' if len(names) > 1 else ''} {words.write_all(names, 'container')}"


def evaluate_alone(judged: Judged, request: Request) -> Alone:
    """Evaluate one request by itself on each row."""
    slot = request.slots[0]
    codes = _count_refusals(judged, judged.rows, judged.ask.containers[:, slot : slot + 1])
    fits = codes.sum(axis=1) < _count_cards(judged)
    codes[fits] = 0
    return Alone(request, codes, fits)


def follow_walk(judged: Judged, at: int) -> Walk | None:
    """Find where the walk ends on the node at position ``at`` of the rows; None if it serves every container."""
    containers, row = judged.ask.containers, judged.rows[[at]]
    count = int(_count_cards(judged)[at])

    def count_up_to(slot: int) -> c.Ints:
        found: c.Ints = _count_refusals(judged, row, containers[:, : slot + 1])[0]
        return found

    asking = np.flatnonzero(containers[c.N_CARDS] > 0).tolist()
    # A walk over the first containers alone ends at the same container, so a binary search finds it.
    i = bisect.bisect_left(asking, True, key=lambda slot: int(count_up_to(slot).sum()) >= count)
    if i == len(asking):
        return None
    codes = count_up_to(asking[i])
    fitting = count - int(codes.sum() - codes[CardRefusal.TOO_FEW])
    served = tuple(slot for slot in asking[:i] if containers[c.KIND, slot] != c.KIND_INIT)
    return Walk(asking[i], served, judged.world.scratch.held[:, :count].copy(), fitting)


def _count_cards(judged: Judged) -> c.Ints:
    pools = judged.cluster.nodes.find_pools(judged.ask.family)[judged.rows]
    count: c.Ints = judged.cluster.nodes.columns.pools.count[pools]
    return count


def _count_refusals(judged: Judged, rows: c.Ints, containers: c.Ints) -> c.Ints:
    """Count the refusals [n, N_CARD_CODES] of the last container that the walk came to.

    If that container fits, not every card is refused or counted as too few: the sum of a row is below its number of cards.
    """
    codes = np.zeros((rows.size, c.N_CARD_CODES), np.int64)
    ask = judged.ask.replace(containers=containers.copy())
    diagnose.count_card_codes(judged.world, ask, rows, codes)
    return codes
