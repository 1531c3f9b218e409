"""How many pods of a kind fit on each node at most, by amounts, and as far as they keep apart from each other."""

from __future__ import annotations

import numpy as np

from scheduler.schema import columns as c
from scheduler.schema import domains as of_domains
from scheduler.shapes.boards import Shape
from scheduler.state.cluster import Cluster

# More pods than a group may have.
MANY = 1 << 30


def count_fitting(cluster: Cluster, shape: Shape, beside: c.Ask | None = None) -> c.Ints:
    """Count [N] how many pods of a shape fit on each node at most, beside another pod if there is one.

    The board of the shape must be up to date. The count divides what is free by what a pod takes, also of the figures
    of all cards together. Cards that are shared unevenly may take fewer pods, and so may rules about other pods: only
    anti-affinity counts, node by node.
    """
    return _count_among(cluster, shape, shape.board.part >= 0, beside)


def count_by_amounts(cluster: Cluster, shape: Shape) -> c.Ints:
    """Count [N] the same on all nodes that no static rule refuses, whatever the board says of free and promised room."""
    refused = shape.board.static if shape.static is None else shape.static.refused
    return _count_among(cluster, shape, refused == 0, None)


def _count_among(cluster: Cluster, shape: Shape, rows: c.Flags, beside: c.Ask | None) -> c.Ints:
    nodes, ask = cluster.nodes.columns, shape.ask
    taken = (
        {}
        if beside is None
        else dict(zip(beside.resources.tolist(), beside.amounts.tolist(), strict=True))
    )
    counts = np.where(nodes.valid & rows, MANY, 0)
    for resource, amount, family in zip(
        ask.resources.tolist(), ask.amounts.tolist(), ask.by_cards.tolist(), strict=True
    ):
        if amount <= 0 or resource < 0:
            continue
        free = nodes.allocatable[resource] - nodes.requested[resource] - taken.get(resource, 0)
        fitting = np.maximum(free, 0) // amount
        if family >= 0:
            # Where cards are given away one by one, the node's own amount of them does not count.
            fitting = np.where(cluster.nodes.find_managed(family), MANY, fitting)
        np.minimum(counts, fitting, out=counts)
    if shape.asked.template.gpu is not None and ask.containers.size:
        _bound_by_cards(cluster, ask, counts)
    _bound_by_anti_affinity(shape.board.domains, counts)
    return counts


def _bound_by_cards(cluster: Cluster, ask: c.Ask, counts: c.Ints) -> None:
    """Bound the counts by what the cards of each node have free of cores, memory and places, all together."""
    pools, own = cluster.nodes.columns.pools, cluster.nodes.find_pools(ask.family)
    managed = pools.managed[own]
    n_cards = ask.containers[c.N_CARDS]
    for figure, asked in ((c.CORES, c.ASK_CORES), (c.MIB, c.ASK_MIB)):
        each = int((n_cards * ask.containers[asked]).sum())
        is_known = figure != c.CORES or not ask.containers[c.ASK_CORE_PERCENT].any()
        if each > 0 and is_known:
            free = pools.total[figure, own] - pools.used[figure, own]
            np.minimum(counts, np.where(managed, np.maximum(free, 0) // each, MANY), out=counts)


def _bound_by_anti_affinity(domains: of_domains.Domains, counts: c.Ints) -> None:
    """Bound the counts by 0 where a pod is from which those of the shape keep apart, and by 1 if they do so among themselves."""
    for t in np.flatnonzero(domains.tallies[:, of_domains.TALLY_KIND] == of_domains.APART).tolist():
        key = int(domains.tallies[t, of_domains.TALLY_KEY])
        domain = domains.domain[key] if key >= 0 else np.arange(counts.size)
        rows = np.flatnonzero(domain >= 0)
        counts[rows[domains.counts[t, domain[rows]] > 0]] = 0
        if domains.tallies[t, of_domains.TALLY_GAIN] > 0:
            counts[rows] = np.minimum(counts[rows], 1)
