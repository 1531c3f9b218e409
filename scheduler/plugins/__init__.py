"""Static filters and preferences: what depends on the pod's shape and the node's words only.

Belongs here: one file per rule of kube-scheduler, named after it, that fills masks or raw scores for
rows it is given, in the order of ``FILTERS``; a node has the reason of the first that refuses it.
Does not belong here: anything that changes with every placement (``kernels``), clients, clocks.
"""

from __future__ import annotations

from collections.abc import Callable

from scheduler.api.reasons import Refusal
from scheduler.api.templates import PodTemplate
from scheduler.plugins import node_affinity, node_ports, node_unschedulable, taints
from scheduler.schema.columns import Flags, Ints
from scheduler.state.nodes import NodeTable

# A filter says which of the given rows it refuses.
Filter = Callable[[PodTemplate, NodeTable, Ints], Flags]

FILTERS: tuple[tuple[Refusal, Filter], ...] = (
    (Refusal.UNSCHEDULABLE, node_unschedulable.refuses),
    (Refusal.TAINT, taints.refuses),
    (Refusal.AFFINITY, node_affinity.refuses),
    (Refusal.PORTS, node_ports.refuses),
)
