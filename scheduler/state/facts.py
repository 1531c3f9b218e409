"""From a node object to the facts that columns are made of."""

from __future__ import annotations

from scheduler.api import hami, images, names, requests, wire
from scheduler.errors import BadInput
from scheduler.state.nodes import NodeFacts


def of_node(node: wire.Node) -> NodeFacts:
    """The facts of a node. Never raises: what is malformed stands in ``problem``."""
    annotations = node.metadata.annotations or {}
    register = annotations.get(names.HAMI_REGISTER, "")
    problem = ""
    allocatable: list[tuple[str, int]] = []
    try:
        allocatable = [
            (resource, requests.amount(resource, quantity, "status.allocatable"))
            for resource, quantity in (node.status.allocatable or {}).items()
        ]
        if register:
            hami.decode_register(register)
    except BadInput as error:
        problem = str(error)
    return NodeFacts(
        name=node.metadata.name,
        uid=node.metadata.uid,
        labels=node.metadata.labels or {},
        taints=tuple(sorted((t.key, t.value, t.effect) for t in node.spec.taints or ())),
        unschedulable=node.spec.unschedulable,
        allocatable=tuple(sorted((resource, n) for resource, n in allocatable if n)),
        register=register,
        cordon=annotations.get(names.HAMI_CORDON, ""),
        # A scheduler of HAMi's asks for the handshake on every node, so only the answer tells something.
        plugin=bool(register)
        or names.HAMI_SCORE in annotations
        or annotations.get(names.HAMI_HANDSHAKE, "").startswith(names.HANDSHAKE_REPORTED),
        images=images.of_node(node.status),
        problem=problem,
    )
