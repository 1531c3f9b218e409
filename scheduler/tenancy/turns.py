"""The turn of a tree of queues: cycles over it follow each other until nothing comes of them, some now and some later."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.tenancy.outcomes import Kept, Outcome
from scheduler.tenancy.trees import Tree
from scheduler.tenancy.works import Work


class Turn:
    """A tree that is dealt with.

    Attributes:
        tree: the tree.
        kept: what the last cycles have found, as long as nothing else has happened.
        is_retried: all who wait in the tree are tried again, though its turn was not over.
    """

    def __init__(self, tree: Tree) -> None:
        """The turn begins."""
        self.tree, self.is_retried = tree, False
        self.kept: Kept = {}
        # Whoever goes on with the next flavor in the next cycle comes back to the first one after so many cycles.
        groups = (group for node in tree.nodes for group in node.groups)
        self._n_flavors = max((len(one.flavors) for one in groups), default=0)
        # Cycles in a row that began as the one before: nothing had come of it.
        self._n_idle = 0
        # Whom the last cycle has dealt with, and whether there is a reason for another one in any case.
        self._heads: Sequence[Work] = ()
        self._has_news = True
        self._all_wait = False
        # Cycles since all were tried again, and the least number of them before the turn may be left.
        self._n_cycles, self._least = 0, 1
        self._left_at: int | None = None

    @property
    def may_be_left(self) -> bool:
        """Whether the next cycle may be one of a later call."""
        return self._n_cycles >= self._least or not self._n_cycles

    def is_over(self, heads: Sequence[Work]) -> bool:
        """Whether nothing would come of a cycle that deals with these."""
        if not heads:
            return True
        if self._has_news or heads != self._heads:
            return False
        return self._all_wait or self._n_idle >= self._n_flavors

    def note_cycle(self, heads: Sequence[Work], outcome: Outcome) -> None:
        """Note what came of a cycle that has dealt with these."""
        is_idle = not self._has_news and heads == self._heads
        self._n_idle = self._n_idle + 1 if is_idle else 0
        self._heads = heads
        self._has_news = bool(outcome.admitted or outcome.preempted)
        self._all_wait = all(what.is_parked or what.is_preemptor for _, what in outcome.left)
        self._n_cycles += 1

    def note_due(self) -> None:
        """Note that a queue of the tree is to be dealt with, even if nothing came of the last cycles."""
        self._has_news = True

    def leave(self, n_changes: int) -> None:
        """Leave the turn for later; ``n_changes``: how often workloads have changed so far."""
        self._left_at = self._measure(n_changes)

    def take_up(self, n_changes: int) -> None:
        """Go on with a turn that was left.

        Whoever is tried again comes before those who were not tried yet. With twice as many cycles each time, these have
        their turn, too, however often something happens.
        """
        if self._left_at != self._measure(n_changes):
            self.kept.clear()
        if self.is_retried and self._n_cycles:
            self._n_cycles, self._least = 0, 2 * self._least
        self.is_retried = False

    def _measure(self, n_changes: int) -> int:
        """Return a number that grows when a workload has changed, or quota of the tree was given or released."""
        return n_changes + sum(self.tree.generations)
