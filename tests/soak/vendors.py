"""Nodes of the vendors whose plugins work with HAMi, and what HAMi's own functions read of them, from the vendors' cases."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from scheduler.embedded.agents import nodes
from scheduler.embedded.agents.vendor_plugins import PROTOCOLS
from tests.model import vendor_cases, vendor_fleet
from tests.soak.holdings import Device

Json = dict[str, Any]
_RESOURCES = {one.named: one.resource for one in PROTOCOLS}
# HAMi counts a hundred sharers of these, and gives each to one container.
_WHOLE = "kunlun"
# Percents of parts are rounded up, and its case has two cards of one name.
_PARTED = "Enflame"
_ANY_CORES = 10**6


class VendorNode(NamedTuple):
    """A node, the resource that its plugin offers, and its devices."""

    body: Json
    resource: str
    devices: dict[str, Device]


def make_nodes(copies: int) -> Iterator[VendorNode]:
    """Nodes of every case in which HAMi reads devices, ``copies`` of each."""
    number = 0
    for path in vendor_cases.FILES:
        vendor = vendor_cases.read_vendor(path)
        for case in vendor.register:
            if not case.devices or case.nodes:
                continue
            for _ in range(copies):
                resource = _RESOURCES[vendor.words[case.word].allocated]
                yield _make_node(f"{path.stem}-{number}", case, resource)
                number += 1


def _make_node(name: str, case: vendor_cases.Register, resource: str) -> VendorNode:
    body = nodes.make_plain_node(name, cpu="64", memory="512Gi", labels=dict(case.node.labels))
    devices, notes = _read_devices(name, case), dict(case.node.annotations)
    if case.word == _PARTED:
        ((key, text),) = notes.items()
        told = json.loads(text)
        notes[key] = json.dumps({**told, "devices": told["devices"][:1]})
    body["metadata"]["annotations"] = notes
    offered = {**case.node.capacity, **case.node.allocatable}
    if resource not in offered:
        offered[resource] = str(sum(one.sharers for one in devices.values() if one.healthy))
    for part in ("capacity", "allocatable"):
        body["status"][part] |= offered
    return VendorNode(body, resource, devices)


def _read_devices(name: str, case: vendor_cases.Register) -> dict[str, Device]:
    listed = case.devices[:1] if case.word == _PARTED else case.devices
    return {
        # Some plugins name devices by their node.
        one.id.replace(f"{case.node.name}-", f"{name}-", 1) if case.node.name else one.id: Device(
            1 if case.word == _WHOLE else one.count,
            one.mib,
            _ANY_CORES if case.word == _PARTED else one.cores,
            one.healthy,
        )
        for one in listed
    }


def list_requests() -> dict[str, list[Json]]:
    """By resource: what containers request in the vendors' cases, the plain request first."""
    found: dict[str, list[Json]] = {one.resource: [{one.resource: "1"}] for one in PROTOCOLS}
    for listed in vendor_fleet.read_fleet().containers:
        for container in listed:
            given = container.resources
            limits = {**((given and given.requests) or {}), **((given and given.limits) or {})}
            for resource, requests in found.items():
                if resource in limits:
                    requests.append(msgspec.to_builtins(limits))
    return found
