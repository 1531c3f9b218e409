"""Carries decisions out: a bounded number of requests is in flight, and each result is reported once.

A decision becomes a job. A worker (``crew``) takes the steps before the bind (``steps``), binds (``binding``) and reports.
A step may make the job wait without a worker. Where a device plugin serves the node's pods one at a time, the job waits
for its turn as well (``turns``), between the steps before the turn and those that are taken in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping, Sequence
from typing import NamedTuple

import structlog

from scheduler.api import wire
from scheduler.api.door.decisions import Bind
from scheduler.api.door.events import BindDone, BindFailed, PluginSilent
from scheduler.devices import answers
from scheduler.devices.answers import Drivers
from scheduler.devices.table import CARD_DRIVERS
from scheduler.engine.questions.waiting import Place
from scheduler.errors import ApiError
from scheduler.kube.bind.binding import Binding, Fate
from scheduler.kube.bind.crew import Crew
from scheduler.kube.bind.fence import Gate
from scheduler.kube.bind.holders import has_answer, is_admitted
from scheduler.kube.bind.jobs import (
    FIRST,
    Contended,
    GiveBack,
    Impossible,
    Job,
    OpenJobs,
    Release,
    Start,
    Step,
    Waits,
)
from scheduler.kube.bind.steps import Steps
from scheduler.kube.bind.turns import Effect, Turns
from scheduler.state.pods import PodRecord

_LOOK_SECONDS = 0.1
_log = structlog.get_logger("evenkeel.binder")


class Permit(NamedTuple):
    """What the binder calls right before a write.

    Attributes:
        get_term: gives the present term of leadership, 0 when this replica does not lead.
        find_objection: says why a decision may no longer be carried out; empty when it may. The API server itself
            accepts a node that does not exist.
        quiet_pod: waits, before the bind of the pod with this uid, until no other write on the pod is under way.
        get_drivers: gives the drivers of cards by name.
        find_place: gives the place of the pod with this uid among those that wait.
    """

    get_term: Callable[[], int]
    find_objection: Callable[[Bind], str]
    quiet_pod: Callable[[str], Awaitable[None]]
    get_drivers: Callable[[], Drivers] = lambda: CARD_DRIVERS
    find_place: Callable[[str], Place] = lambda _: FIRST


class BindWriters(NamedTuple):
    """What carries a decision out.

    Attributes:
        binding: writes one bind until its outcome is known.
        steps: what must be done before a bind, in this order.
    """

    binding: Binding
    steps: Sequence[Step] = ()


class Binder:
    """Binds pods; reports each result through ``report`` exactly once.

    Args:
        writers: what carries a decision out.
        permit: what the binder calls right before a write.
        report: takes BindDone, BindFailed and PluginSilent.
        in_flight: the most requests at once.
    """

    def __init__(
        self,
        writers: BindWriters,
        permit: Permit,
        report: Callable[[BindDone | BindFailed | PluginSilent], None],
        *,
        in_flight: int,
    ) -> None:
        self._binding, self._steps = writers.binding, Steps(writers.steps)
        self._permit, self._report = permit, report
        self._turns, self._begins_turns = Turns(), False
        self._open = OpenJobs()
        self._crew = Crew(in_flight, self._work_on)

    @property
    def backlog(self) -> int:
        """Number of decisions that are not settled yet, including those that wait for a device plugin's turn."""
        return len(self._open)

    @property
    def n_queued(self) -> int:
        """Number of decisions that wait for nothing but a free request."""
        return self._crew.n_queued

    def submit_binds(self, binds: Sequence[Bind], pods: Mapping[str, PodRecord]) -> None:
        """Queue the binds of one plan; ``pods`` by uid."""
        term, now = self._permit.get_term(), _now()
        drivers = self._permit.get_drivers()
        jobs = [Job(bind, pods[bind.uid], term, now, drivers=drivers) for bind in binds]
        for job in jobs:
            job.place = self._permit.find_place(job.uid)
            job.others = jobs if len(jobs) > 1 else ()
            self._open.add_job(job)
        for job in jobs:
            self._queue_job(job)

    def _queue_job(self, job: Job) -> None:
        """Hand a job to a worker, or let it wait for its turn if nothing is to be done before the turn."""
        needs_turn = job.takes_turns and not (job.has_turn or job.why_withdrawn)
        if needs_turn and not self._steps.has_step_before_turn(job):
            self._apply(self._turns.add_job(job))
            self._begin_turns_soon()
        else:
            self._crew.put_job(job)

    def _begin_turns_soon(self) -> None:
        """Begin turns once all that was decided together is queued: which of it comes first does not hang on the order of calls."""
        if not self._begins_turns:
            self._begins_turns = True
            asyncio.get_running_loop().call_soon(self._begin_turns)

    def _begin_turns(self) -> None:
        self._begins_turns = False
        self._apply(self._turns.begin_turns())

    def note_pod_gone(self, uid: str) -> None:
        """Note that a pod is gone: write nothing for it if that has not begun."""
        self._open.note_pod_gone(uid)
        self._apply(self._turns.note_pod_gone(uid))
        if (job := self._open.get_job(uid)) and self._steps.drop_job(job):
            self._give_back_job(job, "the pod is gone")

    def withdraw_bind(self, uid: str, why: str) -> bool:
        """Take a decision back if no bind of it was sent; return whether there was such a decision."""
        job = self._open.get_job(uid)
        if job is None or job.is_sent or job.why_withdrawn:
            return False
        job.why_withdrawn = why
        self._stop_job(job)
        return True

    def _stop_job(self, job: Job) -> None:
        """End a withdrawn job, if no worker has it."""
        if self._steps.drop_job(job):
            self._give_back_job(job, job.why_withdrawn)
        else:
            self._stop_waiting(job)

    def _stop_waiting(self, job: Job) -> None:
        """End a withdrawn job, if it waits for its turn; otherwise the worker that has it ends it."""
        if job.takes_turns and job in self._turns.list_waiting(job.node):
            self._apply(self._turns.withdraw_job(job, job.why_withdrawn))

    def reconcile_pods(self, pods: Container[str]) -> None:
        """After a list: note that all other pods are gone."""
        for uid in {*self._open, *self._turns.list_pods()}:
            if uid not in pods:
                self.note_pod_gone(uid)

    def see_pod(self, pod: wire.Pod) -> None:
        """Watch for the plugin's answer on pods whose cards are being allocated."""
        of_pod = pod.metadata.uid, pod.spec.node_name or "", _now()
        if has_answer(pod, self._permit.get_drivers()):
            self._apply(self._turns.note_answer(*of_pod))
        elif is_admitted(pod):
            self._apply(self._turns.note_admitted(*of_pod))

    def see_node(self, node: wire.Node) -> None:
        """Let the next pod go to a node without a lock, and withdraw pods that the node no longer takes."""
        name = node.metadata.name
        for job in self._turns.list_waiting(name):
            if why := self._permit.find_objection(job.bind):
                self._apply(self._turns.withdraw_job(job, why))
        if not answers.is_locked(self._permit.get_drivers(), node.metadata.annotations or {}):
            self._apply(self._turns.note_unlocked(name))

    def note_node_gone(self, name: str) -> None:
        """Note that a node is gone: no plugin will answer for it, so the jobs that wait for it are given back."""
        self._apply(self._turns.note_node_gone(name))
        self._continue_jobs(self._steps.note_node_gone(name))

    def see_object(self, kind: str, namespace: str, name: str) -> None:
        """Let jobs go on that waited for an object, which is new, changed or gone."""
        self._continue_jobs(self._steps.see_object(kind, namespace, name))

    def reconcile_nodes(self, nodes: Container[str]) -> None:
        """After a list: note that all other nodes are gone."""
        for name in self._turns.list_nodes():
            if name not in nodes:
                self.note_node_gone(name)

    def give_back_waiting(self, why: str) -> None:
        """Give back the jobs that wait for their turn before a node, or for a step."""
        self._apply(self._turns.give_up_waiting(why))
        self._continue_jobs(self._steps.give_up_waiting(why))

    async def drain(self, seconds: float) -> None:
        """For a stop: finish the jobs in flight, and give back those that wait."""
        self.give_back_waiting("stopped before its turn")
        deadline = _now() + seconds
        while len(self._open) and _now() < deadline:
            await asyncio.sleep(0.01)

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._crew.run())
            group.create_task(self._watch_turns())

    async def _watch_turns(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            self._apply(self._turns.pass_time(_now()))
            self._continue_jobs(self._steps.pass_time(_now()))

    def _continue_jobs(self, effects: Iterable[Start | GiveBack]) -> None:
        """Go on with jobs that have waited for a step."""
        for effect in effects:
            if isinstance(effect, GiveBack):
                self._give_back_job(*effect)
            else:
                self._queue_job(effect.job)

    def _give_back_job(self, job: Job, why: str) -> None:
        """End a job that no worker has."""
        if job.begun_steps or job.has_turn:
            # A worker undoes what was begun.
            job.why_withdrawn = job.why_withdrawn or why
            self._crew.put_job(job)
        else:
            self._end_job(job, job.describe_failure(why, is_gone=job.is_pod_gone))

    def _apply(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Start(job):
                    job.has_turn = True
                    self._crew.put_job(job)
                case GiveBack(job, why):
                    self._give_back_job(job, why)
                case Release(job):
                    self._crew.put_job(job)
                case PluginSilent():
                    self._report(effect)

    # What a worker does with one job.

    async def _work_on(self, job: Job) -> None:
        if job.is_to_release:
            await self._steps.undo_turn(job, lambda: self._may_write(job))
            return
        try:
            await self._carry_out(job)
        except (ApiError, Impossible) as error:
            await self._end_failed(job, str(error))
        except Exception as error:  # noqa: BLE001
            # Whatever one object provokes, the others are bound.
            _log.exception("a bind failed in an unexpected way", pod=job.pod.key)
            if job.is_sent:
                await self._end_uncertain(job, f"internal error: {error!r}")
            else:
                await self._end_failed(job, f"internal error: {error!r}")

    async def _carry_out(self, job: Job) -> None:
        if obstacle := self._find_obstacle(job):
            await self._end_failed(job, obstacle, is_gone=job.is_pod_gone)
            return
        match await self._steps.take(job, lambda: self._may_write(job)):
            case Waits():
                self._let_wait(job)
                return
            case Contended() as contended:
                await self._put_back_contended(job, contended)
                return
        if job.has_turn:
            self._apply(self._turns.note_taken(job))
        elif job.takes_turns:
            self._queue_job(job)
            return
        await self._permit.quiet_pod(job.uid)
        fate, message = await self._binding.settle_bind(
            job.bind,
            job.pod,
            find_obstacle=lambda: self._begin_to_send(job),
            note_doubt=lambda: self._note_doubt(job),
            since=job.pod_version,
        )
        await self._end_with_fate(job, fate, message)

    def _let_wait(self, job: Job) -> None:
        """Let a job wait for a step, unless the job was to end meanwhile."""
        why = job.why_withdrawn or ("the pod is gone" if job.is_pod_gone else "")
        if why and self._steps.drop_job(job):
            self._give_back_job(job, why)

    async def _put_back_contended(self, job: Job, contended: Contended) -> None:
        """Let a job wait again before its node; a job that takes no turns is decided anew."""
        if not job.has_turn:
            await self._end_failed(job, f"contended by {contended.by}")
            return
        job.has_turn = False
        self._apply(self._turns.note_contended(job, _now(), contended.holder))
        if job.why_withdrawn:
            self._stop_waiting(job)

    async def _end_uncertain(self, job: Job, message: str) -> None:
        """End a job when it is not known how far it came: a write may be on its way."""
        self._note_doubt(job)
        fate = await self._binding.ascertain_fate(job.bind, job.pod, lambda: self._note_doubt(job))
        await self._end_with_fate(job, fate, message)

    def _note_doubt(self, job: Job) -> Gate:
        """Note that the first write did not settle a bind; return what to enter for every further request."""
        if job.has_turn:
            self._turns.note_doubt(job, _now())
        return self._crew.relieve_worker(job)

    def _may_write(self, job: Job) -> bool:
        """Whether this is the term of the decision: a leader in between may have allocated its cards to others.

        A decision made while the lease lapsed has none.
        """
        return job.term != 0 and job.term == self._permit.get_term()

    def _begin_to_send(self, job: Job) -> str:
        """Return why no bind may be sent at this moment; if nothing is in the way, note that it is sent."""
        obstacle = self._find_obstacle(job)
        job.is_sent = job.is_sent or not obstacle
        return obstacle

    def _find_obstacle(self, job: Job) -> str:
        """Return why nothing may be written for a decision at this moment; empty if nothing is in the way."""
        if job.is_pod_gone:
            return "the pod is gone"
        if job.why_withdrawn:
            return job.why_withdrawn
        if not self._may_write(job):
            return "no longer the leader"
        return self._permit.find_objection(job.bind)

    async def _end_with_fate(self, job: Job, fate: Fate, message: str) -> None:
        if fate == Fate.DONE:
            self._end_bound(job)
        else:
            await self._end_failed(job, message, is_gone=fate == Fate.GONE or job.is_pod_gone)

    def _end_bound(self, job: Job) -> None:
        now = _now()
        if job.has_turn:
            self._apply(self._turns.note_bound(job, now))
            if job.is_pod_gone:
                self._apply(self._turns.note_pod_gone(job.uid))
        self._end_job(job, BindDone(job.uid))

    async def _end_failed(self, job: Job, message: str, *, is_gone: bool = False) -> None:
        if job.begun_steps:
            async with self._crew.get_gate(job):
                await self._steps.undo(job, lambda: self._may_write(job))
        if job.has_turn:
            self._apply(self._turns.note_failed(job))
        self._end_job(job, job.describe_failure(message, is_gone=is_gone))

    def _end_job(self, job: Job, result: BindDone | BindFailed) -> None:
        self._open.end_job(job)
        self._report(result)
        if isinstance(result, BindFailed):
            self._withdraw_others(job)

    def _withdraw_others(self, job: Job) -> None:
        """Withdraw the binds of the same plan that were not sent yet: a plan stands or falls as a whole."""
        others = [one for one in job.others if one is self._open.get_job(one.uid)]
        unsent = [one for one in others if not (one.is_sent or one.why_withdrawn)]
        # All of them are withdrawn before the first one ends: its end leads here again.
        for one in unsent:
            one.why_withdrawn = f"pod {job.pod.key} of its group was not bound"
        for one in unsent:
            self._stop_job(one)


def _now() -> float:
    return asyncio.get_running_loop().time()
