"""TaintToleration: taints keep a pod off a node, or make the node less preferred."""

from __future__ import annotations

import numpy as np

from scheduler.api.pods.templates import PodTemplate, Whereabouts
from scheduler.api.pods.tolerations import TolerationKey, is_hard, tolerates
from scheduler.plugins.contract import Change, Filter, Held, Hint, Reason, Rule, Score
from scheduler.schema import columns as c
from scheduler.schema.columns import Flags, Ints
from scheduler.state.nodes import NodeTable

_SOFT = "PreferNoSchedule"


Tolerations = tuple[TolerationKey, ...]


def _read_tolerations(pod: Whereabouts) -> Tolerations:
    return pod.tolerations


def find_refused(tolerations: Tolerations, nodes: NodeTable, rows: Ints) -> Flags:
    """Find the rows with a NoSchedule or NoExecute taint that no toleration matches."""
    refused = np.array(
        [
            any(is_hard(taint) and not tolerates(tolerations, taint) for taint in taint_set)
            for taint_set in nodes.taint_sets.values
        ],
        np.bool_,
    )
    flags: Flags = refused[nodes.taint_set[rows]]
    return flags


def _read_soft_tolerations(template: PodTemplate) -> Tolerations:
    return tuple(t for t in template.tolerations if t[3] in {"", _SOFT})


def _count_soft_taints(tolerations: Tolerations, nodes: NodeTable, rows: Ints) -> Ints:
    """Count the PreferNoSchedule taints of each row that are not tolerated."""
    counts = np.array(
        [
            sum(taint[2] == _SOFT and not tolerates(tolerations, taint) for taint in taint_set)
            for taint_set in nodes.taint_sets.values
        ],
        np.int64,
    )
    count: Ints = counts[nodes.taint_set[rows]]
    return count


def _make_hint(_: Held) -> Hint:
    return Hint(here=((Change.NODE_TAINTS, None),))


RULE = Rule(
    name="TaintToleration",
    reasons=(Reason("node(s) had untolerated taint(s)", resolvable=False),),
    filter=Filter(needs=_read_tolerations, refuses=find_refused),
    score=Score(wants=_read_soft_tolerations, raw=_count_soft_taints, how=c.LESS_OF_MOST, weight=3),
    hint=_make_hint,
)
