"""Who has devices of ResourceSlices: taken while devices are searched, noted for the charge, and charged."""

from __future__ import annotations

from scheduler.kernels._jit import part, tiny
from scheduler.schema import columns as c
from scheduler.schema import devices as d


@tiny
def is_free(devices: d.Devices, device: int) -> bool:
    """Whether a claim that uses devices may have a device, or a share of it, by who has it already."""
    if devices.owners[device] > 0:
        return False
    return bool(devices.sharers[device] == 0 or devices.shareable[devices.kind[device]])


@part
def take_device(devices: d.Devices, ask: d.ClaimAsk, leaf: int, device: int, sign: int) -> None:
    """Take a device for a leaf (``sign`` 1), or give it back (-1)."""
    if ask.leaves[leaf, d.LEAF_ADMIN]:
        return
    kind = devices.kind[device]
    if not devices.shareable[kind]:
        own_device(devices, device, sign)
        return
    share_device(devices, device, sign)
    first = ask.consumes[leaf, kind]
    if first >= 0 and devices.cell[device] >= 0:
        for j in range(devices.n_cells[kind]):
            devices.cells[d.USED, devices.cell[device] + j] += sign * ask.amounts[first + j]


@part
def own_device(devices: d.Devices, device: int, sign: int) -> None:
    """Count a claim that has a device for itself (``sign`` 1), or has it no more (-1)."""
    devices.owners[device] += sign
    _draw(devices, device, sign)


@part
def share_device(devices: d.Devices, device: int, sign: int) -> None:
    """Count a claim that has a share of a device (``sign`` 1), or has it no more (-1)."""
    had = devices.sharers[device] > 0
    devices.sharers[device] += sign
    if had != (devices.sharers[device] > 0):
        _draw(devices, device, sign)


@part
def _draw(devices: d.Devices, device: int, sign: int) -> None:
    for in_set, pattern in d.DRAWS:
        if devices.draws[in_set, device] >= 0:
            counters, mine = devices.draws[in_set, device], devices.draws[pattern, device]
            base, first = devices.sets[d.SET_FIRST, counters], devices.patterns[0, mine]
            key = devices.sets[d.SET_KEY, counters] + sign * devices.patterns[2, mine]
            devices.sets[d.SET_KEY, counters] = key % d.KEY_PRIME
            for i in range(first, first + devices.patterns[1, mine]):
                devices.counters[d.USED, base + devices.pattern[i, 0]] += (
                    sign * devices.pattern[i, 1]
                )


@part
def note_holds(tables: c.Tables, ask: d.ClaimAsk, s: c.Scratch, n: int, n_held: int) -> int:
    """Note in ``s.holds`` what the ``n`` devices that ``allocate`` has found are to be charged; return how many rows there are."""
    devices, found = tables.devices, s.claims
    for f in range(n):
        leaf, first = found.leaf[f], found.local[found.pick[f]]
        if ask.leaves[leaf, d.LEAF_ADMIN]:
            continue
        device = first
        while device >= 0:
            n_held = _note_device(devices, ask, s, leaf, first, device, n_held)
            device = devices.twin[device]
            if device == first:
                break
    return n_held


@part
def _note_device(
    devices: d.Devices, ask: d.ClaimAsk, s: c.Scratch, leaf: int, of: int, device: int, n_held: int
) -> int:
    """Note a row of a device; what is consumed of it is as of the row ``of``, which is the same device."""
    kind = devices.kind[of]
    if not devices.shareable[kind]:
        return _note_hold(s, n_held, device, d.HOLD_DEVICE, 0)
    n_held = _note_hold(s, n_held, device, d.HOLD_SHARE, 0)
    first = ask.consumes[leaf, kind]
    if first >= 0 and devices.cell[device] >= 0:
        for j in range(devices.n_cells[kind]):
            if ask.amounts[first + j] > 0:
                cell = devices.cell[device] + j
                n_held = _note_hold(s, n_held, cell, d.HOLD_CELL, ask.amounts[first + j])
    return n_held


@part
def _note_hold(s: c.Scratch, n: int, what: int, how: int, amount: int) -> int:
    for column in range(c.N_HOLD):
        s.holds[n, column] = 0
    s.holds[n, c.HOLD_CARD], s.holds[n, c.HOLD_PART], s.holds[n, c.HOLD_CORES] = what, how, amount
    return n + 1
