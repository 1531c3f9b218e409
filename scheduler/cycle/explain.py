"""Reasons to sentences: first kube-scheduler's own phrasing, which autoscalers and people parse, then figures.

What is too long for where it is written loses whole parts at its end, and says how many.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import NamedTuple

from scheduler.api.door.decisions import Diagnosis, Hold
from scheduler.api.limits import shortened

# Bytes: the API's own bound on an event's note, and ours on a condition's message, which is part of the pod.
NOTE_MAX, MESSAGE_MAX = 1024, 8192
NO_NODES = "no nodes available to schedule pods"
# Room for the words that say how much was left out.
_REST = 32


class Saying(NamedTuple):
    """What a pending pod is told.

    Attributes:
        message: for its condition.
        note: the same for an event.
        about: equal for sayings that differ in figures only.
    """

    message: str
    note: str
    about: Hashable


def saying(hold: Hold) -> Saying:
    """Why a pod is pending. Made once for like pods."""
    if hold.problem:
        return plain(str(hold.problem))
    if hold.diagnosis is None or hold.diagnosis.n_nodes == 0:
        return plain(NO_NODES)
    return _of(hold.diagnosis)


def plain(text: str) -> Saying:
    """A text without figures that come and go."""
    return Saying(shortened(text, MESSAGE_MAX), shortened(text, NOTE_MAX), text)


def sentence(hold: Hold) -> str:
    """Why a pod is pending, in kube-scheduler's words alone."""
    if hold.problem:
        return str(hold.problem)
    if hold.diagnosis is None or hold.diagnosis.n_nodes == 0:
        return NO_NODES
    return fit_error(hold.diagnosis)


def fit_error(diagnosis: Diagnosis, most: int = MESSAGE_MAX) -> str:
    """A FitError, such as ``0/5 nodes are available: 2 Insufficient cpu, 3 node(s) had untolerated taint(s)``.

    The parts are sorted as text, as kube-scheduler sorts them. Where all are more than so many bytes, those of
    the fewest nodes are left out.
    """
    head = f"0/{diagnosis.n_nodes} nodes are available: "
    left = most - _size(head) - _REST
    kept: list[str] = []
    for text, n in sorted(diagnosis.reasons, key=lambda reason: (-reason[1], reason[0])):
        part = f"{n} {text}"
        left -= _size(part) + 2
        if left < 0:
            break
        kept.append(part)
    rest = len(diagnosis.reasons) - len(kept)
    parts = sorted(kept) + ([f"and {_reasons(rest)}"] if rest else [])
    return f"{head}{', '.join(parts)}."


def _with_details(diagnosis: Diagnosis, most: int) -> str:
    text = fit_error(diagnosis, most)
    for i, detail in enumerate(diagnosis.details):
        longer = f"{text} {detail.text}."
        rest = len(diagnosis.details) - i - 1
        if _size(longer) + (_REST if rest else 0) > most:
            return f"{text} And {_reasons(rest + 1)}."
        text = longer
    return text


@lru_cache(maxsize=512)
def _of(diagnosis: Diagnosis) -> Saying:
    about = (
        diagnosis.n_nodes,
        frozenset(text for text, _ in diagnosis.reasons),
        frozenset(detail.about for detail in diagnosis.details),
    )
    message, note = _with_details(diagnosis, MESSAGE_MAX), _with_details(diagnosis, NOTE_MAX)
    return Saying(message, note, about)


def _reasons(n: int) -> str:
    return f"{n} more reason" if n == 1 else f"{n} more reasons"


def _size(text: str) -> int:
    return len(text.encode(errors="replace"))
