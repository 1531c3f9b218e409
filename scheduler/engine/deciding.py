"""One call of ``decide`` after another goes on with work that the first of them has begun."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from scheduler.api.door.decisions import Outcome
from scheduler.engine.allowance import Allowance, Unlimited, Work
from scheduler.state.pauses import Pauses

# Works as far as an allowance goes, and adds what it decides to an outcome.
Decide = Callable[[Allowance, Outcome], None]
T = TypeVar("T")


class _LastAllowance:
    """The allowance of the last call.

    A later call than the first allows steps, and one piece of each kind of work that has not begun: what was decided
    before the pause is to be carried out soon, and no kind of work may keep another from its turn.

    Attributes:
        pods: the most pods to decide for.
    """

    def __init__(self, first: Allowance) -> None:
        self.pods = first.pods
        self._latest, self._is_first = first, True
        self._begun: set[Work] = set()

    def follow(self, latest: Allowance) -> None:
        """Go by the allowance of a later call."""
        self._latest, self._is_first = latest, False

    def allows(self, work: Work) -> bool:
        """Whether the last call allows one more piece of this kind of work."""
        may_begin = self._is_first or work == Work.STEP or work not in self._begun
        self._begun.add(work)
        return may_begin and self._latest.allows(work)


class Deciding:
    """Makes decisions, and keeps those of work that has paused until it has ended."""

    def __init__(self, pauses: Pauses) -> None:
        self._pauses = pauses
        self._outcome: Outcome | None = None
        self._allowance = _LastAllowance(Unlimited())

    @property
    def is_open(self) -> bool:
        """Whether work has paused, or has ended since without its decisions being taken out."""
        return self._outcome is not None

    def decide(self, work: Decide, allowance: Allowance) -> Outcome:
        """Go on with the work that has paused, or begin this one; return what was decided, nothing after a pause."""
        if self._outcome is None:
            outcome = self._outcome = Outcome()
            last = self._allowance = _LastAllowance(allowance)
            with self._ended_by_errors():
                self._pauses.begin(lambda: work(last, outcome), self._allows_step)
        else:
            self._resume(allowance)
        if self._pauses.are_open or self._outcome is None:
            return Outcome()
        decided, self._outcome = self._outcome, None
        return decided

    def finish(self) -> None:
        """Bring work that has paused to its end; the next call of ``decide`` returns what was decided."""
        if self._pauses.are_open:
            self._resume(Unlimited())

    def guard(self, answer: Any) -> Any:
        """Return an answer; one in parts brings work that has paused to its end before each part."""
        return self._go_on_with(answer) if isinstance(answer, Iterator) else answer

    def _go_on_with(self, parts: Iterator[T]) -> Generator[T, None, Any]:
        while True:
            self.finish()
            try:
                part = next(parts)
            except StopIteration as end:
                return end.value
            yield part

    def _resume(self, allowance: Allowance) -> None:
        self._allowance.follow(allowance)
        with self._ended_by_errors():
            self._pauses.resume(self._allows_step)

    @contextmanager
    def _ended_by_errors(self) -> Iterator[None]:
        """An error ends the work, and nothing is left of it to be returned."""
        try:
            yield
        except BaseException:
            self._outcome = None
            raise

    def _allows_step(self) -> bool:
        return self._allowance.allows(Work.STEP)
