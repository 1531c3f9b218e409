"""What is done next for a job and its workloads: step by step, and in a small world where anything may happen."""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scheduler.api import kueue, names
from scheduler.api.groups import objects
from scheduler.api.jobs import gates
from scheduler.errors import BadInput
from scheduler.kube.jobs import known
from scheduler.kube.jobs.deciding import find_deed
from scheduler.kube.jobs.deeds import (
    DropWorkload,
    MakeWorkload,
    SetImportance,
    WriteJob,
    WriteWorkload,
)
from tests.unit.small_jobs import Small, make_running_job

Json = dict[str, Any]


def test_a_job_that_nobody_has_suspended_is_stopped_before_it_gets_a_workload() -> None:
    small = Small()
    small.run_pods()
    small.settle()
    assert not small.workloads
    done = small.settle_with_pods()
    assert small.is_suspended
    assert isinstance(done[-1], MakeWorkload)
    assert len(small.workloads) == 1


@pytest.mark.parametrize("text", [{names.KUEUE_REQUIRED: "rack", names.KUEUE_SLICE_SIZE: "2"}, {names.KUEUE_UNCONSTRAINED: "perhaps"}])  # fmt: skip
def test_a_job_that_runs_and_says_what_cannot_be_gives_its_quota_back_when_it_is_evicted(
    text: Json,
) -> None:
    """It was let in by a version that knew no better, or its template has changed meanwhile."""
    small = make_running_job()
    assert small.job is not None
    small.job["spec"]["template"].setdefault("metadata", {})["annotations"] = text
    for workload in small.workloads:
        (pod_set,) = workload["spec"]["podSets"]
        pod_set["template"].setdefault("metadata", {})["annotations"] = text
    small.evict()
    with suppress(BadInput):
        # No other Workload can be made of it.
        small.settle_with_pods()
    assert small.is_suspended
    assert not any("admission" in one["status"] for one in small.workloads)


def test_a_job_that_runs_and_says_what_cannot_be_ends() -> None:
    small = make_running_job()
    assert small.job is not None
    text = {names.KUEUE_REQUIRED: "rack", names.KUEUE_SLICE_SIZE: "2"}
    small.job["spec"]["template"].setdefault("metadata", {})["annotations"] = text
    ended = {"type": "Failed", "status": "True", "message": "oh"}
    small.job["status"] = {"conditions": [ended]}
    small.settle()
    assert small.is_true("Finished")


def test_an_evicted_job_stops_and_gives_its_quota_back_once_its_pods_are_gone() -> None:
    small = make_running_job()
    small.evict()
    small.settle()
    assert "admission" in small.workloads[0]["status"]
    small.settle_with_pods()
    assert small.is_suspended
    assert "admission" not in small.workloads[0]["status"]
    assert small.is_true("Requeued")
    assert not small.is_true("Admitted")
    assert not small.is_true("QuotaReserved")
    small.admit()
    small.settle()
    assert not small.is_suspended


def test_one_that_was_evicted_for_another_reason_waits_until_somebody_says_so() -> None:
    small = make_running_job()
    small.evict("ClusterQueueStopped")
    small.settle_with_pods()
    (requeued,) = (one for one in small.workloads[0]["status"]["conditions"] if one["type"] == "Requeued")  # fmt: skip
    assert (requeued["status"], requeued["reason"]) == ("False", "ClusterQueueStopped")


def test_a_job_that_ends_finishes_its_workload_and_lets_go_of_it() -> None:
    small = make_running_job()
    assert small.job is not None
    small.job["status"] = {"conditions": [{"type": "Failed", "status": "True", "message": "oh"}]}
    small.settle()
    (finished,) = (one for one in small.workloads[0]["status"]["conditions"] if one["type"] == "Finished")  # fmt: skip
    assert (finished["reason"], finished["message"]) == ("Failed", "oh")
    assert not small.workloads[0]["metadata"]["finalizers"]


def test_pods_that_have_ended_for_good_are_noted_and_not_taken_back() -> None:
    small = make_running_job()
    assert small.job is not None
    small.job["status"]["succeeded"] = 2
    small.settle()
    ended = [{"name": "main", "count": 2}]
    assert small.workloads[0]["status"]["reclaimablePods"] == ended
    small.job["status"]["succeeded"] = 1
    assert small.settle() == []
    assert small.workloads[0]["status"]["reclaimablePods"] == ended


