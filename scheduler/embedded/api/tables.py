"""Makes the rows of cells that ``kubectl get`` prints."""

import time
from calendar import timegm
from collections.abc import Callable
from typing import Any, NamedTuple

from scheduler.embedded.store.kinds import Kind
from scheduler.embedded.store.store import Record

Json = dict[str, Any]


class Column(NamedTuple):
    """One printed column; those of priority 1 appear only with ``-o wide``."""

    name: str
    cell: Callable[[Json], Any]
    kind: str = "string"
    priority: int = 0


def make_table(kind: Kind, records: list[Record], include: str) -> Json:
    """Return a Table of objects, without its list metadata."""
    columns = find_columns(kind)
    rows = []
    for record in records:
        row: Json = {"cells": [column.cell(record.body) for column in columns]}
        if include == "Object":
            row["object"] = {
                "kind": kind.kind,
                "apiVersion": kind.api_version,
                **(kind.from_store(record.body) if kind.from_store else record.body),
            }
        elif include != "None":
            row["object"] = make_partial(record)
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "columnDefinitions": [
            {
                "name": column.name,
                "type": column.kind,
                "format": "name" if column.name == "Name" else "",
                "description": column.name,
                "priority": column.priority,
            }
            for column in columns
        ],
        "rows": rows,
    }


def make_partial(record: Record) -> Json:
    """Return only the metadata of an object."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": record.body["metadata"],
    }


def find_columns(kind: Kind) -> tuple[Column, ...]:
    """Return the columns of a kind: its own, its CRD's, or name and age."""
    if kind.bucket in _COLUMNS:
        return _COLUMNS[kind.bucket]
    if kind.columns:
        return (_NAME, *(_make_printer_column(column) for column in kind.columns))
    return (_NAME, _AGE)


# Ages below each limit are written in a unit, and short ones with a smaller unit behind it.
_AGES = (
    (120, 1, "s", 0, ""),
    (600, 60, "m", 1, "s"),
    (180 * 60, 60, "m", 0, ""),
    (8 * 3_600, 3_600, "h", 60, "m"),
    (48 * 3_600, 3_600, "h", 0, ""),
    (8 * 86_400, 86_400, "d", 3_600, "h"),
    (730 * 86_400, 86_400, "d", 0, ""),
)


def format_age(text: str | None) -> str:
    """Write the time since a timestamp the way kubectl does."""
    if not text:
        return "<unknown>"
    return _format_span(int(time.time() - read_seconds(text)))


def _format_span(seconds: int) -> str:
    seconds = max(0, seconds)
    for below, unit, letter, smaller, small_letter in _AGES:
        if seconds < below:
            rest = seconds % unit // smaller if smaller else 0
            return f"{seconds // unit}{letter}" + (f"{rest}{small_letter}" if rest else "")
    return f"{seconds // (365 * 86_400)}y"


