"""The one table of the readers of groups: which of them reads a pod, or an object, and what becomes of a mistake.

A pod is in the group that it names. A pod that names none is in the group of its owner if somebody asks for it: the pod
by an annotation, or whoever knows that the owner does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import msgspec

from scheduler.api import names, steering, values, wire
from scheduler.api.groups import objects
from scheduler.api.groups.definitions import (
    Definition,
    Disruption,
    GroupKey,
    Membership,
    Part,
    System,
    Topology,
)
from scheduler.api.groups.readers import (
    coscheduling,
    kai,
    kubernetes,
    kueue,
    owners,
    reading,
    volcano,
    workloads,
)
from scheduler.api.groups.readers.owners import OwnerPart, find_owner
from scheduler.api.groups.readers.reading import Notes, Texts
from scheduler.errors import BadInput, Mistake

# What stands for groups: an object of its own kind, or an owner of pods.
GroupSource = objects.GroupObject | steering.StatefulSet
# The kinds of owners whose pods may be groups without being asked. The pods of a TrainJob are those of its JobSet, and
# the pods of a RayJob those of its RayCluster.
OWNER_KINDS = tuple(owners.KEY_KINDS)


class Reader(NamedTuple):
    """One line of the table: a system in whose words a pod names its group.

    Attributes:
        find_key: finds the group that a pod names, from its labels and annotations; it never raises.
        read_member: reads the rest of what the pod says; it raises ``BadInput``.
    """

    system: System
    find_key: Callable[[wire.Pod, Texts, Texts], GroupKey | None]
    read_member: Callable[[wire.Pod, GroupKey], Membership]


READERS = (
    Reader(System.KUBERNETES, kubernetes.find_key, kubernetes.read_member),
    Reader(System.COSCHEDULING, coscheduling.find_key, coscheduling.read_member),
    Reader(System.KUEUE, kueue.find_key, kueue.read_member),
    Reader(System.KAI, kai.find_key, kai.read_member),
    Reader(System.VOLCANO, volcano.find_key, volcano.read_member),
)
# A pod with none of these labels and annotations names no group and asks for none.
_LABELS = frozenset({names.X_GROUP, names.COSCHEDULING_GROUP, names.KUEUE_GROUP})
_ANNOTATIONS = kueue.PLACEMENT | {
    names.GANG_NAME, names.KUEUE_TOTAL, names.KAI_GROUP, names.VOLCANO_GROUP,
    names.VOLCANO_GROUP_TOO, names.GANG,
}  # fmt: skip
_BY_OBJECT: dict[type[wire.Object], tuple[str, Callable[[Any], Definition]]] = {
    objects.KubePodGroup: (kubernetes.KIND, kubernetes.read_group),
    objects.CompositePodGroup: (kubernetes.COMPOSITE_KIND, kubernetes.read_composite),
    objects.SigsPodGroup: (coscheduling.KIND, coscheduling.read_group),
    objects.XPodGroup: (coscheduling.X_KIND, coscheduling.read_x_group),
    objects.KaiPodGroup: (kai.KIND, kai.read_group),
    objects.VolcanoPodGroup: (volcano.KIND, volcano.read_group),
}
_BY_TOPOLOGY: dict[type[wire.Object], Callable[[Any], Topology]] = {
    objects.KueueTopology: kueue.read_topology,
    objects.KaiTopology: kai.read_topology,
    objects.ClusterNetworkTopology: coscheduling.read_topology,
}
# A pod without an owner that is placed by its own annotations is a group of one.
_ALONE = "Pod"
# The kind of the groups of a LeaderWorkerSet.
_REPLICAS = owners.KEY_KINDS["LeaderWorkerSet"]


def read_membership(pod: wire.Pod, switched_on: Collection[str] = ()) -> Membership | None:
    """Read what a pod says of the group that it is in; None for a pod in no group.

    Args:
        pod: the pod.
        switched_on: the kinds of ``OWNER_KINDS`` whose pods are groups without being asked.
    """
    # This runs for every pod, and nearly all of them are in no group.
    meta = pod.metadata
    labels, annotations = meta.labels, meta.annotations
    names_one = (
        (annotations and not _ANNOTATIONS.isdisjoint(annotations))
        or (labels and not _LABELS.isdisjoint(labels))
        or pod.spec.scheduling_group is not None
    )
    if not (names_one or switched_on):
        return None
    member = _read_named(pod, labels or {}, annotations or {}) if names_one else None
    return _bound_names(member) if member else _read_owned(pod, annotations or {}, switched_on)


def drop_group_labels(labels: Texts) -> dict[str, str]:
    """Return labels without those by which a pod names a group."""
    return {key: text for key, text in labels.items() if key not in _LABELS}


def drop_group_annotations(annotations: Texts) -> dict[str, str]:
    """Return annotations without those by which a pod names a group, or says where its group goes."""
    return {key: text for key, text in annotations.items() if key not in _ANNOTATIONS}


def _bound_names(member: Membership) -> Membership:
    """Return a membership of which all names have a longest length; nobody knows a longer one."""
    group, most = member.group, reading.NAME_MAX
    if len(group.name) <= most and len(member.part) <= most:
        return member
    text = f"the name of the group, or of its part, has more than {most} characters"
    group = group._replace(name=group.name[:most])
    problem = member.problem or Mistake("metadata", text)
    return Membership(group, member.part[:most], problem=problem)


def _read_named(pod: wire.Pod, labels: Texts, annotations: Texts) -> Membership | None:
    """Read the group that a pod names itself."""
    found = [
        (one, key) for one in READERS if (key := one.find_key(pod, labels, annotations)) is not None
    ]
    if not found:
        return None
    reader, key = found[0]
    if len(found) > 1:
        both = " and ".join(f"{one.system} group {values.quote(key.name)}" for one, key in found)
        problem = Mistake("metadata", f"the pod names {both}; it can be in one group only")
        return Membership(key, problem=problem)
    try:
        member, notes = reader.read_member(pod, key), Notes(annotations)
        return msgspec.structs.replace(
            member, constraint=kueue.read_constraint(notes), restarts=reading.read_restart(notes)
        )
    except BadInput as error:
        return Membership(key, problem=error.mistake)


def _read_owned(pod: wire.Pod, annotations: Texts, switched_on: Collection[str]) -> Membership | None:  # fmt: skip
    """Read the group of a pod's owner, if the pod asks for it, or its kind is switched on."""
    owner = find_owner(pod)
    is_placed = not kueue.PLACEMENT.isdisjoint(annotations)
    is_asked = names.GANG in annotations
    if owner is None:
        if not (is_asked or is_placed):
            return None
        owner = OwnerPart(_ALONE, GroupKey(_ALONE, pod.metadata.namespace, pod.metadata.name))
    elif not (is_asked or is_placed or owner.kind in switched_on):
        return None
    return read_part(pod, owner)


