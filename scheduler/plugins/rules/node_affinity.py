"""NodeAffinity and nodeSelector: labels a node must have, or had better have, by the pod's word or its profile's."""

from __future__ import annotations

import numpy as np

from scheduler.api import selectors
from scheduler.api.kube_plugins import KubePlugins
from scheduler.api.pods.templates import PodTemplate, Whereabouts
from scheduler.api.selectors import NodeTerm, Requirement
from scheduler.plugins.contract import Change, Filter, Reason, Rule, Score
from scheduler.schema import columns as c
from scheduler.schema.columns import Flags, Ints
from scheduler.state.nodes import NodeTable

_NAME = "NodeAffinity"
Needs = tuple[tuple[tuple[str, str], ...], tuple[NodeTerm, ...] | None]
Wants = tuple[tuple[int, NodeTerm], ...]


def _needs(pod: Whereabouts) -> Needs | None:
    return (pod.selector, pod.required) if pod.selector or pod.required is not None else None


def refuses(needs: Needs, nodes: NodeTable, rows: Ints) -> Flags:
    """Rows that do not have the nodeSelector's labels, or match none of the required terms.

    An empty list of terms matches nothing.
    """
    selector, required = needs
    matches = np.ones(rows.size, np.bool_)
    for key, value in selector:
        matches &= _has_one_of(nodes, key, (value,), rows)
    if required is not None:
        any_term = np.zeros(rows.size, np.bool_)
        for term in required:
            any_term |= _matches(term, nodes, rows)
        matches &= any_term
    return ~matches


def _nothing(_: Whereabouts) -> None:
    """What the profile asks is asked of every pod."""


def _enforced(plugins: KubePlugins) -> Needs | None:
    required = plugins.added_affinity.required
    return None if required is None else ((), required)


def _wants(template: PodTemplate) -> Wants | None:
    return template.preferred or None


def _preferred(plugins: KubePlugins) -> Wants | None:
    return plugins.added_affinity.preferred or None


def _preference(wants: tuple[Wants | None, Wants | None], nodes: NodeTable, rows: Ints) -> Ints:
    """Sum of the weights of the preferred terms, the pod's and its profile's, that each row matches."""
    own, added = wants
    total = np.zeros(rows.size, np.int64)
    for weight, term in (*(own or ()), *(added or ())):
        total += weight * _matches(term, nodes, rows)
    return total


def _matches(term: NodeTerm, nodes: NodeTable, rows: Ints) -> Flags:
    result = np.ones(rows.size, np.bool_)
    for requirement in term.labels:
        result &= _label(requirement, nodes, rows)
    for requirement in term.names:
        named = np.equal(rows, nodes.row_of(requirement.values[0]))
        result &= named if requirement.operator == "In" else ~named
    return result


def _label(requirement: Requirement, nodes: NodeTable, rows: Ints) -> Flags:
    key, operator, values = requirement
    match operator:
        case "In":
            return _has_one_of(nodes, key, values, rows)
        case "NotIn":
            return ~_has_one_of(nodes, key, values, rows)
        case "Gt" | "Lt":
            return _compares(requirement, nodes, rows)
    present: Flags = nodes.label_column(key)[rows] >= 0
    return present if operator == "Exists" else ~present


def _has_one_of(nodes: NodeTable, key: str, values: tuple[str, ...], rows: Ints) -> Flags:
    # The column first: making it is what numbers the label's values.
    column = nodes.label_column(key)[rows]
    wanted = [n for n in map(nodes.label_values.find, values) if n >= 0]
    if len(wanted) == 1:
        return np.equal(column, wanted[0])
    return np.isin(column, wanted)


def _compares(requirement: Requirement, nodes: NodeTable, rows: Ints) -> Flags:
    """Gt and Lt: integer comparison of the label with the one value; a label that is none fails."""
    key, operator, values = requirement
    bound = selectors.integer(values[0])
    column = nodes.label_column(key)[rows]
    integers, is_integer = nodes.label_integers()
    if bound is None or not integers.size:
        return np.zeros(rows.size, np.bool_)
    figures = integers[column]
    passing: Flags = figures > bound if operator == "Gt" else figures < bound
    # Where the label is absent, -1 reads the last value: that says nothing.
    return passing & is_integer[column] & (column >= 0)


# Looked at before what the pod itself asks.
ENFORCED = Rule(
    name=_NAME,
    reasons=(Reason("node(s) didn't match scheduler-enforced node affinity", resolvable=False),),
    filter=Filter(needs=_nothing, refuses=refuses, of_profile=_enforced),
    helped_by=Change.NODE_ADDED | Change.NODE_LABELS,
)
RULE = Rule(
    name=_NAME,
    reasons=(Reason("node(s) didn't match Pod's node affinity/selector", resolvable=False),),
    filter=Filter(needs=_needs, refuses=refuses),
    score=Score(wants=_wants, raw=_preference, how=c.OF_MOST, weight=2, adds=_preferred),
    helped_by=Change.NODE_ADDED | Change.NODE_LABELS,
)
