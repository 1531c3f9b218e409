"""A small cluster with running pods and groups, and one group that comes, from a seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.differential.features.claims import requests as claiming
from tests.differential.features.claims import supply
from tests.differential.worlds import HOST, SCHEDULER, World

Json = dict[str, Any]

NAMESPACE = "blue"
RACK, BLOCK = "rack", "block"
OTHER_SCHEDULER = "other-scheduler"
# Classes by name; pods and groups of no class have priority 0.
_PRIORITIES = ("low", "", "middle", "high")
# How often a pod comes by itself.
_ALONE = 0.2
# How often pods that come have ResourceClaims.
_CLAIMING = 0.25
_REFERENCE = {"workloadName": "none", "templateName": "none"}
_GROUP, _COMPOSITE = "scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3"


@dataclass(slots=True)
class GroupWorld(World):
    """A cluster to which a group comes, or a pod by itself.

    Attributes:
        groups: the objects of the group that comes, the root last: kube-scheduler then sees all pods at once; none for a
            pod by itself.
        raised: the minimum that its PodGroup gets once all its pods have nodes; 0 if it keeps its own.
        late: the pods that come then.
    """

    groups: list[Json] = field(default_factory=list)
    raised: int = 0
    late: list[Json] = field(default_factory=list)


def build(seed: int) -> GroupWorld:
    """The world of a seed."""
    rng = Random(f"{seed}/groups")
    world = GroupWorld(seed)
    n_racks = rng.randint(1, 3)
    world.nodes = [_node(rng, f"node-{i}", n_racks) for i in range(rng.randint(2, 8))]
    _add_running(rng, world)
    if Random(f"{seed}/alone").random() < _ALONE:
        _add_pod(rng, world)
    elif rng.random() < 0.25:
        _add_composite(rng, world)
    else:
        _add_group(rng, world)
    _add_budgets(rng, world)
    _add_claims(Random(f"{seed}/claims"), world)
    if len(world.groups) == 1 and rng.random() < 0.5:
        _raise_minimum(rng, world)
    return world


def _node(rng: Random, name: str, n_racks: int) -> Json:
    offered = {"cpu": str(rng.randint(2, 8)), "memory": f"{rng.randint(4, 16)}Gi", "pods": "20"}
    labels = {HOST: name}
    if rng.random() < 0.9:
        rack = rng.randrange(n_racks)
        labels |= {RACK: f"rack-{rack}", BLOCK: f"block-{rack // 2}"}
    conditions = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {
            "capacity": dict(offered), "allocatable": dict(offered), "conditions": conditions,
        },
    }  # fmt: skip


def _pod(rng: Random, name: str, priority: str, world: World, group: str = "") -> Json:
    """A pod that likes no two nodes as much."""
    nodes = [one["metadata"]["name"] for one in world.nodes]
    rng.shuffle(nodes)
    liked = [
        {
            "weight": i,
            "preference": {"matchExpressions": [{"key": HOST, "operator": "In", "values": [node]}]},
        }
        for i, node in enumerate(nodes, 1)
    ]
    requests = {"cpu": rng.choice(["500m", "1", "1", "2", "3"]), "memory": rng.choice(["512Mi", "1Gi", "2Gi"])}  # fmt: skip
    spec: Json = {
        "schedulerName": SCHEDULER,
        "containers": [{"name": "c", "image": "none", "resources": {"requests": requests}}],
        "affinity": {
            "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": liked},
        },
    }
    if priority:
        spec["priorityClassName"] = priority
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    meta = {"name": name, "namespace": NAMESPACE, "labels": {"app": rng.choice(["web", "db"])}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def _make_group(name: str, priority: str, minimum: int, *, parent: str = "") -> Json:
    policy: Json = {"gang": {"minCount": minimum}} if minimum else {"basic": {}}
    spec: Json = {"schedulingPolicy": policy} | _rank(priority)
    if parent:
        spec["parentCompositePodGroupName"] = parent
        spec["workloadRef"] = dict(_REFERENCE)
    meta = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": _GROUP, "kind": "PodGroup", "metadata": meta, "spec": spec}


def _rank(priority: str) -> Json:
    """The fields of a group of a class; the API server wants the policy of the class to be named."""
    fields = {"priorityClassName": priority} if priority else {}
    return fields | ({"preemptionPolicy": "Never"} if priority == "peaceful" else {})


def _constrain(group: Json, key: str) -> None:
    group["spec"]["schedulingConstraints"] = {"topology": [{"key": key}]}


# Those that run.


def _add_running(rng: Random, world: GroupWorld) -> None:
    left = {one["metadata"]["name"]: _Left(one) for one in world.nodes}
    groups = []
    for i in range(rng.choice([0, 0, 1, 2])):
        priority = rng.choice(_PRIORITIES)
        made = _make_group(f"old-{i}", priority, rng.choice([0, 1, 2]))
        if rng.random() < 0.6:
            made["spec"]["disruptionMode"] = {"all": {}}
        world.others.append(made)
        groups.append((f"old-{i}", priority))
    for i in range(rng.randint(0, 3 * len(world.nodes))):
        group, priority = "", rng.choice(_PRIORITIES)
        if groups and rng.random() < 0.5:
            group, priority = rng.choice(groups)
        if group and rng.random() < 0.1:
            priority = rng.choice(_PRIORITIES)
        running = _pod(rng, f"running-{i:02}", priority, world, group)
        node = rng.choice(list(left))
        if left[node].take(running):
            running["spec"]["nodeName"] = node
            start = f"2026-01-01T00:{rng.randrange(60):02}:{i:02}Z"
            running["status"] = {"phase": "Running", "startTime": start}
            world.pods.append(running)


class _Left:
    """How many CPUs of a node are left, in thousandths."""

    def __init__(self, node: Json) -> None:
        self._cpu = int(node["status"]["allocatable"]["cpu"]) * 1000

    def take(self, pod: Json) -> bool:
        asked = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
        milli = int(asked[:-1]) if asked.endswith("m") else int(asked) * 1000
        if milli > self._cpu:
            return False
        self._cpu -= milli
        return True


def _add_budgets(rng: Random, world: GroupWorld) -> None:
    for i in range(rng.choice([0, 0, 1, 2])):
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"budget-{i}", "namespace": NAMESPACE},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": rng.choice(["web", "db"])}}},
            "status": {
                "disruptionsAllowed": rng.choice([0, 1, 2]), "currentHealthy": 3, "desiredHealthy": 1,
                "expectedPods": 3, "observedGeneration": 1,
            },
        }  # fmt: skip
        world.others.append(budget)


# Those that come.


def _choose_priority(rng: Random) -> str:
    return "peaceful" if rng.random() < 0.1 else rng.choice(_PRIORITIES)


def _add_group(rng: Random, world: GroupWorld) -> None:
    priority = _choose_priority(rng)
    n_pods = rng.randint(1, 7)
    minimum = rng.choice([0, 1, n_pods // 2, n_pods, n_pods, n_pods + (rng.random() < 0.2)])
    made = _make_group("new", priority, minimum)
    if rng.random() < 0.5:
        _constrain(made, RACK if rng.random() < 0.9 else "nowhere")
    world.groups = [made]
    world.incoming = [_pod(rng, f"new-{i}", priority, world, "new") for i in range(n_pods)]
    if rng.random() < 0.2:
        # It has come before, and some of its pods run.
        for one in world.incoming[: rng.randint(0, n_pods - 1)]:
            one["spec"]["nodeName"] = rng.choice(world.nodes)["metadata"]["name"]
            world.pods.append(one)
        world.incoming = [one for one in world.incoming if "nodeName" not in one["spec"]]
        if rng.random() < 0.8:
            _bring_together(world)
    if minimum <= n_pods:
        # Of a gang that is not complete kube-scheduler says nothing, and Evenkeel what is wrong.
        _make_mistakes(rng, world)


def _raise_minimum(rng: Random, world: GroupWorld) -> None:
    """Let more pods of a gang come, and its minimum rise with them, or by one more than all pods are."""
    gang = world.groups[0]["spec"]["schedulingPolicy"].get("gang")
    if gang is None:
        return
    n_late = rng.randint(1, 3)
    n_pods = len(world.incoming) + len(_list_running_members(world)) + n_late
    world.raised = rng.randint(gang["minCount"] + 1, max(n_pods, gang["minCount"] + 1))
    world.raised += rng.random() < 0.1
    priority = world.groups[0]["spec"].get("priorityClassName", "")
    world.late = [_pod(rng, f"late-{i}", priority, world, "new") for i in range(n_late)]


def _list_running_members(world: GroupWorld) -> list[Json]:
    return [one for one in world.pods if one["metadata"]["name"].startswith("new-")]


def _bring_together(world: GroupWorld) -> None:
    """Give all pods of the group that run the node of the first of them."""
    there = _list_running_members(world)
    for one in there[1:]:
        one["spec"]["nodeName"] = there[0]["spec"]["nodeName"]


def _make_mistakes(rng: Random, world: GroupWorld) -> None:
    if rng.random() < 0.05:
        rng.choice(world.incoming)["spec"]["schedulerName"] = OTHER_SCHEDULER
    if rng.random() < 0.05:
        rng.choice(world.incoming)["spec"]["priorityClassName"] = rng.choice(
            ["low", "high", "peaceful"]
        )


def _add_pod(rng: Random, world: GroupWorld) -> None:
    """Let a pod come that needs much room; groups that run may have a group around them."""
    running = [one for one in world.others if one["kind"] == "PodGroup"]
    if running and rng.random() < 0.5:
        world.others.append(_make_composite("old", rng.choice(_PRIORITIES), 0))
        if rng.random() < 0.5:
            world.others[-1]["spec"]["disruptionMode"] = {"all": {}}
        for one in running:
            one["spec"] |= {"parentCompositePodGroupName": "old", "workloadRef": dict(_REFERENCE)}
    pod = _pod(rng, "new", rng.choice(["middle", "high", "high", "high"]), world)
    most = max(int(one["status"]["allocatable"]["cpu"]) for one in world.nodes)
    requests = pod["spec"]["containers"][0]["resources"]["requests"]
    requests["cpu"] = str(max(1, most - rng.choice([0, 0, 1, 2])))
    if rng.random() < 0.4:
        _keep_apart(rng, pod)
    world.incoming = [pod]


def _keep_apart(rng: Random, pod: Json) -> None:
    """Let a pod keep away from others, wherever in its domain they run."""
    selector = {"matchLabels": {"app": rng.choice(["web", "db"])}}
    key = rng.choice([HOST, RACK, RACK])
    if rng.random() < 0.5:
        term = {"topologyKey": key, "labelSelector": selector}
        terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        pod["spec"]["affinity"]["podAntiAffinity"] = terms
        return
    pod["metadata"]["labels"] = dict(selector["matchLabels"])
    pod["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": rng.randint(1, 2),
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": selector,
        }
    ]


def _add_claims(rng: Random, world: GroupWorld) -> None:
    """Let nodes have devices, and pods that come have claims of their own."""
    if rng.random() >= _CLAIMING:
        return
    supply.add_classes(rng, world)
    supply.add_plain(rng, world)
    for pod in world.incoming:
        if rng.random() < 0.8:
            name = f"of-{pod['metadata']['name']}"
            exactly = {
                "deviceClassName": rng.choice(["any", "class-a"]),
                "count": rng.randint(1, 2),
            }
            devices = {"requests": [{"name": "r", "exactly": exactly}]}
            world.others.append(claiming.make_claim(NAMESPACE, name, devices))
            pod["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimName": name}]


def _make_composite(name: str, priority: str, minimum: int) -> Json:
    policy: Json = {"gang": {"minGroupCount": minimum}} if minimum else {"basic": {}}
    spec: Json = {"schedulingPolicy": policy, "workloadRef": dict(_REFERENCE)} | _rank(priority)
    meta = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": _COMPOSITE, "kind": "CompositePodGroup", "metadata": meta, "spec": spec}


def _add_composite(rng: Random, world: GroupWorld) -> None:
    priority = _choose_priority(rng)
    n_leaves = rng.randint(1, 3)
    minimum = rng.choice([0, 1, n_leaves, n_leaves])
    root = _make_composite("root", priority, minimum)
    if rng.random() < 0.5:
        _constrain(root, BLOCK)
    for i in range(n_leaves):
        n_pods = rng.randint(1, 3)
        leaf = _make_group(f"leaf-{i}", priority, rng.choice([0, 1, n_pods, n_pods]), parent="root")
        if rng.random() < 0.5:
            _constrain(leaf, RACK)
        world.groups.append(leaf)
        world.incoming += [
            _pod(rng, f"new-{i}-{j}", priority, world, f"leaf-{i}") for j in range(n_pods)
        ]
    world.groups.append(root)
