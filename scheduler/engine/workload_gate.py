"""Holds the pods of workloads that may not run: those that have no quota yet, and those that have to give it back.

A pod with a queue waits for the workload that is made of it. Other pods wait if they are of a workload that is known. Of a
job that changes its size while it runs, no more pods go to nodes than have quota, whoever has taken their gate from them.
Pods that come for lost ones wait until there is a place that suits the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scheduler.engine.workload_pods import WorkloadPods
from scheduler.state.entities import AnyEntity, Entity
from scheduler.state.pods import PodRecord
from scheduler.tenancy.tenants import Tenants
from scheduler.tenancy.works import Work
from scheduler.waiting.admissions import Held

_NAME = "Quota"


class WorkloadGate:
    """Answers whether the workload of an entity may run. It is one of the admissions."""

    def __init__(
        self,
        tenants: Tenants,
        pods: WorkloadPods,
        records: Mapping[str, PodRecord],
        has_no_place: Callable[[str, str], bool],
    ) -> None:
        """A gate that has let nobody in.

        Args:
            tenants: the workloads.
            pods: which pods are those of which workload.
            records: all pods by uid.
            has_no_place: whether a workload, by its key, has lost nodes, and a pod of it, by its uid, no place near the rest.
        """
        self._tenants, self._pods, self._records = tenants, pods, records
        self._has_no_place = has_no_place
        # By chain of slices and pod set: pods that are on nodes, or may go there.
        self._let_in: dict[str, dict[str, set[str]]] = {}
        # By uid of such a pod: its chain. The workload may be gone before the pod.
        self._chains: dict[str, str] = {}

    def judge(self, entity: AnyEntity) -> Held | None:
        """Return why an entity may not be tried; None when it may."""
        members = entity.members if isinstance(entity, Entity) else (entity,)
        for pod in members:
            if why := self._find_objection(pod.uid):
                return Held(_NAME, why=why)
        # A group knows by itself where its pods go.
        why = "" if isinstance(entity, Entity) else self._find_shortage(entity.uid)
        return Held(_NAME, why=why) if why else None

    def list_kin(self, uid: str) -> list[str]:
        """List the pods of a job that changes its size, of which one goes from its node; none of other jobs."""
        self._forget(uid)
        for key in self._pods.find_keys(uid)[0]:
            work = self._tenants.works.get(self._tenants.index.find_owned(key))
            if work is not None and work.defined.chain:
                return list(self._pods.list_of(work.defined))
        return []

    def _forget(self, uid: str) -> None:
        chain = self._chains.pop(uid, "")
        let_in = self._let_in.get(chain, {})
        for there in let_in.values():
            there.discard(uid)
        if not any(let_in.values()):
            self._let_in.pop(chain, None)

    def _find_objection(self, uid: str) -> str:
        keys, _ = self._pods.find_keys(uid)
        for key in keys:
            work = self._tenants.works.get(self._tenants.index.find_owned(key))
            if work is not None:
                return _find_wait(work) or self._find_excess(uid, work)
        queue = self._pods.find_queue(uid)
        return f"queue {queue}: the pod has no workload yet" if queue else ""

    def _find_shortage(self, uid: str) -> str:
        for key in self._pods.find_keys(uid)[0]:
            work = self._tenants.works.get(self._tenants.index.find_owned(key))
            if work is not None and self._has_no_place(work.key, uid):
                return f"workload {work.key} has lost nodes, and there is no free place in the domain of its other pods"
        return ""

    def _find_excess(self, uid: str, work: Work) -> str:
        """Find whether a job that changes its size has as many pods on nodes, or on their way there, as have quota."""
        defined = work.defined
        if not defined.chain or defined.is_finished:
            return ""
        own = self._pods.find_set(uid, defined)
        let_in = self._let_in.get(defined.chain)
        if let_in is None:
            let_in = self._let_in[defined.chain] = self._list_placed(work)
        quota = dict(zip((one.name for one in work.sets), work.counts, strict=True)).get(own, 0)
        there = let_in.setdefault(own, set())
        if uid not in there and len(there) >= quota:
            return f"queue {defined.local}: workload {work.key} has quota for {quota} pods, and others have it"
        there.add(uid)
        self._chains[uid] = defined.chain
        return ""

    def _list_placed(self, work: Work) -> dict[str, set[str]]:
        """List the pods of a workload that have a node and stay there, by pod set."""
        found: dict[str, set[str]] = {}
        for uid in self._pods.list_of(work.defined):
            one = self._records.get(uid)
            if one is not None and one.node and not one.deleting:
                found.setdefault(self._pods.find_set(uid, work.defined), set()).add(uid)
                self._chains[uid] = work.defined.chain
        return found


def _find_wait(work: Work) -> str:
    """Find what a workload waits for; empty if it may run, or has run."""
    defined = work.defined
    if defined.is_finished or (defined.is_admitted and not defined.evicted):
        return ""
    where = f"queue {defined.local}: workload {work.key}"
    if defined.evicted:
        return f"{where} has to give its quota back ({defined.evicted})"
    if defined.admission is not None:
        return f"{where} has quota, and waits for its admission checks"
    why = f" ({work.reason}: {work.message})" if work.reason else ""
    return f"{where} waits for quota{why}"
