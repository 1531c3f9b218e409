"""Workloads and queues in a simulation: who gets quota, who has to give it back, and what each queue uses.

A victim gives its quota back at once, and waits again: in a cluster its job has to stop first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from scheduler.api import kueue, wire
from scheduler.api.door import events
from scheduler.api.door.workload_decisions import (
    Admit,
    Deactivate,
    EvictWorkload,
    Preempt,
    Queued,
    QuotaDecision,
    ReplaceSlice,
    SetDomains,
    SetPriority,
    SyncChecks,
)
from scheduler.api.jobs.templates import CannotStart
from scheduler.api.queues.admissions import write_admission, write_new_domains
from scheduler.api.queues.amounts import write_amount, write_quota
from scheduler.api.queues.words import (
    ADMITTED,
    CHECK_PENDING,
    DEACTIVATION_TARGET,
    EVICTED,
    FINISHED,
    PREEMPTED,
    QUOTA_RESERVED,
    SLICE_REPLACED,
)
from scheduler.api.times import write_time
from scheduler.engine.engine import Engine
from scheduler.engine.questions.queues import (
    KnownQueues,
    KnownWorkloads,
    PodsOfWorkload,
    QueueStanding,
    WorkloadStanding,
)
from scheduler.simulate.starting import Starts

Json = dict[str, Any]


_FAILED_TO_START = "FailedToStart"


def read_key(found: wire.Object) -> str:
    """Read the namespace and the name of an object."""
    return f"{found.metadata.namespace}/{found.metadata.name}"


class Queues:
    """The rows of workloads and queues."""

    def __init__(
        self, engine: Engine, queueing: Iterable[wire.Object], pods: Iterable[wire.Pod] = ()
    ) -> None:
        """``queueing``: the objects of queues, workloads among them; ``pods``: those that the engine has seen."""
        self._engine = engine
        found = list(queueing)
        self._workloads = {read_key(one): one for one in found if isinstance(one, kueue.Workload)}
        self._starts = Starts(engine, found, pods)
        self._admitted: dict[str, Admit] = {}
        self._preempted: dict[str, Preempt] = {}
        self._stopped: dict[str, EvictWorkload] = {}
        # Why the pods of a workload that was admitted cannot start.
        self._failed: dict[str, str] = {}

    def carry_out(self, decision: QuotaDecision, at: float) -> Sequence[str]:
        """Do to a workload what its controller would do; return the uids of the pods of which nothing is decided now."""
        if isinstance(decision, Admit):
            self._admitted[decision.key] = decision
            self._see(decision.key, write_admission(decision), at)
            return self._start(decision.key, at)
        if isinstance(decision, Preempt):
            self._preempted.setdefault(decision.key, decision)
            self._admitted.pop(decision.key, None)
            evicted = (EVICTED, PREEMPTED), (PREEMPTED, decision.reason)
            return self._stop(decision.key, evicted, at)
        if isinstance(decision, Deactivate):
            self._deactivate(decision, at)
        elif isinstance(decision, EvictWorkload):
            if self._workloads[decision.key].status.admission is not None:
                self._stopped[decision.key] = decision
            self._wait(decision)
            return self._stop(decision.key, ((EVICTED, decision.reason),), at)
        elif isinstance(decision, SetPriority):
            found = self._workloads[decision.key]
            spec = msgspec.structs.replace(found.spec, priority=decision.priority)
            found = self._workloads[decision.key] = msgspec.structs.replace(found, spec=spec)
            self._engine.handle(events.Seen(found), at)
        elif isinstance(decision, ReplaceSlice):
            self._see(decision.key, None, at, ((FINISHED, SLICE_REPLACED),))
        elif isinstance(decision, SyncChecks | SetDomains):
            found = self._workloads[decision.key]
            status = _write_step(decision, found.status)
            found = self._workloads[decision.key] = msgspec.structs.replace(found, status=status)
            self._engine.handle(events.Seen(found), at)
        elif not isinstance(decision, Queued):
            return self._stop(decision.key, (), at)
        return ()

    def finish(self, key: str, at: float) -> None:
        """Finish a workload: its pods have ended."""
        self._starts.stop(key, at)
        self._see(key, None, at, ((FINISHED, "Succeeded"),))

    def _start(self, key: str, at: float) -> Sequence[str]:
        """Start the pods of a workload; one whose pods cannot start is not tried again."""
        found = self._workloads[key]
        try:
            return self._starts.start(found, at)
        except CannotStart as error:
            self._failed[key] = str(error)
            del self._admitted[key]
            spec = msgspec.structs.replace(found.spec, active=False)
            self._workloads[key] = msgspec.structs.replace(found, spec=spec)
            self._see(key, None, at)
            return ()

    def _deactivate(self, decision: Deactivate, at: float) -> None:
        """Deactivate a workload; the next decision evicts it."""
        found = self._workloads[decision.key]
        spec = msgspec.structs.replace(found.spec, active=False)
        found = self._workloads[decision.key] = msgspec.structs.replace(found, spec=spec)
        target = DEACTIVATION_TARGET, decision.reason
        self._see(decision.key, found.status.admission, at, (target,))

    def _wait(self, decision: EvictWorkload) -> None:
        """Let a workload that is evicted wait until it may be tried again."""
        found, state = self._workloads[decision.key], None
        if decision.requeue_at:
            state = kueue.RequeueState(
                count=decision.n_requeued, requeue_at=write_time(decision.requeue_at)
            )
        status = msgspec.structs.replace(found.status, requeue_state=state)
        self._workloads[decision.key] = msgspec.structs.replace(found, status=status)

    def _stop(self, key: str, conditions: tuple[tuple[str, str], ...], at: float) -> Sequence[str]:
        """Stop a workload: its pods are gone, and it has no quota. Pods that were made for it wait again."""
        stopped = self._starts.stop(key, at)
        self._see(key, None, at, conditions)
        self._starts.come_again(stopped, at)
        return stopped

    def _see(
        self,
        key: str,
        admission: kueue.Admission | None,
        at: float,
        more: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """Let the engine see what has become of a workload."""
        found = self._workloads[key]
        held = ((QUOTA_RESERVED, QUOTA_RESERVED), (ADMITTED, ADMITTED)) if admission else ()
        conditions = [
            kueue.TimedCondition(
                type=kind, status="True", reason=reason, last_transition_time=write_time(at)
            )
            for kind, reason in (*held, *more)
        ]
        status = msgspec.structs.replace(found.status, admission=admission, conditions=conditions)
        found = self._workloads[key] = msgspec.structs.replace(found, status=status)
        self._engine.handle(events.Seen(found), at)

    def list_workloads(self) -> list[Json]:
        """List the rows of workloads, by queue and position."""
        return [self._make_row(one) for one in self._engine.ask(KnownWorkloads())]

    def _make_row(self, one: WorkloadStanding) -> Json:
        namespace, _, name = one.key.partition("/")
        admitted, preempted = self._admitted.get(one.key), self._preempted.get(one.key)
        stopped = self._stopped.get(one.key)
        return {
            "namespace": namespace,
            "name": name,
            "job": _name_job(self._workloads[one.key]),
            "localQueue": one.local.partition("/")[2],
            "queue": one.queue or None,
            "priority": one.priority,
            "state": _find_state(one, is_new=admitted is not None),
            "position": one.position if one.position >= 0 else None,
            "podSets": [] if admitted is None else [_make_set(given) for given in admitted.sets],
            "uses": [
                {"flavor": flavor, "resource": resource, "amount": write_amount(resource, n)}
                for flavor, resource, n in one.flavors
            ],
            "preempted": None
            if preempted is None
            else {"by": preempted.by, "reason": preempted.reason},
            "evicted": None
            if stopped is None
            else {"reason": stopped.reason, "message": stopped.message},
            "reason": _FAILED_TO_START if one.key in self._failed else one.reason,
            "message": self._failed.get(one.key, one.message),
        }

    def explain_held(self) -> dict[str, str]:
        """Say of each pod whose workload has no quota why that is so, by uid; alike workloads have the same text."""
        return {
            uid: _explain(self._make_row(one))
            for one in self._engine.ask(KnownWorkloads())
            if one.where != "holds"
            for uid in self._engine.ask(PodsOfWorkload(one.key))
        }

    def list_queues(self) -> list[Json]:
        """List the rows of queues and cohorts, each tree from its root down."""
        return [write_queue(one) for one in self._engine.ask(KnownQueues())]


def _name_job(found: kueue.Workload) -> Json | None:
    """Name the job of a workload; of a group of pods, the group. None if the workload has no owner."""
    owners = found.metadata.owner_references or []
    if not owners:
        return None
    owner = next((one for one in owners if one.controller), None)
    if owner is None:
        return {"kind": owners[0].kind, "name": found.metadata.name}
    return {"kind": owner.kind, "name": owner.name}


def _explain(row: Json) -> str:
    """Say why a workload has no quota."""
    of_queue = f" of queue {row['queue']}" if row["queue"] else ""
    if not row["reason"]:
        return f"held by quota{of_queue}: its workload has not been tried"
    return f"held by quota{of_queue} ({row['reason']}): {row['message']}"


def _find_state(one: WorkloadStanding, *, is_new: bool) -> str:
    if one.where == "holds":
        return "admitted" if is_new else "running"
    return "waits" if one.where == "waits" else "held"


def _make_set(given: Any) -> Json:
    return {"name": given.name, "count": given.n_pods, "flavors": dict(given.flavors)}


def write_queue(one: QueueStanding) -> Json:
    """Write what a queue or a cohort has."""
    return {
        "name": one.name,
        "kind": "Cohort" if one.is_cohort else "ClusterQueue",
        "parent": one.parent or None,
        "weight": one.weight,
        # An infinite share is no number of JSON.
        "share": None if math.isinf(one.share) else one.share,
        "dominantResource": one.dominant or None,
        "waiting": one.waiting,
        "parked": one.parked,
        "holding": one.holding,
        "admitted": one.admitted,
        "uses": [
            {
                "flavor": use.flavor,
                "resource": use.resource,
                "nominal": write_quota(use.resource, use.nominal),
                "used": write_amount(use.resource, use.used),
                "borrowed": write_amount(use.resource, use.borrowed),
                "lent": write_amount(use.resource, use.lent),
                "available": write_quota(use.resource, max(0, use.available)),
            }
            for use in one.uses
        ],
        "inactive": [{"reason": reason, "message": message} for reason, message in one.inactive],
        "remarks": list(one.remarks),
    }


def _write_step(
    decision: SyncChecks | SetDomains, status: kueue.WorkloadStatus
) -> kueue.WorkloadStatus:
    """Write the admission checks that a workload has to pass, or where its pods are by now."""
    if isinstance(decision, SetDomains):
        given = status.admission or kueue.Admission()
        admission = write_new_domains(given, dict(decision.sets))
        return msgspec.structs.replace(status, admission=admission)
    known = {one.name: one for one in status.admission_checks or ()}
    fresh = {name: kueue.CheckState(name=name, state=CHECK_PENDING) for name in decision.names}
    checks = [known.get(name, one) for name, one in fresh.items()]
    return msgspec.structs.replace(status, admission_checks=checks)
