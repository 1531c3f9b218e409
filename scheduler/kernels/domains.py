"""What is counted of pods in domains of nodes, and what it means for one shape.

A tally counts pods in each domain; here a domain is a node by itself. It changes with every placement of
the shape, and what it says of nodes is made again from the counts alone.
"""

from __future__ import annotations

from scheduler.kernels._jit import inlined
from scheduler.schema import columns as c


@inlined
def judge(board: c.Board, rows: c.Ints) -> None:
    """Make the refusal bits of ``rows`` again that come from tallies. O(tallies · rows)."""
    d = board.domains
    n = d.tallies.shape[0]
    mine = 0
    for t in range(n):
        mine |= 1 << d.tallies[t, c.TALLY_BIT]
    for i in range(rows.size):
        row = rows[i]
        bits = board.refused[0, row] & ~mine
        for t in range(n):
            if d.counts[t, row] > 0:
                bits |= 1 << d.tallies[t, c.TALLY_BIT]
        board.refused[0, row] = bits


@inlined
def placed(board: c.Board, row: int) -> None:
    """A pod of the shape went to a row."""
    d = board.domains
    for t in range(d.tallies.shape[0]):
        d.counts[t, row] += d.tallies[t, c.TALLY_GAIN]
