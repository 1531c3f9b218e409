"""Why a pod does not fit on a row, by the rules that look at what is charged to the row: amounts, then cards."""

from __future__ import annotations

from scheduler.kernels import fit
from scheduler.kernels._jit import part
from scheduler.kernels.devices import asks, choose, pools
from scheduler.schema import columns as c
from scheduler.schema.handles import Ints2
from scheduler.schema.world import World


@part
def judge_row(world: World, ask: c.Ask, row: int) -> int:
    """Return the refusal bit of the first rule that refuses the row, 0 where the pod fits. O(resources + cards²)."""
    nodes, cards, s = world.tables.nodes, world.tables.cards, world.scratch
    if not fit.fits(nodes, ask, row):
        return int(1 << ask.prefers.bits[c.BIT_RESOURCES])
    suffices = asks.prepare_choice(nodes, cards, ask, row, s)
    if suffices and pools.is_by_cards(nodes, ask, row):
        suffices = choose.choose_devices(nodes, cards, ask, row, s) >= 0
    asks.end_choice(s)
    return 0 if suffices else int(1 << ask.prefers.bits[c.BIT_CARDS])


@part
def note_refusals(world: World, ask: c.Ask, row: int, at: int, refused: Ints2) -> None:
    """Note all refusal bits of a row in column ``at`` of ``refused`` [W, n], also which amounts are short."""
    bit = judge_row(world, ask, row)
    refused[0, at] |= bit
    if bit == 1 << ask.prefers.bits[c.BIT_RESOURCES]:
        fit.note_short(world.tables.nodes, ask, row, at, refused)
