"""In which order the first ones of all queues of a tree are dealt with.

Source: Kueue (2026-08), ``makeClassicalIterator`` of ``scheduler.go``, and ``fair_sharing_iterator.go``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from scheduler.api.queues.definitions import QueueDefinition
from scheduler.kernels import quotas
from scheduler.schema import quotas as q
from scheduler.tenancy.assignments import Assignment
from scheduler.tenancy.trees import Amounts, Column, Tree
from scheduler.tenancy.victims import Victim
from scheduler.tenancy.works import Work


@dataclass(slots=True, eq=False)
class Entry:
    """The first one of a queue, and what it could get.

    ``old`` is the slice that it replaces, whose quota it takes over; None for none.
    """

    work: Work
    queue: QueueDefinition
    assignment: Assignment
    victims: list[Victim] = field(default_factory=list)
    old: Work | None = None

    @property
    def usage(self) -> Amounts:
        """What it would use beyond what it takes over; nothing of what it needs less of, which is not free before it has it."""
        used = self.assignment.usage
        if self.old is None:
            return used
        held: dict[Column, int] = self.old.list_used()
        return {column: max(0, amount - held.get(column, 0)) for column, amount in used.items()}


# By what an entry is compared with others below a cohort: the least wins.
_Rank = tuple[bool, bool, float, tuple[int, float]]


def sort_entries(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Sort entries: those that borrow least high in the tree, then by priority and age; others stay as they are."""
    yield from sorted(entries, key=lambda one: (one.assignment.height, one.work.place[:2]))


class Tournament:
    """Draws the entries of a tree so that always the one comes next whose side has the least share with it."""

    def __init__(self, tree: Tree, entries: Sequence[Entry]) -> None:
        self._tree = tree
        self._left = {tree.queues[one.queue.name]: one for one in entries}
        # By queue: how its entry is compared below each node above it.
        self._ranks: dict[int, dict[int, _Rank]] = {}

    def draw(self) -> Iterator[Entry]:
        """Yield the entries. The shares are looked at anew after each."""
        tree = self._tree
        if not tree.has_cohort:
            yield from self._left.values()
            return
        for node in self._left:
            self._rank(node)
        while self._left:
            node = self._find_winner()
            entry = self._left.pop(node)
            del self._ranks[node]
            yield entry
            changed = set(tree.paths[node][:-1].tolist())
            for other in self._left:
                # Whoever has no node in common with it below the root has the share that it had.
                if not changed.isdisjoint(tree.paths[other][:-1].tolist()):
                    self._rank(other)

    def _rank(self, node: int) -> None:
        """Find how the entry of a queue is compared at each node above it."""
        tree, entry = self._tree, self._left[node]
        path = tree.paths[node]
        below = np.ascontiguousarray(path[:-1])
        columns, amounts = tree.make_arrays(entry.usage)
        asked = q.Asked(
            queue=node,
            columns=columns,
            amounts=amounts,
            needed=np.zeros(0, np.int64),
        )
        ratios, borrows = np.zeros(len(below)), np.zeros(len(below), np.bool_)
        said = np.zeros(q.N_SHARE, np.int64)
        quotas.weigh_path(tree.handle, asked, below, ratios, borrows, said)
        ranks: dict[int, _Rank] = {}
        for i, one in enumerate(below.tolist()):
            ratio, weight = float(ratios[i]), tree.nodes[one].weight
            is_endless = weight == 0 and ratio > 0
            share = ratio if is_endless or not ratio else ratio / weight
            ranks[int(path[i + 1])] = bool(borrows[i]), is_endless, share, entry.work.place[:2]
        self._ranks[node] = ranks

    def _find_winner(self) -> int:
        """Find the queue whose entry wins below the root; -1 if there is none."""
        winners: dict[int, int] = {}
        # Each node is behind its parent.
        for node in range(len(self._tree.nodes) - 1, -1, -1):
            if self._tree.nodes[node].is_queue:
                winners[node] = node if node in self._left else -1
            else:
                winners[node] = self._find_winner_of(node, winners)
        return winners[0]

    def _find_winner_of(self, cohort: int, winners: Mapping[int, int]) -> int:
        """Find which of the winners below the children of a cohort wins; -1 if there is none."""
        best, best_rank = -1, None
        for child in self._tree.list_children(cohort):
            node = winners[child]
            if node < 0:
                continue
            rank = self._ranks[node][cohort]
            if best_rank is None or rank < best_rank:
                best, best_rank = node, rank
        return best
