"""Decisions about quota as the API server gets them: on which version, in which words, and what is reported of each."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from scheduler.api import kinds, kueue
from scheduler.api.door.events import AdmitDone, AdmitFailed, PreemptFailed
from scheduler.api.door.workload_decisions import Admit, EvictWorkload, Preempt, Queued, SetGiven
from scheduler.api.kind import Kind
from scheduler.errors import ApiError
from scheduler.kube.queues import conditions, reports, writer
from scheduler.kube.queues.reports import WorkloadReports
from scheduler.kube.queues.shown import ShownWorkloads
from scheduler.kube.queues.writer import Facts, LetRun, QuotaPermit, QuotaWriter, Result
from scheduler.kube.report.metrics.queues import QueueCounts

Json = dict[str, Any]
NOW, NO_FACTS = 1_800_000_000.0, Facts()
ADMIT = Admit("a/w", "uid-w", "q", (SetGiven("main", 2, (("cpu", "plain"),), (("cpu", 1500),)),))
PREEMPT = Preempt("a/w", "uid-w", "a/by", "InCohortReclamation")


def make(name: str = "w", **status: Any) -> Json:
    return {
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": "a",
            "uid": f"uid-{name}",
            "resourceVersion": "7",
            "generation": 3,
            "creationTimestamp": "2027-01-15T07:00:00Z",
        },
        "spec": {"queueName": "q"},
        "status": status,
    }


def read(body: Json) -> kueue.Workload:
    return msgspec.convert(body, kueue.Workload)


class Api:
    """One workload, as the API server has it; ``meddle`` is called before each write."""

    def __init__(self, body: Json) -> None:
        self.body = body
        self.meddle: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None
        self.n_writes = self.n_reads = 0

    async def send(self, method: str, path: str, body: Json, *, content_type: str) -> bytes:
        assert (method, content_type) == ("PATCH", "application/merge-patch+json")
        assert path == "/apis/kueue.x-k8s.io/v1beta2/namespaces/a/workloads/w/status"
        self.n_writes += 1
        self.meddle()
        meta = self.body["metadata"]
        if body["metadata"] != {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}:
            raise ApiError(409, "Conflict", "")
        self.body["status"] |= body["status"]
        self.touch()
        self.after()
        return msgspec.json.encode(self.body)

    async def request(self, method: str, path: str) -> bytes:
        assert (method, path) == ("GET", "/apis/kueue.x-k8s.io/v1beta2/namespaces/a/workloads/w")
        self.n_reads += 1
        return msgspec.json.encode(self.body)

    def touch(self) -> None:
        self.body["metadata"]["resourceVersion"] = str(
            int(self.body["metadata"]["resourceVersion"]) + 1
        )


class Told:
    """A reporter: what is put, by name and reason."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []
        self.statuses: list[Callable[[], bytes]] = []

    def report_on_object(self, _: Any, meta: Any, words: tuple[str, str, str], **__: Any) -> None:
        self.events.append((meta.name, *words[1:]))

    def report_status(self, _: str, __: str, make_body: Callable[[], bytes]) -> None:
        self.statuses.append(make_body)

    def forget_object(self, uid: str) -> None:
        pass

    async def quiet_pod(self, uid: str) -> None:
        pass


