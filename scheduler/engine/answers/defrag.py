"""Answers about which running pods to move."""

from __future__ import annotations

from scheduler.defrag.contract import Plan
from scheduler.defrag.planning import Planning
from scheduler.defrag.waiters import Limits
from scheduler.engine.answers.inside import Inside
from scheduler.engine.questions import defrag as ask
from scheduler.engine.space_quotas import find_common_excess
from scheduler.schema import columns as c
from scheduler.schema.world import ANYWHERE
from scheduler.state.entities import AnyEntity, Entity
from scheduler.state.pods import Life, PodRecord
from scheduler.tenancy.kai.rules import find_over, find_preempt_seconds, make_taker
from scheduler.waiting.entries import Entry, Where


def plan_moves(inside: Inside, question: ask.PlanOfMoves) -> Plan:
    """Which pods to move."""
    inside.cycle.learn()
    waiting = _list_waiting(inside)

    def find_minimum(pod: PodRecord) -> float:
        accounts = inside.shares
        queues = accounts.tree.queues if len(accounts.tree) else {}
        queue = queues.get(accounts.find_terms(pod).queue) if queues else None
        return 0.0 if queue is None else find_preempt_seconds(queue)

    def let_try(entity: AnyEntity) -> bool:
        if _exceeds_quota(inside, entity):
            return False
        taker = make_taker(inside.shares, entity) if len(inside.shares.tree) else None
        return taker is None or find_over(taker) is None

    def find_nodes(pod: PodRecord) -> c.Flags:
        found = inside.spaces.find_rows(pod)
        return ANYWHERE if found is None else found[0]

    def let_stay(pod: PodRecord) -> bool:
        return inside.spaces.find_over(pod) is None

    cluster, cycle, terms = inside.cluster, inside.cycle, question.terms
    limits = Limits(let_try, find_nodes, let_stay)
    return Planning(cluster, cycle, waiting, terms, find_minimum, limits).make_plan()


def _exceeds_quota(inside: Inside, entity: AnyEntity) -> bool:
    """Whether the pods of an entity that have no node would exceed a quota of their namespace."""
    ledger = inside.spaces
    known = (inside.cluster.pods[pod.uid] for pod in entity.members)
    pods = [pod for pod in known if not pod.node]
    # Where the size of its cards matters, a pod alone may get smaller ones.
    measure = ledger.find_most if isinstance(entity, Entity) else ledger.find_least
    return find_common_excess(ledger, pods, measure, {}) is not None


def _list_waiting(inside: Inside) -> list[AnyEntity]:
    """List who was tried in vain and has no room promised, the first one first."""
    found = [one.entity for one in inside.pending.list_entries() if _lacks_room(inside, one)]
    return sorted(found, key=inside.pending.order.find_place)


def _lacks_room(inside: Inside, entry: Entry) -> bool:
    if entry.where in (Where.GATED, Where.ACTIVE):
        return False
    if isinstance(entry.entity, Entity) and (entry.entity.problem or entry.entity.lacks):
        return False
    nominated = inside.cluster.nominations.find_node
    return all(pod.life == Life.PENDING and not nominated(pod.uid) for pod in entry.entity.members)
