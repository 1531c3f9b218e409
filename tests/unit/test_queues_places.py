"""Quota is given together with a place: nothing is admitted that nobody can place, and nobody goes in vain."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from scheduler.api.queues import configuration
from scheduler.config import Config
from scheduler.simulate.run import schedule

API = "kueue.x-k8s.io/v1beta2"
Json = dict[str, Any]


def make_node(name: str, rack: str, gpus: int = 4, pool: str = "gpu") -> Json:
    labels = {"kubernetes.io/hostname": name, "rack": rack, "pool": pool}
    offered = {"cpu": "16", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": f"{gpus}"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": offered},
    }


def make_flavor(name: str, pool: str, topology: str = "") -> Json:
    spec: Json = {"nodeLabels": {"pool": pool}}
    if topology:
        spec["topologyName"] = topology
    return {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec}


def make_queue(name: str, gpus: dict[str, int], **more: Any) -> list[Json]:
    flavors = [
        {"name": flavor, "resources": [{"name": "nvidia.com/gpu", "nominalQuota": n}]}
        for flavor, n in gpus.items()
    ]
    spec = {
        "cohortName": "all",
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": flavors}],
        "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
        **more,
    }
    return [
        {"apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec},
        {
            "apiVersion": API,
            "kind": "LocalQueue",
            "metadata": {"name": name, "namespace": "team"},
            "spec": {"clusterQueue": name},
        },
    ]


def make_workload(name: str, queue: str, n_pods: int, gpus: int, **more: Any) -> Json:
    requests = {"nvidia.com/gpu": f"{gpus}"}
    template = {
        "spec": {
            "schedulerName": more.get("scheduler", "evenkeel"),
            "containers": [
                {"name": "main", "resources": {"requests": requests, "limits": requests}}
            ],
        }
    }
    pod_set: Json = {"name": "main", "count": n_pods, "template": template}
    if "required" in more:
        pod_set["topologyRequest"] = {"required": more["required"]}
    return {
        "apiVersion": API,
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": "team",
            "creationTimestamp": f"2026-01-01T00:00:{more.get('second', 0):02}Z",
        },
        "spec": {"queueName": queue, "priority": more.get("priority", 0), "podSets": [pod_set]},
    }


RACKS = {
    "apiVersion": "kueue.x-k8s.io/v1beta1",
    "kind": "Topology",
    "metadata": {"name": "racks"},
    "spec": {"levels": [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]},
}
FOUR_NODES = [make_node(f"n{i}", f"r{i // 2}") for i in range(4)]


def run(*objects: Json) -> dict[str, Json]:
    result = schedule(objects, strict=True)
    return {row["name"]: row for row in result["workloads"]}


def test_a_gang_with_quota_waits_until_there_is_a_place_for_all_of_it() -> None:
    rows = run(
        *FOUR_NODES,
        RACKS,
        make_flavor("gpus", "gpu", "racks"),
        *make_queue("a", {"gpus": 100}),
        make_workload("fits", "a", 2, 4, required="rack"),
        make_workload("three-nodes", "a", 3, 4, required="rack", second=1),
        make_workload("fits-too", "a", 2, 4, required="rack", second=2),
    )
    assert rows["fits"]["state"] == rows["fits-too"]["state"] == "admitted"
    assert rows["three-nodes"]["state"] == "waits"
    assert rows["three-nodes"]["reason"] == "TopologyPlacementFailed"
    assert "no place" in rows["three-nodes"]["message"]
    assert not rows["three-nodes"]["uses"]


def test_a_template_with_limits_alone_needs_a_place_for_them() -> None:
    """Nobody fills the requests of a template in: the API server does that for pods."""
    large = make_workload("large", "a", 3, 3)
    for one in large["spec"]["podSets"][0]["template"]["spec"]["containers"]:
        del one["resources"]["requests"]
    nodes = [make_node("n0", "r0"), make_node("n1", "r1")]
    rows = run(*nodes, make_flavor("gpus", "gpu"), *make_queue("a", {"gpus": 100}), large)
    assert rows["large"]["reason"] == "TopologyPlacementFailed"


def test_the_next_flavor_is_tried_where_the_first_one_has_quota_but_no_place() -> None:
    """Kueue stays with the first flavor that has quota."""
    rows = run(
        make_node("small", "r0", 2, "old"),
        make_node("large", "r1", 8, "new"),
        make_flavor("old", "old"),
        make_flavor("new", "new"),
        *make_queue("a", {"old": 10, "new": 10}),
        make_workload("large", "a", 1, 4),
        make_workload("small", "a", 1, 2, second=1),
    )
    assert rows["large"]["podSets"] == [
        {"name": "main", "count": 1, "flavors": {"nvidia.com/gpu": "new"}}
    ]
    assert rows["small"]["podSets"][0]["flavors"] == {"nvidia.com/gpu": "old"}


def test_pods_of_other_schedulers_need_quota_only() -> None:
    rows = run(
        make_flavor("gpus", "gpu"),
        *make_queue("a", {"gpus": 4}),
        make_workload("theirs", "a", 4, 1, scheduler="default-scheduler"),
        make_workload("more", "a", 1, 1, scheduler="default-scheduler", second=1),
    )
    assert rows["theirs"]["state"] == "admitted"
    assert rows["more"]["reason"] == "WaitingForQuota"


def make_running(
    name: str, queue: str, node: str, flavor: str, second: int, *, gpus: int = 4, priority: int = 0
) -> list[Json]:
    """Make a workload of one pod that has quota, and its pod on a node."""
    workload = make_workload(name, queue, 1, gpus, second=second, priority=priority)
    since = f"2026-01-01T01:00:{second:02}Z"
    assigned = {
        "name": "main",
        "count": 1,
        "flavors": {"nvidia.com/gpu": flavor},
        "resourceUsage": {"nvidia.com/gpu": f"{gpus}"},
    }
    workload["status"] = {
        "admission": {"clusterQueue": queue, "podSetAssignments": [assigned]},
        "conditions": [
            {"type": kind, "status": "True", "reason": kind, "lastTransitionTime": since}
            for kind in ("QuotaReserved", "Admitted")
        ],
    }
    template = workload["spec"]["podSets"][0]["template"]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-pod",
            "namespace": "team",
            "uid": f"uid-{name}",
            "annotations": {"kueue.x-k8s.io/workload": name},
        },
        "spec": {**template["spec"], "nodeName": node},
        "status": {"phase": "Running"},
    }
    return [workload, pod]


@pytest.mark.parametrize("is_fair", [False, True], ids=["by the tree", "by shares"])
def test_those_give_quota_back_whose_going_makes_one_place(is_fair: bool) -> None:
    """kueue#10815: by priority and time two would go whose nodes are in two racks, and nothing would be gained."""
    settings = configuration.read_settings({"fairSharing": {}} if is_fair else {})
    nodes = {"b0": "n0", "b1": "n2", "b2": "n1", "b3": "n3"}
    borrowers = [
        one
        for i, (name, node) in enumerate(nodes.items())
        for one in make_running(name, "b", node, "gpus", i)
    ]
    result = schedule(
        [
            *FOUR_NODES,
            RACKS,
            make_flavor("gpus", "gpu", "racks"),
            *make_queue("a", {"gpus": 8}),
            *make_queue("b", {"gpus": 8}),
            *borrowers,
            make_workload("gang", "a", 2, 4, required="rack", second=9),
        ],
        config=Config(queues=settings),
        strict=True,
    )
    rows = {row["name"]: row for row in result["workloads"]}
    gone = [name for name, row in rows.items() if row["preempted"]]
    assert len(gone) == 2
    assert {nodes[name] for name in gone} in ({"n0", "n1"}, {"n2", "n3"})
    assert rows["gang"]["state"] == "admitted"


