"""Turns reasons into sentences: kube-scheduler's own text first, which autoscalers parse, then figures.

A text that is too long loses whole reasons and whole figures at the end, and says how many. Reasons and figures have half
of the room each, and each may use what the other leaves of its half.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import NamedTuple

from scheduler.api.door.decisions import Attempt, Diagnosis, Hold
from scheduler.api.limits import shorten

# The API's limit on an event's note, and Evenkeel's limit on a condition's message, which is part of the pod; in bytes.
NOTE_MAX, MESSAGE_MAX = 1024, 8192
# Reasons of the condition. Autoscalers add nodes for pods with the first reason, so only such pods have it.
UNSCHEDULABLE, ERROR = "Unschedulable", "SchedulerError"
NO_NODES = "no nodes available to schedule pods"
# Bytes that are kept for the words that say how many reasons, or figures, were left out.
_REST = 32
_MORE = " And more figures."
# If the pod itself is refused, kube-scheduler's plugin for resource claims has not read the pod, unless it is that plugin
# that refuses the pod. Its error replaces the text about preemption.
_AFTER_REFUSAL, _READS_CLAIMS = " not found", "DynamicResources"
_FREED = "deallocation of ResourceClaim completed"


class Saying(NamedTuple):
    """Why a pod is pending, as texts.

    Attributes:
        message: the message of the pod's condition.
        note: the same text, short enough for an event.
        about: equal for sayings that differ only in figures.
        reason: the reason of the condition.
    """

    message: str
    note: str
    about: Hashable
    reason: str = UNSCHEDULABLE


def say_why(hold: Hold) -> Saying:
    """Say why a pod is pending. The text is made once for pods with the same reasons."""
    if hold.problem:
        return say_plain(str(hold.problem), ERROR)
    if hold.said:
        return say_plain(hold.said, UNSCHEDULABLE)
    if hold.diagnosis is None or hold.diagnosis.n_nodes == 0:
        return say_plain(NO_NODES, UNSCHEDULABLE)
    return _say_diagnosis(hold.diagnosis, hold.attempt)


def say_plain(text: str, reason: str) -> Saying:
    """Make a saying of a text without figures."""
    return Saying(shorten(text, MESSAGE_MAX), shorten(text, NOTE_MAX), text, reason)


def write_sentence(hold: Hold) -> str:
    """Write why a pod is pending in kube-scheduler's words, without figures."""
    if hold.problem or hold.said:
        return str(hold.problem or hold.said)
    if hold.diagnosis is None or hold.diagnosis.n_nodes == 0:
        return NO_NODES
    return write_fit_error(hold.diagnosis) + _write_attempt(
        hold.diagnosis, hold.attempt, MESSAGE_MAX
    )


def write_fit_error(diagnosis: Diagnosis, most: int = MESSAGE_MAX) -> str:
    """Write a FitError, such as ``0/5 nodes are available: 2 Insufficient cpu, 3 node(s) had untolerated taint(s)``.

    The parts are sorted as text, as kube-scheduler sorts them. If the text has more than ``most`` bytes, the reasons
    of the fewest nodes are left out.
    """
    head = f"0/{diagnosis.n_nodes} nodes are available: "
    if diagnosis.of_pod:
        return f"{head}{diagnosis.of_pod}."
    left = most - _count_bytes(head) - _REST
    kept: list[str] = []
    reasons = sorted(diagnosis.reasons, key=lambda reason: (-reason[1], reason[0]))
    for i, (text, n) in enumerate(reasons, 1):
        part = f"{n} {text}"
        left -= _count_bytes(part) + 2
        if left + (_REST if i == len(reasons) else 0) < 0:
            break
        kept.append(part)
    rest = len(diagnosis.reasons) - len(kept)
    more = f"and {rest} more reason" + ("s" if rest > 1 else "")
    parts = sorted(kept) + ([more] if rest else [])
    return f"{head}{', '.join(parts)}."


def _write_attempt(diagnosis: Diagnosis, attempt: Attempt | None, most: int) -> str:
    """Write the result of preemption, which follows the reasons why the pod fits nowhere."""
    if diagnosis.of_pod and diagnosis.rules != (_READS_CLAIMS,):
        return _AFTER_REFUSAL
    if attempt is None:
        return ""
    if attempt.node:
        found = f"found a potential placement for pod on node {attempt.node}"
        return f" preemption: {found}, preempting {attempt.victims} victims"
    parts = [_FREED] if attempt.frees else []
    if attempt.diagnosis is not None:
        parts.append(f"preemption: {write_fit_error(attempt.diagnosis, most)}")
    elif attempt.why:
        parts.append(f"preemption: {attempt.why}")
    return f" {', '.join(parts)}" if parts else ""


def _write_with_details(diagnosis: Diagnosis, attempt: Attempt | None, most: int) -> str:
    tried = _write_attempt(diagnosis, attempt, most // 4)
    details = [f" {detail.text}." for detail in diagnosis.details]
    room = max(most // 2, most - sum(map(_count_bytes, details))) - _count_bytes(tried)
    text = write_fit_error(diagnosis, room) + tried
    # kube-scheduler's text about found room has no full stop, because nothing follows it there.
    text += "." if details and not text.endswith(".") else ""
    for i, detail in enumerate(details):
        rest = len(details) - i
        if _count_bytes(text + detail) + (_REST if rest > 1 else 0) > most:
            return f"{text}{_MORE}"
        text += detail
    return text


@lru_cache(maxsize=512)
def _say_diagnosis(diagnosis: Diagnosis, attempt: Attempt | None) -> Saying:
    told = (
        _write_attempt(diagnosis, attempt, MESSAGE_MAX) if attempt and not attempt.diagnosis else ""
    )
    tried = attempt.diagnosis if attempt else None
    about = (
        diagnosis.n_nodes,
        told,
        frozenset(text for text, _ in tried.reasons) if tried else None,
        frozenset(text for text, _ in diagnosis.reasons),
        frozenset(detail.about for detail in diagnosis.details),
    )
    message = _write_with_details(diagnosis, attempt, MESSAGE_MAX)
    note = _write_with_details(diagnosis, attempt, NOTE_MAX)
    return Saying(message, note, about, ERROR if diagnosis.of_pod else UNSCHEDULABLE)


def _count_bytes(text: str) -> int:
    return len(text.encode(errors="replace"))
