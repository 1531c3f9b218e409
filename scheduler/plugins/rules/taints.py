"""TaintToleration: taints that keep a pod off a node, or make the node less preferred."""

from __future__ import annotations

import numpy as np

from scheduler.api.pods.templates import PodTemplate, TolerationKey, Whereabouts
from scheduler.plugins.contract import Change, Filter, Held, Hint, Reason, Rule, Score
from scheduler.schema import columns as c
from scheduler.schema.columns import Flags, Ints
from scheduler.state.nodes import NodeTable, TaintKey

_HARD = frozenset({"NoSchedule", "NoExecute"})
_SOFT = "PreferNoSchedule"


Tolerations = tuple[TolerationKey, ...]


def _needs(pod: Whereabouts) -> Tolerations:
    return pod.tolerations


def refuses(tolerations: Tolerations, nodes: NodeTable, rows: Ints) -> Flags:
    """Rows with a NoSchedule or NoExecute taint that no toleration matches."""
    refused = np.array(
        [
            any(is_hard(taint) and not tolerates(tolerations, taint) for taint in taint_set)
            for taint_set in nodes.taint_sets.values
        ],
        np.bool_,
    )
    flags: Flags = refused[nodes.taint_set[rows]]
    return flags


def is_hard(taint: TaintKey) -> bool:
    """Whether a taint keeps off pods that do not tolerate it; others only make a node less preferred."""
    return taint[2] in _HARD


def _wants(template: PodTemplate) -> Tolerations:
    return tuple(t for t in template.tolerations if t[3] in {"", _SOFT})


def _soft_count(tolerations: Tolerations, nodes: NodeTable, rows: Ints) -> Ints:
    """How many PreferNoSchedule taints of each row are not tolerated."""
    counts = np.array(
        [
            sum(taint[2] == _SOFT and not tolerates(tolerations, taint) for taint in taint_set)
            for taint_set in nodes.taint_sets.values
        ],
        np.int64,
    )
    count: Ints = counts[nodes.taint_set[rows]]
    return count


def tolerates(tolerations: Tolerations, taint: TaintKey) -> bool:
    """Whether any of a pod's tolerations matches a taint (key, value, effect)."""
    return any(_matches(toleration, taint) for toleration in tolerations)


def _matches(toleration: TolerationKey, taint: TaintKey) -> bool:
    key, operator, value, effect = toleration
    if effect and effect != taint[2]:
        return False
    if key and key != taint[0]:
        return False
    if operator == "Exists":
        return True
    return bool(key) and operator == "Equal" and value == taint[1]


def _hint(_: Held) -> Hint:
    return Hint(here=((Change.NODE_TAINTS, None),))


RULE = Rule(
    name="TaintToleration",
    reasons=(Reason("node(s) had untolerated taint(s)", resolvable=False),),
    filter=Filter(needs=_needs, refuses=refuses),
    score=Score(wants=_wants, raw=_soft_count, how=c.LESS_OF_MOST, weight=3),
    hint=_hint,
)
