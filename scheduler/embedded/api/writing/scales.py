"""The scale subresource: reads and writes only the number of a workload's pods."""

from collections.abc import Callable
from typing import Any

from scheduler.embedded.api.writing.registry import Options, Registry
from scheduler.embedded.store.kinds import Kind
from scheduler.embedded.store.statuses import bad_request
from scheduler.embedded.store.store import Key, Record

Json = dict[str, Any]

_OWN_FIELDS = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def make_scale(body: Json) -> Json:
    """Return the Scale of a workload."""
    meta, spec, status = body["metadata"], body["spec"], body.get("status") or {}
    labels = (spec.get("selector") or {}).get("matchLabels") or {}
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {field: meta[field] for field in _OWN_FIELDS if field in meta},
        "spec": {"replicas": spec.get("replicas", 0)},
        "status": {
            "replicas": status.get("replicas", 0),
            "selector": ",".join(f"{key}={value}" for key, value in sorted(labels.items())),
        },
    }


def update_scale(
    registry: Registry, kind: Kind, key: Key, change: Callable[[Json], Json], options: Options
) -> Record:
    """Change a workload's Scale; return the workload."""

    def scaled(old: Json | None) -> Json:
        old = old or {}
        new = change(make_scale(old))
        spec = new.get("spec") or {}
        if new.get("kind", "Scale") != "Scale" or not isinstance(spec, dict):
            raise bad_request("the object at this path is a Scale of autoscaling/v1")
        meta = dict(old["metadata"])
        # A write with a version is refused if the workload has changed since.
        if version := (new.get("metadata") or {}).get("resourceVersion"):
            meta["resourceVersion"] = version
        return {
            **old,
            "metadata": meta,
            "spec": {**old["spec"], "replicas": spec.get("replicas", 0)},
        }

    registry.get(kind, *key)
    return registry.update(kind, key, scaled, "", options)[0]
