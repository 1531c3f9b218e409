"""Matches label selectors with many sets of labels at once; a set of kinds is one integer with a bit for each kind.

A selector is compared only with the kinds that have a label which it names: its cost grows with its length, and not
with the number of kinds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain

import numpy as np

from scheduler.api.selectors import Labels, Requirement, Selector
from scheduler.schema.columns import Ints

# A label that a selector must find; without a value: a key that it must find.
Anchor = tuple[str, str | None]
# A selector is listed under each of its values, if there are no more than this.
_VALUES_MAX = 16
# If a key has more labels than this, each value is looked up in the labels, and not each label in the values.
_FEW_LABELS = 64
# So few kinds of a label are always kept one by one.
_FEW_MIN = 8


class Postings:
    """Knows which kinds have which label: bit k stands for kind k.

    Bits take an eighth of a byte for every kind, for each label. Most labels have few kinds, such as the name of a Job:
    for these a list of the kinds is kept, so that memory grows with the labels and not with labels times kinds.
    """

    def __init__(self) -> None:
        self.all = 0
        self._few: dict[Anchor, tuple[int, ...]] = {}
        self._many: dict[Anchor, int] = {}

    def add(self, kinds: Mapping[int, Iterable[tuple[str, str]]]) -> None:
        """Add kinds, each with its labels."""
        self.all |= pack_bits(list(kinds))
        most = self._count_few()
        for anchor, there in _group_by_anchor(kinds).items():
            if anchor in self._many:
                self._many[anchor] |= pack_bits(there)
                continue
            found = (*self._few.get(anchor, ()), *there)
            if len(found) <= most:
                self._few[anchor] = found
            else:
                self._few.pop(anchor, None)
                self._many[anchor] = pack_bits(list(found))

    def drop(self, kinds: Mapping[int, Iterable[tuple[str, str]]]) -> None:
        """Drop kinds, each with the labels that it was added with."""
        most = self._count_few()
        for anchor, there in _group_by_anchor(kinds).items():
            if anchor in self._few:
                found = tuple(kind for kind in self._few[anchor] if kind not in there)
            else:
                left = self._many[anchor] & ~pack_bits(there)
                if left.bit_count() > most // 2:
                    self._many[anchor] = left
                    continue
                del self._many[anchor]
                found = tuple(unpack_bits(left).tolist()) if left else ()
            if found:
                self._few[anchor] = found
            else:
                self._few.pop(anchor, None)
        self.all &= ~pack_bits(list(kinds))

    def list_anchors(self) -> Iterable[Anchor]:
        """List all labels and keys that any kind has."""
        return chain(self._few, self._many)

    def match(self, selector: Selector) -> int:
        """Return the kinds that a selector selects."""
        found = self.all
        for one in selector.requirements:
            if not found:
                break
            found = self._narrow(found, one)
        return found

    def _count_few(self) -> int:
        """Count how many kinds, 16 bytes each, take no more memory than bits."""
        return max(_FEW_MIN, self.all.bit_length() // 128)

    def _narrow(self, found: int, one: Requirement) -> int:
        key = one.key, None
        if one.operator in {"Exists", "DoesNotExist"}:
            there = self._find_any([key])
        else:
            # A key that no kind has is the usual case among thousands of selectors.
            is_known = key in self._few or key in self._many
            there = self._find_any(self._find_labels(one)) if is_known else 0
        return found & there if one.operator in {"In", "Exists"} else found & ~there

    def _find_labels(self, one: Requirement) -> Iterable[Anchor]:
        """Find the labels that a requirement names; of very many labels only those that some kind has."""
        n_labels = len(self._few) + len(self._many)
        if len(one.values) <= n_labels or n_labels > _FEW_LABELS:
            return ((one.key, value) for value in one.values)
        return [
            anchor
            for anchor in self.list_anchors()
            if anchor[0] == one.key and anchor[1] is not None and anchor[1] in one.values
        ]

    def _find_any(self, anchors: Iterable[Anchor]) -> int:
        """Find the kinds that have any of these labels or keys."""
        there = 0
        few: list[int] = []
        for anchor in anchors:
            few += self._few.get(anchor, ())
            there |= self._many.get(anchor, 0)
        return there | pack_bits(few)


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
    """Find a label or a key without which a selector selects nothing; None for a selector without such a label."""
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
    """Find the anchors of a selector: all that it selects has exactly one of them; None stands for everything.

    A list of very many values has only its key as an anchor: its labels would take more room than the selector itself.
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
    """List all anchors under which a selector that selects these labels may be found."""
    found: list[Anchor | None] = [None]
    for key, value in labels.items():
        found += ((key, value), (key, None))
    return found


def pack_bits(kinds: list[int]) -> int:
    """Return the integer with these bits set."""
    if len(kinds) < 8:
        packed = 0
        for kind in kinds:
            packed |= 1 << kind
        return packed
    flags = np.zeros(max(kinds) + 1, np.bool_)
    flags[kinds] = True
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def unpack_bits(bits: int) -> Ints:
    """List the bits of an integer that are set, ascending."""
    raw = np.frombuffer(bits.to_bytes((bits.bit_length() + 7) // 8, "little"), np.uint8)
    return np.flatnonzero(np.unpackbits(raw, bitorder="little"))
