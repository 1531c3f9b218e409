"""Carry out decisions: a bounded number of requests in flight, each result reported once.

A decision becomes a job. A worker (``crew``) takes the steps before the bind (``steps``), binds (``binding``) and reports.
A step may have the job wait without a worker. Where a device plugin serves the node's pods one at a time, the job waits
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
from scheduler.devices import table as devices
from scheduler.errors import ApiError
from scheduler.kube.bind.binding import Binding, Fate
from scheduler.kube.bind.crew import Crew
from scheduler.kube.bind.fence import Gate
from scheduler.kube.bind.jobs import (
    Contended,
    GiveBack,
    Impossible,
    Job,
    OpenJobs,
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
    """What is asked right before a write.

    Attributes:
        term: the present term of leadership, 0 when not leading.
        objection: why a decision may no longer be carried out, empty when it may. The API server itself
            accepts a node that does not exist.
        quiet: awaited with the pod's uid before its bind, until no other write on it is under way.
    """

    term: Callable[[], int]
    objection: Callable[[Bind], str]
    quiet: Callable[[str], Awaitable[None]]


class Writes(NamedTuple):
    """What writes for a decision.

    Attributes:
        binding: one bind until its outcome is known.
        steps: what must be done before a bind, in that order.
    """

    binding: Binding
    steps: Sequence[Step] = ()


class Binder:
    """Binds pods; reports each result through ``report`` exactly once.

    Args:
        writes: what writes for a decision.
        permit: what is asked right before a write.
        report: takes BindDone, BindFailed and PluginSilent.
        in_flight: most requests at once.
        allocate_timeout: seconds that the device plugin gets per pod.
    """

    def __init__(
        self,
        writes: Writes,
        permit: Permit,
        report: Callable[[BindDone | BindFailed | PluginSilent], None],
        *,
        in_flight: int,
        allocate_timeout: float,
    ) -> None:
        self._binding, self._steps = writes.binding, Steps(writes.steps)
        self._permit, self._report = permit, report
        self._turns = Turns(allocate_timeout)
        self._open = OpenJobs()
        self._crew = Crew(in_flight, self._work)

    @property
    def backlog(self) -> int:
        """Decisions not yet settled; those that wait for a device plugin's turn included."""
        return len(self._open)

    @property
    def n_queued(self) -> int:
        """Decisions that wait for nothing but a free request."""
        return self._crew.n_queued

    def submit(self, binds: Sequence[Bind], pods: Mapping[str, PodRecord]) -> None:
        """Queue the binds of one plan; ``pods`` by uid."""
        term, now = self._permit.term(), _now()
        jobs = [Job(bind, pods[bind.uid], term, now) for bind in binds]
        for job in jobs:
            job.others = jobs if len(jobs) > 1 else ()
            self._open.begin(job)
        for job in jobs:
            self._enter(job)

    def _enter(self, job: Job) -> None:
        """Hand a job to a worker, or let it wait for its turn where nothing is to be done before."""
        needs_turn = job.takes_turns and not (job.has_turn or job.withdrawn)
        if needs_turn and not self._steps.are_before_turn(job):
            self._do(self._turns.submitted(job))
        else:
            self._crew.put(job)

    def cancel(self, uid: str) -> None:
        """The pod is gone: do not write if that has not begun."""
        self._open.pod_gone(uid)
        self._do(self._turns.pod_gone(uid))
        if (job := self._open.get_job(uid)) and self._steps.drop(job):
            self._give_back(job, "the pod is gone")

    def withdraw(self, uid: str, why: str) -> bool:
        """Take a decision back of which no bind was sent; whether there was one."""
        job = self._open.get_job(uid)
        if job is None or job.is_sent or job.withdrawn:
            return False
        job.withdrawn = why
        self._stop(job)
        return True

    def _stop(self, job: Job) -> None:
        """End a job that was withdrawn, if no worker has it."""
        if self._steps.drop(job):
            self._give_back(job, job.withdrawn)
        else:
            self._stop_waiting(job)

    def _stop_waiting(self, job: Job) -> None:
        """End a job that was withdrawn, if it waits for its turn; otherwise the worker that has it ends it."""
        if job.takes_turns and job in self._turns.waiting(job.node):
            self._do(self._turns.withdrawn(job, job.withdrawn))

    def reconcile(self, pods: Container[str]) -> None:
        """After a list: pods that are not among these are gone."""
        for uid in {*self._open, *self._turns.pods()}:
            if uid not in pods:
                self.cancel(uid)

    def see_pod(self, pod: wire.Pod) -> None:
        """Watch for the plugin's answer on pods whose cards are being allocated."""
        if devices.is_served(pod.metadata.annotations or {}):
            node = pod.spec.node_name or ""
            self._do(self._turns.answered(pod.metadata.uid, node, _now()))

    def see_node(self, node: wire.Node) -> None:
        """A node without lock is free for its next pod; pods it no longer takes need not wait."""
        name = node.metadata.name
        for job in self._turns.waiting(name):
            if why := self._permit.objection(job.bind):
                self._do(self._turns.withdrawn(job, why))
        if not devices.is_locked(node.metadata.annotations or {}):
            self._do(self._turns.unlocked(name))

    def node_gone(self, name: str) -> None:
        """Nobody will answer for this node: what waits for it is given back."""
        self._do(self._turns.node_gone(name))
        self._go_on(self._steps.node_gone(name))

    def see_object(self, kind: str, namespace: str, name: str) -> None:
        """An object is there, another, or gone."""
        self._go_on(self._steps.see_object(kind, namespace, name))

    def reconcile_nodes(self, nodes: Container[str]) -> None:
        """After a list: nodes that are not among these are gone."""
        for name in self._turns.nodes():
            if name not in nodes:
                self.node_gone(name)

    def give_back(self, why: str) -> None:
        """Give up what waits for a node's turn, or for a step."""
        self._do(self._turns.given_up(why))
        self._go_on(self._steps.given_up(why))

    async def drain(self, seconds: float) -> None:
        """Finish what is in flight; give back what waits for a turn. For a stop."""
        self.give_back("stopped before its turn")
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
            self._do(self._turns.passed(_now()))
            self._go_on(self._steps.passed(_now()))

    def _go_on(self, effects: Iterable[Start | GiveBack]) -> None:
        """With jobs that have waited for a step."""
        for effect in effects:
            if isinstance(effect, GiveBack):
                self._give_back(*effect)
            else:
                self._enter(effect.job)

    def _give_back(self, job: Job, why: str) -> None:
        """End a job that no worker has."""
        if job.begun or job.has_turn:
            # A worker undoes that.
            job.withdrawn = job.withdrawn or why
            self._crew.put(job)
        else:
            self._end(job, BindFailed(job.uid, why, job.pod_is_gone))

    def _do(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Start(job):
                    job.has_turn = True
                    self._crew.put(job)
                case GiveBack(job, why):
                    self._give_back(job, why)
                case PluginSilent():
                    self._report(effect)

    # A worker's way with one job.

    async def _work(self, job: Job) -> None:
        try:
            await self._carry_out(job)
        except (ApiError, Impossible) as error:
            await self._fail(job, str(error))
        except Exception as error:  # noqa: BLE001
            # Whatever one object provokes, the others are bound.
            _log.exception("a bind failed in an unexpected way", pod=job.pod.key)
            if job.is_sent:
                await self._ascertain(job, f"internal error: {error!r}")
            else:
                await self._fail(job, f"internal error: {error!r}")

    async def _carry_out(self, job: Job) -> None:
        if obstacle := self._obstacle(job):
            await self._fail(job, obstacle, gone=job.pod_is_gone)
            return
        answer = await self._steps.take(job, lambda: self._may_write(job))
        match answer:
            case Waits():
                self._wait(job)
                return
            case Contended(by):
                await self._contend(job, by)
                return
        if job.has_turn:
            self._do(self._turns.taken(job))
        elif job.takes_turns:
            self._enter(job)
            return
        await self._permit.quiet(job.uid)
        fate, message = await self._binding.settle(
            job.bind,
            job.pod,
            obstacle=lambda: self._begin_to_send(job),
            doubt=lambda: self._doubt(job),
        )
        await self._settle(job, fate, message)

    def _wait(self, job: Job) -> None:
        """For a step, unless the job was to end meanwhile."""
        why = job.withdrawn or ("the pod is gone" if job.pod_is_gone else "")
        if why and self._steps.drop(job):
            self._give_back(job, why)

    async def _contend(self, job: Job, by: str) -> None:
        """Let a job wait at the head of those before its node; one that takes no turns is decided anew."""
        if not job.has_turn:
            await self._fail(job, f"contended by {by}")
            return
        job.has_turn = False
        self._do(self._turns.contended(job, _now()))
        if job.withdrawn:
            self._stop_waiting(job)

    async def _ascertain(self, job: Job, message: str) -> None:
        """End a job of which nobody knows how far it came: a write may be on its way."""
        self._doubt(job)
        fate = await self._binding.ascertain(job.bind, job.pod, lambda: self._doubt(job))
        await self._settle(job, fate, message)

    def _doubt(self, job: Job) -> Gate:
        """The first write did not settle it; what to enter for every request from here on."""
        if job.has_turn:
            self._turns.doubted(job, _now())
        return self._crew.relieve(job)

    def _may_write(self, job: Job) -> bool:
        """Whether this is the term of the decision: a leader in between may have given its cards away.

        A decision made while the lease lapsed has none.
        """
        return job.term != 0 and job.term == self._permit.term()

    def _begin_to_send(self, job: Job) -> str:
        """Why no bind may be sent at this moment; when nothing is in the way, it is sent now."""
        obstacle = self._obstacle(job)
        job.is_sent = job.is_sent or not obstacle
        return obstacle

    def _obstacle(self, job: Job) -> str:
        """Why nothing may be written for a decision at this moment, empty when nothing is in the way."""
        if job.pod_is_gone:
            return "the pod is gone"
        if job.withdrawn:
            return job.withdrawn
        if not self._may_write(job):
            return "no longer the leader"
        return self._permit.objection(job.bind)

    async def _settle(self, job: Job, fate: Fate, message: str) -> None:
        if fate == Fate.DONE:
            self._bound(job)
        else:
            await self._fail(job, message, gone=fate == Fate.GONE or job.pod_is_gone)

    def _bound(self, job: Job) -> None:
        now = _now()
        if job.has_turn:
            self._do(self._turns.bound(job, now))
            if job.pod_is_gone:
                self._do(self._turns.pod_gone(job.uid))
        self._end(job, BindDone(job.uid))

    async def _fail(self, job: Job, message: str, *, gone: bool = False) -> None:
        if job.begun:
            async with self._crew.gate(job):
                await self._steps.undo(job, lambda: self._may_write(job))
        if job.has_turn:
            self._do(self._turns.failed(job))
        self._end(job, BindFailed(job.uid, message, gone))

    def _end(self, job: Job, result: BindDone | BindFailed) -> None:
        self._open.end(job)
        self._report(result)
        if isinstance(result, BindFailed):
            self._withdraw_others(job)

    def _withdraw_others(self, job: Job) -> None:
        """A plan stands or falls as a whole: where one bind came to nothing, no other is sent that was not yet."""
        others = [one for one in job.others if one is self._open.get_job(one.uid)]
        unsent = [one for one in others if not (one.is_sent or one.withdrawn)]
        # All of them first: each that ends comes here, too.
        for one in unsent:
            one.withdrawn = f"pod {job.pod.key} of its group was not bound"
        for one in unsent:
            self._stop(one)


def _now() -> float:
    return asyncio.get_running_loop().time()
