"""Devices for the pending claims of a pod on one node: a search that is exact, and bounded by the devices looked at.

The steps of the search are the devices to be taken, in the order of claims, requests and their number. A step tries the
devices of the node in the order of the pod's policy, and takes the first one that is free and breaks no constraint; when
none is left, the step before it goes on with its next device. A request with alternatives goes on with its next one
first. Of devices that nothing tells apart only one is tried in each step, and of requests that nothing tells apart only
one order.

Nothing is copied: what is taken is written to the columns of devices, and taken back before the search returns.

Source of what may be taken: k8s.io/dynamic-resource-allocation v0.37.1, structured/internal/incubating.
"""

from __future__ import annotations

from scheduler.kernels._jit import part, tiny
from scheduler.kernels.devices import device_costs, device_holds, device_lists
from scheduler.schema import columns as c
from scheduler.schema import devices as d


@part
def allocate(
    tables: c.Tables, ask: d.ClaimAsk, row: int, s: d.ClaimScratch, is_choosing: bool, most: int
) -> int:
    """Search devices of a node for all requests of an ask; unless ``is_choosing`` any devices will do.

    At most about ``most`` devices are looked at; the first attempt is made in any case.

    Writes to ``s.local``, ``s.pick`` and ``s.leaf`` which device is for which leaf.

    Returns:
        The number of devices, ``TOO_FEW``, ``NOT_KNOWN`` or ``FAILED``.

    Cost: O(devices · (leaves + steps)), where no device has to be given back.
    """
    devices, request = tables.devices, _find_request(tables.nodes, ask, row, 0)
    if request + 1 == ask.first.size:
        s.n_local[0] = 0
        return 0
    n = device_lists.list_devices(devices, row, s.local)
    if n < 0:
        return d.NOT_KNOWN
    s.n_local[0] = n
    if not _may_suffice(tables, ask, row, n, s):
        return d.TOO_FEW
    f, spent, least = 0, 0, (n + 1) * (2 * s.pick.size + 2)
    _enter_step(devices, ask, row, n, s, 0, request)
    while True:
        spent += n + 1
        if spent > max(most, least):
            found = d.NOT_KNOWN
            break
        at = _find_next(devices, ask, n, s, f, is_choosing)
        if at == d.FAILED:
            found = d.FAILED
            break
        if at >= 0:
            s.tried[f, at] = True
            if _is_like_tried(devices, ask, s, f, at, n) or not _may_take(devices, ask, s, f, at):
                continue
            device_holds.take_device(devices, ask, s.leaf[f], s.local[at], 1)
            s.pick[f] = at
            f += 1
            if f == s.pick.size:
                found = d.NOT_KNOWN
                break
            request = _find_request(tables.nodes, ask, row, s.request[f - 1] + 1)
            if s.nth[f - 1] + 1 < s.need[f - 1]:
                _enter_step(devices, ask, row, n, s, f, -1)
            elif request + 1 < ask.first.size:
                _enter_step(devices, ask, row, n, s, f, request)
            else:
                found = f
                break
            continue
        if s.nth[f] == 0 and s.leaf[f] + 1 < ask.first[s.request[f] + 1]:
            _begin_leaf(devices, ask, row, n, s, f, s.leaf[f] + 1)
            continue
        if f == 0:
            found = d.TOO_FEW
            break
        f -= 1
        device_holds.take_device(devices, ask, s.leaf[f], s.local[s.pick[f]], -1)
    s.left[0] = max(0, s.left[0] - spent)
    while f > 0:
        f -= 1
        device_holds.take_device(devices, ask, s.leaf[f], s.local[s.pick[f]], -1)
    return int(found)


@part
def _find_request(nodes: c.Nodes, ask: d.ClaimAsk, row: int, request: int) -> int:
    """Find the first request from one on that counts on a node; the number of requests if there is none."""
    while request + 1 < ask.first.size and not _counts(nodes, ask, row, ask.first[request]):
        request += 1
    return request


@tiny
def _counts(nodes: c.Nodes, ask: d.ClaimAsk, row: int, leaf: int) -> bool:
    """Whether a leaf counts on a node: no device plugin serves there what it stands for."""
    resource = ask.leaves[leaf, d.LEAF_RESOURCE]
    return bool(resource < 0 or nodes.by_class[resource, row])


