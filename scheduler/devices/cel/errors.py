"""What can go wrong with an expression, in the words of kube-scheduler."""

from __future__ import annotations

from typing import NamedTuple

from scheduler.errors import BadInput, EvenkeelError

# Of longer lines the place is not shown, as in cel-go; it shows ten times as many complaints.
_SHOWN_LENGTH = 16_384
_SHOWN = 10
_HINT = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has()"
    " for optional fields"
)


class CompileError(BadInput):
    """An expression is no selector.

    Attributes:
        text: what is wrong with it, on several lines that show where; ``problem`` has the same on one line.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__("", text)


class EvaluationError(EvenkeelError):
    """A selector comes to no answer for a device.

    Attributes:
        text: why.
    """

    def __init__(self, text: str) -> None:
        self.text = text + _HINT if "no such key:" in text else text
        super().__init__(self.text)


class CelError(Exception):
    """A value that is an error; ``&&``, ``||`` and loops may do without it."""


class LimitError(Exception):
    """The evaluation costs more than it may; nothing does without it."""

    def __init__(self, text: str = "operation cancelled: actual cost limit exceeded") -> None:
        super().__init__(text)


class Complaint(NamedTuple):
    """One thing that is wrong at one place of the text."""

    at: int
    text: str


class Complaints(Exception):  # noqa: N818 - reads as a noun where it is caught
    """All that is wrong with a text."""

    def __init__(self, complaints: list[Complaint]) -> None:
        super().__init__(complaints)
        self.complaints = complaints


def show_complaints(source: str, complaints: list[Complaint]) -> str:
    """Write complaints as cel-go does, each with its line and a mark below its place."""
    lines = source.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    shown = []
    for at, text in sorted(complaints, key=lambda one: one.at)[:_SHOWN]:
        if at < 0:
            shown.append(f"ERROR: <input>:-1:0: {text}")
            continue
        row = max(i for i in range(len(lines)) if starts[i] <= at)
        column = at - starts[row]
        shown.append(
            f"ERROR: <input>:{row + 1}:{column + 1}: {text}{_show_place(lines[row], column)}"
        )
    if len(complaints) > _SHOWN:
        shown.append(f"{len(complaints) - _SHOWN} more errors were truncated")
    return "\n".join(shown)


def _show_place(line: str, column: int) -> str:
    if len(line) > _SHOWN_LENGTH:
        return ""
    line = line.replace("\t", " ")
    dots = "".join("." if char.isascii() else "\uff0e" for char in line[:column])
    mark = "^" if column >= len(line) or line[column].isascii() else "\uff3e"
    return f"\n | {line}\n | {dots}{mark}"
