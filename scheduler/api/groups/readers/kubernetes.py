"""Kubernetes' own groups: ``spec.schedulingGroup`` of a pod, PodGroup and CompositePodGroup."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from scheduler.api import names, values, wire
from scheduler.api.groups.definitions import (
    Constraint,
    Definition,
    Disruption,
    GroupClaim,
    GroupKey,
    Match,
    Membership,
    Part,
    Rule,
)
from scheduler.api.groups.objects import CompositePodGroup, KubePodGroup
from scheduler.api.groups.readers import reading
from scheduler.api.groups.readers.reading import Texts
from scheduler.errors import BadInput

KIND = "PodGroup.scheduling.k8s.io"
COMPOSITE_KIND = "CompositePodGroup.scheduling.k8s.io"
_FIELD = "spec.schedulingGroup"
_NAME = "podGroupName"
# So many claims the API lets a group have.
_CLAIMS_MAX = 4
_PRIORITY_MAX = 2_000_001_000
_POLICIES = {"Never": False, "PreemptLowerPriority": True}
_DISRUPTIONS = {"single": Disruption.SINGLE, "all": Disruption.WHOLE}


def find_key(pod: wire.Pod, _labels: Texts, _annotations: Texts) -> GroupKey | None:
    """Find the group that a pod names."""
    asked = pod.spec.scheduling_group
    if asked is None:
        return None
    name = asked.get(_NAME)
    return GroupKey(KIND, pod.metadata.namespace, name if isinstance(name, str) else "")


def read_member(pod: wire.Pod, key: GroupKey) -> Membership:
    """Read what a pod says of its group: its name."""
    reading.read_name((pod.spec.scheduling_group or {}).get(_NAME), f"{_FIELD}.{_NAME}")
    return Membership(key)


def read_group(found: KubePodGroup) -> Definition:
    """Read a PodGroup."""
    definition = _read(found, KIND, "minCount")
    return msgspec.structs.replace(definition, claims=_read_claims(found))


def read_composite(found: CompositePodGroup) -> Definition:
    """Read a CompositePodGroup; its children name it."""
    return _read(found, COMPOSITE_KIND, "minGroupCount")


def _read(found: KubePodGroup | CompositePodGroup, kind: str, minimum: str) -> Definition:
    spec = values.read_mapping(found.spec, "spec")
    least = _read_minimum(spec, minimum)
    namespace = found.metadata.namespace
    parent = reading.read_optional_name(spec, "parentCompositePodGroupName", "spec")
    return Definition(
        GroupKey(kind, namespace, found.metadata.name),
        Part("", 1 if least is None else least, constraint=_read_constraint(spec)),
        is_gang=least is not None,
        match=Match.WAITING_AND_RUNNING,
        priority=_read_priority(spec),
        preempts=_read_preempts(spec),
        disruption=_read_disruption(spec),
        parent=GroupKey(COMPOSITE_KIND, namespace, parent) if parent else None,
    )


def _read_claims(found: KubePodGroup) -> tuple[GroupClaim, ...]:
    """Read the ResourceClaims of a PodGroup. The API server drops them unless DRAWorkloadResourceClaims is on."""
    field = "spec.resourceClaims"
    spec = values.read_mapping(found.spec, "spec")
    entries = reading.read_few(spec.get("resourceClaims"), field, dict, _CLAIMS_MAX)
    return tuple(
        GroupClaim(
            reading.read_name(one.get("name"), f"{field}[{i}].name"),
            reading.read_optional_name(one, "resourceClaimName", f"{field}[{i}]"),
            reading.read_optional_name(one, "resourceClaimTemplateName", f"{field}[{i}]"),
        )
        for i, one in enumerate(entries)
    )


def _read_minimum(spec: Mapping[str, Any], minimum: str) -> int | None:
    """Read the minimum of a gang; None for a group of which any pod that fits runs."""
    name, policy = _read_one(spec, "schedulingPolicy", ("basic", "gang"))
    if name == "basic":
        return None
    return reading.read_count(policy.get(minimum), f"spec.schedulingPolicy.gang.{minimum}", 1)


def _read_one(spec: Mapping[str, Any], key: str, allowed: tuple[str, str]) -> tuple[str, Mapping[str, Any]]:  # fmt: skip
    """Read an object of which exactly one field is set."""
    field = f"spec.{key}"
    found = values.read_mapping(spec.get(key), field)
    given = [name for name in allowed if found.get(name) is not None]
    if len(given) != 1:
        raise BadInput(field, f"must have exactly one of {' and '.join(allowed)}")
    return given[0], values.read_mapping(found[given[0]], f"{field}.{given[0]}")


def _read_disruption(spec: Mapping[str, Any]) -> Disruption:
    if spec.get("disruptionMode") is None:
        return Disruption.SINGLE
    return _DISRUPTIONS[_read_one(spec, "disruptionMode", ("single", "all"))[0]]


def _read_constraint(spec: Mapping[str, Any]) -> Constraint | None:
    field = "spec.schedulingConstraints"
    constraints = values.read_mapping(spec.get("schedulingConstraints"), field)
    levels = reading.read_few(constraints.get("topology"), f"{field}.topology", dict, 1)
    if not levels:
        return None
    key = reading.read_name(levels[0].get("key"), f"{field}.topology[0].key", "a label")
    return Constraint(Rule.KUBERNETES, required=key)


def _read_priority(spec: Mapping[str, Any]) -> int | None:
    priority = spec.get("priority")
    if priority is not None:
        return values.read_integer(priority, "spec.priority", -(2**31), _PRIORITY_MAX)
    # The API server gives a group of a class its priority; a group without either counts as 0.
    return None if spec.get("priorityClassName") else 0


def _read_preempts(spec: Mapping[str, Any]) -> bool | None:
    policy = reading.read_optional_name(spec, "preemptionPolicy", "spec")
    if policy and policy not in _POLICIES:
        allowed = ", ".join(_POLICIES)
        raise BadInput("spec.preemptionPolicy", f"{values.quote(policy)} is not one of {allowed}")
    return _POLICIES.get(policy)


def was_placed(found: KubePodGroup) -> bool:
    """Whether the status of a PodGroup says that the group was placed once."""
    status = found.status if isinstance(found.status, dict) else {}
    conditions = status.get("conditions")
    return any(
        isinstance(one, dict)
        and one.get("type") == names.POD_GROUP_PLACED
        and one.get("status") == "True"
        for one in (conditions if isinstance(conditions, list) else ())
    )
