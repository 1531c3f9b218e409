"""What is written on a pod that is sent away, and told of it; by why it is."""

from __future__ import annotations

from typing import NamedTuple

from scheduler.api import names
from scheduler.api.door.decisions import Evict, Why


class Departure(NamedTuple):
    """Words about pods that are sent away together.

    Attributes:
        why: in one word.
        reason: of the condition ``DisruptionTarget``.
        message: of the same condition.
        event: the reason of the event.
        action: of the event.
        note: of the event.
    """

    why: str
    reason: str
    message: str
    event: str
    action: str
    note: str


def describe_departure(evict: Evict, scheduler: str) -> Departure:
    """Put an eviction by the scheduler of this name into words. Those of a preemption are kube-scheduler's."""
    match evict.why:
        case Why.PREEMPTED:
            return Departure(
                evict.why,
                names.PREEMPTED_BY_SCHEDULER,
                f"{scheduler}: preempting to accommodate a higher priority pod",
                "Preempted",
                "Preempting",
                f"Preempted by pod {evict.makes_room_for} on node {evict.node}",
            )
