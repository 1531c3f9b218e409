"""What the search found for a pod on a node, for all nodes whose devices have the same state.

Nothing may be charged while the memo is open. It is used only for pods for which such nodes are alike, see
``ClaimAsk.by_state``.
"""

from __future__ import annotations

from scheduler.kernels._jit import part, tiny
from scheduler.schema import devices as d

# Instead of what the search returns.
UNKNOWN = -9


@part
def open_memo(ask: d.ClaimAsk, s: d.ClaimScratch) -> None:
    """Begin with the claims of a pod."""
    s.memo.number[0] += 1
    s.memo.number[1] = 1 if ask.by_state else 0


@tiny
def close_memo(s: d.ClaimScratch) -> None:
    """End: something is charged from now on."""
    s.memo.number[1] = 0


@part
def read_memo(s: d.ClaimScratch, state: int) -> int:
    """Return what the search has returned for a state, and write its figures to ``s.figures``; ``UNKNOWN`` if it was not asked."""
    if not _holds(s, state) or s.memo.known[state] != s.memo.number[0]:
        return UNKNOWN
    for i in range(d.N_FIGURES):
        s.figures[i] = s.memo.figures[state, i]
    return int(s.memo.found[state])


@part
def write_memo(s: d.ClaimScratch, state: int, found: int) -> None:
    """Note what the search has returned for a state, with ``s.figures``; that it did not end says nothing."""
    if not _holds(s, state) or found == d.NOT_KNOWN:
        return
    s.memo.known[state], s.memo.found[state] = s.memo.number[0], found
    for i in range(d.N_FIGURES):
        s.memo.figures[state, i] = s.figures[i]


@tiny
def _holds(s: d.ClaimScratch, state: int) -> bool:
    return bool(s.memo.number[1] != 0 and 0 <= state < s.memo.known.size)
