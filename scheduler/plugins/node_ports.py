"""NodePorts: host ports that are free on a node.

Ports change with placements, yet live here: pods with host ports are rare, come one per node, and
are placed one at a time, so a mask over the rows that moved is all it takes.
"""

from __future__ import annotations

import numpy as np

from scheduler.api.templates import PodTemplate
from scheduler.schema.columns import Flags, Ints
from scheduler.state.nodes import NodeTable


def refuses(template: PodTemplate, nodes: NodeTable, rows: Ints) -> Flags:
    """Rows where a host port of the pod is taken."""
    if not template.ports:
        return np.zeros(rows.size, np.bool_)
    return np.isin(rows, list(nodes.ports.taken(template.ports)))
