"""Preemption by the place in the tree (pkg/scheduler/preemption/classical)."""

from dataclasses import dataclass

from tests.oracles.kueue.tree import (
    Cohort,
    check_within_nominal,
    find_quota,
    fit_requests,
    walk_ancestors,
)
from tests.oracles.kueue.victims import (
    IN_QUEUE,
    RECLAIMED,
    RECLAIMED_WHILE_BORROWING,
    Hunt,
    Target,
    check_fits,
    check_policy,
    check_uses,
    fill_back,
    restore_targets,
    sort_candidates,
)
from tests.oracles.kueue.workloads import Info, check_condition
from tests.oracles.kueue.world import Queue, remove_workload

WITHIN_QUEUE = "within queue"
HIERARCHICAL = "hierarchical"
WITHOUT_BORROWING = "without borrowing"
WHILE_BORROWING = "while borrowing"
REASONS = {
    WITHIN_QUEUE: IN_QUEUE,
    HIERARCHICAL: RECLAIMED,
    WITHOUT_BORROWING: RECLAIMED,
    WHILE_BORROWING: RECLAIMED_WHILE_BORROWING,
}


@dataclass
class Candidate:
    """Who may go; ``meets`` is the lowest cohort that it shares with the preemptor, none in the own queue."""

    info: Info
    meets: Cohort | None
    variant: str


def hunt_targets(hunt: Hunt) -> list[Target]:
    """Remove candidates in order until the preemptor fits, and take back who need not go."""
    own = _collect_own(hunt)
    hierarchical, by_priority = _collect_others(hunt)
    candidates = _order_candidates(hunt, hierarchical, by_priority, own)
    has_others = bool(hierarchical or by_priority)
    is_forbidden = hunt.queue.borrowing is None
    attempts = [True, False]
    if not has_others or (is_forbidden and not _check_under_nominal(hunt)):
        attempts = [True]
    elif is_forbidden and not hierarchical:
        attempts = [False, True]
    for may_borrow in attempts:
        targets: list[Target] = []
        for candidate in candidates:
            if not _check_valid(hunt, candidate, may_borrow=may_borrow):
                continue
            remove_workload(hunt.world, candidate.info)
            targets.append(Target(candidate.info, REASONS[candidate.variant]))
            if check_fits(hunt, may_borrow=may_borrow):
                targets = fill_back(hunt, targets, may_borrow=may_borrow)
                restore_targets(hunt, targets)
                return targets
        restore_targets(hunt, targets)
    return []


def _check_under_nominal(hunt: Hunt) -> bool:
    return all(
        find_quota(hunt.queue, fr).nominal > hunt.queue.usage.get(fr, 0) for fr in hunt.short
    )


def _order_candidates(hunt: Hunt, *groups: list[Candidate]) -> list[Candidate]:
    """Order candidates: evicted ones first, and among equals those with the weakest claim."""
    ordered = []
    for group in groups:
        by_key = {one.info.key: one for one in group}
        ordered.append([by_key[i.key] for i in sort_candidates(hunt, [one.info for one in group])])
    evicted = [
        [check_condition(one.info.manifest, "Evicted") for one in group] for group in ordered
    ]
    return [
        one
        for wanted in (True, False)
        for group, flags in zip(ordered, evicted, strict=True)
        for one, is_evicted in zip(group, flags, strict=True)
        if is_evicted == wanted
    ]


def _check_valid(hunt: Hunt, candidate: Candidate, *, may_borrow: bool) -> bool:
    """Check a candidate again, as those that went before may have been enough for its branch of the tree."""
    if candidate.meets is None:
        return True
    if may_borrow and candidate.variant == WITHOUT_BORROWING:
        return False
    queue = hunt.world.queues[candidate.info.queue]
    if check_within_nominal(queue, hunt.short):
        return False
    for cohort in walk_ancestors(queue):
        if cohort is candidate.meets:
            break
        if check_within_nominal(cohort, hunt.short):
            return False
    return True


def _collect_own(hunt: Hunt) -> list[Candidate]:
    if hunt.queue.policy("withinClusterQueue") == "Never":
        return []
    return _collect_queue(hunt, hunt.queue, None, is_ahead=False)


def _collect_others(hunt: Hunt) -> tuple[list[Candidate], list[Candidate]]:
    """Collect candidates from the own cohort upwards: those who stand behind, and those whom only priority puts behind.

    From the cohort above the lowest one that has what is asked, the preemptor is nearer to the quota than they are.
    """
    hierarchical: list[Candidate] = []
    by_priority: list[Candidate] = []
    if hunt.queue.parent is None or hunt.queue.policy("reclaimWithinCohort") == "Never":
        return hierarchical, by_priority
    before: Cohort | None = None
    is_ahead, left = fit_requests(hunt.queue, hunt.usage)
    for cohort in walk_ancestors(hunt.queue):
        found = hierarchical if is_ahead else by_priority
        _collect_subtree(hunt, cohort, cohort, before, found, is_ahead=is_ahead)
        fits, left = fit_requests(cohort, left)
        is_ahead = is_ahead or fits
        before = cohort
    return hierarchical, by_priority


def _collect_subtree(
    hunt: Hunt,
    cohort: Cohort,
    top: Cohort,
    seen: Cohort | None,
    found: list[Candidate],
    *,
    is_ahead: bool,
) -> None:
    for child in cohort.cohorts:
        if child is not seen and not check_within_nominal(child, hunt.short):
            _collect_subtree(hunt, child, top, seen, found, is_ahead=is_ahead)
    for queue in cohort.queues:
        if queue is not hunt.queue and not check_within_nominal(queue, hunt.short):
            assert isinstance(queue, Queue)
            found += _collect_queue(hunt, queue, top, is_ahead=is_ahead)


def _collect_queue(
    hunt: Hunt, queue: Queue, meets: Cohort | None, *, is_ahead: bool
) -> list[Candidate]:
    found = []
    for info in queue.workloads.values():
        variant = _classify_candidate(hunt, info, is_ahead=is_ahead)
        if variant is not None:
            found.append(Candidate(info, meets, variant))
    return found


def _classify_candidate(hunt: Hunt, info: Info, *, is_ahead: bool) -> str | None:
    is_own = info.queue == hunt.queue.name
    policy = hunt.queue.policy("withinClusterQueue" if is_own else "reclaimWithinCohort")
    if not check_uses(info, hunt.short) or not check_policy(hunt, info, policy):
        return None
    if is_own:
        return WITHIN_QUEUE
    if is_ahead:
        return HIERARCHICAL
    borrowing = hunt.queue.borrowing
    if borrowing is None or info.priority >= hunt.info.priority:
        return WITHOUT_BORROWING
    threshold = borrowing.get("maxPriorityThreshold")
    is_above = threshold is not None and info.priority > threshold
    return WITHOUT_BORROWING if is_above else WHILE_BORROWING
