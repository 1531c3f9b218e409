"""What both ways to preempt share (pkg/scheduler/preemption/preemption.go and common)."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cmp_to_key
from typing import Any

from tests.oracles.kueue.amounts import Amounts, FlavorResource
from tests.oracles.kueue.tree import check_borrowing, find_unused
from tests.oracles.kueue.workloads import (
    Info,
    check_condition,
    find_condition,
    find_queued_time,
    read_time,
)
from tests.oracles.kueue.world import (
    Queue,
    World,
    add_workload,
    remove_workload,
)

IN_QUEUE = "InClusterQueue"
RECLAIMED = "InCohortReclamation"
SHARED = "InCohortFairSharing"
RECLAIMED_WHILE_BORROWING = "InCohortReclaimWhileBorrowing"
DEFAULT_STRATEGIES = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")


@dataclass(frozen=True)
class Settings:
    """What is configured of preemption; ``strategies`` is None without fair sharing.

    ``frees_early`` is what Kueue does with slices, and what breaks limits: one takes the place even of a workload that
    has to go for somebody else; and in a cycle what is used by a workload whose place is taken counts as free, for all
    that come from then on, while what takes its place counts only with the rest.

    ``asks_in_full``: a slice is judged by all that it asks, as if the old one had gone already, and not pod set by pod
    set by what it asks beyond the old one.
    """

    strategies: tuple[str, ...] | None = None
    counts_usage: bool = False
    by_creation: bool = False
    frees_early: bool = False
    asks_in_full: bool = False


@dataclass
class Target:
    """A workload that goes, and why."""

    info: Info
    reason: str


@dataclass
class Hunt:
    """A preemptor, what it asks, and in which flavors and resources it is short."""

    world: World
    settings: Settings
    now: float
    info: Info
    queue: Queue
    usage: Amounts
    short: set[FlavorResource] = field(default_factory=set)


def read_settings(config: dict[str, Any]) -> Settings:
    fair = config.get("fairSharing")
    ready = config.get("waitForPodsReady") or {}
    timestamp = (ready.get("requeuingStrategy") or {}).get("timestamp") or "Eviction"
    strategies = None
    if fair is not None:
        strategies = tuple(fair.get("preemptionStrategies") or DEFAULT_STRATEGIES)
    counts = config.get("admissionFairSharing") is not None
    return Settings(strategies, counts, timestamp == "Creation")


def check_policy(hunt: Hunt, candidate: Info, policy: str) -> bool:
    """Check whether a policy lets the preemptor have the candidate."""
    mine, theirs = hunt.info.priority, candidate.priority
    if policy == "LowerPriority":
        return mine > theirs
    if policy == "LowerOrNewerEqualPriority":
        by_creation = hunt.settings.by_creation
        since = find_queued_time(hunt.info.manifest, by_creation=by_creation)
        is_newer = since < find_queued_time(candidate.manifest, by_creation=by_creation)
        return mine > theirs or (mine == theirs and is_newer)
    return policy == "Any"


def check_uses(info: Info, frs: set[FlavorResource]) -> bool:
    """Check whether a workload has one of the flavors for one of the resources, even for an amount of zero."""
    return any(
        (flavor, resource) in frs
        for pod_set in info.pod_sets
        for resource, flavor in pod_set.flavors.items()
    )


def sort_candidates(hunt: Hunt, candidates: Iterable[Info]) -> list[Info]:
    def compare(a: Info, b: Info) -> int:
        return compare_candidates(hunt, a, b, counts_usage=hunt.settings.counts_usage)

    return sorted(sorted(candidates, key=lambda one: one.key), key=cmp_to_key(compare))


def compare_candidates(hunt: Hunt, a: Info, b: Info, *, counts_usage: bool) -> int:
    """Compare who goes first: evicted, of another queue, of a local queue that used more, less urgent, admitted later."""
    mine = hunt.queue.name
    keys = [(not check_condition(one.manifest, "Evicted"), one.queue == mine) for one in (a, b)]
    if keys[0] != keys[1]:
        return -1 if keys[0] < keys[1] else 1
    if counts_usage and a.queue == b.queue and a.local_queue != b.local_queue:
        used = [hunt.world.used.get(one.local_queue) for one in (a, b)]
        if hunt.world.queues[a.queue].counts_usage and None not in used and used[0] != used[1]:
            return -1 if (used[0] or 0.0) > (used[1] or 0.0) else 1
    rest = [(one.priority, -find_reserved_time(one, hunt.now), one.uid) for one in (a, b)]
    return (rest[0] > rest[1]) - (rest[0] < rest[1])


def find_reserved_time(info: Info, now: float) -> float:
    condition = find_condition(info.manifest, "QuotaReserved")
    if condition is None or condition["status"] != "True":
        return now
    return read_time(condition.get("lastTransitionTime"))


def check_fits(hunt: Hunt, *, may_borrow: bool) -> bool:
    for fr, amount in hunt.usage.items():
        if not may_borrow and check_borrowing(hunt.queue, fr, amount):
            return False
        if amount > find_unused(hunt.queue, fr):
            return False
    return True


def fill_back(hunt: Hunt, targets: list[Target], *, may_borrow: bool) -> list[Target]:
    """Take back who need not go after all, from the last but one to the first; the last one stays.

    Who is taken back leaves its place to the one at the end, so the order of targets is not that of removal.
    """
    for i in range(len(targets) - 2, -1, -1):
        add_workload(hunt.world, targets[i].info)
        if check_fits(hunt, may_borrow=may_borrow):
            targets[i] = targets[-1]
            targets.pop()
        else:
            remove_workload(hunt.world, targets[i].info)
    return targets


def restore_targets(hunt: Hunt, targets: list[Target]) -> None:
    for target in targets:
        add_workload(hunt.world, target.info)
