"""Groups of Kubernetes in a profile for kube-scheduler's rules; what they say is what kube-scheduler 1.37.1 said."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler import config
from scheduler.simulate import schedule

Json = dict[str, Any]
_FILE = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "default-scheduler"}],
}


def node(name: str, cpu: str, rack: str = "") -> Json:
    labels = {"kubernetes.io/hostname": name} | ({"rack": rack} if rack else {})
    status = {"allocatable": {"cpu": cpu, "memory": "32Gi", "pods": "20"}}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status,
    }  # fmt: skip


def pod(name: str, cpu: str, *, on: str = "", group: str = "", priority: int = 0, app: str = "") -> Json:  # fmt: skip
    spec: Json = {
        "schedulerName": "default-scheduler",
        "priority": priority,
        "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
    }
    if on:
        spec["nodeName"] = on
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    meta = {
        "name": name,
        "namespace": "default",
        "uid": f"uid of {name}",
        "labels": {"app": app or name},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def group(name: str, minimum: int, priority: int = 0, **more: Any) -> Json:
    spec = {"schedulingPolicy": {"gang": {"minCount": minimum}}, "priority": priority, **more}
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def budget(app: str, allowed: int) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed},
    }


def ask(objects: list[Json], *, is_exact: bool = True) -> dict[str, Json]:
    """The row of each pod that waited, by name."""
    settings = config.parse_config(_FILE) if is_exact else config.Config()
    return {row["name"]: row for row in schedule(objects, config=settings)["pods"]}


def list_victims(rows: dict[str, Json]) -> set[str]:
    return {victim["name"] for row in rows.values() for victim in row["victims"]}


@pytest.mark.parametrize("is_exact", [False, True])
def test_a_pod_under_a_budget_stays_and_a_more_important_one_goes(is_exact: bool) -> None:
    there = [
        node("n0", "4"),
        pod("spared", "2", on="n0", priority=1),
        pod("goes", "2", on="n0", priority=2),
        budget("spared", 0),
        group("urgent", 1, 100),
        pod("p0", "2", group="urgent", priority=100),
    ]
    assert list_victims(ask(there, is_exact=is_exact)) == {"goes"}


@pytest.mark.parametrize("is_exact", [False, True])
def test_the_only_pod_that_wants_to_be_apart_from_a_group_goes(is_exact: bool) -> None:
    """There is room enough, and no other pod has such a rule."""
    term = {"labelSelector": {"matchLabels": {"app": "p0"}}, "topologyKey": "rack"}
    apart = pod("apart", "1", on="n0")
    apart["spec"]["affinity"] = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    }
    there = [
        node("n0", "2", "a"),
        node("n1", "2", "a"),
        apart,
        pod("beside", "1", on="n1"),
        group("urgent", 1, 100),
        pod("p0", "1", group="urgent", priority=100),
    ]
    assert list_victims(ask(there, is_exact=is_exact)) == {"apart"}


def test_extra_members_are_tried_again_at_once_and_room_is_made_for_them() -> None:
    there = [
        node("n0", "2"),
        node("n1", "2"),
        pod("low", "2", on="n1"),
        group("urgent", 1, 100),
        *(pod(f"p{i}", "2", group="urgent", priority=100) for i in range(2)),
    ]
    rows = ask(there)
    assert (rows["p0"]["node"], rows["p1"]["node"]) == ("n0", None)
    assert (rows["p1"]["nominated"], list_victims(rows)) == ("n1", {"low"})
    assert rows["p1"]["unschedulable"] == "0/2 nodes are available: 2 Insufficient cpu."


def test_a_group_that_goes_as_a_whole_has_the_priority_of_its_object() -> None:
    """Its pods are all below, and one of them would be enough."""
    there = [
        node("n0", "2"),
        node("n1", "2"),
        group("old", 1, 50, disruptionMode={"all": {}}),
        *(pod(f"old-{i}", "2", on=f"n{i}", group="old", priority=0) for i in range(2)),
        group("urgent", 1, 100),
        pod("p0", "2", group="urgent", priority=100),
    ]
    assert list_victims(ask(there)) == {"old-0", "old-1"}
    there[2]["spec"]["priority"] = 100
    assert list_victims(ask(there)) == set()


def test_what_is_said_where_all_that_may_go_is_not_enough() -> None:
    there = [
        node("n0", "2"),
        pod("low", "1", on="n0", priority=-1),
        group("large", 2),
        *(pod(f"p{i}", "2", group="large") for i in range(2)),
    ]
    general = "pod group is unschedulable, "
    status = (
        general
        + "0/1 placements are available, first placement status: minCount (2) cannot be satisfied: "
    )
    rows = ask(there)
    assert rows["p0"]["unschedulable"] == "0/1 nodes are available: 1 Insufficient cpu."
    assert rows["p1"]["unschedulable"] == f"{status}0 scheduled, 1 remaining"
    # Of two that fit one by one, one fits.
    there[0] = node("n0", "3")
    first = f"{status}1 scheduled, 0 remaining"
    claims = "deallocation and deletion of ResourceClaims completed"
    assert (
        ask(there)["p0"]["unschedulable"]
        == f"{general}{first}, {claims}, pod group preemption: {first}"
    )


def test_members_in_two_domains_are_refused() -> None:
    there = [
        node("n0", "2", "a"),
        node("n1", "2", "b"),
        group("wide", 1, schedulingConstraints={"topology": [{"key": "rack"}]}),
        *(pod(f"old-{i}", "1", on=f"n{i}", group="wide") for i in range(2)),
        pod("p0", "1", group="wide"),
    ]
    text = "cannot determine domain for already scheduled pods: more than 1 domain found for pod group: a, b"
    assert ask(there)["p0"]["unschedulable"] == text


def test_members_of_another_policy_are_refused() -> None:
    peaceful = pod("p0", "1", group="new")
    peaceful["spec"]["preemptionPolicy"] = "Never"
    there = [node("n0", "2"), group("new", 1, preemptionPolicy="PreemptLowerPriority"), peaceful]
    row = ask(there)["p0"]
    assert row["node"] is None
    assert row["message"].endswith(
        "all pods in a single pod group should have the same preemption policy as the pod group's "
        "preemption policy, got Never and PreemptLowerPriority"
    )
