"""What a pod takes of its node: the one place where totals are written.

A charge is a sparse column over ``Nodes.totals``, compiled once per template, and what the pod holds on
cards. The placing kernel, assuming, forgetting, binding, deleting, listing again and trying add it or
take it back, and nothing else writes ``Nodes.totals``, ``Pools.used``, ``Cards.used``, ``Cards.marks`` or what is in use of ``Devices``. All figures are integers, so what
is taken back leaves exactly what was there before.
"""

from __future__ import annotations

from scheduler.kernels._jit import kernel, part
from scheduler.kernels.devices import device_holds
from scheduler.schema import card_parts
from scheduler.schema import columns as c
from scheduler.schema import devices as d
from scheduler.schema.handles import Ints1, Ints2

# Beyond any row: what is given back was in use before.
_IN_USE = 1 << 62


@kernel
def enter_pod(
    tables: c.Tables, charge: int, priority: int, start: int, node_row: int, holds: Ints2
) -> int:
    """Open a row of the pod table for a pod, and charge the pod to a node (-1: to none, because the node is not there).

    ``holds`` [h, 4] is what the pod holds of the node's cards, as ``Pods.holds``.

    Returns:
        The row, or -1 when the tables have no room. O(parts + cards held).
    """
    if not has_room(tables, 1, holds.shape[0]):
        return -1
    pod = open_row(tables, charge, priority, start)
    write_holds(tables, pod, holds, holds.shape[0])
    tables.pods.node[pod] = node_row
    if node_row >= 0:
        add_charge(tables, pod, 1)
    return int(pod)


@kernel
def move_pod(tables: c.Tables, pod: int, node_row: int, holds: Ints2) -> bool:
    """Charge a pod that is charged nowhere to a node (-1: still to none); ``holds`` replaces what it held.

    Return whether there was room; without room nothing is changed.
    """
    if not has_room(tables, 0, holds.shape[0]):
        return False
    _drop_holds(tables, pod, _IN_USE)
    write_holds(tables, pod, holds, holds.shape[0])
    tables.pods.node[pod] = node_row
    if node_row >= 0:
        add_charge(tables, pod, 1)
    return True


@kernel
def strike_pod(tables: c.Tables, pod: int) -> int:
    """Take a pod's charge back; return the node row it was charged to, -1 for none. The pod keeps its row and its holds."""
    node_row = tables.pods.node[pod]
    if node_row >= 0:
        add_charge(tables, pod, -1)
        tables.pods.node[pod] = -1
    return int(node_row)


@kernel
def charge_again(tables: c.Tables, pod: int, node_row: int) -> None:
    """Charge a pod that was struck to the same node."""
    tables.pods.node[pod] = node_row
    add_charge(tables, pod, 1)


@kernel
def strike_pods(tables: c.Tables, pods: Ints1, node_rows: Ints1) -> None:
    """Take back the charges of pods [k], as ``strike_pod`` does; note in ``node_rows`` [k] where they were charged."""
    for i in range(pods.size):
        pod = pods[i]
        node_rows[i] = tables.pods.node[pod]
        if node_rows[i] >= 0:
            add_charge(tables, pod, -1)
            tables.pods.node[pod] = -1


@kernel
def charge_pods_again(tables: c.Tables, pods: Ints1, node_rows: Ints1) -> None:
    """Charge pods [k] that were struck to the same nodes; a pod that was charged to none (-1) is left out."""
    for i in range(pods.size):
        if node_rows[i] >= 0:
            tables.pods.node[pods[i]] = node_rows[i]
            add_charge(tables, pods[i], 1)


@kernel
def add_amounts(tables: c.Tables, charges: Ints1, node_rows: Ints1, sign: int) -> None:
    """Add ``sign`` times charges [k], without cards, to the totals of nodes [k], for pods that are in no table."""
    for i in range(charges.size):
        first = tables.charges.run[0, charges[i]]
        for at in range(first, first + tables.charges.run[1, charges[i]]):
            if tables.charges.parts[at, 0] >= 0:
                tables.nodes.totals[tables.charges.parts[at, 0], node_rows[i]] += (
                    sign * tables.charges.parts[at, 1]
                )


@kernel
def remove_pod(tables: c.Tables, pod: int) -> int:
    """As ``strike_pod``, and free the pod's row."""
    return _give_back(tables, pod, _IN_USE, _IN_USE)


