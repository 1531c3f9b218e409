"""The plan of a controller as data, and what all controllers read of pods."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Json = dict[str, Any]

# The most pods of one workload: a cluster in one process cannot hold a million pods.
MOST_PODS = 500

_ENDED = frozenset({"Succeeded", "Failed"})


class Note(NamedTuple):
    """An event about the workload."""

    reason: str
    message: str
    type: str = "Normal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be done for one workload, in this order.

    Attributes:
        create: manifests of pods or ReplicaSets.
        delete: objects as they were last seen.
        merge: owned objects, each with a merge patch.
        own: a merge patch for the workload itself, None for none.
        status: the workload's whole status.
        notes: events; an event that repeats the last one is not written again.
    """

    status: Json
    create: Sequence[Json] = ()
    delete: Sequence[Json] = ()
    merge: Sequence[tuple[Json, Json]] = ()
    own: Json | None = None
    notes: Sequence[Note] = field(default_factory=tuple)


def read_number(value: Any, default: int) -> int:
    """Return a count from a spec, or its default if it is absent."""
    return default if value is None else int(value)


def cap_pods(kind: str, asked: int) -> tuple[int, list[Note]]:
    """Return how many of the wanted pods are made, with an event if they are fewer."""
    if asked <= MOST_PODS:
        return asked, []
    text = f"{kind} requests {asked} pods; this cluster makes at most {MOST_PODS} for one workload"
    return MOST_PODS, [Note("FailedCreate", text, "Warning")]


def is_going(item: Json) -> bool:
    """Tell whether an object is being deleted."""
    return "deletionTimestamp" in item["metadata"]


def read_phase(pod: Json) -> str:
    """Return a pod's phase."""
    return str((pod.get("status") or {}).get("phase", ""))


def has_ended(pod: Json) -> bool:
    """Tell whether a pod has run to its end."""
    return read_phase(pod) in _ENDED


def is_ready(pod: Json) -> bool:
    """Tell whether a pod is ready."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return not is_going(pod) and any(
        one["type"] == "Ready" and one["status"] == "True" for one in conditions
    )


def sort_by_deletion(pods: Iterable[Json]) -> list[Json]:
    """Return pods in the order in which they are deleted: those without a node, not ready, or young go first."""
    newest = sorted(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]), reverse=True)
    return sorted(
        newest,
        key=lambda pod: (
            bool(pod["spec"].get("nodeName")),
            read_phase(pod) == "Running",
            is_ready(pod),
        ),
    )


class Said(NamedTuple):
    """The wanted state of a condition."""

    type: str
    status: bool
    reason: str
    message: str


def make_conditions(old: Json, said: Sequence[Said], now: str) -> list[Json]:
    """Return the conditions of a status; each keeps the time at which it last changed."""
    before = {one["type"]: one for one in old.get("conditions") or ()}
    written = []
    for one in said:
        status = "True" if one.status else "False"
        entry: Json = {
            "type": one.type,
            "status": status,
            "reason": one.reason,
            "message": one.message,
            "lastTransitionTime": now,
        }
        previous = before.get(one.type)
        if previous is not None and previous["status"] == status:
            entry["lastTransitionTime"] = previous["lastTransitionTime"]
        written.append(entry)
    return written


def make_failure(notes: Sequence[Note]) -> list[Said]:
    """Return the condition that says why there are fewer pods than wanted; none if nothing is wrong."""
    return [
        Said("ReplicaFailure", status=True, reason=note.reason, message=note.message)
        for note in notes[:1]
    ]
