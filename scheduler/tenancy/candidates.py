"""Who may be asked to give quota back for a workload, and in which order: the policies of queues.

Source: Kueue (2026-08), ``pkg/scheduler/preemption``: ``collectCandidatesForHierarchicalReclaim``, ``findCandidates``,
``SatisfiesPreemptionPolicy`` and ``CandidatesOrdering``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from scheduler.api.queues.definitions import Policy, QueueDefinition
from scheduler.schema import quotas as q
from scheduler.schema.handles import Flags, Ints
from scheduler.tenancy.concessions import list_spared
from scheduler.tenancy.trees import Amounts, Column, Tree
from scheduler.tenancy.works import Work


class Why(StrEnum):
    """Why a workload is preempted, as in the condition ``Preempted``."""

    OWN = "InClusterQueue"
    RECLAIM = "InCohortReclamation"
    FAIR = "InCohortFairSharing"
    BORROWING = "InCohortReclaimWhileBorrowing"
    # It finds another place at once; Kueue has no such reason.
    MOVED = "InCohortRelocation"


class Rules(NamedTuple):
    """How queues take quota back from each other.

    Attributes:
        strategies: by which rules queues with larger shares give way; None if shares do not count.
        find_usage: finds how much a local queue has used, where that counts within a queue; else None.
        moves: whether others are moved for a workload whose quota is there, but scattered.
        promises: whether the first workload of a queue that waits in vain is promised quota for a later time.
    """

    strategies: tuple[str, ...] | None = None
    find_usage: Callable[[str, str], float | None] = lambda *_: None
    moves: bool = False
    promises: bool = False

    @property
    def is_fair(self) -> bool:
        """Whether shares decide who has to give way."""
        return self.strategies is not None


class Asker(NamedTuple):
    """A workload that wants quota, with its queue, what it wants, and of which columns others have to give back."""

    work: Work
    queue: QueueDefinition
    amounts: Amounts
    needed: Sequence[Column]


class Candidate(NamedTuple):
    """Somebody who may be asked to go.

    Attributes:
        row: among those who hold quota in the tree.
        above: the lowest node that is above its queue and the asker's; -1 in the asker's queue.
        is_strict: it goes only if the asker borrows nothing afterwards.
    """

    row: int
    above: int
    is_strict: bool
    why: Why


class Candidates:
    """Lists those of one tree who may be asked to go."""

    def __init__(self, tree: Tree, works: Mapping[str, Work], rules: Rules) -> None:
        self._tree, self._works, self._rules = tree, works, rules

    def find(self, row: int) -> Work:
        """Return who is in a row of those who hold quota."""
        return self._works[self._tree.held.keys[row] or ""]

    def list_by_position(self, asker: Asker, asked: q.Asked) -> tuple[list[Candidate], list[bool]]:
        """List candidates in their order by priorities and by how near quota is in the tree.

        Returns:
            The candidates, and whether the asker may borrow: one or two values, in the order in which they are tried.
        """
        queue = asker.queue
        within = self._list_allowed(asker, asked.queue, asked.needed, queue.preemption.within)
        own = [Candidate(row, -1, False, Why.OWN) for row in within]
        near, far = self._list_others(asker, asked)
        ordered = [self._sort(some, queue.name) for some in (near, far, own)]
        going = [[one for one in some if self.find(one.row).is_going] for some in ordered]
        staying = [[one for one in some if not self.find(one.row).is_going] for some in ordered]
        candidates = [one for some in (*going, *staying) for one in some]
        forbids = not queue.preemption.borrows
        if not (near or far) or (forbids and not self._is_under(asked)):
            return candidates, [True]
        return candidates, [False, True] if forbids and not near else [True, False]

    def list_by_share(self, asker: Asker, asked: q.Asked) -> list[Candidate]:
        """List all who may go: of the own queue, and of all queues that borrow what is needed."""
        preemption = asker.queue.preemption
        rows = self._list_allowed(asker, asked.queue, asked.needed, preemption.within)
        tree = self._tree
        if tree.has_cohort and preemption.reclaim != Policy.NEVER:
            is_within = self._list_within(asked.needed)
            for node in tree.list_queues_below(0):
                if node != asked.queue and not is_within[node]:
                    rows += self._list_allowed(asker, node, asked.needed, preemption.reclaim)
        found = [Candidate(row, -1, False, Why.FAIR) for row in rows]
        return self._sort(found, asker.queue.name)

    def list_movable(self, asker: Work, needs_place: Callable[[Work], bool]) -> list[Work]:
        """List who may be moved for a workload: whoever holds a place in its tree, and is not more important.

        Nobody is moved who is on the way out, or to whom the asker has given way. Those of the lowest priority are first,
        of these the ones that hold the smallest part of what the tree has, then the last that came.
        """
        spared = list_spared(self._works, asker)
        found = [
            one
            for one in (self._works[key] for key in self._tree.held.keys if key)
            if one.priority <= asker.priority
            and not one.is_going
            and one.key not in spared
            and needs_place(one)
        ]
        return sorted(
            found, key=lambda one: (one.priority, self._find_part(one), -one.reserved_at, one.uid)
        )

    def _find_part(self, one: Work) -> float:
        """Find the largest part that a workload holds of what its tree has of a resource in a flavor."""
        root, columns = self._tree.handle.subtree[0], self._tree.columns
        parts = (
            amount / float(root[k])
            for column, amount in one.list_used().items()
            if (k := columns.get(column)) is not None and root[k]
        )
        return max(parts, default=0.0)

    def _list_within(self, needed: Ints) -> Flags:
        """List [N] which nodes use no more than their quota of some columns."""
        tree = self._tree.handle
        return np.asarray((tree.subtree[:, needed] >= tree.usage[:, needed]).all(axis=1))

    def _list_allowed(self, asker: Asker, node: int, needed: Ints, policy: Policy) -> list[int]:
        """List the rows of those in a queue that a policy lets go for the asker."""
        if policy == Policy.NEVER:
            return []
        rows = self._tree.held.list_rows(node, needed)
        allowed = [row for row in rows if may_go(policy, asker.work, self.find(row))]
        spared = list_spared(self._works, asker.work)
        return [row for row in allowed if not self._is_spared(row, spared)] if spared else allowed

    def _is_spared(self, row: int, spared: frozenset[str]) -> bool:
        """Whether the asker has given way to somebody, who is not on the way out by now."""
        one = self.find(row)
        return one.key in spared and not one.is_going

    def _sort(self, candidates: list[Candidate], queue: str) -> list[Candidate]:
        """Sort candidates: those who go already, other queues, lower priorities, the last who came."""
        find_usage = self._rules.find_usage

        def make_key(one: Candidate) -> tuple[bool, bool, float, int, float, str]:
            holder = self.find(one.row)
            is_own = holder.queue == queue
            usage = find_usage(holder.queue, holder.local) if is_own else None
            return (
                not holder.is_going,
                is_own,
                -(usage or 0.0),
                holder.priority,
                -holder.reserved_at,
                holder.uid,
            )

        return sorted(candidates, key=make_key)

    def _is_under(self, asked: q.Asked) -> bool:
        """Whether the queue uses less than its quota of all columns that are needed."""
        tree, needed = self._tree.handle, asked.needed
        return bool((tree.subtree[asked.queue, needed] > tree.usage[asked.queue, needed]).all())

    def _list_others(self, asker: Asker, asked: q.Asked) -> tuple[list[Candidate], list[Candidate]]:
        """List the candidates of other queues: those to whose quota the asker is nearer, and the others."""
        near: list[Candidate] = []
        far: list[Candidate] = []
        tree, policy = self._tree, asker.queue.preemption.reclaim
        path = tree.paths[asked.queue].tolist()
        if policy == Policy.NEVER or len(path) < 2:
            return near, far
        is_within = self._list_within(asked.needed)
        left = dict(zip(asked.columns.tolist(), asked.amounts.tolist(), strict=True))
        is_near, left = self._fits_subtree(path[0], left)
        below = path[0]
        for node in path[1:]:
            for queue in self._list_exceeding(node, below, is_within):
                for row in self._list_allowed(asker, queue, asked.needed, policy):
                    one = self._classify(asker, row, node, is_near=is_near)
                    (near if is_near else far).append(one)
            fits, left = self._fits_subtree(node, left)
            is_near = is_near or fits
            below = node
        return near, far

    def _fits_subtree(self, node: int, amounts: dict[int, int]) -> tuple[bool, dict[int, int]]:
        """Whether a subtree's quota takes amounts, and what of them its parent has to give."""
        tree, fits, left = self._tree.handle, True, {}
        for column, amount in amounts.items():
            subtree, used = int(tree.subtree[node, column]), int(tree.usage[node, column])
            fits = fits and (subtree == q.UNLIMITED or subtree >= used + amount)
            kept = max(0, int(tree.local[node, column]) - used)
            left[column] = max(0, amount - kept)
        return fits, left

    def _list_exceeding(self, node: int, skipped: int, is_within: Flags) -> list[int]:
        """List the queues below a node that exceed their quota, and whose cohorts do; one child is skipped."""
        found, left = [], [node]
        while left:
            for child in self._tree.list_children(left.pop()):
                if child == skipped or is_within[child]:
                    continue
                if self._tree.nodes[child].is_queue:
                    found.append(child)
                else:
                    left.append(child)
        return found

    def _classify(self, asker: Asker, row: int, above: int, *, is_near: bool) -> Candidate:
        if is_near:
            return Candidate(row, above, False, Why.RECLAIM)
        preemption, priority = asker.queue.preemption, self.find(row).priority
        is_low = priority < asker.work.priority
        is_low = is_low and (preemption.threshold is None or priority <= preemption.threshold)
        if preemption.borrows and is_low:
            return Candidate(row, above, False, Why.BORROWING)
        return Candidate(row, above, True, Why.RECLAIM)


def may_go(policy: Policy, asker: Work, one: Work) -> bool:
    """Whether a policy lets a workload go for another."""
    if policy == Policy.ANY or one.priority < asker.priority:
        return True
    is_newer = one.priority == asker.priority and asker.since < one.since
    return policy == Policy.LOWER_OR_NEWER and is_newer