@pytest.mark.parametrize("is_reclaimed", [False, True])
@pytest.mark.parametrize("is_there", [False, True])
def test_no_place_is_kept_for_a_pod_that_has_succeeded(is_reclaimed: bool, is_there: bool) -> None:
    """Of a workload with quota: neither while its pod is there, nor once its status says so."""
    if not is_there and not is_reclaimed:
        # Nobody knows of it: a controller may be about to make the pod.
        return
    workload, pod = make_running("runs", "a", "n0", "gpus", 0)
    workload["spec"]["podSets"][0]["count"] = 2
    assigned = workload["status"]["admission"]["podSetAssignments"][0]
    assigned |= {"count": 2, "resourceUsage": {"nvidia.com/gpu": "8"}}
    if is_reclaimed:
        workload["status"]["reclaimablePods"] = [{"name": "main", "count": 1}]
    ended = copy.deepcopy(pod)
    ended["metadata"] |= {"name": "ended", "uid": "uid-ended"}
    ended["spec"]["nodeName"] = "n1"
    ended["status"] = {"phase": "Succeeded"}
    rows = run(
        *FOUR_NODES[:2],
        make_flavor("gpus", "gpu"),
        *make_queue("a", {"gpus": 12}),
        workload,
        pod,
        *([ended] if is_there else []),
        make_workload("next", "a", 1, 4, second=9),
    )
    assert rows["next"]["state"] == "admitted"


