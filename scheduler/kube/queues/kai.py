"""The statuses of KAI's queues, and events about their mistakes: written a second after a change, if they differ.

As long as KAI-Scheduler itself runs, nothing is written on its queues, and nothing in them is decided.

Source: KAI-Scheduler (2026-03), ``pkg/queuecontroller``, ``pkg/apis/scheduling/v2``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from scheduler.api import kai, kinds, names, times, wire
from scheduler.api.door import events, notes
from scheduler.api.door.events import Event
from scheduler.api.door.notes import Note
from scheduler.api.queues.kai import CARD, CPU, GPU, MEMORY, Vector
from scheduler.engine.engine import Engine
from scheduler.engine.questions.queues import KaiFigures, StatusesOfKaiQueues
from scheduler.kube.client import ApiClient
from scheduler.kube.queues.guard import Guard, KaiPods
from scheduler.kube.queues.kai_usage import UsageWriter
from scheduler.kube.queues.status_writes import StatusWrites
from scheduler.kube.report.reporter import Reporter
from scheduler.kube.troubles import Trouble

Json = dict[str, Any]
_KIND = kinds.KAI_QUEUES
_MISCONFIGURED = "Misconfigured"
_SECONDS = 1.0
_MILLI = 1000
# What is said of KAI-Scheduler before the first look.
_UNKNOWN = "it is not known yet whether KAI-Scheduler runs"


class _Known(NamedTuple):
    """A queue as it was seen last."""

    meta: wire.Meta
    status: Mapping[str, Any]


class Ties(NamedTuple):
    """What ties the writer of KAI's queues to the other parts.

    Attributes:
        put: hands an event in.
        is_leading: whether this replica decides.
        clock: gives the time in seconds since 1970.
        troubles: gets what keeps the pods of KAI-Scheduler from being read.
    """

    engine: Engine
    reporter: Reporter
    put: Callable[[Event], None]
    is_leading: Callable[[], bool]
    clock: Callable[[], float]
    troubles: dict[str, Trouble]


class KaiHands:
    """Writes the statuses of KAI's queues, says what is wrong with them, and keeps the engine from those that KAI manages.

    Attributes:
        guard: knows whether KAI-Scheduler runs.
    """

    def __init__(self, api: ApiClient, ties: Ties) -> None:
        self._engine, self._reporter = ties.engine, ties.reporter
        self._is_leading, self._clock = ties.is_leading, ties.clock
        self._put = ties.put
        self.guard = Guard(api, KaiPods(), self._tell_engine, ties.troubles)
        self._usage = UsageWriter(api, ties.engine, self.may_write)
        ties.put(events.KaiQueuesHeld(_UNKNOWN, is_known=False))
        self._known: dict[str, _Known] = {}
        self._problems: dict[str, str] = {}
        self._writes = StatusWrites(ties.reporter)

    def _tell_engine(self) -> None:
        holder = self.guard.holder
        self._put(events.KaiQueuesHeld(f"{holder} runs" if holder else ""))
        self._begin_writing()

    def may_write(self) -> bool:
        """Whether anything may be written: this replica leads, and KAI-Scheduler does not run."""
        return self.guard.is_open and self._is_leading()

    def begin_term(self) -> None:
        """Forget what was written, for others may have written since; report what is wrong."""
        self._begin_writing()

    def _begin_writing(self) -> None:
        self._writes.forget_all()
        for name, problem in self._problems.items() if self.may_write() else ():
            if (known := self._known.get(name)) is not None:
                self._report_problem(known.meta, problem)

    def hear(self, event: Event, found: Iterable[Note]) -> None:
        """Take over what an event says of queues, and what the engine noted about it."""
        match event:
            case events.Seen(kai.Queue() as one):
                status = one.status if isinstance(one.status, Mapping) else {}
                self._known[one.metadata.name] = _Known(one.metadata, status)
                for note in found:
                    if isinstance(note, notes.QueueRead):
                        self._note_problem(one.metadata, note.problem)
            case events.Gone(_KIND.name, key):
                known = self._known.pop(key, None)
                self._problems.pop(key, None)
                if known is not None:
                    self._writes.forget(known.meta.uid)

    def _note_problem(self, meta: wire.Meta, problem: str) -> None:
        """Report what is wrong with a queue, once for each text."""
        before = self._problems.pop(meta.name, "")
        if problem:
            self._problems[meta.name] = problem
            if problem != before and self.may_write():
                self._report_problem(meta, problem)

    def _report_problem(self, meta: wire.Meta, problem: str) -> None:
        words = "Warning", _MISCONFIGURED, problem
        self._reporter.report_on_object(_KIND, meta, words, is_why=True)

    async def run(self) -> None:
        """Write what has changed, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.guard.run())
            group.create_task(self._write_forever())
            group.create_task(self._usage.run())

    async def _write_forever(self) -> None:
        while True:
            await asyncio.sleep(_SECONDS)
            if self._known and self.may_write():
                self.write()

    def write(self) -> None:
        """Write the statuses that differ from what the objects say."""
        for figures in self._engine.ask(StatusesOfKaiQueues()):
            if (known := self._known.get(figures.defined.name)) is not None:
                self._write_one(known, figures)

    def _write_one(self, known: _Known, figures: KaiFigures) -> None:
        wanted = self._make_status(known, figures)
        path = _KIND.find_path(figures.defined.name)
        self._writes.write(path, known.meta, known.status, wanted)

    def _make_status(self, known: _Known, figures: KaiFigures) -> Json:
        before = known.status.get("conditions")
        conditions = before if isinstance(before, list) else []
        there = {one.get("type"): one for one in conditions if isinstance(one, Mapping)}
        return {
            "childQueues": list(figures.children),
            "allocated": _write_amounts(figures.allocated),
            "allocatedNonPreemptible": _write_amounts(figures.fixed),
            "requested": _write_amounts(figures.requested),
            "conditions": [
                self._make_condition(there.get(kind), kind, is_true=is_true)
                for kind, is_true in (
                    ("Orphan", figures.is_orphan),
                    ("OverQuota", figures.is_over_quota),
                )
            ],
        }

    def _make_condition(
        self, before: Mapping[str, Any] | None, kind: str, *, is_true: bool
    ) -> Json:
        status = "True" if is_true else "False"
        if before is not None and before.get("status") == status:
            return dict(before)
        return {
            "type": kind,
            "status": status,
            "lastTransitionTime": times.write_time(self._clock()),
        }


def _write_amounts(held: Vector) -> Json:
    """Write amounts as the API server writes quantities; parts of a card in thousandths."""
    cards = held[GPU] * _MILLI // CARD
    return {
        names.CPU: _write_milli(held[CPU]),
        names.MEMORY: str(held[MEMORY]),
        names.GPU: _write_milli(cards),
    }


def _write_milli(amount: int) -> str:
    return f"{amount}m" if amount % _MILLI else str(amount // _MILLI)
