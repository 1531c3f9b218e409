"""Victims that are stand-ins for pods which do not exist yet: their workload gives its quota back as a whole.

Nobody can evict a pod that does not exist. Without its place, the workload would start and find no room.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import msgspec

from scheduler.api.door.decisions import Evict, Outcome
from scheduler.api.door.workload_decisions import EvictWorkload
from scheduler.api.queues.words import PREEMPTED
from scheduler.state.cluster import Cluster
from scheduler.tenancy.tenants import Tenants


def evict_workloads(outcome: Outcome, cluster: Cluster, tenants: Tenants) -> None:
    """Evict the workloads of all stand-ins among the victims of an outcome; only pods that exist stay victims."""
    if not len(cluster.stand_ins):
        return
    find_workload = cluster.stand_ins.find_workload
    # The pod that needs the room, by workload.
    asked: dict[str, str] = {}
    for i, plan in enumerate(outcome.plans):
        found = {
            workload: evict.makes_room_for
            for evict in plan.evicts
            for uid in evict.victims
            if (workload := find_workload(uid))
        }
        if found:
            asked = found | asked
            kept = (_keep_pods(evict, find_workload) for evict in plan.evicts)
            evicts = tuple(evict for evict in kept if evict.units)
            outcome.plans[i] = msgspec.structs.replace(plan, evicts=evicts)
    for key, uid in asked.items():
        work = tenants.works.get(key)
        if work is not None and not work.is_going:
            tenants.send_away(key)
            message = f"Preempted to make room for pod {_name_pod(cluster, uid)}"
            outcome.quotas.append(EvictWorkload(work.key, work.uid, PREEMPTED, message))


def _keep_pods(evict: Evict, find_workload: Callable[[str], str]) -> Evict:
    """Leave out the victims that do not exist."""
    units = (tuple(uid for uid in unit if not find_workload(uid)) for unit in evict.units)
    return dataclasses.replace(evict, units=tuple(unit for unit in units if unit))


def _name_pod(cluster: Cluster, uid: str) -> str:
    pod = cluster.pods.get(uid)
    return uid if pod is None else f"{pod.namespace}/{pod.name}"
