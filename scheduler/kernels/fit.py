"""NodeResourcesFit: whether the resources that the pod requests fit beside those already in use."""

from __future__ import annotations

from scheduler.kernels._jit import part, tiny
from scheduler.kernels.devices import pools
from scheduler.schema import columns as c


@tiny
def fits(nodes: c.Nodes, ask: c.Ask, row: int) -> bool:
    """Whether every requested resource fits, in integers of base units. O(requested resources).

    Where cards are given away one by one, resources that only cards have do not count as capacity of the node, nor does
    a resource where devices of a class serve it.
    """
    for i in range(ask.resources.size):
        if _is_short(nodes, ask, i, row):
            return False
    return True


@part
def note_short(nodes: c.Nodes, ask: c.Ask, row: int, at: int, refused: c.Ints) -> None:
    """Note which of the requested resources do not fit, as bits of column ``at`` of ``refused`` [W, n]."""
    refused[0, at] |= 1 << ask.prefers.bits[c.BIT_RESOURCES]
    for i in range(ask.resources.size):
        if _is_short(nodes, ask, i, row):
            bit = ask.prefers.bits[c.BIT_FIRST_RESOURCE] + i
            refused[bit // c.WORD, at] |= 1 << (bit % c.WORD)


@tiny
def _is_short(nodes: c.Nodes, ask: c.Ask, i: int, row: int) -> bool:
    r, family = ask.resources[i], ask.by_cards[i]
    return bool(
        not (family >= 0 and nodes.pools.managed[pools.find_family(nodes, family, row)])
        and not nodes.by_class[r, row]
        and ask.amounts[i] > nodes.allocatable[r, row] - nodes.requested[r, row]
    )
