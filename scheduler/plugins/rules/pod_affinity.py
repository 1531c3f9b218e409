"""InterPodAffinity: the affinity and anti-affinity of the pod, and of the pods that already run.

Source: kube-scheduler's interpodaffinity/filtering.go, scoring.go.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from scheduler.api.pods.affinity import Peers, Term
from scheduler.api.pods.templates import PodTemplate
from scheduler.plugins.contract import (
    Change,
    Domain,
    DomainScore,
    Held,
    Hint,
    Reason,
    Rule,
    Standing,
    Tally,
)
from scheduler.schema import columns as c
from scheduler.schema import domains as of_domains
from scheduler.state.cluster import Cluster
from scheduler.state.counting.classes import TermView
from scheduler.state.counting.owned import Stance, list_owned

_NAME, _WEIGHT = "InterPodAffinity", 2
_AFFINITY, _ANTI_AFFINITY, _EXISTING = 0, 1, 2
_UNSEEN = TermView("", frozenset())


class _Own(NamedTuple):
    """A term of the pod's own; ``is_one``: the pod itself is one of the pods that the term is about."""

    key: str
    peers: Peers
    weight: int
    is_one: bool


class _Needs(NamedTuple):
    """All terms of a pod, and what terms of pods on nodes read from the pod.

    Attributes:
        refused: topology key and gain of the terms that keep the pod away; pods with these terms are on nodes, or soon will
            be: earlier pods of the run count too.
        drawn: stance, topology key, gain and weight of the terms that draw the pod or push it away. The gain is what one
            more pod of the shape adds.
    """

    near: tuple[_Own, ...]
    far: tuple[_Own, ...]
    soft: tuple[_Own, ...]
    seen: TermView
    refused: tuple[tuple[str, int], ...]
    drawn: tuple[tuple[Stance, str, int, int], ...]


def _concerns(template: PodTemplate, cluster: Cluster) -> bool:
    return template.has_terms or cluster.terms.has_owners


def _read_needs(pod: Standing, cluster: Cluster) -> _Needs | None:
    template = pod.template
    looks_at, about = cluster.terms.find_about(pod.namespace, pod.labels)
    # Once the first pod of a run is placed, its own terms are terms on nodes, which the next pod of the run meets.
    namespace_labels = cluster.terms.find_labels(pod.namespace)
    own_keys: set[str] = set()
    own: dict[Stance, Counter[str]] = {stance: Counter() for stance in Stance}
    for term in list_owned(template, pod.namespace, pod.labels):
        own_keys.update(term.peers.selector.keys)
        if term.peers.include(pod.namespace, namespace_labels, pod.labels):
            own[term.stance][term.key] += term.weight
    met = about | {(stance, key) for stance, gains in own.items() for key in gains}
    # Terms with a key that no node has as a label concern no node. Pods can have thousands of such terms.
    met = {one for one in met if cluster.nodes.has_label(one[1])}
    if not met and not template.has_terms:
        return None
    visible = frozenset(
        (key, label) for key, label in pod.labels.items() if looks_at(key) or key in own_keys
    )

    def read(terms: tuple[Term, ...], sign: int = 1) -> tuple[_Own, ...]:
        found = ((term, term.find_peers(pod.namespace, pod.labels)) for term in terms)
        return tuple(
            _Own(
                term.topology_key,
                peers,
                sign * term.weight,
                peers.include(pod.namespace, namespace_labels, pod.labels),
            )
            for term, peers in found
        )

    plugins = pod.placement.kube
    soft = (*read(template.preferred_affinity), *read(template.preferred_anti_affinity, -1))
    counts = plugins.find_weight(_NAME, _WEIGHT) > 0
    if plugins.only_own_preferences and not soft:
        counts = False
    weights = ((Stance.DRAWS, 1), (Stance.REQUIRED, plugins.required_weight)) if counts else ()
    is_asked = _NAME not in plugins.not_asked
    found = _Needs(
        near=read(template.affinity) if is_asked else (),
        far=read(template.anti_affinity) if is_asked else (),
        soft=soft if counts else (),
        seen=TermView(pod.namespace, visible) if met else _UNSEEN,
        refused=_list_gains(met, own, Stance.REFUSES) if is_asked else (),
        drawn=tuple(
            (stance, key, gain, weight)
            for stance, weight in weights
            if weight
            for key, gain in _list_gains(met, own, stance)
        ),
    )
    return found if any((found.near, found.far, found.soft, found.refused, found.drawn)) else None


def _list_gains(
    met: set[tuple[Stance, str]], own: dict[Stance, Counter[str]], stance: Stance
) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((key, own[stance][key]) for one, key in met if one == stance))


def _list_tallies(needs: _Needs, cluster: Cluster) -> tuple[Tally, ...]:
    terms = cluster.terms
    found: list[Tally] = []
    if needs.near:
        # Only a pod that is among the peers of all terms counts, and then it counts for each term.
        together = terms.count_peers(tuple(one.peers for one in needs.near), with_deleting=True)
        is_one = int(all(one.is_one for one in needs.near))
        found += (
            Tally(
                kind=of_domains.NEAR,
                count=together,
                gain=is_one,
                key=key,
                reason=_AFFINITY,
                figures={of_domains.TALLY_SELF: is_one},
            )
            for key in dict.fromkeys(one.key for one in needs.near)
        )
    found += (
        Tally(
            count=terms.count_peers((one.peers,), with_deleting=True),
            gain=int(one.is_one),
            key=one.key,
            reason=_ANTI_AFFINITY,
        )
        for one in needs.far
    )
    found += (
        Tally(
            count=terms.count_owners(needs.seen, Stance.REFUSES, key),
            gain=gain,
            key=key,
            reason=_EXISTING,
        )
        for key, gain in needs.refused
    )
    found += (
        Tally(
            kind=of_domains.SUM,
            count=terms.count_peers((one.peers,), with_deleting=True),
            gain=int(one.is_one),
            key=one.key,
            figures={of_domains.TALLY_WEIGHT: one.weight},
        )
        for one in needs.soft
    )
    found += (
        Tally(
            kind=of_domains.SUM,
            count=terms.count_owners(needs.seen, stance, key),
            gain=gain,
            key=key,
            figures={of_domains.TALLY_WEIGHT: weight},
        )
        for stance, key, gain, weight in needs.drawn
    )
    return tuple(found)


def _make_hint(held: Held) -> Hint:
    """A wanted pod comes, a pod that is repelled or repels leaves, or a node moves to another domain."""
    needs: _Needs = held.need
    keys = [one.key for one in (*needs.near, *needs.far)] + [key for key, _ in needs.refused]
    # A wanted pod is among the peers of all terms. If the last of these peers leaves, the waiting pod may be the first.
    wanted = tuple(one.peers for one in needs.near[:1])
    may_be_first = bool(needs.near) and all(one.is_one for one in needs.near)
    return Hint(
        anywhere=tuple((Change.NODE_LABELS, key) for key in dict.fromkeys(keys)),
        came=wanted,
        left=(*(one.peers for one in needs.far), *(wanted if may_be_first else ())),
        shunned=needs.seen if needs.refused else None,
    )


RULE = Rule(
    name=_NAME,
    reasons=(
        Reason("node(s) didn't match pod affinity rules", resolvable=False),
        Reason("node(s) didn't match pod anti-affinity rules"),
        Reason("node(s) didn't satisfy existing pods anti-affinity rules"),
    ),
    domain=Domain(
        concerns=_concerns,
        needs=_read_needs,
        tallies=_list_tallies,
        score=DomainScore(how=c.OF_SPAN, weight=_WEIGHT),
    ),
    hint=_make_hint,
)
