"""From a node object to the facts that columns are made of."""

from __future__ import annotations

from scheduler.api import images, requests, wire
from scheduler.devices.contract import Driver
from scheduler.errors import BadInput, Mistake
from scheduler.state.nodes import NodeFacts


def of_node(node: wire.Node, driver: Driver) -> NodeFacts:
    """The facts of a node. Never raises: what is malformed stands in ``problem``."""
    words = driver.read_node(node)
    problem: Mistake | None = None
    allocatable: list[tuple[str, int]] = []
    try:
        allocatable = [
            (resource, requests.amount(resource, quantity, "status.allocatable"))
            for resource, quantity in (node.status.allocatable or {}).items()
        ]
        driver.cards(words)
    except BadInput as error:
        problem = error.mistake
    return NodeFacts(
        name=node.metadata.name,
        uid=node.metadata.uid,
        labels=node.metadata.labels or {},
        taints=tuple(sorted((t.key, t.value, t.effect) for t in node.spec.taints or ())),
        unschedulable=node.spec.unschedulable,
        allocatable=tuple(sorted((resource, n) for resource, n in allocatable if n)),
        devices=words,
        is_told=driver.is_told(words),
        is_signed=driver.is_signed(words),
        images=images.of_node(node.status),
        problem=problem,
    )
