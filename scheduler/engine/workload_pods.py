"""Which pods are those of which workload: by what a pod says, or by its owner, which the workload has, too."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from scheduler.api import kinds, names, wire
from scheduler.api.groups.readers.owners import find_owner
from scheduler.api.queues.chains import write_chain
from scheduler.api.queues.workloads import WORKLOAD, OwnerKey, WorkloadDefinition

_SUCCEEDED = "Succeeded"
FINISHED = frozenset({_SUCCEEDED, "Failed"})


class _Says(NamedTuple):
    """What a pod says: the keys under which its workload may be found, its pod set, and its queue."""

    keys: tuple[OwnerKey, ...]
    pod_set: str
    queue: str


class _Owned:
    """Pods by their owners."""

    def __init__(self) -> None:
        self.says: dict[str, _Says] = {}
        self._by_key: dict[OwnerKey, dict[str, str]] = {}

    def put(self, uid: str, says: _Says) -> None:
        if self.says.get(uid) == says:
            return
        self.drop(uid)
        self.says[uid] = says
        for key in says.keys:
            self._by_key.setdefault(key, {})[uid] = says.pod_set

    def drop(self, uid: str) -> None:
        says = self.says.pop(uid, None)
        for key in says.keys if says is not None else ():
            del self._by_key[key][uid]
            if not self._by_key[key]:
                del self._by_key[key]

    def list_of(self, defined: WorkloadDefinition) -> dict[str, str]:
        for key in list_keys(defined):
            if (found := self._by_key.get(key)) is not None:
                return found
        return {}


class WorkloadPods:
    """The pods that are not finished, by their owners, and how many have succeeded. It is kept only where queues are managed."""

    def __init__(self) -> None:
        self._living, self._succeeded = _Owned(), _Owned()

    def note(self, pod: wire.Pod) -> None:
        """Note a pod that was added or has changed."""
        uid, phase = pod.metadata.uid, pod.status.phase
        if phase in FINISHED:
            self._living.drop(uid)
        else:
            self._living.put(uid, _read(pod))
        if phase == _SUCCEEDED:
            self._succeeded.put(uid, _read(pod))
        else:
            self._succeeded.drop(uid)

    def drop(self, uid: str) -> None:
        """Forget a pod that is gone."""
        self._living.drop(uid)
        self._succeeded.drop(uid)

    def list_of(self, defined: WorkloadDefinition) -> dict[str, str]:
        """Return the uids of the pods of a workload, each with the name of its pod set as far as it says it."""
        return self._living.list_of(defined)

    def find_keys(self, uid: str) -> tuple[tuple[OwnerKey, ...], str]:
        """Return the keys under which the workload of a pod may be found, and the name of its pod set."""
        says = self._living.says.get(uid)
        return ((), "") if says is None else (says.keys, says.pod_set)

    def find_queue(self, uid: str) -> str:
        """Return the queue that a pod names; empty for none."""
        says = self._living.says.get(uid)
        return "" if says is None else says.queue

    def find_set(self, uid: str, defined: WorkloadDefinition) -> str:
        """Find the pod set of a pod of a workload that is not finished; the first one if it names none."""
        name = self._living.list_of(defined).get(uid, "")
        return name if any(one.name == name for one in defined.sets) else defined.sets[0].name

    def count_sets(self, defined: WorkloadDefinition) -> tuple[Counter[str], Counter[str]]:
        """Count the pods of a workload by pod set: those that are not finished, and those that have succeeded.

        Pods that name no pod set are of the first one.
        """
        known = {one.name for one in defined.sets}
        first = defined.sets[0].name

        def count(owned: _Owned) -> Counter[str]:
            sets = owned.list_of(defined).values()
            return Counter(one if one in known else first for one in sets)

        return count(self._living), count(self._succeeded)


def _read(pod: wire.Pod) -> _Says:
    meta = pod.metadata
    labels, annotations = meta.labels or {}, meta.annotations or {}
    keys: list[OwnerKey] = []
    if name := annotations.get(names.KUEUE_CHAIN):
        keys.append((WORKLOAD, meta.namespace, write_chain(meta, name)))
    if name := annotations.get(names.KUEUE_WORKLOAD):
        keys.append((WORKLOAD, meta.namespace, name))
    owner = find_owner(pod) if meta.owner_references else None
    if owner is not None:
        keys.append((owner.kind, meta.namespace, owner.group.name.partition("/")[0]))
    controller = next((one for one in meta.owner_references or () if one.controller), None)
    if controller is not None:
        keys.append((controller.kind, meta.namespace, controller.name))
    if group := labels.get(names.KUEUE_GROUP):
        keys.append((WORKLOAD, meta.namespace, group))
    keys.append((kinds.PODS.name, meta.namespace, meta.name))
    part = labels.get(names.KUEUE_POD_SET) or (owner.part if owner is not None else "")
    return _Says(tuple(dict.fromkeys(keys)), part, labels.get(names.KUEUE_QUEUE, ""))


def list_keys(defined: WorkloadDefinition) -> list[OwnerKey]:
    """List the keys under which the pods of a workload may be found."""
    namespace, _, name = (defined.chain or defined.key).partition("/")
    own: OwnerKey = (WORKLOAD, namespace, name)
    return [own] if defined.owner is None else [own, defined.owner]
