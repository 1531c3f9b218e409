"""NodeResourcesFit: does what the pod asks fit beside what is already there."""

from __future__ import annotations

from scheduler.kernels._jit import inlined
from scheduler.schema import columns as c


@inlined
def fits(nodes: c.Nodes, ask: c.Ask, row: int) -> bool:
    """Whether every resource asked fits, integers in base units. O(resources asked).

    On a node that HAMi manages, its own resources (gpumem, gpucores…) are no capacity of the node.
    """
    managed = nodes.managed[row]
    for i in range(ask.resources.size):
        if managed and ask.hami_only[i]:
            continue
        r = ask.resources[i]
        if ask.amounts[i] > nodes.allocatable[r, row] - nodes.requested[r, row]:
            return False
    return True


@inlined
def refused_resources(nodes: c.Nodes, ask: c.Ask, row: int, out: c.Flags) -> bool:
    """Which of the resources asked do not fit, into ``out`` [k]; whether any does not."""
    refused = False
    for i in range(ask.resources.size):
        r = ask.resources[i]
        skip = nodes.managed[row] and ask.hami_only[i]
        out[i] = not skip and ask.amounts[i] > nodes.allocatable[r, row] - nodes.requested[r, row]
        refused = refused or bool(out[i])
    return refused


@inlined
def charge(nodes: c.Nodes, ask: c.Ask, row: int, sign: int) -> None:
    """Add (or with sign -1 take back) the pod's requests on a row, cards apart."""
    for i in range(ask.resources.size):
        if ask.resources[i] != c.UNKNOWN:
            nodes.requested[ask.resources[i], row] += sign * ask.amounts[i]
    nodes.nonzero[0, row] += sign * ask.nonzero[0]
    nodes.nonzero[1, row] += sign * ask.nonzero[1]
