"""NodeAffinity and nodeSelector: labels that the pod or its profile requires or prefers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from scheduler.api.kube_plugins import KubePlugins
from scheduler.api.pods.templates import PodTemplate, Whereabouts
from scheduler.api.selectors import NodeTerm
from scheduler.plugins import node_terms
from scheduler.plugins.contract import Change, Filter, Held, Hint, Reason, Rule, Score, Trigger
from scheduler.schema import columns as c
from scheduler.schema.columns import Flags, Ints
from scheduler.state.nodes import NodeTable

_NAME = "NodeAffinity"
Needs = tuple[tuple[tuple[str, str], ...], tuple[NodeTerm, ...] | None]
Wants = tuple[tuple[int, NodeTerm], ...]


def _read_needs(pod: Whereabouts) -> Needs | None:
    return (pod.selector, pod.required) if pod.selector or pod.required is not None else None


def find_refused(needs: Needs, nodes: NodeTable, rows: Ints) -> Flags:
    """Find the rows that lack a label of the nodeSelector, or match none of the required terms.

    An empty list of terms matches nothing.
    """
    selector, required = needs
    matches = np.ones(rows.size, np.bool_)
    for key, value in selector:
        matches &= node_terms.match_values(nodes, key, (value,), rows)
    if required is not None:
        matches &= node_terms.match_any(required, nodes, rows)
    return ~matches


def _read_nothing(_: Whereabouts) -> None:
    """Return None: the filter reads nothing from the pod, because the profile's affinity holds for every pod."""


def _read_enforced(plugins: KubePlugins) -> Needs | None:
    required = plugins.added_affinity.required
    return None if required is None else ((), required)


def _read_wants(template: PodTemplate) -> Wants | None:
    return template.preferred or None


def _read_preferred(plugins: KubePlugins) -> Wants | None:
    return plugins.added_affinity.preferred or None


def _score_nodes(wants: tuple[Wants | None, Wants | None], nodes: NodeTable, rows: Ints) -> Ints:
    """Sum up the weights of the preferred terms of the pod and of its profile that each row matches."""
    own, added = wants
    total = np.zeros(rows.size, np.int64)
    for weight, term in (*(own or ()), *(added or ())):
        total += weight * node_terms.match_term(term, nodes, rows)
    return total


def _make_hint(held: Held) -> Hint:
    """A node gets a label that the pod requires, or the value of a compared label changes."""
    return Hint(
        here=tuple(dict.fromkeys(list_triggers(held.template.selector, held.template.required)))
    )


def list_triggers(
    selector: tuple[tuple[str, str], ...], required: tuple[NodeTerm, ...] | None
) -> Iterator[Trigger]:
    """List the changes of labels after which a node may match."""
    for pair in selector:
        yield Change.NODE_LABELS, pair
    for term in required or ():
        for key, operator, values in term.labels:
            if operator == "In":
                yield from ((Change.NODE_LABELS, (key, value)) for value in values)
            else:
                yield Change.NODE_LABELS, key


# Checked before what the pod itself requires.
ENFORCED = Rule(
    name=_NAME,
    reasons=(Reason("node(s) didn't match scheduler-enforced node affinity", resolvable=False),),
    filter=Filter(needs=_read_nothing, refuses=find_refused, of_profile=_read_enforced),
)
RULE = Rule(
    name=_NAME,
    reasons=(Reason("node(s) didn't match Pod's node affinity/selector", resolvable=False),),
    filter=Filter(needs=_read_needs, refuses=find_refused),
    score=Score(wants=_read_wants, raw=_score_nodes, how=c.OF_MOST, weight=2, adds=_read_preferred),
    hint=_make_hint,
)
