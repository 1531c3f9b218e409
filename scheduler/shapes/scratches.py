"""The working space of kernels, large enough for a shape."""

from __future__ import annotations

from typing import NamedTuple

from scheduler.schema import columns as c
from scheduler.schema import empty
from scheduler.state.cluster import Cluster

# So many devices are looked at for all nodes in one call of a kernel at most.
_LOOKED_AT_MAX = 2_000_000


class Sizes(NamedTuple):
    """What a pod needs working space for: cards, typical pods by which it is scored, devices of claims, and rows of holds."""

    picks: int
    typical: int
    devices: int
    held: int
    has_claims: bool


def fit_scratch(s: c.Scratch, cluster: Cluster, sizes: Sizes) -> c.Scratch:
    """Return a scratch with room for a pod on any node: ``s``, if it is large enough. Its allowance of devices is whole."""
    cards, table = cluster.cards.most_on_a_node, cluster.claims.table
    devices, counters, capacity = (
        (table.most, table.most_counters, cluster.nodes.capacity) if sizes.has_claims else (0, 0, 0)
    )
    found, held = s.claims, s.holds.shape[0] - 2 * s.picks.size
    is_small = s.order.size < cards or s.picks.size < sizes.picks or s.fits.size < sizes.typical
    is_small = is_small or found.local.size < devices or found.drawn.size < counters
    is_small = is_small or found.memo.known.size < capacity
    if is_small or found.pick.size <= sizes.devices or held < sizes.held:
        claims = empty.make_claim_scratch(
            max(devices, found.local.size),
            max(found.pick.size, sizes.devices + 1),
            max(counters, found.drawn.size),
            max(capacity, found.memo.known.size),
        )
        s = empty.make_scratch(
            max(cards, s.order.size),
            max(sizes.picks, s.picks.size),
            max(sizes.typical, s.fits.size),
            claims,
            max(held, sizes.held),
        )
    s.claims.left[0] = _LOOKED_AT_MAX
    return s
