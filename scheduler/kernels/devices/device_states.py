"""Which nodes have devices that are alike: kept up with the rows that moved, so that a search on one of them tells of all.

Devices of two nodes are alike when the nodes list as many, in the same order, of the same kinds, as much in use, that draw
alike on sets of counters as much in use, at the same places of the node. Other attributes by which single devices are named differ: they matter to pods alone that
read them, see ``claim_memo``.
"""

from __future__ import annotations

from scheduler.kernels._jit import kernel, part
from scheduler.kernels.class_table import find_bucket, join_class, leave_class, mix_figure
from scheduler.kernels.devices import device_lists
from scheduler.schema import devices as d
from scheduler.schema.cold import Classes
from scheduler.schema.handles import Flags1, Ints1, Ints2


@kernel
def update_states(
    devices: d.Devices, valid: Flags1, classes: Classes, rows: Ints1, lists: Ints2
) -> None:
    """Number the states of the rows that moved anew, in ``Devices.states``; a row may be named twice.

    ``lists`` [4, M] has room for the devices of any two nodes, and for their sets of counters.
    O(rows · (devices + counters)), where a device draws on few sets.
    """
    for i in range(rows.size):
        if classes.of[rows[i]] >= 0:
            leave_class(classes, rows[i])
    for i in range(rows.size):
        row = rows[i]
        if classes.of[row] >= 0 or not valid[row]:
            continue
        n = device_lists.list_devices(devices, row, lists[0])
        digest = _digest_devices(devices, lists[0], n)
        own = find_bucket(classes, digest)
        while own >= 0:
            if classes.digest[own] == digest and _are_alike(
                devices, lists, n, row, classes.head[own]
            ):
                break
            own = classes.chain[own]
        join_class(classes, row, digest, own)
    for i in range(rows.size):
        devices.states[rows[i]] = classes.of[rows[i]]


@part
def _digest_devices(devices: d.Devices, local: Ints1, n: int) -> int:
    mixed, last = mix_figure(0, n), -1
    for i in range(n):
        device = local[i]
        mixed = mix_figure(mixed, devices.kind[device])
        mixed = mix_figure(mixed, 2 * devices.sharers[device] + (devices.owners[device] > 0))
        in_set = devices.draws[0, device]
        if in_set >= 0 and in_set != last:
            last, base = in_set, devices.sets[d.SET_FIRST, in_set]
            for counter in range(base, base + devices.sets[d.SET_SIZE, in_set]):
                mixed = mix_figure(mixed, devices.counters[d.USED, counter])
    return int(mixed)


@part
def _are_alike(devices: d.Devices, lists: Ints2, n: int, row: int, other: int) -> bool:
    """Whether a node whose ``n`` devices are in ``lists[0]`` has the state of another one."""
    if devices.unsure[row] != devices.unsure[other]:
        return False
    if device_lists.list_devices(devices, other, lists[1]) != n:
        return False
    n_sets = 0
    for i in range(n):
        one, two = lists[0, i], lists[1, i]
        if not device_lists.are_used_alike(devices, one, two):
            return False
        for place in range(d.N_PLACES):
            row_of = devices.places[place]
            if row_of >= 0 and devices.values[row_of, one] != devices.values[row_of, two]:
                return False
        for in_set, pattern in d.DRAWS:
            if devices.draws[pattern, one] != devices.draws[pattern, two]:
                return False
            a, b = devices.draws[in_set, one], devices.draws[in_set, two]
            if a < 0 and b < 0:
                continue
            # The same devices of both nodes draw on one set.
            k = 0
            while k < n_sets and lists[2, k] != a and lists[3, k] != b:
                k += 1
            if k < n_sets:
                if lists[2, k] != a or lists[3, k] != b:
                    return False
                continue
            if a < 0 or b < 0 or n_sets == lists.shape[1]:
                return False
            if not device_lists.are_sets_alike(devices, a, b):
                return False
            lists[2, n_sets], lists[3, n_sets] = a, b
            n_sets += 1
    return True
