"""The Workloads of jobs and pods with a queue, as the operator makes them where ClusterQueues are managed.

A job with a queue waits suspended, and has no pods. Here its pods are made all the same, so that the answer can name them:
each of them waits until its Workload is admitted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from scheduler import printing
from scheduler.api import kueue, names, values, wire
from scheduler.api.jobs import workloads
from scheduler.api.jobs.importance import ClassMissing, Ranked, find_importance, rank_job
from scheduler.api.jobs.owners import JobKey, find_job_key
from scheduler.api.jobs.parts import JobPart, write_place
from scheduler.api.jobs.units import PodUnit, UnitKey, find_unit, name_unit
from scheduler.api.kinds import PODS, WORKLOADS
from scheduler.errors import BadInput
from scheduler.simulate.reading import kinds, objects
from scheduler.simulate.reading.inventory import Given, Inventory
from scheduler.simulate.reading.kinds import ObjectKey
from scheduler.simulate.workloads.make import Making
from scheduler.simulate.workloads.queued_jobs import QueuedJob, QueuedJobs

Json = dict[str, Any]
_OVER = frozenset({"Succeeded", "Failed"})
_CLASS = f"metadata.labels[{names.KUEUE_CLASS}]"
_PREBUILT = f"metadata.labels[{names.KUEUE_PREBUILT}]"


def add_workloads(inventory: Inventory, making: Making) -> None:
    """Add the Workloads of all jobs and pods that have none. Jobs that run without one are stopped, which remarks say.

    A job or a pod that says what cannot be is added to the mistakes of the inventory.
    """
    maker = _Maker(inventory, making)
    maker.add_those_of_jobs()
    maker.add_those_of_pods()


class _New(NamedTuple):
    """A Workload to be made.

    Attributes:
        given: the object of which it is made.
        body: the Workload, without its priority.
        ranked: by what its priority is found.
        created: when the job was created; empty for one that is in no cluster yet.
        pods: the uids of its pods.
    """

    given: Given
    body: Json
    ranked: Ranked
    created: str
    pods: Sequence[str]


class _Maker:
    def __init__(self, inventory: Inventory, making: Making) -> None:
        self._inventory, self._making = inventory, making
        self._jobs = QueuedJobs(inventory)
        self._given = {kinds.read_key(one.body): one for one in inventory.workloads}
        self._bad = {position for position, _ in inventory.mistakes}
        self._classes = {
            one.metadata.name: one.value
            for one in inventory.queueing
            if isinstance(one, kueue.WorkloadPriorityClass)
        }
        # The Workloads that stand among the objects: the names of those of jobs, and for which pods others are.
        self._of_jobs: dict[JobKey, str] = {}
        self._of_units: set[UnitKey] = set()
        # All of them, by namespace and name.
        self._there: dict[tuple[str, str], kueue.Workload] = {}
        for one in inventory.queueing:
            if isinstance(one, kueue.Workload):
                self._there[one.metadata.namespace, one.metadata.name] = one
                self._note_owner(one)
        # The pods of each job with a queue, and the others with one, by their places in the inventory.
        self._pods: dict[ObjectKey, list[int]] = defaultdict(list)
        self._units: dict[UnitKey, list[int]] = defaultdict(list)
        for at, pod in enumerate(inventory.pods):
            self._note_pod(at, pod)

    def _note_owner(self, found: kueue.Workload) -> None:
        meta = found.metadata
        job = find_job_key(meta.owner_references, meta.namespace)
        if job is not None:
            self._of_jobs[job] = meta.name
        # A Workload of another kind of owner has the name of its group of pods.
        self._of_units.add(find_unit(meta) or UnitKey(meta.namespace, meta.name, is_group=True))

    def _note_pod(self, at: int, pod: wire.Pod) -> None:
        owner = objects.find_owner(pod)
        own = ObjectKey(owner.kind, pod.metadata.namespace, owner.name) if owner else None
        # A pod that was made may have an owner that was not.
        top = self._making.owners.get(pod.metadata.uid)
        job = self._jobs.find(own) or self._jobs.find(top)
        if job is not None:
            self._pods[job.key].append(at)
        elif names.KUEUE_QUEUE in (pod.metadata.labels or {}):
            self._units[name_unit(pod.metadata)].append(at)

    # Jobs.

    def add_those_of_jobs(self) -> None:
        """Add the Workloads of jobs."""
        stopped = []
        for job in self._jobs.jobs.values():
            key = job.row.kind.name, job.key.namespace, str(job.body["metadata"]["name"])
            if self._jobs.find(job.key) is not job:
                continue
            n_known = len(self._inventory.mistakes)
            with self._inventory.collect_mistakes(job.given):
                if job.given.position in self._bad:
                    self._hold_pods(job)
                    continue
                self._take_over(job)
                if key in self._of_jobs:
                    self._mark_pods(job, self._list_parts(job), self._of_jobs[key])
                elif self._add_that_of_job(job):
                    stopped.append(f"{job.key.kind} {job.key.namespace}/{job.key.name}")
            if len(self._inventory.mistakes) > n_known:
                self._hold_pods(job)
        if stopped:
            n, run = (
                printing.count_nouns(len(stopped), "job"),
                "runs" if len(stopped) == 1 else "run",
            )
            self._making.remarks.append(
                f"{n} with a queue {run} without a Workload and would be stopped, so the pods wait for quota "
                f"({printing.list_some(stopped)}); if the cluster has Workloads, add `workloads` to the dump"
            )

    def _hold_pods(self, job: QueuedJob) -> None:
        """Let the pods of a job wait that gets no Workload because of its mistakes: it stays suspended."""
        said = self._say_mistakes(job.given.position)
        labels = {names.KUEUE_QUEUE: workloads.find_queue(job.body)}
        for at in self._pods[job.key]:
            pod = self._inventory.pods[at]
            if _runs(pod):
                continue
            # It waits for a Workload, as a pod does that names a queue itself.
            meta = structs.replace(pod.metadata, labels={**(pod.metadata.labels or {}), **labels})
            self._inventory.pods[at] = structs.replace(pod, metadata=meta)
            self._inventory.without_workload[meta.uid] = f"its job gets no Workload: {said}"

    def _say_mistakes(self, position: int) -> str:
        known = self._inventory.mistakes.values()
        return "; ".join(str(one) for one in known if one.position == position)

    def _take_over(self, job: QueuedJob) -> None:
        """Give a job the Workload, made before it, that it names.

        Raises:
            BadInput: the job cannot have it.
        """
        name = workloads.find_prebuilt(job.body)
        if not name or job.row.read_state(job.body).end is not None:
            return
        own = str(job.body["metadata"]["name"])
        key = job.row.kind.name, job.key.namespace, own
        found = self._there.get((job.key.namespace, name))
        if found is None:
            raise BadInput(_PREBUILT, f"there is no Workload {values.quote(name)}")
        # The workload of a pod group has all its pods as owners, and none of them is its controller.
        owners = found.metadata.owner_references or ()
        owner = next((one for one in owners if one.controller or one.kind == PODS.name), None)
        if owner is None:
            kind = job.row.kind
            owner = wire.Owner(
                api_version=kind.api_version, kind=kind.kind, name=own, controller=True
            )
            owners = [*(found.metadata.owner_references or ()), owner]
            meta = structs.replace(found.metadata, owner_references=owners)
            queueing = self._inventory.queueing
            at = next(i for i, one in enumerate(queueing) if one is found)
            queueing[at] = found = structs.replace(found, metadata=meta)
            self._there[job.key.namespace, name] = found
            self._of_jobs[key] = name
        if find_job_key([owner], job.key.namespace) != key:
            raise BadInput(
                _PREBUILT,
                f"the Workload {values.quote(name)} is that of {owner.kind} {values.quote(owner.name)}",
            )
        counts = [one.n_pods for one in self._list_parts(job)]
        theirs = [one.count for one in found.spec.pod_sets or ()]
        if found.status.admission is None and counts and counts != theirs:
            raise BadInput(
                _PREBUILT,
                f"the Workload {values.quote(name)} has {theirs} pods in its pod sets, and the job has {counts}",
            )

    def _add_that_of_job(self, job: QueuedJob) -> bool:
        """Add the Workload of a job; return whether the job runs without one."""
        parts = self._list_parts(job)
        state = job.row.read_state(job.body)
        places = self._pods[job.key]
        if not parts or state.end is not None or (job.under and not places):
            return False
        body = workloads.make_workload(job.row.kind, job.body, parts)
        if state.ended:
            ended = [{"name": name, "count": n} for name, n in state.ended]
            body["status"] = {"reclaimablePods": ended}
        created = str(job.body["metadata"].get("creationTimestamp") or "")
        pods = self._inventory.pods
        uids = [pods[at].metadata.uid for at in places]
        self._add(_New(job.given, body, rank_job(job.row, job.body, parts), created, uids))
        running = [at for at in places if _runs(pods[at])]
        for at in running:
            spec = structs.replace(pods[at].spec, node_name=None)
            pods[at] = structs.replace(pods[at], spec=spec, status=wire.PodStatus(phase="Pending"))
        self._mark_pods(job, parts, str(body["metadata"]["name"]))
        return bool(running)

    def _list_parts(self, job: QueuedJob) -> list[JobPart]:
        made = job.row.made
        if made is None:
            return job.row.list_parts(job.body)
        given = self._given.get(ObjectKey(made.name, job.key.namespace, job.key.name))
        return [] if given is None else job.row.list_parts(dict(given.body))

    def _mark_pods(self, job: QueuedJob, parts: Sequence[JobPart], workload: str) -> None:
        """Write on pods that wait of which Workload and pod set they are, as the start of their job does."""
        sets = {f"{job.under}{write_place(one.place)}.": one.name for one in parts}
        for at in self._pods[job.key]:
            pod = self._inventory.pods[at]
            if _runs(pod):
                continue
            meta = pod.metadata
            labels = dict(meta.labels or {})
            part = sets.get(self._inventory.templates.get(meta.uid, ""))
            if part is not None:
                labels[names.KUEUE_POD_SET] = part
            notes = {**(meta.annotations or {}), names.KUEUE_WORKLOAD: workload}
            meta = structs.replace(meta, labels=labels, annotations=notes)
            self._inventory.pods[at] = structs.replace(pod, metadata=meta)

    # Pods.

    def add_those_of_pods(self) -> None:
        """Add the Workloads of pods that wait by themselves or as groups."""
        inventory, left = self._inventory, list[str]()
        for unit, places in self._units.items():
            pods = sorted((inventory.pods[at] for at in places), key=_find_age)
            if unit in self._of_units:
                continue
            if any(map(_runs, pods)):
                left.append(f"{unit.namespace}/{unit.name}")
                continue
            position = inventory.positions[pods[0].metadata.uid]
            given = Given(position, inventory.objects[position])
            n_known = len(inventory.mistakes)
            with inventory.collect_mistakes(given):
                self._add_that_of_pods(unit, pods, given)
            if len(inventory.mistakes) > n_known:
                said = self._say_mistakes(position)
                for pod in pods:
                    inventory.without_workload[pod.metadata.uid] = f"it gets no Workload: {said}"
        if left:
            n, run = (
                printing.count_nouns(len(left), "pod or group"),
                "runs" if len(left) == 1 else "run",
            )
            self._making.remarks.append(
                f"{n} with a queue {run} without a Workload, and stay as they are ({printing.list_some(left)}): "
                "no quota is counted for them; if the cluster has Workloads, add `workloads` to the dump"
            )

    def _add_that_of_pods(self, unit: UnitKey, pods: Sequence[wire.Pod], given: Given) -> None:
        found = PodUnit(
            group=unit.name if unit.is_group else "",
            pods=[msgspec.to_builtins(one) for one in pods],
        )
        if found.is_known:
            created = max(one.metadata.creation_timestamp for one in pods)
            uids = [one.metadata.uid for one in pods]
            self._add(_New(given, found.make_workload(), found.ranked, created, uids))

    # Both.

    def _add(self, new: _New) -> None:
        """Add a Workload.

        Raises:
            BadInput: its class is not there, or the Workload cannot be.
        """
        inventory = self._inventory
        priorities = inventory.priorities
        of_pods = dict(priorities.by_name)
        if name := new.ranked.of_pods:
            of_pods.setdefault(name, priorities.resolve_priority({"priorityClassName": name}))
        try:
            importance = find_importance(new.ranked, self._classes, of_pods, priorities.default)
        except ClassMissing as error:
            raise BadInput(_CLASS, str(error)) from error
        spec = new.body["spec"] | workloads.write_importance(importance)
        meta = {
            **new.body["metadata"],
            "creationTimestamp": new.created or None,
            "uid": f"{new.given.position:010} {new.body['metadata']['namespace']}/{new.body['metadata']['name']}",
        }
        body = new.body | {"metadata": meta, "spec": spec}
        try:
            found = objects.read_queueing(body, WORKLOADS.name, new.given.position)
        except BadInput as error:
            raise BadInput(f"Workload {error.field}", error.problem) from error
        inventory.queueing.append(found)
        inventory.made_workloads[f"{meta['namespace']}/{meta['name']}"] = tuple(new.pods)


def _runs(pod: wire.Pod) -> bool:
    return bool(pod.spec.node_name) and pod.status.phase not in _OVER


def _find_age(pod: wire.Pod) -> tuple[str, str]:
    return pod.metadata.creation_timestamp, pod.metadata.name
