"""Kueue's words: groups of plain pods, where in a topology the pods of a template go, and Topology."""

from __future__ import annotations

from typing import Any

from scheduler.api import names, values, wire
from scheduler.api.groups.definitions import (
    Constraint,
    Definition,
    Disruption,
    GroupKey,
    Level,
    Membership,
    Part,
    Rule,
    Slice,
    Topology,
)
from scheduler.api.groups.objects import KaiTopology, KueueTopology
from scheduler.api.groups.readers import reading
from scheduler.api.groups.readers.reading import Notes, Texts
from scheduler.errors import BadInput

# No object stands for a group of plain pods.
KIND = "PodGroup.kueue.x-k8s.io"
# The annotations that say where pods go. A pod of a Job that has one is in a group: Kueue admits a Job as a whole.
PLACEMENT = frozenset({
    names.KUEUE_REQUIRED, names.KUEUE_PREFERRED, names.KUEUE_UNCONSTRAINED,
    names.KUEUE_SLICE_LEVEL, names.KUEUE_SLICE_SIZE, names.KUEUE_SLICES, names.KUEUE_TOGETHER,
})  # fmt: skip
_LEVELS_MAX, _LAYERS_MAX = 16, 3


def find_key(pod: wire.Pod, labels: Texts, annotations: Texts) -> GroupKey | None:
    """Find the group that a pod names, or would name if its label were there."""
    name = labels.get(names.KUEUE_GROUP)
    if not name and names.KUEUE_TOTAL not in annotations:
        return None
    return GroupKey(KIND, pod.metadata.namespace, name or pod.metadata.name)


def read_member(pod: wire.Pod, key: GroupKey) -> Membership:
    """Read what a pod of a group of plain pods says; all of them must have a node at once, unless one admits the group."""
    labels, notes = pod.metadata.labels or {}, Notes(pod.metadata.annotations or {})
    total = notes.texts.get(names.KUEUE_TOTAL)
    if not labels.get(names.KUEUE_GROUP):
        needs = f"is missing; {names.KUEUE_TOTAL} needs it"
        raise BadInput(reading.name_label(names.KUEUE_GROUP), needs)
    if total is None:
        needs = f"is missing; the label {names.KUEUE_GROUP} needs it"
        raise BadInput(notes.name(names.KUEUE_TOTAL), needs)
    count = reading.parse_count(total, notes.name(names.KUEUE_TOTAL))
    # How long a pod runs is its own affair; but if it is no time, none of the group has a node, and all say which pod it is.
    reading.find_run_seconds(
        notes, labels, pod.spec.active_deadline_seconds, "spec.activeDeadlineSeconds"
    )
    # Such pods may come one after the other, each once the one before it is ready, as a StatefulSet makes them.
    least = 1 if notes.texts.get(names.KUEUE_FAST) == "true" else count
    definition = Definition(key, Part("", least, count), by_role=True, disruption=Disruption.WHOLE)
    index = move_index(_read_index(labels, notes), notes)
    role = notes.texts.get(names.KUEUE_ROLE, "")
    return Membership(key, part=role, index=index, definition=definition)


def _read_index(labels: Texts, notes: Notes) -> int:
    key = names.KUEUE_INDEX
    if key not in labels:
        key = notes.texts.get(names.KUEUE_INDEX_LABEL, "")
    return reading.parse_count(labels[key], reading.name_label(key), 0) if key in labels else -1


def move_index(index: int, notes: Notes) -> int:
    """Return an index as it is counted from the first pod of its template."""
    text, field = notes.texts.get(names.KUEUE_INDEX_OFFSET), notes.name(names.KUEUE_INDEX_OFFSET)
    if text is None or index < 0:
        return index
    offset = reading.parse_count(text, field, 0)
    if offset > index:
        raise BadInput(field, f"{offset} is more than the pod's index, {index}")
    return index - offset


def read_constraint(notes: Notes) -> Constraint | None:
    """Read where the annotations say that the pods of a template go; None if they do not say it."""
    texts = notes.texts
    if PLACEMENT.isdisjoint(texts):
        return None
    given = [key for key in (names.KUEUE_REQUIRED, names.KUEUE_PREFERRED) if key in texts]
    spreads_freely = False
    if (text := texts.get(names.KUEUE_UNCONSTRAINED)) is not None:
        given.append(names.KUEUE_UNCONSTRAINED)
        spreads_freely = reading.parse_truth(text, notes.name(names.KUEUE_UNCONSTRAINED))
    if len(given) > 1:
        raise BadInput(notes.name(given[1]), f"may not stand beside {given[0]}; give one of them")
    required = preferred = ""
    if names.KUEUE_REQUIRED in texts:
        required = _read_level(notes, names.KUEUE_REQUIRED)
    if names.KUEUE_PREFERRED in texts:
        preferred = _read_level(notes, names.KUEUE_PREFERRED)
    slices = _read_slices(notes)
    _check_together(notes, bool(required or preferred))
    if not (required or preferred or spreads_freely or slices):
        return None
    return Constraint(
        Rule.KUEUE,
        required=required,
        preferred=(preferred,) if preferred else (),
        spreads_freely=spreads_freely,
        slices=slices,
    )


