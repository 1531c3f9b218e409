"""The texts on a pod that the scheduler evicts, and in the event about the eviction."""

from __future__ import annotations

from typing import NamedTuple

from scheduler.api import names
from scheduler.api.door.decisions import Evict, Why


class Departure(NamedTuple):
    """The texts about pods that are evicted together.

    Attributes:
        why: the cause in one word.
        reason: the reason of the condition ``DisruptionTarget``.
        message: the message of the same condition.
        event: the reason of the event.
        action: the action of the event.
        note: the note of the event.
        is_asked: the API server is asked to evict the pods; else they are deleted.
    """

    why: str
    reason: str
    message: str
    event: str
    action: str
    note: str
    is_asked: bool = False


def describe_departure(evict: Evict, scheduler: str) -> Departure:
    """Describe an eviction by the scheduler of this name. The texts of a preemption are kube-scheduler's."""
    match evict.why:
        case Why.PREEMPTED:
            kind, uid, node = "pod", evict.makes_room_for, evict.node
            if evict.group:
                # kube-scheduler names no node for a group.
                kind, uid, node = "podgroup", evict.group, "cluster"
            return Departure(
                evict.why,
                names.PREEMPTED_BY_SCHEDULER,
                f"{scheduler}: preempting to accommodate a higher priority {kind}",
                "Preempted",
                "Preempting",
                f"Preempted by {kind} {uid} on node {node}",
                evict.is_asked,
            )
        case Why.BELOW_MINIMUM:
            note = f"{evict.group} until it has its minimum: all its pods go, so that it can start anew"
            return Departure(
                evict.why,
                names.BELOW_MINIMUM,
                f"{scheduler}: {note}",
                "GroupBelowMinimum",
                "Evicting",
                note,
                evict.is_asked,
            )
