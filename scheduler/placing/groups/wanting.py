"""Which pods of a group want others of it near them, by the terms of affinity that they require.

Such a pod fits nowhere before one of those that it wants is on a node. Only one that is itself among those that it wants
may be the first of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from scheduler.api.pods.affinity import Peers
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord

# Of a group with more kinds of pods, or of wishes, the pods keep their order: each kind is compared with each wish.
_KINDS_MAX, _WISHES_MAX = 64, 64
# Which pods one wants near it: those that are among all of these. Empty: it wants nobody.
_Wish = tuple[Peers, ...]


class _Kind(NamedTuple):
    """What tells pods apart of which some want others near them.

    Attributes:
        wish: the number of its wish; -1 for a pod that wants nobody.
        labels: those that any wish looks at.
    """

    wish: int
    namespace: str
    labels: frozenset[tuple[str, str]]


def is_wanted(cluster: Cluster, pod: PodRecord, other: PodRecord) -> bool:
    """Whether a pod is content near another one."""
    return bool(pod.template.affinity) and _is_among(cluster, other, _read_wish(pod))


def is_counted(pod: PodRecord, other: PodRecord) -> bool:
    """Whether a pod that must be spread evenly counts another one."""
    if pod.namespace != other.namespace:
        return False
    peers = (
        one.find_peers(pod.namespace, pod.labels or {}) for one in pod.template.spread if one.hard
    )
    return any(one.selector.matches(other.labels or {}) for one in peers)


def waits_for_others(cluster: Cluster, pod: PodRecord) -> bool:
    """Whether a pod fits nowhere before another pod that it wants is on a node."""
    return bool(pod.template.affinity) and not is_wanted(cluster, pod, pod)


def put_wanted_first(cluster: Cluster, pods: Sequence[PodRecord]) -> list[PodRecord]:
    """Put pods in an order in which those that others want near them come before these; else the order stays.

    Where pods want each other, one comes first that may be the first of those that it wants.
    """
    if len(pods) < 2 or not any(pod.template.affinity for pod in pods):
        return list(pods)
    wishes, numbers = _number_wishes(pods)
    looked_at = {key for wish in wishes for peers in wish for key in peers.selector.keys}
    kinds = [
        _Kind(
            number,
            pod.namespace,
            frozenset((key, one) for key, one in (pod.labels or {}).items() if key in looked_at),
        )
        for pod, number in zip(pods, numbers, strict=True)
    ]
    examples = dict(zip(kinds, pods, strict=True))
    if len(wishes) > _WISHES_MAX or len(examples) > _KINDS_MAX:
        return list(pods)
    by_wish = [
        {kind for kind, pod in examples.items() if _is_among(cluster, pod, wish)} for wish in wishes
    ]
    turns = _find_turns({kind: by_wish[kind.wish] if kind.wish >= 0 else set() for kind in kinds})
    order = sorted(range(len(pods)), key=lambda i: turns[kinds[i]])
    return [pods[i] for i in order]


def _number_wishes(pods: Sequence[PodRecord]) -> tuple[list[_Wish], list[int]]:
    """Return the wishes of pods, and for each pod the number of its wish; -1 for a pod that wants nobody."""
    wishes: dict[_Wish, int] = {}
    known: dict[Hashable, int] = {}
    numbers = []
    for pod in pods:
        terms = pod.template.affinity
        own = any(term.label_keys or term.mismatch_keys for term in terms)
        by = id(pod.template), pod.namespace, pod.uid if own else ""
        if by not in known:
            known[by] = wishes.setdefault(_read_wish(pod), len(wishes)) if terms else -1
        numbers.append(known[by])
    return list(wishes), numbers


def _find_turns(wanted: dict[_Kind, set[_Kind]]) -> dict[_Kind, int]:
    """Find the turn of each kind: after those that it wants, as far as that is possible."""
    turns: dict[_Kind, int] = {}
    turn = 0
    while len(turns) < len(wanted):
        left = [kind for kind in wanted if kind not in turns]
        ready = [kind for kind in left if _is_ready(kind, wanted[kind], turns)]
        if not ready:
            # Some want each other.
            able = [one for one in left if one in wanted[one] or wanted[one] & turns.keys()]
            ready = (able or left)[:1]
        turns |= dict.fromkeys(ready, turn)
        turn += 1
    return turns


def _is_ready(kind: _Kind, wanted: set[_Kind], turns: dict[_Kind, int]) -> bool:
    """Whether all that a kind wants have had their turn; one that may be the first of them does not wait for its like."""
    may_begin = kind in wanted
    return all(one in turns or (may_begin and one.wish == kind.wish) for one in wanted)


def _read_wish(pod: PodRecord) -> _Wish:
    labels = pod.labels or {}
    return tuple(term.find_peers(pod.namespace, labels) for term in pod.template.affinity)


def _is_among(cluster: Cluster, pod: PodRecord, wish: _Wish) -> bool:
    """Whether a pod is among those that a wish is about."""
    there = cluster.terms.find_labels(pod.namespace)
    return all(peers.include(pod.namespace, there, pod.labels or {}) for peers in wish)
