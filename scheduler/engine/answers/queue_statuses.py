"""The figures that the statuses of queues have, and what is looked up when quota is given or taken."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from scheduler.api import kueue
from scheduler.api.groups import objects
from scheduler.api.queues.definitions import QueueDefinition, ResourceGroup, Stop
from scheduler.engine.answers.inside import Inside
from scheduler.engine.questions import queues as ask
from scheduler.engine.questions.contract import Steps
from scheduler.tenancy.kai.ordering import is_within
from scheduler.tenancy.tenants import Tenants
from scheduler.tenancy.trees import Column
from scheduler.tenancy.works import Where, Work
from scheduler.waiting.admissions import say_problem

_QUEUE = str(kueue.ClusterQueue.__struct_config__.tag)
_LOCAL = str(kueue.LocalQueue.__struct_config__.tag)
_COHORT = str(kueue.Cohort.__struct_config__.tag)
_FLAVOR = str(kueue.ResourceFlavor.__struct_config__.tag)
_CHECK = str(kueue.AdmissionCheck.__struct_config__.tag)
_TOPOLOGY = str(objects.KueueTopology.__struct_config__.tag)
# In Kueue's words.
_CANNOT_SUBMIT = "Can't submit new workloads to clusterQueue"
_STOPPED = "Stopped", "LocalQueue is stopped"
_MISSING, _INACTIVE = "ClusterQueueDoesNotExist", "ClusterQueueIsInactive"


def find_path(inside: Inside, question: ask.QueuePath) -> str:
    """Find the queue of a workload and the cohorts above it."""
    work = inside.tenants.works.get(question.key)
    if work is None or not work.queue:
        return ""
    forest = inside.tenants.directory.forest
    queue = forest.queues.get(work.queue)
    parts, above = [work.queue], queue.cohort if queue else ""
    while above and above not in parts[1:]:
        parts.append(above)
        cohort = forest.cohorts.get(above)
        above = cohort.parent if cohort else ""
    return "/" + "/".join(reversed(parts))


def list_checks(inside: Inside, question: ask.ChecksToPass) -> tuple[str, ...]:
    """List the admission checks of a queue for a workload that gets some flavors."""
    return tuple(inside.tenants.directory.list_checks(question.queue, question.flavors))


def is_in_use(inside: Inside, question: ask.IsObjectInUse) -> bool:
    """Whether an object of queues is used by others, so that it has to stay."""
    directory, key = inside.tenants.directory, question.key
    match question.kind:
        case kind if kind == _QUEUE:
            return bool(directory.forest.list_held(key))
        case kind if kind == _FLAVOR:
            return any(True for _ in directory.list_users(key))
        case kind if kind == _CHECK:
            return any(True for _ in directory.list_users_of_check(key))
        case kind if kind == _TOPOLOGY:
            return any(one.topology == key for one in directory.book.flavors.values())
    return False


def list_kai_figures(inside: Inside, _: ask.StatusesOfKaiQueues) -> Sequence[ask.KaiFigures]:
    """List the figures of all queues of KAI."""
    tree, charged = inside.shares.tree, inside.shares.list_charged()
    queues = tree.queues
    problems = {name: tree.find_problem(name) for name, one in queues.items() if not one.children}
    return [
        ask.KaiFigures(
            queue.defined,
            tuple(queue.children),
            held.allocated,
            held.fixed,
            held.requested,
            queue.fair,
            bool(queue.defined.parent) and queue.defined.parent not in queues,
            not is_within(held.allocated, queue.defined.quota),
            say_problem(problem, queue.name) if (problem := problems.get(queue.name)) else "",
        )
        for queue, held in charged
    ]


def list_figures(inside: Inside, _: ask.StatusesOfQueues) -> Steps[Sequence[ask.QueueFigures]]:
    """List the figures of all queues and cohorts, a queue at a time."""
    tenants = inside.tenants
    directory = tenants.directory
    found: list[ask.QueueFigures] = []
    shares = {}
    for tree in directory.forest.list_trees():
        for i, node in enumerate(tree.nodes):
            shares[not node.is_queue, node.name] = tree.find_share(i)[0]
        yield
    waiting = dict.fromkeys(directory.forest.queues, 0)
    for key in list(directory.locals):
        local = directory.locals.get(key)
        if local is not None:
            works = [tenants.works[one] for one in tenants.index.list_of_local(key)]
            n_waiting = sum(map(_is_waiting, works))
            waiting[local.queue] = waiting.get(local.queue, 0) + n_waiting
            found.append(_describe_local(tenants, key, works, n_waiting))
        yield
    for name in list(directory.forest.queues):
        queue = directory.forest.queues.get(name)
        if queue is not None:
            figures = _describe_queue(tenants, queue)
            share = shares.get((False, name), 0.0)
            found.append(figures._replace(pending=waiting.get(name, 0), share=share))
        yield
    found += [
        ask.QueueFigures(_COHORT, name, shares.get((True, name), 0.0))
        for name in directory.forest.cohorts
    ]
    return found


def _is_waiting(work: Work) -> bool:
    return work.where != Where.HOLDS and work.defined.is_active and not work.defined.is_finished


def _describe_queue(tenants: Tenants, queue: QueueDefinition) -> ask.QueueFigures:
    held = tenants.directory.forest.list_held(queue.name)
    works = [tenants.works[key] for key in held if key in tenants.works]
    uses = []
    for one in _sum_up(tenants, works, queue.groups):
        nominal = _find_nominal(queue.groups, one.flavor, one.resource)
        if queue.cohort:
            more, admitted = max(0, one.reserved - nominal), max(0, one.admitted - nominal)
            uses.append(one._replace(borrowed=more, admitted_borrowed=admitted))
        else:
            uses.append(one)
    return ask.QueueFigures(
        kind=_QUEUE,
        key=queue.name,
        reserving=len(works),
        admitted=sum(one.defined.is_admitted for one in works),
        uses=tuple(uses),
        inactive=_join_reasons(tenants.directory.list_inactive_reasons(queue.name)),
    )


def _join_reasons(found: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """Join why a queue admits nobody, as Kueue does: the first reason, and all messages."""
    if not found:
        return "", ""
    said = ", ".join(message for _, message in found)
    return found[0][0], f"Can't admit new workloads: {said}."


def _describe_local(
    tenants: Tenants, key: str, works: Sequence[Work], n_waiting: int
) -> ask.QueueFigures:
    directory = tenants.directory
    local = directory.locals[key]
    queue = directory.forest.queues.get(local.queue)
    held = [one for one in works if one.where == Where.HOLDS and one.queue == local.queue]
    inactive = ("", "")
    if local.stop != Stop.NONE:
        inactive, n_waiting = _STOPPED, 0
    elif queue is None:
        inactive = _MISSING, _CANNOT_SUBMIT
    elif directory.list_inactive_reasons(queue.name):
        inactive = _INACTIVE, _CANNOT_SUBMIT
    record = tenants.history.find_record(key) if queue is not None and queue.by_usage else None
    consumed, consumed_at = record or ({}, 0.0)
    return ask.QueueFigures(
        kind=_LOCAL,
        key=key,
        pending=n_waiting,
        reserving=len(held),
        admitted=sum(one.defined.is_admitted for one in held),
        uses=tuple(_sum_up(tenants, held, queue.groups if queue else ())),
        inactive=inactive,
        consumed=tuple(sorted(consumed.items())),
        consumed_at=consumed_at,
        parked=sum(map(partial(_is_parked, tenants), works)) if n_waiting else 0,
    )


def _is_parked(tenants: Tenants, work: Work) -> bool:
    """Whether a workload waits for a change: of quota or of the cluster, or of what is written on it."""
    if work.where == Where.WAITS:
        return tenants.lines[work.queue].is_parked(work.key)
    return _is_waiting(work)


def _sum_up(
    tenants: Tenants, works: Iterable[Work], groups: Sequence[ResourceGroup]
) -> list[ask.FlavorUse]:
    """Sum up what workloads hold, for all columns of a queue."""
    reserved: dict[Column, int] = {}
    admitted: dict[Column, int] = {}
    for work in works:
        amounts = tenants.directory.forest.list_held(work.queue).get(work.key, {})
        for column, n in amounts.items():
            reserved[column] = reserved.get(column, 0) + n
            if work.defined.is_admitted:
                admitted[column] = admitted.get(column, 0) + n
    return [
        ask.FlavorUse(one.flavor, name, reserved.get(column, 0), admitted.get(column, 0))
        for group in groups
        for one in group.flavors
        for name in sorted(group.resources)
        for column in [(one.flavor, name)]
    ]


def _find_nominal(groups: Sequence[ResourceGroup], flavor: str, resource: str) -> int:
    for group in groups:
        for one in group.flavors:
            if one.flavor == flavor and resource in group.resources:
                return one.quotas[group.resources.index(resource)].nominal
    return 0
