"""Preemption by shares (pkg/scheduler/preemption/fairsharing, and fairPreemptions in preemption.go)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.oracles.kueue.shares import (
    LEAST_SHARE,
    Share,
    compare_shares,
    find_share,
    weigh_share,
)
from tests.oracles.kueue.tree import (
    Cohort,
    Node,
    add_all_usage,
    check_borrowing,
    find_root,
    remove_all_usage,
    walk_ancestors,
    walk_queues,
)
from tests.oracles.kueue.victims import (
    IN_QUEUE,
    RECLAIMED,
    SHARED,
    Hunt,
    Target,
    check_fits,
    check_policy,
    check_uses,
    compare_candidates,
    fill_back,
    restore_targets,
    sort_candidates,
)
from tests.oracles.kueue.workloads import Info, sum_usage
from tests.oracles.kueue.world import Queue, remove_workload


@dataclass
class Ordering:
    """The queues from which victims are taken, one at a time, and what is left of each."""

    hunt: Hunt
    left: dict[str, list[Info]] = field(default_factory=dict)
    pruned: set[Node] = field(default_factory=set)

    def has_workload(self, queue: Node) -> bool:
        return bool(self.left.get(queue.name))


def hunt_targets(hunt: Hunt, strategies: tuple[str, ...]) -> list[Target]:
    """Take victims from who has the highest share, as long as a strategy allows it, until the preemptor fits."""
    candidates = sort_candidates(hunt, _collect_candidates(hunt))
    if not candidates:
        return []
    # Shares are those with what the preemptor asks.
    add_all_usage(hunt.queue, hunt.usage)
    fits, targets, refused = _run_first(hunt, candidates, strategies[0])
    if not fits and len(strategies) > 1:
        fits = _run_second(hunt, refused, targets)
    remove_all_usage(hunt.queue, hunt.usage)
    if not fits:
        restore_targets(hunt, targets)
        return []
    targets = fill_back(hunt, targets, may_borrow=True)
    restore_targets(hunt, targets)
    return targets


def _collect_candidates(hunt: Hunt) -> list[Info]:
    """Collect who uses what is short: in the own queue, and in queues of the tree that borrow any of it."""
    queue = hunt.queue
    sources = []
    if queue.policy("withinClusterQueue") != "Never":
        sources.append((queue, queue.policy("withinClusterQueue")))
    reclaim = queue.policy("reclaimWithinCohort")
    root = find_root(queue)
    if isinstance(root, Cohort) and reclaim != "Never":
        for other in walk_queues(root):
            is_borrowing = any(check_borrowing(other, fr) for fr in hunt.short)
            if other is not queue and is_borrowing:
                assert isinstance(other, Queue)
                sources.append((other, reclaim))
    return [
        info
        for source, policy in sources
        for info in source.workloads.values()
        if check_policy(hunt, info, policy) and check_uses(info, hunt.short)
    ]


def _order_queues(hunt: Hunt, candidates: list[Info]) -> Ordering:
    ordering = Ordering(hunt)
    for info in candidates:
        ordering.left.setdefault(info.queue, []).append(info)
    return ordering


def _walk_targets(ordering: Ordering) -> Iterator[Queue]:
    """Walk to the queue with the highest share, again and again; who asks takes a workload or prunes the queue."""
    queue = ordering.hunt.queue
    root = find_root(queue)
    if not isinstance(root, Cohort):
        while queue not in ordering.pruned and ordering.has_workload(queue):
            yield queue
        return
    while root not in ordering.pruned:
        target = _find_next(ordering, root)
        if target is not None:
            yield target


def _find_next(ordering: Ordering, cohort: Cohort) -> Queue | None:
    """Find the child with the highest share, and in it the next one; a cohort comes before an equal queue."""
    queue, share = _find_highest_queue(ordering, cohort)
    below, below_share = _find_highest_cohort(ordering, cohort)
    if below is not None and compare_shares(below_share, share) >= 0:
        return _find_next(ordering, below)
    if queue is None:
        ordering.pruned.add(cohort)
    return queue


def _find_highest_queue(ordering: Ordering, cohort: Cohort) -> tuple[Queue | None, Share]:
    """Find the queue with the highest share; of equal ones that whose next workload goes first."""
    hunt, best, best_share = ordering.hunt, None, LEAST_SHARE
    for queue in cohort.queues:
        if queue in ordering.pruned:
            continue
        assert isinstance(queue, Queue)
        share = find_share(queue)
        is_out = not share.is_borrowing and queue is not hunt.queue
        if is_out or not ordering.has_workload(queue):
            ordering.pruned.add(queue)
            continue
        compared = compare_shares(share, best_share)
        if compared > 0:
            best, best_share = queue, share
        elif compared == 0 and best is not None:
            mine, theirs = ordering.left[queue.name][0], ordering.left[best.name][0]
            if compare_candidates(hunt, mine, theirs, counts_usage=False) < 0:
                best = queue
    return best, best_share


def _find_highest_cohort(ordering: Ordering, cohort: Cohort) -> tuple[Cohort | None, Share]:
    """Find the cohort with the highest share; one that does not borrow is out, but for those above the preemptor."""
    path, best, best_share = set(walk_ancestors(ordering.hunt.queue)), None, LEAST_SHARE
    for child in cohort.cohorts:
        if child in ordering.pruned:
            continue
        share = find_share(child)
        if not share.is_borrowing and child not in path:
            ordering.pruned.add(child)
        elif compare_shares(share, best_share) >= 0:
            best, best_share = child, share
    return best, best_share


def _run_first(
    hunt: Hunt, candidates: list[Info], strategy: str
) -> tuple[bool, list[Target], list[Info]]:
    """Run the first strategy: whether the preemptor fits, who goes, and who was refused."""
    ordering = _order_queues(hunt, candidates)
    targets: list[Target] = []
    refused: list[Info] = []
    is_within = not any(check_borrowing(hunt.queue, fr) for fr in hunt.short)
    for queue in _walk_targets(ordering):
        left = ordering.left[queue.name]
        if queue is hunt.queue or is_within:
            reason = IN_QUEUE if queue is hunt.queue else RECLAIMED
            if _take_target(hunt, targets, left.pop(0), reason):
                return True, targets, []
            continue
        mine, theirs = _find_shares(hunt, queue)
        if weigh_share(mine) == math.inf and weigh_share(theirs) != math.inf:
            refused += left
            left.clear()
            continue
        while left:
            info = left.pop(0)
            if not _check_strategy(strategy, mine, theirs, _find_share_without(hunt, queue, info)):
                refused.append(info)
                continue
            if _take_target(hunt, targets, info, SHARED):
                return True, targets, []
            # Shares are others now, so another queue may be the highest.
            break
    return False, targets, refused


def _run_second(hunt: Hunt, refused: list[Info], targets: list[Target]) -> bool:
    """Run the second strategy over who was refused, with one workload of each queue at most."""
    ordering = _order_queues(hunt, refused)
    for queue in _walk_targets(ordering):
        mine, theirs = _find_shares(hunt, queue)
        info = ordering.left[queue.name].pop(0)
        if compare_shares(mine, theirs) < 0 and _take_target(hunt, targets, info, SHARED):
            return True
        ordering.pruned.add(queue)
    return False


def _take_target(hunt: Hunt, targets: list[Target], info: Info, reason: str) -> bool:
    """Take a workload, and say whether the preemptor fits now."""
    remove_workload(hunt.world, info)
    targets.append(Target(info, reason))
    remove_all_usage(hunt.queue, hunt.usage)
    fits = check_fits(hunt, may_borrow=True)
    add_all_usage(hunt.queue, hunt.usage)
    return fits


def _check_strategy(strategy: str, mine: Share, theirs: Share, theirs_after: Share) -> bool:
    if strategy == "LessThanOrEqualToFinalShare":
        return compare_shares(mine, theirs_after) <= 0
    return compare_shares(mine, theirs) < 0


def _find_below(hunt: Hunt, queue: Queue) -> tuple[Node, Node]:
    """Find the nodes right below the lowest cohort that both queues share: the preemptor's, and the other's."""
    path = list(walk_ancestors(hunt.queue))
    theirs: Node = queue
    while theirs.parent is not None and theirs.parent not in path:
        theirs = theirs.parent
    mine: Node = hunt.queue
    while mine.parent is not theirs.parent and mine.parent is not None:
        mine = mine.parent
    return mine, theirs


def _find_shares(hunt: Hunt, queue: Queue) -> tuple[Share, Share]:
    mine, theirs = _find_below(hunt, queue)
    return find_share(mine), find_share(theirs)


def _find_share_without(hunt: Hunt, queue: Queue, info: Info) -> Share:
    remove_all_usage(queue, sum_usage(info))
    share = find_share(_find_below(hunt, queue)[1])
    add_all_usage(queue, sum_usage(info))
    return share
