"""How jobs are started and stopped, and whether their workloads fit them meanwhile."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.api import names
from scheduler.api.jobs import changes, table, templates, workloads
from scheduler.api.jobs.parts import MAIN, Place
from scheduler.api.jobs.templates import Addition, CannotStart
from tests.unit.batch_jobs import ROW, SPOT, make_admitted, make_job, make_workload
from tests.unit.jsonpatch import apply_patch

Json = dict[str, Any]


def test_a_workload_fits_its_job_while_it_waits_and_while_it_runs() -> None:
    job = make_job()
    parts = ROW.list_parts(job)
    waiting = make_workload(job)
    assert workloads.fits_job(waiting, job, parts, {}, is_suspended=True)
    admitted = make_admitted(waiting)
    flavors = {"spot": SPOT}
    assert workloads.fits_job(admitted, job, parts, flavors, is_suspended=True)
    started = _start(job, admitted)
    assert not changes.is_suspended(ROW, started)
    running = ROW.list_parts(started)
    assert workloads.fits_job(admitted, started, running, flavors, is_suspended=False)
    changed = copy.deepcopy(job)
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
    assert not workloads.fits_job(waiting, changed, ROW.list_parts(changed), {}, is_suspended=True)
    other = copy.deepcopy(job)
    other["metadata"]["uid"] = "u2"
    assert not workloads.fits_job(waiting, other, parts, {}, is_suspended=True)


def _start(job: Json, workload: Json) -> Json:
    additions = workloads.list_additions(workload, {"spot": SPOT})
    change = changes.find_start(ROW, job, ROW.list_parts(job), additions)
    return apply_patch(job, change.operations)


def _stop(job: Json, workload: Json | None) -> Json:
    """Stop a job by as many writes as it takes."""
    sets = workload["spec"]["podSets"] if workload is not None else None
    while (change := changes.find_stop(ROW, job, sets, is_active=False)) is not None:
        job = apply_patch(job, change.operations)
    return job


def test_a_job_that_starts_gets_what_its_flavor_says_and_a_stop_takes_it_back() -> None:
    job = make_job()
    admitted = make_admitted(make_workload(job))
    started = _start(job, admitted)
    template = started["spec"]["template"]
    assert started["spec"]["suspend"] is False
    assert template["spec"]["nodeSelector"] == {"disk": "fast", "pool": "spot"}
    assert template["spec"]["tolerations"] == SPOT["tolerations"]
    assert template["metadata"]["labels"] == {
        "mine": "1",
        names.KUEUE_POD_SET: MAIN,
        names.KUEUE_LOCAL_QUEUE: "q",
        names.KUEUE_CLUSTER_QUEUE: "all",
    }
    assert template["metadata"]["annotations"] == {
        names.KUEUE_WORKLOAD: admitted["metadata"]["name"]
    }
    # The Job's controller writes labels, and when it has started.
    template["metadata"]["labels"]["controller-uid"] = "u1"
    started["status"] = {"startTime": "2026-01-01T00:00:00Z"}
    assert _stop(started, admitted)["spec"]["template"] == template
    # Its pods are gone.
    suspended = {"type": "Suspended", "status": "True"}
    started["status"]["conditions"] = [suspended]
    stopped = _stop(started, admitted)
    wanted = copy.deepcopy(job)
    wanted["spec"]["template"]["metadata"]["labels"]["controller-uid"] = "u1"
    assert stopped == wanted | {"status": {"conditions": [suspended]}}
    assert changes.is_suspended(ROW, stopped)


def test_between_the_writes_of_a_stop_a_job_is_not_one_that_waits() -> None:
    job = make_job(suspend=False)
    change = changes.find_stop(ROW, job, None, is_active=False)
    assert change is not None
    assert change.decides
    half = apply_patch(job, change.operations)
    assert half["spec"]["suspend"]
    assert not changes.is_suspended(ROW, half)


def test_a_job_that_may_have_fewer_pods_gets_as_many_as_have_quota() -> None:
    job = make_job(parallelism=4, completions=4)
    job["metadata"]["annotations"] = {
        names.KUEUE_LEAST: "2",
        names.KUEUE_EQUAL_COMPLETIONS: "true",
    }
    admitted = make_admitted(make_workload(job), 3)
    started = _start(job, admitted)
    assert (started["spec"]["parallelism"], started["spec"]["completions"]) == (3, 3)
    flavors = {"spot": SPOT}
    parts = ROW.list_parts(started)
    assert workloads.fits_job(admitted, started, parts, flavors, is_suspended=False)
    assert _stop(started, admitted)["spec"]["parallelism"] == 4


@pytest.mark.parametrize("update", [{"nodeSelector": {"pool": "other"}}, {"labels": {"mine": "2"}}])
def test_a_job_that_contradicts_what_it_is_given_cannot_start(update: Json) -> None:
    job = make_job()
    check = {"name": "c", "podSetUpdates": [{"name": MAIN, **update}]}
    admitted = make_admitted(make_workload(job), admissionChecks=[check])
    with pytest.raises(CannotStart):
        _start(job, admitted)


def test_an_admission_check_adds_to_what_a_job_is_given() -> None:
    job = make_job()
    update = {"name": MAIN, "annotations": {"x": "y"}, "tolerations": [{"key": "t"}]}
    check = {"name": "c", "podSetUpdates": [update]}
    admitted = make_admitted(make_workload(job), admissionChecks=[check])
    template = _start(job, admitted)["spec"]["template"]
    assert template["metadata"]["annotations"]["x"] == "y"
    assert template["spec"]["tolerations"] == [*SPOT["tolerations"], {"key": "t"}]


@pytest.mark.parametrize(
    "kind", ["JobSet", "MPIJob", "PyTorchJob", "RayCluster", "RayJob", "RayService"]
)
def test_every_kind_starts_and_stops_as_it_was(kind: str) -> None:
    row, job = table.BY_NAME[kind], _make_any(kind)
    parts = row.list_parts(job)
    workload = workloads.make_workload(row.kind, job, parts)
    additions = [
        Addition(one.name, one.n_pods, {"l": "1"}, {"a": "1"}, {"pool": "spot"}, [{"key": "t"}])
        for one in parts
    ]
    change = changes.find_start(row, job, parts, additions)
    started = apply_patch(job, change.operations)
    assert not changes.is_suspended(row, started)
    for one in row.list_parts(started):
        assert one.template["spec"]["nodeSelector"]["pool"] == "spot"
        assert one.template["metadata"]["labels"]["l"] == "1"
    stop = changes.find_stop(row, started, workload["spec"]["podSets"], is_active=True)
    assert stop is not None
    stopped = apply_patch(started, stop.operations)
    assert changes.is_suspended(row, stopped)
    for before, after in zip(parts, row.list_parts(stopped), strict=True):
        assert (after.template["spec"].get("nodeSelector") or {}) == (
            before.template["spec"].get("nodeSelector") or {}
        )
        assert "tolerations" not in after.template["spec"]
    assert changes.find_stop(row, stopped, workload["spec"]["podSets"], is_active=True) is None


def _make_any(kind: str) -> Json:
    def template() -> Json:
        return {"spec": {"containers": [{"name": "main"}], "nodeSelector": {"disk": "fast"}}}

    ray = {
        "headGroupSpec": {"template": template()},
        "workerGroupSpecs": [{"groupName": "w", "replicas": 2, "template": template()}],
    }
    specs: dict[str, Json] = {
        "JobSet": {
            "suspend": True,
            "replicatedJobs": [
                {"name": "a", "template": {"spec": {"template": template()}}},
                {"name": "b", "replicas": 2, "template": {"spec": {"template": template()}}},
            ],
        },
        "MPIJob": {
            "runPolicy": {"suspend": True},
            "mpiReplicaSpecs": {"Launcher": {"template": template()}},
        },
        "PyTorchJob": {
            "runPolicy": {"suspend": True},
            "pytorchReplicaSpecs": {"Worker": {"template": template()}},
        },
        "RayCluster": {"suspend": True, **ray},
        "RayJob": {"suspend": True, "submissionMode": "K8sJobMode", "rayClusterSpec": ray},
        "RayService": {"rayClusterConfig": {"suspend": True, **ray}},
    }
    return {"metadata": {"name": "x", "namespace": "n", "uid": "u"}, "spec": specs[kind]}


def test_a_job_of_the_trainer_says_in_patches_what_it_is_given() -> None:
    row = table.BY_NAME["TrainJob"]
    job: Json = {"metadata": {"name": "t"}, "spec": {"suspend": True}}
    made = _make_any("JobSet")
    parts = row.list_parts(made)
    additions = [Addition(one.name, one.n_pods, {"l": "1"}, {}, {}, []) for one in parts]
    first = changes.find_start(row, job, parts, additions)
    assert not first.decides
    patched = apply_patch(job, first.operations)
    second = changes.find_start(row, patched, parts, additions)
    assert second.decides
    started = apply_patch(patched, second.operations)
    assert started["spec"]["suspend"] is False
    (patch,) = started["spec"]["runtimePatches"]
    given = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    assert [one["name"] for one in given] == ["a", "b"]
    stop = changes.find_stop(row, started, None, is_active=True)
    assert stop is not None
    stopped = apply_patch(started, stop.operations)
    # Patches may change only once its pods are gone.
    assert changes.find_stop(row, stopped, None, is_active=True) is None
    last = changes.find_stop(row, stopped, None, is_active=False)
    assert last is not None
    clean = apply_patch(stopped, last.operations)
    assert clean["spec"]["runtimePatches"][0]["trainingRuntimeSpec"]["template"]["spec"] == {}
    assert changes.find_stop(row, clean, None, is_active=False) is None


_texts = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("12"), max_size=3)
_tolerations = st.lists(st.sampled_from([{"key": "x"}, {"key": "y"}]), max_size=2, unique_by=str)


# Labels, annotations, a node selector and tolerations.
_fields = st.tuples(_texts, _texts, _texts, _tolerations)


@given(_fields, _fields)
def test_what_a_start_adds_a_stop_takes_back(
    before: tuple[Any, ...], added: tuple[Any, ...]
) -> None:
    """Whatever a template says, and whatever is added: it is as before, or the start is refused."""
    meta = _drop_empty({"labels": before[0], "annotations": before[1]})
    spec = _drop_empty({"nodeSelector": before[2], "tolerations": before[3]})
    template: Json = {"spec": {"containers": [{"name": "main"}]} | spec}
    template |= {"metadata": meta} if meta else {}
    place: Place = ("spec", "template")
    job: Json = {"spec": {"template": template}}
    contradicts = any(
        have.get(key, value) != value
        for have, more in zip(before[:3], added[:3], strict=True)
        for key, value in more.items()
    )
    try:
        fields = templates.merge(template, Addition(MAIN, 1, *added))
    except CannotStart:
        assert contradicts
        return
    assert not contradicts
    started = apply_patch(job, templates.write_changes(job, place, fields))
    found = started["spec"]["template"]
    assert found.get("metadata", {}).get("labels", {}) == before[0] | added[0]
    assert found["spec"].get("nodeSelector", {}) == before[2] | added[2]
    back = templates.write_changes(started, place, templates.restore(template, {}))
    stopped = apply_patch(started, back)["spec"]["template"]
    stopped["metadata"] = _drop_empty(stopped.get("metadata", {}))
    assert stopped == template | {"metadata": meta}


def _drop_empty(found: Json) -> Json:
    return {key: one for key, one in found.items() if one}
