"""An index by node labels, so that a lookup need not go through thousands of volumes or classes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from scheduler.api.selectors import Labels, NodeTerm, Requirement
from scheduler.state.volumes.objects import Terms

T = TypeVar("T", bound=Hashable)
Word = tuple[str, str]


def words_of(terms: Terms) -> list[Word] | None:
    """Labels of which each node selected by the terms has one; None if there are no such labels."""
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
        """A thing about nodes that have one of these labels; None: about any."""
        if words is None:
            self._anywhere[thing] = None
            return
        for word in words:
            self._by_word[word][thing] = None
            self._keys[word[0]] = None

    def drop(self, thing: T, words: list[Word] | None) -> None:
        """It is not there any more."""
        for there in (self._anywhere,) if words is None else map(self._by_word.__getitem__, words):
            there.pop(thing, None)

    def near(self, labels: Labels) -> Iterator[T]:
        """The things that may concern a node with these labels; some may occur twice."""
        yield from self._anywhere
        for key in self._keys:
            value = labels.get(key)
            if value is not None and (there := self._by_word.get((key, value))):
                yield from there
