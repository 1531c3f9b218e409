"""Why a workload waits for quota: what its turn would bring, what is missing in each flavor, and who has it.

Nothing here changes who has quota or who waits: the search for victims is undone as it is in a cycle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice, takewhile
from typing import NamedTuple

from scheduler.api import names, quantities
from scheduler.api.queues.words import EVICTS_NOBODY_SAID, GATED
from scheduler.tenancy import slices
from scheduler.tenancy.assignments import Assignment, Mode, generalize
from scheduler.tenancy.candidates import Asker
from scheduler.tenancy.cycle import TreeCycle
from scheduler.tenancy.outcomes import NO_PLACE, WAITS_FOR_QUOTA, WAITS_FOR_VICTIMS
from scheduler.tenancy.tenants import Tenants
from scheduler.tenancy.trees import Column, Tree
from scheduler.tenancy.victims import Reclaiming
from scheduler.tenancy.works import Likeness, Where, Work

# So many of those who come before a workload are looked at for one that may be promised what it needs.
_LOOKED_AT_MOST = 16


class Giver(NamedTuple):
    """A workload that may be asked to go, its queue, its priority, and the reason."""

    key: str
    queue: str
    priority: int
    why: str


class Borrower(NamedTuple):
    """A queue that uses more than it is owed, by how much, and how many of its workloads hold any of it."""

    queue: str
    borrowed: int
    n_works: int


class Lack(NamedTuple):
    """What a workload wants of a column, and what there is; see ``QuotaLack`` of the questions."""

    flavor: str
    resource: str
    requested: int
    available: int
    most: int
    nominal: int
    used: int
    n_works: int
    others: tuple[Borrower, ...]


class Flavor(NamedTuple):
    """What keeps a workload from a flavor."""

    flavor: str
    refusals: tuple[str, ...]
    lacks: tuple[Lack, ...]
    givers: tuple[Giver, ...]


class Outlook(NamedTuple):
    """What the turn of a workload would bring.

    Attributes:
        verdict: ``fits``, ``preempts``, ``waits``, ``goes`` (its victims are going), or ``aside``.
    """

    verdict: str
    reason: str = ""
    message: str = ""
    victims: tuple[Giver, ...] = ()
    assignment: Assignment | None = None


def find_outlook(tenants: Tenants, work: Work) -> Outlook:
    """Find what the turn of a workload that has no quota would bring."""
    with tenants.unplaced.suppose_restored(tenants.places):
        return _find_outlook(tenants, work)


def _find_outlook(tenants: Tenants, work: Work) -> Outlook:
    tree = tenants.directory.forest.find_tree(work.queue)
    if work.where != Where.WAITS or tree is None:
        return Outlook("aside", work.reason, work.message)
    cycle = TreeCycle(tree, tenants)
    entry = cycle.nominate(work)
    assignment = entry.assignment
    going = [key for key in sorted(work.waits_for) if key in tree.held]
    if going:
        givers = tuple(_make_giver(tenants, key, "") for key in going)
        return Outlook("goes", *tenants.find_reason(work), givers, assignment)
    mode = generalize(assignment.mode)
    if mode != Mode.FIT and not entry.victims:
        wants_place = assignment.lacks_place or assignment.is_blocked
        lacks = NO_PLACE if wants_place else WAITS_FOR_QUOTA
        reason = assignment.why.word if mode == Mode.NO_FIT else lacks
        return Outlook("waits", reason, assignment.describe(), (), assignment)
    with tenants.promise_book.suppose_vain(work.queue, _list_vain(tenants, cycle, work)):
        why = WAITS_FOR_QUOTA, cycle.find_promise(entry)
    if mode != Mode.FIT and work.defined.evicts_nobody:
        why = GATED, EVICTS_NOBODY_SAID
    if why[1]:
        return Outlook("waits", *why, (), assignment)
    if mode == Mode.FIT:
        return Outlook("fits", assignment=assignment)
    givers = tuple(_make_giver(tenants, one.key, one.why) for one in entry.victims)
    return Outlook("preempts", WAITS_FOR_VICTIMS, assignment.describe(), givers, assignment)


def _list_vain(tenants: Tenants, cycle: TreeCycle, work: Work) -> Iterator[Work]:
    """List those before a workload who get nothing; they may not have been tried yet."""
    if not tenants.rules.promises:
        return
    first = tenants.lines[work.queue].list_first(_LOOKED_AT_MOST)
    for one in takewhile(lambda one: one is not work, first):
        entry = cycle.nominate(one)
        if generalize(entry.assignment.mode) == Mode.PREEMPT and not entry.victims:
            yield one


def list_outlooks(tenants: Tenants, queue: str, most: int) -> list[tuple[Work, Outlook]]:
    """List those who wait in a queue in their order, at most so many; those who are alike have the same outlook."""
    line = tenants.lines.get(queue)
    known: dict[tuple[Likeness, frozenset[str]], Outlook] = {}
    listed: list[tuple[Work, Outlook]] = []
    with tenants.unplaced.suppose_restored(tenants.places):
        for work in islice(line.list_in_order() if line is not None else (), most):
            kind = work.likeness, work.waits_for
            found = known.get(kind)
            if found is None:
                found = known[kind] = _find_outlook(tenants, work)
            listed.append((work, found))
    return listed


def _make_giver(tenants: Tenants, key: str, why: str) -> Giver:
    work = tenants.works[key]
    return Giver(key, work.queue, work.priority, why)


def list_flavors(tenants: Tenants, work: Work, outlook: Outlook) -> Iterator[Flavor]:
    """List what keeps a workload from each flavor of its queue; nothing of one that may not be tried."""
    tree = tenants.directory.forest.find_tree(work.queue)
    if tree is None or outlook.assignment is None:
        return
    fewer = {name: n_pods for name, n_pods, _ in list_fewer(work, outlook)}
    wanted = _sum_up_requests(work, slices.find_old(tenants.works, work), fewer)
    groups = tenants.find_queue(work.queue).groups
    is_implied = tenants.book.is_of_topologies([one.flavor for group in groups for one in group.flavors])  # fmt: skip
    for group in groups:
        covered = frozenset(group.resources)
        resources = [name for name in group.resources if wanted.get(name)]
        for quotas in group.flavors if resources else ():
            flavor = quotas.flavor
            lacks = tuple(
                _measure(tenants, tree, work, (flavor, name), wanted[name]) for name in resources
            )
            givers = tuple(_list_givers(tenants, tree, work, lacks))
            refusals = (
                tenants.book.find_refusal(flavor, one.shape, covered, is_implied=is_implied)
                for one in work.sets
            )
            yield Flavor(flavor, tuple(dict.fromkeys(filter(None, refusals))), lacks, givers)


def list_fewer(work: Work, outlook: Outlook) -> list[tuple[str, int, int]]:
    """List the pod sets of which fewer pods would start (partial admission): how many, and of how many."""
    if outlook.verdict not in {"fits", "preempts"} or outlook.assignment is None:
        return []
    counts = dict(zip((one.name for one in work.sets), work.counts, strict=True))
    return [
        (one.name, one.n_pods, counts[one.name])
        for one in outlook.assignment.sets
        if one.n_pods < counts[one.name]
    ]


def _sum_up_requests(work: Work, old: Work | None, fewer: Mapping[str, int]) -> dict[str, int]:
    """Sum up what a workload requests, by resource.

    Args:
        work: the workload.
        old: the slice that it replaces; what this one has is not requested again.
        fewer: by pod set how many pods would start, if not all.
    """
    kept = dict(zip((one.name for one in old.sets), old.counts, strict=True)) if old else {}
    counts = [
        max(0, fewer.get(one.name, n) - kept.get(one.name, 0))
        for one, n in zip(work.sets, work.counts, strict=True)
    ]
    wanted = {names.PODS: sum(counts)}
    for one, n_pods in zip(work.sets, counts, strict=True):
        for resource, amount in one.shape.requests:
            total = wanted.get(resource, 0) + amount * n_pods
            wanted[resource] = min(quantities.INT64_MAX, total)
    return wanted


def _measure(tenants: Tenants, tree: Tree, work: Work, column: Column, requested: int) -> Lack:
    """Measure what there is of a column for a workload, and who has the rest."""
    node, k, handle = tree.queues[work.queue], tree.columns[column], tree.handle
    available = tree.find_available(node, k)
    others: list[Borrower] = []
    for name, i in tree.queues.items() if requested > available else ():
        borrowed = int(handle.usage[i, k]) - int(handle.subtree[i, k])
        if i != node and borrowed > 0:
            others.append(Borrower(name, borrowed, _count_holders(tenants, name, column)))
    return Lack(
        *column,
        requested,
        available,
        int(handle.most[node, k]),
        int(handle.subtree[node, k]),
        int(handle.usage[node, k]),
        _count_holders(tenants, work.queue, column),
        tuple(others),
    )


def _count_holders(tenants: Tenants, queue: str, column: Column) -> int:
    held = tenants.directory.forest.list_held(queue).values()
    return sum(bool(amounts.get(column)) for amounts in held)


def _list_givers(
    tenants: Tenants, tree: Tree, work: Work, lacks: tuple[Lack, ...]
) -> Iterator[Giver]:
    """List who may be asked to give back what is missing in a flavor."""
    missing = {
        (one.flavor, one.resource): one.requested for one in lacks if one.requested > one.available
    }
    if not missing:
        return
    asker = Asker(work, tenants.find_queue(work.queue), missing, list(missing))
    for one in Reclaiming(tree, tenants.works, tenants.rules).list_candidates(asker):
        yield _make_giver(tenants, tree.held.keys[one.row] or "", one.why)


def list_uncovered(tenants: Tenants, work: Work, found: Outlook) -> list[str]:
    """List the resources that a workload requests, and of which its queue has no quota though it has to have some."""
    if found.assignment is None or tenants.book.ignores_undeclared:
        return []
    groups = tenants.find_queue(work.queue).groups
    covered = {resource for group in groups for resource in group.resources}
    wanted = {name for one in found.assignment.sets for name, n in one.requests.items() if n}
    return sorted(wanted - covered)
