"""The claims of a pod as plain values: the devices that they have, and why devices do not suit those that wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from scheduler.api.claims.amounts import find_consumed, write_quantity
from scheduler.api.claims.answers import ClaimKey, DeviceKey, Given
from scheduler.api.claims.devices import Device, PoolKey
from scheduler.api.claims.requests import Constraint, Leaf, Request
from scheduler.plugins.claims import device_reasons, masks
from scheduler.plugins.claims.device_reasons import Why
from scheduler.plugins.claims.needs import list_pending
from scheduler.plugins.contract import Judged
from scheduler.schema import devices as d
from scheduler.state.claims.objects import Claim
from scheduler.state.pods import PodRecord
from scheduler.telling.advice import claims as advice
from scheduler.telling.advice.asking import Asking

Json = dict[str, Any]
# By what a device is refused, as it is printed.
NAMES = {
    Why.CONSUMED: "capacity",
    Why.COUNTERS: "counters",
    Why.IN_USE: "inUse",
    Why.TAINT: "taint",
    Why.UNLIKE: "unlike",
    Why.FAILED: "selectorFails",
}
# The most requests that are described, and the most names in a group.
_REQUESTS, _NAMES = 32, 20


class _Short(NamedTuple):
    """What is needed of something of which too little is left, in thousandths; ``what`` names it."""

    what: str
    needs: int
    left: int
    total: int

    @property
    def part(self) -> float:
        """How much of what is needed is missing, 0..1."""
        return (self.needs - self.left) / self.needs

    def __str__(self) -> str:
        needs, left, total = map(write_quantity, (self.needs, max(0, self.left), self.total))
        return f"{self.what}: requires {needs}, {left} free of {total}"


class _Pending(NamedTuple):
    """A leaf of a claim that waits: its number in the ask of the pod, and where it stands."""

    number: int
    claim: Claim
    request: Request
    leaf: Leaf


def list_claims(asking: Asking, pod: PodRecord, judged: Judged | None) -> list[Json]:
    """List the claims of a pod: what they have, and how many devices of all nodes suit what they request.

    ``judged``: None if the pod can go to no node, whatever the nodes are.
    """
    claims = asking.cluster.claims
    waiting = _list_pending(asking, pod, judged)
    counted = [_count(asking, judged, one) for one in waiting] if judged else []
    found = []
    for entry in claims.list_entries(pod):
        claim = claims.claims.get((pod.namespace, entry.name or ""))
        given = claims.find_given(claim.key) if claim else None
        is_made = claim is not None and (claim.made is not None or not claim.shape.resources)
        found.append(
            {
                "entry": entry.entry or None,
                "claim": claim.name if claim and is_made else (entry.name or None) if not claim else None,
                "template": entry.template or None,
                "devices": [describe_given(one) for one in given or ()],
                "requests": [
                    told for one, told in zip(waiting, counted, strict=True)
                    if claim is not None and one.claim.key == claim.key
                ],
            }
        )  # fmt: skip
    return found


def describe_given(one: Given) -> Json:
    """Describe a device that a claim has."""
    return {
        "request": one.request,
        **one.device._asdict(),
        "admin": one.is_admin,
        "consumed": {name: write_quantity(amount) for name, amount in one.consumed},
    }


def _list_pending(asking: Asking, pod: PodRecord, judged: Judged | None) -> list[_Pending]:
    """List the leaves of the pod's claims that wait, in the order of its ask; none if the ask has none."""
    if judged is None or not judged.ask.claims.leaves.shape[0]:
        return []
    each = [
        (claim, request, leaf)
        for claim in list_pending(pod, asking.cluster.claims)
        for request, leaf in claim.shape.leaves
    ]
    return [_Pending(i, *one) for i, one in enumerate(each[:_REQUESTS])]


def _describe_request(one: _Pending) -> Json:
    resources = one.claim.shape.resources
    at = one.claim.shape.requests.index(one.request)
    return {
        "request": one.leaf.name,
        "resource": resources[at] if resources else None,
        "class": one.leaf.of_class,
        "count": one.leaf.n or None,
    }


def _count(asking: Asking, judged: Judged, one: _Pending) -> Json:
    """Count the devices of all nodes by what they are to a request, and find the node that has most that would do."""
    claims, ask, nodes = asking.cluster.claims, judged.ask.claims, asking.cluster.nodes
    devices = claims.table.columns
    rows = device_reasons.list_all_devices(devices)
    reasons = Counter(device_reasons.find_reasons(devices, ask, one.number, rows).tolist())
    fitting = device_reasons.count_fitting(claims, ask, one.number, nodes.capacity)
    there = np.array(sorted(nodes.rows.values(), key=nodes.find_name), np.int64)
    most = int(there[fitting[there].argmax()]) if there.size else -1
    return _describe_request(one) | {
        "devices": int(rows.size),
        "wouldDo": reasons[Why.FITS],
        "refused": {NAMES[why]: reasons[why] for why in NAMES if reasons[why]},
        "most": {"node": nodes.find_name(most), "wouldDo": int(fitting[most])}
        if most >= 0 and fitting[most]
        else None,
    }


