"""What the demand makes of cards that are cut: by the bits in use of a card, how much of each size of parts still fits.

For each size of parts, the number of them that fit at once if nothing else is cut, times their size in milli-GPU; of
these figures a weighted mean; and 0.25 + 2 D times that mean, where D is departures per arrival. While nothing leaves, the
room that is lost counts, and the mean decides among places that lose as much: all sizes that the card has count alike,
because a place for a large part that is lost is lost for good. The more pods leave, the more the mean counts, and the
less those sizes count in it that no pods request, because places come back: each such size has the weight 1 − D.

Added to that is the room at the prices that the demand gives to parts (``modes/part_prices.py``) less the room in slices:
a part that leaves room which no pods fill loses it. Where as many pods want three slices as want one, two instances of
three slices are worth a whole card, and the slice that is lost between them is worth nothing.

Of cards that are cut by templates each size counts as often as pods request it. There the part that opens an idle card
decides for all parts of the card until the card is idle again: the template has to be one that the pods to come fill.
While little is known of them, what fits counts nothing, and of templates that lose as much the first one is taken.

docs/placement-figures.md has the figures, and what else was tried: to weigh the sizes by how often they are requested is
worse where cards are cut without templates, and much better where templates cut them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scheduler.api.pods import gpus
from scheduler.modes import part_prices
from scheduler.schema import columns as c
from scheduler.state.carvings import CarvingTable
from scheduler.state.demand import DemandShape

# Less of the pods does not make a size one that is requested.
_REQUESTED_LEAST = 0.02
_AMONG_EQUALS, _FRAGMENT_WEIGHT = 0.25, 2.0


def compute_fitting(
    carvings: CarvingTable,
    counts: Mapping[DemandShape, float],
    departures: float,
    *,
    is_early: bool = False,
) -> c.Floats:
    """Compute [V, U] for each carving the figure above in milli-GPU, by the bits in use.

    ``is_early``: few pods have been seen; too few to choose templates by them.
    """
    found = np.zeros(carvings.carvings.room.shape)
    total, returning = sum(counts.values()), min(1.0, departures)
    weight = _AMONG_EQUALS + _FRAGMENT_WEIGHT * returning
    for v, sizes in enumerate(carvings.sizes):
        if not sizes or (is_early and carvings.by_template[v]):
            continue
        requested = dict.fromkeys(sizes, 0.0)
        for shape, n in counts.items():
            wanted = shape.mib or sizes[-1] * shape.percent // gpus.WHOLE_CARD_PERCENT
            size = next((size for size in sizes if size >= wanted), None)
            if size is not None:
                requested[size] += n
        weights = np.array(list(requested.values()))
        if not carvings.by_template[v]:
            is_requested = weights >= _REQUESTED_LEAST * total
            found[v] += _measure_waste(carvings, v, weights)
            weights = np.where(is_requested, 1.0, 1.0 - returning)
        if weights.any():
            mean = (weights * carvings.worths[v]) @ carvings.fitting[v] / weights.sum()
            found[v, : mean.size] += weight * mean
    return found


def _measure_waste(carvings: CarvingTable, v: int, counts: c.Floats) -> c.Floats:
    """Measure [U] the room of a carving at the demand's prices less the room in slices, by the bits in use.

    ``counts`` [sizes] are the pods that request each size; if there are none, both are equal.
    """
    room = carvings.carvings.room[v]
    waste = np.zeros(room.size)
    if counts.any():
        sets, sizes, n_sets = (
            carvings.sets[v],
            carvings.sizes_of_parts[v],
            carvings.fitting[v].shape[1],
        )
        prices = part_prices.compute_prices(sets, sizes, counts, n_sets)
        waste[:n_sets] = part_prices.compute_room(sets, sizes, prices, n_sets) - room[:n_sets]
    return waste
