"""In which order the domains of a level are tried for a group, by the rules of ``keel``.

A group of n pods takes n of the F places that a domain has for such pods. What the domain loses is counted in groups
that fit no longer: of each size s that groups have, ``⌊F/s⌋ - ⌊(F-n)/s⌋`` groups, each worth its s pods. So a group goes
where it leaves large groups their room: into a gap that just takes it, rather than into a domain that is free as a
whole. Of equal losses the domain with the fewest places comes first, then the first by name.
"""

from __future__ import annotations

import numpy as np

from scheduler.schema import columns as c

# Sizes of groups that count until others are known: jobs mostly ask for powers of two.
_SIZES: c.Ints = 1 << np.arange(1, 15)


def order_domains(places: c.Ints, least: int, wanted: int) -> c.Ints:
    """Order the domains that have places for ``least`` pods: first those that take all, the one that loses least first.

    Args:
        places: [domains] how many pods of the group fit in each domain at most; domains are numbered by name.
        least: how many pods must go there.
        wanted: how many pods are to go there.
    """
    numbers = np.flatnonzero(places >= max(1, least))
    free = places[numbers]
    taken = np.minimum(free, wanted)
    sizes = _SIZES[:, None]
    lost = ((free // sizes - (free - taken) // sizes) * sizes).sum(axis=0)
    return numbers[np.lexsort((numbers, free, lost, -taken))]


def pick_few(places: c.Ints, wanted: int) -> list[int]:
    """Pick few domains that together have places for the pods: the largest first, and for the rest the smallest that does.

    Args:
        places: [domains] how many pods fit in each domain at most.
        wanted: how many pods there are.
    """
    picked: list[int] = []
    order = np.lexsort((np.arange(places.size), -places)).tolist()
    left = wanted
    while left > 0 and order and places[order[0]] > 0:
        enough = [number for number in order if places[number] >= left]
        number = min(enough, key=lambda one: (places[one], one)) if enough else order[0]
        picked.append(number)
        order.remove(number)
        left -= int(places[number])
    return picked


def sum_places(places: c.Ints, domain: c.Ints, n_domains: int, among: c.Flags) -> c.Ints:
    """Sum up [domains] the places of the nodes of each domain; ``among`` [N] the only nodes that count, or [0] for all."""
    counts = np.where(domain >= 0, places, 0)
    if among.size:
        counts = np.where(among, counts, 0)
    # Sums of whole numbers below 2**53 are exact.
    sums = np.bincount(np.maximum(domain, 0), counts, minlength=max(1, n_domains))
    return sums.astype(np.int64)[:n_domains]
