"""The pod sets of the workload of a job.

Sources: Kueue (2026-08), ``pkg/controller/jobframework/tas.go`` (requests of topologies), ``utils.go`` (variables that
are given twice) and ``pkg/util/equality/podset.go`` (which pod sets are as good as the same).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from scheduler.api import names, quantities, values
from scheduler.api.groups.readers import kueue, reading
from scheduler.api.jobs.parts import JobPart, Json, read_list, read_object
from scheduler.errors import BadInput

_CONTAINERS = "containers", "initContainers"
_DEFAULT_PROTOCOL = "TCP"
# As many pod sets are a group: a leader and its workers.
_GROUP_SIZE = 2
# What the API server writes in the containers of a job that do not say it, and not in those of a workload.
_DEFAULTS = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "timeoutSeconds": 1,
    "periodSeconds": 10,
    "successThreshold": 1,
    "failureThreshold": 3,
    "scheme": "HTTP",
    "apiVersion": "v1",
}


def write_pod_sets(parts: Sequence[JobPart], *, is_new: bool = True) -> list[Json]:
    """Write the pod sets of a job.

    ``is_new``: whether the job is to get quota for them. A job that has it already may say what is refused today.

    Raises:
        BadInput: a template says of a topology what cannot be, or pod sets are grouped that cannot be.
    """
    made = [write_pod_set(one) for one in parts]
    if not is_new:
        return made
    for one in parts:
        # Pods that say what cannot be are refused, so quota for them would be in vain.
        texts = read_object(one.template, "metadata", "annotations")
        kueue.read_constraint(reading.Notes(texts, f"pod set {one.name}: metadata"))
    _check_groups(made)
    return made


def write_pod_set(part: JobPart) -> Json:
    """Write the pod set of a part of a job.

    Raises:
        BadInput: the template says of a topology what cannot be.
    """
    made: Json = {
        "name": part.name,
        "count": part.n_pods,
        "template": _clean_template(part.template),
    }
    if part.least is not None:
        made["minCount"] = part.least
    if (request := _write_topology_request(part)) is not None:
        made["topologyRequest"] = request
    return made


def _clean_template(template: Json) -> Json:
    """Drop the variables of containers that are given again: the last one counts."""
    spec = dict(read_object(template, "spec"))
    for key in _CONTAINERS:
        if key in spec:
            spec[key] = [_clean_container(one) for one in read_list(spec, key)]
    return template | {"spec": spec}


def _clean_container(container: Json) -> Json:
    variables = {str(one.get("name", "")): one for one in read_list(container, "env")}
    return container | {"env": list(variables.values())} if "env" in container else container


def _write_topology_request(part: JobPart) -> Json | None:
    texts = read_object(part.template, "metadata", "annotations")
    request: Json = {}
    where = f"pod set {part.name}: metadata.annotations"
    if names.KUEUE_REQUIRED in texts:
        request["required"] = texts[names.KUEUE_REQUIRED]
    elif names.KUEUE_PREFERRED in texts:
        request["preferred"] = texts[names.KUEUE_PREFERRED]
    elif (text := texts.get(names.KUEUE_UNCONSTRAINED)) is not None:
        field = f"{where}[{names.KUEUE_UNCONSTRAINED}]"
        request["unconstrained"] = reading.parse_truth(text, field)
    has_place = bool(request)
    if names.KUEUE_SLICES in texts:
        field = f"{where}[{names.KUEUE_SLICES}]"
        request["podsetSliceRequiredTopologyConstraints"] = _read_layers(texts, field)
    elif names.KUEUE_SLICE_LEVEL in texts and names.KUEUE_SLICE_SIZE in texts:
        field = f"{where}[{names.KUEUE_SLICE_SIZE}]"
        request["podSetSliceRequiredTopology"] = texts[names.KUEUE_SLICE_LEVEL]
        request["podSetSliceSize"] = reading.parse_count(texts[names.KUEUE_SLICE_SIZE], field)
    if part.index_label:
        request["podIndexLabel"] = part.index_label
    if part.inner is not None:
        request["subGroupIndexLabel"], request["subGroupCount"] = part.inner
    if has_place and names.KUEUE_TOGETHER in texts and "unconstrained" not in request:
        request["podSetGroupName"] = texts[names.KUEUE_TOGETHER]
    return request or None


def _check_groups(made: Sequence[Json]) -> None:
    """Check that each group of pod sets is a leader and its workers, which say the same of their topology.

    The only pod set of a job may name a group, as Kueue allows it to a batch Job: nothing follows from it.

    Source: Kueue (2026-08), ``ValidatePodSetGroupingTopology`` in ``pkg/controller/jobframework/tas_validation.go``.
    """
    groups: dict[str, list[Json]] = {}
    for one in made if len(made) > 1 else ():
        if name := read_object(one, "topologyRequest").get("podSetGroupName"):
            groups.setdefault(str(name), []).append(one)
    for name, members in groups.items():
        field = f"pod set {members[0]['name']}: metadata.annotations[{names.KUEUE_TOGETHER}]"
        said = f"{values.quote(name)} is the group of"
        if len(members) != _GROUP_SIZE:
            raise BadInput(
                field,
                f"{said} {len(members)} pod set(s); a group has {_GROUP_SIZE}, each with a topology that it requires or prefers",
            )
        if all(one["count"] != 1 for one in members):
            counts = " and ".join(str(one["count"]) for one in members)
            raise BadInput(field, f"{said} {counts} pods; one of its pod sets has 1 pod")
        asked = [
            (one["topologyRequest"].get("required"), one["topologyRequest"].get("preferred"))
            for one in members
        ]
        if asked[0] != asked[1]:
            raise BadInput(
                field,
                f"{said} pod sets with different topologies; {names.KUEUE_REQUIRED} and"
                f" {names.KUEUE_PREFERRED} must be the same in both",
            )


def _read_layers(texts: Mapping[str, Any], field: str) -> list[Json]:
    try:
        return msgspec.json.decode(texts[names.KUEUE_SLICES], type=list[dict[str, Any]])
    except (msgspec.MsgspecError, TypeError) as error:
        raise BadInput(field, f"is not a list of objects: {error}") from error


def are_equal(
    ours: Sequence[Json], theirs: Sequence[Json], *, with_tolerations: bool = True
) -> bool:
    """Whether pod sets are as good as the same: by their counts and containers, and by their tolerations if these count."""
    return len(ours) == len(theirs) and all(
        _list_what_counts(one, with_tolerations) == _list_what_counts(other, with_tolerations)
        for one, other in zip(ours, theirs, strict=True)
    )


def _list_what_counts(pod_set: Json, with_tolerations: bool) -> list[Any]:
    spec = read_object(pod_set, "template", "spec")
    keys = (*_CONTAINERS, *(("tolerations",) if with_tolerations else ()))
    parts = [_make_plain(spec.get(key)) for key in keys]
    return [pod_set.get("count", 0), pod_set.get("minCount"), *parts]


def _make_plain(value: Any, key: str = "") -> Any:
    """Return a value in which what means the same is written the same: no empty fields, and amounts as numbers."""
    if isinstance(value, Mapping):
        if key in {"requests", "limits"}:
            return {name: _read_number(one) for name, one in value.items()}
        found = {name: _make_plain(one, name) for name, one in value.items()}
        if key == "ports" and "containerPort" in found:
            found = {"protocol": _DEFAULT_PROTOCOL} | found
        if found.get("imagePullPolicy") == _find_pull_policy(str(found.get("image", ""))):
            del found["imagePullPolicy"]
        return {
            name: one
            for name, one in found.items()
            if one not in (None, "", 0, {}, []) and _DEFAULTS.get(name) != one
        }
    if isinstance(value, list):
        return [_make_plain(one, key) for one in value]
    return value


def _find_pull_policy(image: str) -> str:
    """Find the policy that the API server writes for an image if its container has none."""
    _, at, _ = image.partition("@")
    _, colon, tag = image.rpartition("/")[2].partition(":")
    return "Always" if not at and (not colon or tag == "latest") else "IfNotPresent"


def _read_number(amount: Any) -> Any:
    try:
        return quantities.read_number(amount)
    except quantities.BadQuantity:
        return amount
