"""Defaults, status rules and validation for kinds other than pods, in one place per question.

``registry`` calls three functions for every object that is written: they fill in what is missing, keep or
drop the status, and say what is wrong with the object.
"""

import base64
from collections.abc import Callable
from typing import Any

from scheduler.embedded.api.admission import (
    amounts,
    crds,
    devices,
    pods,
    podupdates,
    schemas,
    workloads,
)
from scheduler.embedded.store import events
from scheduler.embedded.store.kinds import Kind
from scheduler.embedded.store.statuses import (
    Cause,
    bad_request,
    forbidden,
    invalid_value,
    required,
)
from scheduler.embedded.store.store import Store

Json = dict[str, Any]

_NOT_EVALUATED = "(x-kubernetes-validations) are not evaluated by this server: an object that breaks one is taken"
_IMMUTABLE = "field is immutable"


def fill_in(kind: Kind, body: Json) -> None:
    """Set defaults, on create and on update (which finds most of them set)."""
    if kind.schema is not None:
        schemas.fill_in(kind.schema, body)
    elif workloads.are_workloads(kind.resource):
        workloads.fill_in(kind.resource, body)
    elif devices.are_devices(kind.resource):
        devices.fill_in(kind.resource, body)
    elif kind.resource in _FILL_IN:
        _FILL_IN[kind.resource](body)
    for path, value in _DEFAULTS.get(kind.resource, {}).items():
        parent = body.setdefault("spec", {}) if path.startswith("spec.") else body
        parent.setdefault(path.removeprefix("spec."), value)


def admit(store: Store, kind: Kind, body: Json) -> None:
    """Run admission on a new object."""
    if kind.resource == "pods":
        pods.admit(store, body)
    elif kind.resource == "priorityclasses.scheduling.k8s.io" and body.get("globalDefault"):
        for other in store.list_bodies(kind.bucket):
            if other.get("globalDefault"):
                name = other["metadata"]["name"]
                raise forbidden(
                    kind.resource,
                    body["metadata"].get("name", ""),
                    f"PriorityClass {name} is already marked as default."
                    " Only one default can exist",
                )


def readmit(kind: Kind, body: Json) -> None:
    """Run the part of admission that runs on updates, too: tolerations that were removed come back."""
    if kind.resource == "pods":
        pods.add_tolerations(body["spec"])


def reset_status(kind: Kind, body: Json) -> None:
    """Reset the status of a new object: only nodes, volumes and CRDs' own rules differ."""
    if not kind.has_status:
        return
    match kind.resource:
        case "pods":
            body["status"] = pods.make_first_status(body["spec"])
        case "nodes":
            body.setdefault("status", {})
        case "namespaces":
            body["status"] = {"phase": "Active"}
        case "persistentvolumes" | "persistentvolumeclaims":
            body["status"] = {"phase": "Pending"}
        case "services":
            body["status"] = {"loadBalancer": {}}
        case _:
            body.pop("status", None)
            if not kind.custom:
                body["status"] = {}


def find_problems(kind: Kind, body: Json) -> list[Cause]:
    """Return what is wrong with an object, new or changed."""
    if kind.schema is not None:
        return schemas.find_problems(kind.schema, body)
    if kind.bucket == "events":
        return events.find_problems(body, new_api=kind.group != "")
    if workloads.are_workloads(kind.resource):
        return workloads.find_problems(kind.resource, body)
    if devices.are_devices(kind.resource):
        return devices.find_problems(kind.resource, body)
    check = _PROBLEMS.get(kind.resource)
    return check(body) if check is not None else []


def find_change_problems(kind: Kind, new: Json, old: Json, subresource: str = "") -> list[Cause]:
    """Return what is wrong with a change itself, apart from its result."""
    if subresource:
        is_status = subresource == "status"
        return devices.find_status_problems(kind.resource, new, old) if is_status else []
    if workloads.are_workloads(kind.resource):
        return workloads.find_change_problems(kind.resource, new, old)
    if devices.are_devices(kind.resource):
        return devices.find_change_problems(kind.resource, new, old)
    return _find_rest_of_change(kind, new, old)


def _find_rest_of_change(kind: Kind, new: Json, old: Json) -> list[Cause]:
    match kind.resource:
        case "pods":
            return podupdates.find_problems(new["spec"], old["spec"])
        case "priorityclasses.scheduling.k8s.io":
            if new.get("value") != old.get("value"):
                return [
                    Cause(
                        "FieldValueForbidden",
                        "value",
                        "Forbidden: may not be changed in an update.",
                    )
                ]
        case "persistentvolumeclaims" | "storageclasses.storage.k8s.io":
            field = "provisioner"
            if new.get(field) != old.get(field):
                return [invalid_value(field, new.get(field), _IMMUTABLE)]
    return []


