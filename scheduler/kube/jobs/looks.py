"""Looks at what the watches have shown: many at a time, each by one worker, and again after a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar

import structlog

from scheduler.api import wire
from scheduler.api.jobs.importance import ClassMissing
from scheduler.api.kind import Kind
from scheduler.errors import ApiError, BadInput
from scheduler.kube import answers, client
from scheduler.kube.jobs.deeds import Refusal, Words
from scheduler.kube.report.reporter import Reporter

K = TypeVar("K")
_WORKERS = 16
# After a failure something is looked at again so long after it at first, and at most.
_FIRST_SECONDS, _MOST_SECONDS = 0.2, 60.0
_MISTAKE, _NO_CLASS = "InvalidJob", "WorkloadPriorityClassNotFound"
_log = structlog.get_logger("evenkeel.jobs")
# The kind and the metadata of an object.
Named = tuple[Kind, wire.Meta]


class Subject(Protocol[K]):
    """What is looked at."""

    def list_keys(self) -> Iterable[K]:
        """List the keys of all that is known."""

    def needs_look(self, key: K) -> bool:
        """Whether there may be something to do."""

    async def look_at(self, key: K) -> bool:
        """Do what is to be done; return whether there may be more.

        Raises:
            ApiError: the API server refuses.
            BadInput: an object says something that cannot be.
            ClassMissing: a priority is not known.
            Refusal: a job names a workload that it cannot have.
        """

    def find_object(self, key: K) -> Named | None:
        """Find the object on which it is reported what is wrong; None if it is gone."""


class Looks(Generic[K]):
    """A queue of keys, each in it at most once, and the workers that take them."""

    def __init__(self, subject: Subject[K], reporter: Reporter) -> None:
        self._subject, self._reporter = subject, reporter
        # What to look at, in its order; what is being looked at; how often in a row that has failed.
        self._waiting: dict[K, None] = {}
        self._busy: set[K] = set()
        self._failures: dict[K, int] = {}
        # What is wrong with which version of which object: the reason of an event, and its note.
        self._mistakes: dict[K, tuple[Named, str, str]] = {}
        self._wake = asyncio.Event()
        self._is_open = False

    @property
    def n_waiting(self) -> int:
        """How many wait to be looked at."""
        return len(self._waiting)

    def open(self) -> None:
        """Begin to look, with all there is."""
        self._is_open = True
        self._waiting.clear()
        for key in list(self._subject.list_keys()):
            self.note(key)
        for named, reason, text in self._mistakes.values():
            self._report(named, ("Warning", reason, text))

    def close(self) -> None:
        """Look no more."""
        self._is_open = False
        self._waiting.clear()

    def note(self, key: K) -> None:
        """Have something looked at if there may be something to do."""
        if self._is_open and key not in self._waiting and self._subject.needs_look(key):
            self._waiting[key] = None
            self._wake.set()

    def forget(self, key: K) -> None:
        """Forget what was wrong with something that is gone, or is right again."""
        self._mistakes.pop(key, None)
        self._failures.pop(key, None)

    def note_mistake(
        self, key: K, named: Named | None, error: Exception, reason: str = _MISTAKE
    ) -> None:
        """Report what is wrong with an object, once for each text and version."""
        if named is None or self._mistakes.get(key) == (named, reason, str(error)):
            return
        self._mistakes[key] = named, reason, str(error)
        if self._is_open:
            self._report(named, ("Warning", reason, str(error)))

    def _report(self, named: Named, words: Words) -> None:
        self._reporter.report_on_object(*named, words)

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_WORKERS):
                group.create_task(self._look_at_all())

    async def _look_at_all(self) -> None:
        while True:
            key = self._take_next()
            if key is None:
                self._wake.clear()
                await self._wake.wait()
                continue
            self._busy.add(key)
            try:
                has_more = await self._subject.look_at(key)
            except ClassMissing as error:
                self._note_missing_class(key, error)
            except BadInput as error:
                self.note_mistake(key, self._subject.find_object(key), error)
            except Refusal as error:
                self.note_mistake(key, self._subject.find_object(key), error, error.reason)
            except ApiError as error:
                self._note_refusal(key, error)
            else:
                self.forget(key)
                if has_more and self._is_open:
                    self._waiting[key] = None
            finally:
                self._busy.discard(key)
            if key in self._waiting:
                # It was noted while it was looked at.
                self._wake.set()

    def _take_next(self) -> K | None:
        for key in self._waiting:
            if key not in self._busy:
                del self._waiting[key]
                return key
        return None

    def _note_missing_class(self, key: K, error: ClassMissing) -> None:
        named = self._subject.find_object(key)
        if named is not None:
            self._report(named, ("Warning", _NO_CLASS, str(error)))
        self._look_later(key)

    def _note_refusal(self, key: K, error: ApiError) -> None:
        if answers.is_invalid(error):
            self.note_mistake(key, self._subject.find_object(key), error)
        elif not answers.is_conflict(error):
            _log.warning("a job is looked at again", job=str(key), error=str(error))
        self._look_later(key)

    def _look_later(self, key: K) -> None:
        n = self._failures[key] = self._failures.get(key, 0) + 1
        wait = client.get_backoff(n - 1, first=_FIRST_SECONDS, most=_MOST_SECONDS)
        asyncio.get_running_loop().call_later(wait, self.note, key)
