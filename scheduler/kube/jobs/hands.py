"""All that is done about jobs and pods with a queue, behind one door for the loop."""

from __future__ import annotations

import asyncio

from scheduler.api import kinds, kueue, names, wire
from scheduler.api.door import events
from scheduler.api.door.events import Event
from scheduler.api.jobs import table
from scheduler.api.jobs.owners import JobKey
from scheduler.api.jobs.parts import Json
from scheduler.kube.client import ApiClient
from scheduler.kube.jobs.elastic_gates import ElasticGates
from scheduler.kube.jobs.importance import Classes
from scheduler.kube.jobs.job_looks import JobLooks
from scheduler.kube.jobs.orphans import Orphans
from scheduler.kube.jobs.pod_looks import PodLooks
from scheduler.kube.jobs.ties import JobTies
from scheduler.kube.jobs.topology_gates import TopologyGates
from scheduler.kube.jobs.writing import JobWrites

_LOOK_SECONDS = 0.2


class JobHands:
    """Makes workloads for jobs and pods, starts them and stops them."""

    def __init__(self, api: ApiClient, ties: JobTies) -> None:
        self._ties = ties
        self._flavors: dict[str, Json] = {}
        self._with_default_queue: set[str] = set()
        self._classes = Classes(api)
        writes = JobWrites(api, ties.find_workloads, self._classes, ties.reporter)
        self._jobs = JobLooks(api, ties, self._flavors, writes)
        self._pods = PodLooks(api, ties, self._flavors, writes, self._jobs.is_managed)
        self._gates = TopologyGates(api, ties, writes)
        self._elastic_gates = ElasticGates(api, ties, writes)
        self._orphans = Orphans(api, ties, writes)
        self._parts = self._jobs, self._pods, self._gates, self._elastic_gates, self._orphans

    def is_managed(self, key: JobKey | None) -> bool:
        """Whether a job has a queue; other threads may call this."""
        return self._jobs.is_managed(key)

    def has_default_queue(self, namespace: str) -> bool:
        """Whether a namespace has a LocalQueue for jobs that name none; other threads may call this."""
        return namespace in self._with_default_queue

    @property
    def n_waiting(self) -> int:
        """How many jobs, pods and workloads wait to be looked at."""
        return sum(one.looks.n_waiting for one in self._parts)

    def hear(self, event: Event) -> None:
        """Take over what an event says of jobs."""
        match event:
            case events.Seen(wire.Pod() as one):
                self._pods.see_pod(one)
                self._gates.see_pod(one)
                self._elastic_gates.see_pod(one)
            case events.Gone(kinds.PODS.name, uid):
                self._pods.drop_pod(uid)
                self._gates.drop_pod(uid)
                self._elastic_gates.drop_pod(uid)
            case events.Seen(kueue.Workload() as one):
                self._jobs.see_workload(one)
                self._pods.see_workload(one)
                self._gates.see_workload(one)
                self._elastic_gates.see_workload(one)
                self._orphans.see_workload(one)
            case events.Gone(kinds.WORKLOADS.name, key):
                self._jobs.drop_workload(key)
                self._pods.drop_workload(key)
                self._gates.drop_workload(key)
                self._elastic_gates.drop_workload(key)
                self._orphans.drop_workload(key)
            case events.Seen(one) if (name := kinds.read_kind_name(one)) in table.BY_NAME:
                self._jobs.see_job(name, one)
            case events.Gone(kind, key) if kind in table.BY_NAME:
                self._jobs.drop_job((kind, *kinds.split_key(key)))
            case _:
                self._hear_of_others(event)

    def _hear_of_others(self, event: Event) -> None:
        """Take over what an event says of flavors and classes, for which jobs may have waited, and of default queues."""
        match event:
            case events.Seen(kueue.LocalQueue() as one):
                if one.metadata.name == names.KUEUE_DEFAULT_QUEUE:
                    self._with_default_queue.add(one.metadata.namespace)
                return
            case events.Gone(kinds.LOCAL_QUEUES.name, key):
                namespace, name = kinds.split_key(key)
                if name == names.KUEUE_DEFAULT_QUEUE:
                    self._with_default_queue.discard(namespace)
                return
            case events.Seen(kueue.ResourceFlavor() as one):
                self._flavors[one.metadata.name] = one.spec if isinstance(one.spec, dict) else {}
            case events.Seen(kueue.WorkloadPriorityClass() as one):
                self._classes.see(one.metadata.name, one.value)
            case events.Gone(kinds.FLAVORS.name, key):
                self._flavors.pop(key, None)
                return
            case events.Gone(kinds.WORKLOAD_CLASSES.name, key):
                self._classes.drop(key)
                return
            case _:
                return
        self._jobs.note_all()
        self._pods.note_all()

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow_terms())
            for one in self._parts:
                group.create_task(one.looks.run())

    async def _follow_terms(self) -> None:
        """Look at everything when a term begins."""
        is_open = False
        while True:
            if self._ties.may_write() != is_open:
                is_open = not is_open
                for one in self._parts:
                    one.looks.open() if is_open else one.looks.close()
            await asyncio.sleep(_LOOK_SECONDS)