def read_part(pod: wire.Pod, owner: OwnerPart) -> Membership:
    """Read what a pod says of the group of its owner, where it is known that the owner has asked for the group."""
    try:
        member = _read_part(owner, Notes(pod.metadata.annotations or {}))
    except BadInput as error:
        member = Membership(owner.group, owner.part, problem=error.mistake)
    return _bound_names(member)


def _read_part(owner: OwnerPart, notes: Notes) -> Membership:
    if names.GANG in notes.texts:
        field = notes.name(names.GANG)
        workloads.parse_gang(notes.texts[names.GANG], field)
        if owner.kind == _ALONE:
            kinds = ", ".join(OWNER_KINDS)
            raise BadInput(
                field, f"the pod has no owner of which a group could be; known are {kinds}"
            )
    return Membership(
        owner.group,
        owner.part,
        kueue.move_index(owner.index, notes),
        definition=_define_alone(owner.group) if owner.kind == _ALONE else None,
        constraint=workloads.read_placement(notes),
        restarts=reading.read_restart(notes),
    )


def _define_alone(key: GroupKey) -> Definition:
    return Definition(key, Part("", 1, 1), disruption=Disruption.WHOLE)


def name_difference(one: Definition, other: Definition) -> str:
    """Name the annotation in which two pods say different things of their group, for which no object stands."""
    is_kueue = one.key.kind == kueue.KIND
    return Notes({}).name(
        names.KUEUE_TOTAL if is_kueue else coscheduling.name_difference(one, other)
    )


def read_run_seconds(pod: wire.Pod) -> float | None:
    """Read after how many seconds a pod has ended; None if nobody says it.

    Raises:
        BadInput: a label or annotation about it is wrong.
    """
    meta = pod.metadata
    if pod.spec.active_deadline_seconds is None and not (meta.labels or meta.annotations):
        return None
    return reading.find_run_seconds(
        Notes(meta.annotations or {}),
        meta.labels or {},
        pod.spec.active_deadline_seconds,
        "spec.activeDeadlineSeconds",
    )


