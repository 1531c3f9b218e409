"""Why a pod does not fit on a row, by the rules that look at what is charged to the row: amounts, then cards."""

from __future__ import annotations

from scheduler.kernels import fit
from scheduler.kernels._jit import part
from scheduler.kernels.devices import asks, gpus, pools
from scheduler.schema import columns as c
from scheduler.schema.handles import Ints2
from scheduler.schema.world import World


@part
def judge_row(world: World, ask: c.Ask, row: int) -> int:
    """Return the refusal bit of the first rule that refuses the row, 0 where the pod fits. O(resources + cards²)."""
    nodes, cards, s = world.tables.nodes, world.tables.cards, world.scratch
    if not fit.fits(nodes, ask, row):
        return int(1 << ask.prefers.bits[c.BIT_RESOURCES])
    if not asks.suffice(nodes, cards, ask, row, s):
        return int(1 << ask.prefers.bits[c.BIT_CARDS])
    if pools.is_by_cards(nodes, ask, row) and gpus.choose_cards(nodes, cards, ask, row, s) < 0:
        return int(1 << ask.prefers.bits[c.BIT_CARDS])
    return 0


@part
def note_refusals(world: World, ask: c.Ask, row: int, at: int, refused: Ints2) -> None:
    """Note all refusal bits of a row in column ``at`` of ``refused`` [W, n], also which amounts are short."""
    bit = judge_row(world, ask, row)
    refused[0, at] |= bit
    if bit == 1 << ask.prefers.bits[c.BIT_RESOURCES]:
        fit.note_short(world.tables.nodes, ask, row, at, refused)
