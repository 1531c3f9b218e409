"""Answers about the pods and groups in KAI's queues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from scheduler.api import kinds
from scheduler.api.groups.definitions import GroupKey
from scheduler.api.queues.kai import NOTHING, add
from scheduler.api.queues.kai_usage import UsageRecord
from scheduler.api.queues.settings import KaiSettings
from scheduler.disruption.queue_victims import Action, QueueVictims
from scheduler.engine.answers.inside import Inside
from scheduler.engine.questions import kai_queues as ask
from scheduler.state.entities import AnyEntity, Entity
from scheduler.state.pods import Life
from scheduler.telling import sayings
from scheduler.tenancy.kai.rules import find_over, make_taker, may_reclaim
from scheduler.tenancy.kai.turns import list_next
from scheduler.waiting.admissions import InQueue
from scheduler.waiting.entries import Entry

_POD = kinds.PODS.kind


class _Name(NamedTuple):
    namespace: str
    name: str
    kind: str


def list_all(inside: Inside, _: ask.AllInKaiQueues) -> Sequence[ask.InKaiQueue]:
    """List all that holds something in the queues, or waits there."""
    inside.shares.settle_shares()
    holders = sorted(_list_holders(inside), key=lambda one: (one.queue, one.created, one.key))
    return [*holders, *_list_waiters(inside)]


def _list_holders(inside: Inside) -> Iterator[ask.InKaiQueue]:
    shares, cluster = inside.shares, inside.cluster
    for queue in shares.tree.queues:
        found: dict[_Name, ask.InKaiQueue] = {}
        for uid, terms in shares.list_holders(queue):
            pod, group = cluster.pods[uid], cluster.groups.find_group(uid)
            root = None if group is None else cluster.groups.find_root(group)
            name = _Name(pod.namespace, pod.name, _POD) if root is None else _name_group(root)
            before = found.get(name)
            found[name] = ask.InKaiQueue(
                *name,
                queue,
                terms.priority,
                terms.is_preemptible,
                pod.created if before is None else min(before.created, pod.created),
                is_waiting=False,
                n_pods=1 if before is None else before.n_pods + 1,
                amounts=add(NOTHING if before is None else before.amounts, shares.find_held(uid)),
                pods=() if root is None else (*(before.pods if before else ()), pod.name),
            )
        yield from found.values()


def _list_waiters(inside: Inside) -> Iterator[ask.InKaiQueue]:
    shares, order = inside.shares, inside.pending.order
    by_queue: dict[str, list[Entry]] = {}
    for entry in inside.pending.list_entries() if len(shares.tree) else ():
        queue = shares.find_terms_of(entry.entity).queue
        if queue:
            by_queue.setdefault(queue, []).append(entry)
    for queue, entries in sorted(by_queue.items()):
        in_order = sorted(entries, key=lambda one: order.find_place(one.entity))
        for position, entry in enumerate(in_order):
            entity = entry.entity
            terms, turn = shares.find_terms_of(entity), list_next(inside.cluster, entity)
            yield ask.InKaiQueue(
                *_name(entity),
                queue,
                terms.priority,
                terms.is_preemptible,
                entity.created,
                is_waiting=True,
                n_pods=len(turn),
                amounts=shares.sum_wants(turn),
                position=position,
                **_find_hold(inside, entry),
                pods=_list_waiting(inside, entity),
            )


def _list_waiting(inside: Inside, entity: AnyEntity) -> tuple[str, ...]:
    """List the names of those pods of a group that have no node yet."""
    if not isinstance(entity, Entity):
        return ()
    there = (inside.cluster.pods.get(pod.uid) for pod in entity.members)
    return tuple(pod.name for pod in there if pod is not None and pod.life == Life.PENDING)


def _name_group(key: GroupKey) -> _Name:
    return _Name(key.namespace, key.name, key.kind.partition(".")[0])


def _name(entity: AnyEntity) -> _Name:
    if isinstance(entity, Entity):
        return _name_group(entity.key)
    return _Name(entity.namespace, entity.name, _POD)


def _find_hold(inside: Inside, entry: Entry) -> dict[str, str]:
    """Find why an entity may not be tried: first what its queue says, then what is wrong with it or missing."""
    shares, entity = inside.shares, entry.entity
    if (held := InQueue(shares).judge(entity)) is not None:
        return {"reason": held.by, "message": held.why}
    with shares.lift_promises(entity):
        taker = make_taker(shares, entity)
        over = None if taker is None else find_over(taker)
    if over is not None:
        return {"reason": over.reason, "message": over.describe()}
    if entry.held is not None:
        return {"reason": entry.held.by, "message": entry.held.why}
    problem = next((pod.problem for pod in entity.members if pod.problem is not None), None)
    return {} if problem is None else {"reason": sayings.ERROR, "message": str(problem)}


def find_givers(inside: Inside, question: ask.WhoGivesWay) -> ask.KaiOutlook | None:
    """Find who may go for a pod or group: those of other queues, then those of its own."""
    shares = inside.shares
    shares.settle_shares()
    entity = next(
        (
            one.entity
            for one in inside.pending.list_entries()
            if "/".join(_name(one.entity)[:2]) == question.key
            and shares.find_terms_of(one.entity).queue
        ),
        None,
    )
    if entity is None or shares.rival:
        return None
    victims = QueueVictims(inside.cluster, shares, KaiSettings(by_common=question.by_common))
    terms, ends = shares.find_terms_of(entity), list[float]()
    found: list[ask.KaiGiver] = []
    with shares.lift_promises(entity):
        taker = make_taker(shares, entity)
        if taker is None:
            return None
        reclaims = may_reclaim(taker)
        victims.begin()
        for action in Action:
            is_reclaimed = action == Action.RECLAIM
            if is_reclaimed and not reclaims:
                continue
            units = victims.list_units(taker, terms, action, ends)
            for unit in islice(units, question.most - len(found)):
                of_first = shares.find_terms(unit.pods[0])
                pods = tuple(pod.key for pod in unit.pods)
                found.append(ask.KaiGiver(pods, of_first.queue, of_first.priority, is_reclaimed))
    return ask.KaiOutlook(reclaims, tuple(found), min(ends, default=None))


def list_usage(inside: Inside, _: ask.UsageOfKaiQueues) -> Sequence[tuple[str, UsageRecord]]:
    """List what the queues have used over time."""
    return inside.shares.usage.list_records()
