"""Which devices of a pool a pod gets, by the rules of the pool's driver.

A driver names a chooser by its number (``Pools.chooser``). A new chooser is a kernel of its own and a line here.
"""

from __future__ import annotations

from scheduler.kernels._jit import part
from scheduler.kernels.devices import gpus, groups, islands, links, pairs, pools, spans, together
from scheduler.schema import columns as c


@part
def choose_devices(nodes: c.Nodes, cards: c.Cards, ask: c.Ask, row: int, s: c.Scratch) -> int:
    """Pick devices of the first family of an ask on one node for every container of the pod.

    Every chooser reads nodes, cards and ask, and writes what ``gpus.choose_cards`` writes.

    Returns:
        The number of picks, or -1 when a container does not fit.
    """
    chooser = nodes.pools.chooser[pools.find_pool(nodes, ask, row)]
    if chooser == c.WALK:
        return gpus.choose_cards(nodes, cards, ask, row, s)
    if chooser == c.ISLANDS:
        return islands.choose_linked(nodes, cards, ask, row, s)
    if chooser in (c.GROUPS, c.NETWORKS):
        return groups.choose_grouped(nodes, cards, ask, row, s)
    if chooser == c.TOGETHER:
        return together.choose_together(nodes, cards, ask, row, s)
    if chooser == c.PAIRS:
        return pairs.choose_in_pairs(nodes, cards, ask, row, s)
    if chooser == c.SPANS:
        return spans.choose_neighbors(nodes, cards, ask, row, s)
    if chooser == c.LINKS:
        return links.choose_in_zones(nodes, cards, ask, row, s)
    return -1
