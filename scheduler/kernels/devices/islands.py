"""Cards of Kunlun: two islands of four cards each, linked card by card, so 0 with 4, 1 with 5, and so on.

A container gets 1, 2, 4 or 8 cards that are linked with each other, and those left stay linked where that can be had. A card
that is shared is cut into parts of one size.

Source: HAMi v2.10 (Apache-2.0) ``pkg/device/kunlun/topo.go``. HAMi takes the cards by their places in a list that it has sorted
by what is in use, so on a node that is partly used its islands are not those of the machine. Here they are.
"""

from __future__ import annotations

from scheduler.kernels._jit import part, tiny
from scheduler.kernels.devices import gpus
from scheduler.schema import columns as c

_ISLAND, _ALL = 4, 8
_FIRST = 0x0F
# Two linked pairs of cards, as bits, in the order in which HAMi tries them.
_N_QUADS = 6


@part
def choose_for_container(
    cards: c.Cards, ask: c.Ask, slot: int, start: int, count: int, n_picks: int, s: c.Scratch
) -> int:
    """Pick linked cards for one container; return the number of picks so far, or -1."""
    s.codes[:] = 0
    fitting = _find_fitting(cards, ask, slot, start, count, s)
    chosen = _choose_set(fitting, ask.containers[c.N_CARDS, slot])
    if chosen == 0:
        n_fitting = _count_bits(fitting)
        # Those that fit are not linked as they must be, or there are too few of them.
        is_enough = n_fitting >= ask.containers[c.N_CARDS, slot]
        s.codes[gpus.NUMA if is_enough else gpus.TOO_FEW] = n_fitting
        return -1
    for j in range(_ALL):
        if chosen >> j & 1:
            gpus.pick_card(cards, ask, slot, start + j, n_picks, s)
            n_picks += 1
    return n_picks


@part
def _find_fitting(
    cards: c.Cards, ask: c.Ask, slot: int, start: int, count: int, s: c.Scratch
) -> int:
    """Find the cards that the container may have, as bits by their places, and count why others are refused."""
    fitting = 0
    for j in range(min(count, _ALL)):
        code = gpus.find_code(cards, ask, slot, start, j, 0, s)
        if code < 0 and not _is_of_size(cards, ask, slot, start, j, s):
            code = gpus.NO_MEMORY
        if code < 0:
            fitting |= 1 << j
        else:
            s.codes[code] += 1
    return fitting


@tiny
def _is_of_size(cards: c.Cards, ask: c.Ask, slot: int, start: int, j: int, s: c.Scratch) -> bool:
    """Whether a card is idle, or cut into parts of the size that the container asks for."""
    d = start + j
    sharers = cards.used[c.SLOTS, d] + s.held[c.SLOTS, j]
    if sharers == 0:
        return True
    mib = cards.used[c.MIB, d] + s.held[c.MIB, j]
    return bool(mib // sharers == gpus.find_mib_asked(cards, ask, slot, d))


@part
def _choose_set(fitting: int, wanted: int) -> int:
    """Choose ``wanted`` of the fitting cards, as bits; 0 where no such set is linked."""
    if wanted == _ALL:
        return fitting if fitting == (1 << _ALL) - 1 else 0
    if wanted not in (1, 2, 4):
        return 0
    first, second = fitting & _FIRST, fitting >> _ISLAND & _FIRST
    n_first, n_second = _count_bits(first), _count_bits(second)
    if n_first >= wanted or n_second >= wanted:
        for i in range(_ISLAND):
            size = _find_size(wanted, i)
            if size == n_first:
                return _take_lowest(first, wanted)
            if size == n_second:
                return _take_lowest(second, wanted) << _ISLAND
        return 0
    return _choose_across(fitting, first & second, wanted)


@tiny
def _find_size(wanted: int, i: int) -> int:
    """Return the number of free cards of the island that is tried as number ``i``; 0 for none."""
    if wanted == 1:
        return 1 if i == 0 else 3 if i == 1 else 2 if i == 2 else 4
    return wanted + i if wanted + i <= _ISLAND else 0


@part
def _choose_across(fitting: int, pairs: int, wanted: int) -> int:
    """Choose cards of both islands; ``pairs`` are the cards of the first whose partner is free, too."""
    if wanted == 2:
        one = _take_lowest(pairs, 1)
        return one | one << _ISLAND
    found = 0
    for i in range(_N_QUADS):
        quad = _find_quad(i)
        if fitting & quad != quad:
            continue
        found = quad
        if _count_bits(fitting) != 6 or _are_linked(fitting & ~quad):
            break
    return found if wanted == _ISLAND else 0


@tiny
def _find_quad(i: int) -> int:
    """Return two pairs of cards: of the first island 0 1, 2 3, 0 2, 1 3, 0 3, 1 2."""
    half = (
        0x3
        if i == 0
        else 0xC
        if i == 1
        else 0x5
        if i == 2
        else 0xA
        if i == 3
        else 0x9
        if i == 4
        else 0x6
    )
    return half | half << _ISLAND


@tiny
def _are_linked(two: int) -> bool:
    """Whether two cards are of one island, or partners."""
    first, second = two & _FIRST, two >> _ISLAND
    return bool(first == 0 or second in (0, first))


@tiny
def _take_lowest(bits: int, n: int) -> int:
    """Return the ``n`` lowest bits; fewer if there are fewer."""
    taken = 0
    for j in range(_ALL):
        if n > 0 and bits >> j & 1:
            taken |= 1 << j
            n -= 1
    return taken


@tiny
def _count_bits(bits: int) -> int:
    n = 0
    for j in range(_ALL):
        n += bits >> j & 1
    return n