def list_warnings(kind: Kind, body: Json) -> list[str]:
    """Return warnings for the client about an accepted object: rules that are not evaluated here."""
    if kind.has_rules:
        return [f"the rules in CEL of {kind.qualified} {_NOT_EVALUATED}"]
    if kind.resource == "customresourcedefinitions.apiextensions.k8s.io" and crds.has_rules(
        body["spec"].get("versions")
    ):
        names = body["spec"]["names"]
        return [f"the rules in CEL of {names['kind']}.{body['spec']['group']} {_NOT_EVALUATED}"]
    return []


def _fill_in_node(body: Json) -> None:
    body.setdefault("spec", {})
    status = body.get("status") or {}
    for field in ("capacity", "allocatable"):
        if status.get(field):
            try:
                status[field] = amounts.rewrite_amounts(status[field], field)
            except ValueError as error:
                text = 'Node in version "v1" cannot be handled as a Node: '
                raise bad_request(text + str(error)) from None
    if status.get("capacity") and "allocatable" not in status:
        status["allocatable"] = dict(status["capacity"])


def _fill_in_namespace(body: Json) -> None:
    body.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
    meta = body["metadata"]
    meta["labels"] = {
        **(meta.get("labels") or {}),
        "kubernetes.io/metadata.name": meta.get("name", ""),
    }


def _fill_in_secret(body: Json) -> None:
    written = body.pop("stringData", None)
    if written:
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in written.items()}
        body["data"] = {**(body.get("data") or {}), **encoded}
    body.setdefault("type", "Opaque")


def _fill_in_service(body: Json) -> None:
    spec = body.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))


def _find_node_problems(body: Json) -> list[Cause]:
    taints = (body.get("spec") or {}).get("taints") or []
    causes, seen = [], set()
    for index, taint in enumerate(taints):
        where = f"metadata.taints[{index}]"
        if not taint.get("key"):
            causes.append(required(f"{where}.key"))
        if taint.get("effect") not in {"NoSchedule", "PreferNoSchedule", "NoExecute"}:
            causes.append(
                Cause(
                    "FieldValueNotSupported",
                    f"{where}.effect",
                    f'Unsupported value: "{taint.get("effect", "")}": supported values:'
                    ' "NoExecute", "NoSchedule", "PreferNoSchedule"',
                )
            )
        pair = (taint.get("key"), taint.get("effect"))
        if pair in seen:
            causes.append(
                Cause(
                    "FieldValueDuplicate",
                    where,
                    f"Duplicate value: {taint}: taints must be unique by key and effect pair",
                )
            )
        seen.add(pair)
    return causes


def _find_class_problems(body: Json) -> list[Cause]:
    value, name = body.get("value", 0), body["metadata"].get("name", "")
    body.setdefault("value", 0)
    if name in pods.BUILT_IN_CLASSES:
        return []
    causes = []
    if name.startswith("system-"):
        why = "priority class names with 'system-' prefix are reserved for system use only"
        causes.append(Cause("FieldValueForbidden", "metadata.name", f"Forbidden: {why}"))
    if value > 1_000_000_000:
        why = "maximum allowed value of a user defined priority is 1000000000"
        causes.append(Cause("FieldValueForbidden", "value", f"Forbidden: {why}"))
    return causes


_FILL_IN: dict[str, Callable[[Json], None]] = {
    "pods": pods.fill_in,
    "nodes": _fill_in_node,
    "namespaces": _fill_in_namespace,
    "secrets": _fill_in_secret,
    "services": _fill_in_service,
    "events": events.fill_in,
    "events.events.k8s.io": events.fill_in,
    "customresourcedefinitions.apiextensions.k8s.io": crds.fill_in,
}
# Single values, by their place in the object.
_DEFAULTS: dict[str, Json] = {
    "priorityclasses.scheduling.k8s.io": {"preemptionPolicy": "PreemptLowerPriority"},
    "storageclasses.storage.k8s.io": {
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    },
    "persistentvolumeclaims": {"spec.volumeMode": "Filesystem"},
}
_PROBLEMS: dict[str, Callable[[Json], list[Cause]]] = {
    "pods": pods.find_problems,
    "nodes": _find_node_problems,
    "priorityclasses.scheduling.k8s.io": _find_class_problems,
    "customresourcedefinitions.apiextensions.k8s.io": crds.find_problems,
}