def read_seconds(text: str) -> float:
    """Read a timestamp, with or without fractions of a second."""
    return float(timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")))


def _read_created(body: Json) -> str:
    return format_age(body["metadata"].get("creationTimestamp"))


def _make_reader(path: str, absent: str = "<none>") -> Callable[[Json], Any]:
    keys = path.split(".")

    def cell(body: Json) -> Any:
        value: Any = body
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return absent if value in {None, ""} else value

    return cell


_NAME = Column("Name", lambda body: body["metadata"]["name"])
_AGE = Column("Age", _read_created)


def _make_printer_column(column: Json) -> Column:
    keys = _split_json_path(column["jsonPath"])
    kind = column["type"]

    def cell(body: Json) -> Any:
        values: list[Any] = [body]
        for key in keys:
            values = [found for value in values for found in _take_step(value, key)]
        if not values:
            return None
        if kind == "date":
            return format_age(values[0])
        return values[0] if len(values) == 1 else ",".join(str(value) for value in values)

    return Column(column["name"], cell, kind, column.get("priority", 0))


def _split_json_path(path: str) -> list[str]:
    """Split the part of JSONPath that printer columns use: fields, indices, filters by ``==``."""
    steps, current, depth = [], "", 0
    for letter in path.lstrip("."):
        if letter == "." and depth == 0:
            steps.append(current)
            current = ""
            continue
        if letter == "[":
            if depth == 0:
                steps.append(current)
                current = ""
            depth += 1
        current += letter
        if letter == "]":
            depth -= 1
    return [step for step in [*steps, current] if step]


def _take_step(value: Any, key: str) -> list[Any]:
    if not key.startswith("["):
        found = value.get(key) if isinstance(value, dict) else None
        return [] if found is None else [found]
    inner = key[1:-1].strip()
    if isinstance(value, dict):
        return _take_step(value, inner.strip("'\""))
    if not isinstance(value, list):
        return []
    if inner == "*":
        return value
    if inner.startswith("?("):
        field, _, wanted = inner[2:-1].partition("==")
        name = field.strip().removeprefix("@.")
        return [item for item in value if str(item.get(name)) == wanted.strip().strip("'\"")]
    return value[int(inner) : int(inner) + 1]


def _count_ready(body: Json) -> str:
    statuses = body["status"].get("containerStatuses") or ()
    ready = sum(bool(status.get("ready")) for status in statuses)
    return f"{ready}/{len(body['spec'].get('containers') or ())}"


def _read_pod_status(body: Json) -> str:
    status = body["status"]
    reason = status.get("reason") or status.get("phase") or "Unknown"
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    for container in status.get("containerStatuses") or ():
        state = container.get("state") or {}
        for name in ("waiting", "terminated"):
            if (state.get(name) or {}).get("reason"):
                reason = state[name]["reason"]
    if "deletionTimestamp" in body["metadata"]:
        return "Terminating"
    return str(reason)


def _count_restarts(body: Json) -> str:
    statuses = body["status"].get("containerStatuses") or ()
    return str(sum(status.get("restartCount", 0) for status in statuses))


def _read_node_status(body: Json) -> str:
    words = [
        "Ready" if condition["status"] == "True" else "NotReady"
        for condition in (body.get("status") or {}).get("conditions") or ()
        if condition["type"] == "Ready"
    ] or ["Unknown"]
    if (body.get("spec") or {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _list_roles(body: Json) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = body["metadata"].get("labels") or {}
    roles = sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix))
    return ",".join(roles) or "<none>"


def _make_address_reader(kind: str) -> Callable[[Json], str]:
    def cell(body: Json) -> str:
        for address in (body.get("status") or {}).get("addresses") or ():
            if address["type"] == kind:
                return str(address["address"])
        return "<none>"

    return cell


def _count_gates(body: Json) -> str:
    gates = body["spec"].get("readinessGates") or ()
    if not gates:
        return "<none>"
    true = {
        condition["type"]
        for condition in body["status"].get("conditions") or ()
        if condition["status"] == "True"
    }
    ready = sum(gate["conditionType"] in true for gate in gates)
    return f"{ready}/{len(gates)}"


def _read_last_seen(body: Json) -> str:
    series = body.get("series") or {}
    seen = series.get("lastObservedTime") or body.get("lastTimestamp") or body.get("eventTime")
    return format_age(seen or body["metadata"].get("creationTimestamp"))


def _name_object(body: Json) -> str:
    about = body.get("involvedObject") or {}
    return f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}"


def _make_counter(field: str) -> Callable[[Json], int]:
    return lambda body: int((body.get("status") or {}).get(field, 0))


def _make_share_reader(field: str) -> Callable[[Json], str]:
    return lambda body: f"{_make_counter(field)(body)}/{body['spec'].get('replicas', 0)}"


def _read_job_status(body: Json) -> str:
    true = [one["type"] for one in (body.get("status") or {}).get("conditions") or ()]
    return next((kind for kind in ("Complete", "Failed", "Suspended") if kind in true), "Running")


