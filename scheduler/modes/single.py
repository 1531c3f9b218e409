"""The places of nodes with one device each: such a node is one bundle of resources, which includes its card.

If nine tenths of a family's devices are alone on their nodes, there are no runs of cards to keep together, and the rest
of a card is useful only with the CPU, the memory and the bandwidth of the same node. So such a node is scored like a
node without devices, over all its resources. Uneven use counts, because the resource that runs out first strands all
other resources.
"""

from __future__ import annotations

import numpy as np

from scheduler.kernels.devices.pools import WHOLE_CORES
from scheduler.modes import places
from scheduler.modes.empty_nodes import EmptyNodes
from scheduler.modes.places import Counts, Nodes
from scheduler.schema import columns as c
from scheduler.schema import places as schema
from scheduler.schema.places import Places
from scheduler.state.cluster import Cluster
from scheduler.state.demand import DemandShape

_ALONE = 0.9
# With one node there is nothing to choose.
_NODES_LEAST = 2
_STEP, _FULL, _PART, _UNEVEN, _SQUARE = 30.0, 1.0, 0.5, 12_000.0, 2_400.0


def make_places(cluster: Cluster, nodes: EmptyNodes, family: int, counts: Counts) -> Places:
    """Make the places of one family; empty if too many of its devices share a node with others."""
    if cluster.nodes.columns.pools.carved.any():
        # A bundle of resources knows nothing of the parts of its card.
        return schema.make_empty()
    total, alone = float(nodes.count.sum()), float((nodes.count == 1).sum())
    if alone < max(_NODES_LEAST, _ALONE * total):
        return schema.make_empty()
    asking = {
        shape: n
        for shape, n in counts.items()
        if 0 < shape.cards <= 1 and shape.family == nodes.family
    }
    sort = _gather_nodes(cluster, nodes, family, asking)
    told = {shape: _read_amounts(shape, nodes, sort) for shape in asking}
    learnt = places.learn_places(
        sort, places.gather_pods(cluster, sort, told, asking), believed=False
    )
    if learnt is None:
        return schema.make_empty()
    weights = np.zeros(schema.N_WEIGHTS)
    weights[schema.STEP], weights[schema.FULL], weights[schema.PART] = _STEP, _FULL, _PART
    weights[schema.UNEVEN], weights[schema.SQUARE] = _UNEVEN, _SQUARE
    return places.weigh_places(learnt.places, learnt.places.worth, weights)


def _gather_nodes(cluster: Cluster, nodes: EmptyNodes, family: int, counts: Counts) -> Nodes:
    columns = cluster.nodes.columns
    rows = np.flatnonzero(columns.valid & (nodes.count == 1))
    # The number of pods that a node takes is not part of the bundle.
    told = c.CPU, c.MEMORY
    listed = [*told, *places.list_others(cluster, counts, (*told, c.PODS))]
    there = [columns.allocatable[row, rows].astype(np.float64) for row in listed]
    pools = cluster.nodes.find_pools(family)[rows]
    if columns.pools.managed[pools].all():
        figures = columns.pools.total[:, pools].astype(np.float64)
        listed += [schema.OF_CORES, schema.OF_MIB]
        there += [figures[c.CORES], figures[c.MIB]]
    else:
        listed.append(schema.OF_CORES)
        there.append(np.full(rows.size, float(WHOLE_CORES)))
    amounts = np.array(there)
    return Nodes(rows, np.array(listed, np.int64), amounts, amounts.max(axis=1))


def _read_amounts(shape: DemandShape, nodes: EmptyNodes, sort: Nodes) -> places.Amounts:
    told = {c.CPU: shape.cpu, c.MEMORY: shape.memory, schema.OF_CORES: shape.cores}
    if schema.OF_MIB in sort.resources:
        told[schema.OF_MIB] = shape.mib or int(nodes.mean_mib * shape.percent / WHOLE_CORES)
    return told
