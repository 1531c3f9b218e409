"""What it costs to take one of several devices that would do: the one whose cost is lowest comes first, and of equal ones the first in order.

A device loses, in milli of a whole device,

    counters     3 · (room before − room after) + 3 · (fitting before − fitting after) + 0.07 · room after
    shares       3 · what of it can be used no more + 0.07 · what can still be used
    others       3 + what is scattered: for PCIe roots and NUMA nodes, a price if the devices of a request do not come from
                 one, and another one for each unused device that stays behind there

where a set of counters has, for each state, the room and what fits of ``Devices.rooms``. The formula is that of cards which
are cut, see ``modes/carved.py``. What a request needs is the same for each of its devices, so it is not taken away.
"""

from __future__ import annotations

from scheduler.kernels._jit import part
from scheduler.schema import devices as d

_MILLI = 1000.0
_LOSS_WEIGHT, _REST_WEIGHT = 3.0, 0.07
# For a bind that waits until the device is ready: such devices come last.
_WAITS = 1e6
# What it costs that devices of a request are apart, and that an unused device stays behind.
_ROOT_APART, _ROOT_BESIDE, _NUMA_APART, _NUMA_BESIDE = 120.0, 30.0, 60.0, 5.0
# Spreads keys over the entries of ``ClaimScratch.lost``.
_MIX = 31
# How much a loss counts beside how full a device is.
_TIE_WEIGHT = 1e-7


@part
def find_cost(
    devices: d.Devices, ask: d.ClaimAsk, f: int, at: int, n: int, s: d.ClaimScratch
) -> float:
    """Return what it costs to take the device ``at`` of ``s.local`` in a step, by the policy of the ask; the node has ``n`` devices."""
    device = s.local[at]
    cost = find_loss(devices, ask, f, at, n, s)
    if ask.policy != d.LEAST_LOSS:
        use = measure_use(devices, device)
        cost = cost * _TIE_WEIGHT + (use if ask.policy == d.EMPTIEST else 1.0 - use)
    return cost + _WAITS if devices.waits[devices.kind[device]] else cost


@part
def find_loss(
    devices: d.Devices, ask: d.ClaimAsk, f: int, at: int, n: int, s: d.ClaimScratch
) -> float:
    """Return what is lost if a step gets the device ``at`` of ``s.local``, in milli of a whole device."""
    device, leaf = s.local[at], s.leaf[f]
    kind, loss = devices.kind[device], 0.0
    if ask.leaves[leaf, d.LEAF_ADMIN]:
        return 0.0
    if devices.draws[0, device] < 0:
        loss = _LOSS_WEIGHT * _MILLI
        if not devices.shareable[kind]:
            loss += _find_scatter(devices, ask, f, at, n, s)
    elif devices.sharers[device] == 0:
        for in_set, pattern in d.DRAWS:
            if devices.draws[in_set, device] >= 0:
                loss += _find_lost_room(devices, at, in_set, pattern, n, s)
    if devices.shareable[kind] and devices.cell[device] >= 0:
        # Of a device that draws on counters, too, the first share has taken the whole of it from others.
        use, after = _find_shares(devices, ask, leaf, device)
        loss = loss if devices.draws[0, device] >= 0 else 0.0
        loss += _MILLI * (_LOSS_WEIGHT * (after - use) + _REST_WEIGHT * (1.0 - after))
    return loss


