"""TaintToleration: taints that keep a pod off a node, or would rather have it elsewhere."""

from __future__ import annotations

import numpy as np

from scheduler.api.templates import PodTemplate, TolerationKey, Whereabouts
from scheduler.schema.columns import Flags, Ints
from scheduler.state.nodes import NodeTable, TaintKey

_HARD = frozenset({"NoSchedule", "NoExecute"})
_SOFT = "PreferNoSchedule"


def refuses(template: Whereabouts, nodes: NodeTable, rows: Ints) -> Flags:
    """Rows with a NoSchedule or NoExecute taint that no toleration matches."""
    refused = np.array(
        [
            any(taint[2] in _HARD and not tolerates(template, taint) for taint in taint_set)
            for taint_set in nodes.taint_sets.values
        ],
        np.bool_,
    )
    flags: Flags = refused[nodes.taint_set[rows]]
    return flags


def soft_count(template: PodTemplate, nodes: NodeTable, rows: Ints) -> Ints:
    """How many PreferNoSchedule taints of each row are not tolerated (raw score, lower is better)."""
    soft = [t for t in template.tolerations if t[3] in {"", _SOFT}]
    counts = np.array(
        [
            sum(
                taint[2] == _SOFT and not any(_matches(t, taint) for t in soft)
                for taint in taint_set
            )
            for taint_set in nodes.taint_sets.values
        ],
        np.int64,
    )
    count: Ints = counts[nodes.taint_set[rows]]
    return count


def tolerates(template: Whereabouts, taint: TaintKey) -> bool:
    """Whether any of the pod's tolerations matches a taint (key, value, effect)."""
    return any(_matches(toleration, taint) for toleration in template.tolerations)


def _matches(toleration: TolerationKey, taint: TaintKey) -> bool:
    key, operator, value, effect = toleration
    if effect and effect != taint[2]:
        return False
    if key and key != taint[0]:
        return False
    if operator == "Exists":
        return True
    return bool(key) and operator == "Equal" and value == taint[1]