def _read_completions(body: Json) -> str:
    spec, done = body["spec"], _make_counter("succeeded")(body)
    if spec.get("completions") is not None:
        return f"{done}/{spec['completions']}"
    return f"{done}/1 of {spec.get('parallelism', 1)}"


def _read_duration(body: Json) -> str:
    status = body.get("status") or {}
    if "startTime" not in status:
        return ""
    end = status.get("completionTime")
    seconds = (read_seconds(end) if end else time.time()) - read_seconds(status["startTime"])
    return _format_span(int(seconds))


_COLUMNS: dict[str, tuple[Column, ...]] = {
    "pods": (
        _NAME,
        Column("Ready", _count_ready),
        Column("Status", _read_pod_status),
        Column("Restarts", _count_restarts),
        _AGE,
        Column("IP", _make_reader("status.podIP"), priority=1),
        Column("Node", _make_reader("spec.nodeName"), priority=1),
        Column("Nominated Node", _make_reader("status.nominatedNodeName"), priority=1),
        Column("Readiness Gates", _count_gates, priority=1),
    ),
    "nodes": (
        _NAME,
        Column("Status", _read_node_status),
        Column("Roles", _list_roles),
        _AGE,
        Column("Version", _make_reader("status.nodeInfo.kubeletVersion", "")),
        Column("Internal-IP", _make_address_reader("InternalIP"), priority=1),
        Column("External-IP", _make_address_reader("ExternalIP"), priority=1),
        Column("OS-Image", _make_reader("status.nodeInfo.osImage", "<unknown>"), priority=1),
        Column(
            "Kernel-Version", _make_reader("status.nodeInfo.kernelVersion", "<unknown>"), priority=1
        ),
        Column(
            "Container-Runtime",
            _make_reader("status.nodeInfo.containerRuntimeVersion", "<unknown>"),
            priority=1,
        ),
    ),
    "events": (
        Column("Last Seen", _read_last_seen),
        Column("Type", _make_reader("type")),
        Column("Reason", _make_reader("reason")),
        Column("Object", _name_object),
        Column("Message", lambda body: str(body.get("message", "")).strip()),
        Column("Name", lambda body: body["metadata"]["name"], priority=1),
    ),
    "deployments.apps": (
        _NAME,
        Column("Ready", _make_share_reader("readyReplicas")),
        Column("Up-to-date", _make_counter("updatedReplicas"), "integer"),
        Column("Available", _make_counter("availableReplicas"), "integer"),
        _AGE,
    ),
    "replicasets.apps": (
        _NAME,
        Column("Desired", lambda body: body["spec"].get("replicas", 0), "integer"),
        Column("Current", _make_counter("replicas"), "integer"),
        Column("Ready", _make_counter("readyReplicas"), "integer"),
        _AGE,
    ),
    "statefulsets.apps": (_NAME, Column("Ready", _make_share_reader("readyReplicas")), _AGE),
    "jobs.batch": (
        _NAME,
        Column("Status", _read_job_status),
        Column("Completions", _read_completions),
        Column("Duration", _read_duration),
        _AGE,
    ),
    "namespaces": (_NAME, Column("Status", _make_reader("status.phase")), _AGE),
    "leases.coordination.k8s.io": (
        _NAME,
        Column("Holder", _make_reader("spec.holderIdentity")),
        _AGE,
    ),
    "configmaps": (
        _NAME,
        Column(
            "Data", lambda body: len(body.get("data") or {}) + len(body.get("binaryData") or {})
        ),
        _AGE,
    ),
    "priorityclasses.scheduling.k8s.io": (
        _NAME,
        Column("Value", lambda body: body.get("value", 0), "integer"),
        Column("Global-Default", lambda body: bool(body.get("globalDefault")), "boolean"),
        _AGE,
        Column("PreemptionPolicy", _make_reader("preemptionPolicy")),
    ),
    "customresourcedefinitions.apiextensions.k8s.io": (
        _NAME,
        Column("Created At", lambda body: body["metadata"]["creationTimestamp"], "date"),
    ),
}
