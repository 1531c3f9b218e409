"""Nodes and pods with cards as an API server would serve them, for replays without a cluster."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.api import hami, names, wire
from scheduler.api.cards import Card


def node(name: str, allocatable: wire.Quantities, cards: Sequence[Card]) -> wire.Node:
    """A node; ``cards`` are allocated one by one, and are none for a node without any."""
    annotations = {}
    if cards:
        annotations[names.HAMI_REGISTER] = hami.encode_register(cards)
        allocatable = {**allocatable, names.GPU: sum(card.sharers for card in cards)}
    return wire.Node(
        wire.Meta(name=name, uid=name, annotations=annotations),
        status=wire.NodeStatus(allocatable),
    )


def limits(*, cards: int, cores: int = 0, mib: int = 0) -> wire.Quantities:
    """What a container requests: cards, of each so many percent of the cores and so many MiB.

    Without MiB it requests as many percent of the memory as of the cores; without both, whole cards.
    """
    asked: wire.Quantities = {names.GPU: cards}
    if cores:
        asked[names.GPU_CORES] = cores
    if mib:
        asked[names.GPU_MEMORY] = mib
    elif cores:
        asked[names.GPU_MEMORY_PERCENT] = cores
    return asked


def with_node_policy(policy: str) -> dict[str, str]:
    """The annotations of a pod whose nodes are ordered by a policy instead of the mode."""
    return {names.HAMI_NODE_POLICY: policy}


def only_models(models: Sequence[str]) -> dict[str, str]:
    """The annotations of a pod that takes cards of these models; any card where there are none."""
    return {names.USE_TYPE: ",".join(map(model_word, models))} if models else {}


def model_word(model: str) -> str:
    """A model as pods name it: in brackets, because pods name parts of names, and A10 is a part of A100."""
    return f"<{model.replace(',', ';')}>"
