"""Pods that wait in a queue by themselves or as a group: their workload, their start, their stop and their end."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from scheduler.api import names
from scheduler.api.jobs import plain_pods
from scheduler.errors import BadInput
from scheduler.kube.jobs.deeds import (
    ChangePods,
    DropWorkload,
    MakeWorkload,
    StopPods,
    WriteWorkload,
)
from scheduler.kube.jobs.pod_deciding import find_deed
from scheduler.kube.jobs.pod_scene import PodScene
from scheduler.kube.queues import conditions
from tests.unit.jsonpatch import apply_patch
from tests.unit.small_jobs import merge

Json = dict[str, Any]
_SPOT = {"nodeLabels": {"pool": "spot"}, "tolerations": [{"key": "spot", "operator": "Exists"}]}
_GATE = {"name": names.KUEUE_GATE}


def make_pod(
    name: str, *, group: str = "", total: int = 0, cpu: str = "1", gated: bool = True
) -> Json:
    labels = {names.KUEUE_QUEUE: "q", names.KUEUE_MANAGED: "true"}
    texts = {}
    if group:
        labels[names.KUEUE_GROUP] = group
        texts[names.KUEUE_TOTAL] = str(total)
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    meta = {
        "name": name, "namespace": "n", "uid": f"uid-{name}", "labels": labels, "annotations": texts,
        "finalizers": [names.KUEUE_MANAGED],
    }  # fmt: skip
    spec: Json = {"containers": [container], "schedulerName": "evenkeel"}
    if gated:
        spec["schedulingGates"] = [_GATE, {"name": "mine"}]
    return {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}}


class Pods:
    """Some pods, their workload, and what an API server does with them."""

    def __init__(self, *pods: Json, group: str = "") -> None:
        self.pods, self.group, self.workloads = list(pods), group, list[Json]()

    def settle(self) -> list[Any]:
        done: list[Any] = []
        while True:
            scene = PodScene(
                namespace="n", group=self.group, pods=self.pods, workloads=self.workloads,
                flavors={"spot": _SPOT}, now=1e9, schedulers=("evenkeel",),
            )  # fmt: skip
            deed = find_deed(scene)
            if deed is None:
                return done
            done.append(deed)
            assert len(done) < 12, done
            self._carry_out(deed)

    def _carry_out(self, deed: Any) -> None:
        match deed:
            case MakeWorkload(body):
                self.workloads.append(copy.deepcopy(body))
            case WriteWorkload(workload, patch):
                self.workloads[self.workloads.index(workload)] = merge(workload, patch)
            case DropWorkload(workload, may_stay):
                workload["metadata"]["finalizers"] = []
                if not may_stay or "deletionTimestamp" in workload["metadata"]:
                    self.workloads.remove(workload)
            case ChangePods(changed):
                for pod, operations in changed:
                    self.pods[self.pods.index(pod)] = apply_patch(pod, operations)
            case StopPods(stopped):
                for pod in stopped:
                    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    @property
    def workload(self) -> Json:
        (found,) = self.workloads
        return found

    def admit(self) -> None:
        changing = conditions.Conditions((), 1, 1e9)
        for kind in ("QuotaReserved", "Admitted"):
            changing.set(kind, kind, "", is_true=True)
        given = [
            {"name": one["name"], "count": one["count"], "flavors": {"cpu": "spot"}}
            for one in self.workload["spec"]["podSets"]
        ]
        admission = {"clusterQueue": "all", "podSetAssignments": given}
        known = self.workload.get("status", {})
        self.workload["status"] = known | {"admission": admission, "conditions": changing.write()}

    def run(self, *names_of: str) -> None:
        for pod in self.pods:
            if not names_of or pod["metadata"]["name"] in names_of:
                pod["spec"]["nodeName"], pod["status"]["phase"] = "node", "Running"

    def end(self, name: str, phase: str = "Succeeded") -> None:
        (pod,) = (one for one in self.pods if one["metadata"]["name"] == name)
        pod["status"]["phase"] = phase

    def get_condition(self, kind: str) -> Json:
        found = self.workload["status"]["conditions"]
        return next((one for one in found if one["type"] == kind), {})


def test_a_pod_by_itself_waits_starts_and_ends() -> None:
    pods = Pods(make_pod("a"))
    assert [type(one) for one in pods.settle()] == [MakeWorkload]
    (pod_set,) = pods.workload["spec"]["podSets"]
    assert (pod_set["name"], pod_set["count"]) == ("main", 1)
    assert "schedulingGates" not in pod_set["template"]["spec"]
    assert pods.workload["metadata"]["ownerReferences"][0]["controller"]
    pods.admit()
    pods.settle()
    (pod,) = pods.pods
    # Gates of others are their affair.
    assert pod["spec"]["schedulingGates"] == [{"name": "mine"}]
    assert pod["spec"]["nodeSelector"] == {"pool": "spot"}
    assert pod["metadata"]["labels"][names.KUEUE_POD_SET] == "main"
    pods.run()
    assert pods.settle() == []
    pods.end("a", "Failed")
    pods.settle()
    assert pods.get_condition("Finished")["reason"] == "Failed"
    assert pods.pods[0]["metadata"]["finalizers"] == []
    assert pods.workload["metadata"]["finalizers"] == []


def test_an_evicted_pod_is_deleted_and_gives_its_quota_back() -> None:
    pods = Pods(make_pod("a"))
    pods.settle()
    pods.admit()
    pods.settle()
    pods.run()
    evicted = {"type": "Evicted", "status": "True", "reason": "Preempted", "message": "go"}
    pods.workload["status"]["conditions"].append(evicted)
    deeds = pods.settle()
    assert isinstance(deeds[0], StopPods)
    assert pods.pods[0]["metadata"]["deletionTimestamp"]
    assert "admission" not in pods.workload["status"]


def test_a_pod_of_ours_without_a_gate_waits_all_the_same() -> None:
    """The engine holds it; one of another scheduler has begun to run, and is deleted."""
    pods = Pods(make_pod("a", gated=False))
    pods.settle()
    assert pods.settle() == []
    other = make_pod("b", gated=False)
    other["spec"]["schedulerName"] = "default-scheduler"
    pods = Pods(other)
    assert [type(one) for one in pods.settle()] == [MakeWorkload, StopPods, ChangePods]


def _make_group(n: int, total: int = 3, **more: Any) -> Pods:
    made = [make_pod(f"p{i}", group="g", total=total, **more) for i in range(n)]
    return Pods(*made, group="g")


def test_a_group_waits_until_it_is_complete() -> None:
    pods = _make_group(2)
    assert pods.settle() == []
    pods.pods.append(make_pod("p2", group="g", total=3, cpu="2"))
    pods.settle()
    sets = pods.workload["spec"]["podSets"]
    assert sorted(one["count"] for one in sets) == [1, 2]
    meta = pods.workload["metadata"]
    assert meta["name"] == "g"
    assert meta["annotations"]["kueue.x-k8s.io/is-group-workload"] == "true"
    assert len(meta["ownerReferences"]) == 3
    assert not any(one.get("controller") for one in meta["ownerReferences"])


def test_a_fast_group_is_known_by_its_first_pod() -> None:
    pods = _make_group(1)
    pods.pods[0]["metadata"]["annotations"]["kueue.x-k8s.io/pod-group-fast-admission"] = "true"
    pods.settle()
    assert pods.workload["spec"]["podSets"][0]["count"] == 3


def test_a_workload_is_owned_by_pods_that_come_later_too() -> None:
    """Else it would be collected once the first ones are gone."""
    pods = _make_group(1)
    pods.pods[0]["metadata"]["annotations"][names.KUEUE_FAST] = "true"
    pods.settle()
    pods.admit()
    pods.settle()
    pods.pods.append(make_pod("p1", group="g", total=3))
    pods.settle()
    owners = pods.workload["metadata"]["ownerReferences"]
    assert [one["name"] for one in owners] == ["p0", "p1"]
    assert not any(one.get("controller") for one in owners)
    gates = [one["name"] for pod in pods.pods for one in pod["spec"]["schedulingGates"]]
    assert gates == ["mine", "mine"]
    assert pods.settle() == []


def test_pods_that_succeed_give_quota_back_though_they_are_gone_later() -> None:
    pods = _make_group(3)
    pods.settle()
    pods.admit()
    pods.settle()
    pods.run()
    pods.end("p0")
    pods.settle()
    (role,) = (one["name"] for one in pods.workload["spec"]["podSets"])
    assert pods.workload["status"]["reclaimablePods"] == [{"name": role, "count": 1}]
    # It is deleted, and stays until the group has ended.
    pods.pods[0]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert pods.settle() == []
    assert pods.pods[0]["metadata"]["finalizers"] == [names.KUEUE_MANAGED]
    pods.end("p1")
    pods.end("p2")
    pods.settle()
    assert pods.get_condition("Finished")["message"] == "Pods succeeded: 3/3."


def test_a_pod_that_fails_is_replaced() -> None:
    pods = _make_group(3)
    pods.settle()
    pods.admit()
    pods.settle()
    pods.run()
    pods.end("p0", "Failed")
    pods.settle()
    # Nobody counts the one that has failed any more.
    assert pods.pods[0]["metadata"]["finalizers"] == []
    pods.pods.append(make_pod("p3", group="g", total=3))
    pods.settle()
    assert names.KUEUE_GATE not in str(pods.pods[-1]["spec"]["schedulingGates"])


def test_a_group_that_may_not_be_tried_again_ends_when_none_runs() -> None:
    pods = _make_group(3)
    pods.settle()
    pods.admit()
    pods.settle()
    pods.pods[0]["metadata"]["annotations"]["kueue.x-k8s.io/retriable-in-group"] = "false"
    for i, phase in enumerate(("Succeeded", "Failed", "Failed")):
        pods.end(f"p{i}", phase)
    pods.settle()
    assert pods.get_condition("Finished")["message"] == "Pods succeeded: 1/3."


def test_pods_beyond_the_total_go() -> None:
    pods = _make_group(4)
    deeds = pods.settle()
    assert isinstance(deeds[0], StopPods)
    assert len(deeds[0].pods) == 1
    pods.pods = [one for one in pods.pods if "deletionTimestamp" not in one["metadata"]]
    pods.settle()
    pods.admit()
    pods.settle()
    pods.pods.append(make_pod("more", group="g", total=3))
    stop, *_ = pods.settle()
    assert [one["metadata"]["name"] for one in stop.pods] == ["more"]


def test_a_workload_of_another_that_has_the_name_of_a_group_is_left_alone() -> None:
    pods = _make_group(3)
    pods.settle()
    pods.workload["metadata"]["annotations"] = {}
    pods.workload["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert pods.settle() == []


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"annotations": {names.KUEUE_TOTAL: "4"}}, names.KUEUE_TOTAL),
        ({"annotations": {names.KUEUE_TOTAL: "none"}}, names.KUEUE_TOTAL),
        ({"annotations": {names.KUEUE_TOTAL: None}}, names.KUEUE_TOTAL),
        ({"labels": {names.KUEUE_QUEUE: "other"}}, names.KUEUE_QUEUE),
    ],
)
def test_pods_of_a_group_that_disagree_are_named(change: Json, field: str) -> None:
    pods = _make_group(3)
    pods.pods[1]["metadata"] = merge(pods.pods[1]["metadata"], change)
    with pytest.raises(BadInput) as error:
        pods.settle()
    assert field in error.value.field


def test_a_role_is_what_counts_of_a_pod() -> None:
    """The digest is that of Kueue's own webhook for such a pod."""
    pod = make_pod("a", group="g", total=1)
    same, other = copy.deepcopy(pod), copy.deepcopy(pod)
    same["spec"]["containers"][0]["image"] = "another"
    other["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
    assert plain_pods.find_role(pod) == plain_pods.find_role(same)
    assert plain_pods.find_role(pod) != plain_pods.find_role(other)
    pod["metadata"]["annotations"][names.KUEUE_ROLE] = "said"
    assert plain_pods.find_role(pod) == "said"
