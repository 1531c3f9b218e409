"""Exclusive topology: what JobSet and LeaderWorkerSet write on pods of which each Job, replica or subgroup has a domain of its own.

Both keep others out by terms about other pods. Where every pod of a group is made only when its leader has a node, the pod gets
a node selector for the domain of that node. Here all pods are made before any has a node, so such a pod gets an affinity to
its leader instead, which says the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec import structs

from scheduler.api import names, wire

# Labels: the hash of a Job, of a replica and of a subgroup, and the priority of a pod.
JOB_KEY = "jobset.sigs.k8s.io/job-key"
_PRIORITY = "jobset.sigs.k8s.io/priority"
_GROUP_KEY = "leaderworkerset.sigs.k8s.io/group-key"
_PART, _PART_KEY = (f"leaderworkerset.sigs.k8s.io/subgroup-{word}" for word in ("index", "key"))
# The label of nodes and the taint by which people give each Job its nodes.
_NODES_OF_JOB = "alpha.jobset.sigs.k8s.io/namespaced-job"
_TAINT_OF_JOBS = "alpha.jobset.sigs.k8s.io/no-schedule"


class Parts(NamedTuple):
    """How the pods of a replica are cut into subgroups.

    Attributes:
        size: how many pods a replica has.
        part_size: how many pods a subgroup has.
        without_leader: the leader is in no subgroup.
    """

    size: int
    part_size: int
    without_leader: bool

    def find_part(self, index: int) -> int | None:
        """Find the subgroup of a pod by its index; None if it is in none."""
        if not index:
            return None if self.without_leader else 0
        is_one_over = (self.size - 1) % self.part_size == 0 and self.size % self.part_size != 0
        return (index - 1 if is_one_over else index) // self.part_size


def hash_name(over: str, name: str) -> str:
    """Hash a name, and the name that it is under, as both controllers do."""
    return hashlib.sha1(f"{over}/{name}".encode(), usedforsecurity=False).hexdigest()


def admit_in_job_set(pod: wire.Pod) -> wire.Pod:
    """Return a pod of a JobSet, which has the labels and annotations of its Job, with what JobSet writes for placement."""
    labels, annotations = pod.metadata.labels or {}, pod.metadata.annotations or {}
    level = annotations.get(names.JOBSET_EXCLUSIVE)
    if names.JOBSET_BY_SELECTOR in annotations:
        return pod if level is None else _admit_by_selector(pod)
    labels = {**labels, _PRIORITY: str(pod.spec.priority)}
    if level is not None:
        key = labels[JOB_KEY]
        if annotations.get(names.JOB_INDEX) == "0":
            alike = wire.Expression(_PRIORITY, "In", [labels[_PRIORITY]])
            anywhere = wire.LabelSelector()
            together = _make_together(level, JOB_KEY, key, anywhere)
            apart = _make_apart(level, JOB_KEY, key, [alike], anywhere)
            pod = _add_terms(pod, [together], [apart])
        else:
            pod = _add_terms(pod, [_follow(level, {JOB_KEY: key, names.JOB_INDEX: "0"})])
    return structs.replace(pod, metadata=structs.replace(pod.metadata, labels=labels))


def _admit_by_selector(pod: wire.Pod) -> wire.Pod:
    """Send a pod to the nodes that people have labelled with the name of its Job."""
    (job,) = (one.name for one in pod.metadata.owner_references or () if one.controller)
    selector = {**(pod.spec.node_selector or {}), _NODES_OF_JOB: f"{pod.metadata.namespace}_{job}"}
    tolerated = wire.Toleration(_TAINT_OF_JOBS, "Exists", effect="NoSchedule")
    tolerations = [*(pod.spec.tolerations or ()), tolerated]
    spec = structs.replace(pod.spec, node_selector=selector, tolerations=tolerations)
    return structs.replace(pod, spec=spec)


def admit_in_replica(
    pod: wire.Pod, leader: str, notes: Mapping[str, str], parts: Parts | None
) -> wire.Pod:
    """Return a pod of a LeaderWorkerSet with what LeaderWorkerSet writes for placement.

    Args:
        pod: the pod, with the labels of its place.
        leader: the name of its leader.
        notes: the annotations of the LeaderWorkerSet.
        parts: how its replicas are cut into subgroups.
    """
    labels = dict(pod.metadata.labels or {})
    key = labels[_GROUP_KEY] = hash_name(pod.metadata.namespace, leader)
    index = int(labels[names.LWS_INDEX])
    if level := notes.get(names.LWS_EXCLUSIVE):
        if index:
            pod = _add_terms(pod, [_follow(level, {_GROUP_KEY: key, names.LWS_INDEX: "0"})])
        else:
            pod = _keep_alone(pod, level, _GROUP_KEY, key)
    part = None if parts is None else parts.find_part(index)
    if part is not None:
        labels[_PART] = str(part)
        key = labels[_PART_KEY] = hash_name(leader, str(part))
        if level := notes.get(names.LWS_PARTS_EXCLUSIVE):
            pod = _keep_alone(pod, level, _PART_KEY, key)
    return structs.replace(pod, metadata=structs.replace(pod.metadata, labels=labels))


def _keep_alone(pod: wire.Pod, level: str, label: str, key: str) -> wire.Pod:
    """Keep the pods with a key together, and others out; terms of the same level that are there hold alone."""
    affinity = pod.spec.affinity or wire.Affinity()
    there = (affinity.pod_affinity, affinity.pod_anti_affinity)
    if all(any(term.topology_key == level for term in _list_terms(one)) for one in there):
        return pod
    return _add_terms(
        pod, [_make_together(level, label, key)], [_make_apart(level, label, key, [])]
    )


def _list_terms(rules: wire.PodAffinity | None) -> Iterator[wire.PodTerm]:
    if rules is not None:
        yield from rules.required_during_scheduling_ignored_during_execution or ()


def _make_together(
    level: str, label: str, key: str, among: wire.LabelSelector | None = None
) -> wire.PodTerm:
    expression = wire.Expression(label, "In", [key])
    return _make_term(level, [expression], among)


def _make_apart(
    level: str,
    label: str,
    key: str,
    more: list[wire.Expression],
    among: wire.LabelSelector | None = None,
) -> wire.PodTerm:
    others = [wire.Expression(label, "Exists"), wire.Expression(label, "NotIn", [key])]
    return _make_term(level, [*others, *more], among)


def _follow(level: str, leader: Mapping[str, str]) -> wire.PodTerm:
    """Make the term of a pod that goes to the domain in which its leader is; without one it goes nowhere."""
    return _make_term(
        level, [wire.Expression(label, "In", [text]) for label, text in leader.items()], None
    )


def _make_term(
    level: str, expressions: list[wire.Expression], among: wire.LabelSelector | None
) -> wire.PodTerm:
    selector = wire.LabelSelector(match_expressions=expressions)
    return wire.PodTerm(selector, namespace_selector=among, topology_key=level)


def _add_terms(
    pod: wire.Pod, together: Iterable[wire.PodTerm], apart: Iterable[wire.PodTerm] = ()
) -> wire.Pod:
    """Return a pod with more terms that are required."""
    affinity = pod.spec.affinity or wire.Affinity()
    affinity = structs.replace(
        affinity,
        pod_affinity=_extend(affinity.pod_affinity, together),
        pod_anti_affinity=_extend(affinity.pod_anti_affinity, apart),
    )
    return structs.replace(pod, spec=structs.replace(pod.spec, affinity=affinity))


def _extend(rules: wire.PodAffinity | None, more: Iterable[wire.PodTerm]) -> wire.PodAffinity:
    terms = [*_list_terms(rules), *more]
    return structs.replace(
        rules or wire.PodAffinity(), required_during_scheduling_ignored_during_execution=terms
    )
