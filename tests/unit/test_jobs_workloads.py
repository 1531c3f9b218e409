"""The workloads of jobs, how jobs are started and stopped, and what is done next for a job and its workloads."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from scheduler.api import kinds, names
from scheduler.api.jobs import pod_sets, workloads
from scheduler.api.jobs.parts import MAIN, JobPart
from scheduler.api.jobs.workloads import Importance
from scheduler.errors import BadInput
from tests.unit.batch_jobs import make_job, make_workload

Json = dict[str, Any]


def test_a_workload_is_named_as_kueue_names_it() -> None:
    """By its kind, its name, and a digest of all that tells it from others."""
    assert workloads.make_name(kinds.JOBS, "train", "u1") == "job-train-" + _digest("Job\nbatch\ntrain\nu1")  # fmt: skip
    long = workloads.make_name(kinds.PYTORCH_JOBS, "x" * 100, "u1")
    assert len(long) == 63
    assert long.startswith("pytorchjob-xxx")


def _digest(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:5]


def test_a_workload_says_what_its_job_says() -> None:
    job = make_job(parallelism=4)
    job["metadata"]["labels"][names.KUEUE_RUN_TIME] = "60"
    job["metadata"]["annotations"] = {names.KUEUE_LEAST: "2", "provreq.kueue.x-k8s.io/x": "y"}
    made = make_workload(job)
    meta, spec = made["metadata"], made["spec"]
    assert meta["labels"] == {names.KUEUE_JOB_UID: "u1"}
    assert meta["annotations"] == {"provreq.kueue.x-k8s.io/x": "y", names.FITS_GENERATION: "3"}
    assert meta["finalizers"] == [names.KUEUE_IN_USE]
    (owner,) = meta["ownerReferences"]
    assert owner["controller"]
    assert (owner["apiVersion"], owner["kind"], owner["uid"]) == ("batch/v1", "Job", "u1")
    assert (spec["queueName"], spec["maximumExecutionTimeSeconds"]) == ("q", 60)
    (pod_set,) = spec["podSets"]
    assert (pod_set["name"], pod_set["count"], pod_set["minCount"]) == (MAIN, 4, 2)
    assert pod_set["topologyRequest"] == {"podIndexLabel": names.JOB_INDEX}


def test_a_priority_is_written_in_each_version() -> None:
    (newer, older) = kinds.WORKLOADS.list_versions()
    urgent = Importance(9, "urgent", is_of_workloads=True)
    found = workloads.write_importance(urgent, newer)
    assert found["priority"] == 9
    assert found["priorityClassRef"] == {
        "group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "urgent",
    }  # fmt: skip
    assert workloads.write_importance(urgent, older) == {
        "priority": 9,
        "priorityClassName": "urgent",
        "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass",
    }
    assert workloads.write_importance(Importance(), newer)["priorityClassRef"] is None


@pytest.mark.parametrize(
    ("texts", "request_"),
    [
        ({}, None),
        ({names.KUEUE_REQUIRED: "rack", names.KUEUE_TOGETHER: "g"}, {"required": "rack", "podSetGroupName": "g"}),
        ({names.KUEUE_PREFERRED: "rack"}, {"preferred": "rack"}),
        ({names.KUEUE_UNCONSTRAINED: "true"}, {"unconstrained": True}),
        (
            {names.KUEUE_SLICE_LEVEL: "host", names.KUEUE_SLICE_SIZE: "2"},
            {"podSetSliceRequiredTopology": "host", "podSetSliceSize": 2},
        ),
        (
            {names.KUEUE_SLICES: '[{"topology":"host","size":2}]'},
            {"podsetSliceRequiredTopologyConstraints": [{"topology": "host", "size": 2}]},
        ),
    ],
)  # fmt: skip
def test_a_topology_is_asked_for_by_annotations(texts: Json, request_: Json | None) -> None:
    part = JobPart(MAIN, 1, {"metadata": {"annotations": texts}}, ("spec", "template"))
    assert pod_sets.write_pod_set(part).get("topologyRequest") == request_


@pytest.mark.parametrize(
    "texts",
    [
        {names.KUEUE_UNCONSTRAINED: "perhaps"},
        {names.KUEUE_SLICES: "{"},
        {names.KUEUE_SLICE_LEVEL: "host", names.KUEUE_SLICE_SIZE: "none"},
        # Pods with these are refused. So their job does not get quota.
        {names.KUEUE_REQUIRED: "rack", names.KUEUE_PREFERRED: "rack"},
        {names.KUEUE_REQUIRED: "rack", names.KUEUE_SLICE_SIZE: "2"},
        {names.KUEUE_UNCONSTRAINED: "true", names.KUEUE_TOGETHER: "g"},
        {names.KUEUE_SLICES: '[{"topology":"rack","size":3},{"topology":"host","size":2}]'},
    ],
)
def test_a_topology_that_cannot_be_is_named(texts: Json) -> None:
    part = JobPart(MAIN, 1, {"metadata": {"annotations": texts}}, ("spec", "template"))
    with pytest.raises(BadInput, match=r"pod set main: metadata\.annotations"):
        pod_sets.write_pod_sets([part])


@pytest.mark.parametrize(
    ("counts", "levels", "problem"),
    [
        ((1, 4), ("rack", "rack"), ""),
        ((4, 1), ("rack", "rack"), ""),
        ((4,), ("rack",), ""),
        ((1, 4), ("rack", ""), "is the group of 1 pod set(s); a group has 2"),
        ((1, 4, 4), ("rack", "rack", "rack"), "is the group of 3 pod set(s); a group has 2"),
        ((3, 4), ("rack", "rack"), "is the group of 3 and 4 pods; one of its pod sets has 1 pod"),
        ((1, 4), ("rack", "host"), "is the group of pod sets with different topologies"),
    ],
)
def test_a_group_of_pod_sets_is_a_leader_and_its_workers(
    counts: tuple[int, ...], levels: tuple[str, ...], problem: str
) -> None:
    parts = [
        JobPart(
            f"part-{i}",
            count,
            {
                "metadata": {
                    "annotations": {names.KUEUE_REQUIRED: level, names.KUEUE_TOGETHER: "both"}
                    if level
                    else {}
                }
            },
            ("spec", "template"),
        )
        for i, (count, level) in enumerate(zip(counts, levels, strict=True))
    ]
    if not problem:
        assert len(pod_sets.write_pod_sets(parts)) == len(counts)
        return
    with pytest.raises(BadInput) as caught:
        pod_sets.write_pod_sets(parts)
    assert caught.value.field == f"pod set part-0: metadata.annotations[{names.KUEUE_TOGETHER}]"
    assert problem in str(caught.value)


def test_the_last_of_variables_of_one_name_counts() -> None:
    env = [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}, {"name": "a", "value": "3"}]
    template = {"spec": {"containers": [{"name": "main", "env": env}]}}
    made = pod_sets.write_pod_set(JobPart(MAIN, 1, template, ("spec", "template")))
    (container,) = made["template"]["spec"]["containers"]
    assert container["env"] == [{"name": "a", "value": "3"}, {"name": "b", "value": "2"}]


@pytest.mark.parametrize(
    ("one", "other", "is_equal"),
    [
        ({"resources": {"requests": {"cpu": "1000m"}}}, {"resources": {"requests": {"cpu": 1}}}, True),
        ({"resources": {"requests": {"cpu": "1"}}}, {"resources": {"requests": {"cpu": "2"}}}, False),
        ({"env": [], "tty": False}, {}, True),
        ({"ports": [{"containerPort": 1}]}, {"ports": [{"containerPort": 1, "protocol": "TCP"}]}, True),
        ({"ports": [{"containerPort": 1, "protocol": "UDP"}]}, {"ports": [{"containerPort": 1}]}, False),
        ({}, {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}, True),
        ({}, {"terminationMessagePolicy": "FallbackToLogsOnError"}, False),
        ({"image": "a:1"}, {"image": "a:1", "imagePullPolicy": "IfNotPresent"}, True),
        ({"image": "a:1"}, {"image": "a:1", "imagePullPolicy": "Always"}, False),
        ({"image": "r:5000/a"}, {"image": "r:5000/a", "imagePullPolicy": "Always"}, True),
        ({"image": "a:latest"}, {"image": "a:latest", "imagePullPolicy": "Always"}, True),
        ({"image": "a@sha256:0"}, {"image": "a@sha256:0", "imagePullPolicy": "IfNotPresent"}, True),
        (
            {"readinessProbe": {"httpGet": {"port": 1}}},
            {"readinessProbe": {"httpGet": {"port": 1, "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 1}},
            True,
        ),
        ({"readinessProbe": {"periodSeconds": 5}}, {"readinessProbe": {}}, False),
        ({"image": "a"}, {"image": "b"}, False),
        ({"resources": {"limits": {"cpu": "?"}}}, {"resources": {"limits": {"cpu": "?"}}}, True),
    ],
)  # fmt: skip
def test_containers_are_equal_if_they_mean_the_same(one: Json, other: Json, is_equal: bool) -> None:
    sets = [
        [{"name": MAIN, "count": 1, "template": {"spec": {"containers": [found]}}}]
        for found in (one, other)
    ]
    assert pod_sets.are_equal(*sets) is is_equal
