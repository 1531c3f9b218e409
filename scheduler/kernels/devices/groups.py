"""Cards in groups, such as the dies of one of Vastai's cards: a container gets cards of as few groups as can be had.

A container that asks for one card gets the first one of the walk. Else the group with the most cards that fit comes first.
The networks of Ascend devices are such groups, too, but there the policy ``mutex`` closes only the devices that are in use.

Source: HAMi v2.10 (Apache-2.0) ``pkg/device/vastai``, ``pkg/device/ascend``. HAMi takes groups of one size in any order; here the one that the walk
comes to first.
"""

from __future__ import annotations

from scheduler.kernels._jit import part, tiny
from scheduler.kernels.devices import gpus
from scheduler.schema import columns as c

# What ``s.passing`` has of cards that cannot be picked.
GONE = -1
_EVERY, _NO_GROUP = -2, -1


@part
def choose_for_container(
    cards: c.Cards, ask: c.Ask, slot: int, start: int, count: int, n_picks: int, s: c.Scratch
) -> int:
    """Pick the cards of one container; return the number of picks so far, or -1."""
    s.codes[:] = 0
    fitting = find_fitting(cards, ask, slot, start, count, s)
    if ask.rules.mutex:
        fitting -= _close_groups(cards, start, count, s)
    return _pick_largest(cards, ask, slot, start, count, (fitting, n_picks), s)


@part
def choose_in_networks(
    cards: c.Cards, ask: c.Ask, slot: int, start: int, count: int, n_picks: int, s: c.Scratch
) -> int:
    """Pick the cards of one container from groups that no policy closes; return the number of picks so far, or -1."""
    s.codes[:] = 0
    fitting = find_fitting(cards, ask, slot, start, count, s)
    return _pick_largest(cards, ask, slot, start, count, (fitting, n_picks), s)


@part
def _pick_largest(
    cards: c.Cards,
    ask: c.Ask,
    slot: int,
    start: int,
    count: int,
    n: tuple[int, int],
    s: c.Scratch,
) -> int:
    """Pick cards of the largest groups; ``n``: the cards that fit, and the picks so far. Return the number of picks, or -1."""
    fitting, n_picks = n
    wanted = ask.containers[c.N_CARDS, slot]
    if wanted > count:
        s.codes[:] = 0
        s.codes[gpus.TOO_MANY_ASKED] = count
        return -1
    if fitting < wanted:
        s.codes[gpus.TOO_FEW] = fitting
        return -1
    end = n_picks + wanted
    while n_picks < end:
        group = _EVERY
        if wanted not in (1, fitting):
            group = _find_largest(cards, start, count, s)
        for at in range(count - 1, -1, -1):
            if n_picks < end and _is_left(cards, start, s.passing[at], group):
                gpus.pick_card(cards, ask, slot, start + s.passing[at], n_picks, s)
                s.passing[at] = GONE
                n_picks += 1
    return n_picks


@part
def find_fitting(
    cards: c.Cards, ask: c.Ask, slot: int, start: int, count: int, s: c.Scratch
) -> int:
    """Leave in ``s.passing`` the cards that the container may have, count them, and count why others are refused."""
    if _begins_anew(ask, slot):
        for j in range(count):
            s.order[j] = j
    gpus.order_cards(cards, ask, start, count, s)
    fitting = 0
    for at in range(count):
        j = s.passing[at] = s.order[at]
        code = gpus.find_code(cards, ask, slot, start, j, 0, s)
        if code < 0:
            fitting += 1
        else:
            s.codes[code] += 1
            s.passing[at] = GONE
    return fitting


@part
def _begins_anew(ask: c.Ask, slot: int) -> bool:
    """Whether no earlier container leaves its order to a container, so that of equal cards the same come first again.

    Init containers come and go before the others.
    """
    if ask.containers[c.KIND, slot] == c.KIND_INIT:
        return True
    for earlier in range(slot):
        is_init = ask.containers[c.KIND, earlier] == c.KIND_INIT
        if ask.containers[c.N_CARDS, earlier] > 0 and not is_init:
            return False
    return True


@part
def _close_groups(cards: c.Cards, start: int, count: int, s: c.Scratch) -> int:
    """Take the cards of groups that are in use out of ``s.passing``; return how many."""
    closed = 0
    for at in range(count):
        if s.passing[at] != GONE and _is_group_used(cards, start, count, s.passing[at], s):
            s.passing[at] = GONE
            s.codes[gpus.EXCLUSIVE] += 1
            closed += 1
    return closed


@part
def _is_group_used(cards: c.Cards, start: int, count: int, j: int, s: c.Scratch) -> bool:
    """Whether any card of a card's group is in use."""
    group = cards.group[start + j]
    for k in range(count):
        used = cards.used[c.SLOTS, start + k] + s.held[c.SLOTS, k]
        if used > 0 and group != _NO_GROUP and cards.group[start + k] == group:
            return True
    return False


@part
def _find_largest(cards: c.Cards, start: int, count: int, s: c.Scratch) -> int:
    """Find the group of which the most cards are left; the cards without a group count as one."""
    found, most = _EVERY, 0
    for at in range(count - 1, -1, -1):
        if s.passing[at] == GONE:
            continue
        group, n = cards.group[start + s.passing[at]], 0
        for other in range(count):
            if _is_left(cards, start, s.passing[other], group):
                n += 1
        if n > most:
            found, most = group, n
    return int(found)


@tiny
def _is_left(cards: c.Cards, start: int, j: int, group: int) -> bool:
    """Whether a card of ``s.passing`` can be picked and is of a group."""
    return bool(j != GONE and (group == _EVERY or cards.group[start + j] == group))
