"""Nodes that would take a pod if they were well: not cordoned, without taints of a bad state, all cards open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from msgspec.structs import replace

from scheduler.api import wire
from scheduler.api.door.decisions import Plan
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord
from scheduler.telling.advice import wishes
from scheduler.telling.advice.asking import Asking

# The most nodes that are tried together, and the most that are tried one by one.
_AT_ONCE, _EACH = 512, 16


class Back(NamedTuple):
    """A node that would take a pod, and what keeps off all pods or pods that request cards."""

    row: int
    why: tuple[str, ...]


def find_nodes_back(asking: Asking, pod: PodRecord, nodes: Mapping[str, wire.Node]) -> list[Back]:
    """Find the nodes that would take a pod, each tried alone; ``nodes`` are the node objects of the cluster by name."""
    out = _find_out(asking.cluster, nodes)
    if not out:
        return []
    with _bring_back(asking.cluster, {name: nodes[name] for name in out}):
        promising = [name for name in asking.list_names(asking.find_fitting(pod)) if name in out]
    found = []
    for name in promising[:_EACH]:
        with _bring_back(asking.cluster, {name: nodes[name]}):
            row = asking.cluster.nodes.find_row(name)
            if row in asking.find_fitting(pod):
                found.append(Back(row, out[name]))
    return found


def find_nodes_back_for_group(
    cluster: Cluster, nodes: Mapping[str, wire.Node], place: Callable[[], Plan]
) -> tuple[Plan, list[Back]]:
    """Find nodes that would let a group in if all of them were well; none if they would not.

    Returns how the group would be placed, and the nodes.
    """
    out = _find_out(cluster, nodes)
    if not out:
        return Plan(""), []
    with _bring_back(cluster, {name: nodes[name] for name in out}):
        used = sorted({bind.node for bind in place().binds} & out.keys())
    if not used:
        return Plan(""), []
    with _bring_back(cluster, {name: nodes[name] for name in used}):
        plan = place()
    found = [Back(cluster.nodes.find_row(name), out[name]) for name in used]
    return plan, found if plan.binds else []


def _find_out(cluster: Cluster, nodes: Mapping[str, wire.Node]) -> dict[str, tuple[str, ...]]:
    """Find nodes that are not well, by name, with the causes."""
    out: dict[str, tuple[str, ...]] = {}
    for name in sorted(nodes):
        if (why := _list_causes(cluster, nodes[name])) and len(out) < _AT_ONCE:
            out[name] = why
    return out


def _list_causes(cluster: Cluster, node: wire.Node) -> tuple[str, ...]:
    row = cluster.nodes.find_row(node.metadata.name)
    facts = cluster.nodes.facts[row] if row >= 0 else None
    if facts is None or facts.problem:
        return ()
    why = ["cordoned"] if facts.unschedulable else []
    why += [f"taint {taint[0]}" for taint in facts.taints if wishes.is_state(taint)]
    if cluster.nodes.silent[row]:
        why.append("its device plugin does not answer")
    elif _has_closed_cards(cluster, row):
        why.append("cards are cordoned")
    return tuple(why)


def _has_closed_cards(cluster: Cluster, row: int) -> bool:
    rows = cluster.registers.list_card_rows(row)
    return bool(cluster.cards.columns.cordoned[rows].any())


@contextmanager
def _bring_back(cluster: Cluster, nodes: Mapping[str, wire.Node]) -> Iterator[None]:
    """Make these nodes well within the context, and restore them afterwards."""
    silent = [name for name in nodes if cluster.nodes.silent[cluster.nodes.find_row(name)]]
    for name in silent:
        cluster.close_cards(name, closed=False)
    for node in nodes.values():
        cluster.see_node(_heal_node(cluster, node))
    try:
        yield
    finally:
        for node in nodes.values():
            cluster.see_node(node)
        for name in silent:
            cluster.close_cards(name, closed=True)


def _heal_node(cluster: Cluster, node: wire.Node) -> wire.Node:
    taints = [
        taint
        for taint in node.spec.taints or ()
        if not wishes.is_state((taint.key, taint.value, taint.effect))
    ]
    for driver in cluster.registers.devices.cards.values():
        node = driver.open_node(node)
    return replace(node, spec=replace(node.spec, unschedulable=False, taints=taints))
