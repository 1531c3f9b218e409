"""Which cards of a node a pod gets: HAMi's walk, order and checks.

Source: HAMi v2.10 (Apache-2.0) ``pkg/device/nvidia`` and ``pkg/scheduler/policy``. Formulas are
in float32 like HAMi's, so that equal scores stay equal and ties fall the same way.
"""

from __future__ import annotations

import numpy as np

from scheduler.kernels._jit import kernel, part, tiny
from scheduler.kernels.devices import carving, linked, pools, sharing
from scheduler.schema import card_parts
from scheduler.schema import columns as c
from scheduler.schema.handles import Ints2
from scheduler.schema.world import World

# Codes of Ask.sort_keys; negative is descending, 0 ends the list.
BY_SCORE, BY_NUMA, BY_USED, BY_INDEX = 1, 2, 3, 4

# Positions in Scratch.codes, as in api/reasons.py CardRefusal.
(HEALTH, CORDONED, TYPE, NUMA, UUID, NO_SLOTS, EXCLUSIVE, NO_MEMORY, NO_CORES, EXHAUSTED, MIG, TOO_FEW,
 TOO_MANY_ASKED, OTHER_CARD, CLASS) = range(15)  # fmt: skip

# Of the figures that scores add up: MiB.
_LAST = 2
_F10 = np.float32(10.0)
_F0 = np.float32(0.0)


@part
def score_node(nodes: c.Nodes, pool: int) -> np.float32:
    """Return HAMi's node score: 10 · (sharers + cores + memory in use, each over its total), 0..30.

    Sums over all cards of one of the node's pools, healthy or not, before the pod is placed; float32. 0 where a
    total is 0. The MiB of dies are their sharers, which count once.
    """
    score = _F0
    are_dies = nodes.pools.chooser[pool] == c.GROUPS
    for i in range(3):
        figure = (c.SLOTS, c.CORES, c.MIB)[i]
        if are_dies and i == _LAST:
            break
        total = nodes.pools.total[figure, pool]
        if total == 0:
            return _F0
        score += np.float32(nodes.pools.used[figure, pool]) / np.float32(total)
    return _F10 * score


@part
def _score_cards(cards: c.Cards, ask: c.Ask, start: int, count: int, s: c.Scratch) -> None:
    """Write HAMi's card score: 10 · Σ weight · used / total, of what is in use before this container."""
    for j in range(count):
        d = start + j
        score = _F0
        full = True
        for i in range(3):
            figure = (c.SLOTS, c.CORES, c.MIB)[i]
            total = cards.total[figure, d]
            if total == 0:
                full = False
            else:
                weight = np.float32(ask.prefers.card_weights[i])
                used = np.float32(cards.used[figure, d] + s.held[figure, j])
                score += weight * (used / np.float32(total))
        s.card_score[j] = _F10 * score if full else _F0


@part
def _comes_before(cards: c.Cards, ask: c.Ask, start: int, s: c.Scratch, a: int, b: int) -> bool:
    """Whether card ``a`` comes strictly before card ``b``."""
    for i in range(ask.prefers.sort_keys.size):
        key = ask.prefers.sort_keys[i]
        if key == 0:
            break
        by = abs(key)
        if by == BY_SCORE:
            if s.card_score[a] != s.card_score[b]:
                return bool((s.card_score[a] < s.card_score[b]) == (key > 0))
            continue
        if by == BY_NUMA:
            x, y = cards.numa[start + a], cards.numa[start + b]
        elif by == BY_USED:
            x = cards.used[c.SLOTS, start + a] + s.held[c.SLOTS, a]
            y = cards.used[c.SLOTS, start + b] + s.held[c.SLOTS, b]
        else:
            x, y = cards.position[start + a], cards.position[start + b]
        if x != y:
            return bool((x < y) == (key > 0))
    return False


@part
def _sort_cards(cards: c.Cards, ask: c.Ask, start: int, count: int, s: c.Scratch) -> None:
    """Sort ``s.order``, by insertion and stably; nodes have few cards."""
    for i in range(1, count):
        moving = s.order[i]
        j = i - 1
        while j >= 0 and _comes_before(cards, ask, start, s, moving, s.order[j]):
            s.order[j + 1] = s.order[j]
            j -= 1
        s.order[j + 1] = moving


