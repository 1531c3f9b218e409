"""Deployments, StatefulSets and LeaderWorkerSets with a queue: what their pods say, so that they wait in it.

The pods of a Deployment wait one by one, those of a StatefulSet as one group, those of a LeaderWorkerSet as one group for
each replica.

Source: Kueue (2026-08), the webhooks of these kinds in ``pkg/controller/jobs``; the group of a StatefulSet is that of
Kueue 0.9 to 0.13.
"""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.api import kinds, names
from scheduler.api.jobs import gates, workloads
from scheduler.api.jobs.parts import Json, get_in, read_count
from scheduler.api.kind import Kind

KINDS = kinds.DEPLOYMENTS, kinds.STATEFUL_SETS, kinds.LEADER_WORKER_SETS
# Labels and annotations.
Texts = tuple[dict[str, str], dict[str, str]]


def write_parent(kind: Kind) -> str:
    """Write a kind as pods say by which owner they wait."""
    return kind.kind.lower() if kind.group == "apps" else f"{kind.group}/{kind.kind.lower()}"


def list_texts(kind: Kind, found: Json) -> Texts | None:
    """List the labels and annotations that the pods of an object get; None if it has no queue.

    Raises:
        BadInput: a field that is read is not as the API server has it.
    """
    queue = workloads.find_queue(found)
    if not queue:
        return None
    labels = {names.KUEUE_QUEUE: queue}
    if priority_class := workloads.find_class(found):
        labels[names.KUEUE_CLASS] = priority_class
    texts: dict[str, str] = {}
    if gated := gates.find_gates(found):
        texts[names.KUEUE_GATED] = gated
    if kind != kinds.DEPLOYMENTS:
        texts |= {names.KUEUE_PARENT: write_parent(kind), names.KUEUE_SERVES: "true"}
    if kind == kinds.STATEFUL_SETS:
        name = str(get_in(found, ("metadata", "name")) or "")
        labels[names.KUEUE_GROUP] = workloads.make_name(kind, name, "")
        # Its pods may come one after the other, each once the one before it is ready.
        texts[names.KUEUE_FAST] = "true"
        texts[names.KUEUE_TOTAL] = str(max(1, count_replicas(found)))
        texts[names.KUEUE_INDEX_LABEL] = names.SET_INDEX
        if start := read_count(found, "spec", "ordinals", "start"):
            texts[names.KUEUE_INDEX_OFFSET] = str(start)
    return labels, texts


def list_texts_of_replica(labels: Mapping[str, str], texts: Mapping[str, str]) -> Texts:
    """List what puts a pod of a LeaderWorkerSet with a queue into the group of its replica; nothing for other pods.

    ``labels`` and ``texts``: its labels and annotations. Its controller writes which replica it is of.
    """
    if texts.get(names.KUEUE_PARENT) != write_parent(kinds.LEADER_WORKER_SETS):
        return {}, {}
    name, replica = labels.get(names.LWS_NAME, ""), labels.get(names.LWS_GROUP, "")
    # The controller's own webhook may come later and write them then: the API server calls again after it.
    if not (name and replica and names.LWS_SIZE in texts):
        return {}, {}
    group = workloads.make_name(kinds.LEADER_WORKER_SETS, name, "", replica)
    total = {names.KUEUE_TOTAL: texts[names.LWS_SIZE], names.KUEUE_INDEX_LABEL: names.LWS_INDEX}
    return {names.KUEUE_GROUP: group}, total


def count_replicas(found: Json) -> int:
    """Count the replicas of an object; one that does not say it has one."""
    count = read_count(found, "spec", "replicas")
    return 1 if count is None else count
