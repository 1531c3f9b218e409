"""Nodes and pods with cards as an API server would serve them, for replays without a cluster."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.api import hami, names, wire
from scheduler.api.cards import Card


def make_node(name: str, allocatable: wire.Quantities, cards: Sequence[Card]) -> wire.Node:
    """Make a node with ``cards`` that are allocated one by one; the sequence is empty for a node without cards."""
    annotations = {}
    if cards:
        annotations[names.HAMI_REGISTER] = hami.encode_register(cards)
        allocatable = {**allocatable, names.GPU: sum(card.sharers for card in cards)}
    return wire.Node(
        wire.Meta(name=name, uid=name, annotations=annotations),
        status=wire.NodeStatus(allocatable),
    )


def make_limits(*, cards: int, cores: int = 0, mib: int = 0) -> wire.Quantities:
    """Make the limits of a container: a number of cards, and for each card a percentage of the cores and MiB.

    Without ``mib`` it requests the same percentage of the memory as of the cores; without both, whole cards.
    """
    asked: wire.Quantities = {names.GPU: cards}
    if cores:
        asked[names.GPU_CORES] = cores
    if mib:
        asked[names.GPU_MEMORY] = mib
    elif cores:
        asked[names.GPU_MEMORY_PERCENT] = cores
    return asked


def annotate_models(models: Sequence[str]) -> dict[str, str]:
    """Make the annotations of a pod that accepts cards of these models only; any card if ``models`` is empty."""
    return {names.USE_TYPE: ",".join(map(write_model, models))} if models else {}


def write_model(model: str) -> str:
    """Write a model as pods name it: in brackets, because pods name parts of names, and A10 is a part of A100."""
    return f"<{model.replace(',', ';')}>"