@kernel
def undo_entries(
    tables: c.Tables, pods: Ints1, node_rows: Ints1, end_row: int, end_holds: int
) -> None:
    """As ``remove_pod``, for the pods [k] that were entered last, the last one first.

    The tables become byte by byte what they were before. ``end_row`` and ``end_holds`` are what ``Pods.free`` said at an
    earlier time, since which only this function has given rows back: what lies behind them had never been in use.
    ``node_rows`` [k] takes the rows of the nodes that the pods were charged to, -1 for none.
    """
    for i in range(pods.size):
        node_rows[i] = _give_back(tables, pods[i], end_row, end_holds)


@part
def _give_back(tables: c.Tables, pod: int, end_row: int, end_holds: int) -> int:
    node_row = tables.pods.node[pod]
    if node_row >= 0:
        add_charge(tables, pod, -1)
    _drop_holds(tables, pod, end_holds)
    _close_row(tables, pod, end_row)
    return int(node_row)


@part
def add_charge(tables: c.Tables, pod: int, sign: int) -> None:
    """Add ``sign`` times a pod's charge and what it holds to the totals of its node."""
    row, mark = tables.pods.node[pod], tables.charges.mark[tables.pods.charge[pod]]
    first = tables.charges.run[0, tables.pods.charge[pod]]
    for i in range(first, first + tables.charges.run[1, tables.pods.charge[pod]]):
        if tables.charges.parts[i, 0] >= 0:
            tables.nodes.totals[tables.charges.parts[i, 0], row] += (
                sign * tables.charges.parts[i, 1]
            )
    for i in range(tables.pods.held[0, pod], tables.pods.held[0, pod] + tables.pods.held[1, pod]):
        card, p = tables.pods.holds[i, c.HOLD_CARD], tables.pods.holds[i, c.HOLD_PART]
        if p < c.NO_PART:
            _count_device(tables.devices, card, p, sign * tables.pods.holds[i, c.HOLD_CORES], sign)
            continue
        if p != c.NO_PART:
            _count_part(tables.cards, card, p, sign)
            continue
        tables.cards.marks[card] += sign * mark
        for figure in range(3):
            amount = sign * tables.pods.holds[i, 1 + figure]
            tables.cards.used[figure, card] += amount
            tables.nodes.pools.used[figure, tables.cards.pool[card]] += amount


@kernel
def charge_devices(tables: c.Tables, holds: Ints2, sign: int) -> None:
    """Charge what a claim holds of devices, ``holds`` [h, N_HOLD], to no pod (``sign`` 1), or take the charge back (-1)."""
    for i in range(holds.shape[0]):
        amount = sign * holds[i, c.HOLD_CORES]
        _count_device(tables.devices, holds[i, c.HOLD_CARD], holds[i, c.HOLD_PART], amount, sign)


@part
def _count_device(devices: d.Devices, what: int, how: int, amount: int, sign: int) -> None:
    """Count what a claim holds: a device, a share of one, an amount of a cell, or all that several pods have together."""
    if how == d.HOLD_JOINT:
        _count_joint(devices, what, sign)
    else:
        _count_part_of_claim(devices, what, how, amount, sign)


@part
def _count_joint(devices: d.Devices, claim: int, sign: int) -> None:
    """Count one more of those who have a claim together as charged, or one less; the first and the last one count."""
    had = devices.joint[d.JOINT_CHARGED, claim] > 0
    devices.joint[d.JOINT_CHARGED, claim] += sign
    if had == (devices.joint[d.JOINT_CHARGED, claim] > 0):
        return
    first = devices.joint[d.JOINT_FIRST, claim]
    for i in range(first, first + devices.joint[d.JOINT_SIZE, claim]):
        amount = sign * devices.joint_holds[i, 2]
        _count_part_of_claim(
            devices, devices.joint_holds[i, 0], devices.joint_holds[i, 1], amount, sign
        )


@part
def _count_part_of_claim(devices: d.Devices, what: int, how: int, amount: int, sign: int) -> None:
    if how == d.HOLD_DEVICE:
        device_holds.own_device(devices, what, sign)
    elif how == d.HOLD_SHARE:
        device_holds.share_device(devices, what, sign)
    else:
        devices.cells[d.USED, what] += amount


