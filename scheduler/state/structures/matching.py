"""Label selectors against many sets of labels at once: sets of kinds as the bits of one number.

A selector meets only the kinds that have a label which it names, and costs what it says, not what it says times
the kinds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import numpy as np

from scheduler.api.selectors import Labels, Requirement, Selector
from scheduler.schema.columns import Ints

# A label that a selector must find, or with no value a key.
Anchor = tuple[str, str | None]
# A selector is found by each of at most so many values.
_VALUES_MAX = 16


class Postings:
    """Which kinds have which label: bit k is of kind k."""

    def __init__(self) -> None:
        self.all = 0
        self._of: dict[Anchor, int] = {}

    def add(self, kinds: Mapping[int, Iterable[tuple[str, str]]]) -> None:
        """Kinds came, each with its labels."""
        for anchor, there in _group_by_anchor(kinds).items():
            self._of[anchor] = self._of.get(anchor, 0) | pack_bits(there)
        self.all |= pack_bits(list(kinds))

    def drop(self, kinds: Mapping[int, Iterable[tuple[str, str]]]) -> None:
        """Kinds went, each with the labels that it came with."""
        for anchor, there in _group_by_anchor(kinds).items():
            left = self._of[anchor] & ~pack_bits(there)
            if left:
                self._of[anchor] = left
            else:
                del self._of[anchor]
        self.all &= ~pack_bits(list(kinds))

    def anchors(self) -> Iterable[Anchor]:
        """All labels and keys that any kind has."""
        return self._of.keys()

    def match(self, selector: Selector) -> int:
        """The kinds that a selector selects."""
        found = self.all
        for one in selector.requirements:
            if not found:
                break
            found = self._narrow(found, one)
        return found

    def _narrow(self, found: int, one: Requirement) -> int:
        if one.operator == "Exists":
            return found & self._of.get((one.key, None), 0)
        if one.operator == "DoesNotExist":
            return found & ~self._of.get((one.key, None), 0)
        there = self._of.get((one.key, None), 0) and self._with_any(one)
        return found & there if one.operator == "In" else found & ~there

    def _with_any(self, one: Requirement) -> int:
        there = 0
        for value in one.values:
            there |= self._of.get((one.key, value), 0)
        return there


def _group_by_anchor(
    kinds: Mapping[int, Iterable[tuple[str, str]]],
) -> Mapping[Anchor, list[int]]:
    found: defaultdict[Anchor, list[int]] = defaultdict(list)
    for kind, labels in kinds.items():
        for key, value in labels:
            found[key, value].append(kind)
            found[key, None].append(kind)
    return found


def find_anchor(selector: Selector) -> Anchor | None:
    """A label or a key without which a selector selects nothing; None where it has none."""
    key: Anchor | None = None
    for one in selector.requirements:
        if one.operator == "In":
            if len(one.values) == 1:
                return one.key, one.values[0]
            key = one.key, None
        elif one.operator == "Exists":
            key = key or (one.key, None)
    return key


def find_anchors(selector: Selector) -> list[Anchor | None]:
    """Labels or keys, of which whatever a selector selects has exactly one; None for whatever there is.

    Of a list of very many values only the key is told: they would take more room than the selector itself.
    """
    best: list[Anchor | None] = [None]
    n_best = _VALUES_MAX + 2
    for one in selector.requirements:
        if one.operator == "In" and len(one.values) < min(n_best, _VALUES_MAX + 1):
            best, n_best = [(one.key, value) for value in one.values], len(one.values)
        elif one.operator in {"In", "Exists"} and n_best > _VALUES_MAX + 1:
            best, n_best = [(one.key, None)], _VALUES_MAX + 1
    return best


def list_anchors(labels: Labels) -> list[Anchor | None]:
    """All anchors under which a selector of these labels may be found."""
    found: list[Anchor | None] = [None]
    for key, value in labels.items():
        found += ((key, value), (key, None))
    return found


def pack_bits(kinds: list[int]) -> int:
    """The number of which these bits are set."""
    if len(kinds) < 8:
        packed = 0
        for kind in kinds:
            packed |= 1 << kind
        return packed
    flags = np.zeros(max(kinds) + 1, np.bool_)
    flags[kinds] = True
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def unpack_bits(bits: int) -> Ints:
    """Which bits of a number are set, ascending."""
    raw = np.frombuffer(bits.to_bytes((bits.bit_length() + 7) // 8, "little"), np.uint8)
    return np.flatnonzero(np.unpackbits(raw, bitorder="little"))
