"""Why not, for rows that are given and nothing kept: the same checks as when placing."""

from __future__ import annotations

from scheduler.kernels import judging
from scheduler.kernels._jit import kernel
from scheduler.kernels.devices import gpus
from scheduler.schema import columns as c
from scheduler.schema.handles import Ints1, Ints2
from scheduler.schema.world import World


@kernel
def judge(world: World, ask: c.Ask, rows: Ints1, refused: Ints2) -> None:
    """Refusal bits of each of ``rows`` [n] into ``refused`` [W, n]: resources that are short, else cards.

    O(n · (resources + cards²)).
    """
    for i in range(rows.size):
        judging.note(world, ask, rows[i], i, refused)


@kernel
def card_codes(world: World, ask: c.Ask, rows: Ints1, codes: Ints2) -> None:
    """The counts of why cards were refused into ``codes`` [n, N_CARD_CODES], of ``rows`` [n] whose cards do not suffice."""
    s = world.scratch
    for i in range(rows.size):
        gpus.choose(world.tables.nodes, world.tables.cards, ask, rows[i], s)
        for code in range(c.N_CARD_CODES):
            codes[i, code] = s.codes[code]
