"""InterPodAffinity: affinity and anti-affinity of the pod, and of the pods that already run.

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
from scheduler.state.cluster import Cluster
from scheduler.state.counting.classes import TermView
from scheduler.state.counting.owned import Stance, list_owned

_NAME, _WEIGHT = "InterPodAffinity", 2
_AFFINITY, _ANTI_AFFINITY, _EXISTING = 0, 1, 2
_UNSEEN = TermView("", frozenset())


class _Own(NamedTuple):
    """A term of the pod's own; ``is_one``: it is about pods like itself."""

    key: str
    peers: Peers
    weight: int
    is_one: bool


class _Needs(NamedTuple):
    """All of a pod's terms, and what terms of pods on nodes see of it.

    Attributes:
        refused: topology keys of terms on nodes, or soon there, that keep the pod away.
        drawn: topology key, gain and weight of those that draw it or push it away. The gain is what one more
            pod of the same adds.
    """

    near: tuple[_Own, ...]
    far: tuple[_Own, ...]
    soft: tuple[_Own, ...]
    seen: TermView
    refused: tuple[tuple[str, int], ...]
    drawn: tuple[tuple[Stance, str, int, int], ...]


def _concerns(template: PodTemplate, cluster: Cluster) -> bool:
    return template.has_terms or cluster.terms.has_owners


def _needs(pod: Standing, cluster: Cluster) -> _Needs | None:
    template = pod.template
    looks_at, about = cluster.terms.find_about(pod.namespace, pod.labels)
    # The first of the run makes its own terms terms on nodes, which the next of the run meets.
    namespace_labels = cluster.terms.labels_of(pod.namespace)
    own_keys: set[str] = set()
    own: dict[Stance, Counter[str]] = {stance: Counter() for stance in Stance}
    for term in list_owned(template, pod.namespace, pod.labels):
        own_keys.update(term.peers.selector.keys)
        if term.peers.include(pod.namespace, namespace_labels, pod.labels):
            own[term.stance][term.key] += term.weight
    met = about | {(stance, key) for stance, gains in own.items() for key in gains}
    # Nodes without the label are in no domain. Pods can have thousands of terms with such keys.
    met = {one for one in met if cluster.nodes.has_label(one[1])}
    if not met and not template.has_terms:
        return None
    visible = frozenset(
        (key, label) for key, label in pod.labels.items() if looks_at(key) or key in own_keys
    )

    def read(terms: tuple[Term, ...], sign: int = 1) -> tuple[_Own, ...]:
        found = ((term, term.peers(pod.namespace, pod.labels)) for term in terms)
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
    counts = plugins.weight(_NAME, _WEIGHT) > 0
    if plugins.only_own_preferences and not soft:
        counts = False
    weights = ((Stance.DRAWS, 1), (Stance.REQUIRED, plugins.required_weight)) if counts else ()
    is_asked = _NAME not in plugins.not_asked
    found = _Needs(
        near=read(template.affinity) if is_asked else (),
        far=read(template.anti_affinity) if is_asked else (),
        soft=soft if counts else (),
        seen=TermView(pod.namespace, visible) if met else _UNSEEN,
        refused=_met(met, own, Stance.REFUSES) if is_asked else (),
        drawn=tuple(
            (stance, key, gain, weight)
            for stance, weight in weights
            if weight
            for key, gain in _met(met, own, stance)
        ),
    )
    return found if any((found.near, found.far, found.soft, found.refused, found.drawn)) else None


def _met(
    met: set[tuple[Stance, str]], own: dict[Stance, Counter[str]], stance: Stance
) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((key, own[stance][key]) for one, key in met if one == stance))


def _tallies(needs: _Needs, cluster: Cluster) -> tuple[Tally, ...]:
    terms = cluster.terms
    found: list[Tally] = []
    if needs.near:
        # A pod that is not among the peers of all terms counts for none of them.
        together = terms.count_peers(tuple(one.peers for one in needs.near), with_deleting=True)
        is_one = int(all(one.is_one for one in needs.near))
        found += (
            Tally(
                kind=c.NEAR,
                count=together,
                gain=is_one,
                key=key,
                reason=_AFFINITY,
                figures={c.TALLY_SELF: is_one},
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
            kind=c.SUM,
            count=terms.count_peers((one.peers,), with_deleting=True),
            gain=int(one.is_one),
            key=one.key,
            figures={c.TALLY_WEIGHT: one.weight},
        )
        for one in needs.soft
    )
    found += (
        Tally(
            kind=c.SUM,
            count=terms.count_owners(needs.seen, stance, key),
            gain=gain,
            key=key,
            figures={c.TALLY_WEIGHT: weight},
        )
        for stance, key, gain, weight in needs.drawn
    )
    return tuple(found)


def _hint(held: Held) -> Hint:
    """A pod comes that is wanted near, one leaves that is shunned or that shuns; a node is in another domain."""
    needs: _Needs = held.need
    keys = [one.key for one in (*needs.near, *needs.far)] + [key for key, _ in needs.refused]
    # A wanted pod is among the peers of all terms. If the last of these peers leaves, the pod may become the first.
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
        needs=_needs,
        tallies=_tallies,
        score=DomainScore(how=c.OF_SPAN, weight=_WEIGHT),
    ),
    hint=_hint,
)
