"""Takes Kueue's topology gate from pods of jobs that Kueue has started, when Kueue no longer runs.

Kueue starts a job in a topology with a gate in its pod templates, and takes the gate from each pod when it has chosen the
pod's node. Evenkeel starts jobs without the gate. Pods that wait with it when Kueue goes, and those that come in the
place of others later, would wait for ever.
"""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.api import kinds, kueue, names, wire
from scheduler.api.jobs.parts import read_list
from scheduler.api.jobs.templates import write_operation
from scheduler.api.queues.words import ADMITTED
from scheduler.kube.client import ApiClient
from scheduler.kube.jobs import known
from scheduler.kube.jobs.looks import Looks, Named
from scheduler.kube.jobs.ties import JobTies
from scheduler.kube.jobs.writing import JobWrites, read_if_there


class TopologyGates:
    """The pods that wait with the gate.

    Attributes:
        looks: looks at them.
    """

    def __init__(self, api: ApiClient, ties: JobTies, writes: JobWrites) -> None:
        self._api, self._ties, self._writes = api, ties, writes
        # By uid: the pod, and the workload that it names.
        self._pods: dict[str, tuple[wire.Meta, str]] = {}
        self._of_workload: dict[str, set[str]] = {}
        self._admitted: set[str] = set()
        self.looks: Looks[str] = Looks(self, ties.reporter)

    def see_pod(self, found: wire.Pod) -> None:
        """Take over what a watch says of a pod."""
        meta, gates = found.metadata, found.spec.scheduling_gates or ()
        name = (meta.annotations or {}).get(names.KUEUE_WORKLOAD, "")
        self.drop_pod(meta.uid)
        if name and any(one.name == names.KUEUE_TOPOLOGY_GATE for one in gates):
            workload = f"{meta.namespace}/{name}"
            self._pods[meta.uid] = known.pick_meta(meta), workload
            self._of_workload.setdefault(workload, set()).add(meta.uid)
            self.looks.note(meta.uid)

    def drop_pod(self, uid: str) -> None:
        """Note that a pod is gone, or waits no longer."""
        found = self._pods.pop(uid, None)
        if found is None:
            return
        of_workload = self._of_workload[found[1]]
        of_workload.discard(uid)
        if not of_workload:
            del self._of_workload[found[1]]
        self.looks.forget(uid)

    def see_workload(self, found: kueue.Workload) -> None:
        """Take over what a watch says of a workload."""
        one = known.read_workload(found)
        if ADMITTED not in one.true:
            self._admitted.discard(one.key)
        elif one.key not in self._admitted:
            self._admitted.add(one.key)
            for uid in self._of_workload.get(one.key, ()):
                self.looks.note(uid)

    def drop_workload(self, key: str) -> None:
        """Note that a workload is gone."""
        self._admitted.discard(key)

    # The subject of looks.

    def list_keys(self) -> Iterable[str]:
        """List the uids of the pods that wait."""
        return self._pods

    def needs_look(self, key: str) -> bool:
        """Whether a pod waits though its workload may run."""
        return key in self._pods and self._pods[key][1] in self._admitted

    def find_object(self, key: str) -> Named | None:
        """Find the kind and the metadata of a pod."""
        found = self._pods.get(key)
        return (kinds.PODS, found[0]) if found is not None else None

    async def look_at(self, key: str) -> bool:
        """Take the gate from a pod.

        Raises:
            ApiError: the API server refuses.
        """
        found = self._pods.get(key)
        if found is None or not self._ties.may_write():
            return False
        path = kinds.PODS.find_path(found[0].name, found[0].namespace)
        pod = await read_if_there(self._api, path)
        if pod is None or pod["metadata"]["uid"] != key:
            return False
        gates = read_list(pod, "spec", "schedulingGates")
        left = [one for one in gates if one.get("name") != names.KUEUE_TOPOLOGY_GATE]
        if len(left) < len(gates):
            operation = write_operation("add", ("spec", "schedulingGates"), left)
            await self._writes.change_pod(pod, [operation])
        return False
