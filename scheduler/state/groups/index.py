"""Pods by one word each."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Generic, TypeVar

W = TypeVar("W", bound=Hashable)


class Index(Generic[W]):
    """The pods of each word, in the order in which they came, and the word of each pod."""

    def __init__(self) -> None:
        self._of_word: dict[W, dict[str, None]] = {}
        self._word_of: dict[str, W] = {}

    def put(self, uid: str, word: W | None) -> None:
        """Put a pod under a word, and under no other any more; None for no word."""
        before = self._word_of.get(uid)
        if before == word:
            return
        if before is not None:
            del self._word_of[uid], self._of_word[before][uid]
            if not self._of_word[before]:
                del self._of_word[before]
        if word is not None:
            self._word_of[uid] = word
            self._of_word.setdefault(word, {})[uid] = None

    def list_of(self, word: W) -> Collection[str]:
        """List the pods of a word."""
        return self._of_word.get(word, {}).keys()

    def find(self, uid: str) -> W | None:
        """Find the word of a pod; None for none."""
        return self._word_of.get(uid)
