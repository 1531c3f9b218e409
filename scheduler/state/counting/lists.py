"""Rules about one label of very many values, found by a value."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Hashable, Iterable
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from scheduler.api.packing import PackedTexts, mark_text
from scheduler.api.pods.affinity import Peers

T = TypeVar("T", bound=Hashable)

# So many hashes of rules that are gone may stay.
_GONE_MIN = 1024
_HASH_MASK = 0xFFFF_FFFF


class _Entry(NamedTuple, Generic[T]):
    """A rule, its values, and the pods that the rule is about."""

    rule: T
    values: PackedTexts
    peers: Peers


class ValueLists(Generic[T]):
    """Rules, each with its values.

    A dictionary from each value to its rules would take several times the memory of the values. So one array has the
    hashes of all values of all rules. NumPy searches this array in a fraction of the time that a look into each rule
    takes.
    """

    def __init__(self) -> None:
        self._slots: dict[T, int] = {}
        # By slot. A rule that is gone is None until the arrays are compacted.
        self._entries: list[_Entry[T] | None] = []
        # The hashes of one slot are neighbours and begin at the start of the slot.
        self._hashes = array("I")
        self._starts = array("I")
        self._n_gone = 0

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, rule: T, values: PackedTexts, peers: Peers) -> None:
        """Add a rule about these values of the label."""
        self._slots[rule] = len(self._entries)
        self._append(_Entry(rule, values, peers), [hash(value) & _HASH_MASK for value in values])

    def drop(self, rule: T) -> None:
        """Remove a rule."""
        slot = self._slots.pop(rule)
        entry, self._entries[slot] = self._entries[slot], None
        self._n_gone += len(entry.values) if entry else 0
        if self._n_gone > max(_GONE_MIN, len(self._hashes) // 2):
            self._compact()

    def find(self, value: str) -> list[tuple[T, Peers]]:
        """Find the rules about a value, the oldest first, and the pods that each is about."""
        hashes = np.frombuffer(self._hashes, np.uint32)
        places = np.flatnonzero(hashes == hash(value) & _HASH_MASK).tolist()
        marked = mark_text(value)
        # Two values of one rule may have the same hash.
        slots = dict.fromkeys(bisect_right(self._starts, place) - 1 for place in places)
        entries = (self._entries[slot] for slot in slots)
        return [(one.rule, one.peers) for one in entries if one and marked in one.values.joined]

    def _append(self, entry: _Entry[T], hashes: Iterable[int]) -> None:
        self._entries.append(entry)
        self._starts.append(len(self._hashes))
        self._hashes.extend(hashes)

    def _compact(self) -> None:
        """Leave no room for rules that are gone."""
        entries, starts, hashes = self._entries, self._starts, self._hashes
        self._entries, self._starts, self._hashes, self._n_gone = [], array("I"), array("I"), 0
        for entry, start in zip(entries, starts, strict=True):
            if entry is not None:
                self._slots[entry.rule] = len(self._entries)
                self._append(entry, hashes[start : start + len(entry.values)])
