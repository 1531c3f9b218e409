"""How deep and how large a document may be once it is unfolded."""

from __future__ import annotations

from typing import Any

# Objects of Kubernetes are not nested half as deep.
DEPTH_MAX = 200
# Values that aliases or merge keys repeat; a few lines can mean billions.
REPEATED_MAX = 100_000
# Mappings that one merge key names.
MERGED_MAX = 100
TOO_DEEP = f"is nested more than {DEPTH_MAX} levels deep, or holds itself"
REPEATED = f"aliases repeat more than {REPEATED_MAX} values, the maximum"


class Unreadable(ValueError):  # noqa: N818 - the word a user would say
    """A text is neither YAML nor JSON, or is larger than it looks.

    Attributes:
        is_form: it is a mistake of form; else it is beyond a bound.
    """

    def __init__(self, problem: str, *, is_form: bool = False) -> None:
        super().__init__(problem)
        self.is_form = is_form


class Size:
    """How large a document is once every alias is a copy, and how deep; each value is looked at once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, int]] = {}
        self._written = 0

    def check(self, document: Any) -> None:
        """Refuse a document beyond the bounds.

        Raises:
            Unreadable: says which bound.
        """
        if isinstance(document, dict | list):
            self._measure(document, 0)

    def _measure(self, value: dict[Any, Any] | list[Any], level: int) -> tuple[int, int]:
        """The number of values in one, itself included, and how many levels they have."""
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
