"""What the demo draws: the cards of nodes, and the pods that have a part of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from scheduler.api import hami, names
from scheduler.api.quantities import read_milli

Json = dict[str, Any]
_MIB = 1000 << 20


class Card(NamedTuple):
    """A card: its memory, and the MiB that each pod has of it."""

    name: str
    mib: int
    pods: tuple[tuple[str, int], ...]


class NodeCards(NamedTuple):
    """A node with its cards."""

    name: str
    cards: tuple[Card, ...]


def read_registers(nodes: Iterable[Json], pods: Iterable[Json]) -> list[NodeCards]:
    """Read the cards that HAMi's device plugin registers, and what the annotations of pods say of them."""
    uses: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for pod in pods:
        text = (pod["metadata"].get("annotations") or {}).get(names.HAMI_ALLOCATED, "")
        for slot in hami.decode_devices(text) if pod["spec"].get("nodeName") else ():
            for use in slot:
                uses[use.uuid].append((pod["metadata"]["name"], use.mem_mib))
    found = []
    for node in nodes:
        register = (node["metadata"].get("annotations") or {}).get(names.HAMI_REGISTER)
        if register:
            cards = [
                Card(f"card {one.index}", one.devmem, tuple(uses[one.id]))
                for one in hami.decode_register(register)
            ]
            found.append(NodeCards(node["metadata"]["name"], tuple(cards)))
    return found


def read_slices(slices: Iterable[Json], claims: Iterable[Json]) -> list[NodeCards]:
    """Read the devices of ResourceSlices, and what the claims of pods consume of them."""
    uses: defaultdict[tuple[str, str], list[tuple[str, int]]] = defaultdict(list)
    for claim in claims:
        status = claim.get("status", {})
        for result in status.get("allocation", {}).get("devices", {}).get("results", ()):
            mib = read_milli(result["consumedCapacity"]["memory"]) // _MIB
            for user in status.get("reservedFor", ()):
                uses[result["pool"], result["device"]].append((user["name"], mib))
    return [
        NodeCards(
            one["spec"]["nodeName"],
            tuple(
                Card(
                    f"card {i}",
                    read_milli(device["capacity"]["memory"]["value"]) // _MIB,
                    tuple(uses[one["spec"]["pool"]["name"], device["name"]]),
                )
                for i, device in enumerate(one["spec"]["devices"])
            ),
        )
        for one in sorted(slices, key=lambda one: str(one["spec"]["nodeName"]))
    ]


def count_cards(nodes: Sequence[NodeCards]) -> tuple[int, ...]:
    """Count the cards in use on each node in use, the most first."""
    found = [sum(bool(card.pods) for card in node.cards) for node in nodes]
    return tuple(sorted(filter(None, found), reverse=True))
