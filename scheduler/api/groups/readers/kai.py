"""KAI's groups: an annotation of the pod with a PodGroup, which may have groups within; and KAI's Topology."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from scheduler.api import names, values, wire
from scheduler.api.groups.definitions import (
    Constraint,
    Definition,
    GroupKey,
    Membership,
    Part,
    Rule,
    Topology,
)
from scheduler.api.groups.objects import KaiPodGroup, KaiTopology
from scheduler.api.groups.readers import kueue, reading
from scheduler.api.groups.readers.reading import Notes, Texts
from scheduler.errors import BadInput

KIND = "PodGroup.scheduling.run.ai"
# KAI evicts a group that has run below its minimum for so long.
GRACE_SECONDS = 60.0
# The classes that KAI ships; of other classes the pods have the priority.
PRIORITIES = {"train": 50, "build-preemptible": 75, "build": 100, "inference": 125}
PREEMPTIBILITIES = "preemptible", "non-preemptible"
# How deep groups may lie within each other.
DEPTH_MAX = 8
PLACEMENT = frozenset({names.KAI_TOPOLOGY, names.KAI_REQUIRED, names.KAI_PREFERRED})
# Pods with an order come before those without one, whatever the order is.
_BEFORE_ALL = 2**32
_FIELD = "spec.subGroups"


class _SubGroup(NamedTuple):
    field: str
    name: str
    parent: str
    minimum: int | None
    parts_minimum: int | None
    constraint: Constraint | None


def find_key(pod: wire.Pod, _labels: Texts, annotations: Texts) -> GroupKey | None:
    """Find the group that a pod names."""
    name = annotations.get(names.KAI_GROUP)
    return GroupKey(KIND, pod.metadata.namespace, name) if name else None


def read_member(pod: wire.Pod, key: GroupKey) -> Membership:
    """Read what a pod says: its part, and which pods come before it."""
    labels = pod.metadata.labels or {}
    order = 0
    if names.KAI_ORDER in labels:
        field = reading.name_label(names.KAI_ORDER)
        # The pod with the highest number is placed first.
        order = -_BEFORE_ALL - reading.parse_count(labels[names.KAI_ORDER], field, -(2**31))
    return Membership(key, part=labels.get(names.KAI_PART, ""), order=order)


def read_constraint(notes: Notes) -> Constraint | None:
    """Read where the annotations of an owner say that its pods go; None if they do not say it."""
    texts = notes.texts
    if PLACEMENT.isdisjoint(texts):
        return None
    for key in PLACEMENT & texts.keys():
        if texts[key]:
            reading.read_name(texts[key], notes.name(key))
    return _make_constraint(
        texts.get(names.KAI_TOPOLOGY, ""),
        texts.get(names.KAI_REQUIRED, ""),
        texts.get(names.KAI_PREFERRED, ""),
    )


def _make_constraint(topology: str, required: str, preferred: str) -> Constraint | None:
    if not (required or preferred):
        return None
    return Constraint(
        Rule.KAI,
        topology=topology,
        required=required,
        preferred=(preferred,) if preferred else (),
    )


def _read_constraint(spec: Mapping[str, Any], under: str) -> Constraint | None:
    field = f"{under}.topologyConstraint"
    found = values.read_mapping(spec.get("topologyConstraint"), field)
    return _make_constraint(
        reading.read_optional_name(found, "topology", field),
        reading.read_optional_name(found, "requiredTopologyLevel", field),
        reading.read_optional_name(found, "preferredTopologyLevel", field),
    )


def read_group(found: KaiPodGroup) -> Definition:
    """Read a PodGroup."""
    spec = values.read_mapping(found.spec, "spec")
    minimum = reading.read_optional_count(spec, "minMember", "spec")
    parts_minimum = reading.read_optional_count(spec, "minSubGroup", "spec", 1)
    if minimum and parts_minimum:
        raise BadInput("spec.minSubGroup", "may not stand beside minMember; give one of them")
    parts = _make_parts("", _list_sub_groups(spec), 1)
    if parts_minimum and parts_minimum > len(parts):
        text = f"{parts_minimum} is more than the {len(parts)} groups directly within"
        raise BadInput("spec.minSubGroup", text)
    # With groups within, KAI does not look at the minimum of pods.
    least = (parts_minimum or len(parts)) if parts else max(1, minimum or 0)
    return Definition(
        GroupKey(KIND, found.metadata.namespace, found.metadata.name),
        Part("", least, constraint=_read_constraint(spec, "spec"), parts=parts),
        grace_seconds=GRACE_SECONDS,
        queue=reading.read_optional_name(spec, "queue", "spec"),
        queue_priority=PRIORITIES.get(
            reading.read_optional_name(spec, "priorityClassName", "spec")
        ),
        is_preemptible=_read_preemptibility(spec),
    )


def _read_preemptibility(spec: Mapping[str, Any]) -> bool | None:
    given = spec.get("preemptibility")
    if given is None or given == "":
        return None
    if given not in PREEMPTIBILITIES:
        wanted = " or ".join(PREEMPTIBILITIES)
        raise BadInput("spec.preemptibility", f"{values.quote(given)} is not {wanted}")
    return bool(given == PREEMPTIBILITIES[0])


def _list_sub_groups(spec: Mapping[str, Any]) -> dict[str, list[_SubGroup]]:
    """List the groups within, by the name of their parents."""
    children: dict[str, list[_SubGroup]] = {}
    given: set[str] = set()
    for i, raw in enumerate(reading.read_few(spec.get("subGroups"), _FIELD, dict)):
        one = _read_sub_group(raw, f"{_FIELD}[{i}]")
        if one.name in given:
            raise BadInput(f"{one.field}.name", f"{values.quote(one.name)} is there twice")
        given.add(one.name)
        children.setdefault(one.parent, []).append(one)
    _check_parents(children, given)
    return children


def _check_parents(children: dict[str, list[_SubGroup]], given: set[str]) -> None:
    """Check that a line of parents leads from every group to the PodGroup."""
    reached = {""}
    new = [""]
    while new:
        new = [one.name for name in new for one in children.get(name, ())]
        reached.update(new)
    for one in (one for group in children.values() for one in group):
        if one.parent and one.parent not in given:
            raise BadInput(f"{one.field}.parent", f"there is no group {values.quote(one.parent)}")
        if one.name not in reached:
            text = "the group lies within itself: its parents are a cycle"
            raise BadInput(f"{one.field}.parent", text)


def _read_sub_group(raw: dict[str, Any], field: str) -> _SubGroup:
    return _SubGroup(
        field,
        reading.read_name(raw.get("name"), f"{field}.name"),
        # Names are in lower case; KAI finds a parent whose name is written in another one.
        reading.read_optional_name(raw, "parent", field).lower(),
        reading.read_optional_count(raw, "minMember", field),
        reading.read_optional_count(raw, "minSubGroup", field, 1),
        _read_constraint(raw, field),
    )


def _make_parts(parent: str, children: dict[str, list[_SubGroup]], depth: int) -> tuple[Part, ...]:
    if depth > DEPTH_MAX:
        field = f"{children[parent][0].field}.parent"
        raise BadInput(field, f"groups lie more than {DEPTH_MAX} deep within each other")
    # KAI places groups of groups first, then groups of pods, each by name.
    order = sorted(children.get(parent, ()), key=lambda one: (one.name not in children, one.name))
    return tuple(_make_part(one, children, depth) for one in order)


def _make_part(one: _SubGroup, children: dict[str, list[_SubGroup]], depth: int) -> Part:
    if one.name not in children:
        if one.minimum is None:
            raise BadInput(f"{one.field}.minMember", "is missing; a group with pods needs it")
        if one.parts_minimum is not None:
            raise BadInput(f"{one.field}.minSubGroup", "no group lies within this one")
        return Part(one.name, one.minimum, constraint=one.constraint)
    if one.minimum:
        raise BadInput(f"{one.field}.minMember", "groups lie within this one: give minSubGroup")
    parts = _make_parts(one.name, children, depth + 1)
    least = one.parts_minimum or len(parts)
    if least > len(parts):
        text = f"{least} is more than the {len(parts)} groups directly within"
        raise BadInput(f"{one.field}.minSubGroup", text)
    return Part(one.name, least, constraint=one.constraint, parts=parts)


def read_topology(found: KaiTopology) -> Topology:
    """Read a Topology of KAI."""
    return Topology(Rule.KAI, found.metadata.name, kueue.read_levels(found))
