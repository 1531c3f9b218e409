"""Why a pod does not fit on given rows: the checks of placing again, and nothing is kept."""

from __future__ import annotations

from scheduler.kernels import judging
from scheduler.kernels._jit import kernel
from scheduler.kernels.devices import choose
from scheduler.schema import columns as c
from scheduler.schema.handles import Ints1, Ints2
from scheduler.schema.world import World


@kernel
def judge_rows(world: World, ask: c.Ask, rows: Ints1, refused: Ints2) -> None:
    """Note the refusal bits of each of ``rows`` [n] in ``refused`` [W, n]: resources that are short, else cards.

    O(n · (resources + cards²)).
    """
    for i in range(rows.size):
        judging.note_refusals(world, ask, rows[i], i, refused)


@kernel
def count_card_codes(world: World, ask: c.Ask, rows: Ints1, codes: Ints2) -> None:
    """Count into ``codes`` [n, N_CARD_CODES] why cards were refused on ``rows`` [n] whose cards do not suffice."""
    s = world.scratch
    for i in range(rows.size):
        choose.choose_devices(world.tables.nodes, world.tables.cards, ask, rows[i], s)
        for code in range(c.N_CARD_CODES):
            codes[i, code] = s.codes[code]
