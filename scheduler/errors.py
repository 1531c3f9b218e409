"""Every error that Evenkeel raises on purpose.

    EvenkeelError
    ├── BadInput        an object, file or flag that a person wrote is wrong: names it and says what is allowed
    ├── BrokenInvariant the columns disagree with themselves: a bug, the process must rebuild from a list
    └── ApiError        the API server refused or could not be reached (raised in kube only)

"It does not fit" is never an error: it is an answer, see api/reasons.py.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# Control characters, those that turn the direction of writing, line separators, and halves of characters.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def make_visible(text: str) -> str:
    """Return a text on one line, with all characters spelt out that a terminal would obey.

    The text may quote what a stranger wrote: a reader of an event, a log or a table must not be shown a line that
    Evenkeel did not write.
    """
    if text.isprintable():
        return text
    return _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


def join_lines(error: Exception) -> str:
    """Return an error's text on one line; other libraries write several."""
    return " ".join(str(error).split())


def explain_unreadable(error: OSError | UnicodeError) -> str:
    """Say why a file cannot be read, for a reader who knows nothing of Python."""
    match error:
        case FileNotFoundError() | NotADirectoryError():
            return "there is no such file"
        case IsADirectoryError():
            return "is a folder, not a file"
        case PermissionError():
            return "may not be read: permission denied"
        case OSError(strerror=str(reason)):
            return f"cannot be read: {reason}"
        case UnicodeError():
            return "is not UTF-8 text"
    return join_lines(error)


class EvenkeelError(Exception):
    """Root of the tree."""


class Mistake(NamedTuple):
    """What a person must mend on an object that is read all the same.

    Attributes:
        field: path of the field inside the object, e.g. ``spec.containers[0].resources.limits``.
        text: what is wrong with it and what is allowed.
    """

    field: str
    text: str

    def __str__(self) -> str:
        return make_visible(": ".join(filter(None, self)))


class BadInput(EvenkeelError):  # noqa: N818 - the word a user would say
    """Something a person wrote cannot be understood.

    Attributes:
        field: path of the field inside the object, e.g. ``spec.containers[0].resources.limits``; empty where it
            is the whole.
        problem: what is wrong with it and what is allowed.
    """

    def __init__(self, field: str, problem: str) -> None:
        self.field = make_visible(field)
        self.problem = make_visible(problem)
        super().__init__(": ".join(filter(None, (self.field, self.problem))))

    @property
    def mistake(self) -> Mistake:
        """The same as a value."""
        return Mistake(self.field, self.problem)


class BrokenInvariant(EvenkeelError):  # noqa: N818
    """A total in the columns is not the sum of its parts."""


class ApiError(EvenkeelError):
    """An API call failed.

    Attributes:
        status: HTTP status, or 0 when no answer came.
        reason: the Status object's ``reason`` (``Conflict``, ``NotFound``...), or ``Timeout``/``Connection``.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}" if status else f"{reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
