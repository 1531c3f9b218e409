"""Work in rounds on the rows that moved, a piece at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from scheduler.waiting.helping import Changed, FreeRows

_ENDED = object()


class Rounds:
    """Work on the rows that moved, in one round after another; a row that moves during a round is for the next."""

    def __init__(self, work: Callable[[Changed, float], Iterator[None]]) -> None:
        self._work = work
        # Rows that moved since the last round began; None stands for all rows.
        self._rows: set[int] | None = set()
        self._running: Iterator[None] = iter(())

    @property
    def is_due(self) -> bool:
        """Whether another round is to begin."""
        return self._rows != set()

    def note_rows(self, rows: set[int] | None) -> None:
        """Note that rows moved; None stands for all rows."""
        self._rows = None if self._rows is None or rows is None else self._rows | rows

    def end(self) -> None:
        """End all rounds: no pod waits."""
        self._rows, self._running = set(), iter(())

    def go_on(self, seen: FreeRows, now: float) -> Iterator[None]:
        """Go on with the running round, then begin the next one with the rows that moved meanwhile."""
        while True:
            # Not "yield from": a caller that closes this generator would close the running round, too.
            for _ in self._running:
                yield
            if not self.is_due:
                return
            changed, self._rows = seen.find_changed(self._rows), set()
            self._running = self._work(changed, now)


def take_turns(*chores: Iterator[None]) -> Iterator[None]:
    """Do one piece of each chore in turn: a chore that never ends does not keep the others from ending."""
    left = list(chores)
    while left:
        for chore in tuple(left):
            if next(chore, _ENDED) is _ENDED:
                left.remove(chore)
            else:
                yield
