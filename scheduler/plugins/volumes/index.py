"""An index of things by node labels, so that a lookup need not go through thousands of volumes or classes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from scheduler.api.selectors import Labels, NodeTerm, Requirement
from scheduler.state.volumes.objects import Terms

T = TypeVar("T", bound=Hashable)
Word = tuple[str, str]


def find_words(terms: Terms) -> list[Word] | None:
    """Find labels of which each node that the terms select has at least one; None if there are no such labels."""
    found: list[Word] = []
    for term in terms if terms is not None else (NodeTerm(),):
        asked = [one for one in term.labels if one.operator == "In"]
        if not asked:
            return None
        fewest: Requirement = min(asked, key=lambda one: len(one.values))
        found += [(fewest.key, value) for value in fewest.values]
    return found


class ByLabel(Generic[T]):
    """Things by the node labels that they may concern; the caller checks whether they do."""

    def __init__(self) -> None:
        self._by_word: defaultdict[Word, dict[T, None]] = defaultdict(dict)
        self._anywhere: dict[T, None] = {}
        self._keys: dict[str, None] = {}

    def add(self, thing: T, words: list[Word] | None) -> None:
        """Add a thing that concerns nodes with one of these labels; None: it may concern any node."""
        if words is None:
            self._anywhere[thing] = None
            return
        for word in words:
            self._by_word[word][thing] = None
            self._keys[word[0]] = None

    def drop(self, thing: T, words: list[Word] | None) -> None:
        """Drop a thing that was added with the same labels."""
        for there in (self._anywhere,) if words is None else map(self._by_word.__getitem__, words):
            there.pop(thing, None)

    def find_near(self, labels: Labels) -> Iterator[T]:
        """Find the things that may concern a node with these labels; a thing may occur twice."""
        yield from self._anywhere
        for key in self._keys:
            value = labels.get(key)
            if value is not None and (there := self._by_word.get((key, value))):
                yield from there
