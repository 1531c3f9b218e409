"""A job that names a workload that was made before it takes over this one, and gets no other.

Cases after Kueue's ``pkg/controller/jobs/job/job_controller_test.go``, in our own words.
"""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from scheduler.api import kueue, names
from scheduler.api.groups import objects
from scheduler.api.jobs import workloads
from scheduler.errors import BadInput
from scheduler.kube.jobs import known, prebuilt
from scheduler.kube.jobs.deciding import find_deed
from scheduler.kube.jobs.deeds import MakeWorkload, Refusal, WriteWorkload
from tests.unit.batch_jobs import ROW
from tests.unit.small_jobs import Small, make_running_job

Json = dict[str, Any]


def make_small(*, is_there: bool = True, in_text: bool = False) -> Small:
    """A job that waits, and names the workload "before"."""
    small = Small()
    assert small.job is not None
    small.job["spec"]["suspend"] = True
    meta = small.job["metadata"]
    kept = meta.setdefault("annotations", {}) if in_text else meta["labels"]
    kept[names.KUEUE_PREBUILT] = "before"
    if is_there:
        small.workloads.append(make_before(small.job))
    return small


def make_before(job: Json) -> Json:
    """The workload as whoever makes it does: nobody controls it."""
    spec = workloads.make_spec(job, ROW.list_parts(job)) | {"priority": 7}
    meta = {"name": "before", "namespace": "n", "uid": "w", "generation": 1}
    return {"metadata": meta, "spec": spec}


def find_refusal(small: Small) -> Refusal:
    with pytest.raises(Refusal) as caught:
        find_deed(small.make_scene())
    return caught.value


@pytest.mark.parametrize("in_text", [False, True])
def test_the_job_takes_the_workload_over_and_starts_with_it(in_text: bool) -> None:
    small = make_small(in_text=in_text)
    small.workloads[0]["metadata"]["labels"] = {"mine": "1"}
    small.workloads[0]["metadata"]["ownerReferences"] = [{"kind": "Plan", "name": "p", "uid": "p"}]
    (deed,) = small.settle()
    assert isinstance(deed, WriteWorkload)
    assert deed.words == ("Normal", "TookOverWorkload", "Took over Workload: n/before")
    (workload,) = small.workloads
    plan, owner = workload["metadata"]["ownerReferences"]
    assert plan["name"] == "p"
    assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == ("Job", "j", "u", True)  # fmt: skip
    assert workload["metadata"]["labels"] == {"mine": "1", names.KUEUE_JOB_UID: "u"}
    small.admit()
    small.settle()
    assert not small.is_suspended
    assert small.workloads[0]["spec"]["priority"] == 7


def test_a_workload_that_is_admitted_already_starts_its_job() -> None:
    small = make_small()
    small.admit()
    small.settle()
    assert not small.is_suspended


def test_no_other_workload_is_made_while_it_is_not_there() -> None:
    small = make_small(is_there=False)
    refusal = find_refusal(small)
    assert refusal.reason == prebuilt.NOT_FOUND
    assert "'before'" in str(refusal)
    assert small.job is not None
    small.workloads.append(make_before(small.job))
    done = small.settle()
    assert len(done) == 1
    assert not any(isinstance(one, MakeWorkload) for one in done)


def test_a_job_that_runs_is_stopped_while_it_is_not_there() -> None:
    small = make_small(is_there=False)
    assert small.job is not None
    small.job["spec"]["suspend"] = False
    small.run_pods()
    stop = find_deed(small.make_scene())
    assert stop is not None
    small.carry_out(stop)
    # Its pods have not gone yet.
    assert find_deed(small.make_scene()) is None
    with pytest.raises(Refusal):
        small.settle_with_pods()
    assert small.is_suspended


