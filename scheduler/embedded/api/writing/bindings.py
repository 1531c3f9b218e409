"""Bindings: node name, annotations, labels and condition of a pod in one write."""

from typing import Any

from scheduler.embedded.api.admission import pods
from scheduler.embedded.api.writing.registry import Options, Registry
from scheduler.embedded.store.statuses import (
    ApiError,
    Cause,
    bad_request,
    conflict,
    internal,
    not_found,
    required,
    unsupported_value,
)

Json = dict[str, Any]


def bind_pod(registry: Registry, key: tuple[str, str], binding: Json, options: Options) -> None:
    """Bind a pod to a node, or refuse as the real server does; the node need not exist."""
    name = key[1]
    _check_binding(name, binding)
    record = registry.store.get_bucket("pods").objects.get(key)
    if record is None:
        raise not_found("pods", name)
    body, meta = record.body, binding.get("metadata") or {}
    for field, label in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        given = meta.get(field)
        if given and given != body["metadata"][field]:
            raise _refuse_precondition(key, label, given, body["metadata"][field])
    refusal = _find_refusal(name, body)
    if refusal:
        raise conflict("pods/binding", name, refusal)
    if not options.dry_run:
        registry.store.put("pods", key, pods.bind_pod(registry.store, body, binding))


def _check_binding(name: str, binding: Json) -> None:
    meta, target = binding.get("metadata") or {}, binding.get("target") or {}
    if meta.get("name", name) != name:
        raise bad_request("name in URL does not match name in Binding object")
    causes: list[Cause] = []
    if target.get("kind", "") not in {"", "Node"}:
        causes.append(unsupported_value("target.kind", target["kind"], ["Node", "<empty>"]))
    if not target.get("name"):
        causes.append(required("target.name"))
    if causes:
        # The real server makes no Status of these, so they appear as an internal error.
        raise internal(causes[0].write_text())


def _find_refusal(name: str, body: Json) -> str:
    spec = body["spec"]
    if "deletionTimestamp" in body["metadata"]:
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def _refuse_precondition(key: tuple[str, str], label: str, given: str, found: str) -> ApiError:
    return conflict(
        "pods",
        key[1],
        f"StorageError: invalid object, Code: 4, Key: /registry/pods/{key[0]}/{key[1]},"
        " ResourceVersion: 0, AdditionalErrorMsg: Precondition failed:"
        f" {label} in precondition: {given}, {label} in object meta: {found}",
    )
