"""All that is done about queues on a real cluster, behind one door for the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from scheduler.api import kinds, kueue, wire
from scheduler.api.door import events, notes
from scheduler.api.door.events import Event, Heard
from scheduler.api.door.notes import Note
from scheduler.api.door.workload_decisions import Admit, Preempt, Queued, QuotaDecision
from scheduler.api.kind import Kind
from scheduler.api.queues import reading, remarks
from scheduler.api.queues.words import ADMITTED, EVICTED, FINISHED
from scheduler.engine.engine import Engine
from scheduler.engine.questions.queues import ChecksToPass, QueueFigures, QueuePath
from scheduler.kube.client import ApiClient
from scheduler.kube.queues import conditions
from scheduler.kube.queues.finalizers import Finalizers
from scheduler.kube.queues.guard import Guard, KueueLease
from scheduler.kube.queues.reports import WorkloadReports
from scheduler.kube.queues.shown import Shown, ShownWorkloads
from scheduler.kube.queues.statuses import DOUBTFUL, KINDS, MISCONFIGURED, QueueStatuses
from scheduler.kube.queues.writer import Facts, LetRun, QuotaPermit, QuotaWriter
from scheduler.kube.report.metrics.queues import QueueCounts
from scheduler.kube.report.reporter import Reporter
from scheduler.kube.troubles import Trouble
from scheduler.kube.watch.streams import Stream

# Workloads that run, or will not.
_NO_LONGER = ADMITTED, EVICTED, FINISHED
_OF_QUEUES = frozenset(kind.name for kind in kinds.OF_QUEUES)


class Ties(NamedTuple):
    """What ties queues to the rest of a scheduler.

    Attributes:
        engine: decides.
        put: takes events for the engine.
        reporter: writes events and statuses.
        get_term: gives the present term of leadership, 0 when this replica does not lead.
        clock: gives the time in seconds since 1970.
        troubles: gets what keeps something from being read, by its name.
    """

    engine: Engine
    put: Callable[[Heard], None]
    reporter: Reporter
    get_term: Callable[[], int]
    clock: Callable[[], float]
    troubles: dict[str, Trouble]


class QueueHands:
    """Carries decisions about quota out, and writes the statuses of queues.

    The engine decides nothing about quota before it is known that no other controller manages the queues, and that all
    is known here that earlier leaders have written.

    Attributes:
        guard: knows whether another controller manages the queues.
        counts: what has happened to workloads.
    """

    def __init__(self, api: ApiClient, ties: Ties, streams: Sequence[Stream[Any]]) -> None:
        """``streams``: those of all kinds."""
        self._engine, self._put = ties.engine, ties.put
        self._reporter, self._get_term = ties.reporter, ties.get_term
        self._streams = {one.source.kind.name: one for one in streams}
        self._shown = ShownWorkloads()
        self.guard = Guard(
            api,
            KueueLease(ties.engine.config.queues.kueue_namespace),
            self._tell_engine,
            ties.troubles,
        )
        self.counts = QueueCounts()
        self._reports = WorkloadReports(
            ties.reporter,
            self._shown,
            find_kind=self.find_workloads,
            clock=ties.clock,
            may_write=self.may_write,
            counts=self.counts,
        )
        permit = QuotaPermit(
            ties.get_term, lambda: self.guard.is_open, ties.clock, self.find_workloads
        )
        self._writer = QuotaWriter(api, permit, self._shown, self._reports, ties.put)
        self._statuses = QueueStatuses(
            ties.engine,
            ties.reporter,
            find_kind=self._find_kind,
            clock=ties.clock,
            settings=ties.engine.config.queues,
        )
        self._finalizers = Finalizers(
            api, ties.engine, find_kind=self._find_kind, may_write=self.may_write
        )
        # What was wrong with objects, by kind and key.
        self._problems: dict[tuple[str, str], str] = {}
        # The term in which all is known that earlier leaders have written; 0 for none.
        self._caught_up_term = 0
        self._catching_up: asyncio.Task[None] | None = None
        self._is_held = True
        ties.put(events.QueuesHeld(is_held=True))

    def _find_kind(self, name: str) -> Kind:
        return self._streams[name].kind

    def find_workloads(self) -> Kind:
        """Return the kind of workloads in the version that the API server serves."""
        return self._find_kind(kinds.WORKLOADS.name)

    def may_write(self) -> bool:
        """Whether anything may be written: this replica leads, knows all, and manages the queues."""
        return not self._is_held and self._get_term() == self._caught_up_term

    def list_figures(self) -> Sequence[QueueFigures]:
        """List the figures of the statuses as they were read last; nothing where no statuses are written."""
        return self._statuses.figures if self.may_write() else ()

    # Terms.

    def begin_term(self, *, is_listed: bool) -> None:
        """Begin to catch up; ``is_listed``: the lists of workloads began in this term."""
        self._statuses.forget_written()
        term = self._get_term()
        if is_listed:
            self._end_catching_up(term)
            return
        self._catching_up = asyncio.ensure_future(self._catch_up(term))

    async def _catch_up(self, term: int) -> None:
        await self._streams[kinds.WORKLOADS.name].relist()
        self._end_catching_up(term)

    def _end_catching_up(self, term: int) -> None:
        self._caught_up_term = term
        self._tell_engine()

    def end_term(self) -> None:
        """Stop writing: another replica leads."""
        if self._catching_up is not None:
            self._catching_up.cancel()
        self._caught_up_term = 0
        self._tell_engine()

    def _tell_engine(self) -> None:
        is_held = not (self.guard.is_open and self._caught_up_term)
        if is_held != self._is_held:
            self._is_held = is_held
            self._statuses.note_change()
            self._put(events.QueuesHeld(is_held))
            for shown in () if is_held else self._shown.list_all():
                self._let_run(shown)

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.guard.run())
            group.create_task(self._writer.run())
            group.create_task(self._reports.run())
            group.create_task(self._statuses.run(self.may_write))
            group.create_task(self._finalizers.run())

    @property
    def n_open(self) -> int:
        """Number of decisions that are not carried out yet."""
        return self._writer.n_open

    async def drain(self, seconds: float) -> None:
        """Wait until all decisions are carried out, or the time is up."""
        await self._writer.drain(seconds)

    # Events in.

    def hear(self, event: Event, found: Iterable[Note]) -> None:
        """Take over what an event says of queues, and what the engine noted about it."""
        match event:
            case events.Seen(one) if isinstance(one.metadata, wire.GuardedMeta):
                self._finalizers.see(kinds.read_kind_name(one), one.metadata)
            case events.Gone(kind, key):
                self._finalizers.drop(kind, key)
        match event:
            case events.Seen(one) if kinds.read_kind_name(one) in _OF_QUEUES:
                problems = [note.problem for note in found if isinstance(note, notes.QueueRead)]
                self._see(one, problems[0] if problems else "")
            case events.Gone(kind, key) if kind in _OF_QUEUES:
                self._drop(kind, key)
            case events.AdmitDone() | events.AdmitFailed() | events.PreemptFailed():
                self._statuses.note_change()

    def _see(self, found: Any, problem: str) -> None:
        kind, meta = kinds.read_kind_name(found), found.metadata
        self._statuses.note_change()
        if isinstance(found, kueue.Workload):
            shown = self._shown.watch(found)
            if shown.status.admission is not None:
                self._reports.forget(shown.key)
                self._let_run(shown)
        elif kind in KINDS:
            remark = "" if problem else _find_remark(found)
            self._statuses.see(kind, meta, found.status, problem, remark)
            if remark:
                self._note_problem(kind, meta, remark, DOUBTFUL)
                return
        self._note_problem(kind, meta, problem)

    def _let_run(self, shown: Shown) -> None:
        """Let a workload run that has quota and has passed its checks."""
        given = shown.status.admission
        if given is None or not self.may_write() or any(map(shown.is_true, _NO_LONGER)):
            return
        sets = given.pod_set_assignments or ()
        flavors = frozenset(name for one in sets for name in (one.flavors or {}).values())
        checks = self._engine.ask(ChecksToPass(given.cluster_queue, flavors))
        if conditions.may_run(shown.status, checks):
            self._writer.submit(LetRun(shown.key, shown.meta.uid, given.cluster_queue), Facts())

    def _note_problem(
        self, kind: str, meta: wire.Meta, problem: str, reason: str = MISCONFIGURED
    ) -> None:
        """Report what is wrong with an object, once for each text."""
        key = kind, f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
        before = self._problems.pop(key, "")
        if problem:
            self._problems[key] = problem
            if problem != before and self._get_term():
                words = "Warning", reason, problem
                self._reporter.report_on_object(self._find_kind(kind), meta, words, is_why=True)

    def _drop(self, kind: str, key: str) -> None:
        self._statuses.note_change()
        self._problems.pop((kind, key), None)
        if kind == kinds.WORKLOADS.name:
            self._reports.forget(key)
            self._shown.drop(key)
            self._writer.forget(key)
        else:
            self._statuses.drop(kind, key)

    # Decisions out.

    def carry_out(self, decisions: Sequence[QuotaDecision]) -> Iterator[None]:
        """Carry decisions out, piece by piece."""
        if decisions:
            self._statuses.note_change()
        for one in decisions:
            match one:
                case Admit():
                    self._writer.submit(one, Facts(checks=self._engine.ask(_make_question(one))))
                case Preempt():
                    by, goes = (self._engine.ask(QueuePath(key)) for key in (one.by, one.key))
                    self._writer.submit(one, Facts(paths=(by, goes)))
                case Queued():
                    self._reports.note_queued(one)
                case _:
                    self._writer.submit(one, Facts())
            yield


def _find_remark(found: Any) -> str:
    """Find what is written in a queue or a cohort and means nothing; empty for nothing."""
    if isinstance(found, kueue.ClusterQueue):
        return "; ".join(remarks.list_remarks(reading.read_queue(found)))
    if isinstance(found, kueue.Cohort):
        return "; ".join(remarks.list_remarks(reading.read_cohort(found)))
    return ""


def _make_question(decision: Admit) -> ChecksToPass:
    flavors = frozenset(name for one in decision.sets for _, name in one.flavors)
    return ChecksToPass(decision.queue, flavors)
