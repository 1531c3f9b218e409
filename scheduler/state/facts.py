"""From a node object to the facts that the columns are made of."""

from __future__ import annotations

from scheduler.api import wire
from scheduler.api.pods import images, requests
from scheduler.devices.contract import CardDriver
from scheduler.devices.table import Families
from scheduler.errors import BadInput, Mistake
from scheduler.state.nodes import DriverReading, NodeFacts

_NOTHING = DriverReading()


def read_facts(node: wire.Node, families: Families) -> NodeFacts:
    """Read the facts of a node. Never raises: what is malformed stands in ``problem``."""
    devices = tuple(_read_devices(node, family.cards) for family in families)
    problem: Mistake | None = None
    allocatable: list[tuple[str, int]] = []
    try:
        if not node.metadata.name:
            # No pod could be bound there: a binding names its node.
            raise BadInput("metadata.name", "is missing")
        allocatable = [
            (resource, requests.read_amount(resource, quantity, "status.allocatable"))
            for resource, quantity in (node.status.allocatable or {}).items()
        ]
        for family, told in zip(families, devices, strict=True):
            if family.cards is not None:
                family.cards.list_cards(told.words)
    except BadInput as error:
        problem = error.mistake
    return NodeFacts(
        name=node.metadata.name,
        uid=node.metadata.uid,
        labels=node.metadata.labels or {},
        taints=tuple(sorted((t.key, t.value, t.effect) for t in node.spec.taints or ())),
        unschedulable=node.spec.unschedulable,
        allocatable=tuple(sorted((resource, n) for resource, n in allocatable if n)),
        devices=devices,
        images=images.list_images(node.status),
        features=tuple(sorted(set(node.status.declared_features or ()))),
        problem=problem,
    )


def _read_devices(node: wire.Node, cards: CardDriver | None) -> DriverReading:
    if cards is None:
        return _NOTHING
    words = cards.read_node(node)
    return DriverReading(words, cards.is_told(words), cards.is_signed(words))
