"""Why not, for rows that are given and nothing kept: the same checks as when placing."""

from __future__ import annotations

from scheduler.kernels import fit
from scheduler.kernels._jit import kernel
from scheduler.kernels.devices import gpus, pools
from scheduler.schema import columns as c
from scheduler.schema.handles import Ints1, Ints2
from scheduler.schema.world import World


@kernel
def judge(world: World, ask: c.Ask, rows: Ints1, refused: Ints2) -> None:
    """Refusal bits of each of ``rows`` [n] into ``refused`` [W, n]: resources that are short, else cards.

    O(n · (resources + cards²)).
    """
    nodes, cards, s = world.tables.nodes, world.tables.cards, world.scratch
    for i in range(rows.size):
        row = rows[i]
        if not fit.fits(nodes, ask, row):
            fit.note(nodes, ask, row, i, refused)
        elif pools.is_by_cards(nodes, ask, row) and gpus.choose(nodes, cards, ask, row, s) < 0:
            refused[0, i] |= 1 << ask.prefers.bits[c.BIT_CARDS]


@kernel
def card_codes(world: World, ask: c.Ask, rows: Ints1, codes: Ints2) -> None:
    """The counts of why cards were refused into ``codes`` [n, N_CARD_CODES], of ``rows`` [n] whose cards do not suffice."""
    s = world.scratch
    for i in range(rows.size):
        gpus.choose(world.tables.nodes, world.tables.cards, ask, rows[i], s)
        for code in range(c.N_CARD_CODES):
            codes[i, code] = s.codes[code]
