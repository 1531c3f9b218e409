"""A workload of one's own files that the baseline has, too: which of its pods stay, go and come."""

import json
from pathlib import Path
from typing import Any

import pytest

from scheduler.simulate import markdown
from tests import make
from tests.unit.test_simulate_own_files import run, with_baseline
from tests.unit.test_simulate_what_if import Json, node, pod, workload

NODES = [node("a", cpu=10)]
HASH = "7d9f8c"


def template(cpu: object = 1, meta: Json | None = None, **spec: Any) -> Json:
    container = make.container(cpu=1) | {"resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"labels": {"app": "web"}} | (meta or {}), "spec": {"containers": [container]} | spec}  # fmt: skip


def member(name: str, kind: str, owner: str, **figures: Any) -> Json:
    body = pod(name, node="a", **figures)
    ref = {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": "1", "controller": True}
    body["metadata"] |= {"ownerReferences": [ref], "labels": {"pod-template-hash": HASH}}
    body["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    return body


def replica_set(**spec: Any) -> Json:
    body = workload("ReplicaSet", f"web-{HASH}", **spec)
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "controller": True}
    body["metadata"]["ownerReferences"] = [ref]
    return body


# As a cluster serves it: with defaults, and with quantities in another unit than people write.
SERVED = template("1000m", schedulerName="default-scheduler", terminationGracePeriodSeconds=30)
PODS = [member(f"web-{HASH}-{i}", "ReplicaSet", f"web-{HASH}") for i in range(4)]
SETS = [workload("Deployment", replicas=4, template=SERVED), replica_set(replicas=4, template=SERVED)]  # fmt: skip
BASELINE = [*NODES, *SETS, *PODS]


def found(folder: Path, baseline: list[Json], mine: list[Json], *arguments: str) -> Json:
    result = with_baseline(folder, *arguments, "-o", "json", baseline=baseline, mine=mine)
    assert result.exit_code in {0, 1}, result.output
    answer: Json = json.loads(result.stdout)
    return answer | {"code": result.exit_code}


def test_a_changed_template_is_judged_with_all_its_replicas_in_the_place_of_the_old_pods(
    tmp_path: Path,
) -> None:
    # Beside the four old pods two new ones of 4 CPUs would not fit; without them they do, a third does not.
    for replicas, pending, code in ((2, 0, 0), (3, 1, 1)):
        mine = [workload("Deployment", replicas=replicas, template=template(4))]
        answer = found(tmp_path, BASELINE, mine, "--fail-if-pending")
        assert answer["code"] == code
        assert (answer["summary"]["pods"], answer["summary"]["pending"]) == (replicas, pending)
        assert all(one["own"] for one in answer["pods"])
        assert [one["name"] for one in answer["removed"]] == [f"web-{HASH}-{i}" for i in range(4)]
        assert (
            "Deployment default/web is in the baseline with another pod template (requests): 4 pods of the baseline "
            f"are removed in a trial, and {replicas} new pods are placed"
        ) in answer["warnings"]
        comment = markdown.write_comment({"": answer})
        said = ":x: 1 of 3 pods of your files does not fit" if code else ":white_check_mark: All 2 pods of your files fit"  # fmt: skip
        assert said in comment
        assert "another pod template" in comment


def test_with_the_same_template_only_missing_pods_are_placed_and_surplus_pods_go(
    tmp_path: Path,
) -> None:
    for replicas, new, gone in ((4, 0, 0), (6, 2, 0), (1, 0, 3)):
        # Another image gives pods no other place.
        same = template(1, {"annotations": {"checksum/config": "x"}})
        same["spec"]["containers"][0]["image"] = "web:2"
        answer = found(
            tmp_path, BASELINE, [workload("Deployment", replicas=replicas, template=same)]
        )
        assert (len(answer["pods"]), len(answer["removed"])) == (new, gone)
        assert (
            "1 workload of your files is in the baseline with the same pod template, as far as placement reads it: its "
            "pods stay, and only missing pods are placed (Deployment default/web)"
        ) in answer["warnings"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (template(1, nodeSelector={"k": "v"}), "nodeSelector"),
        (template(1, tolerations=[{"operator": "Exists"}]), "tolerations"),
        (template(1, schedulerName="evenkeel"), "schedulerName"),
        (template(1, priorityClassName="system-node-critical"), "priority"),
        (template(1, {"annotations": {"hami.io/gpu-scheduler-policy": "spread"}}), "annotations"),
        (template(1, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]), "volumes"),
        (template(1, volumes=[{"name": "v", "emptyDir": {}}]), ""),
        (template(1, affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Exists"}]}]}}}), "node affinity"),
        (template(1, topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "web"}}}]), "topology spread"),
        (template(2, nodeSelector={"k": "v"}), "requests, nodeSelector"),
    ],
)  # fmt: skip
def test_whatever_placement_reads_makes_another_template(
    tmp_path: Path, changed: Json, said: str
) -> None:
    answer = found(tmp_path, BASELINE, [workload("Deployment", replicas=4, template=changed)])
    assert len(answer["removed"]) == (4 if said else 0)
    assert any(f"another pod template ({said})" in one for one in answer["warnings"]) == bool(said)


