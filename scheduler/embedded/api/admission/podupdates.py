"""Checks what may change on a pod after it was created: the same short list as in Kubernetes."""

from typing import Any

from scheduler.embedded.store.statuses import Cause, forbidden_field, invalid_value

Json = dict[str, Any]

_MAY_CHANGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only"
    " additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set"
    " to 1 if it was previously negative)"
)
# These are compared one by one below, and left out of the comparison of everything else.
_APART = frozenset(
    {"containers", "initContainers", "activeDeadlineSeconds", "tolerations", "schedulingGates"}
)


def find_problems(new: Json, old: Json) -> list[Cause]:
    """Return why a pod's spec may not be changed this way."""
    if new == old:
        return []
    causes: list[Cause] = []
    for field in ("containers", "initContainers"):
        if len(new.get(field) or ()) != len(old.get(field) or ()):
            why = "pod updates may not add or remove containers"
            return [forbidden_field(f"spec.{field}", why)]
    causes += _find_toleration_problems(new.get("tolerations") or [], old.get("tolerations") or [])
    causes += _find_gate_problems(
        new.get("schedulingGates") or [], old.get("schedulingGates") or []
    )
    causes += _find_deadline_problems(new, old)
    gated = bool(old.get("schedulingGates"))
    if gated:
        causes += _find_selector_problems(
            new.get("nodeSelector") or {}, old.get("nodeSelector") or {}
        )
    if _list_rest(new, gated=gated) != _list_rest(old, gated=gated):
        causes.append(forbidden_field("spec", _describe_difference(new, old)))
    return causes


def _list_rest(spec: Json, *, gated: bool) -> Json:
    rest = {key: value for key, value in spec.items() if key not in _APART and value is not None}
    for field in ("containers", "initContainers"):
        rest[field] = [
            {key: value for key, value in container.items() if key != "image"}
            for container in spec.get(field) or ()
        ]
    if gated:
        rest.pop("nodeSelector", None)
        affinity = dict(rest.pop("affinity", None) or {})
        affinity.pop("nodeAffinity", None)
        if affinity:
            rest["affinity"] = affinity
    return rest


def _describe_difference(new: Json, old: Json) -> str:
    """Word the refusal; the real server adds a diff, this one the names of the fields."""
    before, after = _list_rest(old, gated=False), _list_rest(new, gated=False)
    changed = sorted(
        key for key in before.keys() | after.keys() if before.get(key) != after.get(key)
    )
    return f"{_MAY_CHANGE}\n  changed: {', '.join(changed)}"


def _find_toleration_problems(new: list[Json], old: list[Json]) -> list[Cause]:
    for toleration in old:
        before = {key: value for key, value in toleration.items() if key != "tolerationSeconds"}
        if not any(
            {key: value for key, value in one.items() if key != "tolerationSeconds"} == before
            for one in new
        ):
            why = "existing toleration can not be modified except its tolerationSeconds"
            return [forbidden_field("spec.tolerations", why)]
    return []


def _find_gate_problems(new: list[Json], old: list[Json]) -> list[Cause]:
    known = {gate["name"] for gate in old}
    return [
        forbidden_field(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate['name']}'",
        )
        for index, gate in enumerate(new)
        if gate["name"] not in known
    ]


def _find_deadline_problems(new: Json, old: Json) -> list[Cause]:
    before, after = old.get("activeDeadlineSeconds"), new.get("activeDeadlineSeconds")
    field = "spec.activeDeadlineSeconds"
    if after is None:
        if before is None:
            return []
        return [invalid_value(field, None, "must not update from a positive integer to nil value")]
    if before is not None and before < after:
        return [invalid_value(field, after, "must be less than or equal to previous value")]
    return []


def _find_selector_problems(new: Json, old: Json) -> list[Cause]:
    if any(new.get(key) != value for key, value in old.items()):
        why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        return [invalid_value("spec.nodeSelector", new, why)]
    return []
