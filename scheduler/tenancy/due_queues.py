"""Which queues are to be dealt with: in their trees somebody may get quota."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from scheduler.tenancy.directory import Directory
from scheduler.tenancy.lines import Line
from scheduler.tenancy.trees import Tree


class DueQueues:
    """The queues that are to be dealt with."""

    def __init__(self, directory: Directory, lines: Mapping[str, Line]) -> None:
        """Which queues there are, and who waits in each."""
        self._directory, self._lines = directory, lines
        self._due: dict[str, None] = {}

    def __bool__(self) -> bool:
        """Whether any queue is to be dealt with."""
        return bool(self._due)

    def note(self, queue: str) -> None:
        """Deal with a queue: somebody has come, or asks again."""
        self._due[queue] = None

    def retry(self, queue: str) -> None:
        """Try those again who wait in the tree of a queue: what has happened was between two cycles."""
        tree = self._directory.forest.find_tree(queue)
        if tree is not None:
            tree.n_cycles += 1
        for name in self._directory.list_together(queue):
            self._due[name] = None
            if name in self._lines:
                self._lines[name].retry_all()

    def retry_known(self, queues: Iterable[str]) -> None:
        """Try those again who wait in the trees of queues; queues that are gone are skipped."""
        for queue in queues:
            if queue in self._lines:
                self.retry(queue)

    def take_trees(self) -> Iterator[Tree]:
        """Yield the trees of the queues that are to be dealt with, each once, and forget these queues."""
        due, self._due = self._due, {}
        find_tree = self._directory.forest.find_tree
        trees = {id(tree): tree for name in due if (tree := find_tree(name))}
        yield from trees.values()