def read_checkpoint_seconds(pod: wire.Pod) -> float | None:
    """Read how often a pod saves its work, in seconds; None if it does not say so.

    Raises:
        BadInput: the annotation is no duration.
    """
    annotations = pod.metadata.annotations or {}
    if names.CHECKPOINT not in annotations:
        return None
    return reading.parse_seconds(
        annotations[names.CHECKPOINT], Notes(annotations).name(names.CHECKPOINT)
    )


def find_group(found: GroupSource) -> GroupKey | None:
    """Find the key of the group that an object speaks of, or of the object that stands for its groups.

    None for a RayJob or a RayService that has no RayCluster of its own, or not yet.
    """
    meta = found.metadata
    if type(found) in _BY_OBJECT:
        return GroupKey(_BY_OBJECT[type(found)][0], meta.namespace, meta.name)
    kind, name = type(found).__name__, meta.name
    if isinstance(found, objects.TrainJob):
        kind = objects.JobSet.__name__
    elif isinstance(found, objects.RayJob):
        kind, name = objects.RayCluster.__name__, _read_ray_cluster(found)
    elif isinstance(found, objects.RayService):
        kind, name = objects.RayCluster.__name__, _read_active_cluster(found)
    return GroupKey(owners.KEY_KINDS[kind], meta.namespace, name) if name else None


def _read_ray_cluster(found: objects.RayJob) -> str:
    """Read which cluster is made for a job; empty for none yet, and if it runs in one that is there anyway."""
    spec, status = ({} if not isinstance(one, dict) else one for one in (found.spec, found.status))
    name = status.get("rayClusterName")
    return name if isinstance(name, str) and not spec.get("clusterSelector") else ""


def _read_active_cluster(found: objects.RayService) -> str:
    """Read from which cluster a service serves; empty for none yet."""
    status = found.status if isinstance(found.status, dict) else {}
    active = status.get("activeServiceStatus")
    name = active.get("rayClusterName") if isinstance(active, dict) else None
    return name if isinstance(name, str) else ""


def find_object(group: GroupKey) -> GroupKey:
    """Find the key of the object that stands for a group: a LeaderWorkerSet stands for several.

    Tenants write the names of other groups, which may have a slash as well: such a group has no object.
    """
    is_cut = "/" in group.name and group.kind == _REPLICAS
    return group._replace(name=group.name.rpartition("/")[0]) if is_cut else group


def is_gang_asked(found: GroupSource) -> bool:
    """Whether the annotations of an owner ask that its pods be a group; its pods need not have them."""
    return names.GANG in (found.metadata.annotations or ())


def read_definition(found: GroupSource, key: GroupKey | None = None, asker: GroupSource | None = None) -> Definition:  # fmt: skip
    """Read what an object says of a group.

    Args:
        found: the object.
        key: the group, of an object that stands for several.
        asker: the owner of the object that asks for the group in its stead: a TrainJob, a RayJob or a RayService.
    """
    meta = found.metadata
    key = key or find_group(found) or GroupKey(type(found).__name__, meta.namespace, meta.name)
    try:
        definition = _define(found, key, asker or found)
    except BadInput as error:
        definition = Definition(key, Part("", 1), problem=error.mistake)
    return msgspec.structs.replace(
        definition, created=meta.creation_timestamp, uid=meta.uid, generation=meta.generation
    )


def _define(found: GroupSource, key: GroupKey, asker: GroupSource) -> Definition:
    if isinstance(found, objects.TrainJob | objects.RayJob | objects.RayService):
        kind = "JobSet" if isinstance(found, objects.TrainJob) else "RayCluster"
        raise BadInput("", f"the {kind} that is made of it says what the group is")
    if type(found) not in _BY_OBJECT:
        return workloads.read_group(found, key, Notes(asker.metadata.annotations or {}))
    definition = _BY_OBJECT[type(found)][1](found)
    notes = Notes(found.metadata.annotations or {})
    seconds = reading.find_run_seconds(notes, found.metadata.labels or {}, None, "")
    return msgspec.structs.replace(
        definition, run_seconds=seconds, restarts=reading.read_restart(notes)
    )


def was_placed(found: GroupSource) -> bool:
    """Whether the status of an object says that its group was placed once."""
    return isinstance(found, objects.KubePodGroup) and kubernetes.was_placed(found)


def read_topology(found: objects.TopologyObject) -> Topology:
    """Read the levels of a topology.

    Raises:
        BadInput: the object is wrong.
    """
    return _BY_TOPOLOGY[type(found)](found)
