"""The devices of a node as a list, and what makes two devices alike."""

from __future__ import annotations

from scheduler.kernels._jit import part
from scheduler.schema import devices as d
from scheduler.schema.handles import Ints1


@part
def list_devices(devices: d.Devices, row: int, local: Ints1) -> int:
    """Write the devices of a node to ``local``, in order; return how many there are, -1 for more than there is room for."""
    n, first = 0, devices.spans_of[0, row]
    for i in range(first, first + devices.spans_of[1, row]):
        for device in range(devices.spans[i, 0], devices.spans[i, 0] + devices.spans[i, 1]):
            if devices.reach[device] < 0 or devices.reaches[devices.reach[device], row]:
                if n == local.size:
                    return -1
                local[n] = device
                n += 1
    return n


@part
def are_used_alike(devices: d.Devices, one: int, other: int) -> bool:
    """Whether two devices are of one kind, and as much in use."""
    if devices.kind[one] != devices.kind[other] or devices.sharers[one] != devices.sharers[other]:
        return False
    if devices.owners[one] != devices.owners[other]:
        return False
    for j in range(devices.n_cells[devices.kind[one]] if devices.cell[one] >= 0 else 0):
        if (
            devices.cells[d.USED, devices.cell[one] + j]
            != devices.cells[d.USED, devices.cell[other] + j]
        ):
            return False
    return True


@part
def are_sets_alike(devices: d.Devices, a: int, b: int) -> bool:
    """Whether two sets have the same counters, of which the same is drawn."""
    if devices.sets[d.SET_SIZE, a] != devices.sets[d.SET_SIZE, b]:
        return False
    if devices.sets[d.SET_LAYOUT, a] != devices.sets[d.SET_LAYOUT, b]:
        return False
    for j in range(devices.sets[d.SET_SIZE, a]):
        for figure in range(2):
            there = devices.counters[figure, devices.sets[d.SET_FIRST, a] + j]
            if there != devices.counters[figure, devices.sets[d.SET_FIRST, b] + j]:
                return False
    return True
