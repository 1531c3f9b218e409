"""Why not, for rows that are given and nothing kept: the same checks as when placing."""

from __future__ import annotations

from scheduler.kernels import fit
from scheduler.kernels._jit import kernel
from scheduler.kernels.devices import gpus, pools
from scheduler.schema import columns as c


@kernel
def judge(
    nodes: c.Nodes, cards: c.Cards, ask: c.Ask, rows: c.Ints, s: c.Scratch, refused: c.Ints
) -> None:
    """Refusal bits of each of ``rows`` [n] into ``refused`` [W, n]: resources that are short, else cards.

    O(n · (resources + cards²)).
    """
    for i in range(rows.size):
        row = rows[i]
        if not fit.fits(nodes, ask, row):
            fit.note(nodes, ask, row, i, refused)
        elif pools.is_by_cards(nodes, ask, row) and gpus.choose(nodes, cards, ask, row, s) < 0:
            refused[0, i] |= 1 << ask.bits[c.BIT_CARDS]


@kernel
def card_codes(
    nodes: c.Nodes, cards: c.Cards, ask: c.Ask, rows: c.Ints, s: c.Scratch, codes: c.Ints
) -> None:
    """The counts of why cards were refused into ``codes`` [n, N_CARD_CODES], of ``rows`` [n] whose cards do not suffice."""
    for i in range(rows.size):
        gpus.choose(nodes, cards, ask, rows[i], s)
        for code in range(c.N_CARD_CODES):
            codes[i, code] = s.codes[code]
