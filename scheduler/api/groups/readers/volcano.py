"""Volcano's groups: an annotation of the pod with a PodGroup, which may give minima for tasks."""

from __future__ import annotations

from scheduler.api import names, values, wire
from scheduler.api.groups.definitions import OTHERS, Definition, GroupKey, Membership, Part
from scheduler.api.groups.objects import VolcanoPodGroup
from scheduler.api.groups.readers import reading
from scheduler.api.groups.readers.reading import Notes, Texts
from scheduler.errors import BadInput

KIND = "PodGroup.scheduling.volcano.sh"
# What a PodGroup may say that needs HyperNode objects, which nobody reads.
_HYPER_NODES = ("networkTopology", "subGroupPolicy")


def find_key(pod: wire.Pod, _labels: Texts, annotations: Texts) -> GroupKey | None:
    """Find the group that a pod names."""
    name = annotations.get(names.VOLCANO_GROUP) or annotations.get(names.VOLCANO_GROUP_TOO)
    return GroupKey(KIND, pod.metadata.namespace, name) if name else None


def read_member(pod: wire.Pod, key: GroupKey) -> Membership:
    """Read what a pod says: its task."""
    notes = Notes(pod.metadata.annotations or {})
    too = notes.texts.get(names.VOLCANO_GROUP_TOO)
    if too and too != key.name:
        text = f"{values.quote(too)} is another group than {values.quote(key.name)} of {names.VOLCANO_GROUP}"
        raise BadInput(notes.name(names.VOLCANO_GROUP_TOO), text)
    labels = pod.metadata.labels or {}
    # Volcano reads the annotation before the label.
    task = notes.texts.get(names.VOLCANO_TASK) or labels.get(names.VOLCANO_TASK, "")
    return Membership(key, part=task)


def read_group(found: VolcanoPodGroup) -> Definition:
    """Read a PodGroup."""
    spec = values.read_mapping(found.spec, "spec")
    for key in _HYPER_NODES:
        if spec.get(key):
            text = "is not supported: it needs HyperNode objects of topology.volcano.sh, which are not read"
            raise BadInput(f"spec.{key}", text)
    minimum = reading.read_optional_count(spec, "minMember", "spec") or 0
    field = "spec.minTaskMember"
    tasks = {
        name: reading.read_count(least, f"{field}[{name}]")
        for name, least in reading.read_map(spec.get("minTaskMember"), field).items()
    }
    if OTHERS in tasks:
        raise BadInput(f"{field}[{OTHERS}]", "is not the name of a task")
    return Definition(
        GroupKey(KIND, found.metadata.namespace, found.metadata.name),
        _make_root(minimum, tasks),
    )


def _make_root(minimum: int, tasks: dict[str, int]) -> Part:
    """Make the group as a whole. Volcano looks at minima of tasks only if they are no more than that of the group."""
    total = sum(tasks.values())
    if minimum < total or not tasks:
        return Part("", minimum)
    if minimum > total:
        text = (
            f"{minimum} is more than minTaskMember adds up to, {total}: give every task its minimum"
        )
        raise BadInput("spec.minMember", text)
    parts = (*(Part(name, least) for name, least in tasks.items()), Part(OTHERS, 0))
    return Part("", len(parts), parts=parts)