@part
def _may_suffice(tables: c.Tables, ask: d.ClaimAsk, row: int, n: int, s: d.ClaimScratch) -> bool:
    """Whether there are enough free devices for each request, and for the requests together that nothing tells apart."""
    devices = tables.devices
    need, group = 0, -1
    for leaf in range(ask.leaves.shape[0]):
        count = ask.leaves[leaf, d.LEAF_COUNT]
        if not _counts(tables.nodes, ask, row, leaf):
            group = -1
            continue
        if not ask.leaves[leaf, d.LEAF_ALONE] or ask.leaves[leaf, d.LEAF_ADMIN] or count == 0:
            group = -1
            continue
        if ask.leaves[leaf, d.LEAF_GROUP] != group:
            need, group = 0, ask.leaves[leaf, d.LEAF_GROUP]
        need += count
        there, is_shared = 0, False
        for i in range(n):
            device = s.local[i]
            is_near = ask.policy == d.FIRST_FIT and ask.fails[leaf, devices.kind[device]]
            # What has been drawn is not given back in the search.
            may_have = is_near or (
                _accepts(devices, ask, leaf, device) and _may_draw(devices, device)
            )
            if may_have and device_holds.is_free(devices, device):
                there += 1
                is_shared = is_shared or devices.shareable[devices.kind[device]]
                if there >= need:
                    break
        if there < (count if is_shared else need):
            return False
    return True


@tiny
def _accepts(devices: d.Devices, ask: d.ClaimAsk, leaf: int, device: int) -> bool:
    """Whether a leaf may have a device by what the device is."""
    if not ask.may_have[leaf, devices.kind[device]]:
        return False
    picky = ask.leaves[leaf, d.LEAF_PICKY]
    return bool(picky < 0 or ask.picked[picky, device])


@part
def _enter_step(
    devices: d.Devices, ask: d.ClaimAsk, row: int, n: int, s: d.ClaimScratch, f: int, request: int
) -> None:
    """Begin a step with the first leaf of a request; -1: for one more device of the leaf of the step before it."""
    if request < 0:
        s.request[f], s.leaf[f] = s.request[f - 1], s.leaf[f - 1]
        s.nth[f], s.need[f], s.run[f] = s.nth[f - 1] + 1, s.need[f - 1], s.run[f - 1]
        for i in range(n):
            s.tried[f, i] = False
        return
    s.request[f] = request
    _begin_leaf(devices, ask, row, n, s, f, ask.first[request])


@part
def _begin_leaf(
    devices: d.Devices, ask: d.ClaimAsk, row: int, n: int, s: d.ClaimScratch, f: int, leaf: int
) -> None:
    """Begin a step with the first device of a leaf."""
    s.leaf[f], s.nth[f] = leaf, 0
    s.need[f] = ask.leaves[leaf, d.LEAF_COUNT]
    if s.need[f] == 0 and not devices.unsure[row]:
        for i in range(n):
            # By first fit the search ends with a device of which a selector cannot tell.
            fails = ask.policy == d.FIRST_FIT and ask.fails[leaf, devices.kind[s.local[i]]]
            s.need[f] += 1 if fails or _accepts(devices, ask, leaf, s.local[i]) else 0
        for i in range(n):
            if ask.barred[leaf, devices.kind[s.local[i]]]:
                s.need[f] = 0
    is_run = f > 0 and ask.leaves[s.leaf[f - 1], d.LEAF_GROUP] == ask.leaves[leaf, d.LEAF_GROUP]
    s.run[f] = s.run[f - 1] if is_run else f
    for i in range(n):
        s.tried[f, i] = False


@part
def _find_next(
    devices: d.Devices, ask: d.ClaimAsk, n: int, s: d.ClaimScratch, f: int, is_choosing: bool
) -> int:
    """Find the place of the device that is to be tried next in a step; -1 for none, ``FAILED`` if a selector cannot tell."""
    leaf = s.leaf[f]
    is_all = ask.leaves[leaf, d.LEAF_COUNT] == 0
    begin = s.pick[f - 1] + 1 if is_all and s.nth[f] > 0 else 0
    found, least = -1, 0.0
    for i in range(begin, n):
        device = s.local[i]
        if ask.policy == d.FIRST_FIT and ask.fails[leaf, devices.kind[device]]:
            if is_all or (not s.tried[f, i] and device_holds.is_free(devices, device)):
                return d.FAILED
            continue
        if not _accepts(devices, ask, leaf, device):
            continue
        if is_all:
            # Every device has to be taken, so there is no choice.
            return -1 if s.tried[f, i] or s.need[f] == 0 else i
        if s.tried[f, i] or _was_passed(s, f, i):
            continue
        if not ask.leaves[leaf, d.LEAF_ADMIN] and not (
            device_holds.is_free(devices, device) and _may_draw(devices, device)
        ):
            continue
        if ask.policy == d.FIRST_FIT or not is_choosing:
            return i
        cost = device_costs.find_cost(devices, ask, f, i, n, s)
        if found < 0 or cost < least:
            found, least = i, cost
    return found


@part
def _was_passed(s: d.ClaimScratch, f: int, i: int) -> bool:
    """Whether a step before, whose leaf nothing tells apart from this one's, has done with a device without success.

    The device that such a step has now does not count, unless it is for the same request.
    """
    for g in range(s.run[f], f):
        if s.tried[g, i] and (s.pick[g] != i or s.request[g] == s.request[f]):
            return True
    return False


