"""Cards on modules of two, such as those of Ascend's 910C: who asks for several cards gets modules as a whole.

A container that asks for one card gets the first one of the walk. An odd number of cards above one is never had.

Source: HAMi v2.10 (Apache-2.0) ``pkg/device/ascend``. HAMi takes modules in any order; here the one that the walk comes to first.
"""

from __future__ import annotations

from scheduler.kernels._jit import part, tiny
from scheduler.kernels.devices import gpus, groups
from scheduler.schema import columns as c

_CARDS = 2


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
    if wanted > 1:
        fitting -= _drop_singles(cards, start, count, s)
    if fitting < wanted or (wanted > 1 and wanted % _CARDS):
        s.codes[gpus.TOO_FEW] = fitting
        return -1
    end = n_picks + wanted
    for at in range(count - 1, -1, -1):
        module = _find_module(cards, start, s.passing[at])
        for other in range(at, -1, -1):
            if (
                n_picks < end
                and module >= 0
                and _find_module(cards, start, s.passing[other]) == module
            ):
                gpus.pick_card(cards, ask, slot, start + s.passing[other], n_picks, s)
                s.passing[other] = groups.GONE
                n_picks += 1
    return n_picks


@part
def _drop_singles(cards: c.Cards, start: int, count: int, s: c.Scratch) -> int:
    """Take the cards out of ``s.passing`` whose module has not both cards there; return how many."""
    # A card that is to go is noted as below ``GONE``, so that its module is still counted with it.
    dropped = 0
    for at in range(count):
        j = s.passing[at]
        if j == groups.GONE:
            continue
        n = 0
        for other in range(count):
            k = s.passing[other]
            k = groups.GONE - 1 - k if k < groups.GONE else k
            n += 1 if _find_module(cards, start, k) == _find_module(cards, start, j) else 0
        if n != _CARDS:
            s.passing[at] = groups.GONE - 1 - j
            dropped += 1
    for at in range(count):
        s.passing[at] = max(s.passing[at], groups.GONE)
    return dropped


@tiny
def _find_module(cards: c.Cards, start: int, j: int) -> int:
    """Return the number of the module that a card of ``s.passing`` is on; -1 for a card that is gone."""
    return int(cards.position[start + j] // _CARDS) if j >= 0 else -1
