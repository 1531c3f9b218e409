"""NodePorts: host ports that are free on a node.

Ports change with placements, yet live here: pods with host ports are rare, come one per node, and
are placed one at a time, so a mask over the rows that moved is all it takes.
"""

from __future__ import annotations

import numpy as np

from scheduler.api.templates import PodTemplate
from scheduler.kernels.columns import Flags, Ints
from scheduler.state.nodes import NodeTable, Port

_ANY = "0.0.0.0"  # noqa: S104 - compared with, not bound to


def refuses(template: PodTemplate, nodes: NodeTable, rows: Ints) -> Flags:
    """Rows where a host port of the pod is taken."""
    refused = np.zeros(rows.size, np.bool_)
    if template.ports:
        for i, row in enumerate(rows.tolist()):
            used = nodes.ports[row]
            refused[i] = any(
                _conflict(wanted, taken) for wanted in template.ports for taken in used
            )
    return refused


def _conflict(a: Port, b: Port) -> bool:
    return a[:2] == b[:2] and (a[2] == b[2] or _ANY in {a[2], b[2]})
