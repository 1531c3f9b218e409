"""Pods, or other things, by one word each."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)
W = TypeVar("W", bound=Hashable)


class Index(Generic[T, W]):
    """The pods, or other things, of each word, in the order in which they came, and the word of each."""

    def __init__(self) -> None:
        self._of_word: dict[W, dict[T, None]] = {}
        self._word_of: dict[T, W] = {}

    def put(self, one: T, word: W | None) -> None:
        """Put one under a word, and under no other any more; None for no word."""
        before = self._word_of.get(one)
        if before == word:
            return
        if before is not None:
            del self._word_of[one], self._of_word[before][one]
            if not self._of_word[before]:
                del self._of_word[before]
        if word is not None:
            self._word_of[one] = word
            self._of_word.setdefault(word, {})[one] = None

    def list_of(self, word: W) -> Collection[T]:
        """List what is under a word."""
        return self._of_word.get(word, {}).keys()

    def find(self, one: T) -> W | None:
        """Find the word of one; None for none."""
        return self._word_of.get(one)


def list_below(index: Index[T, T], top: T) -> list[T]:
    """List all that are under one, and under these, in an index of things under others of their kind; each once."""
    found: dict[T, None] = {}
    waiting = [top]
    while waiting:
        new = [one for one in index.list_of(waiting.pop()) if one not in found]
        found |= dict.fromkeys(new)
        waiting += new
    return list(found)
