"""Finds the largest group that fits now at each level of the topology, and what would have to move for a larger one.

The pods of the group ask for all GPUs of a node each, so the group fits where enough nodes of one kind have no GPU in use.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from scheduler.audit import barriers
from scheduler.audit.prices import rates
from scheduler.engine.engine import Engine
from scheduler.engine.questions.auditing import DevicesOn, GroupOfPods, SharesOf
from scheduler.engine.questions.nodes import KnownNode
from scheduler.measure import figures as m
from scheduler.measure.figures import Figures

Json = dict[str, Any]
# So many kinds of nodes are shown, those with the most GPUs.
_KINDS = 5
_ROUND = 3
# The nodes of a domain by its values, from the widest level on.
Domains = dict[tuple[str, ...], list[str]]


class Unit(NamedTuple):
    """Pods that would move together: a pod by itself, or all pods of a group."""

    name: str
    pods: tuple[str, ...]
    nodes: tuple[str, ...]
    gpus: float


class Fleet(NamedTuple):
    """The nodes of one kind that pods with all GPUs of a node may use.

    Attributes:
        model: the names of the models of their GPUs.
        gpus: how many GPUs each has.
        free: the nodes with no GPU in use.
        units: for every other node the units that would have to move; a node that cannot be cleared is left out.
    """

    model: str
    gpus: int
    free: frozenset[str]
    units: Mapping[str, tuple[Unit, ...]]

    @property
    def nodes(self) -> list[str]:
        """All its nodes."""
        return sorted([*self.free, *self.units])


def find_gangs(
    engine: Engine,
    figures: Figures,
    models: Mapping[str, Sequence[str]],
    shut: Collection[str],
    own: Collection[str],
) -> list[Json]:
    """Make the part ``gangs`` of the audit: for each kind of node with GPUs, the levels.

    Args:
        engine: it has seen the cluster.
        figures: of all nodes that are judged.
        models: the names of the models of each node's GPUs.
        shut: nodes to which no typical pod with GPUs may go, whatever room there is.
        own: uids of pods that belong to their node, which is not cleared of them.
    """
    fleets = list_fleets(engine, figures, models, shut, own)
    return [
        {
            "model": one.model,
            "gpusPerNode": one.gpus,
            "nodes": len(one.nodes),
            "taints": _count_taints(engine, one),
            "levels": _list_levels(engine, one),
        }
        for one in fleets[:_KINDS]
    ]


def list_fleets(
    engine: Engine,
    figures: Figures,
    models: Mapping[str, Sequence[str]],
    shut: Collection[str],
    own: Collection[str],
) -> list[Fleet]:
    """List the kinds of nodes with GPUs, those with the most GPUs first."""
    names = figures.names
    cards, n = engine.ask(DevicesOn(names)).cards, len(names)
    gpus = np.round(np.bincount(cards.owner, cards.capacity[0], n)).astype(np.int64)
    in_use = np.bincount(cards.owner, cards.sharers, n)
    broken = np.bincount(cards.owner, ~cards.usable, n)
    held = _list_units(engine, names, own)
    found: dict[tuple[str, int], tuple[list[str], dict[str, tuple[Unit, ...]]]] = {}
    for i in np.flatnonzero((gpus > 0) & (broken == 0) & ~figures.closed).tolist():
        name = names[i]
        if name in shut:
            continue
        kind = ", ".join(models[name]) or rates.UNKNOWN, int(gpus[i])
        free, units = found.setdefault(kind, ([], {}))
        if not in_use[i]:
            free.append(name)
        elif held.get(name):
            units[name] = held[name]
    fleets = [Fleet(*kind, frozenset(free), units) for kind, (free, units) in found.items()]
    return sorted(fleets, key=lambda one: (-one.gpus * len(one.nodes), one.model, one.gpus))


def _list_units(
    engine: Engine, names: Sequence[str], own: Collection[str]
) -> dict[str, tuple[Unit, ...]]:
    """List the units with GPUs on each node; nodes with pods of their own that have GPUs are left out."""
    shares, group_of = engine.ask(SharesOf(names)), engine.ask(GroupOfPods())
    gpus = shares.amounts[m.GPU]
    members: dict[str, list[int]] = defaultdict(list)
    stuck = set()
    for i in np.flatnonzero(shares.amounts[[m.GPU, m.GPU_MEMORY]].any(axis=0)).tolist():
        pod = shares.pods[i]
        if pod.uid in own:
            stuck.add(pod.node)
        group = group_of.get(pod.uid)
        members[f"Pod {pod.key}" if group is None else str(group)].append(i)
    there: dict[str, list[Unit]] = defaultdict(list)
    for name, parts in sorted(members.items()):
        pods = [shares.pods[i] for i in parts]
        on = tuple(sorted({pod.node for pod in pods}))
        unit = Unit(
            name,
            tuple(sorted(pod.key for pod in pods)),
            on,
            round(float(gpus[parts].sum()), _ROUND),
        )
        for node in on:
            there[node].append(unit)
    return {node: tuple(units) for node, units in there.items() if node not in stuck}


def _count_taints(engine: Engine, fleet: Fleet) -> list[Json]:
    """Count the nodes of a fleet with each taint that pods of a group must tolerate, most nodes first."""
    counts = Counter(
        barriers.name_taint(taint)
        for name in fleet.nodes
        for taint in barriers.list_hard_taints(engine, name)
    )
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [{"taint": taint, "nodes": n} for taint, n in ordered]


def _list_levels(engine: Engine, fleet: Fleet) -> list[Json]:
    """List the levels that a fleet has, the whole cluster first; levels of single nodes are left out."""
    found = [_describe_level(fleet, None, {(): fleet.nodes})]
    domains: Domains = {(): fleet.nodes}
    for label in engine.config.groups.topology:
        narrower = _split(engine, domains, label)
        if not narrower:
            # Without the label a node is in no domain of this level, nor of those below.
            continue
        domains = narrower
        if max(map(len, domains.values())) > 1:
            found.append(_describe_level(fleet, label, domains))
    return found


def _split(engine: Engine, domains: Domains, label: str) -> Domains:
    """Split domains by the values of a label."""
    found: Domains = {}
    for values, nodes in domains.items():
        for name in nodes:
            facts = engine.ask(KnownNode(name))
            if facts is not None and label in facts.labels:
                found.setdefault((*values, facts.labels[label]), []).append(name)
    return dict(sorted(found.items()))


def _describe_level(fleet: Fleet, label: str | None, domains: Domains) -> Json:
    n_free = {values: len(fleet.free.intersection(nodes)) for values, nodes in domains.items()}
    best = max(domains, key=lambda values: n_free[values])
    most = n_free[best]
    return {
        "label": label,
        "domains": len(domains),
        "largest": {"gpus": most * fleet.gpus, "nodes": most, "domain": list(best)},
        "next": _find_next(fleet, domains, 1 << most.bit_length()),
    }


def _find_next(fleet: Fleet, domains: Domains, n_nodes: int) -> Json | None:
    """Find the domain in which least would have to move for a group on so many nodes; None if no domain has so many."""
    found = []
    for values, nodes in domains.items():
        if (moved := clear_nodes(fleet, nodes, n_nodes)) is not None:
            gpus = sum(unit.gpus for unit in moved)
            found.append((gpus, sum(len(unit.pods) for unit in moved), values, moved))
    if not found:
        return None
    gpus, _, values, moved = min(found)
    return {
        "gpus": n_nodes * fleet.gpus,
        "nodes": n_nodes,
        "domain": list(values),
        "moves": {
            "gpus": round(gpus, _ROUND),
            "units": [
                {"unit": one.name, "pods": list(one.pods), "nodes": list(one.nodes), "gpus": one.gpus}
                for one in sorted(moved, key=lambda one: (-one.gpus, one.name))
            ],
        },
    }  # fmt: skip


def clear_nodes(fleet: Fleet, nodes: Sequence[str], n_nodes: int) -> list[Unit] | None:
    """Choose units whose move leaves so many of some nodes without a GPU in use; None if that is impossible.

    The node for which the fewest GPUs have to move comes next; a unit that moves already costs nothing. So of pods by
    themselves the fewest GPUs move, and of groups nearly the fewest.
    """
    missing = n_nodes - len(fleet.free.intersection(nodes))
    busy = [name for name in nodes if name in fleet.units]
    if missing > len(busy):
        return None
    moved: dict[str, Unit] = {}
    left = {name: {unit.name: unit for unit in fleet.units[name]} for name in busy}
    heap = [(_sum_gpus(left[name]), name) for name in busy]
    heapq.heapify(heap)
    while missing > 0:
        cost, name = heapq.heappop(heap)
        # What is left of a node shrinks with every unit that moves.
        if name not in left or cost != _sum_gpus(left[name]):
            continue
        for unit in left.pop(name).values():
            moved[unit.name] = unit
            for other in unit.nodes:
                if other in left and left[other].pop(unit.name, None) is not None:
                    heapq.heappush(heap, (_sum_gpus(left[other]), other))
        missing -= 1
    return list(moved.values())


def _sum_gpus(units: Mapping[str, Unit]) -> float:
    return round(sum(unit.gpus for unit in units.values()), _ROUND)