@part
def _find_scatter(
    devices: d.Devices, ask: d.ClaimAsk, f: int, at: int, n: int, s: d.ClaimScratch
) -> float:
    """Return what it costs that devices of a request are apart, and that unused devices beside them stay behind alone."""
    device, leaf, cost = s.local[at], s.leaf[f], 0.0
    for place in range(d.N_PLACES):
        row = devices.places[place]
        if row < 0 or devices.values[row, device] < 0:
            continue
        unused, wanted = 0, s.need[f] - s.nth[f]
        for i in range(n):
            other = s.local[i]
            if (
                devices.values[row, other] == devices.values[row, device]
                and ask.may_have[leaf, devices.kind[other]]
                and devices.owners[other] == 0
                and devices.sharers[other] == 0
            ):
                unused += 1
        is_apart = unused < wanted
        if s.nth[f] > 0:
            before = s.local[s.pick[f - 1]]
            is_apart = devices.values[row, before] != devices.values[row, device]
        split, beside = (_ROOT_APART, _ROOT_BESIDE) if place == d.PLACE_ROOT else (_NUMA_APART, _NUMA_BESIDE)  # fmt: skip
        cost += (split if is_apart else 0.0) + beside * max(0, unused - wanted)
    return cost


@part
def measure_use(devices: d.Devices, device: int) -> float:
    """Return how much of a device is in use, or of what it is a part of, 0..1."""
    if devices.draws[0, device] >= 0:
        most = 0.0
        for in_set, _ in d.DRAWS:
            if devices.draws[in_set, device] >= 0:
                most = max(most, _find_drawn(devices, devices.draws[in_set, device]))
        if not devices.shareable[devices.kind[device]] or devices.sharers[device] == 0:
            return most
    if devices.shareable[devices.kind[device]] and devices.cell[device] >= 0:
        return _find_used(devices, device)
    return 1.0 if devices.owners[device] > 0 or devices.sharers[device] > 0 else 0.0


@part
def _find_used(devices: d.Devices, device: int) -> float:
    """Return the largest part of any capacity of a device that is consumed, 0..1."""
    most = 0.0
    for j in range(devices.n_cells[devices.kind[device]]):
        total = devices.cells[d.TOTAL, devices.cell[device] + j]
        if total > 0:
            most = max(most, devices.cells[d.USED, devices.cell[device] + j] / total)
    return most


@part
def _find_shares(
    devices: d.Devices, ask: d.ClaimAsk, leaf: int, device: int
) -> tuple[float, float]:
    """Return the largest part of any capacity of a device that is consumed, 0..1, before a leaf has a share of it and after."""
    first, most, after = ask.consumes[leaf, devices.kind[device]], 0.0, 0.0
    for j in range(devices.n_cells[devices.kind[device]]):
        total = devices.cells[d.TOTAL, devices.cell[device] + j]
        if total > 0:
            used = devices.cells[d.USED, devices.cell[device] + j]
            most = max(most, used / total)
            more = ask.amounts[first + j] if first >= 0 else 0
            after = max(after, (used + more) / total)
    return most, after


@part
def _find_drawn(devices: d.Devices, counter_set: int) -> float:
    """Return which part of a set of counters is drawn, 0..1; the mean of all counters where its states are not known."""
    state = _find_state(devices, counter_set, -1)
    if state >= 0:
        return float(devices.rooms[d.DRAWN, state])
    total, n, base = 0.0, 0, devices.sets[d.SET_FIRST, counter_set]
    for counter in range(base, base + devices.sets[d.SET_SIZE, counter_set]):
        if devices.counters[d.TOTAL, counter] > 0:
            total += devices.counters[d.USED, counter] / devices.counters[d.TOTAL, counter]
            n += 1
    return total / n if n > 0 else 0.0


@part
def _find_lost_room(
    devices: d.Devices, at: int, in_set: int, pattern: int, n: int, s: d.ClaimScratch
) -> float:
    """Return what a set of counters loses if the device ``at`` of ``s.local`` draws on it."""
    counters, mine = devices.draws[in_set, s.local[at]], devices.draws[pattern, s.local[at]]
    layout, key = devices.sets[d.SET_LAYOUT, counters], devices.sets[d.SET_KEY, counters]
    # Many sets are in the same few states. What a state of a layout loses by a pattern never changes.
    slot = (key * _MIX + mine) & (d.LOST_MOST - 1)
    by = s.lost_by
    if layout >= 0 and by[slot, 0] == layout and by[slot, 1] == key and by[slot, 2] == mine:
        return float(s.lost[slot])
    state = _find_state(devices, counters, -1)
    after = _find_state(devices, counters, mine)
    if state >= 0 and after >= 0:
        rooms = devices.rooms
        lost = rooms[d.ROOM, state] - rooms[d.ROOM, after]
        lost += rooms[d.FITTING, state] - rooms[d.FITTING, after]
        s.lost[slot] = _MILLI * (_LOSS_WEIGHT * lost + _REST_WEIGHT * rooms[d.ROOM, after])
        by[slot, 0], by[slot, 1], by[slot, 2] = layout, key, mine
        return float(s.lost[slot])
    return _LOSS_WEIGHT * _MILLI * _find_lost_neighbours(devices, at, in_set, pattern, n, s)