def _read_level(notes: Notes, key: str) -> str:
    return reading.read_name(notes.texts[key], notes.name(key), "a label")


def _check_together(notes: Notes, has_level: bool) -> None:
    """Check the name by which two templates share a domain."""
    name = notes.texts.get(names.KUEUE_TOGETHER)
    if name is None:
        return
    field = notes.name(names.KUEUE_TOGETHER)
    reading.read_name(name, field)
    if name.isascii() and name.isdigit():
        raise BadInput(field, "must not be a number")
    for key in (names.KUEUE_SLICE_LEVEL, names.KUEUE_SLICE_SIZE, names.KUEUE_SLICES):
        if key in notes.texts:
            raise BadInput(field, f"may not stand beside {key}")
    if not has_level:
        raise BadInput(field, f"needs {names.KUEUE_REQUIRED} or {names.KUEUE_PREFERRED}")


def _read_slices(notes: Notes) -> tuple[Slice, ...]:
    single = [
        key for key in (names.KUEUE_SLICE_LEVEL, names.KUEUE_SLICE_SIZE) if key in notes.texts
    ]
    if names.KUEUE_SLICES in notes.texts:
        if single:
            raise BadInput(notes.name(names.KUEUE_SLICES), f"may not stand beside {single[0]}")
        return _read_layers(notes.texts[names.KUEUE_SLICES], notes.name(names.KUEUE_SLICES))
    if len(single) == 1:
        raise BadInput(
            notes.name(single[0]),
            f"needs both of {names.KUEUE_SLICE_LEVEL} and {names.KUEUE_SLICE_SIZE}",
        )
    if not single:
        return ()
    size = notes.texts[names.KUEUE_SLICE_SIZE]
    level = _read_level(notes, names.KUEUE_SLICE_LEVEL)
    return (Slice(level, reading.parse_count(size, notes.name(names.KUEUE_SLICE_SIZE))),)


def _read_layers(text: str, field: str) -> tuple[Slice, ...]:
    layers = reading.read_few(reading.parse_json(text, field), field, dict, _LAYERS_MAX)
    if not layers:
        raise BadInput(field, f"has no layer; 1 to {_LAYERS_MAX} are allowed")
    slices: list[Slice] = []
    for i, layer in enumerate(layers):
        level = reading.read_name(layer.get("topology"), f"{field}[{i}].topology", "a label")
        size = reading.read_count(layer.get("size"), f"{field}[{i}].size", 1)
        if any(level == one.level for one in slices):
            raise BadInput(f"{field}[{i}].topology", f"{values.quote(level)} is there twice")
        if slices and slices[-1].size % size:
            raise BadInput(f"{field}[{i}].size", f"{size} does not divide {slices[-1].size}")
        slices.append(Slice(level, size))
    return tuple(slices)


def read_topology(found: KueueTopology) -> Topology:
    """Read a Topology of Kueue."""
    return Topology(Rule.KUEUE, found.metadata.name, read_levels(found))


def read_levels(found: KueueTopology | KaiTopology) -> tuple[Level, ...]:
    """Read the levels of a Topology, which KAI writes in the same way."""
    spec: Any = values.read_mapping(found.spec, "spec")
    levels: list[Level] = []
    for i, level in enumerate(
        reading.read_few(spec.get("levels"), "spec.levels", dict, _LEVELS_MAX)
    ):
        field = f"spec.levels[{i}].nodeLabel"
        label = reading.read_name(level.get("nodeLabel"), field, "a label")
        if any(label == one.label for one in levels):
            raise BadInput(field, f"{values.quote(label)} is there twice")
        if levels and levels[-1].label == names.HOSTNAME:
            raise BadInput(field, f"nothing lies within {names.HOSTNAME}; it must be the last")
        levels.append(Level(label, label))
    if not levels:
        raise BadInput("spec.levels", f"has no level; 1 to {_LEVELS_MAX} are allowed")
    return tuple(levels)