def test_a_workload_of_another_job_stays_that_one_s() -> None:
    small = make_small()
    owner = {"kind": "Job", "name": "first", "uid": "u1", "controller": True}
    small.workloads[0]["metadata"]["ownerReferences"] = [owner]
    small.workloads[0]["metadata"]["finalizers"] = [names.KUEUE_IN_USE]
    before = copy.deepcopy(small.workloads)
    refusal = find_refusal(small)
    assert refusal.reason == prebuilt.NOT_FREE
    assert "Job 'first'" in str(refusal)
    assert small.workloads == before
    # A job that goes lets go of nothing that is not its own.
    assert small.job is not None
    small.job["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert small.settle() == []


def test_a_workload_of_an_earlier_job_of_the_same_name_goes_first() -> None:
    small = make_small()
    owner = {"kind": "Job", "name": "j", "uid": "gone", "controller": True}
    small.workloads[0]["metadata"]["ownerReferences"] = [owner]
    with pytest.raises(Refusal) as caught:
        small.settle()
    assert caught.value.reason == prebuilt.NOT_FOUND
    assert small.workloads == []


def test_a_workload_that_does_not_fit_is_finished_and_the_job_never_starts() -> None:
    small = make_small()
    small.workloads[0]["spec"]["podSets"][0]["count"] = 2
    with pytest.raises(Refusal) as caught:
        small.settle()
    (finished,) = small.workloads[0]["status"]["conditions"]
    assert (finished["type"], finished["reason"]) == ("Finished", "OutOfSync")
    assert finished["message"] == "The prebuilt workload is out of sync with its user job"
    assert caught.value.reason == prebuilt.IS_OVER
    assert small.is_suspended


def test_a_job_that_changes_while_it_runs_stops_before_its_quota_is_free() -> None:
    small = make_small()
    small.settle()
    small.admit()
    small.settle()
    small.run_pods()
    assert small.job is not None
    small.job["spec"]["parallelism"] = 2
    small.settle()
    assert small.is_true("Admitted")
    assert not small.is_true("Finished")
    with pytest.raises(Refusal):
        small.settle_with_pods()
    assert small.is_suspended
    assert small.is_true("Finished")
    assert "nodeSelector" not in small.job["spec"]["template"]["spec"]


def test_it_is_evicted_and_ends_as_any_other() -> None:
    small = make_small()
    small.settle()
    small.admit()
    small.settle()
    small.run_pods()
    small.evict()
    small.settle_with_pods()
    assert small.is_suspended
    assert "admission" not in small.workloads[0]["status"]
    small.admit()
    small.settle_with_pods()
    assert small.job is not None
    small.job["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
    small.settle()
    (finished,) = (one for one in small.workloads[0]["status"]["conditions"] if one["type"] == "Finished")  # fmt: skip
    assert finished["reason"] == "Succeeded"


def test_a_job_that_names_one_later_gives_up_the_one_that_it_had() -> None:
    small = Small()
    assert small.job is not None
    small.job["spec"]["suspend"] = True
    small.settle()
    assert len(small.workloads) == 1
    small.workloads.append(make_before(small.job))
    small.job["metadata"]["labels"][names.KUEUE_PREBUILT] = "before"
    small.settle()
    assert [one["metadata"]["name"] for one in small.workloads] == ["before"]
    # And back again: the job keeps what fits it.
    del small.job["metadata"]["labels"][names.KUEUE_PREBUILT]
    assert small.settle() == []


def test_it_is_seen_from_afar_that_a_job_lacks_the_workload_that_it_names() -> None:
    small = make_small()
    job = known.read_job("Job", msgspec.convert(small.job, objects.Job))
    assert job.prebuilt == "n/before"

    def needs_look(*owned: Json) -> bool:
        found = [known.read_workload(msgspec.convert(one, kueue.Workload)) for one in owned]
        return known.needs_look(job, found, is_known_to_fit=True, watches_pods=False)

    assert needs_look()
    (own,) = small.workloads
    assert not needs_look(own)
    assert needs_look(own | {"metadata": own["metadata"] | {"name": "other"}})


@pytest.mark.parametrize(
    "name", ["../../team/workloads/w", "a/b", "A", "a" * 254, "-a", "..", "a..b"]
)
def test_what_is_no_name_never_becomes_a_path(name: str) -> None:
    job = {"metadata": {"annotations": {names.KUEUE_PREBUILT: name}}}
    with pytest.raises(BadInput, match="prebuilt-workload-name"):
        workloads.find_prebuilt(job)


def test_the_workload_of_a_pod_group_is_not_taken_over() -> None:
    """Its pods run on its quota: they would go on, and the job with them."""
    small = make_small()
    pods = [{"apiVersion": "v1", "kind": "Pod", "name": f"p{i}", "uid": f"p{i}"} for i in range(2)]
    small.workloads[0]["metadata"]["ownerReferences"] = pods
    small.admit()
    with pytest.raises(Refusal) as refused:
        small.settle()
    assert refused.value.reason == "PrebuiltWorkloadInUse"
    assert small.workloads[0]["metadata"]["ownerReferences"] == pods
    assert small.is_true("Admitted")
    assert small.is_suspended


@pytest.mark.parametrize("is_new", [False, True])
def test_a_job_that_names_no_name_does_not_run(is_new: bool) -> None:
    """One that runs has quota for its pods of before, and may not add more by a mistake."""
    small = Small() if is_new else make_running_job()
    assert small.job is not None
    small.run_pods()
    small.job["metadata"]["annotations"] = {names.KUEUE_PREBUILT: "NOT A NAME"}
    small.job["spec"]["parallelism"] = small.job["spec"]["completions"] = 500
    with pytest.raises(BadInput, match="is not the name of a Workload"):
        small.settle_with_pods()
    assert small.is_suspended
