"""Pods of workloads that start and stop, as their jobs' controllers would start and stop them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import structs

from scheduler.api import kinds, kueue, names, wire
from scheduler.api.door import events
from scheduler.api.groups.readers.owners import find_owner
from scheduler.api.jobs import plain_pods, templates, workloads
from scheduler.api.jobs.owners import find_job_key
from scheduler.api.jobs.templates import Addition
from scheduler.engine.engine import Engine
from scheduler.engine.questions.queues import PodsOfWorkload

Json = dict[str, Any]
_GATES = frozenset({names.KUEUE_GATE, names.KUEUE_TOPOLOGY_GATE})


class Starts:
    """The pods that wait for their workloads."""

    def __init__(
        self, engine: Engine, queueing: Iterable[wire.Object], pods: Iterable[wire.Pod]
    ) -> None:
        """``queueing``: the flavors are among them; ``pods``: as the engine has seen them."""
        self._engine = engine
        self._flavors: dict[str, Json] = {
            one.metadata.name: one.spec if isinstance(one.spec, dict) else {}
            for one in queueing
            if isinstance(one, kueue.ResourceFlavor)
        }
        self._pods = {one.metadata.uid: one for one in pods if not one.spec.node_name}
        # Of each workload with fewer pods than it has: those that are not started.
        self._left: dict[str, list[str]] = defaultdict(list)

    def start(self, workload: kueue.Workload, at: float) -> Sequence[str]:
        """Start the pods of a workload that was admitted, and return the uids of those for which it has no quota.

        Raises:
            CannotStart: its flavors contradict what the pods say.
        """
        key = f"{workload.metadata.namespace}/{workload.metadata.name}"
        uids = [uid for uid in self._engine.ask(PodsOfWorkload(key)) if uid in self._pods]
        if not uids:
            return ()
        meta = workload.metadata
        is_job = find_job_key(meta.owner_references, meta.namespace) is not None
        found = workloads.list_additions(msgspec.to_builtins(workload), self._flavors)
        additions = {one.name: one for one in found}
        specs: dict[tuple[int, str], wire.PodSpec] = {}
        started, n_of = list[wire.Pod](), Counter[str]()
        for uid in uids:
            pod = self._pods[uid]
            addition = additions.get(_find_part(pod, found))
            if addition is None:
                continue
            n_of[addition.name] += 1
            if is_job and n_of[addition.name] > addition.n_pods:
                self._left[key].append(uid)
            else:
                started.append(_merge(pod, addition, specs, is_job=is_job))
        for uid in self._left[key]:
            self._engine.handle(events.Gone(kinds.PODS.name, uid), at)
        for pod in started:
            self._come(pod, at)
        return self._left[key]

    def _come(self, pod: wire.Pod, at: float) -> None:
        """Let a pod come that its workload has a place for."""
        self._engine.handle(events.Gone(kinds.PODS.name, pod.metadata.uid), at)
        self._engine.handle(events.Seen(pod), at)

    def stop(self, key: str, at: float) -> Sequence[str]:
        """Stop the pods of a workload, and return the uids of those that come again once it has no quota."""
        uids = [*self._engine.ask(PodsOfWorkload(key)), *self._left.pop(key, ())]
        for uid in uids:
            self._engine.handle(events.Gone(kinds.PODS.name, uid), at)
        return [uid for uid in uids if uid in self._pods]

    def come_again(self, uids: Iterable[str], at: float) -> None:
        """Let pods that were stopped come again, to wait for their workload."""
        for uid in uids:
            self._engine.handle(events.Seen(self._pods[uid]), at)


def _find_part(pod: wire.Pod, found: Sequence[Addition]) -> str:
    """Find the pod set of a pod."""
    labels = pod.metadata.labels or {}
    if len(found) == 1:
        return found[0].name
    if names.KUEUE_GROUP in labels:
        return plain_pods.find_role(msgspec.to_builtins(pod))
    owner = find_owner(pod)
    return labels.get(names.KUEUE_POD_SET) or (owner.part if owner is not None else "")


def _merge(
    pod: wire.Pod, addition: Addition, specs: dict[tuple[int, str], wire.PodSpec], *, is_job: bool
) -> wire.Pod:
    """Return a pod with what its start adds. A pod without a gate only gets labels; its workload knows its place."""
    gates = [one for one in pod.spec.scheduling_gates or () if one.name not in _GATES]
    is_gated = len(gates) < len(pod.spec.scheduling_gates or ())
    if not (is_job or is_gated):
        addition = addition._replace(selector={}, tolerations=())
    fields = templates.merge(msgspec.to_builtins(pod), addition)
    meta = structs.replace(
        pod.metadata, labels=fields["metadata.labels"], annotations=fields["metadata.annotations"]
    )
    key = id(pod.spec), addition.name
    if key not in specs:
        specs[key] = structs.replace(
            pod.spec,
            node_selector=fields["spec.nodeSelector"] or None,
            tolerations=msgspec.convert(fields["spec.tolerations"], list[wire.Toleration]) or None,
            scheduling_gates=gates or None,
        )
    return structs.replace(pod, metadata=meta, spec=specs[key])
