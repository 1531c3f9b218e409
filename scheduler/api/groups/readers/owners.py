"""Owners of pods: how a pod says that it belongs to a Job, a JobSet and so on, as one table.

A controller writes these labels, so a rank that is none is not told: the pod has no rank then. A pod of a JobSet or of a
RayCluster says its place in two numbers, and not how many places a row has. Its rank is the row times ``ROW`` plus the
place: such ranks are in order, but not consecutive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from scheduler.api import names, wire
from scheduler.api.groups.definitions import GroupKey
from scheduler.api.groups.readers.reading import Texts, parse_rank

ROW = 2**31
LEADER, WORKERS = "leader", "workers"
# The operators of Kubeflow that write the same labels, by the kind of their objects.
_OPERATORS = {
    "mpi-operator": "MPIJob",
    "mpijob-controller": "MPIJob",
    "pytorchjob-controller": "PyTorchJob",
    "tfjob-controller": "TFJob",
    "xgboostjob-controller": "XGBoostJob",
    "paddlejob-controller": "PaddleJob",
    "jaxjob-controller": "JAXJob",
}


class OwnerPart(msgspec.Struct, frozen=True):
    """What a pod is of its owner.

    Attributes:
        kind: the kind of the owner, such as ``JobSet``.
        group: the key of the group that the owner's pods would be.
        part: the name of the part; empty: the group has one part.
        index: its rank in the part; -1 if it has none.
    """

    kind: str
    group: GroupKey
    part: str = ""
    index: int = -1


class Owner(NamedTuple):
    """One line of the table.

    Attributes:
        kind: the kind of the owner.
        group: the API group of the owner.
        label: the label by which its pods are known; empty: they are known by the controller that they name.
        find: finds the name of the group, the part and the rank of such a pod; no name: it is no such pod.
    """

    kind: str
    group: str
    label: str
    find: Callable[[Texts, Texts], tuple[str, str, int]]


def _find_in_job_set(labels: Texts, annotations: Texts) -> tuple[str, str, int]:
    place = _find_job_index(labels, annotations)
    index = _join(parse_rank(labels.get(names.JOBSET_INDEX)), place)
    return labels[names.JOBSET_NAME], labels.get(names.JOBSET_PART, ""), index


def _find_in_leader_worker_set(labels: Texts, _annotations: Texts) -> tuple[str, str, int]:
    replica = parse_rank(labels.get(names.LWS_GROUP))
    index = parse_rank(labels.get(names.LWS_INDEX))
    name = f"{labels[names.LWS_NAME]}/{replica}" if replica >= 0 else ""
    return name, WORKERS if index else LEADER, index


def _find_in_training(labels: Texts, _annotations: Texts) -> tuple[str, str, int]:
    part = labels.get(names.TRAINING_PART) or labels.get(names.TRAINING_ROLE, "")
    index = parse_rank(labels.get(names.TRAINING_INDEX))
    return labels[names.TRAINING_NAME], part.lower(), index


def _find_in_ray_cluster(labels: Texts, _annotations: Texts) -> tuple[str, str, int]:
    index = _join(parse_rank(labels.get(names.RAY_REPLICA)), parse_rank(labels.get(names.RAY_HOST)))
    return labels[names.RAY_CLUSTER], labels.get(names.RAY_PART, ""), index


def _find_job_index(labels: Texts, annotations: Texts) -> int:
    return parse_rank(annotations.get(names.JOB_INDEX) or labels.get(names.JOB_INDEX))


def _join(row: int, place: int) -> int:
    """Make a rank of a row and of a place in it; a missing place is the only one, a missing row the only one."""
    return -1 if row < 0 and place < 0 else max(row, 0) * ROW + max(place, 0)


def _find_in_set(labels: Texts, _annotations: Texts) -> tuple[str, str, int]:
    return "", "", parse_rank(labels.get(names.SET_INDEX))


def _find_in_job(labels: Texts, annotations: Texts) -> tuple[str, str, int]:
    return "", "", _find_job_index(labels, annotations)


# A pod of a JobSet is also a pod of a Job, and that of a LeaderWorkerSet one of a StatefulSet: the first line holds.
_TRAINING = "kubeflow.org"
TABLE = (
    Owner("JobSet", "jobset.x-k8s.io", names.JOBSET_NAME, _find_in_job_set),
    Owner(
        "LeaderWorkerSet", "leaderworkerset.x-k8s.io", names.LWS_NAME, _find_in_leader_worker_set
    ),
    *(
        Owner(kind, _TRAINING, names.TRAINING_NAME, _find_in_training)
        for kind in dict.fromkeys(_OPERATORS.values())
    ),
    Owner("RayCluster", "ray.io", names.RAY_CLUSTER, _find_in_ray_cluster),
    Owner("Job", "batch", "", _find_in_job),
    Owner("StatefulSet", "apps", "", _find_in_set),
)
KEY_KINDS = {one.kind: f"{one.kind}.{one.group}" for one in TABLE}


def find_owner(pod: wire.Pod) -> OwnerPart | None:
    """Find what a pod is of its owner; None if it has no owner of a kind of the table."""
    meta = pod.metadata
    labels, annotations = meta.labels or {}, meta.annotations or {}
    controller = next((one for one in meta.owner_references or () if one.controller), None)
    for one in TABLE:
        if one.label:
            known = one.label in labels and _is_made_by(one, labels)
        else:
            known = controller is not None and _is_of_kind(controller, one)
        if not known:
            continue
        name, part, index = one.find(labels, annotations)
        if controller is not None and not one.label:
            name = controller.name
        if name:
            group = GroupKey(KEY_KINDS[one.kind], meta.namespace, name)
            return OwnerPart(one.kind, group, part, index)
    return None


def _is_of_kind(controller: wire.Owner, one: Owner) -> bool:
    return controller.kind == one.kind and controller.api_version.partition("/")[0] == one.group


def _is_made_by(one: Owner, labels: Texts) -> bool:
    """Whether the operator that wrote the labels has objects of the kind."""
    operator = labels.get(names.TRAINING_OPERATOR, "")
    return one.label != names.TRAINING_NAME or _OPERATORS.get(operator) == one.kind