class Stage:
    """A writer, and what it reports."""

    def __init__(self, body: Json) -> None:
        self.api, self.told, self.shown = Api(body), Told(), ShownWorkloads()
        self.term, self.is_open = 1, True
        self.reported: list[Result] = []
        api: Any = self.api
        told: Any = self.told

        def find_kind() -> Kind:
            return kinds.WORKLOADS

        self.reports = WorkloadReports(
            told,
            self.shown,
            find_kind=find_kind,
            clock=lambda: NOW,
            may_write=lambda: self.is_open,
            counts=QueueCounts(),
        )
        permit = QuotaPermit(lambda: self.term, lambda: self.is_open, lambda: NOW, find_kind)
        self.writer = QuotaWriter(api, permit, self.shown, self.reports, self.reported.append)
        self.shown.watch(read(body))
        self.shown.watch(read(make("by")))

    async def carry_out(
        self, decision: Admit | Preempt | EvictWorkload, facts: Facts = NO_FACTS
    ) -> list[Result]:
        """Carry a decision out; return what is reported."""
        self.writer.submit(decision, facts)
        return await self.work()

    async def work(self) -> list[Result]:
        """Carry out what was submitted; return what is reported."""
        task = asyncio.create_task(self.writer.run())
        await self.writer.drain(5.0)
        await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return self.reported

    def conditions(self) -> dict[str, tuple[str, str, str]]:
        found = self.api.body["status"]["conditions"]
        return {one["type"]: (one["status"], one["reason"], one["message"]) for one in found}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is reported later."""
    for name in ("_BEHIND_SECONDS", "_FIRST_SECONDS"):
        monkeypatch.setattr(writer, name, 0.001)


async def test_quota_is_written_in_kueues_words_on_the_version_that_was_seen() -> None:
    evicted = {"type": "Evicted", "status": "True", "reason": "Preempted", "message": "Gone."}
    stage = Stage(make(conditions=[evicted | {"lastTransitionTime": "2027-01-15T07:30:00Z"}]))
    assert await stage.carry_out(ADMIT) == [AdmitDone("a/w")]
    assert stage.api.body["status"]["admission"] == {
        "clusterQueue": "q",
        "podSetAssignments": [
            {
                "name": "main",
                "flavors": {"cpu": "plain"},
                "resourceUsage": {"cpu": "1500m"},
                "count": 2,
            }
        ],
    }
    assert stage.conditions() == {
        "Evicted": ("False", "QuotaReserved", "Previously: Gone."),
        "QuotaReserved": ("True", "QuotaReserved", "Quota reserved in ClusterQueue q"),
        "Admitted": ("True", "Admitted", "The workload is admitted"),
    }
    assert all(
        (one["observedGeneration"], one["lastTransitionTime"]) == (3, "2027-01-15T08:00:00Z")
        for one in stage.api.body["status"]["conditions"]
    )
    assert stage.told.events == [
        (
            "w",
            "QuotaReserved",
            "Quota reserved in ClusterQueue q, wait time since queued was 3600s",
        ),
        ("w", "Admitted", "Admitted by ClusterQueue q, wait time since reservation was 0s"),
    ]


async def test_a_decision_is_open_until_it_is_written() -> None:
    stage = Stage(make())
    stage.writer.submit(ADMIT, NO_FACTS)
    assert stage.writer.n_open == 1
    await stage.work()
    assert stage.writer.n_open == 0


async def test_checks_that_are_not_ready_keep_a_workload_from_running() -> None:
    stage = Stage(make())
    assert await stage.carry_out(ADMIT, Facts(checks=("one",))) == [AdmitDone("a/w")]
    assert "Admitted" not in stage.conditions()
    (check,) = stage.api.body["status"]["admissionChecks"]
    assert (check["name"], check["state"], check["message"]) == ("one", "Pending", "")
    assert [reason for _, reason, _ in stage.told.events] == ["QuotaReserved"]


async def test_a_workload_that_has_passed_its_checks_may_run() -> None:
    reserved = {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": ""}
    reserved["lastTransitionTime"] = "2027-01-15T07:59:00Z"
    stage = Stage(make(admission={"clusterQueue": "q"}, conditions=[reserved]))
    stage.writer.submit(LetRun("a/w", "uid-w", "q"), Facts())
    assert await stage.work() == []
    assert stage.conditions()["Admitted"] == ("True", "Admitted", "The workload is admitted")
    said = "Admitted by ClusterQueue q, wait time since reservation was 60s"
    assert stage.told.events == [("w", "Admitted", said)]
    stage.writer.submit(LetRun("a/w", "uid-w", "q"), Facts())
    assert await stage.work() == []
    assert stage.api.n_writes == 1


async def test_what_others_have_written_meanwhile_stays() -> None:
    stage = Stage(make(conditions=[]))
    other = {"type": "Other", "status": "True", "reason": "R", "message": ""}

    def meddle() -> None:
        stage.api.meddle = lambda: None
        stage.api.body["status"]["conditions"] = [other]
        stage.api.touch()

    stage.api.meddle = meddle
    assert await stage.carry_out(ADMIT) == [AdmitDone("a/w")]
    assert (stage.api.n_writes, stage.api.n_reads) == (2, 1)
    assert stage.conditions()["Other"] == ("True", "R", "")
    assert stage.conditions()["Admitted"][0] == "True"


async def test_a_workload_that_has_changed_is_decided_about_anew() -> None:
    """Else it would get what it asked for before."""
    stage = Stage(make())

    def meddle() -> None:
        stage.api.meddle = lambda: None
        stage.api.body["metadata"]["generation"] = 4
        stage.api.touch()

    stage.api.meddle = meddle
    failed = AdmitFailed("a/w", "the workload has changed")
    assert await stage.carry_out(ADMIT) == [failed]
    # The engine does not know of the change yet, so the next decision does not hold either.
    assert await stage.carry_out(ADMIT) == [failed, failed]
    assert "admission" not in stage.api.body["status"]
    stage.shown.watch(read(stage.api.body))
    assert (await stage.carry_out(ADMIT))[-1] == AdmitDone("a/w")


async def test_a_write_without_an_answer_is_not_written_twice() -> None:
    stage = Stage(make())

    def after() -> None:
        raise ApiError(0, "Timeout", "no answer")

    stage.api.after = after
    assert await stage.carry_out(ADMIT) == [AdmitDone("a/w")]
    assert (stage.api.n_writes, stage.api.n_reads) == (1, 1)


@pytest.mark.parametrize("what", ["term", "guard"])
@pytest.mark.parametrize("decision", [ADMIT, PREEMPT])
async def test_nothing_is_written_without_the_lead_or_beside_kueue(
    what: str, decision: Admit | Preempt | EvictWorkload
) -> None:
    stage = Stage(make(admission={"clusterQueue": "other"}))
    stage.writer.submit(decision, Facts())
    stage.term, stage.is_open = (2, True) if what == "term" else (1, False)
    (failed,) = await stage.work()
    assert isinstance(failed, AdmitFailed if isinstance(decision, Admit) else PreemptFailed)
    assert stage.api.n_writes == 0


async def test_who_has_to_go_is_evicted_and_preempted_in_kueues_words() -> None:
    ready = {
        "name": "one",
        "state": "Ready",
        "message": "",
        "lastTransitionTime": "2027-01-15T07:30:00Z",
    }
    retry = ready | {"name": "two", "state": "Retry", "retryCount": 1, "requeueAfterSeconds": 9}
    stage = Stage(make(admission={"clusterQueue": "q"}, admissionChecks=[ready, retry]))
    assert await stage.carry_out(PREEMPT, Facts(paths=("/all/p", "/all/q"))) == []
    message = (
        "Preempted to accommodate a workload (UID: uid-by, JobUID: UNKNOWN) due to reclamation within the cohort; "
        "preemptor path: /all/p; preemptee path: /all/q"
    )
    assert stage.conditions() == {
        "Preempted": ("True", "InCohortReclamation", message),
        "Evicted": ("True", "Preempted", message),
    }
    one, two = stage.api.body["status"]["admissionChecks"]
    assert one["message"] == "Reset to Pending after eviction. Previously: Ready"
    assert (two["state"], two["retryCount"], two["requeueAfterSeconds"]) == ("Pending", 2, 9)
    assert [(name, reason) for name, reason, _ in stage.told.events] == [
        ("w", "EvictedDueToPreempted"),
        ("w", "Preempted"),
        ("by", "PreemptedWorkload"),
    ]
    # One that has to go already is not written about again.
    assert await stage.carry_out(PREEMPT) == []
    assert stage.api.n_writes == 1


def test_a_workload_for_which_nobody_may_go_says_so_and_one_that_goes_closes_its_gates() -> None:
    open_gate = {"name": "a", "position": "Open", "lastTransitionTime": "2027-01-15T07:30:00Z"}
    status = kueue.WorkloadStatus(preemption_gates=[open_gate])
    changing = conditions.Conditions((), 1, NOW)
    why = "AdmissionGated", "Workload requires preemption, but it's gated"
    made = conditions.leave_queued(status, changing, why, NOW)
    assert made is not None
    found = {
        one["type"]: (one["status"], one["reason"], one["message"]) for one in made["conditions"]
    }
    assert found == {
        "BlockedOnPreemptionGates": ("True", "PreemptionGated", why[1]),
        "QuotaReserved": ("False", *why),
    }
    gone = conditions.evict(status, changing, "Preempted", "for another one", NOW)
    assert not changing.is_true("BlockedOnPreemptionGates")
    assert [one["position"] for one in gone["preemptionGates"]] == ["Closed"]


async def test_who_was_stopped_is_evicted_and_not_preempted() -> None:
    stage = Stage(make(admission={"clusterQueue": "q"}))
    decision = EvictWorkload("a/w", "uid-w", "ClusterQueueStopped", "The ClusterQueue is stopped")
    assert await stage.carry_out(decision) == []
    assert stage.conditions() == {
        "Evicted": ("True", "ClusterQueueStopped", "The ClusterQueue is stopped")
    }
    told = ("w", "EvictedDueToClusterQueueStopped", "The ClusterQueue is stopped")
    assert stage.told.events == [told]


async def test_a_victim_without_quota_is_not_sent_away() -> None:
    stage = Stage(make())
    assert await stage.carry_out(PREEMPT) == [PreemptFailed("a/w", "the workload has changed")]
    assert stage.api.n_writes == 0


async def test_what_the_api_server_refuses_is_decided_about_later() -> None:
    stage = Stage(make())

    def refuse() -> None:
        raise ApiError(422, "Invalid", "no such field")

    stage.api.meddle = refuse
    (failed,) = await stage.carry_out(ADMIT)
    assert isinstance(failed, AdmitFailed)
    assert "no such field" in failed.message


async def test_why_a_workload_waits_is_written_once() -> None:
    stage = Stage(make())
    said = Queued("a/w", "uid-w", "WaitingForQuota", "too little")
    stage.reports.note_queued(said)
    (make_body,) = stage.told.statuses
    body = msgspec.json.decode(make_body())
    assert body["metadata"] == {"uid": "uid-w", "resourceVersion": "7"}
    (condition,) = body["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("QuotaReserved", "False")
    assert stage.told.events == [("w", "WaitingForQuota", "too little")]
    newer = make(conditions=[condition])
    newer["metadata"]["resourceVersion"] = "8"
    stage.shown.watch(read(newer))
    stage.reports.note_queued(said)
    assert len(stage.told.statuses) == 1
    # The first one, if it is sent only now, changes nothing; nor does it once there is quota.
    assert msgspec.json.decode(make_body())["status"] == {}


async def test_few_of_very_many_are_told_each_second_why_they_wait() -> None:
    stage = Stage(make())
    n = 3 * reports._MOST
    for i in range(n):
        stage.shown.watch(read(make(f"w{i}")))
        for message in ("first", "second"):
            stage.reports.note_queued(Queued(f"a/w{i}", f"uid-w{i}", "WaitingForQuota", message))
    assert len(stage.told.statuses) == reports._MOST
    stage.reports._left = 10 * n
    stage.reports._write_waits()
    # Of two reasons that wait only the newer one is written.
    assert len(stage.told.statuses) < 2 * n
    assert {note for _, _, note in stage.told.events[reports._MOST + 1 :]} == {"second"}


async def test_nothing_is_said_beside_kueue() -> None:
    stage = Stage(make())
    stage.is_open = False
    stage.reports.note_queued(Queued("a/w", "uid-w", "WaitingForQuota", "too little"))
    assert stage.told.statuses == []
