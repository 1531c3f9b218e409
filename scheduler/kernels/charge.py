"""What a pod takes of its node: the one place where totals are written.

A charge is a sparse column over ``Nodes.totals``, compiled once per template, and what the pod holds on
cards. The placing kernel, assuming, forgetting, binding, deleting, listing again and trying add it or
take it back, and nothing else writes ``Nodes.totals``, ``Nodes.gpu_used`` or ``Cards.used``. All figures are integers, so what
is taken back leaves exactly what was there before.
"""

from __future__ import annotations

from scheduler.kernels._jit import inlined, kernel
from scheduler.schema import columns as c

# Beyond any row: what is given back was in use before.
_IN_USE = 1 << 62


@kernel
def enter(
    ledger: c.Ledger, charge: int, priority: int, start: int, node_row: int, holds: c.Ints
) -> int:
    """A row of the pod table for a pod, which is charged to a node (-1: to none, for it is not there).

    ``holds`` [h, 4] is what it holds of the node's cards, as ``Pods.holds``.

    Returns:
        The row, or -1 when the tables have no room. O(parts + cards held).
    """
    if not has_room(ledger, 1, holds.shape[0]):
        return -1
    pod = open_row(ledger, charge, priority, start)
    _hold(ledger, pod, holds)
    ledger.node[pod] = node_row
    if node_row >= 0:
        add(ledger, pod, 1)
    return int(pod)


@kernel
def move(ledger: c.Ledger, pod: int, node_row: int, holds: c.Ints) -> bool:
    """Charge a pod that is charged nowhere to a node (-1: still to none); ``holds`` replaces what it held.

    Whether there was room, without which nothing is changed.
    """
    if not has_room(ledger, 0, holds.shape[0]):
        return False
    _drop_holds(ledger, pod, _IN_USE)
    _hold(ledger, pod, holds)
    ledger.node[pod] = node_row
    if node_row >= 0:
        add(ledger, pod, 1)
    return True


@kernel
def strike(ledger: c.Ledger, pod: int) -> int:
    """Take a pod's charge back; the node row it was charged to, -1 for none. It keeps its row and its holds."""
    node_row = ledger.node[pod]
    if node_row >= 0:
        add(ledger, pod, -1)
        ledger.node[pod] = -1
    return int(node_row)


@kernel
def charge_again(ledger: c.Ledger, pod: int, node_row: int) -> None:
    """Charge a pod that was struck to the same node."""
    ledger.node[pod] = node_row
    add(ledger, pod, 1)


@kernel
def leave(ledger: c.Ledger, pod: int) -> int:
    """As ``strike``, and the pod's row is free."""
    return _give_back(ledger, pod, _IN_USE, _IN_USE)


@kernel
def undo(ledger: c.Ledger, pod: int, end_row: int, end_holds: int) -> int:
    """As ``leave`` of the pod that was entered last; the tables are byte by byte what they were before that.

    ``end_row`` and ``end_holds`` are what ``Pods.free`` told at some time before, since when no row was given
    back but by this: what lies behind had never been in use.
    """
    return _give_back(ledger, pod, end_row, end_holds)


@inlined
def _give_back(ledger: c.Ledger, pod: int, end_row: int, end_holds: int) -> int:
    node_row = ledger.node[pod]
    if node_row >= 0:
        add(ledger, pod, -1)
    _drop_holds(ledger, pod, end_holds)
    _close_row(ledger, pod, end_row)
    return int(node_row)


@inlined
def add(ledger: c.Ledger, pod: int, sign: int) -> None:
    """Add ``sign`` times a pod's charge and what it holds to the totals of its node."""
    row = ledger.node[pod]
    first = ledger.run[0, ledger.charge[pod]]
    for i in range(first, first + ledger.run[1, ledger.charge[pod]]):
        if ledger.parts[i, 0] >= 0:
            ledger.totals[ledger.parts[i, 0], row] += sign * ledger.parts[i, 1]
    for i in range(ledger.held[0, pod], ledger.held[0, pod] + ledger.held[1, pod]):
        card = ledger.holds[i, 0]
        for figure in range(3):
            amount = sign * ledger.holds[i, 1 + figure]
            ledger.used[figure, card] += amount
            ledger.gpu_used[ledger.pool[card], figure, row] += amount


@inlined
def has_room(ledger: c.Ledger, pods: int, holds: int) -> bool:
    """Whether so many more pods may come, and one of them hold so many cards, wherever rows are free."""
    rows = ledger.free[c.END_ROW] + pods <= ledger.node.size
    return bool(rows and ledger.free[c.END_HOLDS] + 2 * holds <= ledger.holds.shape[0])


@inlined
def open_row(ledger: c.Ledger, charge: int, priority: int, start: int) -> int:
    """A row for a pod that is charged nowhere yet and holds nothing."""
    pod = ledger.free[c.FREE_ROW]
    if pod >= 0:
        ledger.free[c.FREE_ROW] = ledger.held[0, pod]
    else:
        pod = ledger.free[c.END_ROW]
        ledger.free[c.END_ROW] += 1
    ledger.held[0, pod], ledger.held[1, pod] = 0, 0
    ledger.charge[pod], ledger.priority[pod], ledger.start[pod] = charge, priority, start
    return int(pod)


@inlined
def _close_row(ledger: c.Ledger, pod: int, end_row: int) -> None:
    ledger.node[pod] = -1
    ledger.charge[pod], ledger.priority[pod], ledger.start[pod] = 0, 0, 0
    if pod >= end_row:
        ledger.free[c.END_ROW] = pod
    else:
        ledger.held[0, pod] = ledger.free[c.FREE_ROW]
        ledger.free[c.FREE_ROW] = pod


@inlined
def take_holds(ledger: c.Ledger, pod: int, n: int) -> int:
    """The first of ``n`` rows for what a pod holds that holds nothing yet; of none it is 0."""
    if n == 0:
        return 0
    size, room = _run_of(n)
    first = ledger.free[c.FREE_RUN + size]
    if first >= 0:
        ledger.free[c.FREE_RUN + size] = ledger.holds[first, 0]
    else:
        first = ledger.free[c.END_HOLDS]
        ledger.free[c.END_HOLDS] += room
    ledger.held[0, pod], ledger.held[1, pod] = first, n
    return int(first)


@inlined
def _drop_holds(ledger: c.Ledger, pod: int, end_holds: int) -> None:
    """A pod holds nothing any more."""
    first, n = ledger.held[0, pod], ledger.held[1, pod]
    ledger.held[0, pod], ledger.held[1, pod] = 0, 0
    if n == 0:
        return
    size, _ = _run_of(n)
    for i in range(first, first + n):
        for figure in range(4):
            ledger.holds[i, figure] = 0
    if first >= end_holds:
        ledger.free[c.END_HOLDS] = first
    else:
        ledger.holds[first, 0] = ledger.free[c.FREE_RUN + size]
        ledger.free[c.FREE_RUN + size] = first


@inlined
def _run_of(n: int) -> tuple[int, int]:
    """Runs have 1, 2, 4 … rows, so that one is found again whatever is asked for: which it is, and its rows."""
    size, room = 0, 1
    while room < n:
        size += 1
        room *= 2
    return size, room


@inlined
def _hold(ledger: c.Ledger, pod: int, holds: c.Ints) -> None:
    first = take_holds(ledger, pod, holds.shape[0])
    for i in range(holds.shape[0]):
        for figure in range(4):
            ledger.holds[first + i, figure] = holds[i, figure]
