"""Jobs and pods with a queue beside the Workloads, the jobs and the pods that are there already."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.api import names
from scheduler.simulate import schedule
from tests.unit.test_queues_places import make_workload
from tests.unit.test_simulate_queued import (
    JOB_SET,
    JOBS,
    QUEUE,
    find_nodes,
    find_states,
    make_job,
    make_object,
    make_pod,
    make_world,
)

Json = dict[str, Any]


def test_no_workload_is_made_twice() -> None:
    stands = make_workload("mine", "a", 2, 1)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "", "controller": True}
    stands["metadata"]["ownerReferences"] = [owner]
    of_pod = make_workload("of-pod", "a", 1, 1, second=1)
    of_pod["metadata"]["ownerReferences"] = [
        owner | {"apiVersion": "v1", "kind": "Pod", "name": "p"}
    ]
    group = make_workload("g", "a", 1, 1, second=2)
    member = {"apiVersion": "v1", "kind": "Pod", "name": "m", "uid": ""}
    group["metadata"]["ownerReferences"] = [member]
    jobs = [make_job("j", 2), make_pod("p"), make_pod("m", group="g", total=1)]
    found = schedule([*make_world(3), stands, of_pod, group, *jobs], strict=True)
    assert {one["name"]: one["state"] for one in found["workloads"]} == {
        "mine": "admitted", "of-pod": "admitted", "g": "waits",
    }  # fmt: skip
    assert find_nodes(found)["m"] == [None]
    assert None not in find_nodes(found)["j"] + find_nodes(found)["p"]


def make_named(name: str, n_pods: int, workload: str, **texts: str) -> Json:
    job = make_job(name, n_pods)
    job["metadata"]["labels"][names.KUEUE_PREBUILT] = workload
    job["metadata"]["annotations"] = texts
    return job


def test_a_job_takes_the_workload_that_it_names() -> None:
    before = make_workload("before", "a", 2, 1, priority=5)
    job = make_named("j", 2, "before")
    found = schedule([*make_world(2), before, job, make_job("k", 2)], strict=True)
    assert {one["name"]: one["state"] for one in found["workloads"] if one["name"] == "before"} == {
        "before": "admitted"
    }
    assert find_states(found) == {"j": "admitted", "k": "waits"}
    assert None not in find_nodes(found)["j"]


@pytest.mark.parametrize(
    ("job", "problem"),
    [
        (make_named("j", 2, "none"), "there is no Workload 'none'"),
        (make_named("j", 2, "of-k"), "the Workload 'of-k' is that of Job 'k'"),
        (make_named("j", 2, "of-pods"), "the Workload 'of-pods' is that of Pod 'p0'"),
        (make_named("j", 3, "before"), "the Workload 'before' has [2] pods in its pod sets, and the job has [3]"),
        (make_named("j", 2, "before", **{names.KUEUE_PREBUILT: "../x"}), "'../x' is not the name of a Workload"),
    ],
)  # fmt: skip
def test_a_job_that_cannot_have_the_workload_that_it_names_is_a_mistake(
    job: Json, problem: str
) -> None:
    of_k = make_workload("of-k", "a", 2, 1)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "k", "uid": "", "controller": True}
    of_k["metadata"]["ownerReferences"] = [owner]
    # All pods of a group own its Workload, and none of them controls it.
    of_pods = make_workload("of-pods", "a", 2, 1)
    of_pods["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Pod", "name": f"p{i}", "uid": ""} for i in range(2)
    ]
    there = [make_workload("before", "a", 2, 1), of_k, of_pods, make_job("k", 2)]
    found = schedule([*make_world(9), *there, job])
    (mistake,) = found["mistakes"]
    assert mistake["object"] == "Job team/j"
    assert problem in mistake["problem"]
    # No other Workload is made for it.
    assert {one["name"] for one in found["workloads"]} == {"before", "of-k", "of-pods"}


def test_the_pods_of_a_job_wait_for_the_workload_that_stands_there() -> None:
    """Those of a RayJob are owned by the cluster that is made of it."""
    stands = make_workload("mine", "a", 3, 1)
    owner = {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "name": "j",
        "uid": "",
        "controller": True,
    }
    stands["metadata"]["ownerReferences"] = [owner]
    job = make_object("RayJob", "j", JOBS["RayJob"])
    found = schedule([*make_world(2), stands, job], strict=True)
    assert [one["name"] for one in found["workloads"]] == ["mine"]
    assert find_nodes(found)["j"] == [None] * 3


def test_pods_of_a_workload_with_an_owner_of_another_kind_get_no_second_one() -> None:
    stands = make_workload("g", "a", 1, 1)
    owner = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "name": "l",
        "controller": True,
    }
    stands["metadata"]["ownerReferences"] = [owner]
    found = schedule([*make_world(2), stands, make_pod("l-0", group="g", total=1)], strict=True)
    assert [(one["name"], one["state"]) for one in found["workloads"]] == [("g", "admitted")]
    assert None not in find_nodes(found)["l-0"]


def test_a_job_that_a_cron_job_has_made_is_not_its_next_run() -> None:
    cron = {
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly", "namespace": "team"},
        "spec": {
            "schedule": "@daily",
            "jobTemplate": {"metadata": {"labels": QUEUE}, "spec": make_job("x", 1)["spec"]},
        },
    }  # fmt: skip
    job = make_job("nightly-1", 1)
    controller = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": "nightly",
        "controller": True,
    }
    job["metadata"]["ownerReferences"] = [controller]
    pod = make_pod("nightly-1-x")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "nightly-1", "controller": True}
    pod["metadata"] |= {"labels": {}, "ownerReferences": [owner]}
    found = schedule([*make_world(9), cron, job, pod], strict=True)
    assert find_states(found) == {"nightly-1": "admitted"}
    assert len(found["pods"]) == 1


def test_a_job_that_runs_without_a_workload_is_stopped() -> None:
    job = make_job("j", 1, suspend=False)
    pod = make_pod("j-1")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "", "controller": True}
    pod["metadata"] |= {"labels": {}, "ownerReferences": [owner]}
    pod["spec"]["nodeName"] = "other"
    found = schedule([*make_world(3), job, pod])
    assert find_nodes(found)["j"] in (["n0"], ["n1"])
    assert any("Job team/j" in one and "without a Workload" in one for one in found["warnings"])


def test_a_pod_that_runs_without_a_workload_stays_and_is_named() -> None:
    found = schedule([*make_world(3), make_pod("p", nodeName="other")])
    assert not found["pods"]
    assert not found["workloads"]
    assert any("team/p" in one and "no quota is counted" in one for one in found["warnings"])


def test_a_job_that_has_ended_or_that_another_job_has_made_has_no_workload() -> None:
    over = make_job("over", 1)
    over["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
    child = make_job("child", 1)
    child["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "name": "j",
            "controller": True,
        }
    ]
    found = schedule(
        [*make_world(9), over, child, make_object("JobSet", "j", JOB_SET)], strict=True
    )
    assert find_states(found) == {"j": "admitted"}
