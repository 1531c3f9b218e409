"""AWS Neuron devices: several are neighbors, and cores of one device are given one by one.

The devices of a container are idle and follow each other. In a ring (the cards are of a group) they begin anywhere; elsewhere
4, 8 or 16 devices begin at a multiple of their number, and no other number above one is had. Cores are bits: 1 the first core of
a device, 2 the second, so 3 is a device with two.

Source: HAMi v2.10 (Apache-2.0) ``pkg/device/awsneuron``. HAMi does not look at the annotations that name devices where several
are requested; here they hold.
"""

from __future__ import annotations

from scheduler.kernels._jit import part, tiny
from scheduler.kernels.devices import gpus
from scheduler.schema import columns as c

_NONE = -1


@part
def choose_for_container(
    cards: c.Cards, ask: c.Ask, slot: int, start: int, count: int, n_picks: int, s: c.Scratch
) -> int:
    """Pick the devices of one container; return the number of picks so far, or -1."""
    s.codes[:] = 0
    wanted = ask.containers[c.N_CARDS, slot]
    if wanted > count:
        s.codes[gpus.TOO_MANY_ASKED] = count
        return -1
    if wanted == 1:
        j = _find_one(cards, ask, slot, start, count, s)
    else:
        j = _find_span(cards, ask, slot, start, count, s)
    if j == _NONE:
        return -1
    for d in range(start + j, start + j + wanted):
        gpus.pick_card(cards, ask, slot, d, n_picks, s)
        s.pick_cores[n_picks] = _find_bits(cards, ask, slot, start, d, s)
        n_picks += 1
    return n_picks


@part
def _find_one(cards: c.Cards, ask: c.Ask, slot: int, start: int, count: int, s: c.Scratch) -> int:
    """Find the first device of the walk that the container may have."""
    for j in range(count):
        s.order[j] = j
    gpus.order_cards(cards, ask, start, count, s)
    for at in range(count - 1, -1, -1):
        code = gpus.find_code(cards, ask, slot, start, s.order[at], 0, s)
        if code < 0:
            return int(s.order[at])
        s.codes[code] += 1
    return _NONE


@part
def _find_span(cards: c.Cards, ask: c.Ask, slot: int, start: int, count: int, s: c.Scratch) -> int:
    """Find the first of the wanted devices that follow each other, all idle; count why others are refused."""
    wanted = ask.containers[c.N_CARDS, slot]
    is_ring = cards.group[start] >= 0
    is_size = is_ring or wanted in (4, 8, 16)
    length, fitting = 0, 0
    for j in range(count):
        if not is_ring and j % wanted == 0:
            length = 0
        code = gpus.find_code(cards, ask, slot, start, j, 0, s)
        if code < 0 and cards.used[c.SLOTS, start + j] + s.held[c.SLOTS, j] > 0:
            code = gpus.EXCLUSIVE
        if code >= 0:
            s.codes[code] += 1
            length = 0
            continue
        fitting += 1
        length += 1
        if length == wanted and is_size:
            return int(j + 1 - wanted)
    # Those that fit have the wrong neighbors.
    s.codes[gpus.NUMA] = fitting
    return _NONE


@tiny
def _find_bits(cards: c.Cards, ask: c.Ask, slot: int, start: int, d: int, s: c.Scratch) -> int:
    """Return the cores of a device that a container gets, as bits."""
    asked, total = gpus.find_cores(cards, ask.containers, slot, d), cards.total[c.CORES, d]
    used = cards.used[c.CORES, d] + s.held[c.CORES, d - start]
    if asked == total:
        return int(total)
    return int(total - used) if used > 0 else 1
