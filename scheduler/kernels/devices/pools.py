"""By which of a node's pools of devices a pod is judged."""

from __future__ import annotations

from scheduler.kernels._jit import tiny
from scheduler.schema import columns as c

# What a device that is only counted counts as, in percent of cores.
WHOLE_CORES = 100


@tiny
def find_pool(nodes: c.Nodes, ask: c.Ask, row: int) -> int:
    """That of the first family that the pod asks; for a pod that asks no devices the node's first."""
    return int(ask.pool if ask.pool >= 0 else nodes.pool[row])


@tiny
def is_by_cards(nodes: c.Nodes, ask: c.Ask, row: int) -> bool:
    """Whether the pod is given cards on the node one by one, so that they have to be chosen."""
    return bool(ask.pool >= 0 and nodes.managed[ask.pool, row])


@tiny
def count_devices(nodes: c.Nodes, pool: int, row: int) -> int:
    """Devices that the pods on a node ask of a pool that is counted."""
    return int(nodes.requested[c.DEVICES_AT + pool, row])