@part
def _find_state(devices: d.Devices, counter_set: int, pattern: int) -> int:
    """Find the state of a set of counters with one more draw (-1: none) in ``Devices.room_keys``; -1 if it is not known."""
    layout = devices.sets[d.SET_LAYOUT, counter_set]
    if layout < 0:
        return -1
    key = devices.sets[d.SET_KEY, counter_set]
    if pattern >= 0:
        key = (key + devices.patterns[2, pattern]) % d.KEY_PRIME
    low, high = devices.layouts[0, layout], devices.layouts[0, layout] + devices.layouts[1, layout]
    end = high
    while low < high:
        middle = (low + high) // 2
        if devices.room_keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return int(low) if low < end and devices.room_keys[low] == key else -1


@part
def _find_lost_neighbours(
    devices: d.Devices, at: int, in_set: int, pattern: int, n: int, s: d.ClaimScratch
) -> float:
    """Return what can be taken of a set of counters now and no more beside a device: the parts of the set that these devices are.

    It stands in where the states of a set are too many to know. Every other device of the node that draws on the set counts
    by the mean part of the counters that it draws. Those are neighbours of the device, or it is not known of them.
    """
    device = s.local[at]
    counters, mine = devices.draws[in_set, device], devices.draws[pattern, device]
    base, size = devices.sets[d.SET_FIRST, counters], devices.sets[d.SET_SIZE, counters]
    if size > s.drawn.size:
        return 0.0
    for place in range(size):
        s.drawn[place] = 0
    for k in range(
        devices.patterns[0, mine], devices.patterns[0, mine] + devices.patterns[1, mine]
    ):
        s.drawn[devices.pattern[k, 0]] = devices.pattern[k, 1]
    loss = 0.0
    for step in range(-1, 2, 2):
        i = at + step
        while 0 <= i < n and _draws_on(devices, s.local[i], counters) >= 0:
            loss += _lose_one(devices, s.local[i], counters, base, s)
            i += step
    return loss


@part
def _draws_on(devices: d.Devices, device: int, counters: int) -> int:
    """Return the pattern by which a device draws on a set of counters, -1 if it does not."""
    for in_set, pattern in d.DRAWS:
        if devices.draws[in_set, device] == counters:
            return int(devices.draws[pattern, device])
    return -1


@part
def _lose_one(
    devices: d.Devices, device: int, counters: int, base: int, s: d.ClaimScratch
) -> float:
    """Return the part of a set of counters that a device is, if it can be taken now and not beside what ``s.drawn`` draws."""
    if devices.owners[device] > 0:
        return 0.0
    pattern = _draws_on(devices, device, counters)
    first, share, fits_beside = devices.patterns[0, pattern], 0.0, True
    n = max(1, devices.patterns[1, pattern])
    for k in range(first, first + devices.patterns[1, pattern]):
        place, amount = devices.pattern[k, 0], devices.pattern[k, 1]
        total = devices.counters[d.TOTAL, base + place]
        left = total - devices.counters[d.USED, base + place]
        if amount > left:
            return 0.0
        if total > 0:
            share += amount / total / n
        fits_beside = fits_beside and amount <= left - s.drawn[place]
    return 0.0 if fits_beside else share
