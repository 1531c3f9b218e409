"""Seats: a pod of a workload that comes takes the place that a stand-in has held for it."""

from __future__ import annotations

from scheduler.engine.workload_pods import WorkloadPods
from scheduler.state.cluster import Cluster
from scheduler.state.pods import Life, PodRecord
from scheduler.tenancy.tenants import Tenants


class Seats:
    """Gives pods that have come the places of stand-ins, one each."""

    def __init__(self, cluster: Cluster, tenants: Tenants, pods: WorkloadPods) -> None:
        """``pods``: which pods are those of which workload."""
        self._cluster, self._tenants, self._pods = cluster, tenants, pods
        # Pods that have had a seat: a pod with a gate comes again and again before it goes anywhere.
        self._seated: set[str] = set()

    def give(self, pod: PodRecord) -> None:
        """Give a pod that has come the place that a stand-in of its workload holds for it."""
        found = None if pod.uid in self._seated else self._find(pod)
        if found is None:
            return
        seat = self._cluster.pods[found]
        node, cards = seat.node, seat.claim
        self._cluster.stand_ins.drop(found)
        self._cluster.nominations.put(pod.uid, node, pod.priority, cards)
        self._seated.add(pod.uid)

    def has(self, uid: str) -> bool:
        """Whether a pod has had the place of a stand-in."""
        return uid in self._seated

    def forget(self, uid: str) -> None:
        """Forget a pod that is gone."""
        self._seated.discard(uid)

    def _find(self, pod: PodRecord) -> str | None:
        """Find the stand-in whose place a pod takes: of its pod set, the one with the lowest number."""
        keys, pod_set = self._pods.find_keys(pod.uid)
        for key in keys:
            sets = self._cluster.stand_ins.list_sets(self._tenants.index.find_owned(key))
            seats = sets.get(pod_set) or next(iter(sets.values()), [])
            for uid in seats:
                if self._cluster.pods[uid].life == Life.ASSUMED:
                    return uid
        return None
