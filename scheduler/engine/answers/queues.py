"""Answers about queues, and about the workloads in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from scheduler.api.queues.definitions import UNLIMITED, Quota
from scheduler.api.queues.remarks import list_remarks
from scheduler.engine.answers.inside import Inside
from scheduler.engine.questions import queues as ask
from scheduler.tenancy import outlooks
from scheduler.tenancy.outcomes import NO_PLACE
from scheduler.tenancy.tenants import Tenants
from scheduler.tenancy.trees import Column, Tree, list_quotas
from scheduler.tenancy.works import Where, Work

_NO_QUOTA = Quota()


def list_queues(inside: Inside, _: ask.KnownQueues) -> Sequence[ask.QueueStanding]:
    """List all queues and cohorts, each tree from its root down; then the queues that are in none."""
    tenants = inside.tenants
    forest = tenants.directory.forest
    found = [one for tree in forest.list_trees() for one in _list_nodes(tenants, tree)]
    placed = {one.name for one in found if not one.is_cohort}
    for name in sorted(forest.queues.keys() - placed):
        queue = forest.queues[name]
        inactive = tuple(tenants.directory.list_inactive_reasons(name))
        counts = _count(tenants, name)
        found.append(
            ask.QueueStanding(
                name,
                False,
                queue.cohort,
                queue.weight,
                0.0,
                "",
                *counts,
                (),
                inactive,
                tuple(list_remarks(queue)),
            )
        )
    return found


def _list_nodes(tenants: Tenants, tree: Tree) -> Iterator[ask.QueueStanding]:
    for i, node in enumerate(tree.nodes):
        share, dominant = tree.find_share(i)
        parent = tree.nodes[node.parent].name if node.parent >= 0 else ""
        inactive = tenants.directory.list_inactive_reasons(node.name) if node.is_queue else ()
        forest = tenants.directory.forest
        defined = forest.queues[node.name] if node.is_queue else forest.cohorts.get(node.name)
        yield ask.QueueStanding(
            node.name,
            not node.is_queue,
            parent,
            node.weight,
            share,
            dominant,
            *(_count(tenants, node.name) if node.is_queue else (0, 0, 0, 0, 0)),
            tuple(_list_uses(tenants, tree, i)),
            tuple(inactive),
            tuple(list_remarks(defined)) if defined is not None else (),
        )


def _list_uses(tenants: Tenants, tree: Tree, node: int) -> Iterator[ask.QuotaUse]:
    handle = tree.handle
    defined, is_queue = tree.nodes[node], tree.nodes[node].is_queue
    quotas = dict(list_quotas(defined.groups))
    checked = _sum_up_checked(tenants, defined.name) if is_queue else {}
    for (flavor, resource), k in tree.columns.items():
        if handle.named[node, k] or handle.usage[node, k]:
            nominal, used = int(handle.subtree[node, k]), int(handle.usage[node, k])
            available = tree.find_available(node, k)
            borrowed = max(0, used - nominal)
            # What has no limit is not lent as long as any is left.
            lent = 0 if nominal == UNLIMITED else max(0, nominal - used - max(0, available))
            _, borrowing, lending = quotas.get((flavor, resource), _NO_QUOTA)
            admitted = used - checked.get((flavor, resource), 0) if is_queue else 0
            yield ask.QuotaUse(
                flavor,
                resource,
                nominal,
                used,
                borrowed,
                lent,
                available,
                admitted,
                borrowing,
                lending,
            )


def _sum_up_checked(tenants: Tenants, queue: str) -> dict[Column, int]:
    """Sum up what those workloads of a queue hold that may not run yet: these are few."""
    found: dict[Column, int] = {}
    for key, amounts in tenants.directory.forest.list_held(queue).items():
        if not tenants.works[key].defined.is_admitted:
            for column, amount in amounts.items():
                found[column] = found.get(column, 0) + amount
    return found


def _count(tenants: Tenants, queue: str) -> tuple[int, int, int, int, int]:
    """Count who waits, is parked, lacks a place, has quota, and may run."""
    line = tenants.lines.get(queue)
    waits = (0, 0, 0)
    if line is not None:
        # One look at the queue for all who wait in it: there may be thousands of kinds.
        free = _find_free(tenants, queue)
        n_placeless = line.count_reason(NO_PLACE, partial(_has_quota, free))
        waits = len(line), line.count_parked(), n_placeless
    held = [tenants.works[key] for key in tenants.directory.forest.list_held(queue)]
    return *waits, len(held), sum(one.defined.is_admitted for one in held)


def _find_free(tenants: Tenants, queue: str) -> dict[str, int]:
    """Find how much more of each resource a queue may use, in the flavor in which it is most."""
    tree, free = tenants.directory.forest.find_tree(queue), dict[str, int]()
    if tree is not None:
        node = tree.queues[queue]
        for (_, resource), k in tree.columns.items():
            free[resource] = max(free.get(resource, 0), tree.find_available(node, k))
    return free


def _has_quota(free: Mapping[str, int], work: Work) -> bool:
    """Whether there may be quota for a workload: of each resource as much as all its pods ask for."""
    amounts = Counter[str]()
    for one, n_pods in zip(work.sets, work.counts, strict=True):
        for resource, amount in one.shape.requests:
            amounts[resource] += amount * n_pods
    return all(free.get(resource, 0) >= amount for resource, amount in amounts.items() if amount)


def list_pods(inside: Inside, question: ask.PodsOfWorkload) -> Sequence[str]:
    """List the pods of a workload that exist.

    Slices of one job share their pods: those with a gate are of the slice that waits for quota, if there is one.
    """
    tenants, pods = inside.tenants, inside.cluster.pods
    work = tenants.works.get(question.key)
    if work is None:
        return []
    found = tenants.places.list_pods(work.key)
    if not work.defined.chain:
        return found
    current = tenants.index.find_current(work)
    following = [
        one.key
        for one in tenants.index.list_replacing(current)
        if one.where != Where.HOLDS and not one.defined.is_finished
    ]
    gated = {uid for uid in found if uid in pods and pods[uid].gated}
    if work.key == current:
        return [uid for uid in found if not following or uid not in gated]
    return [uid for uid in found if uid in gated] if work.key in following else []


def list_workloads(inside: Inside, _: ask.KnownWorkloads) -> Sequence[ask.WorkloadStanding]:
    """List all workloads, by queue and position."""
    tenants = inside.tenants
    works = tenants.works.values()
    queues = sorted({work.queue for work in works if work.where == Where.WAITS})
    lines = (tenants.lines[queue].list_in_order() for queue in queues)
    place = {work.key: i for line in lines for i, work in enumerate(line)}
    ordered = sorted(works, key=lambda one: (one.queue, place.get(one.key, -1), one.key))
    return [_describe(tenants, work, place.get(work.key, -1)) for work in ordered]


def _describe(tenants: Tenants, work: Work, position: int) -> ask.WorkloadStanding:
    held = tenants.directory.forest.list_held(work.queue).get(work.key, {})
    reason, message = tenants.find_reason(work)
    return ask.WorkloadStanding(
        work.key,
        work.local,
        work.queue,
        work.priority,
        str(work.where),
        position,
        tuple((flavor, resource, n) for (flavor, resource), n in sorted(held.items())),
        work.is_going,
        reason,
        message,
        work.since,
        work.reserved_at,
        work.defined.is_admitted,
    )


def find_record(inside: Inside, question: ask.KnownQueue) -> ask.QueueRecord:
    """Find how a queue or a cohort is defined."""
    directory = inside.tenants.directory
    if question.is_cohort:
        return ask.QueueRecord(None, directory.forest.cohorts.get(question.name))
    found = tuple(directory.locals[key] for key in sorted(directory.list_locals(question.name)))
    return ask.QueueRecord(directory.forest.queues.get(question.name), None, found)


def explain_wait(inside: Inside, question: ask.WhyNoQuota) -> ask.QuotaWait | None:
    """Find why a workload has no quota."""
    tenants = inside.tenants
    work = tenants.works.get(question.key)
    if work is None or work.where == Where.HOLDS or work.defined.is_finished:
        return None
    found = outlooks.find_outlook(tenants, work)
    victims = [ask.QuotaGiver(*one) for one in found.victims]
    flavors = tuple(
        ask.FlavorOutlook(
            one.flavor,
            one.refusals,
            tuple(
                ask.QuotaLack(*lack[:-1], others=tuple(map(ask.QuotaBorrower._make, lack.others)))
                for lack in one.lacks
            ),
            tuple(map(ask.QuotaGiver._make, one.givers)),
        )
        for one in outlooks.list_flavors(tenants, work, found)
    )
    uncovered = tuple(outlooks.list_uncovered(tenants, work, found))
    return ask.QuotaWait(
        found.verdict,
        found.reason,
        found.message,
        tuple(victims),
        flavors,
        uncovered,
        tuple(outlooks.list_fewer(work, found)),
    )


def list_waiters(inside: Inside, question: ask.WaitersOf) -> Sequence[ask.Waiter]:
    """List who waits in a queue."""
    return [
        ask.Waiter(work.key, one.verdict, one.reason, one.message)
        for work, one in outlooks.list_outlooks(inside.tenants, question.queue, question.most)
    ]
