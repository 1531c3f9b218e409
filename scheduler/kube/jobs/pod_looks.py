"""Looks at pods that wait in a queue by themselves, or as a group: which of them need something, and what is done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from scheduler.api import kinds, kueue, names, wire
from scheduler.api.jobs.owners import JobKey, find_job_key
from scheduler.api.jobs.parts import Json
from scheduler.api.jobs.units import UnitKey, find_unit, name_unit
from scheduler.api.queues.words import ADMITTED, EVICTED, FINISHED
from scheduler.kube.client import ApiClient
from scheduler.kube.jobs import known
from scheduler.kube.jobs.known import KnownWorkload
from scheduler.kube.jobs.looks import Looks, Named
from scheduler.kube.jobs.pod_deciding import find_deed
from scheduler.kube.jobs.pod_scene import PodScene
from scheduler.kube.jobs.ties import JobTies
from scheduler.kube.jobs.writing import JobWrites, list_labelled, read_if_there

_DEEDS = 8
_GATES = frozenset({names.KUEUE_GATE, names.KUEUE_TOPOLOGY_GATE})
_OVER = frozenset({"Succeeded", "Failed"})


class KnownPod(NamedTuple):
    """What counts of a pod.

    Attributes:
        unit: with which it waits.
        meta: its name, namespace, uid and generation.
        queue: the queue that it names.
        is_gated: whether a gate of Kueue keeps it from running.
        may_run: whether it runs, or can begin to.
        is_over: whether it has ended.
        is_going: whether it is being deleted.
        is_ready: whether it is ready.
        total: how many pods its group says it has, as it is written.
    """

    unit: UnitKey
    meta: wire.Meta
    queue: str
    is_gated: bool
    may_run: bool
    is_over: bool
    is_going: bool
    is_ready: bool
    total: str


class PodLooks:
    """The pods with a queue that no job with a queue has made, and their workloads.

    Attributes:
        looks: looks at them.
    """

    def __init__(
        self,
        api: ApiClient,
        ties: JobTies,
        flavors: Mapping[str, Json],
        writes: JobWrites,
        is_managed: Callable[[JobKey | None], bool],
    ) -> None:
        """``is_managed`` says whether a job has a queue; its pods are its own affair."""
        self._api, self._ties, self._flavors, self._writes = api, ties, flavors, writes
        self._is_managed = is_managed
        self._pods: dict[str, KnownPod] = {}
        self._units: dict[UnitKey, set[str]] = {}
        self._workloads: dict[str, tuple[UnitKey, KnownWorkload]] = {}
        self._owned: dict[UnitKey, dict[str, KnownWorkload]] = {}
        # What has changed since the last look.
        self._stale: set[UnitKey] = set()
        self.looks: Looks[UnitKey] = Looks(self, ties.reporter)

    # What the watches show.

    def see_pod(self, found: wire.Pod) -> None:
        """Take over what a watch says of a pod."""
        labels = found.metadata.labels or {}
        uid = found.metadata.uid
        if names.KUEUE_QUEUE not in labels or not self._is_ours(found, labels):
            self.drop_pod(uid)
            return
        pod = self._read(found, labels)
        if self._pods.get(uid) != pod:
            self.drop_pod(uid)
            self._pods[uid] = pod
            self._units.setdefault(pod.unit, set()).add(uid)
            self._note(pod.unit)

    def _is_ours(self, found: wire.Pod, labels: Mapping[str, str]) -> bool:
        """Whether somebody holds a pod until its workload may run: we do it for our own pods."""
        is_held = labels.get(names.KUEUE_MANAGED) == "true"
        if not (is_held or found.spec.scheduler_name in self._ties.schedulers):
            return False
        meta = found.metadata
        return not self._is_managed(find_job_key(meta.owner_references, meta.namespace))

    @staticmethod
    def _read(found: wire.Pod, labels: Mapping[str, str]) -> KnownPod:
        meta = found.metadata
        gates = {one.name for one in found.spec.scheduling_gates or ()}
        return KnownPod(
            name_unit(meta),
            known.pick_meta(meta),
            labels[names.KUEUE_QUEUE],
            bool(gates & _GATES),
            bool(found.spec.node_name),
            found.status.phase in _OVER,
            meta.deletion_timestamp is not None,
            known.is_ready(found),
            (meta.annotations or {}).get(names.KUEUE_TOTAL, ""),
        )

    def drop_pod(self, uid: str) -> None:
        """Note that a pod is gone, or has no queue."""
        pod = self._pods.pop(uid, None)
        if pod is None:
            return
        together = self._units[pod.unit]
        together.discard(uid)
        if not together:
            del self._units[pod.unit]
            self.looks.forget(pod.unit)
        self._note(pod.unit)

    def see_workload(self, found: kueue.Workload) -> None:
        """Take over what a watch says of a workload; one that no pod owns is left alone."""
        unit = find_unit(found.metadata)
        if unit is None:
            return
        one = known.read_workload(found)
        if self._workloads.get(one.key) != (unit, one):
            self._workloads[one.key] = unit, one
            self._owned.setdefault(unit, {})[one.key] = one
            self._note(unit)

    def drop_workload(self, key: str) -> None:
        """Note that a workload is gone."""
        unit, _ = self._workloads.pop(key, (None, None))
        if unit is not None:
            owned = self._owned[unit]
            del owned[key]
            if not owned:
                del self._owned[unit]
            self._note(unit)

    def note_all(self) -> None:
        """Have all pods looked at."""
        for unit in self.list_keys():
            self._note(unit)

    def _note(self, unit: UnitKey) -> None:
        self._stale.add(unit)
        self.looks.note(unit)

    # The subject of looks.

    def list_keys(self) -> Iterable[UnitKey]:
        """List all pods that wait together, and those whose workloads are there."""
        units = {**self._units, **self._owned}
        self._stale.update(units)
        return units

    def needs_look(self, key: UnitKey) -> bool:
        """Whether there may be something to do for pods."""
        if key not in self._stale:
            return False
        if not self._is_settled(key):
            return True
        self._stale.discard(key)
        return False

    def _is_settled(self, key: UnitKey) -> bool:
        """Whether pods are plainly where their workload is: they wait, or run."""
        owned = list(self._owned.get(key, {}).values())
        pods = [self._pods[uid] for uid in self._units.get(key, ())]
        if not owned or not pods:
            return not owned and not pods
        one, first = owned[0], pods[0]
        if one.is_going or {FINISHED, EVICTED} & one.true:
            return False
        if any(pod.is_over or pod.is_going for pod in pods):
            return False
        if key.is_group and str(len(pods)) != first.total:
            return False
        if ADMITTED not in one.true:
            waits = not any(pod.may_run for pod in pods)
            return waits and all(pod.queue == one.queue for pod in pods)
        is_ready = "True" if all(pod.is_ready for pod in pods) else "False"
        has_noted = not self._ties.watches_pods or one.readiness == is_ready
        return has_noted and not any(pod.is_gated for pod in pods)

    def find_object(self, key: UnitKey) -> Named | None:
        """Find the kind and the metadata of the first of some pods."""
        uid = next(iter(self._units.get(key, ())), None)
        return (kinds.PODS, self._pods[uid].meta) if uid is not None else None

    async def look_at(self, key: UnitKey) -> bool:
        """Do what is to be done for pods; return whether there may be more.

        Raises:
            ApiError: the API server refuses.
            BadInput: a pod says something that cannot be.
            ClassMissing: their priority is not known.
        """
        for _ in range(_DEEDS):
            if not self._ties.may_write():
                return False
            self._stale.discard(key)
            scene = await self._read_scene(key)
            deed = find_deed(scene)
            if deed is None:
                return False
            self._stale.add(key)
            await self._writes.carry_out_for_pods(scene, deed)
        return True

    async def _read_scene(self, key: UnitKey) -> PodScene:
        path = kinds.PODS.find_list_path(key.namespace)
        pods: list[Json] = []
        if key.is_group:
            pods = await list_labelled(self._api, path, names.KUEUE_GROUP, key.name)
            pods = [one for one in pods if self._is_known(one)]
            pods.sort(key=lambda one: (one["metadata"]["creationTimestamp"], one["metadata"]["name"]))  # fmt: skip
        elif key in self._units:
            one = await read_if_there(self._api, kinds.PODS.find_path(key.name, key.namespace))
            pods = [one] if one is not None else []
        owned = []
        for workload in list(self._owned.get(key, {})):
            where = self._ties.find_workloads().find_path(*reversed(kinds.split_key(workload)))
            found = await read_if_there(self._api, where)
            if found is not None:
                owned.append(found)
        return PodScene(
            namespace=key.namespace,
            group=key.name if key.is_group else "",
            pods=pods,
            workloads=owned,
            flavors=self._flavors,
            now=self._ties.clock(),
            schedulers=self._ties.schedulers,
            watches_pods=self._ties.watches_pods,
        )

    def _is_known(self, pod: Json) -> bool:
        """Whether a pod is one of those that wait; a new one is looked at when the watch shows it."""
        return pod["metadata"]["uid"] in self._pods