def describe_near(asking: Asking, pod: PodRecord, judged: Judged) -> Json:
    """Describe how the devices of one node suit the claims of a pod that wait; ``judged`` has this node alone."""
    waiting = _list_pending(asking, pod, judged)
    row = int(judged.rows[0]) if judged.rows.size else -1
    near = _Near(asking, judged, row)
    resources = [int(judged.ask.claims.leaves[one.number, d.LEAF_RESOURCE]) for one in waiting]
    by_class = asking.cluster.nodes.columns.by_class
    counting = [
        one
        for one, at in zip(waiting, resources, strict=True)
        if at < 0 or by_class[at, row]
    ]  # fmt: skip
    return {
        "claims": [near.describe_leaf(one) for one in counting],
        "constraints": list(near.list_constraints(counting)),
    }


class _Near:
    """The devices of one node, as the requests of a pod find them."""

    def __init__(self, asking: Asking, judged: Judged, row: int) -> None:
        self._asking, self._ask = asking, judged.ask.claims
        self._claims = asking.cluster.claims
        self._columns = self._claims.table.columns
        has_any = row >= 0 and row < self._columns.unsure.size
        none = np.zeros(0, np.int64)
        self._rows = device_reasons.list_devices(self._columns, row) if has_any else none
        self._pools: dict[PoolKey, Mapping[str, Device]] = {}
        self._of_kind: dict[tuple[int, int], str] = {}

    @cached_property
    def _holders(self) -> Mapping[object, Sequence[ClaimKey]]:
        return advice.list_holders(self._claims)

    def describe_leaf(self, one: _Pending) -> Json:
        """Describe why each device does or does not suit a leaf, and the nearest that does not."""
        reasons = device_reasons.find_reasons(self._columns, self._ask, one.number, self._rows)
        groups: dict[object, Json] = {}
        nearest: tuple[tuple[int, float], str, str] | None = None
        for row, code in zip(self._rows.tolist(), reasons.tolist(), strict=True):
            why = Why(code)
            if why is Why.FITS:
                continue
            name = self._claims.table.find_key(row).name
            short = self._list_short(one, row, why)
            text = "; ".join(map(str, short)) or self._tell(one, row, why)
            holders = self._list_holders(row, why)
            group = groups.setdefault(
                (why, text, tuple(holders)),
                {
                    "why": NAMES[why],
                    "text": text,
                    "holders": [
                        advice.describe_holder(self._asking.cluster, one) for one in holders
                    ],
                }
                | {"devices": 0, "names": []},
            )
            group["devices"] += 1
            if len(group["names"]) < _NAMES:
                group["names"].append(name)
            order = int(why), sum(each.part for each in short)
            if nearest is None or order < nearest[0]:
                nearest = order, name, text
        would_do = int((reasons == Why.FITS).sum())
        is_enough = would_do >= one.leaf.n if one.leaf.n else not groups
        return _describe_request(one) | {
            "claim": None if one.claim.shape.resources else one.claim.name,
            "devices": int(self._rows.size),
            "wouldDo": would_do,
            "refusals": sorted(groups.values(), key=lambda group: -group["devices"]),
            "nearest": None if is_enough or not nearest else dict(zip(("device", "lacks"), nearest[1:], strict=True)),
        }  # fmt: skip

    def _list_holders(self, row: int, why: Why) -> list[ClaimKey]:
        """List the claims that have a device, or what of its counters is drawn."""
        if why not in {Why.IN_USE, Why.COUNTERS, Why.CONSUMED}:
            return []
        rows = [row]
        if why is Why.COUNTERS:
            mine = {int(self._columns.draws[in_set, row]) for in_set, _ in d.DRAWS} - {-1}
            sets = [self._columns.draws[in_set, self._rows] for in_set, _ in d.DRAWS]
            rows = self._rows[np.isin(sets, list(mine)).any(axis=0)].tolist()
        found = (
            key
            for one in rows
            for key in self._holders.get(self._claims.table.find_key(one), ())
        )  # fmt: skip
        return list(dict.fromkeys(found))

    def _tell(self, one: _Pending, row: int, why: Why) -> str:
        """Tell why a device does not suit; alike devices share the answer, unless selectors tell them apart."""
        kind = int(self._columns.kind[row])
        at = one.number, kind
        if why is Why.IN_USE:
            return "in use"
        is_picky = int(self._ask.leaves[one.number, d.LEAF_PICKY]) >= 0
        if at not in self._of_kind or (is_picky and why is Why.UNLIKE):
            self._of_kind[at] = self._tell_kind(one, row, why)
        return self._of_kind[at]

    def _tell_kind(self, one: _Pending, row: int, why: Why) -> str:
        number = int(self._columns.kind[row])
        kind = self._claims.table.kinds.table.values[number]
        if why is Why.TAINT:
            taints = masks.list_untolerated(one.leaf, kind)
            return f"taint {', '.join(map(advice.write_taint, taints))} is not tolerated"
        if why is Why.FAILED:
            leaves = [each for _, each in one.claim.shape.leaves]
            mask = masks.get_masks(self._claims, one.claim.shape).leaves[leaves.index(one.leaf)]
            return mask.problems.get(number, "").replace(masks.CLAIM, "of the pod")
        found = masks.find_refusing(self._claims, one.leaf, row)
        if found is not None:
            owner, i, text = found
            whose = owner.replace(masks.CLAIM, "of the pod")
            return f"selector #{i} of {whose}: {advice.shorten(text)}"
        for name, amount in one.leaf.capacity:
            there = dict(kind.capacities)
            if name not in there:
                return f"it has no capacity {name}"
            if find_consumed({name: amount}, [(name, there[name])]) is None:
                whole = write_quantity(there[name].value)
                return f"capacity {name}: {write_quantity(amount)} cannot be had of {whole}"
        return "what it requests of capacities by default cannot be had"

    def _list_short(self, one: _Pending, row: int, why: Why) -> list[_Short]:
        if why is Why.COUNTERS:
            return list(self._list_short_counters(row))
        return list(self._list_short_capacities(one, row)) if why is Why.CONSUMED else []

    def _list_short_counters(self, row: int) -> Iterator[_Short]:
        columns, device = self._columns, self._find_device(row)
        for (in_set, pattern), draw in zip(d.DRAWS, device.draws if device else (), strict=False):
            base = columns.sets[d.SET_FIRST, columns.draws[in_set, row]]
            first, n = columns.patterns[:2, columns.draws[pattern, row]].tolist()
            for (name, _), (place, amount) in zip(
                draw.amounts, columns.pattern[first : first + n].tolist(), strict=False
            ):
                total, used = columns.counters[:, base + place].tolist()
                if amount > total - used:
                    what = f"counter {name} of {draw.counter_set}"
                    yield _Short(what, amount, total - used, total)

    def _list_short_capacities(self, one: _Pending, row: int) -> Iterator[_Short]:
        columns, kind = self._columns, int(self._columns.kind[row])
        first, cell = int(self._ask.consumes[one.number, kind]), int(columns.cell[row])
        for j, (name, _) in enumerate(self._claims.table.kinds.table.values[kind].capacities):
            total, used = columns.cells[:, cell + j].tolist()
            amount = int(self._ask.amounts[first + j])
            if amount > total - used:
                yield _Short(f"capacity {name}", amount, total - used, total)

    def _find_device(self, row: int) -> Device | None:
        key: DeviceKey = self._claims.table.find_key(row)
        pool = PoolKey(key.driver, key.pool)
        if pool not in self._pools:
            self._pools[pool] = self._claims.inventory.read_pool(pool)
        return self._pools[pool].get(key.name)

    def list_constraints(self, waiting: Sequence[_Pending]) -> Iterator[Json]:
        """List the constraints of the claims, with how many devices that would do for each request meet them."""
        for claim in {one.claim.key: one.claim for one in waiting}.values():
            for i, one in enumerate(claim.shape.constraints):
                about = [
                    each
                    for each in waiting
                    if each.claim.key == claim.key and one.is_about(each.request.name, each.leaf.name)
                    and len(each.request.leaves) == 1
                ]  # fmt: skip
                if about:
                    yield self._describe_constraint(claim, i, one, about)

    def _describe_constraint(
        self, claim: Claim, i: int, one: Constraint, about: Iterable[_Pending]
    ) -> Json:
        at = self._claims.table.find_attribute(one.attribute)
        values = self._claims.table.values.values
        by_value: Counter[int] = Counter()
        requested, missing, all_values = 0, 0, set[int]()
        for each in about:
            reasons = device_reasons.find_reasons(self._columns, self._ask, each.number, self._rows)
            rows = self._rows[reasons == Why.FITS]
            numbers = self._columns.values[at, rows] if at >= 0 else np.full(rows.size, -1)
            need = each.leaf.n or int(rows.size)
            requested += need
            missing = max(missing, int((numbers < 0).sum()))
            there = Counter(numbers[numbers >= 0].tolist())
            all_values |= there.keys()
            by_value.update({value: min(need, n) for value, n in there.items()})
        most = max(sorted(by_value), key=by_value.__getitem__, default=-1)
        met = len(all_values) if one.is_distinct else by_value[most]
        told = f"there are {met} values" if one.is_distinct else f"at most {met} have one value"
        if met and not one.is_distinct:
            told += f", {values[most][1]}"
        text = f"{advice.name_constraint(i, one)}: of the devices that would do {told}; {requested} are requested"
        return {
            "claim": claim.name,
            "constraint": i,
            "attribute": one.attribute,
            "distinct": one.is_distinct,
            "devices": requested,
            "wouldDo": min(met, requested),
            "without": missing,
            "text": text,
        }
