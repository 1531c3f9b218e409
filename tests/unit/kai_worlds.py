"""Clusters with KAI's queues, written in a few words, and what is decided about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from scheduler import simulate
from scheduler.api import names
from scheduler.api.times import write_time

Json = dict[str, Any]
NOW = 1_800_000_000
MINUTE = 60
TRAIN, BUILD, INFERENCE = 50, 100, 125
FREE = -1


@dataclass(frozen=True)
class Queue:
    """A queue; what is not named of CPU and memory has no bound."""

    quota: float = 0
    limit: float = FREE
    weight: float = 1
    parent: str = ""
    priority: int | None = None
    reclaim: str = ""
    preempt: str = ""
    cpu: tuple[float, float] = (FREE, FREE)
    memory: tuple[float, float] = (FREE, FREE)

    def make(self, name: str, age: int) -> Json:
        resources = {
            "gpu": {"quota": self.quota, "limit": self.limit, "overQuotaWeight": self.weight},
            "cpu": {"quota": self.cpu[0], "limit": self.cpu[1], "overQuotaWeight": 1},
            "memory": {"quota": self.memory[0], "limit": self.memory[1], "overQuotaWeight": 1},
        }
        more = {
            "parentQueue": self.parent,
            "priority": self.priority,
            "reclaimMinRuntime": self.reclaim,
            "preemptMinRuntime": self.preempt,
        }
        given = {key: one for key, one in more.items() if one not in {"", None}}
        created = write_time(NOW - 1000 * MINUTE + age)
        return {
            "apiVersion": "scheduling.run.ai/v2",
            "kind": "Queue",
            "metadata": {"name": name, "creationTimestamp": created},
            "spec": {"resources": resources, **given},
        }


@dataclass(frozen=True)
class Job:
    """Pods of one queue; several pods are a PodGroup, of which ``least`` (all by default) are placed at once.

    Attributes:
        gpus: of each pod.
        share: percent of a card that each pod has in its place.
        on: the nodes of the pods that run; the others wait.
        age: in minutes.
        ran: for so many minutes those that run have run.
        of_class: the priority class that the PodGroup names.
        notes: annotations of each pod.
        asks: further requests of each pod.
    """

    queue: str
    gpus: int = 1
    n: int = 1
    least: int | None = None
    on: Sequence[str] = ()
    priority: int = TRAIN
    age: int = 10
    ran: float = 10
    share: int = 0
    cpu: str = "1"
    memory: str = "1M"
    stays: bool | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    of_class: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)
    namespace: str = "default"
    asks: Mapping[str, str] = field(default_factory=dict)

    def make(self, name: str, place: int) -> Iterable[Json]:
        is_group = self.n > 1 or self.least is not None
        # Of jobs of one age those that are named first are older.
        created = write_time(NOW - self.age * MINUTE + place)
        if is_group:
            spec: Json = {"minMember": self.least or self.n, "queue": self.queue}
            if self.stays is not None:
                spec["preemptibility"] = "non-preemptible" if self.stays else "preemptible"
            if self.of_class:
                spec["priorityClassName"] = self.of_class
            meta = {"name": name, "namespace": self.namespace, "creationTimestamp": created}
            api = "scheduling.run.ai/v2alpha2"
            yield {"apiVersion": api, "kind": "PodGroup", "metadata": meta, "spec": spec}
        for i in range(self.n):
            one = f"{name}-{i}" if is_group else name
            yield self._make_pod(one, name if is_group else "", created, i)

    def _make_pod(self, name: str, group: str, created: str, i: int) -> Json:
        asks: Json = {"cpu": self.cpu, "memory": self.memory, **self.asks}
        if self.share:
            asks |= {names.GPU: "1", names.GPU_MEMORY_PERCENT: str(self.share)}
        elif self.gpus:
            asks[names.GPU] = str(self.gpus)
        labels = dict(self.labels)
        if not group and self.queue:
            labels[names.KAI_QUEUE] = self.queue
        if self.stays is not None and not group:
            labels[names.KAI_PREEMPTIBILITY] = "non-preemptible" if self.stays else "preemptible"
        meta: Json = {"name": name, "namespace": self.namespace, "labels": labels}
        meta["creationTimestamp"] = created
        meta["annotations"] = {**self.notes, **({names.KAI_GROUP: group} if group else {})}
        limits = {key: one for key, one in asks.items() if "nvidia" in key}
        container = {"name": "main", "resources": {"requests": asks, "limits": limits}}
        spec: Json = {"priority": self.priority, "containers": [container]}
        pod: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        if i < len(self.on):
            spec["nodeName"] = self.on[i]
            pod["status"] = {"phase": "Running", "startTime": write_time(NOW - self.ran * MINUTE)}
        return pod


class Found(NamedTuple):
    """What was decided.

    Attributes:
        placed: by pod the node that it was given.
        gone: the pods that go.
        room: by pod that waits for others to go: the node.
        messages: by pod what is said of it.
    """

    placed: dict[str, str]
    gone: set[str]
    room: dict[str, str]
    messages: dict[str, str]


def make_objects(
    nodes: Mapping[str, int | Json], queues: Mapping[str, Queue], jobs: Mapping[str, Job]
) -> list[Json]:
    """All objects; of a node its GPUs, or its whole object."""
    found = [one if isinstance(one, dict) else make_node(name, one) for name, one in nodes.items()]
    found += [one.make(name, i) for i, (name, one) in enumerate(queues.items())]
    for i, (name, job) in enumerate(jobs.items()):
        found += job.make(name, i)
    # What time it is.
    clock = {"name": "clock", "namespace": "default", "creationTimestamp": write_time(NOW)}
    done = {"phase": "Succeeded"}
    spec = {"containers": [{"name": "main"}], "schedulerName": "other"}
    found.append({"apiVersion": "v1", "kind": "Pod", "metadata": clock, "spec": spec, "status": done})  # fmt: skip
    return found


def make_node(name: str, gpus: int, *, cpu: str = "1000", memory: str = "1T") -> Json:
    """A node whose GPUs are counted."""
    offers = {"cpu": cpu, "memory": memory, "pods": "1000"} | ({names.GPU: str(gpus)} if gpus else {})  # fmt: skip
    meta = {"name": name}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"allocatable": offers}}


def decide(
    nodes: Mapping[str, int | Json],
    queues: Mapping[str, Queue],
    jobs: Mapping[str, Job],
    more: Sequence[Json] = (),
) -> Found:
    """Decide about all jobs that wait."""
    result = simulate.schedule([*make_objects(nodes, queues, jobs), *more], strict=True)
    rows = [row for row in result["pods"] if row["name"] != "clock"]
    return Found(
        {row["name"]: row["node"] for row in rows if row["node"]},
        {one["name"] for row in rows for one in row["victims"]},
        {row["name"]: row["nominated"] for row in rows if row["nominated"] and not row["node"]},
        {row["name"]: row["message"] for row in rows},
    )
