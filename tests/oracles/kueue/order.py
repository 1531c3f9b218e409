"""Who comes first: in a queue (pkg/cache/queue/cluster_queue.go), and among the heads of queues (pkg/scheduler)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tests.oracles.kueue.assignments import Assignment
from tests.oracles.kueue.shares import Share, check_borrowing_on, compare_shares, find_share
from tests.oracles.kueue.tree import (
    Cohort,
    add_all_usage,
    find_root,
    remove_all_usage,
    walk_ancestors,
    walk_queues,
)
from tests.oracles.kueue.usage import Ledger, find_usage
from tests.oracles.kueue.victims import Settings, Target
from tests.oracles.kueue.workloads import Info, find_queued_time
from tests.oracles.kueue.world import Queue


@dataclass(eq=False)
class Entry:
    """The head of a queue, and what a cycle makes of it."""

    info: Info
    queue: Queue
    assignment: Assignment
    targets: list[Target] = field(default_factory=list)
    # Why it waits: the name and the words of its condition, and the name that decides where it waits.
    reason: str = ""
    message: str = ""
    requeue: str = ""
    status: str = ""


def order_queue(
    infos: Iterable[Info], settings: Settings, sticky: str, ledger: Ledger | None
) -> list[Info]:
    """Order who waits: by the usage of local queues, who preempts already, priority, time, and uid."""

    def rank(info: Info) -> tuple[float, bool, int, float, str, str]:
        used = find_usage(ledger, info.local_queue) if ledger else 0.0
        since = find_queued_time(info.manifest, by_creation=settings.by_creation)
        return used, info.key != sticky, -info.priority, since, info.uid, info.key

    return sorted(infos, key=rank)


def order_entries(entries: list[Entry], settings: Settings) -> Iterator[Entry]:
    """Order the heads; with fair sharing the next one depends on what became of those before."""
    if settings.strategies is not None:
        yield from _hold_tournaments(entries, settings)
        return

    def rank(entry: Entry) -> tuple[int, int, float]:
        since = find_queued_time(entry.info.manifest, by_creation=settings.by_creation)
        return entry.assignment.borrowing, -entry.info.priority, since

    yield from sorted(entries, key=rank)


def _hold_tournaments(entries: list[Entry], settings: Settings) -> Iterator[Entry]:
    """Hold a tournament in the tree of the next queue by name, until all entries have won one."""
    left = {entry.queue: entry for entry in entries}
    while left:
        queue = min(left, key=lambda one: one.name)
        root = find_root(queue)
        winner: Entry | None = left[queue]
        if isinstance(root, Cohort):
            shares = _compute_shares(root, left)
            winner = _run_tournament(root, left, shares, settings)
        assert winner is not None
        del left[winner.queue]
        yield winner


def _compute_shares(root: Cohort, left: dict[Queue, Entry]) -> dict[tuple[Cohort, str], Share]:
    """Compute the share of each queue, and of each cohort above it, with its head admitted; by the parent of either."""
    shares = {}
    for queue in walk_queues(root):
        assert isinstance(queue, Queue)
        if queue not in left:
            continue
        entry = left[queue]
        add_all_usage(queue, entry.assignment.usage)
        share = find_share(queue)
        for cohort in walk_ancestors(queue):
            shares[cohort, entry.info.key] = share
            share = find_share(cohort)
        remove_all_usage(queue, entry.assignment.usage)
    return shares


def _run_tournament(
    cohort: Cohort,
    left: dict[Queue, Entry],
    shares: dict[tuple[Cohort, str], Share],
    settings: Settings,
) -> Entry | None:
    """Run the tournament from the leaves: each child sends one entry, and the first of equal ones stays."""
    rivals = [_run_tournament(child, left, shares, settings) for child in cohort.cohorts]
    rivals += [left.get(queue) for queue in cohort.queues if isinstance(queue, Queue)]
    best: Entry | None = None
    for rival in rivals:
        if rival is None:
            continue
        if best is None:
            best = rival
            continue
        mine, theirs = shares[cohort, rival.info.key], shares[cohort, best.info.key]
        if check_less(rival, best, mine, theirs, settings):
            best = rival
    return best


def check_less(a: Entry, b: Entry, mine: Share, theirs: Share, settings: Settings) -> bool:
    """Check whether ``a`` comes before ``b``: not borrowing what it asks, a lower share, priority, time."""
    borrows = (
        check_borrowing_on(mine, a.assignment.usage),
        check_borrowing_on(theirs, b.assignment.usage),
    )
    if borrows[0] != borrows[1]:
        return borrows[1]
    if compared := compare_shares(mine, theirs):
        return compared < 0
    if a.info.priority != b.info.priority:
        return a.info.priority > b.info.priority
    times = [
        find_queued_time(one.info.manifest, by_creation=settings.by_creation) for one in (a, b)
    ]
    return times[0] < times[1]
