"""How much of an extended resource each node has through devices of a class.

A device plugin comes first: where the kubelet offers the resource, or a driver allocates such devices one by one, no class
serves it. Anywhere else the class behind the resource does, and the node counts for all that looks at amounts as if it
offered so many devices. Whether a pod fits there its claim decides.

A device that claims may share counts as often as claims of the class can share it, and at most once for each pod that the
node may run.
"""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from scheduler.api.claims import objects
from scheduler.api.claims.requests import ClaimShape
from scheduler.plugins.claims import masks
from scheduler.schema import columns as c
from scheduler.state.claims.store import Claims
from scheduler.state.cluster import Cluster

_Seen = tuple[int, ...]
_seen: WeakKeyDictionary[Claims, _Seen] = WeakKeyDictionary()
# For each class the shape of a claim for one device, which keeps the answers of its selectors.
_shapes: WeakKeyDictionary[Claims, dict[str, ClaimShape]] = WeakKeyDictionary()


class _Weights(NamedTuple):
    """How often devices count: each by itself [D], and whether it does so for each pod of a node [D]."""

    times: c.Ints
    is_open: c.Ints


def refresh(cluster: Cluster) -> None:
    """Find anew what nodes offer through classes, if anything has changed that it follows from; nothing within a trial."""
    claims = cluster.claims
    if cluster.roster.is_trying or not (claims.backing or claims in _seen):
        return
    if _seen.get(claims) == _read_versions(cluster):
        return
    nodes = cluster.nodes
    valid = np.array(sorted(nodes.rows.values()), np.int64)
    offers = {name: _find_offer(cluster, name) for name in sorted(claims.backing)}
    changed: dict[int, None] = {}
    for name, (is_served, counts) in offers.items():
        at = nodes.resources.find(name)
        known = at >= 0
        served = nodes.columns.by_class[at] if known else np.zeros(nodes.capacity, np.bool_)
        there = nodes.columns.allocatable[at] if known else counts
        differs = (served != is_served) | (is_served & (there != counts))
        changed.update(dict.fromkeys(valid[differs[valid]].tolist()))
    for row in valid[nodes.columns.by_class[:, valid].any(axis=0)].tolist():
        facts = nodes.facts[row]
        if facts is not None and any(name not in offers for name, _ in facts.by_class):
            changed[row] = None
    for row in changed:
        facts = nodes.facts[row]
        if facts is not None:
            mine = tuple((name, int(n[row])) for name, (of, n) in offers.items() if of[row])
            cluster.take_facts(facts._replace(by_class=mine))
    _seen[claims] = _read_versions(cluster)


def _read_versions(cluster: Cluster) -> _Seen:
    claims, nodes = cluster.claims, cluster.nodes
    of_devices = claims.version, claims.table.version, claims.table.written
    of_nodes = cluster.described.position, cluster.shaped, nodes.capacity
    return *of_devices, *of_nodes, nodes.resources.generation


def _find_offer(cluster: Cluster, resource: str) -> tuple[c.Flags, c.Ints]:
    """Find [N] where a class serves a resource, and [N] how many devices of the class each node has."""
    nodes, claims = cluster.nodes, cluster.claims
    columns, at = nodes.columns, nodes.resources.find(resource)
    is_served = columns.valid.copy()
    if at >= 0:
        is_served &= columns.by_class[at] | (columns.allocatable[at] == 0)
    family = nodes.devices.find_family(resource)
    if family >= 0:
        is_served &= ~nodes.find_managed(family)
    weights = _weigh(claims, claims.backing[resource])
    counts = sum_by_node(claims, weights.times, nodes.capacity)
    if weights.is_open.any():
        n_open = sum_by_node(claims, weights.is_open, nodes.capacity)
        counts += n_open * np.maximum(columns.allocatable[c.PODS], 1)
    return is_served, counts


def get_class_mask(claims: Claims, of_class: str) -> masks.Mask:
    """Return which devices a request for one device of a class may have."""
    shapes = _shapes.setdefault(claims, {})
    if of_class not in shapes:
        for gone in shapes.keys() - claims.classes.keys():
            del shapes[gone]
        exactly = objects.ExactRequest(
            device_class_name=of_class, allocation_mode="ExactCount", count=1
        )
        spec = objects.ClaimSpec(objects.DeviceClaim([objects.DeviceRequest("device", exactly)]))
        shapes[of_class] = claims.get_shape(spec)
    (mask,) = masks.get_masks(claims, shapes[of_class]).leaves
    return mask


def _weigh(claims: Claims, of_class: str) -> _Weights:
    """Weigh the devices by how many requests for one device of a class they can serve when they are unused."""
    table = claims.table
    mask = get_class_mask(claims, of_class)
    known = table.kinds.table.values
    times, is_open = np.zeros(len(known) + 1, np.int64), np.zeros(len(known) + 1, np.int64)
    for number in np.flatnonzero(mask.kinds).tolist():
        if not known[number].is_shareable:
            times[number] = 1
            continue
        consumed = zip(known[number].capacities, mask.consumed.get(number, ()), strict=False)
        shares = [amount.value // used for (_, amount), used in consumed if used > 0]
        times[number], is_open[number] = min(shares, default=0), not shares
    # The last place is that of rows without a device.
    kind = table.columns.kind
    found = _Weights(times[kind], is_open[kind])
    if mask.picked is not None:
        return _Weights(found.times * mask.picked, found.is_open * mask.picked)
    return found


def sum_by_node(claims: Claims, weights: c.Ints, capacity: int) -> c.Ints:
    """Sum [N] the weights of the devices that each node can use."""
    columns = claims.table.columns
    found = np.zeros(capacity, np.int64)
    for reach in np.unique(columns.reach).tolist():
        mine = np.where(columns.reach == reach, weights, 0)
        if not mine.any():
            continue
        sums = np.concatenate(([0], np.cumsum(mine)))
        first, n = columns.spans[:, 0], columns.spans[:, 1]
        of_spans = np.concatenate(([0], np.cumsum(sums[first + n] - sums[first])))
        begin, n_spans = columns.spans_of[:, :capacity]
        there = of_spans[begin + n_spans] - of_spans[begin]
        if reach >= 0:
            there = np.where(columns.reaches[reach, : there.size], there, 0)
        found[: there.size] += there
    return found
