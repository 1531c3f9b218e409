"""Deleting: preconditions, grace periods, and the deletion mark of an object."""

import time
from typing import Any

from scheduler.embedded.store import metadata
from scheduler.embedded.store.kinds import Kind
from scheduler.embedded.store.statuses import ApiError, conflict

Json = dict[str, Any]


def check_preconditions(kind: Kind, name: str, meta: Json, wanted: Json) -> None:
    """Refuse to delete an object, or a version of it, that the client did not mean."""
    for field, label, hint in (
        ("uid", "UID", "The object might have been deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "The object might have been modified"),
    ):
        if wanted.get(field) and wanted[field] != meta[field]:
            raise conflict(
                kind.qualified,
                name,
                f"the {label} in the precondition ({wanted[field]}) does not match the {label}"
                f" in record ({meta[field]}). {hint}",
            )


def may_leave_orphans(kind: Kind, name: str, sent: Json) -> bool:
    """Tell whether the objects that an object owns stay; refuse policies that are not implemented here."""
    policy = sent.get("propagationPolicy") or ("Orphan" if sent.get("orphanDependents") else "")
    if not kind.owns or policy in {"", "Background"}:
        return False
    if policy != "Orphan":
        raise ApiError(
            422,
            "Invalid",
            f'{kind.qualified} "{name}" cannot be deleted with propagationPolicy {policy} on this'
            " server: Background and Orphan are done",
        )
    return True


def find_grace_seconds(kind: Kind, body: Json, sent: Json) -> int | None:
    """Return the seconds that a delete leaves to the object; None: a delete is pending, and nothing changes."""
    if not kind.graceful:
        return 0
    meta, spec = body["metadata"], body["spec"]
    asked = sent.get("gracePeriodSeconds")
    if asked is not None and asked < 0:
        asked = 1
    if "deletionTimestamp" in meta:
        left = meta.get("deletionGracePeriodSeconds") or 0
        if left == 0:
            return 0
        return asked if asked is not None and asked < left else None
    if not spec.get("nodeName") or body["status"].get("phase") in {"Failed", "Succeeded"}:
        return 0
    return int(spec.get("terminationGracePeriodSeconds", 30) if asked is None else asked)


def mark_deleted(kind: Kind, body: Json, grace: int) -> Json | None:
    """Return the body with its deletion timestamp; None if it has an earlier or equal one.

    A shorter grace period than before makes the timestamp earlier.
    """
    meta = dict(body["metadata"])
    going = "deletionTimestamp" in meta
    if going and meta.get("deletionGracePeriodSeconds", 0) <= grace:
        return None
    if "generation" in meta and not going:
        meta["generation"] += 1
    meta["deletionTimestamp"] = metadata.write_timestamp(time.time() + grace)
    new = {**body, "metadata": meta}
    if kind.resource == "namespaces":
        new["status"] = {**body["status"], "phase": "Terminating"}
    else:
        meta["deletionGracePeriodSeconds"] = grace
    return new
