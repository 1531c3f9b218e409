"""NodeResourcesFit: does what the pod asks fit beside what is already there."""

from __future__ import annotations

from scheduler.kernels._jit import part, tiny
from scheduler.schema import columns as c


@tiny
def fits(nodes: c.Nodes, ask: c.Ask, row: int) -> bool:
    """Whether every resource asked fits, integers in base units. O(resources asked).

    Where cards are given away one by one, resources that only cards have are no capacity of the node.
    """
    for i in range(ask.resources.size):
        if _is_short(nodes, ask, i, row):
            return False
    return True


@part
def note(nodes: c.Nodes, ask: c.Ask, row: int, at: int, refused: c.Ints) -> None:
    """Which of the resources asked do not fit, as bits of column ``at`` of ``refused`` [W, n]."""
    refused[0, at] |= 1 << ask.prefers.bits[c.BIT_RESOURCES]
    for i in range(ask.resources.size):
        if _is_short(nodes, ask, i, row):
            bit = ask.prefers.bits[c.BIT_FIRST_RESOURCE] + i
            refused[bit // c.WORD, at] |= 1 << (bit % c.WORD)


@tiny
def _is_short(nodes: c.Nodes, ask: c.Ask, i: int, row: int) -> bool:
    r, pool = ask.resources[i], ask.by_cards[i]
    return bool(
        not (pool >= 0 and nodes.managed[pool, row])
        and ask.amounts[i] > nodes.allocatable[r, row] - nodes.requested[r, row]
    )
