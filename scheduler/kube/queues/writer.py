"""Writes decisions about quota on Workloads, and reports what became of each.

A decision is written on the version of its workload that was seen last, so nothing is written over what others have
written meanwhile. If the API server has a newer version, that is read, and the decision is written on it as long as all
that it stands on is the same; else the engine is to decide anew. Whether a write that got no answer has taken effect is
found out before anything is reported.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import msgspec
import structlog

from scheduler.api import kueue
from scheduler.api.door.events import AdmitDone, AdmitFailed, PreemptFailed
from scheduler.api.door.workload_decisions import (
    Admit,
    Deactivate,
    Preempt,
    ReplaceSlice,
    SetDomains,
    SetPriority,
    StepDecision,
    SyncChecks,
)
from scheduler.api.kind import Kind
from scheduler.api.queues.admissions import has_domains
from scheduler.api.queues.words import (
    ADMITTED,
    DEACTIVATION_TARGET,
    EVICTED,
    FINISHED,
    SLICE_REPLACED,
)
from scheduler.errors import ApiError
from scheduler.kube import answers, client
from scheduler.kube.client import ApiClient
from scheduler.kube.queues import conditions, lifecycles
from scheduler.kube.queues.reports import WorkloadReports
from scheduler.kube.queues.shown import Shown, ShownWorkloads, find_path

# Decisions about one workload are written by one writer, in their order.
_WRITERS = 16
# How often a decision is written on yet another version.
_TRIES = 5
_POLL_SECONDS = 0.01
# A decision that no longer holds is reported so much later.
_BEHIND_SECONDS = 0.1
# A decision that the API server refuses is decided about again after so long at first, and at most.
_FIRST_SECONDS, _MOST_SECONDS = 1.0, 60.0
_workloads = msgspec.json.Decoder(kueue.Workload)
_log = structlog.get_logger("evenkeel.queues")


class LetRun(NamedTuple):
    """Let a workload run that has quota and has passed its checks; ``queue``: of the cluster."""

    key: str
    uid: str
    queue: str


Decision = Admit | Preempt | StepDecision | LetRun
# Writes an event about a workload: as it was before the write, as it is after it, and the time.
_Say = Callable[[Shown, Shown, float], None]
Result = AdmitDone | AdmitFailed | PreemptFailed


class QuotaPermit(NamedTuple):
    """What the writer calls right before a write.

    Attributes:
        get_term: gives the present term of leadership, 0 when this replica does not lead.
        is_open: whether queues may be managed here.
        clock: gives the time in seconds since 1970.
        find_kind: gives the kind of workloads in the version that the API server serves.
    """

    get_term: Callable[[], int]
    is_open: Callable[[], bool]
    clock: Callable[[], float]
    find_kind: Callable[[], Kind]


class Facts(NamedTuple):
    """What the engine knows of a decision when it is made.

    Attributes:
        checks: the admission checks that the workload has to pass.
        paths: of a preemption, the queue and the cohorts of the workload that needs the quota, and of the one that goes.
    """

    checks: tuple[str, ...] = ()
    paths: tuple[str, str] = ("", "")


class _Job(NamedTuple):
    """A decision, the workload on which it stands, and the term in which it was made."""

    decision: Decision
    facts: Facts
    ground: tuple[Any, ...] | None
    term: int


class QuotaWriter:
    """Carries decisions about quota out.

    Args:
        api: the API server.
        permit: what is called right before a write.
        shown: the workloads as they were seen last.
        reports: writes for people what has become of workloads.
        report: takes AdmitDone, AdmitFailed and PreemptFailed.

    Attributes:
        n_open: number of decisions that are not carried out yet.
    """

    def __init__(
        self,
        api: ApiClient,
        permit: QuotaPermit,
        shown: ShownWorkloads,
        reports: WorkloadReports,
        report: Callable[[Result], None],
    ) -> None:
        self._api, self._permit, self._shown = api, permit, shown
        self._reports, self._report = reports, report
        self._jobs: list[asyncio.Queue[_Job]] = [asyncio.Queue() for _ in range(_WRITERS)]
        self.n_open = 0
        # How often the API server has refused decisions about a workload, one after another.
        self._refusals: dict[str, int] = {}

    def submit(self, decision: Decision, facts: Facts) -> None:
        """Queue a decision."""
        shown = self._shown.get_watched(decision.key)
        ground = shown.ground if shown is not None else None
        writer = zlib.crc32(decision.key.encode()) % _WRITERS
        self.n_open += 1
        self._jobs[writer].put_nowait(_Job(decision, facts, ground, self._permit.get_term()))

    def forget(self, key: str) -> None:
        """Forget a workload that is gone."""
        self._refusals.pop(key, None)

    async def drain(self, seconds: float) -> None:
        """Wait until all decisions are carried out, or the time is up."""
        deadline = asyncio.get_running_loop().time() + seconds
        while self.n_open and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(_POLL_SECONDS)

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for jobs in self._jobs:
                group.create_task(self._carry_out_all(jobs))

    async def _carry_out_all(self, jobs: asyncio.Queue[_Job]) -> None:
        while True:
            job = await jobs.get()
            key = job.decision.key
            try:
                problem = await self._carry_out(job)
            except ApiError as error:
                self._give_up(job, error)
                continue
            finally:
                self.n_open -= 1
            self._refusals.pop(key, None)
            if isinstance(job.decision, LetRun):
                continue
            if problem:
                # The watch is a moment behind: until it has shown the change, the same would be decided again.
                failure = _make_failure(job.decision, problem)
                asyncio.get_running_loop().call_later(_BEHIND_SECONDS, self._report, failure)
            elif isinstance(job.decision, Admit):
                self._report(AdmitDone(key))

    def _give_up(self, job: _Job, error: ApiError) -> None:
        """Report a decision that the API server refuses; later each time, as it may refuse the next one as well."""
        key, is_gone = job.decision.key, answers.is_not_found(error)
        if isinstance(job.decision, LetRun):
            if not is_gone:
                _log.warning(
                    "a workload may run, and its status does not say so yet",
                    workload=key,
                    error=str(error),
                )
            return
        failure = _make_failure(job.decision, str(error))
        if is_gone:
            self._report(failure)
            return
        n = self._refusals[key] = self._refusals.get(key, 0) + 1
        wait = client.get_backoff(n - 1, first=_FIRST_SECONDS, most=_MOST_SECONDS)
        _log.warning("quota not written", workload=key, error=str(error), retry_seconds=wait)
        asyncio.get_running_loop().call_later(wait, self._report, failure)

    async def _carry_out(self, job: _Job) -> str:
        """Write a decision; return why it no longer holds, empty if it is written.

        Raises:
            ApiError: the API server refuses it.
        """
        attempt, n_conflicts = 0, 0
        while True:
            shown = self._find_ground(job)
            if isinstance(shown, str):
                return shown
            await self._reports.quiet(shown)
            try:
                await self._write(job, shown)
            except ApiError as error:
                n_conflicts += answers.is_conflict(error)
                if not answers.is_transient(error) and not (
                    answers.is_conflict(error) and n_conflicts < _TRIES
                ):
                    raise
                await self._read_again(shown, job)
                if answers.is_transient(error):
                    await asyncio.sleep(client.get_backoff(attempt))
                    attempt += 1
            else:
                # To deactivate a workload takes two writes: why, and that it is so.
                if not isinstance(job.decision, Deactivate):
                    return ""

    def _find_ground(self, job: _Job) -> Shown | str:
        """Return the workload on which a decision is to be written; else why not, empty if it is written already."""
        if problem := self._find_objection(job):
            return problem
        shown = self._shown.get(job.decision.key)
        if shown is None or shown.meta.uid != job.decision.uid:
            return "the workload is gone"
        if self._is_done(job.decision, shown):
            return ""
        return shown if self._holds(job, shown) else "the workload has changed"

    def _find_objection(self, job: _Job) -> str:
        """Return why nothing may be written; empty if it may be."""
        if job.term == 0 or job.term != self._permit.get_term():
            return "no longer the leader"
        return "" if self._permit.is_open() else "another controller manages the queues"

    @staticmethod
    def _is_done(decision: Decision, shown: Shown) -> bool:
        """Whether the object says what is to be written, no matter who has written it."""
        if isinstance(decision, Admit):
            given = shown.status.admission
            return given is not None and given.cluster_queue == decision.queue
        if isinstance(decision, LetRun | Preempt):
            return shown.is_true(ADMITTED if isinstance(decision, LetRun) else EVICTED)
        if isinstance(decision, Deactivate):
            return not shown.is_active
        if isinstance(decision, SetPriority):
            return shown.priority == decision.priority
        if isinstance(decision, SetDomains):
            return has_domains(shown.status.admission, dict(decision.sets))
        return lifecycles.is_done(decision, shown.status)

    @staticmethod
    def _holds(job: _Job, shown: Shown) -> bool:
        """Whether a workload is still as it was when it was decided about."""
        if isinstance(job.decision, Admit | LetRun):
            return bool(job.ground == shown.ground)
        if shown.is_true(FINISHED):
            return False
        if isinstance(job.decision, Preempt | SetDomains):
            return shown.status.admission is not None
        return lifecycles.holds(job.decision, shown.status)

    async def _write(self, job: _Job, shown: Shown) -> None:
        now, decision = self._permit.clock(), job.decision
        path, body, say = find_path(self._permit.find_kind(), shown.meta), dict[str, Any](), None
        if isinstance(decision, Deactivate) and shown.is_true(DEACTIVATION_TARGET):
            body["spec"] = {"active": False}
        elif isinstance(decision, SetPriority):
            body["spec"] = {"priority": decision.priority}
        else:
            path += "/status"
            body["status"], say = self._make_status(job, shown, now)
        answer = await self._api.send(
            "PATCH",
            path,
            {
                "metadata": {
                    "uid": shown.meta.uid,
                    "resourceVersion": shown.meta.resource_version,
                },
                **body,
            },
            content_type=client.MERGE_PATCH,
        )
        after = self._take_answer(answer) or shown
        if say is not None:
            say(shown, after, now)

    def _make_status(self, job: _Job, shown: Shown, now: float) -> tuple[dict[str, Any], _Say]:
        """Make the changes of a status, and what is said of them afterwards."""
        decision, changing, reports = job.decision, shown.make_conditions(now), self._reports
        if isinstance(decision, Admit):
            version = self._permit.find_kind().version
            checks = job.facts.checks
            status = conditions.admit(shown.status, changing, decision, checks, now, version)
            return status, partial(reports.report_admitted, decision)
        if isinstance(decision, LetRun):
            return conditions.let_run(changing), partial(reports.report_running, decision.queue)
        if isinstance(decision, Preempt):
            return self._make_preemption(job, shown, decision, now)
        if isinstance(decision, ReplaceSlice):
            by = self._shown.get(decision.by)
            message = conditions.describe_replacement(
                by.meta.uid if by else "", by.job_uid if by else ""
            )
            status = conditions.finish(changing, SLICE_REPLACED, message)
            return status, partial(reports.report_replaced, message)
        if isinstance(decision, SetDomains):
            version = self._permit.find_kind().version
            status = conditions.set_domains(shown.status, dict(decision.sets), version)
        else:
            status = lifecycles.make_status(decision, shown.status, changing, now)
        return status, partial(reports.report_step, decision)

    def _make_preemption(
        self, job: _Job, shown: Shown, decision: Preempt, now: float
    ) -> tuple[dict[str, Any], _Say]:
        by, paths = self._shown.get(decision.by), job.facts.paths
        uids = (by.meta.uid, by.job_uid) if by else ("", "")
        message = conditions.describe_preemption(*uids, decision.reason, paths)
        why = decision.reason, message
        status = conditions.preempt(shown.status, shown.make_conditions(now), *why, now)
        return status, partial(self._reports.report_preempted, by, why, paths)

    async def _read_again(self, shown: Shown, job: _Job) -> None:
        """Read the newest version of a workload; if it cannot be read, it is tried again with the one that is known."""
        path = find_path(self._permit.find_kind(), shown.meta)
        try:
            answer = await self._api.request("GET", path)
        except ApiError as error:
            if answers.is_not_found(error):
                self._shown.drop(job.decision.key)
            elif not answers.is_transient(error):
                raise
        else:
            self._take_answer(answer)

    def _take_answer(self, answer: bytes) -> Shown | None:
        try:
            return self._shown.see(_workloads.decode(answer))
        except msgspec.MsgspecError:
            # The watch will show it.
            return None


def _make_failure(decision: Admit | Preempt | StepDecision, message: str) -> Result:
    if isinstance(decision, Admit):
        return AdmitFailed(decision.key, message)
    keeps_quota = isinstance(decision, SetPriority | SyncChecks | SetDomains)
    return PreemptFailed(decision.key, message, keeps_quota)