def test_a_job_whose_workload_is_deleted_stops_first() -> None:
    small = make_running_job()
    small.workloads[0]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    deeds = small.settle()
    assert isinstance(deeds[0], WriteJob)
    assert small.workloads
    deeds = small.settle_with_pods()
    assert any(isinstance(one, DropWorkload) for one in deeds)
    assert small.is_suspended
    # It waits anew.
    assert "status" not in small.workloads[0]


def test_a_job_that_is_gone_keeps_no_quota() -> None:
    small = make_running_job()
    small.job = None
    small.settle()
    assert small.is_true("Finished")
    assert not small.workloads[0]["metadata"]["finalizers"]


def test_a_job_that_changes_while_it_waits_changes_its_workload() -> None:
    small = Small()
    small.settle()
    assert small.job is not None
    small.job["spec"]["parallelism"] = 2
    small.job["metadata"]["labels"][names.KUEUE_RUN_TIME] = "5"
    small.job["metadata"]["generation"] += 1
    (deed,) = small.settle()
    assert isinstance(deed, WriteWorkload)
    (workload,) = small.workloads
    assert workload["spec"]["podSets"][0]["count"] == 2
    assert workload["spec"]["maximumExecutionTimeSeconds"] == 5
    generation = str(small.job["metadata"]["generation"])
    assert workload["metadata"]["annotations"][names.FITS_GENERATION] == generation


def test_a_job_that_changes_while_it_has_quota_waits_anew() -> None:
    small = make_running_job()
    assert small.job is not None
    small.job["spec"]["parallelism"] = 2
    small.settle_with_pods()
    assert small.is_suspended
    (workload,) = small.workloads
    assert "status" not in workload
    assert workload["spec"]["podSets"][0]["count"] == 2


def test_of_several_workloads_one_is_left() -> None:
    small = Small()
    small.settle()
    small.workloads.append(copy.deepcopy(small.workloads[0]))
    small.settle()
    assert len(small.workloads) == 1


def test_a_job_that_waits_takes_its_workload_along_to_another_queue_and_class() -> None:
    small = Small()
    small.settle()
    assert small.job is not None
    small.job["metadata"]["labels"] |= {names.KUEUE_QUEUE: "other", names.KUEUE_CLASS: "high"}
    deeds = small.settle()
    assert [type(one) for one in deeds] == [WriteWorkload, SetImportance]
    assert small.workloads[0]["spec"]["queueName"] == "other"


def test_a_workload_follows_its_job_when_somebody_agrees() -> None:
    small = Small()
    assert small.job is not None
    small.job["metadata"]["annotations"] = {names.KUEUE_GATED: "a.io/one,a.io/two"}
    small.settle()
    texts = small.job["metadata"]["annotations"]
    assert small.workloads[0]["metadata"]["annotations"][names.KUEUE_GATED] == "a.io/one,a.io/two"
    texts[names.KUEUE_GATED] = "a.io/two"
    (deed,) = small.settle()
    assert isinstance(deed, WriteWorkload)
    note = 'Updated workload AdmissionGatedBy to "a.io/two"'
    assert deed.words == ("Normal", "UpdatedWorkload", note)
    # A name that was taken off the Workload itself does not come back.
    del small.workloads[0]["metadata"]["annotations"][names.KUEUE_GATED]
    assert small.settle() == []
    texts[names.KUEUE_GATED] = "a.io/two,a.io/three"
    assert small.settle() == []


def test_a_workload_with_too_many_gates_never_starts_early() -> None:
    small = Small()
    assert small.job is not None
    wide = ",".join(f"a.io/{i}" for i in range(5000))
    small.job["metadata"]["annotations"] = {names.KUEUE_GATED: wide}
    small.settle()
    texts = small.job["metadata"]["annotations"]
    kept = small.workloads[0]["metadata"]["annotations"][names.KUEUE_GATED]
    # No more is copied than shows that it is too long.
    assert (len(kept), wide.startswith(kept)) == (4097, True)
    assert gates.cut_gates(kept) == kept
    # Whom the job names no longer may be among those that were not copied: nobody is taken off.
    for text in (wide.removeprefix("a.io/0,"), "a.io/1,a.io/4999", "a.io/4999"):
        texts[names.KUEUE_GATED] = text
        assert small.settle() == []
        assert gates.narrow(kept, gates.find_gates(small.job)) == kept
    # Nor from a short one, as long as the job's is too long to be read.
    assert gates.narrow("a.io/1,a.io/9999", gates.cut_gates(wide)) == "a.io/1,a.io/9999"
    del texts[names.KUEUE_GATED]
    (deed,) = small.settle()
    assert isinstance(deed, WriteWorkload)
    assert names.KUEUE_GATED not in small.workloads[0]["metadata"]["annotations"]


