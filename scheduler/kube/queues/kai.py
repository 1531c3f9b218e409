"""The statuses of KAI's queues, and events about their mistakes: written a second after a change, if they differ.

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
from scheduler.kube.queues.status_writes import StatusWrites
from scheduler.kube.report.reporter import Reporter

Json = dict[str, Any]
_KIND = kinds.KAI_QUEUES
_MISCONFIGURED = "Misconfigured"
_SECONDS = 1.0
_MILLI = 1000


class _Known(NamedTuple):
    """A queue as it was seen last."""

    meta: wire.Meta
    status: Mapping[str, Any]


class KaiHands:
    """Writes the statuses of KAI's queues, and says what is wrong with them."""

    def __init__(
        self,
        engine: Engine,
        reporter: Reporter,
        *,
        is_leading: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        """``clock`` gives the time in seconds since 1970."""
        self._engine, self._reporter = engine, reporter
        self._is_leading, self._clock = is_leading, clock
        self._known: dict[str, _Known] = {}
        self._problems: dict[str, str] = {}
        self._writes = StatusWrites(reporter)

    def begin_term(self) -> None:
        """Forget what was written, for another replica may have written since; report what is wrong."""
        self._writes.forget_all()
        for name, problem in self._problems.items():
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
            if problem != before and self._is_leading():
                self._report_problem(meta, problem)

    def _report_problem(self, meta: wire.Meta, problem: str) -> None:
        words = "Warning", _MISCONFIGURED, problem
        self._reporter.report_on_object(_KIND, meta, words, is_why=True)

    async def run(self) -> None:
        """Write what has changed, until cancelled."""
        while True:
            await asyncio.sleep(_SECONDS)
            if self._known and self._is_leading():
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
