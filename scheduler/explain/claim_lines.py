"""Writes what a pod's claims have, and why devices do not suit them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from scheduler.explain.layout import Line, make_heading, name_some
from scheduler.printing import count_nouns
from scheduler.telling.explained import sentences

Json = Mapping[str, Any]
# The most groups of devices of a request; -o json has all.
_GROUPS = 8
_REFUSED = {
    "capacity": "without enough capacity",
    "counters": "without enough counters",
    "inUse": "in use",
    "taint": "with a taint",
    "unlike": "unlike what is requested",
    "selectorFails": "on which a selector fails",
}


def write_claims(pod: Json) -> Iterator[Line]:
    """Write the claims of a pod: their devices, or how many devices of all nodes would do."""
    told = [one for one in pod["claims"] if one["devices"] or one["requests"]]
    if not told:
        return
    yield from make_heading("Claims")
    for one in told:
        if one["devices"]:
            yield Line(
                f"{name_claim(one)} has {', '.join(map(write_device, one['devices']))}", 2, 2
            )
        for request in one["requests"]:
            yield Line(f"{name_claim(one)}, {_write_request(request)}", 2, 2)
            yield Line(_write_everywhere(request), 4, 2)


def name_claim(one: Json) -> str:
    """Name a claim; one that stands for extended resources is not made yet."""
    return f"claim {one['claim']}" if one["claim"] else "extended resources"


def write_device(one: Json) -> str:
    """Write a device that a claim has."""
    said = [f"{amount} of {name}" for name, amount in one["consumed"].items()]
    said += ["for administration"] if one["admin"] else []
    more = f" ({', '.join(said)})" if said else ""
    return f"device {one['name']} of {one['driver']}/{one['pool']}{more}"


def _write_request(one: Json) -> str:
    what = f" ({one['resource']})" if one["resource"] else ""
    how_many = "all devices" if one["count"] is None else count_nouns(one["count"], "device")
    return f"request {one['request']}{what}: {how_many} of class {one['class']}"


def _write_everywhere(one: Json) -> str:
    there = f"{one['wouldDo']} of {count_nouns(one['devices'], 'device')} on all nodes would do"
    if one["most"] is not None:
        there += f", {one['most']['wouldDo']} of them on {one['most']['node']}"
    refused = [f"{n} {_REFUSED[why]}" for why, n in one["refused"].items()]
    return f"{there}{'; ' if refused else ''}{', '.join(refused)}"


def write_near(nearest: Json) -> Iterator[Line]:
    """Write how the devices of the closest node suit the claims that wait."""
    for one in nearest["claims"]:
        requested = (
            "all are"
            if one["count"] is None
            else "1 is"
            if one["count"] == 1
            else f"{one['count']} are"
        )
        what = f" ({one['resource']})" if one["resource"] else ""
        yield Line(
            f"{name_claim(one)}, request {one['request']}{what}: {one['wouldDo']} of "
            f"{count_nouns(one['devices'], 'device')} would do, {requested} requested",
            2,
            2,
        )  # fmt: skip
        for group in one["refusals"][:_GROUPS]:
            names = name_some(group["names"], group["devices"])
            yield Line(f"{names}: {group['text']}{_write_holders(group)}", 4, 2)
        more = len(one["refusals"]) - _GROUPS
        if more > 0:
            yield Line(f"and {count_nouns(more, 'other group')} of devices", 4, 2)
        if len(one["refusals"]) > 1 and (close := one["nearest"]) is not None:
            yield Line(f"the nearest is {close['device']}: {close['lacks']}", 4, 2)
    unmet = [one for one in nearest["constraints"] if one["wouldDo"] < one["devices"]]
    yield from (Line(f"claim {one['claim']}, {one['text']}", 2, 2) for one in unmet)
    if not unmet and nearest["claims"] and all(one["nearest"] is None for one in nearest["claims"]):
        is_refused = any(lack["rule"] == "DynamicResources" for lack in nearest["lacks"])
        if is_refused:
            yield Line("For each request by itself there are enough devices, but not for all together.", 2, 2)  # fmt: skip


def write_pools(node: Json) -> Iterator[Line]:
    """Write the devices of a node's pools: who has which, and what can still be cut."""
    if not node["pools"]:
        return
    n = len(node["devices"])
    yield from make_heading(f"{count_nouns(n, 'device')} of {count_nouns(len(node['pools']), 'pool')}: use by claim")  # fmt: skip
    for pool in node["pools"]:
        mine = [one for one in node["devices"] if _is_of(one, pool)]
        said = [f"{pool['inUse']} of {pool['devices']} in use", f"{pool['free']} can be had"]
        said += [f"{pool['tainted']} tainted"] if pool["tainted"] else []
        if pool["problem"]:
            said = [f"{pool['problem']}, so no claim gets a device"]
        yield Line(f"{pool['driver']}/{pool['pool']}: {', '.join(said)}", 2, 2)
        for one in mine:
            if one["holders"] or one["taints"]:
                yield Line(f"{one['name']}{_write_state(one)}", 4, 2, is_row=True)
        for one in node["counters"]:
            if _is_of(one, pool):
                yield Line(_write_counters(one), 4, 2)


def _is_of(one: Json, pool: Json) -> bool:
    return bool((one["driver"], one["pool"]) == (pool["driver"], pool["pool"]))


def _write_state(one: Json) -> str:
    said = []
    if one["taints"]:
        said.append(f"taint {', '.join(map(sentences.write_taint, one['taints']))}")
    if one["holders"]:
        said.append(f"in use by {', '.join(map(_write_holder, one['holders']))}")
    if one["shared"] and one["holders"]:
        said += [f"{each['free']} of {each['total']} {each['name']} free" for each in one["capacities"]]  # fmt: skip
    return f": {'; '.join(said)}"


def _write_counters(one: Json) -> str:
    figures = ", ".join(
        f"{name} {each['free']} of {each['total']}" for name, each in one["counters"].items()
    )
    can = name_some(one["canBeCut"], most=_GROUPS) if one["canBeCut"] else "nothing"
    return f"{one['set']}: free are {figures}; of it can still be had: {can}"


def _write_holder(one: Json) -> str:
    pods = f" ({name_some(one['pods'])})" if one["pods"] else ", which no pod on a node has"
    return f"claim {one['claim']}{pods}"


def _write_holders(group: Json) -> str:
    if not group["holders"]:
        return ""
    said = [*map(_write_holder, group["holders"])]
    return f" by {name_some(said)}" if group["why"] == "inUse" else f"; in use by {name_some(said)}"
