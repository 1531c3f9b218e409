"""Why a pod does not fit on a row, by the rules that look at what is charged to the row: amounts, then the devices of claims, then cards."""

from __future__ import annotations

from scheduler.kernels import fit
from scheduler.kernels._jit import part, tiny
from scheduler.kernels.devices import asks, choose, claim_memo, claim_scores, claims, pools
from scheduler.schema import columns as c
from scheduler.schema import devices as d
from scheduler.schema.handles import Ints2
from scheduler.schema.world import World


@part
def judge_row(world: World, ask: c.Ask, row: int) -> int:
    """Return the refusal bit of the first rule that refuses the row, 0 where the pod fits. O(resources + cards²)."""
    nodes, cards, s = world.tables.nodes, world.tables.cards, world.scratch
    if not fit.fits(nodes, ask, row):
        return int(1 << ask.prefers.bits[c.BIT_RESOURCES])
    unmet = judge_claims(world.tables, ask, row, s, False)
    if unmet != 0:
        return unmet
    suffices = asks.prepare_choice(nodes, cards, ask, row, s)
    if suffices and pools.is_by_cards(nodes, ask, row):
        suffices = choose.choose_devices(nodes, cards, ask, row, s) >= 0
    asks.end_choice(s)
    return 0 if suffices else int(1 << ask.prefers.bits[c.BIT_CARDS])


@tiny
def has_claims(ask: c.Ask) -> bool:
    """Whether the pod has claims for which devices are to be found."""
    return bool(ask.claims.first.size > 1)


@part
def judge_claims(tables: c.Tables, ask: c.Ask, row: int, s: c.Scratch, is_scoring: bool) -> int:
    """Return the refusal bit of a row without the devices for a pod's claims, 0 where there are enough.

    With ``is_scoring``, ``s.claims.figures`` has what the devices come to that the pod would get.
    """
    if not has_claims(ask):
        return 0
    found = claim_memo.read_memo(s.claims, tables.devices.states[row])
    if found == claim_memo.UNKNOWN:
        found = _search_devices(tables, ask, row, s, is_scoring)
        claim_memo.write_memo(s.claims, tables.devices.states[row], found)
    # The reasons are neighbours, in this order.
    return 0 if found >= 0 else int(1 << (ask.prefers.bits[c.BIT_CLAIMS] + d.TOO_FEW - found))


@part
def _search_devices(tables: c.Tables, ask: c.Ask, row: int, s: c.Scratch, is_scoring: bool) -> int:
    """Search devices of a row for the claims of a pod, and measure them; return as ``claims.allocate``."""
    found, most = d.NOT_KNOWN, min(ask.claims.most, s.claims.left[0])
    if is_scoring:
        # A better choice is worth less than the search of a node.
        found = claims.allocate(tables, ask.claims, row, s.claims, True, most // d.CHOOSING_PART)
    if found == d.NOT_KNOWN:
        found = claims.allocate(tables, ask.claims, row, s.claims, False, most)
    if found >= 0:
        if ask.claims.is_ranked:
            s.claims.figures[d.FIGURE_RANK] = claim_scores.rank_choice(ask.claims, found, s.claims)
        if is_scoring:
            claim_scores.measure_choice(tables.devices, ask.claims, found, s.claims)
    return int(found)


@part
def note_refusals(world: World, ask: c.Ask, row: int, at: int, refused: Ints2) -> None:
    """Note all refusal bits of a row in column ``at`` of ``refused`` [W, n], also which amounts are short."""
    bit = judge_row(world, ask, row)
    refused[0, at] |= bit
    if bit == 1 << ask.prefers.bits[c.BIT_RESOURCES]:
        fit.note_short(world.tables.nodes, ask, row, at, refused)
