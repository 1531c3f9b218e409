"""The status of an object of a group, in the words of the system whose object it is.

Sources: KAI's ``status_updater`` (condition ``UnschedulableOnNodePool``, taken away once the group is placed), Volcano's
gang plugin (conditions ``Unschedulable`` and ``Scheduled``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler.api.door.decisions import GroupResult
from scheduler.api.groups.readers import kai, volcano

Json = dict[str, Any]
# Makes what is to be merged into the status, from the result for a group that is placed (no message) or not, the message
# and the time as the API server writes it.
MakeStatus = Callable[[GroupResult, str, str], Json]
_POOL = "default"


def _make_kai_status(result: GroupResult, message: str, now: str) -> Json:
    del result
    if not message:
        return {"schedulingConditions": None}
    return write_kai_condition("Unschedulable", message, now)


def write_kai_condition(reason: str, message: str, now: str) -> Json:
    """Write why a group of KAI waits, to be merged into its status."""
    condition = {
        "transitionID": "1",
        "type": "UnschedulableOnNodePool",
        "nodePool": _POOL,
        "reason": reason,
        "message": message,
        "status": "True",
        "lastTransitionTime": now,
    }
    return {"schedulingConditions": [condition]}


def _make_volcano_status(result: GroupResult, message: str, now: str) -> Json:
    kind, reason = "Scheduled", "tasks in gang are ready to be scheduled"
    if message:
        kind, reason = "Unschedulable", "NotEnoughResources"
        n_short = max(1, result.least - result.n_placed)
        message = f"{n_short}/{len(result.waiting)} tasks in gang unschedulable: {message}"
    condition = {
        "type": kind,
        "status": "True",
        "transitionID": "1",
        "reason": reason,
        "message": message,
        "lastTransitionTime": now,
    }
    return {"conditions": [condition]}


# By the name of a kind in the table of kinds.
BY_KIND: dict[str, MakeStatus] = {
    kai.KIND: _make_kai_status,
    volcano.KIND: _make_volcano_status,
}
