"""What ``keel`` loses by parts of cards, and which parts it takes.

By parts that take a card from some slots in use to others, it loses in milli-GPU, beside what it loses by all cards,

    3 · (room before − room after − worth of the parts) + 3 · (fitting before − fitting after) + 0.07 · room after

- worth: that of the smallest part that would do, which need not be the one that is free.
- room: the most that can still be cut out of the card, as the sum of what parts are worth.
- fitting: for each size of parts, how much of it fits at once if nothing else is cut, as a mean over the sizes. Parts
  that leave as much room differ in it: it keeps the only place of a large part free for as long as possible.

docs/placement-figures.md has the figures, and what else was tried.
"""

from __future__ import annotations

from scheduler.kernels._jit import part, tiny
from scheduler.kernels.devices import carving, free, gpus
from scheduler.kernels.modes import keel
from scheduler.schema import card_parts
from scheduler.schema import columns as c


@part
def pick_parts(
    cards: c.Cards, ask: c.Ask, demand: c.Demand, start: int, count: int, price: float, s: c.Scratch
) -> int:
    """Pick the cards of a pod of which one container asks for cards, from a pool in which cards can be cut.

    Each pick is the part, or the card that is shared as a whole, by which ``keel`` loses least after the picks before;
    the first of equals. Reads ``s.free``; writes what ``choose.choose_devices`` writes.

    Returns:
        The number of picks, or -1 when there are not enough.
    """
    slot = ask.rules.only
    gpus.begin_choice(cards, start, count, s)
    s.first[c.FIRST_PICK] = 0
    wanted = ask.containers[c.N_CARDS, slot]
    for n_picks in range(wanted):
        best, best_part, least = -1, c.NO_PART, 0.0
        for j in range(count):
            d = start + j
            if s.peak[c.SLOTS, j] > 0 and cards.carving[d] == 0:
                continue
            if not gpus.accepts_card(cards, ask, slot, start, j, n_picks, s):
                continue
            p = c.NO_PART
            if cards.carving[d] > 0:
                mib = gpus.find_mib_asked(cards, ask, slot, d)
                p, cost, taken = find_best_part(cards, demand, d, mib, s.cut[j])
                cost += price * taken
            else:
                cost = _find_cost_of_share(cards, ask, demand, start, j, price, s)
            if best < 0 or cost < least:
                best, best_part, least = j, p, cost
        if best < 0:
            return -1
        gpus.write_pick(cards, ask, slot, (start + best, best_part), n_picks, s)
        gpus.hold_picks(ask, slot, start, n_picks, n_picks + 1, s)
        s.first[c.FIRST_PICK] = n_picks + 1
    return int(wanted)


@part
def find_loss(
    cards: c.Cards, ask: c.Ask, demand: c.Demand, start: int, j: int, s: c.Scratch
) -> float:
    """Return what ``keel`` loses by the parts of a card that are among the picks of the pod, without what all cards cost."""
    worth = 0
    for p in range(s.n_picks[0]):
        if s.picks[p] == start + j and s.pick_part[p] != c.NO_PART:
            mib = gpus.find_mib_asked(cards, ask, s.pick_slot[p], start + j)
            worth += _find_worth(cards, start + j, mib)
    return _compute_loss(cards, demand, start + j, cards.cut[start + j], s.cut[j], worth)


@part
def _find_worth(cards: c.Cards, d: int, mib: int) -> int:
    """Return what the smallest part of a card with so many MiB is worth; who needs it may get a larger one."""
    smallest = carving.find_smallest_part(cards, d, mib, 0)
    return (
        int(cards.carvings.parts[smallest, card_parts.PART_MILLI]) if smallest != c.NO_PART else 0
    )


@tiny
def _compute_loss(
    cards: c.Cards, demand: c.Demand, d: int, before: int, after: int, worth: int
) -> float:
    rest = carving.get_room(cards, d, after)
    lost = carving.get_room(cards, d, before) - rest - worth
    v = cards.carving[d]
    fewer = demand.carved[v, before] - demand.carved[v, after]
    return float(keel.CUT_WEIGHT * (lost + fewer) + keel.REST_WEIGHT * rest)


@part
def find_best_part(
    cards: c.Cards, demand: c.Demand, d: int, mib: int, cut: int
) -> tuple[int, float, int]:
    """Find the part of a card with so many MiB by which ``keel`` loses least, the first of equals.

    It is one of the smallest profile that has a place beside the bits ``cut``. What is chosen is the place.

    Returns:
        The part, ``NO_PART`` for none; what is lost; and the milli-GPU that the card can give no more.
    """
    carvings = cards.carvings
    best, least, taken = c.NO_PART, 0.0, 0
    smallest = carving.find_smallest_part(cards, d, mib, cut)
    if smallest == c.NO_PART:
        return best, least, taken
    worth, room = _find_worth(cards, d, mib), carving.get_room(cards, d, cut)
    v = cards.carving[d]
    end = carvings.run[card_parts.RUN_FIRST, v] + carvings.run[card_parts.RUN_COUNT, v]
    for p in range(smallest, end):
        # Each template may have parts of the profile.
        if not _are_of_one_profile(carvings, p, smallest):
            continue
        if carvings.parts[p, card_parts.PART_CLASH] & cut != 0:
            continue
        after = cut | carvings.parts[p, card_parts.PART_BITS]
        cost = _compute_loss(cards, demand, d, cut, after, worth)
        if best == c.NO_PART or cost < least:
            best, least = int(p), cost
            taken = room - carving.get_room(cards, d, after)
    return best, least, taken


@tiny
def _are_of_one_profile(carvings: card_parts.Carvings, p: int, q: int) -> bool:
    """Whether two parts differ in nothing but their place."""
    parts = carvings.parts
    return bool(
        parts[p, card_parts.PART_MIB] == parts[q, card_parts.PART_MIB]
        and parts[p, card_parts.PART_CORES] == parts[q, card_parts.PART_CORES]
        and parts[p, card_parts.PART_MILLI] == parts[q, card_parts.PART_MILLI]
    )


@part
def _find_cost_of_share(
    cards: c.Cards, ask: c.Ask, demand: c.Demand, start: int, j: int, price: float, s: c.Scratch
) -> float:
    """Return what ``keel`` loses by a share of a card that is not cut."""
    slot, d = ask.rules.only, start + j
    held = gpus.find_cores(cards, ask.containers, slot, d), gpus.find_mib_asked(cards, ask, slot, d)
    now = free.read_card_without(cards, d, (held[0], held[1], 1))
    was, rest = free.find_usable(s.free[0, j], s.free[1, j]), free.find_usable(now[0], now[1])
    cut = keel.find_cut(cards, demand.value[cards.kind[d]], d, held, was, rest)
    return float(price * (was - rest) + cut)
