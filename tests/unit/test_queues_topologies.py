"""Pods that are placed by a topology have one flavor with a topology, as in Kueue: no more, and no less.

Source: Kueue (2026-08), ``TestWorkloadsTopologyRequests_ErrorBranches`` and ``TestAssignFlavors_LeaderWorkerSetTASFlavor``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.unit.test_queues_places import (
    RACKS,
    make_flavor,
    make_node,
    make_queue,
    make_workload,
    run,
)

Json = dict[str, Any]
GPU = "nvidia.com/gpu"
ON_ONE_NODE = {"required": "kubernetes.io/hostname"}


def make_pod_set(name: str, request: Mapping[str, str], **topology: str) -> Json:
    made: Json = make_workload("w", "a", 1, 1)["spec"]["podSets"][0]
    made["template"]["spec"]["containers"][0]["resources"] = {"requests": request, "limits": request}  # fmt: skip
    return made | {"name": name, "topologyRequest": {**ON_ONE_NODE, **topology}}


def admit(*sets: Json, flavors: Mapping[str, str], topology: str = "racks") -> Json:
    """Return the row of a workload in a queue that has resources, each in a flavor of its own."""
    made = make_queue("a", {})
    made[0]["spec"]["resourceGroups"] = [
        {
            "coveredResources": [resource],
            "flavors": [
                {"name": flavor, "resources": [{"name": resource, "nominalQuota": "64Gi"}]}
            ],
        }
        for resource, flavor in flavors.items()
    ]
    workload = make_workload("w", "a", 1, 1)
    workload["spec"]["podSets"] = list(sets)
    nodes = [make_node("n0", "r0", 4, pool="gpu"), make_node("m0", "r0", 0, pool="other")]
    found = [make_flavor(name, "gpu", topology) for name in dict.fromkeys(flavors.values())]
    return run(*nodes, RACKS, *found, *made, workload)["w"]


def list_flavors(row: Json) -> dict[str, dict[str, str]]:
    return {one["name"]: one["flavors"] for one in row["podSets"]}


def test_a_pod_set_has_no_two_flavors_with_a_topology() -> None:
    both = {"cpu": "1", "memory": "1Mi"}
    row = admit(make_pod_set("main", both), flavors={"cpu": "g1", "memory": "g2"})
    assert (row["state"], row["reason"]) == ("waits", "NoMatchingFlavor")
    assert "more than one TAS flavor assigned: g1, g2" in row["message"]
    row = admit(make_pod_set("main", both), flavors={"cpu": "g1", "memory": "g1"})
    assert row["state"] == "admitted"


def test_one_that_requests_nothing_goes_where_the_others_of_its_group_go() -> None:
    row = admit(
        make_pod_set("leader", {}, podSetGroupName="g"),
        make_pod_set("worker", {GPU: "1"}, podSetGroupName="g"),
        flavors={GPU: "gpus", "memory": "more"},
    )
    assert row["state"] == "admitted"
    assert list_flavors(row) == {"leader": {GPU: "gpus"}, "worker": {GPU: "gpus"}}
    assert row["uses"] == [{"flavor": "gpus", "resource": GPU, "amount": "1"}]


def test_one_that_requests_nothing_cannot_go_where_others_go_in_two_flavors() -> None:
    row = admit(
        make_pod_set("leader", {}, podSetGroupName="g"),
        make_pod_set("w0", {"cpu": "1"}, podSetGroupName="g"),
        make_pod_set("w1", {"memory": "1Mi"}, podSetGroupName="g"),
        flavors={"cpu": "g1", "memory": "g2"},
    )
    assert (row["state"], row["reason"]) == ("waits", "NoMatchingFlavor")
    assert "pod set leader: more than one TAS flavor assigned: g1, g2" in row["message"]


@pytest.mark.parametrize("is_asked", [True, False], ids=["asked", "implied"])
def test_one_that_requests_nothing_and_is_in_no_group_gets_no_flavor(is_asked: bool) -> None:
    leader, worker = make_pod_set("leader", {}), make_pod_set("worker", {GPU: "1"})
    if not is_asked:
        # All flavors of the queue have a topology.
        del leader["topologyRequest"], worker["topologyRequest"]
    row = admit(leader, worker, flavors={GPU: "gpus"})
    assert (row["state"], row["reason"]) == ("waits", "NoMatchingFlavor")
    assert "pod set leader: no TAS flavor assigned" in row["message"]


def test_without_topologies_several_flavors_or_none_will_do() -> None:
    leader, worker = make_pod_set("leader", {}), make_pod_set("worker", {"cpu": "1", GPU: "1"})
    del leader["topologyRequest"], worker["topologyRequest"]
    row = admit(leader, worker, flavors={GPU: "g1", "cpu": "g2"}, topology="")
    assert row["state"] == "admitted"
    assert list_flavors(row) == {"leader": {}, "worker": {GPU: "g1", "cpu": "g2"}}


@pytest.mark.parametrize("topology", [ON_ONE_NODE, {"unconstrained": True}, None])
def test_a_flavor_without_node_labels_has_the_nodes_of_its_topology(topology: Json | None) -> None:
    """Kueue's own tables of cases have such flavors. A node without a rack is none of its topology."""
    bare = make_node("a0", "", 8)
    del bare["metadata"]["labels"]["rack"]
    flavor = make_flavor("gpus", "gpu", "racks")
    del flavor["spec"]["nodeLabels"]
    fits, waits = make_workload("fits", "a", 1, 4), make_workload("waits", "a", 1, 4, second=1)
    for one in (fits, waits) if topology is not None else ():
        one["spec"]["podSets"][0]["topologyRequest"] = topology
    world = [bare, make_node("n0", "r0", 4), RACKS, flavor, *make_queue("a", {"gpus": 16})]
    rows = run(*world, fits, waits)
    assert rows["fits"]["state"] == "admitted"
    assert (rows["waits"]["state"], rows["waits"]["reason"]) == ("waits", "TopologyPlacementFailed")


def test_nodes_of_a_topology_are_chosen_as_the_pods_require_it() -> None:
    """Each of two terms of a pod's node affinity is enough, and the first one suits a node without a rack."""
    bare = make_node("a0", "", 8)
    del bare["metadata"]["labels"]["rack"]
    suits = [
        {
            "matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": [name]}
            ]
        }
        for name in ("a0", "n1")
    ]
    asker = make_workload("asker", "a", 2, 4)
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": suits}}
    asker["spec"]["podSets"][0]["template"]["spec"]["affinity"] = {"nodeAffinity": required}
    flavor = make_flavor("gpus", "gpu", "racks")
    world = [bare, make_node("n0", "r0", 8), RACKS, flavor, *make_queue("a", {"gpus": 16}), asker]
    assert run(*world, make_node("n1", "r0", 4))["asker"]["state"] == "waits"
    assert run(*world, make_node("n1", "r0", 8))["asker"]["state"] == "admitted"
