"""Sets of characters: how patterns write them, and which there are by name."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from typing import NamedTuple

LAST = 0x10FFFF


class Chars(NamedTuple):
    """A set of characters: ranges of codes, and general categories of Unicode."""

    ranges: tuple[tuple[int, int], ...]
    categories: tuple[tuple[str, bool], ...] = ()
    is_negated: bool = False

    def has(self, char: str) -> bool:
        """Say whether a character is in it."""
        code = ord(char)
        at = bisect_right(self.ranges, (code, LAST + 1)) - 1
        found = at >= 0 and self.ranges[at][1] >= code
        if not found and self.categories:
            category = unicodedata.category(char)
            found = any(
                category.startswith(name) != is_negated for name, is_negated in self.categories
            )
        return found != self.is_negated


def fold(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Add the other case of each character; of long ranges only that of ASCII."""
    more = list(ranges)
    for low, high in ranges:
        codes = range(low, high + 1) if high - low < 512 else range(max(low, 0), min(high, 127) + 1)
        for code in codes:
            char = chr(code)
            cases = {char.lower(), char.upper()} - {char}
            more += [(ord(other), ord(other)) for other in cases if len(other) == 1]
    return more


def merge(ranges: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Put ranges in order, those together that touch."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return tuple(merged)


def invert(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the ranges of all other characters."""
    inverted, start = [], 0
    for low, high in merge(ranges):
        if low > start:
            inverted.append((start, low - 1))
        start = high + 1
    if start <= LAST:
        inverted.append((start, LAST))
    return inverted


_DIGITS, _SPACES = [(48, 57)], [(9, 10), (12, 13), (32, 32)]
_WORDS = [(48, 57), (65, 90), (95, 95), (97, 122)]
PERL = {"d": _DIGITS, "s": _SPACES, "w": _WORDS}
PERL |= {name.upper(): invert(ranges) for name, ranges in PERL.items()}
_UPPER, _LOWER = [(65, 90)], [(97, 122)]
POSIX = {
    "alnum": [*_DIGITS, *_UPPER, *_LOWER],
    "alpha": [*_UPPER, *_LOWER],
    "ascii": [(0, 127)],
    "blank": [(9, 9), (32, 32)],
    "cntrl": [(0, 31), (127, 127)],
    "digit": _DIGITS,
    "graph": [(33, 126)],
    "lower": _LOWER,
    "print": [(32, 126)],
    "punct": [(33, 47), (58, 64), (91, 96), (123, 126)],
    "space": [(9, 13), (32, 32)],
    "upper": _UPPER,
    "word": _WORDS,
    "xdigit": [*_DIGITS, (65, 70), (97, 102)],
}
ESCAPES = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
CATEGORIES = frozenset(
    [
        "L",
        "Lu",
        "Ll",
        "Lt",
        "Lm",
        "Lo",
        "M",
        "Mn",
        "Mc",
        "Me",
        "N",
        "Nd",
        "Nl",
        "No",
        "P",
        "Pc",
        "Pd",
        "Ps",
        "Pe",
        "Pi",
        "Pf",
        "Po",
        "S",
        "Sm",
        "Sc",
        "Sk",
        "So",
        "Z",
        "Zs",
        "Zl",
        "Zp",
        "C",
        "Cc",
        "Cf",
        "Co",
        "Cs",
    ]
)
