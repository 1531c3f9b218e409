"""A node's pods, its free capacity and the pods that wait for it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from scheduler.api import names
from scheduler.schema import columns as c
from scheduler.state.nodes import NodeFacts
from scheduler.state.pods import PodRecord
from scheduler.telling.advice import nearest, wishes
from scheduler.telling.advice.nearest import Nearest
from scheduler.telling.explained import devices, pools
from scheduler.telling.explained.scene import Scene

Json = dict[str, Any]
# The most kinds of waiting pods that are evaluated, in the order of the queue; and the most names in a group.
_KINDS, _NAMES = 2000, 20
_ROUND = 6


def explain_node(scene: Scene, name: str, schedulers: Mapping[str, str | None]) -> Json:
    """Explain one node; ``schedulers`` are the scheduler names of its pods, by uid."""
    cluster = scene.asking.cluster
    row, facts = cluster.nodes.find_row(name), cluster.find_facts(name)
    taints = facts.taints if facts else ()
    return {
        "kind": "Node",
        "name": name,
        "cordoned": bool(facts and facts.unschedulable),
        "silent": bool(cluster.nodes.silent[row]),
        "taints": [
            {"key": key, "value": value, "effect": effect, "isState": wishes.is_state((key, value, effect))}
            for key, value, effect in taints
        ],
        "resources": _list_resources(scene, row, facts),
        "cards": _list_cards(scene, row),
        **pools.describe_pools(cluster, row),
        "pods": [_describe_pod(pod, schedulers.get(pod.uid)) for pod in _list_pods(scene, name)],
        "waiting": _group_waiting(scene, row),
    }  # fmt: skip


def _list_pods(scene: Scene, name: str) -> list[PodRecord]:
    pods = scene.asking.cluster.pods_on.get(name, {}).values()
    return sorted(pods, key=lambda pod: (-pod.priority, pod.key))


def _list_resources(scene: Scene, row: int, facts: NodeFacts | None) -> list[Json]:
    nodes, table = scene.asking.cluster.nodes.columns, scene.asking.cluster.nodes
    first = (names.CPU, names.MEMORY, names.PODS)
    offered = [resource for resource, _ in (facts.offered if facts else ())]
    registers = scene.asking.cluster.registers
    families = registers.devices.families
    pools = {families[int(nodes.pools.family[pool])]: pool for pool in registers.list_pools(row)}
    found = []
    for resource in dict.fromkeys([*first, *offered]):
        pool = pools.get(resource)
        if pool is not None and nodes.pools.managed[pool]:
            # The rows of cards show what is free; the node's figure counts how many pods may share the cards.
            continue
        at = table.find_row_asked(resource)
        total, used = int(nodes.allocatable[at, row]), int(nodes.requested[at, row])
        if total or used:
            one = {"resource": resource, "total": total, "used": used}
            part = 1.0 if pool is None else float(nodes.pools.part[c.PART_GPUS, pool])
            one |= {"free": max(0, total - used), "gpuPart": round(part, _ROUND)}
            found.append(one)
    return found


def _list_cards(scene: Scene, row: int) -> list[Json]:
    cluster = scene.asking.cluster
    held: dict[int, list[Json]] = {}
    for pod in _list_pods(scene, cluster.nodes.find_name(row)):
        for d, (cores, mib, sharers) in cluster.read_held(pod).items():
            one = {"pod": pod.key, "memoryMiB": mib, "cores": cores, "sharers": sharers}
            held.setdefault(d, []).append(one)
    return [
        {
            "family": cluster.registers.find_resource(d),
            **devices.describe_card(cluster, d),
            "holders": held.get(d, []),
        }
        for d in cluster.registers.list_card_rows(row)
    ]


def _describe_pod(pod: PodRecord, scheduler: str | None) -> Json:
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "scheduler": scheduler,
        "priority": pod.priority,
        "deleting": pod.deleting,
        "requests": dict(pod.template.requests.amounts),
    }


def _group_waiting(scene: Scene, row: int) -> Json:
    """Group the waiting pods by the reasons of this node; pods of a group are in the order of the queue."""
    kinds: dict[Hashable, list[PodRecord]] = {}
    for pod in scene.pending.list_active():
        kinds.setdefault(scene.cycle.find_kind(pod), []).append(pod)
    groups: dict[tuple[str, ...], Json] = {}
    held: list[PodRecord] = []
    for pods in list(kinds.values())[:_KINDS]:
        shape = scene.asking.make_shape(pods[0])
        if shape is None:
            held += pods
            continue
        judged = scene.asking.judge_rows(shape, np.array([row], np.int64))
        one = nearest.describe_node(scene.asking, judged, 0) if judged.bits[0, 0] else None
        _add_to_group(groups, one, pods)
    found = list(groups.values())
    # First come pods that fit, then pods that would fit without other pods on the node.
    found.sort(key=lambda one: (not one["fits"], not one["evictionCouldHelp"], -one["pods"]))
    return {
        "pods": sum(map(len, kinds.values())),
        "lookedAt": sum(one["pods"] for one in found) + len(held),
        "held": [pod.key for pod in held[:_NAMES]],
        "groups": found,
    }


def _add_to_group(
    groups: dict[tuple[str, ...], Json], one: Nearest | None, pods: list[PodRecord]
) -> None:
    """Add like pods to the group with the same reasons; ``one`` is None if the node takes the pods."""
    reasons = tuple(text for lack in one.lacks for text in lack.texts) if one else ()
    group = groups.setdefault(
        reasons,
        {
            "fits": one is None,
            "reasons": list(reasons),
            "evictionCouldHelp": all(lack.resolvable for lack in one.lacks) if one else True,
            "short": {},
            "pods": 0,
            "names": [],
        },
    )
    if one and not all(lack.resolvable for lack in one.lacks):
        group["evictionCouldHelp"] = False
    for short in one.short if one else ():
        least = group["short"].setdefault(short.resource, {"leastRequested": short.requested})
        least["leastRequested"] = min(least["leastRequested"], short.requested)
        least["free"] = short.free
    group["pods"] += len(pods)
    group["names"] += [pod.key for pod in pods[: _NAMES - len(group["names"])]]