@part
def _is_like_tried(
    devices: d.Devices, ask: d.ClaimAsk, s: d.ClaimScratch, f: int, at: int, n: int
) -> bool:
    """Whether nothing tells a device apart from one that was tried in the step before, in vain."""
    if ask.leaves[s.leaf[f], d.LEAF_COUNT] == 0:
        return False
    device = s.local[at]
    for i in range(n):
        if i != at and s.tried[f, i] and _are_alike(devices, ask, device, s.local[i]):
            return True
    return False


@part
def _are_alike(devices: d.Devices, ask: d.ClaimAsk, one: int, other: int) -> bool:
    """Whether nothing that an ask reads tells two devices apart, of which neither was taken meanwhile."""
    if not device_lists.are_used_alike(devices, one, other):
        return False
    for i in range(ask.picked.shape[0]):
        if ask.picked[i, one] != ask.picked[i, other]:
            return False
    for i in range(ask.constraints.shape[0]):
        values = ask.constraints[i, d.CONSTRAINT_VALUES]
        if values >= 0 and devices.values[values, one] != devices.values[values, other]:
            return False
    for in_set, pattern in d.DRAWS:
        if devices.draws[pattern, one] != devices.draws[pattern, other]:
            return False
        a, b = devices.draws[in_set, one], devices.draws[in_set, other]
        if a >= 0 and a != b and not device_lists.are_sets_alike(devices, a, b):
            return False
    return True


@part
def _may_take(devices: d.Devices, ask: d.ClaimAsk, s: d.ClaimScratch, f: int, at: int) -> bool:
    """Whether a device can be taken for the leaf of a step, beside what the steps before it have taken."""
    leaf, device = s.leaf[f], s.local[at]
    claim, n_of_claim = ask.leaves[leaf, d.LEAF_CLAIM], 1
    is_admin = ask.leaves[leaf, d.LEAF_ADMIN] != 0
    for g in range(f):
        if ask.leaves[s.leaf[g], d.LEAF_CLAIM] != claim:
            continue
        n_of_claim += 1
        # Access for administrators takes nothing from other claims, but a claim has each device once.
        is_other = not is_admin and ask.leaves[s.leaf[g], d.LEAF_ADMIN] == 0
        if s.pick[g] == at and not (is_other and s.request[g] != s.request[f]):
            return False
    if n_of_claim > d.CLAIM_MOST:
        return False
    if not is_admin and not (device_holds.is_free(devices, device) and _may_draw(devices, device)):
        return False
    # Who only looks at a device must find as much left of it as was requested, as in kube-scheduler.
    if not _may_consume(devices, ask, leaf, device):
        return False
    return _meets_constraints(devices, ask, s, f, at)


@part
def _may_draw(devices: d.Devices, device: int) -> bool:
    """Whether the counters of a device suffice for it; of a device that is shared already they are drawn."""
    if devices.sharers[device] > 0:
        return True
    for in_set, pattern in d.DRAWS:
        if devices.draws[in_set, device] < 0:
            continue
        base = devices.sets[d.SET_FIRST, devices.draws[in_set, device]]
        first = devices.patterns[0, devices.draws[pattern, device]]
        for i in range(first, first + devices.patterns[1, devices.draws[pattern, device]]):
            counter = base + devices.pattern[i, 0]
            left = devices.counters[d.TOTAL, counter] - devices.counters[d.USED, counter]
            if devices.pattern[i, 1] > left:
                return False
    return True


@part
def _may_consume(devices: d.Devices, ask: d.ClaimAsk, leaf: int, device: int) -> bool:
    """Whether there is enough left of the capacities of a shareable device."""
    first, kind = ask.consumes[leaf, devices.kind[device]], devices.kind[device]
    if first < 0 or devices.cell[device] < 0:
        return True
    for j in range(devices.n_cells[kind]):
        cell = devices.cell[device] + j
        if ask.amounts[first + j] > devices.cells[d.TOTAL, cell] - devices.cells[d.USED, cell]:
            return False
    return True


@part
def _meets_constraints(
    devices: d.Devices, ask: d.ClaimAsk, s: d.ClaimScratch, f: int, at: int
) -> bool:
    leaf = s.leaf[f]
    for i in range(ask.constraints.shape[0]):
        if not ask.is_about[i, leaf]:
            continue
        values = ask.constraints[i, d.CONSTRAINT_VALUES]
        value = devices.values[values, s.local[at]] if values >= 0 else -1
        if value < 0:
            return False
        for g in range(f):
            if not ask.is_about[i, s.leaf[g]]:
                continue
            is_equal = devices.values[values, s.local[s.pick[g]]] == value
            if is_equal == (ask.constraints[i, d.CONSTRAINT_DISTINCT] != 0):
                return False
    return True
