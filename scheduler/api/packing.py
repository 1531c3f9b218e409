"""Stores many short texts as one, because a list of them takes several times the memory of their characters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

# The separator of joined texts; no label's value has it.
BETWEEN = "\0"
# Fewer texts are compared faster one by one.
_FEW = 16


@dataclass(frozen=True, slots=True)
class PackedTexts:
    """Sorted texts without NUL, none twice; made by ``pack_texts``.

    Attributes:
        joined: the texts, with a NUL before and after each.
    """

    joined: str

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and mark_text(text) in self.joined

    def __iter__(self) -> Iterator[str]:
        return iter(self.joined[1:-1].split(BETWEEN))

    def __getitem__(self, i: int) -> str:
        return self.joined[1:-1].split(BETWEEN)[i]

    def __len__(self) -> int:
        return self.joined.count(BETWEEN) - 1


def mark_text(text: str) -> str:
    """Return the text as ``PackedTexts.joined`` would have it."""
    return f"{BETWEEN}{text}{BETWEEN}"


def pack_texts(texts: Iterable[str]) -> tuple[str, ...] | PackedTexts:
    """Sort the texts and drop repetitions; many texts are joined to one."""
    found = tuple(sorted(set(texts)))
    if len(found) <= _FEW or any(BETWEEN in one for one in found):
        return found
    return PackedTexts(mark_text(BETWEEN.join(found)))
