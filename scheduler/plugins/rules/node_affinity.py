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


def _needs(pod: Whereabouts) -> Needs | None:
    return (pod.selector, pod.required) if pod.selector or pod.required is not None else None


def refuses(needs: Needs, nodes: NodeTable, rows: Ints) -> Flags:
    """Rows that do not have the nodeSelector's labels, or match none of the required terms.

    An empty list of terms matches nothing.
    """
    selector, required = needs
    matches = np.ones(rows.size, np.bool_)
    for key, value in selector:
        matches &= node_terms.has_one_of(nodes, key, (value,), rows)
    if required is not None:
        matches &= node_terms.any_of(required, nodes, rows)
    return ~matches


def _nothing(_: Whereabouts) -> None:
    """What the profile requires is required for every pod."""


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
        total += weight * node_terms.matches(term, nodes, rows)
    return total


def _hint(held: Held) -> Hint:
    """A node gets a label that the pod requires, or the value of a compared label changes."""
    return Hint(here=tuple(dict.fromkeys(triggers(held.template.selector, held.template.required))))


def triggers(
    selector: tuple[tuple[str, str], ...], required: tuple[NodeTerm, ...] | None
) -> Iterator[Trigger]:
    """The changes of labels by which a node may come to match."""
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
    filter=Filter(needs=_nothing, refuses=refuses, of_profile=_enforced),
)
RULE = Rule(
    name=_NAME,
    reasons=(Reason("node(s) didn't match Pod's node affinity/selector", resolvable=False),),
    filter=Filter(needs=_needs, refuses=refuses),
    score=Score(wants=_wants, raw=_preference, how=c.OF_MOST, weight=2, adds=_preferred),
    hint=_hint,
)