@pytest.mark.parametrize(("least", "state"), [(2, "waits"), (1, "admitted")])
def test_one_that_could_do_with_fewer_pods_starts_with_as_many_as_have_a_place(
    least: int, state: str
) -> None:
    """There is quota for all of its pods, and a place for one. It holds up nobody behind it."""
    large = make_workload("large", "a", 3, 4)
    large["spec"]["podSets"][0]["minCount"] = least
    behind = [make_workload(f"w{i}", "a", 1, 1, second=1 + i) for i in range(2)]
    rows = run(make_node("n0", "r0"), make_flavor("gpus", "gpu"), *make_queue("a", {"gpus": 12}), large, *behind)  # fmt: skip
    assert rows["large"]["state"] == state
    if state == "admitted":
        assert rows["large"]["podSets"][0]["count"] == 1
    else:
        assert rows["large"]["reason"] == "TopologyPlacementFailed"
    assert {row["state"] for name, row in rows.items() if name != "large"} == (
        {"admitted"} if state == "waits" else {"waits"}
    )


def test_nodes_are_not_kept_from_others_for_one_that_has_quota_and_no_place() -> None:
    """Kueue keeps them until the end of its cycle; quota is set aside, and nodes are what is left for others."""
    keeps = {"reclaimWithinCohort": "LowerPriority", "withinClusterQueue": "LowerPriority"}
    rows = run(
        *FOUR_NODES[:1],
        make_flavor("gpus", "gpu"),
        *make_queue("a", {"gpus": 8}, preemption=keeps),
        *make_queue("b", {"gpus": 4}),
        *make_running("runs", "a", "n0", "gpus", 0, gpus=1, priority=2),
        make_workload("large", "a", 1, 4, second=1, priority=2),
        make_workload("small", "b", 1, 3, second=2, priority=1),
    )
    assert rows["large"]["reason"] == "TopologyPlacementFailed"
    assert rows["small"]["state"] == "admitted"


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (
            {
                "required": "kubernetes.io/hostname",
                "podSetSliceRequiredTopology": "rack",
                "podSetSliceSize": 3,
            },
            "slices must be at finer levels than what they lie in",
        ),
        (
            {"required": "rack", "podSetSliceRequiredTopology": "rack", "podSetSliceSize": 2},
            "its 3 pods cannot be cut in slices of 2",
        ),
    ],
)
@pytest.mark.parametrize("quota", [12, 4], ids=["with quota", "with the quota of others"])
def test_it_is_said_why_no_nodes_would_ever_do(asked: Json, problem: str, quota: int) -> None:
    wants = make_workload("wants", "a", 3, 4, second=9)
    wants["spec"]["podSets"][0]["topologyRequest"] = asked
    lent = [one for i in range(2) for one in make_running(f"b{i}", "b", f"n{i}", "gpus", i)]
    rows = run(
        *FOUR_NODES,
        RACKS,
        make_flavor("gpus", "gpu", "racks"),
        *make_queue("a", {"gpus": 12}),
        *make_queue("b", {"gpus": quota - 4}),
        *(lent if quota == 4 else []),
        wants,
    )
    assert rows["wants"]["state"] == "waits"
    assert rows["wants"]["message"].endswith(f"no place for all its pods: pod set main: {problem}")
