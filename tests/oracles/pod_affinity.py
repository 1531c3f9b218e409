"""InterPodAffinity of kube-scheduler 1.37.1, one node, one pod and one term at a time, from raw objects.

Sources: interpodaffinity/filtering.go, scoring.go, plugin.go; framework.AffinityTerm. ``namespaces`` are
the labels of each by name. One that is not there has its name for a label and no other, as the API
server sees to; every namespace that a pod is in exists.
"""

from collections import Counter
from typing import Any

from tests.oracles.selectors import keys_of, labels_of, matches, namespace_of, with_own_values

Json = dict[str, Any]
Namespaces = dict[str, Json]
Pairs = Counter[tuple[str, str]]
NAME_LABEL = "kubernetes.io/metadata.name"
FITS = ("", "")
AFFINITY = ("node(s) didn't match pod affinity rules", "unresolvable")
ANTI_AFFINITY = ("node(s) didn't match pod anti-affinity rules", "unschedulable")
EXISTING = ("node(s) didn't satisfy existing pods anti-affinity rules", "unschedulable")
HARD_WEIGHT = 1
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def refusals(
    pod: Json, nodes: list[Json], pods: list[Json], namespaces: Namespaces | None = None
) -> dict[str, tuple[str, str]]:
    """(reason, status) of every node, both empty where the pod may go."""
    known = namespaces or {}
    near, far = required(pod, "podAffinity"), required(pod, "podAntiAffinity")
    wanted, unwanted, hated = Pairs(), Pairs(), Pairs()
    for node in nodes:
        for other in on(node, pods):
            # One pod must match all terms of affinity, or it counts for none.
            if near and all(is_peer(term, pod, other, known) for term in near):
                for term in near:
                    _count(wanted, node, term, 1)
            for term in far:
                if is_peer(term, pod, other, known):
                    _count(unwanted, node, term, 1)
            for term in required(other, "podAntiAffinity"):
                if is_peer(term, other, pod, known):
                    _count(hated, node, term, 1)
    # The first of a group that wants to be together may go where all keys are.
    first = not wanted and all(is_peer(term, pod, pod, known) for term in near)
    return {
        node["metadata"]["name"]: _refusal(node, near, far, (wanted, unwanted, hated), first=first)
        for node in nodes
    }


def _refusal(
    node: Json, near: list[Json], far: list[Json], pairs: tuple[Pairs, Pairs, Pairs], *, first: bool
) -> tuple[str, str]:
    wanted, unwanted, hated = pairs
    labels = labels_of(node)
    for term in near:
        if term["topologyKey"] not in labels:
            return AFFINITY
    for term in near:
        if not wanted[term["topologyKey"], labels[term["topologyKey"]]] and not first:
            return AFFINITY
    for term in far:
        key = term["topologyKey"]
        if key in labels and unwanted[key, labels[key]]:
            return ANTI_AFFINITY
    for key, value in labels.items():
        if hated[key, value]:
            return EXISTING
    return FITS


def raw_scores(
    pod: Json,
    nodes: list[Json],
    pods: list[Json],
    namespaces: Namespaces | None = None,
    hard_weight: int = HARD_WEIGHT,
) -> dict[str, int]:
    """The sum of the weights that speak for each node and against it."""
    known = namespaces or {}
    pairs = Pairs()
    for node in nodes:
        for other in on(node, pods):
            for field, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
                for weight, term in preferred(pod, field):
                    if is_peer(term, pod, other, known):
                        _count(pairs, node, term, sign * weight)
                for weight, term in preferred(other, field):
                    if is_peer(term, other, pod, known):
                        _count(pairs, node, term, sign * weight)
            for term in required(other, "podAffinity"):
                if is_peer(term, other, pod, known):
                    _count(pairs, node, term, hard_weight)
    return {
        node["metadata"]["name"]: sum(pairs[pair] for pair in labels_of(node).items())
        for node in nodes
    }


def scores(
    pod: Json,
    nodes: list[Json],
    pods: list[Json],
    candidates: list[str],
    namespaces: Namespaces | None = None,
    hard_weight: int = HARD_WEIGHT,
) -> dict[str, int]:
    """0..100 by candidate, 0 for all where all are alike."""
    raw = raw_scores(pod, nodes, pods, namespaces, hard_weight)
    raw = {node: score for node, score in raw.items() if node in candidates}
    low, high = min(raw.values(), default=0), max(raw.values(), default=0)
    if low == high:
        return dict.fromkeys(raw, 0)
    return {node: int(100.0 * ((score - low) / (high - low))) for node, score in raw.items()}


def is_peer(term: Json, owner: Json, other: Json, namespaces: Namespaces) -> bool:
    """Whether a term of ``owner`` is about ``other``."""
    listed, selector = term.get("namespaces") or [], term.get("namespaceSelector")
    there = namespace_of(other)
    if not listed and selector is None:
        listed = [namespace_of(owner)]
    labels = {NAME_LABEL: there} | namespaces.get(there, {})
    if there not in listed and not matches(selector, labels):
        return False
    written = term.get("labelSelector")
    merged = with_own_values(written, labels_of(owner), term, keys_of(written))
    return matches(merged, labels_of(other))


def required(pod: Json, field: str) -> list[Json]:
    found: list[Json] = _rules(pod, field).get(_REQUIRED) or []
    return found


def preferred(pod: Json, field: str) -> list[tuple[int, Json]]:
    return [
        (one["weight"], one["podAffinityTerm"]) for one in _rules(pod, field).get(_PREFERRED) or ()
    ]


def _rules(pod: Json, field: str) -> Json:
    rules: Json = (pod["spec"].get("affinity") or {}).get(field) or {}
    return rules


def on(node: Json, pods: list[Json]) -> list[Json]:
    """The pods of a node, those being deleted among them."""
    return [one for one in pods if one["spec"].get("nodeName") == node["metadata"]["name"]]


def _count(pairs: Pairs, node: Json, term: Json, amount: int) -> None:
    key = term["topologyKey"]
    if key in labels_of(node):
        pairs[key, labels_of(node)[key]] += amount
