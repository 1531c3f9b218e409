"""NodeAffinity whose terms name nodes by ``metadata.name``: other nodes are left out before any rule is evaluated.

kube-scheduler does it in PreFilter, and its reason is another one than that of the labels.
"""

from __future__ import annotations

import numpy as np

from scheduler.api.pods.templates import Whereabouts
from scheduler.plugins.contract import Filter, Held, Hint, Reason, Rule
from scheduler.schema.columns import Flags, Ints
from scheduler.state.nodes import NodeTable

_NAME = "NodeAffinity"
Names = tuple[str, ...]


def _names(pod: Whereabouts) -> Names | None:
    return pod.node_names or None


def _others(names: Names, nodes: NodeTable, rows: Ints) -> Flags:
    return np.isin(rows, [nodes.row_of(name) for name in names], invert=True)


def _contradiction(pod: Whereabouts) -> bool | None:
    return True if pod.node_names == () else None


def _all(_: bool, __: NodeTable, rows: Ints) -> Flags:
    return np.ones(rows.size, np.bool_)


def _hint(_: Held) -> Hint:
    """Only a node that is added has another name."""
    return Hint()


OTHERS = Rule(
    name=_NAME,
    reasons=(Reason("node(s) didn't satisfy plugin(s) [NodeAffinity]", resolvable=False),),
    filter=Filter(needs=_names, refuses=_others, lasting=False),
    hint=_hint,
)
CONTRADICTION = Rule(
    name=_NAME,
    reasons=(Reason("pod affinity terms conflict", resolvable=False),),
    filter=Filter(needs=_contradiction, refuses=_all, lasting=False),
    hint=_hint,
    is_of_pod=True,
)
