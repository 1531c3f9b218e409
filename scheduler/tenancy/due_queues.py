"""Which queues are to be dealt with: in their trees somebody may get quota."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from scheduler.tenancy.directory import Directory
from scheduler.tenancy.lines import Line
from scheduler.tenancy.turns import Turn


class DueQueues:
    """The queues that are to be dealt with."""

    def __init__(self, directory: Directory, lines: Mapping[str, Line]) -> None:
        """Which queues there are, and who waits in each."""
        self._directory, self._lines = directory, lines
        self._due: dict[str, None] = {}
        # The turns that are not over, by the identity of their trees.
        self._turns: dict[int, Turn] = {}

    def __bool__(self) -> bool:
        """Whether any queue is to be dealt with."""
        return bool(self._due or self._turns)

    def note(self, queue: str) -> None:
        """Deal with a queue: somebody has come, or asks again."""
        self._due[queue] = None

    def retry(self, queue: str) -> None:
        """Try those again who wait in the tree of a queue: what has happened was between two cycles."""
        tree = self._directory.forest.find_tree(queue)
        if tree is not None:
            tree.n_cycles += 1
            if turn := self._turns.get(id(tree)):
                turn.is_retried = True
        for name in self._directory.list_together(queue):
            self._due[name] = None
            if name in self._lines:
                self._lines[name].retry_all()

    def retry_known(self, queues: Iterable[str]) -> None:
        """Try those again who wait in the trees of queues; queues that are gone are skipped."""
        for queue in queues:
            if queue in self._lines:
                self.retry(queue)

    def take_turns(self, n_changes: int) -> Iterator[Turn]:
        """Yield the turns that were left, and then those of the queues that are to be dealt with, each tree once.

        A turn that is not over comes again with the next call. ``n_changes``: how often workloads have changed.
        """
        due, self._due = self._due, {}
        find_tree = self._directory.forest.find_tree
        for key, turn in list(self._turns.items()):
            # All queues of a tree that was made anew are to be dealt with.
            if find_tree(next(iter(turn.tree.queues))) is turn.tree:
                turn.take_up(n_changes)
            else:
                del self._turns[key]
                due |= dict.fromkeys(turn.tree.queues)
        for name in due:
            if tree := find_tree(name):
                turn = self._turns.get(id(tree)) or Turn(tree)
                self._turns[id(tree)] = turn
                turn.note_due()
        yield from list(self._turns.values())

    def leave(self, turn: Turn, n_changes: int) -> None:
        """Leave a turn for later, behind the others: each tree has its share of the time."""
        turn.leave(n_changes)
        self._turns[id(turn.tree)] = self._turns.pop(id(turn.tree))

    def end(self, turn: Turn) -> None:
        """Forget a turn that is over."""
        del self._turns[id(turn.tree)]
