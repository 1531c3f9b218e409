"""What the devices for a pod's claims cost on a node, and how full the devices are of which they are some.

Units are whole devices, devices that are shared, and sets of counters, which are what partitions are cut from. Those count
of which a request could have any by their kind.

Beside its own loss, see ``device_costs``, a choice costs 0.3 of what fits no more: for 1, 2, 4, … units up to all of the
node, how many of the units that are whole and unused such requests could have, as a mean over these sizes. A choice of
whole devices costs 0.2 for each unit that stays unused, too: nodes that are nearly empty are to become empty.
"""

from __future__ import annotations

from scheduler.kernels._jit import part, tiny
from scheduler.kernels.devices import device_costs, device_holds
from scheduler.schema import devices as d

_MILLI = 1000.0
_WHOLE_WEIGHT, _REST_WEIGHT = 0.3, 0.2


@part
def measure_choice(devices: d.Devices, ask: d.ClaimAsk, found: int, s: d.ClaimScratch) -> None:
    """Write to ``s.figures`` what the ``found`` devices that ``claims.allocate`` has left in ``s.pick`` cost, and take of the node.

    O(found · (devices + counters)).
    """
    n = int(s.n_local[0])
    whole = _count_units(devices, ask, n, s)
    loss, units = 0.0, int(s.figures[d.FIGURE_UNITS])
    used = s.figures[d.FIGURE_USED]
    for f in range(found):
        loss += device_costs.find_loss(devices, ask, f, s.pick[f], n, s)
        device_holds.take_device(devices, ask, s.leaf[f], s.local[s.pick[f]], 1)
    rest = _count_units(devices, ask, n, s)
    for f in range(found - 1, -1, -1):
        device_holds.take_device(devices, ask, s.leaf[f], s.local[s.pick[f]], -1)
    fewer = _measure_fitting(whole, units) - _measure_fitting(rest, units)
    loss += _WHOLE_WEIGHT * _MILLI * fewer
    if found > 0 and _is_whole(devices, s.local[s.pick[0]]):
        loss += _REST_WEIGHT * _MILLI * rest
    s.figures[d.FIGURE_LOSS] = loss
    s.figures[d.FIGURE_TAKEN] = s.figures[d.FIGURE_USED] - used
    s.figures[d.FIGURE_USED] = used


@tiny
def _is_whole(devices: d.Devices, device: int) -> bool:
    """Whether a device is no part of anything, and has one claim at most."""
    return bool(devices.draws[0, device] < 0 and not devices.shareable[devices.kind[device]])


@part
def rank_choice(ask: d.ClaimAsk, found: int, s: d.ClaimScratch) -> int:
    """Return the points of the alternatives of which the ``found`` devices are, each alternative once.

    Source: kube-scheduler 1.37.1, dynamicresources.go, computeScore.
    """
    points = ask.preferred
    for f in range(found):
        if f == 0 or s.leaf[f] != s.leaf[f - 1]:
            points += ask.leaves[s.leaf[f], d.LEAF_WORTH]
    return int(points)


@part
def _count_units(devices: d.Devices, ask: d.ClaimAsk, n: int, s: d.ClaimScratch) -> int:
    """Write the units of the node, and what is used of them, to ``s.figures``; return how many are unused."""
    units, used, unused, last = 0, 0.0, 0, -1
    for i in range(n):
        device = s.local[i]
        if not _may_serve(ask, devices.kind[device]):
            continue
        in_set = devices.draws[0, device]
        if in_set >= 0 and in_set == last:
            continue
        last = in_set
        use = device_costs.measure_use(devices, device)
        units += 1
        used += use
        unused += 1 if use == 0.0 else 0
    s.figures[d.FIGURE_UNITS], s.figures[d.FIGURE_USED] = units, used
    return unused


@part
def _may_serve(ask: d.ClaimAsk, kind: int) -> bool:
    """Whether any leaf may have devices of a kind."""
    for leaf in range(ask.leaves.shape[0]):
        if ask.may_have[leaf, kind]:
            return True
    return False


@part
def _measure_fitting(whole: int, units: int) -> float:
    """Return how many of the whole units requests of 1, 2, 4, … units could have, as a mean over these sizes."""
    total, sizes, size = 0, 0, 1
    while size <= units:
        total += whole // size * size
        sizes += 1
        size *= 2
    return total / sizes if sizes > 0 else 0.0
