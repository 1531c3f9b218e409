"""Pods of workloads that do not exist yet, and were chosen as victims: their workload gives its quota back as a whole.

Nobody can evict a pod that does not exist. Its workload has not started, or misses a pod, and would start without a place.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import msgspec

from scheduler.api.door.decisions import Evict, Outcome, Plan
from scheduler.api.door.workload_decisions import EvictWorkload
from scheduler.api.queues.words import PREEMPTED
from scheduler.state.cluster import Cluster
from scheduler.tenancy.tenants import Tenants


def evict_workloads(outcome: Outcome, cluster: Cluster, tenants: Tenants) -> None:
    """Evict the workloads of all victims in an outcome that do not exist, and leave only pods that do among the victims."""
    stand_ins = cluster.stand_ins
    if not len(stand_ins):
        return
    asked: dict[str, str] = {}
    for i, plan in enumerate(outcome.plans):
        if not any(uid in stand_ins for evict in plan.evicts for uid in evict.victims):
            continue
        for evict in plan.evicts:
            for uid in evict.victims:
                if workload := stand_ins.find_workload(uid):
                    asked.setdefault(workload, evict.makes_room_for)
        outcome.plans[i] = _keep_pods(
            plan, {pod for pod in _list_victims(plan) if pod in stand_ins}
        )
    for key, uid in asked.items():
        work = tenants.works.get(key)
        if work is not None and not work.is_going:
            tenants.send_away(key)
            message = f"Preempted to make room for pod {_name_pod(cluster, uid)}"
            outcome.quotas.append(EvictWorkload(work.key, work.uid, PREEMPTED, message))


def _list_victims(plan: Plan) -> Iterable[str]:
    return (uid for evict in plan.evicts for uid in evict.victims)


def _keep_pods(plan: Plan, missing: set[str]) -> Plan:
    """Leave out the victims that do not exist."""
    kept: list[Evict] = []
    for evict in plan.evicts:
        units = (tuple(uid for uid in unit if uid not in missing) for unit in evict.units)
        left = tuple(unit for unit in units if unit)
        if left:
            kept.append(dataclasses.replace(evict, units=left))
    return msgspec.structs.replace(plan, evicts=tuple(kept))


def _name_pod(cluster: Cluster, uid: str) -> str:
    pod = cluster.pods.get(uid)
    return uid if pod is None else f"{pod.namespace}/{pod.name}"
