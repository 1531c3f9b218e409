"""Classes of nodes that are alike, kept up with the rows that moved.

Nodes are alike when every column that a score, a fit or a choice of cards reads is equal, but for names:
ranks, rows of cards and their UUIDs. Of devices for claims they have the same state, see ``devices/device_states.py``.
"""

from __future__ import annotations

from scheduler.kernels._jit import kernel, part, tiny
from scheduler.kernels.class_table import find_bucket, join_class, leave_class, mix_figure
from scheduler.kernels.devices import pools
from scheduler.schema import columns as c
from scheduler.schema.cold import Classes
from scheduler.schema.handles import Ints1

_PRICE_STEPS = 1 << 30


@kernel
def update_classes(
    tables: c.Tables, demand: c.Demand, classes: Classes, family: int, rows: Ints1
) -> None:
    """Class the rows that moved anew; a row may be named twice. O(rows · (resources + cards)).

    Only cards of the ``family`` are compared, -1: those of the first pool of each node.
    """
    nodes, cards, states = tables.nodes, tables.cards, tables.devices.states
    # All rows leave before any row joins: a row with which others are compared must be as it was when it joined.
    for i in range(rows.size):
        if classes.of[rows[i]] >= 0:
            leave_class(classes, rows[i])
    for i in range(rows.size):
        if nodes.valid[rows[i]] and classes.of[rows[i]] < 0:
            _join_class(nodes, cards, states, demand, classes, family, rows[i])


@part
def _join_class(
    nodes: c.Nodes,
    cards: c.Cards,
    states: Ints1,
    demand: c.Demand,
    classes: Classes,
    family: int,
    row: int,
) -> None:
    digest = _digest_node(nodes, cards, demand, _find_pool(nodes, family, row), row)
    digest = mix_figure(digest, states[row])
    own = find_bucket(classes, digest)
    while own >= 0:
        other = classes.head[own]
        if (
            classes.digest[own] == digest
            and states[other] == states[row]
            and are_alike(nodes, cards, demand, family, other, row)
        ):
            break
        own = classes.chain[own]
    join_class(classes, row, digest, own)


@part
def _digest_node(nodes: c.Nodes, cards: c.Cards, demand: c.Demand, pool: int, row: int) -> int:
    """Return a hash, below 2^31, of what differs between nodes most often."""
    mixed = mix_figure(0, int(demand.price[row] * _PRICE_STEPS))
    for r in range(nodes.requested.shape[0]):
        mixed = mix_figure(mixed, nodes.requested[r, row])
        mixed = mix_figure(mixed, nodes.allocatable[r, row])
    start = nodes.pools.start[pool]
    for d in range(start, start + nodes.pools.count[pool]):
        for figure in range(3):
            mixed = mix_figure(mixed, cards.used[figure, d])
        mixed = mix_figure(mixed, cards.total[c.MIB, d] + cards.cut[d])
    return mixed


@part
def are_alike(
    nodes: c.Nodes, cards: c.Cards, demand: c.Demand, family: int, a: int, b: int
) -> bool:
    """Whether two nodes are equal in all that a pod can read which asks for the family (-1: for no cards)."""
    p, q = _find_pool(nodes, family, a), _find_pool(nodes, family, b)
    table = nodes.pools
    alike = (
        (table.family[p] == table.family[q])
        & (nodes.has_gpu[a] == nodes.has_gpu[b])
        & (table.count[p] == table.count[q])
        & (nodes.n_pools[a] == nodes.n_pools[b])
        & (demand.price[a] == demand.price[b])
    )
    for r in range(nodes.requested.shape[0]):
        alike &= nodes.requested[r, a] == nodes.requested[r, b]
        alike &= nodes.allocatable[r, a] == nodes.allocatable[r, b]
    for i in range(2):
        alike &= nodes.nonzero[i, a] == nodes.nonzero[i, b]
    for i in range(c.N_PART):
        alike &= table.part[i, p] == table.part[i, q]
    for i in range(3):
        alike &= table.total[i, p] == table.total[i, q]
        alike &= table.used[i, p] == table.used[i, q]
    if demand.fgd.allowed.size > 0:
        for k in range(demand.fgd.allowed.shape[1]):
            alike &= demand.fgd.allowed[a, k] == demand.fgd.allowed[b, k]
    if not alike:
        return False
    for i in range(nodes.n_pools[a]):
        one, other = nodes.first_pool[a] + i, nodes.first_pool[b] + i
        alike &= table.family[one] == table.family[other]
        alike &= table.managed[one] == table.managed[other]
    for j in range(table.count[p]):
        alike &= _are_cards_alike(cards, table.start[p] + j, table.start[q] + j)
    return bool(alike)


@tiny
def _find_pool(nodes: c.Nodes, family: int, row: int) -> int:
    """Return the pool whose cards are compared."""
    if family < 0:
        return pools.find_first(nodes, row)
    return pools.find_family(nodes, family, row)


@part
def _are_cards_alike(cards: c.Cards, d: int, e: int) -> bool:
    alike = (
        (cards.healthy[d] == cards.healthy[e])
        & (cards.cordoned[d] == cards.cordoned[e])
        & (cards.mig[d] == cards.mig[e])
        & (cards.carving[d] == cards.carving[e])
        & (cards.link[d] == cards.link[e])
        & (cards.cut[d] == cards.cut[e])
        & (cards.numa[d] == cards.numa[e])
        & (cards.position[d] == cards.position[e])
        & (cards.model[d] == cards.model[e])
        & (cards.mode[d] == cards.mode[e])
        & (cards.group[d] == cards.group[e])
        & (cards.marks[d] == cards.marks[e])
        & (cards.by_number[0, d] == cards.by_number[0, e])
        & (cards.by_number[1, d] == cards.by_number[1, e])
    )
    for figure in range(3):
        alike &= cards.total[figure, d] == cards.total[figure, e]
        alike &= cards.used[figure, d] == cards.used[figure, e]
    return bool(alike)