@part
def order_cards(cards: c.Cards, ask: c.Ask, start: int, count: int, s: c.Scratch) -> None:
    """Sort ``s.order`` for one container; the walk begins at its end."""
    _score_cards(cards, ask, start, count, s)
    _sort_cards(cards, ask, start, count, s)


@part
def _find_refusal(
    cards: c.Cards, ask: c.Ask, slot: int, start: int, j: int, n_picks: int, s: c.Scratch
) -> int:
    """Make the checks 6 to 13 of HAMi's walk for one card; return -1 when it passes, else the code."""
    d = start + j
    slots = cards.used[c.SLOTS, d] + s.held[c.SLOTS, j]
    mib_used = cards.used[c.MIB, d] + s.held[c.MIB, j]
    cores_used = cards.used[c.CORES, d] + s.held[c.CORES, j]
    if cards.mig[d]:
        # What the container has of the card already is not in ``s.held`` yet.
        for p in range(s.first[c.FIRST_PICK], n_picks):
            if s.picks[p] == d:
                slots, mib_used = slots + 1, mib_used + s.pick_mib[p]
                cores_used += s.pick_cores[p]
    cores_total = cards.total[c.CORES, d]
    cores = find_cores(cards, ask.containers, slot, d)
    # The rule on whole cards is one of percents.
    is_percent = ask.containers[c.ASK_CORE_PERCENT, slot] == 0
    if cards.total[c.SLOTS, d] <= slots:
        return NO_SLOTS
    if ask.rules.mutex and slots > 0:
        return EXCLUSIVE
    if cards.total[c.MIB, d] - mib_used < find_mib_asked(cards, ask, slot, d):
        return NO_MEMORY
    if cores_total - cores_used < cores and not ask.rules.coreless:
        return NO_CORES
    if is_percent and cores_total == 100 and cores == 100 and slots > 0:
        return EXCLUSIVE
    is_exhausted = cores_total != 0 and cores_used == cores_total and cores == 0
    if is_exhausted and not ask.rules.coreless:
        return EXHAUSTED
    if cards.mig[d] and _find_first_part(cards, ask, slot, d, s) == c.NO_PART:
        return MIG
    return -1


@tiny
def _find_first_part(cards: c.Cards, ask: c.Ask, slot: int, d: int, s: c.Scratch) -> int:
    """Find the part of a card that HAMi gives to a container; ``NO_PART`` for none, and for cards that cannot be cut."""
    mib = find_mib_asked(cards, ask, slot, d)
    return int(carving.find_part(cards, d, mib, s.cut[d - s.first[c.FIRST_CARD]]))


@part
def accepts_card(
    cards: c.Cards, ask: c.Ask, slot: int, start: int, j: int, n_picks: int, s: c.Scratch
) -> bool:
    """Whether a container may have a card by all rules but those on numa; ``s.held`` is what the pod has already."""
    return bool(find_code(cards, ask, slot, start, j, n_picks, s) < 0)


@part
def find_code(
    cards: c.Cards, ask: c.Ask, slot: int, start: int, j: int, n_picks: int, s: c.Scratch
) -> int:
    """Return -1 when ``accepts_card``, else the code of the first rule that refuses the card."""
    d = start + j
    if not cards.healthy[d]:
        return HEALTH
    if cards.cordoned[d]:
        return CORDONED
    if ask.rules.any_idle and sharing.is_of_other_class(cards, ask, d):
        return CLASS
    if not (ask.prefers.model_ok[cards.model[d]] and sharing.has_mode(cards, ask, slot, d)):
        return TYPE
    if _is_elsewhere(cards, d, s):
        return NUMA
    if ask.prefers.uuid_ok.size > 0 and not ask.prefers.uuid_ok[cards.uuid[d]]:
        return UUID
    return int(_find_refusal(cards, ask, slot, start, j, n_picks, s))


@tiny
def _is_elsewhere(cards: c.Cards, d: int, s: c.Scratch) -> bool:
    """Whether devices may be taken from one NUMA node only, and the card is on another one."""
    return bool(s.only_numa[0] != c.ANY_NUMA and cards.numa[d] != s.only_numa[0])


@tiny
def find_mib_asked(cards: c.Cards, ask: c.Ask, slot: int, d: int) -> int:
    """Return the MiB that container ``slot`` takes on card ``d``."""
    return find_mib(cards, ask.containers, slot, d)


