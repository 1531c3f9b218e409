"""Bounds the depth and the size of a document when it is unfolded."""

from __future__ import annotations

from typing import Any

# The most levels; objects of Kubernetes have less than half as many.
DEPTH_MAX = 200
# The most values that aliases or merge keys repeat; a few lines can mean billions.
REPEATED_MAX = 100_000
# The most mappings that one merge key names.
MERGED_MAX = 100
TOO_DEEP = f"is nested more than {DEPTH_MAX} levels deep, or holds itself"
REPEATED = f"aliases repeat more than {REPEATED_MAX} values, the maximum"


class Unreadable(ValueError):  # noqa: N818 - the word a user would say
    """A text is neither YAML nor JSON, or is beyond a bound when it is unfolded.

    Attributes:
        is_form: whether it is a mistake of form; else the text is beyond a bound.
    """

    def __init__(self, problem: str, *, is_form: bool = False) -> None:
        super().__init__(problem)
        self.is_form = is_form


class Size:
    """Measures how large and how deep a document is if every alias is a copy; each value is looked at once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, int]] = {}
        self._written = 0

    def check(self, document: Any) -> None:
        """Refuse a document beyond the bounds.

        Raises:
            Unreadable: the document is beyond a bound, which the error names.
        """
        if isinstance(document, dict | list):
            self._measure(document, 0)

    def _measure(self, value: dict[Any, Any] | list[Any], level: int) -> tuple[int, int]:
        """Measure the number of values in one, with the value itself, and how many levels they have."""
        if found := self._known.get(id(value)):
            return found
        if level > DEPTH_MAX:
            raise Unreadable(TOO_DEEP)
        inner = value.values() if isinstance(value, dict) else value
        held = [one for one in inner if isinstance(one, dict | list)]
        size, depth = 1 + len(value) - len(held), 0
        self._written += size
        for one in held:
            more, deeper = self._measure(one, level + 1)
            size, depth = size + more, max(depth, deeper + 1)
        if depth > DEPTH_MAX:
            raise Unreadable(TOO_DEEP)
        if size - self._written > REPEATED_MAX:
            raise Unreadable(REPEATED)
        self._known[id(value)] = size, depth
        return size, depth