def test_a_job_that_can_never_start_fails() -> None:
    small = Small()
    small.settle()
    assert small.job is not None
    template = small.job["spec"]["template"]
    template["spec"]["nodeSelector"] = {"pool": "other"}
    small.settle()
    small.admit()
    small.settle()
    assert small.is_suspended
    (finished,) = (one for one in small.workloads[0]["status"]["conditions"] if one["type"] == "Finished")  # fmt: skip
    assert finished["reason"] == "FailedToStart"
    assert "pool" in finished["message"]


def test_it_is_written_whether_pods_are_ready_where_that_counts() -> None:
    small = make_running_job()
    small.watches_pods = True
    small.settle()
    reasons = []
    for ready in (0, 3, 2, 3):
        assert small.job is not None
        small.job["status"]["ready"] = ready
        small.settle()
        (found,) = (one for one in small.workloads[0]["status"]["conditions"] if one["type"] == "PodsReady")  # fmt: skip
        reasons.append((found["status"], found["reason"]))
    assert reasons == [
        ("False", "WaitForStart"),
        ("True", "Started"),
        ("False", "WaitForRecovery"),
        ("True", "Recovered"),
    ]


class AnythingHappens(RuleBasedStateMachine):
    """After whatever happens, in whatever order, all there is to do comes to an end and leaves nothing half done."""

    def __init__(self) -> None:
        super().__init__()
        self.small = Small()
        self.small.watches_pods = True

    @rule()
    def settle(self) -> None:
        self.small.settle()

    @rule()
    def one_deed(self) -> None:
        deed = find_deed(self.small.make_scene())
        if deed is not None:
            self.small.carry_out(deed)

    @precondition(lambda self: self.small.job is not None)
    @rule()
    def pods_follow(self) -> None:
        self.small.run_pods()

    @precondition(
        lambda self: (
            len(self.small.workloads) == 1
            and not self.small.is_true("Finished")
            and "admission" not in self.small.workloads[0].get("status", {})
        )
    )
    @rule()
    def one_is_admitted(self) -> None:
        self.small.admit()

    @precondition(
        lambda self: (
            len(self.small.workloads) == 1
            and "admission" in self.small.workloads[0].get("status", {})
            and not self.small.is_true("Evicted")
        )
    )
    @rule(reason=st.sampled_from(["Preempted", "Deactivated"]))
    def one_is_evicted(self, reason: str) -> None:
        self.small.evict(reason)

    @precondition(lambda self: self.small.job is not None)
    @rule(is_suspended=st.booleans())
    def somebody_meddles(self, is_suspended: bool) -> None:
        assert self.small.job is not None
        self.small.job["spec"]["suspend"] = is_suspended
        self.small.job["metadata"]["generation"] += 1

    @precondition(lambda self: self.small.job is not None and self.small.is_suspended)
    @rule(image=st.sampled_from("ab"))
    def the_job_changes(self, image: str) -> None:
        assert self.small.job is not None
        self.small.job["spec"]["template"]["spec"]["containers"][0]["image"] = image
        self.small.job["metadata"]["generation"] += 1

    @precondition(lambda self: len(self.small.workloads) == 1)
    @rule()
    def the_workload_is_deleted(self) -> None:
        self.small.workloads[0]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    @invariant()
    def what_there_is_to_do_is_seen_from_afar(self) -> None:
        """The watches show no containers; a job is looked at if there may be something to do."""
        small = self.small
        if find_deed(small.make_scene()) is None:
            return
        job = known.read_job("Job", msgspec.convert(small.job, objects.Job))
        owned = [
            known.read_workload(msgspec.convert(one, kueue.Workload)) for one in small.workloads
        ]
        fits = len(owned) == 1 and owned[0].fits == str(job.meta.generation)
        # Of finished workloads it is remembered which ones nothing holds any more.
        assert known.needs_look(job, owned, is_known_to_fit=fits, watches_pods=True)

    @invariant()
    def all_ends_well(self) -> None:
        """From here on nobody else does anything."""
        small = copy.deepcopy(self.small)
        small.settle_with_pods()
        assert find_deed(small.make_scene()) is None
        assert len(small.workloads) == 1
        may_run = small.is_true("Admitted") and not small.is_true("Evicted")
        assert small.is_suspended is not may_run
        template = small.job["spec"]["template"] if small.job is not None else {}
        assert (template["spec"].get("nodeSelector") == {"pool": "spot"}) is may_run
        if small.is_true("Evicted"):
            assert "admission" not in small.workloads[0]["status"]


TestAnythingHappens = AnythingHappens.TestCase
