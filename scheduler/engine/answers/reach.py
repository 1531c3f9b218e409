"""Which nodes a pod accepts, for a pod that a tenant is about to create: whatever it says, the answer takes a few milliseconds.

Labels are compared column by column, and a label that no node has costs nothing. The thread of the webhook is the one that compares,
so nothing is kept for the next pod, and only what is handed in is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import numpy as np

from scheduler.api import wire
from scheduler.api.pods.tolerations import TolerationKey, is_hard, tolerates
from scheduler.api.selectors import NodeTerm, Requirement, parse_integer, read_node_terms
from scheduler.schema import columns as c
from scheduler.state.nodes import NodeFacts, NodeTable, TaintKey

# The most that is compared: requirements, labels and tolerations; values of requirements; labels that nodes have.
_WORDS_MAX, _VALUES_MAX, _LABELS_MAX = 200, 2000, 10
# Nodes may have a taint each: the most tolerations that are compared with the different taints of all nodes.
_MATCHES_MAX = 20_000
# Kubernetes sets these taints for as long as a state lasts.
_STATES = "node.kubernetes.io/"
_ABSENT = 0
# Operators whose requirements a node without the label meets.
_OF_ABSENT = frozenset({"NotIn", "DoesNotExist"})


class Reach:
    """Which nodes a pod accepts by its node selector, its required node affinity and its tolerations.

    Taints that Kubernetes sets for as long as a state lasts do not count, and neither do those whose key is a resource of
    devices: the API server may let pods that request the resource tolerate them. A pod that says more than the bounds
    allow is taken for one that accepts every node: it waits if it does not.
    """

    def __init__(self, pod: wire.Pod | None, nodes: NodeTable) -> None:
        """``pod``: None for one that accepts every node."""
        accepted = None if pod is None or _says_much(pod) else _find_accepted(pod, nodes)
        self._accepted = accepted

    def find_first(self, nodes: c.Ints) -> int:
        """Find the place of the first node, by row, that the pod accepts; -1 for none."""
        if self._accepted is None:
            return 0 if nodes.size else -1
        # Nodes that have come since are accepted.
        is_known = nodes < self._accepted.size
        found = np.flatnonzero(~is_known | self._accepted[np.where(is_known, nodes, 0)])
        return int(found[0]) if found.size else -1


def _says_much(pod: wire.Pod) -> bool:
    spec = pod.spec
    words = len(spec.node_selector or ()) + len(spec.tolerations or ())
    values = 0
    for term in _list_terms(pod) or ():
        if words > _WORDS_MAX or values > _VALUES_MAX:
            return True
        expressions = (*(term.match_expressions or ()), *(term.match_fields or ()))
        words += 1 + len(expressions)
        values += sum(len(one.values or ()) for one in expressions)
    return words > _WORDS_MAX or values > _VALUES_MAX


def _list_terms(pod: wire.Pod) -> Sequence[wire.NodeTerm] | None:
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    return None if not required else required.node_selector_terms or ()


def _find_accepted(pod: wire.Pod, nodes: NodeTable) -> c.Flags | None:
    """Find [N] which nodes a pod accepts; None if that would take too long."""
    facts = list(nodes.facts)
    said = _list_terms(pod)
    terms = None if said is None else read_node_terms(said)
    chosen = (pod.spec.node_selector or {}).items()
    selector = [Requirement(key, "In", (text,)) for key, text in chosen]
    wanted = {one.key for one in (*selector, *(one for term in terms or () for one in term.labels))}
    known = [key for key in wanted if nodes.has_label(key)]
    if len(known) > _LABELS_MAX:
        return None
    labels_of = [{} if one is None else one.labels for one in facts]
    labels = {key: _Column([there.get(key) for there in labels_of]) for key in known}
    has_names = any(term.names for term in terms or ())
    names = _Column([one and one.name for one in facts] if has_names else [])

    def meet_all(some: Iterable[Requirement]) -> c.Flags:
        met = np.ones(len(facts), np.bool_)
        for one in some:
            column = labels.get(one.key)
            met &= one.operator in _OF_ABSENT if column is None else column.find_meeting(one)
        return met

    def meet_term(term: NodeTerm) -> c.Flags:
        met = meet_all(term.labels)
        for one in term.names:
            met &= names.find_meeting(one)
        return met

    tolerated = _find_tolerated(pod, facts, nodes.devices.is_family)
    if tolerated is None:
        return None
    accepted = meet_all(selector) & tolerated
    if terms is not None:
        matched = np.zeros(len(facts), np.bool_)
        for term in terms:
            matched |= meet_term(term)
        accepted &= matched
    # A row whose node has just gone.
    accepted |= np.array([one is None for one in facts], np.bool_)
    return accepted


def _find_tolerated(
    pod: wire.Pod, facts: Sequence[NodeFacts | None], is_family: Callable[[str], bool]
) -> c.Flags | None:
    """Find [N] the nodes whose taints a pod tolerates; None if that would take too long."""
    tolerations: list[TolerationKey] = [
        (one.key, one.operator or "Equal", one.value, one.effect)
        for one in pod.spec.tolerations or ()
    ]
    known: dict[tuple[TaintKey, ...], bool] = {(): True}
    left, found = _MATCHES_MAX, np.ones(len(facts), np.bool_)
    for row, one in enumerate(facts):
        if one is None or not one.taints:
            continue
        is_tolerated = known.get(one.taints)
        if is_tolerated is None:
            left -= len(one.taints) * len(tolerations)
            if left < 0:
                return None
            is_tolerated = known[one.taints] = not any(
                is_hard(taint)
                and not (taint[0].startswith(_STATES) or is_family(taint[0]))
                and not tolerates(tolerations, taint)
                for taint in one.taints
            )
        found[row] = is_tolerated
    return found


class _Column:
    """The values of one label on all nodes, each by a number."""

    def __init__(self, values: Sequence[str | None]) -> None:
        self._numbers = {one: i for i, one in enumerate(dict.fromkeys((None, *values)))}
        numbers = map(self._numbers.__getitem__, values)
        self._of_row = np.fromiter(numbers, np.int64, len(values))

    def find_meeting(self, one: Requirement) -> c.Flags:
        """Find [N] the nodes whose label meets a requirement of a NodeSelectorTerm."""
        numbers = self._numbers
        met = np.zeros(len(numbers), np.bool_)
        match one.operator:
            case "In" | "NotIn":
                met[[numbers[text] for text in one.values if text in numbers]] = True
                met = met if one.operator == "In" else ~met
            case "Exists" | "DoesNotExist":
                met[_ABSENT] = True
                met = met if one.operator == "DoesNotExist" else ~met
            case _:
                whole, is_whole = self._whole
                bound = parse_integer(one.values[0]) or 0
                met = is_whole & (whole > bound if one.operator == "Gt" else whole < bound)
        return met[self._of_row]

    @cached_property
    def _whole(self) -> tuple[c.Ints, c.Flags]:
        """The values that are whole numbers, and which are."""
        found = [None if text is None else parse_integer(text) for text in self._numbers]
        is_whole = np.array([one is not None for one in found], np.bool_)
        return np.array([one or 0 for one in found], np.int64), is_whole
