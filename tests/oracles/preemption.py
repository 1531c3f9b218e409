"""Whose place a pod takes: kube-scheduler 1.37's DefaultPreemption, one node and one pod at a time, on raw objects.

Source: pkg/scheduler/framework/preemption and framework/plugins/defaultpreemption. All nodes are looked at, and the
first by name is taken of those that are as good in everything.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.oracles import filters, pod_affinity, requests, topology_spread
from tests.oracles.selectors import is_empty, matches

Json = dict[str, Any]
NOBODY = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
RESOURCES = ("cpu", "memory", "nvidia.com/gpu")


@dataclass
class World:
    """Pods run where ``spec.nodeName`` says, and are nominated where ``status.nominatedNodeName`` does.

    ``groups`` are PodGroups and CompositePodGroups.
    """

    nodes: list[Json]
    pods: list[Json]
    budgets: list[Json] = field(default_factory=list)
    groups: list[Json] = field(default_factory=list)


@dataclass
class Unit:
    """Pods that go together or stay together; the rank is 1 for pods, 2 for PodGroups, 3 for CompositePodGroups."""

    pods: list[Json]
    priority: int
    rank: int


@dataclass
class Target:
    """A node, who would go from it, and how many of them in violation of a budget."""

    node: str
    victims: list[Json]
    violations: int


def refusal(pod: Json, node: Json, world: World, pods: Sequence[Json]) -> tuple[str, bool]:
    """(why a node refuses the pod beside these, whether evictions cannot help); empty where it fits."""
    there = [one for one in pods if one["spec"].get("nodeName") == name(node)]
    words = filters.refusal(pod, node, there)
    if words:
        return words, words != "NodePorts"
    short = False
    for resource in RESOURCES:
        asked = requests.total(pod, resource) or 0
        has = requests.amount(resource, node["status"]["allocatable"].get(resource, 0))
        used = sum(requests.total(one, resource) or 0 for one in there)
        if asked > has:
            return "NodeResourcesFit", True
        short = short or (asked > has - used and asked > 0)
    if short or len(there) + 1 > int(node["status"]["allocatable"]["pods"]):
        return "NodeResourcesFit", False
    for rule in (topology_spread, pod_affinity):
        reason, status = rule.refusals(pod, world.nodes, list(pods))[name(node)]
        if reason:
            return reason, status == "unresolvable"
    return "", False


def beside_nominated(pod: Json, node: Json, world: World, pods: Sequence[Json]) -> tuple[str, bool]:
    """As ``refusal``, also beside those nominated to the node that the pod has to yield to."""
    before = [
        one | {"spec": one["spec"] | {"nodeName": name(node)}}
        for one in world.pods
        if one.get("status", {}).get("nominatedNodeName") == name(node)
        and not one["spec"].get("nodeName")
        and priority(one) >= priority(pod)
        and uid(one) != uid(pod)
    ]
    found = refusal(pod, node, world, [*pods, *before]) if before else ("", False)
    return found if found[0] else refusal(pod, node, world, pods)


def targets(pod: Json, world: World) -> tuple[list[Target], dict[str, str]]:
    """The nodes that could make room, and why the others cannot."""
    running = [one for one in world.pods if one["spec"].get("nodeName")]
    found, why = [], {}
    for node in world.nodes:
        refused, lasting = beside_nominated(pod, node, world, running)
        assert refused, "the pod fits without anybody's going"
        if lasting:
            why[name(node)] = NOT_HELPFUL
            continue
        target, reason = select_victims(pod, node, world, running)
        if target is None:
            why[name(node)] = reason
        else:
            found.append(target)
    return found, why


def select_victims(
    pod: Json, node: Json, world: World, running: list[Json]
) -> tuple[Target | None, str]:
    units = list_units(node, world, running)
    lower = [one for one in units if one.priority < priority(pod)]
    if not lower:
        return None, NOBODY
    gone = {uid(pod) for one in lower for pod in one.pods}
    kept = [one for one in running if uid(one) not in gone]
    reason, _ = beside_nominated(pod, node, world, kept)
    if reason:
        return None, reason
    lower.sort(key=importance)
    counts = count_violations([one.pods for one in lower], world.budgets)
    violating = [one for one, n in zip(lower, counts, strict=True) if n]
    others = [one for one, n in zip(lower, counts, strict=True) if not n]
    victims, violations = [], 0
    for one in [*violating, *others]:
        if beside_nominated(pod, node, world, [*kept, *one.pods])[0]:
            victims.append(one)
            violations += counts[lower.index(one)]
        else:
            kept += one.pods
    if violating and others:
        victims.sort(key=lambda one: (importance(one), lower.index(one)))
    flat = [pod for one in victims for pod in one.pods]
    return (Target(name(node), flat, violations), "") if victims else (None, "nobody")


def list_units(node: Json, world: World, running: list[Json]) -> list[Unit]:
    """The units with a pod on a node: of a group that goes as a whole all pods, wherever they run."""
    groups = {name(one): one for one in world.groups}
    units: list[Unit] = []
    seen = set()
    for one in running:
        if one["spec"]["nodeName"] != name(node):
            continue
        above = list_groups_of(one, groups)
        urgency = int(above[-1]["spec"].get("priority", 0)) if above else priority(one)
        whole = [name(group) for group in above if "all" in group["spec"]["disruptionMode"]]
        if not whole:
            units.append(Unit([one], urgency, 2 if "schedulingGroup" in one["spec"] else 1))
        elif whole[-1] not in seen:
            seen.add(whole[-1])
            there = [
                other for other in running if whole[-1] in map(name, list_groups_of(other, groups))
            ]
            # Their order is chance for kube-scheduler.
            there.sort(key=lambda pod: -priority(pod))
            rank = 2 if groups[whole[-1]]["kind"] == "PodGroup" else 3
            units.append(Unit(there, urgency, rank))
    return units


def list_groups_of(pod: Json, groups: dict[str, Json]) -> list[Json]:
    """The group of a pod and those around it, the root last."""
    found = []
    at = pod["spec"].get("schedulingGroup", {}).get("podGroupName")
    while at in groups:
        found.append(groups[at])
        at = groups[at]["spec"].get("parentCompositePodGroupName")
    return found


def count_violations(units: list[list[Json]], budgets: list[Json]) -> list[int]:
    """How many pods of each unit violate a budget if all go, the most important first."""
    violating, _ = split_by_budgets([pod for unit in units for pod in unit], budgets)
    uids = {uid(one) for one in violating}
    return [sum(uid(pod) in uids for pod in unit) for unit in units]


def split_by_budgets(pods: list[Json], budgets: list[Json]) -> tuple[list[Json], list[Json]]:
    allowed = {id(one): one["status"]["disruptionsAllowed"] for one in budgets}
    violating: list[Json] = []
    others: list[Json] = []
    for pod in pods:
        is_violating = False
        labels = pod["metadata"].get("labels") or {}
        near = [one for one in budgets if one["metadata"]["namespace"] == namespace(pod)]
        for budget in sorted(near, key=name) if labels else ():
            selector = budget["spec"].get("selector")
            if selector is None or is_empty(selector) or not matches(selector, labels):
                continue
            if name(pod) in (budget["status"].get("disruptedPods") or {}):
                continue
            allowed[id(budget)] -= 1
            if allowed[id(budget)] < 0:
                is_violating = True
                break
        (violating if is_violating else others).append(pod)
    return violating, others


def choose(found: list[Target]) -> Target | None:
    """The six criteria; the first by name in the end."""
    if not found:
        return None

    def rank(target: Target) -> tuple[Any, ...]:
        first = priority(target.victims[0])
        highest = max(map(priority, target.victims))
        starts = [started(one) for one in target.victims if priority(one) == highest]
        return (
            target.violations,
            first,
            sum(priority(one) + 2**31 for one in target.victims),
            len(target.victims),
            -min(starts),
            target.node,
        )

    return min(found, key=rank)


def importance_of_pod(pod: Json) -> tuple[float, ...]:
    """As ``importance``, of a pod by itself."""
    return importance(Unit([pod], priority(pod), 1))


def importance(unit: Unit) -> tuple[float, ...]:
    """The most important first; ties stay in the order in which pods came, which kube-scheduler leaves open."""
    return -unit.priority, -unit.rank, -len(unit.pods), min(map(started, unit.pods))


def started(pod: Json) -> float:
    at = pod.get("status", {}).get("startTime")
    return datetime.fromisoformat(at).timestamp() if at else math.inf


def priority(pod: Json) -> int:
    return int(pod["spec"].get("priority", 0))


def name(thing: Json) -> str:
    return str(thing["metadata"]["name"])


def uid(pod: Json) -> str:
    return str(pod["metadata"]["uid"])


def namespace(thing: Json) -> str:
    return str(thing["metadata"].get("namespace", "default"))
