"""From a node object to the facts that the columns are made of."""

from __future__ import annotations

from scheduler.api import wire
from scheduler.api.pods import images, requests
from scheduler.devices.table import Devices
from scheduler.errors import BadInput, Mistake
from scheduler.state.nodes import NodeFacts
from scheduler.state.readings import NOTHING_READ, DriverReading


def keep_classes(new: NodeFacts, old: NodeFacts) -> NodeFacts:
    """Return facts with what followed from classes before, but for what the node offers itself by now."""
    own = dict(new.allocatable)
    return new._replace(by_class=tuple(one for one in old.by_class if one[0] not in own))


def read_facts(node: wire.Node, devices: Devices) -> NodeFacts:
    """Read the facts of a node. Never raises: what is malformed stands in ``problem``."""
    readings: list[DriverReading] = []
    for number, driver in devices.cards.items():
        words = driver.read_node(node)
        # Nodes of which a driver reads nothing share one reading.
        if any(words):
            readings += [NOTHING_READ] * (number - len(readings))
            reading = DriverReading(words, driver.is_told(words), driver.is_signed(words))
            readings.append(reading)
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
        for number, reading in enumerate(readings):
            if reading.words:
                devices.cards[number].list_cards(reading.words)
    except BadInput as error:
        problem = error.mistake
    labels = node.metadata.labels or {}
    taints = tuple(sorted((t.key, t.value, t.effect) for t in node.spec.taints or ()))
    return NodeFacts(
        name=node.metadata.name,
        uid=node.metadata.uid,
        labels=labels,
        taints=taints,
        unschedulable=node.spec.unschedulable,
        allocatable=tuple(sorted((resource, n) for resource, n in allocatable if n)),
        devices=tuple(readings),
        images=images.list_images(node.status),
        features=tuple(sorted(set(node.status.declared_features or ()))),
        problem=problem,
        foreign=devices.is_foreign(labels, taints),
    )
