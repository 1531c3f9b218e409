"""Turns reasons into sentences: kube-scheduler's own text first, which autoscalers parse, then figures.

What is too long for where it is written loses whole reasons and whole figures, each at its end, and says how many.
Neither crowds out the other: both have half of the room, and what the other leaves of its half.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import NamedTuple

from scheduler.api.door.decisions import Attempt, Diagnosis, Hold
from scheduler.api.limits import shortened

# Bytes: the API's own bound on an event's note, and ours on a condition's message, which is part of the pod.
NOTE_MAX, MESSAGE_MAX = 1024, 8192
# Reasons of the condition. Autoscalers add nodes for pods with the first, so it stands only where a node could help.
UNSCHEDULABLE, ERROR = "Unschedulable", "SchedulerError"
NO_NODES = "no nodes available to schedule pods"
# Room for the words that say how many reasons, or figures, were left out.
_REST = 32
_MORE = " And more figures."
# When the pod itself is refused, kube-scheduler's plugin for resource claims has not seen it, which it tells in the
# place of what comes of preemption.
_AFTER_REFUSAL = " not found"


class Saying(NamedTuple):
    """What a pending pod is told.

    Attributes:
        message: for its condition.
        note: the same for an event.
        about: equal for sayings that differ in figures only.
        reason: for the condition.
    """

    message: str
    note: str
    about: Hashable
    reason: str = UNSCHEDULABLE


def say_why(hold: Hold) -> Saying:
    """Why a pod is pending. Made once for like pods."""
    if hold.problem:
        return say_plain(str(hold.problem), ERROR)
    if hold.diagnosis is None or hold.diagnosis.n_nodes == 0:
        return say_plain(NO_NODES, UNSCHEDULABLE)
    return _say_diagnosis(hold.diagnosis, hold.attempt)


def say_plain(text: str, reason: str) -> Saying:
    """A text without figures that come and go."""
    return Saying(shortened(text, MESSAGE_MAX), shortened(text, NOTE_MAX), text, reason)


def write_sentence(hold: Hold) -> str:
    """Why a pod is pending, in kube-scheduler's words alone."""
    if hold.problem:
        return str(hold.problem)
    if hold.diagnosis is None or hold.diagnosis.n_nodes == 0:
        return NO_NODES
    return write_fit_error(hold.diagnosis) + _after(hold.diagnosis, hold.attempt, MESSAGE_MAX)


def write_fit_error(diagnosis: Diagnosis, most: int = MESSAGE_MAX) -> str:
    """A FitError, such as ``0/5 nodes are available: 2 Insufficient cpu, 3 node(s) had untolerated taint(s)``.

    The parts are sorted as text, as kube-scheduler sorts them. Where all are more than so many bytes, those of
    the fewest nodes are left out.
    """
    head = f"0/{diagnosis.n_nodes} nodes are available: "
    if diagnosis.of_pod:
        return f"{head}{diagnosis.of_pod}."
    left = most - _size(head) - _REST
    kept: list[str] = []
    reasons = sorted(diagnosis.reasons, key=lambda reason: (-reason[1], reason[0]))
    for i, (text, n) in enumerate(reasons, 1):
        part = f"{n} {text}"
        left -= _size(part) + 2
        if left + (_REST if i == len(reasons) else 0) < 0:
            break
        kept.append(part)
    rest = len(diagnosis.reasons) - len(kept)
    more = f"and {rest} more reason" + ("s" if rest > 1 else "")
    parts = sorted(kept) + ([more] if rest else [])
    return f"{head}{', '.join(parts)}."


def _after(diagnosis: Diagnosis, attempt: Attempt | None, most: int) -> str:
    """What came of looking whose place the pod could take, behind why it fits nowhere."""
    if diagnosis.of_pod:
        return _AFTER_REFUSAL
    if attempt is None or attempt == Attempt():
        return ""
    if attempt.node:
        found = f"found a potential placement for pod on node {attempt.node}"
        return f" preemption: {found}, preempting {attempt.victims} victims"
    if attempt.diagnosis is None:
        return f" preemption: {attempt.why}"
    return f" preemption: {write_fit_error(attempt.diagnosis, most)}"


def _with_details(diagnosis: Diagnosis, attempt: Attempt | None, most: int) -> str:
    tried = _after(diagnosis, attempt, most // 4)
    details = [f" {detail.text}." for detail in diagnosis.details]
    room = max(most // 2, most - sum(map(_size, details))) - _size(tried)
    text = write_fit_error(diagnosis, room) + tried
    # That room was found ends without a full stop at kube-scheduler, where nothing follows.
    text += "." if details and not text.endswith(".") else ""
    for i, detail in enumerate(details):
        rest = len(details) - i
        if _size(text + detail) + (_REST if rest > 1 else 0) > most:
            return f"{text}{_MORE}"
        text += detail
    return text


@lru_cache(maxsize=512)
def _say_diagnosis(diagnosis: Diagnosis, attempt: Attempt | None) -> Saying:
    told = _after(diagnosis, attempt, MESSAGE_MAX) if attempt and not attempt.diagnosis else ""
    tried = attempt.diagnosis if attempt else None
    about = (
        diagnosis.n_nodes,
        told,
        frozenset(text for text, _ in tried.reasons) if tried else None,
        frozenset(text for text, _ in diagnosis.reasons),
        frozenset(detail.about for detail in diagnosis.details),
    )
    message = _with_details(diagnosis, attempt, MESSAGE_MAX)
    note = _with_details(diagnosis, attempt, NOTE_MAX)
    return Saying(message, note, about, ERROR if diagnosis.of_pod else UNSCHEDULABLE)


def _size(text: str) -> int:
    return len(text.encode(errors="replace"))
