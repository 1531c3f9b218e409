"""The pods of Deployments, StatefulSets and LeaderWorkerSets that name a queue: they wait in it, as the webhook has it."""

from __future__ import annotations

from msgspec import structs

from scheduler import printing
from scheduler.api import wire
from scheduler.api.jobs import services
from scheduler.api.jobs.services import Texts
from scheduler.simulate.reading import kinds
from scheduler.simulate.reading.inventory import Inventory
from scheduler.simulate.reading.kinds import ObjectKey
from scheduler.simulate.workloads.make import Making

_KINDS = {one.kind: one for one in services.KINDS}


def write_queues(inventory: Inventory, making: Making) -> None:
    """Write the queues of these objects on the pods that are made for them. Pods that are there stay as they are."""
    texts: dict[ObjectKey, Texts] = {}
    for given in inventory.workloads:
        key = kinds.read_key(given.body)
        if key.kind in _KINDS:
            with inventory.collect_mistakes(given):
                found = services.list_texts(_KINDS[key.kind], dict(given.body))
                if found is not None:
                    texts[key] = found
    served: dict[ObjectKey, None] = {}
    for at, pod in enumerate(inventory.pods):
        uid = pod.metadata.uid
        key_of_owner = making.owners.get(uid)
        if uid in making.made and key_of_owner in texts:
            inventory.pods[at] = _add_texts(pod, texts[key_of_owner])
            served[key_of_owner] = None
    if served:
        n, name = (
            printing.count_nouns(len(served), "workload"),
            "name" if len(served) > 1 else "names",
        )
        said = printing.list_some([f"{one.kind} {one.namespace}/{one.name}" for one in served])
        making.remarks.append(
            f"{n} that serve{'s' if len(served) == 1 else ''} {name} a queue, so new pods wait for quota, as the webhook has it"
            f" ({said}); where there is no webhook, only pods wait whose template names the queue"
        )


def _add_texts(pod: wire.Pod, added: Texts) -> wire.Pod:
    meta = pod.metadata
    labels, notes = {**(meta.labels or {}), **added[0]}, {**(meta.annotations or {}), **added[1]}
    group = services.list_texts_of_replica(labels, notes)
    meta = structs.replace(meta, labels=labels | group[0], annotations=notes | group[1])
    return structs.replace(pod, metadata=meta)
