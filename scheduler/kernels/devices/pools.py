"""By which of a node's pools of devices a pod is judged."""

from __future__ import annotations

from scheduler.kernels._jit import tiny
from scheduler.schema import columns as c

# The cores of a GPU, in percent.
WHOLE_CORES = 100


@tiny
def find_pool(nodes: c.Nodes, ask: c.Ask, row: int) -> int:
    """Return the node's pool of the first family that the pod asks; for a pod that asks no devices the node's first pool.

    ``NO_POOL`` where the node has no such pool.
    """
    if ask.family < 0:
        return find_first(nodes, row)
    return find_family(nodes, ask.family, row)


@tiny
def find_first(nodes: c.Nodes, row: int) -> int:
    """Return the first pool of a node, ``NO_POOL`` for a node without devices."""
    return int(nodes.first_pool[row])


@tiny
def find_family(nodes: c.Nodes, family: int, row: int) -> int:
    """Return the pool of a family whose devices pods on a node get, ``NO_POOL`` for none: the node's own before a shared one."""
    for pool in range(nodes.first_pool[row], nodes.first_pool[row] + nodes.n_pools[row]):
        if nodes.pools.family[pool] == family:
            return int(pool)
    for i in range(nodes.shared.size):
        if nodes.pools.family[nodes.shared[i]] == family and nodes.reach[i, row]:
            return int(nodes.shared[i])
    return c.NO_POOL


@tiny
def is_by_cards(nodes: c.Nodes, ask: c.Ask, row: int) -> bool:
    """Whether the pod is given cards on the node one by one, so that they have to be chosen."""
    return bool(ask.family >= 0 and nodes.pools.managed[find_family(nodes, ask.family, row)])


@tiny
def count_devices(nodes: c.Nodes, pool: int, row: int) -> int:
    """Count the devices that the pods on a node ask of a pool that is counted."""
    return int(nodes.requested[nodes.pools.resource[pool], row])


@tiny
def measure_devices(nodes: c.Nodes, pool: int, n: int) -> tuple[float, float]:
    """Measure n devices of a pool that is counted: percent of the cores of one GPU, and MiB."""
    part = nodes.pools.part
    return n * part[c.PART_GPUS, pool] * WHOLE_CORES, n * part[c.PART_MIB, pool]
