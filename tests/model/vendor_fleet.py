"""Nodes of every vendor, and containers that request their devices, from the vendors' cases."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from scheduler.api import wire
from scheduler.api.cards import Card
from scheduler.devices.contract import CardDriver
from scheduler.devices.table import CARD_DRIVERS
from scheduler.errors import BadInput
from tests import make
from tests.model import vendor_cases, vendor_fits

_CASES = Path(__file__).parents[1] / "data" / "hami" / "vendors"
# Chips that have the register of another one in the cases.
_OTHER_CHIPS = ((b"Ascend910B3", b"Ascend310P"), (b"BI-V150", b"MR-V100"))


class Fleet(NamedTuple):
    """What there is of vendors: their cases, the nodes on which a driver finds devices, and by driver the containers."""

    vendors: tuple[vendor_cases.Vendor, ...]
    nodes: tuple[wire.Node, ...]
    containers: tuple[tuple[wire.Container, ...], ...]


@lru_cache
def read_fleet() -> Fleet:
    """Read the cases of all vendors; chips of one vendor that have no register of their own have that of another chip."""
    found = tuple(vendor_cases.read_vendor(path) for path in sorted(_CASES.glob("*.yaml")))
    told = [vendor_fits.make_node(case.node) for one in found for case in one.register]
    other = [
        msgspec.json.decode(msgspec.json.encode(node).replace(old, new), type=wire.Node)
        for node in told
        for old, new in _OTHER_CHIPS
        if old in msgspec.json.encode(node)
    ]
    nodes = filter(None, map(_offer_devices, [*told, *other]))
    asked = [vendor_fits.make_container(case.container) for one in found for case in one.requests]
    asked += [_make_plain(driver) for driver in CARD_DRIVERS.values()]
    by_driver = (
        tuple(one for one in asked if _is_read(driver, one)) for driver in CARD_DRIVERS.values()
    )
    return Fleet(found, tuple(nodes), tuple(filter(None, by_driver)))


def _make_plain(driver: CardDriver) -> wire.Container:
    limits: wire.Quantities = {driver.resources[0]: "1"}
    return wire.Container("main", resources=wire.Resources(dict(limits), dict(limits)))


def list_cards(driver: CardDriver, node: wire.Node) -> tuple[Card, ...]:
    words = driver.read_node(node)
    try:
        return driver.list_cards(words) if driver.is_told(words) else ()
    except BadInput:
        return ()


def _offer_devices(node: wire.Node) -> wire.Node | None:
    """The node as the kubelet shows it once plugins offer what they registered; None if they registered nothing."""
    status = node.status.allocatable or {}
    if "enflame.com/gcu-drs-capacity" in (node.metadata.annotations or {}):
        status = {**status, "enflame.com/drs-gcu": "12"}
        node.status = msgspec.structs.replace(node.status, allocatable=status)
    offered = {
        driver.resources[0]: sum(card.sharers for card in cards)
        for driver in CARD_DRIVERS.values()
        if (cards := list_cards(driver, node))
    }
    if not offered:
        return None
    given = {**status, **offered, "cpu": "64", "memory": "512Gi"}
    node.status = msgspec.structs.replace(node.status, allocatable=given)
    return node


def _is_read(driver: CardDriver, container: wire.Container) -> bool:
    pod = make.pod(name="p")
    pod.spec.containers = [container]
    try:
        return any(slot.cards for ask in driver.read_requests(pod) for slot in ask.containers)
    except BadInput:
        return False


def count_devices(pod: wire.Pod, resource: str) -> int:
    """How many devices the containers of a pod request that run together."""
    given = (one.resources.limits for one in pod.spec.containers if one.resources)
    return sum(int((one or {}).get(resource, 0)) for one in given)
