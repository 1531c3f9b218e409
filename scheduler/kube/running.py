"""The parts at work: in which order they begin and end, and what happens if one of them dies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from scheduler.kube import heap
from scheduler.kube.lead.taking import wait_for_first_try
from scheduler.kube.loop_thread import LoopThread
from scheduler.kube.parts import Parts
from scheduler.kube.tasks import Tasks
from scheduler.kube.watch.verify import verify_forever
from scheduler.kube.webhook.webhook import Webhook

_DRAIN_SECONDS, _REPORT_SECONDS = 10.0, 2.0
# Work that can wait begins so long after the lists, so that the first decisions come before it.
_LOOK_SECONDS, _LATER_SECONDS = 0.1, 1.0
_log = structlog.get_logger("evenkeel")


class RunningParts:
    """Runs the parts of a scheduler. A start calls the methods in the order in which they stand here.

    Args:
        parts: the parts, none of which runs yet.
        lifeline: runs what must go on even if the main loop is busy.
        on_failure: takes the exception that a part has died of.
        freeze: called once, a moment after the lists of the start.
    """

    def __init__(
        self,
        parts: Parts,
        lifeline: LoopThread,
        on_failure: Callable[[BaseException], None],
        *,
        freeze: Callable[[], None] = heap.freeze,
    ) -> None:
        self._parts, self._lifeline, self._on_failure = parts, lifeline, on_failure
        self._freeze = freeze
        self._tasks = Tasks(self._note_death)
        self._reporting: asyncio.Task[None] | None = None

    def watch_health(self) -> None:
        """Begin to check rights, and to log what keeps the replica from being ready."""
        for work in (self._parts.rights.run(), self._parts.probes.log_hindrances()):
            self._tasks.start(self._lifeline.call(work))

    async def read_rare(self) -> None:
        """Read all objects of the rare kinds."""
        await self._parts.rare.read_all(self._parts.api)

    async def take_lease(self) -> None:
        """Begin to try to take the lease, and wait a moment for the first try.

        A process that takes the lease before it lists the pods need not compare afterwards which binds it has not received.
        """
        self._tasks.start(self._lifeline.call(self._parts.lease.run()))
        await wait_for_first_try(self._parts.lease)

    def read_streams(self) -> None:
        """Begin to list and watch the kinds with many objects, and to hand the objects to the engine."""
        self._tasks.start(self._parts.loop.run())
        self._parts.leading.note_lists_begin()
        for stream in self._parts.streams:
            self._tasks.start(stream.run())
        self._tasks.start(self._parts.device_maps.run())

    def run_rest(self) -> None:
        """Begin everything else, at the end of the start."""
        parts = self._parts
        self._reporting = self._tasks.start(parts.reporter.run())
        for work in (
            parts.rare.follow_late(parts.api),
            parts.binder.run(),
            parts.evictor.run(),
            parts.left_locks.run(),
            parts.leading.run(),
            verify_forever(parts.engine, parts.streams, parts.rare, parts.api),
            parts.policy_status.run(parts.loop.count_governed),
            parts.stranded.run(),
            self._freeze_heap(),
            heap.trim_forever(),
        ):
            self._tasks.start(work)
        if parts.foreign is not None:
            self._tasks.start(parts.foreign.run())
        if parts.offers is not None:
            self._tasks.start(parts.offers.run())
        if parts.queues is not None:
            self._tasks.start(parts.queues.run())
        if parts.jobs is not None:
            self._tasks.start(parts.jobs.run())
        if parts.webhook is not None:
            self._tasks.start(self._serve_webhook(parts.webhook))
        if parts.kai is not None:
            self._tasks.start(parts.kai.run())
        if parts.role_label is not None:
            self._tasks.start(parts.role_label.run())
        parts.is_started = True

    async def wait_for_lists(self) -> None:
        """Wait until all streams have listed, and a moment longer, in which a leader takes its first decisions."""
        while not all(stream.is_listed for stream in self._parts.streams):
            await asyncio.sleep(_LOOK_SECONDS)
        await asyncio.sleep(_LATER_SECONDS)

    async def stop(self) -> None:
        """Finish binds in flight, give the lease back, report what is left, and end all parts."""
        parts = self._parts
        parts.is_stopping = True
        await parts.binder.drain(_DRAIN_SECONDS)
        if parts.queues is not None:
            await parts.queues.drain(_DRAIN_SECONDS)
        await self._tasks.end(but=self._reporting)
        # With a bind still on its way the next leader has to fence before it decides.
        settled = 0 if parts.binder.backlog else parts.leading.fenced_reign
        await self._lifeline.call(parts.lease.release(settled_reign=settled))
        if parts.role_label is not None:
            await parts.role_label.step_down()
        # What is left to report can be reported while the next one leads.
        parts.loop.finish()
        if parts.recorder is not None:
            parts.recorder.close()
        await parts.reporter.drain(_REPORT_SECONDS)
        await self._tasks.end()

    async def abandon(self) -> None:
        """Undo a start that has failed: end all parts, and give a lease back in whose term nothing was sent."""
        await self._tasks.end()
        held = self._parts.lease.held
        settled = held.reign if held.is_clean else 0
        await self._lifeline.call(self._parts.lease.release(settled_reign=settled))

    async def _serve_webhook(self, webhook: Webhook) -> None:
        if self._parts.jobs is not None or self._parts.options.config.config_maps:
            # Before, it is not known which jobs have a queue, nor how devices are configured.
            await self.wait_for_lists()
        await webhook.run()

    async def _freeze_heap(self) -> None:
        await self.wait_for_lists()
        self._freeze()

    def _note_death(self, error: BaseException) -> None:
        if not self._parts.is_stopping:
            # A part that died leaves a scheduler that only seems to work: end the process, and let
            # the next one rebuild everything from a list.
            _log.critical("a part of the scheduler failed", exc_info=error)
            self._on_failure(error)
