"""NodeUnschedulable: a cordoned node, unless its taint is tolerated."""

from __future__ import annotations

import numpy as np

from scheduler.api import names
from scheduler.api.templates import PodTemplate
from scheduler.plugins import taints
from scheduler.schema.columns import Flags, Ints
from scheduler.state.nodes import NodeTable


def refuses(template: PodTemplate, nodes: NodeTable, rows: Ints) -> Flags:
    """Rows whose node is marked unschedulable."""
    if taints.tolerates(template, (names.UNSCHEDULABLE_TAINT, "", "NoSchedule")):
        return np.zeros(rows.size, np.bool_)
    return nodes.unschedulable[rows]
