"""Metax's shared cards: whole cards come from as small zones of links as can be had, so that large ones stay whole.

Shares, and cards where no more fit than are wanted, are those that the walk comes to first. Online pods, which share cards with
each other and with offline pods, get the card with the fewest online pods.

Source: HAMi v2.10 (Apache-2.0) ``pkg/device/metax``. HAMi takes zones of one size in any order; here the one that the walk comes
to first.
"""

from __future__ import annotations

from scheduler.kernels._jit import part
from scheduler.kernels.devices import gpus, groups, pools, vendor_scores
from scheduler.schema import columns as c
from scheduler.schema import marks

_EVERY, _NO_ZONE = -2, -1


@part
def choose_for_container(
    cards: c.Cards, ask: c.Ask, slot: int, start: int, count: int, n_picks: int, s: c.Scratch
) -> int:
    """Pick the cards of one container; return the number of picks so far, or -1."""
    s.codes[:] = 0
    wanted = ask.containers[c.N_CARDS, slot]
    if wanted > count:
        s.codes[gpus.TOO_MANY_ASKED] = count
        return -1
    fitting = groups.find_fitting(cards, ask, slot, start, count, s)
    if fitting < wanted:
        s.codes[gpus.TOO_FEW] = fitting
        return -1
    if ask.rules.coreless:
        return _pick_quietest(cards, ask, slot, start, count, n_picks, s)
    # Of pods that share cards with their like only, HAMi looks at no zones.
    is_whole = ask.containers[c.ASK_CORES, slot] == pools.WHOLE_CORES and ask.rules.opening == 0
    end, least = n_picks + wanted, wanted
    while n_picks < end:
        zone = _EVERY
        if is_whole and fitting > wanted:
            zone = _find_smallest(cards, start, count, least, s)
            if zone == _NO_ZONE and least > 1:
                # No zone has all of them: the smallest ones are used up.
                zone = _find_smallest(cards, start, count, 1, s)
            least = 1
        for at in range(count - 1, -1, -1):
            j = s.passing[at]
            if n_picks < end and j >= 0 and (zone == _EVERY or cards.group[start + j] == zone):
                gpus.pick_card(cards, ask, slot, start + j, n_picks, s)
                s.passing[at] = groups.GONE
                n_picks += 1
    return n_picks


@part
def _pick_quietest(
    cards: c.Cards, ask: c.Ask, slot: int, start: int, count: int, n_picks: int, s: c.Scratch
) -> int:
    """Pick the fitting cards with the fewest online pods, then offline ones; those with offline pods alone come last."""
    end = n_picks + ask.containers[c.N_CARDS, slot]
    while n_picks < end:
        best, least = -1, 0
        for at in range(count - 1, -1, -1):
            if s.passing[at] < 0:
                continue
            online, offline = vendor_scores.count_classes(cards, start + s.passing[at])
            rank = (online << marks.BITS) + offline
            if online == 0 and offline > 0:
                rank += 1 << 2 * marks.BITS
            if best < 0 or rank < least:
                best, least = at, rank
        gpus.pick_card(cards, ask, slot, start + s.passing[best], n_picks, s)
        s.passing[best] = groups.GONE
        n_picks += 1
    return n_picks


@part
def _find_smallest(cards: c.Cards, start: int, count: int, least: int, s: c.Scratch) -> int:
    """Find the zone of which the fewest cards are left, ``least`` or more; the cards without a zone if there is none."""
    found, fewest = _NO_ZONE, count + 1
    for at in range(count - 1, -1, -1):
        if s.passing[at] < 0 or cards.group[start + s.passing[at]] < 0:
            continue
        zone, n = cards.group[start + s.passing[at]], 0
        for other in range(count):
            if s.passing[other] >= 0 and cards.group[start + s.passing[other]] == zone:
                n += 1
        if least <= n < fewest:
            found, fewest = zone, n
    return int(found)
