"""The two Event APIs over one storage: events are kept in the core form, and converted when read and written.

The pairs of fields are those of Kubernetes' own conversion; ``series``, ``eventTime``, ``action``,
``related``, ``reason`` and ``type`` have the same names in both.
"""

from typing import Any

from scheduler.embedded.store.statuses import Cause, invalid_value, required

Json = dict[str, Any]

# (core field, events.k8s.io field)
PAIRS = (
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
)
_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
CORE_FIELDS = (
    *(f"involvedObject.{part}" for part in _REFERENCE),
    "reason",
    "reportingComponent",
    "source",
    "type",
)
NEW_FIELDS = (
    *(f"regarding.{part}" for part in _REFERENCE),
    "reason",
    "reportingController",
    "type",
)
_TO_NEW = dict(PAIRS)
_TO_CORE = {new: core for core, new in PAIRS}


def convert_to_new(body: Json) -> Json:
    """Convert a stored event to its events.k8s.io form."""
    return {_TO_NEW.get(key, key): value for key, value in body.items()}


def convert_to_core(body: Json) -> Json:
    """Convert an event as written through events.k8s.io to the stored form."""
    return {_TO_CORE.get(key, key): value for key, value in body.items()}


def translate_field(path: str) -> str:
    """Translate a selectable field of events.k8s.io to the field of the stored form."""
    head, dot, rest = path.partition(".")
    return f"{_TO_CORE.get(head, head)}{dot}{rest}"


def find_source(body: Json) -> str:
    """Return the value of the selectable field ``source``: the component, of the old or the new style."""
    component = (body.get("source") or {}).get("component")
    return str(component or body.get("reportingComponent") or "")


def fill_in(body: Json) -> None:
    """Fill in keys that core events always have."""
    body.setdefault("source", {})
    body.setdefault("firstTimestamp", None)
    body.setdefault("lastTimestamp", None)
    body.setdefault("eventTime", None)
    body.setdefault("reportingComponent", "")
    body.setdefault("reportingInstance", "")


def find_problems(body: Json, *, new_api: bool) -> list[Cause]:
    """Return why an event may not be created; the newer API is the stricter one."""
    causes = []
    namespace = body["metadata"].get("namespace", "")
    about = (body.get("involvedObject") or {}).get("namespace", "")
    if about != namespace and not (about == "" and namespace in {"", "default"}):
        causes.append(
            invalid_value("involvedObject.namespace", about, "does not match event.namespace")
        )
    if not new_api:
        return causes
    for field, name in (
        ("reportingComponent", "reportingController"),
        ("reportingInstance", "reportingInstance"),
        ("action", "action"),
        ("reason", "reason"),
        ("eventTime", "eventTime"),
    ):
        if not body.get(field):
            causes.append(required(name))
    if body.get("type") not in {"Normal", "Warning"}:
        causes.append(invalid_value("type", "", f"has invalid value: {body.get('type', '')}"))
    causes += [
        invalid_value(field, "", "needs to be unset")
        for field in ("firstTimestamp", "lastTimestamp", "count", "source")
        if body.get(field)
    ]
    return causes
