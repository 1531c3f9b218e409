"""Which devices of a pool a pod gets, by the rules of the pool's driver.

A driver names a chooser by its number (``Pools.chooser``). A chooser picks the cards of one container. A new chooser is a
module of its own and a line here.
"""

from __future__ import annotations

from scheduler.kernels._jit import kernel, part
from scheduler.kernels.devices import (
    gpus,
    groups,
    islands,
    linked,
    pairs,
    pools,
    spans,
    together,
    zones,
)
from scheduler.schema import columns as c


@kernel
def choose_devices(nodes: c.Nodes, cards: c.Cards, ask: c.Ask, row: int, s: c.Scratch) -> int:
    """Pick devices of the first family of an ask on one node for every container of the pod.

    Reads nodes, cards, ask; writes ``s.picks``, ``s.pick_mib``, ``s.pick_cores``, ``s.pick_slot``, ``s.pick_part`` (in
    the order in which they are picked), ``s.peak`` and ``s.cut`` (what the pod is charged per card of the node),
    ``s.choice.pairs`` and, on refusal, ``s.codes``.

    Returns:
        The number of picks, or -1 when a container does not fit.

    Cost: O(containers · cards²) for the sort, cards ≤ 16 in practice.
    """
    pool = pools.find_pool(nodes, ask, row)
    start, count = nodes.pools.start[pool], nodes.pools.count[pool]
    gpus.begin_choice(cards, start, count, s)
    linked.clear_pairs(s)
    n_picks = 0
    for slot in range(ask.containers.shape[1]):
        if ask.containers[c.N_CARDS, slot] == 0:
            continue
        first = s.first[c.FIRST_PICK] = n_picks
        n_picks = _choose_for_container(nodes, cards, ask, pool, slot, n_picks, s)
        if n_picks < 0:
            return -1
        gpus.hold_picks(ask, slot, start, first, n_picks, s)
    return n_picks


@part
def _choose_for_container(
    nodes: c.Nodes, cards: c.Cards, ask: c.Ask, pool: int, slot: int, n_picks: int, s: c.Scratch
) -> int:
    """Pick the devices of one container; return the number of picks so far, or -1."""
    chooser, start, count = (
        nodes.pools.chooser[pool],
        nodes.pools.start[pool],
        nodes.pools.count[pool],
    )
    if chooser == c.WALK:
        return gpus.choose_for_container(cards, ask, slot, start, count, n_picks, s)
    if chooser == c.ISLANDS:
        return islands.choose_for_container(cards, ask, slot, start, count, n_picks, s)
    if chooser == c.GROUPS:
        return groups.choose_for_container(cards, ask, slot, start, count, n_picks, s)
    if chooser == c.NETWORKS:
        return groups.choose_in_networks(cards, ask, slot, start, count, n_picks, s)
    if chooser == c.TOGETHER:
        return together.choose_for_container(cards, ask, slot, start, count, n_picks, s)
    if chooser == c.PAIRS:
        return pairs.choose_for_container(cards, ask, slot, start, count, n_picks, s)
    if chooser == c.SPANS:
        return spans.choose_for_container(cards, ask, slot, start, count, n_picks, s)
    if chooser == c.ZONES:
        return zones.choose_for_container(cards, ask, slot, start, count, n_picks, s)
    return -1