@tiny
def find_mib(cards: c.Cards, containers: c.Ints, slot: int, d: int) -> int:
    """Return the MiB that a container takes on card ``d``; never 0, which would mean no limit."""
    mib = containers[c.ASK_MIB, slot]
    if mib == 0:
        if containers.shape[0] > c.N_ASKED:
            mib = containers[c.N_ASKED + 2 * cards.model[d], slot]
        else:
            mib = cards.total[c.MIB, d] * containers[c.ASK_PERCENT, slot] // 100
        if cards.carving[d] > 0:
            # All of a card is its largest part, which has a little less memory than the card.
            mib = min(mib, cards.carvings.run[card_parts.RUN_MOST_MIB, cards.carving[d]])
    return int(max(1, mib))


@tiny
def find_cores(cards: c.Cards, containers: c.Ints, slot: int, d: int) -> int:
    """Return the cores that a container takes on card ``d``; a part of the card's cores is at least one."""
    percent = containers[c.ASK_CORE_PERCENT, slot]
    if percent == 0:
        return int(containers[c.ASK_CORES, slot])
    if containers.shape[0] > c.N_ASKED:
        return int(containers[c.N_ASKED + 2 * cards.model[d] + 1, slot])
    return int(max(1, cards.total[c.CORES, d] * percent // 100))


@part
def begin_choice(cards: c.Cards, start: int, count: int, s: c.Scratch) -> None:
    """Clear what the pod holds of ``count`` cards, before the first container is served."""
    s.first[c.FIRST_CARD] = start
    for j in range(count):
        s.order[j], s.cut[j] = j, cards.cut[start + j]
        for i in range(3):
            s.held[i, j] = 0
            s.peak[i, j] = 0


@part
def hold_picks(ask: c.Ask, slot: int, start: int, first: int, end: int, s: c.Scratch) -> None:
    """Note that a container holds the picks from ``first`` to ``end``, for those that are served after it."""
    is_staying = ask.containers[c.KIND, slot] != c.KIND_INIT
    for p in range(first, end):
        j = s.picks[p] - start
        # A part of a card is never given to another container of the pod.
        stays = is_staying or s.pick_part[p] != c.NO_PART
        add = (s.pick_cores[p], s.pick_mib[p], 1)
        for i in range(3):
            s.peak[i, j] = max(s.peak[i, j], s.held[i, j] + add[i])
            if stays:
                s.held[i, j] += add[i]


@part
def pick_card(cards: c.Cards, ask: c.Ask, slot: int, d: int, n_picks: int, s: c.Scratch) -> None:
    """Write a card, or the first part that suffices of a card that is cut, down as the next pick of a container."""
    p = _find_first_part(cards, ask, slot, d, s) if cards.mig[d] else c.NO_PART
    write_pick(cards, ask, slot, (d, p), n_picks, s)


@part
def write_pick(
    cards: c.Cards, ask: c.Ask, slot: int, picked: tuple[int, int], n_picks: int, s: c.Scratch
) -> None:
    """Write a card, or a part of it, down as the next pick of a container; ``NO_PART``: the card as it is."""
    d, p = picked
    s.picks[n_picks], s.pick_slot[n_picks], s.pick_part[n_picks] = d, slot, p
    if p == c.NO_PART:
        s.pick_mib[n_picks] = find_mib_asked(cards, ask, slot, d)
        s.pick_cores[n_picks] = find_cores(cards, ask.containers, slot, d)
        return
    # What is charged is the part, which may be more than what was asked for.
    part_figures = cards.carvings.parts
    s.pick_mib[n_picks], s.pick_cores[n_picks] = (
        part_figures[p, card_parts.PART_MIB],
        part_figures[p, card_parts.PART_CORES],
    )
    s.cut[d - s.first[c.FIRST_CARD]] |= part_figures[p, card_parts.PART_BITS]


@kernel
def suffices(world: World, ask: c.Ask, row: int, picks: Ints2) -> bool:
    """Whether a pod could get exactly these cards of a node now.

    ``picks`` [p, 3]: row of the card, number of the container and part of the card (``NO_PART``: any that suffices, or the
    card as it is), in the order in which containers are served; a row of -1 is a card that is not there. The rule on NUMA nodes is left out: whoever chose the cards kept it.
    Writes ``s.held``. O(p).
    """
    nodes, cards, s = world.tables.nodes, world.tables.cards, world.scratch
    pool = pools.find_pool(nodes, ask, row)
    start, count = nodes.pools.start[pool], nodes.pools.count[pool]
    begin_choice(cards, start, count, s)
    s.first[c.FIRST_PICK] = picks.shape[0]
    for p in range(picks.shape[0]):
        d, slot, told = picks[p, 0], picks[p, 1], picks[p, 2]
        if (
            d < start
            or d >= start + count
            or not accepts_card(cards, ask, slot, start, d - start, p, s)
        ):
            return False
        if told == c.NO_PART:
            pick_card(cards, ask, slot, d, p, s)
        elif cards.carvings.parts[told, card_parts.PART_CLASH] & s.cut[d - start] != 0:
            return False
        else:
            write_pick(cards, ask, slot, (d, told), p, s)
        if ask.containers[c.KIND, slot] != c.KIND_INIT or s.pick_part[p] != c.NO_PART:
            s.held[c.CORES, d - start] += s.pick_cores[p]
            s.held[c.MIB, d - start] += s.pick_mib[p]
            s.held[c.SLOTS, d - start] += 1
    return True


@part
def _has_parts(cards: c.Cards, start: int, count: int) -> bool:
    """Whether parts can be cut out of any of these cards."""
    for d in range(start, start + count):
        if cards.carving[d] > 0:
            return True
    return False


@part
def choose_for_container(
    cards: c.Cards, ask: c.Ask, slot: int, start: int, count: int, n_picks: int, s: c.Scratch
) -> int:
    """Pick the cards of one container; return the number of picks so far, or -1."""
    s.codes[:] = 0
    wanted = ask.containers[c.N_CARDS, slot]
    if wanted > count and not _has_parts(cards, start, count):
        s.codes[TOO_MANY_ASKED] = count
        return -1
    order_cards(cards, ask, start, count, s)
    numa_bind = ask.rules.numa_bind
    # With parts of cards HAMi would list a card as often as it can be cut.
    by_links = ask.rules.linked and cards.link[start] >= 0 and not _has_parts(cards, start, count)
    passing = 0
    first = n_picks
    last_numa = -1
    at = count
    while at > 0:
        at -= 1
        j = s.order[at]
        d = start + j
        if not cards.healthy[d]:
            s.codes[HEALTH] += 1
            continue
        if cards.cordoned[d]:
            s.codes[CORDONED] += 1
            continue
        if not (ask.prefers.model_ok[cards.model[d]] and ask.prefers.mode_ok[cards.mode[d]]):
            s.codes[TYPE] += 1
            continue
        if _is_elsewhere(cards, d, s):
            s.codes[NUMA] += 1
            continue
        if numa_bind and cards.numa[d] != last_numa:
            if passing >= wanted:
                # HAMi would go on, and take cards of the last socket only.
                break
            # One socket at a time: what was picked on another is given back.
            if last_numa >= 0:
                s.codes[NUMA] += n_picks - first + passing
            n_picks, passing = first, 0
            carving.read_cuts(cards, start, count, n_picks, s)
            last_numa = cards.numa[d]
        if ask.prefers.uuid_ok.size > 0 and not ask.prefers.uuid_ok[cards.uuid[d]]:
            s.codes[UUID] += 1
            continue
        code = _find_refusal(cards, ask, slot, start, j, n_picks, s)
        if code >= 0:
            s.codes[code] += 1
            continue
        if by_links:
            s.passing[passing] = j
            passing += 1
            continue
        pick_card(cards, ask, slot, d, n_picks, s)
        n_picks += 1
        if n_picks - first == wanted:
            return n_picks
        if cards.mig[d]:
            # Several parts of one card may serve one container.
            at += 1
    if by_links and passing >= wanted:
        linked.choose_set(cards, start, passing, wanted, s)
        if wanted > 1:
            linked.count_pairs(wanted, s)
        for i in range(wanted):
            pick_card(cards, ask, slot, start + s.passing[s.chosen[i]], n_picks + i, s)
        return int(n_picks + wanted)
    s.codes[TOO_FEW] = n_picks - first + passing
    return -1
