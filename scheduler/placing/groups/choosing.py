"""In which order the domains of a level are tried for a group, by the rules of ``keel``.

A group of n pods takes n of the F places that a domain has for such pods. What the domain loses is counted in groups
that fit no longer: of each size s that groups have, ``⌊F/s⌋ - ⌊(F-n)/s⌋`` groups, each worth its s pods. So a group goes
where it leaves large groups their room: into a gap that just takes it, rather than into a domain that is free as a
whole. A size counts at the narrowest level of which a domain has room for it: in racks the groups that fit in a rack, in the
blocks around them those that do not. Of equal losses the domain comes first whose widest surroundings have the fewest places,
then the one with the fewest places itself, then the first by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scheduler.schema import columns as c

# Sizes of groups that count until others are known: jobs mostly ask for powers of two.
_SIZES: c.Ints = 1 << np.arange(1, 15)


class Around(NamedTuple):
    """What is known of levels wider and narrower than one, in places for the pods of a group.

    Attributes:
        outer: for each wider level, the narrowest first: [domains] the places of the domain within which each lies.
        most: the most places that a domain of the next narrower level has; 1 if there is no such level.
        lost: [domains] what each loses of groups that fit in its narrower domains; [0] if there are none.
    """

    outer: Sequence[c.Ints] = ()
    most: int = 1
    lost: c.Ints = np.zeros(0, np.int64)


_ALONE = Around()


def order_domains(places: c.Ints, least: int, wanted: int, around: Around = _ALONE) -> c.Ints:
    """Order the domains that have places for ``least`` pods: first those that take all, the one that loses least first.

    Args:
        places: [domains] how many pods of the group fit in each domain at most; domains are numbered by name.
        least: how many pods must go there.
        wanted: how many pods are to go there.
        around: what is known of other levels.
    """
    numbers = np.flatnonzero(places >= max(1, least))
    taken = np.minimum(places[numbers], wanted)
    lost = around.lost[numbers] if around.lost.size else np.zeros(numbers.size, np.int64)
    bound = around.most
    for room in (places, *around.outer):
        most = int(room.max(initial=0))
        lost = lost + count_lost(room[numbers], taken, list_sizes(bound, most))
        bound = max(bound, most)
    widest = around.outer[-1] if around.outer else places
    keys = numbers, places[numbers], widest[numbers], lost, -taken
    return numbers[np.lexsort(keys)]


def list_sizes(above: int, most: int) -> c.Ints:
    """List the sizes of groups of more than ``above`` pods and at most so many."""
    sizes: c.Ints = _SIZES[(above < _SIZES) & (most >= _SIZES)]
    return sizes


def count_lost(free: c.Ints, taken: c.Ints, sizes: c.Ints) -> c.Ints:
    """Count [domains] what each loses if so many of its places are taken: the pods of the groups that fit no longer."""
    each = sizes[:, None]
    lost: c.Ints = ((free // each - (free - taken) // each) * each).sum(axis=0)
    return lost


def share_out(places: c.Ints, wanted: int) -> list[tuple[int, int]]:
    """Share out pods among as few domains as possible, and of these among those that lose least.

    Args:
        places: [domains] how many pods fit in each domain at most.
        wanted: how many pods there are.
    """
    shares: list[tuple[int, int]] = []
    left, room = wanted, places.copy()
    whole = count_lost(places, places, list_sizes(1, int(places.max(initial=0))))
    while left > 0 and (most := int(room.max(initial=0))) > 0:
        if most >= left:
            number = int(order_domains(np.where(room >= left, room, 0), 1, left)[0])
        else:
            number = _pick_whole(room, whole, left)
        shares.append((number, min(left, int(room[number]))))
        left -= shares[-1][1]
        room[number] = 0
    return shares


def _pick_whole(room: c.Ints, whole: c.Ints, left: int) -> int:
    """Pick a domain that is filled whole, so that no more domains are needed in all than if the largest came first."""
    totals = np.cumsum(-np.sort(-room))
    if totals[-1] < left:
        return int(room.argmax())
    # So many pods fill domains whole before the last one if the largest come first. Another one must leave no more.
    before = int(totals[totals < left][-1])
    could = np.flatnonzero(room >= left - before)
    return int(could[np.lexsort((could, -room[could], whole[could] / room[could]))[0]])


def sum_places(places: c.Ints, domain: c.Ints, n_domains: int, among: c.Flags) -> c.Ints:
    """Sum up [domains] the places of the nodes of each domain; ``among`` [N] the only nodes that count, or [0] for all."""
    counts = np.where(domain >= 0, places, 0)
    if among.size:
        counts = np.where(among, counts, 0)
    # Sums of whole numbers below 2**53 are exact.
    sums = np.bincount(np.maximum(domain, 0), counts, minlength=max(1, n_domains))
    return sums.astype(np.int64)[:n_domains]