def test_in_the_middle_of_a_rollout_only_pods_of_another_template_are_replaced(
    tmp_path: Path,
) -> None:
    new = replica_set(replicas=1, template=template(3))
    new["metadata"]["name"] = "web-new"
    ahead = member("web-new-1", "ReplicaSet", "web-new", cpu=3)
    baseline = [*NODES, workload("Deployment", replicas=2, template=template(3)), *SETS[1:], new, *PODS, ahead]  # fmt: skip
    answer = found(tmp_path, baseline, [workload("Deployment", replicas=2, template=template(3))])
    assert len(answer["removed"]) == 4
    assert [one["node"] for one in answer["pods"]] == ["a"]


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet", "Job", "ReplicaSet", "CronJob"])
def test_each_kind_of_workload_is_judged_anew(tmp_path: Path, kind: str) -> None:
    def body(cpu: int) -> Json:
        if kind == "CronJob":
            return workload(kind) | {"spec": {"jobTemplate": {"spec": {"template": template(cpu)}}}}
        return workload(kind, template=template(cpu))

    baseline = [*NODES, body(1), member("web-0", kind, "web")]
    if kind == "CronJob":
        job = workload("Job", "web-1", template=template(1))
        ref = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "web", "controller": True}
        job["metadata"]["ownerReferences"] = [ref]
        baseline = [*NODES, body(1), job, member("web-1-x", "Job", "web-1")]
    for cpu, gone, node_name in ((1, 0, "a"), (10, 1, "a"), (11, 1, None)):
        answer = found(tmp_path, baseline, [body(cpu)])
        assert len(answer["removed"]) == gone
        placed = [one["node"] for one in answer["pods"]]
        assert placed == ([node_name] if gone else [])


def test_without_a_size_a_workload_keeps_that_of_the_baseline(tmp_path: Path) -> None:
    """An autoscaler sets it, and the manifest leaves it out."""
    for cpu, n_pods in ((1, 0), (2, 4)):
        mine = workload("Deployment", template=template(cpu))
        answer = found(tmp_path, BASELINE, [mine])
        assert len(answer["pods"]) == n_pods
        assert len(answer["removed"]) == n_pods


def test_of_a_dump_without_workloads_the_pods_themselves_are_compared(tmp_path: Path) -> None:
    pods = [member(f"web-{HASH}-{i}", "ReplicaSet", f"web-{HASH}") for i in range(4)]
    for one in pods:
        # Admission has added it.
        one["spec"]["tolerations"] = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]
    for cpu, n_pods in ((1, 0), (2, 4)):
        mine = [workload("Deployment", replicas=4, template=template(cpu))]
        answer = found(tmp_path, [*NODES, *pods], mine)
        assert (len(answer["pods"]), len(answer["removed"])) == (n_pods, n_pods)
    # Nobody knows which size the workload has in the cluster.
    answer = found(tmp_path, [*NODES, *pods], [workload("Deployment", template=template(1))])
    assert answer["removed"] == []


def test_a_file_that_is_the_baseline_by_what_it_holds_is_treated_alike(tmp_path: Path) -> None:
    result = run(
        tmp_path, "--fail-if-pending", "-o", "json", dump=BASELINE,
        mine=[workload("Deployment", replicas=3, template=template(4))],
    )  # fmt: skip
    assert result.exit_code == 1, result.output
    answer = json.loads(result.stdout)
    assert (len(answer["pods"]), len(answer["removed"])) == (3, 4)
