"""NodeAffinity whose terms name nodes by ``metadata.name``: all other nodes are refused before any rule is evaluated.

kube-scheduler does this in PreFilter, and gives another reason than for labels.
"""

from __future__ import annotations

import numpy as np

from scheduler.api.pods.templates import Whereabouts
from scheduler.plugins.contract import Filter, Held, Hint, Reason, Rule
from scheduler.schema.columns import Flags, Ints
from scheduler.state.nodes import NodeTable

_NAME = "NodeAffinity"
Names = tuple[str, ...]


def _read_names(pod: Whereabouts) -> Names | None:
    return pod.node_names or None


def _find_others(names: Names, nodes: NodeTable, rows: Ints) -> Flags:
    return np.isin(rows, [nodes.find_row(name) for name in names], invert=True)


def _read_contradiction(pod: Whereabouts) -> bool | None:
    return True if pod.node_names == () else None


def _refuse_all(_: bool, __: NodeTable, rows: Ints) -> Flags:
    return np.ones(rows.size, np.bool_)


def _make_hint(_: Held) -> Hint:
    """No change helps: a node never gets another name. A node that is added always wakes the pods."""
    return Hint()


OTHERS = Rule(
    name=_NAME,
    reasons=(Reason("node(s) didn't satisfy plugin(s) [NodeAffinity]", resolvable=False),),
    filter=Filter(needs=_read_names, refuses=_find_others, lasting=False),
    hint=_make_hint,
)
CONTRADICTION = Rule(
    name=_NAME,
    reasons=(Reason("pod affinity terms conflict", resolvable=False),),
    filter=Filter(needs=_read_contradiction, refuses=_refuse_all, lasting=False),
    hint=_make_hint,
    is_of_pod=True,
)