@part
def _count_part(cards: c.Cards, d: int, p: int, sign: int) -> None:
    """Count a part of a card as in use (``sign`` 1) or no longer in use (-1)."""
    bits, i = cards.carvings.parts[p, card_parts.PART_BITS], cards.counter[d]
    bit = 1
    while bit <= bits:
        if bits & bit != 0:
            cards.slots.used[i] += sign
            if cards.slots.used[i] > 0:
                cards.cut[d] |= bit
            else:
                cards.cut[d] &= ~bit
        i, bit = i + 1, bit << 1


@part
def has_room(tables: c.Tables, pods: int, holds: int) -> bool:
    """Whether so many more pods may come, and one of them hold so many cards, wherever rows are free."""
    rows = tables.pods.free[c.END_ROW] + pods <= tables.pods.node.size
    return bool(rows and tables.pods.free[c.END_HOLDS] + 2 * holds <= tables.pods.holds.shape[0])


@part
def open_row(tables: c.Tables, charge: int, priority: int, start: int) -> int:
    """Open a row for a pod that is charged nowhere yet and holds nothing."""
    pod = tables.pods.free[c.FREE_ROW]
    if pod >= 0:
        tables.pods.free[c.FREE_ROW] = tables.pods.held[0, pod]
    else:
        pod = tables.pods.free[c.END_ROW]
        tables.pods.free[c.END_ROW] += 1
    tables.pods.held[0, pod], tables.pods.held[1, pod] = 0, 0
    tables.pods.charge[pod], tables.pods.priority[pod], tables.pods.start[pod] = (
        charge,
        priority,
        start,
    )
    return int(pod)


@part
def _close_row(tables: c.Tables, pod: int, end_row: int) -> None:
    tables.pods.node[pod] = -1
    tables.pods.charge[pod], tables.pods.priority[pod], tables.pods.start[pod] = 0, 0, 0
    if pod >= end_row:
        tables.pods.free[c.END_ROW] = pod
    else:
        tables.pods.held[0, pod] = tables.pods.free[c.FREE_ROW]
        tables.pods.free[c.FREE_ROW] = pod


@part
def _take_holds(tables: c.Tables, pod: int, n: int) -> int:
    """Take ``n`` rows for what a pod holds, which holds nothing yet; return the first of them, 0 for none."""
    if n == 0:
        return 0
    size, room = _find_run(n)
    first = tables.pods.free[c.FREE_RUN + size]
    if first >= 0:
        tables.pods.free[c.FREE_RUN + size] = tables.pods.holds[first, 0]
    else:
        first = tables.pods.free[c.END_HOLDS]
        tables.pods.free[c.END_HOLDS] += room
    tables.pods.held[0, pod], tables.pods.held[1, pod] = first, n
    return int(first)


@part
def _drop_holds(tables: c.Tables, pod: int, end_holds: int) -> None:
    """Give back the rows of what a pod holds."""
    first, n = tables.pods.held[0, pod], tables.pods.held[1, pod]
    tables.pods.held[0, pod], tables.pods.held[1, pod] = 0, 0
    if n == 0:
        return
    size, _ = _find_run(n)
    for i in range(first, first + n):
        for figure in range(c.N_HOLD):
            tables.pods.holds[i, figure] = 0
    if first >= end_holds:
        tables.pods.free[c.END_HOLDS] = first
    else:
        tables.pods.holds[first, 0] = tables.pods.free[c.FREE_RUN + size]
        tables.pods.free[c.FREE_RUN + size] = first


@part
def _find_run(n: int) -> tuple[int, int]:
    """Return which run is long enough for ``n`` rows, and its length.

    Runs have 1, 2, 4 … rows, so that a free run is of use again for any request of its size.
    """
    size, room = 0, 1
    while room < n:
        size += 1
        room *= 2
    return size, room


@part
def write_holds(tables: c.Tables, pod: int, holds: c.Ints, n: int) -> None:
    """Write that a pod that holds nothing holds what the first ``n`` rows of ``holds`` [h, N_HOLD] say."""
    first = _take_holds(tables, pod, n)
    for i in range(n):
        for figure in range(c.N_HOLD):
            tables.pods.holds[first + i, figure] = holds[i, figure]
