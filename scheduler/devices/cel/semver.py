"""Semantic versions, in the manner and with the messages of the library that Kubernetes uses."""

from __future__ import annotations

import re

_DIGITS = re.compile(r"[0-9]*", re.ASCII)
_WORD = re.compile(r"[0-9A-Za-z-]*", re.ASCII)
_UINT_MAX = 2**64 - 1


class SemverError(ValueError):
    """A text is no version; the message is upstream's."""


class Semver:
    """A version; what stands after ``+`` does not matter."""

    __slots__ = ("_order", "major", "minor", "patch", "text")

    def __init__(
        self, numbers: tuple[int, int, int], before: tuple[int | str, ...], text: str
    ) -> None:
        self.major, self.minor, self.patch = numbers
        self.text = text
        # Numbers come before words, and a version before it is out comes before it is.
        marks = tuple((0, one, "") if isinstance(one, int) else (1, 0, one) for one in before)
        self._order = (numbers, not before, marks)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self._order == other._order

    def __hash__(self) -> int:
        return hash(self._order)

    def compare(self, other: Semver) -> int:
        """Return -1, 0 or 1."""
        return (self._order > other._order) - (self._order < other._order)


def read_semver(text: str) -> Semver:
    """Read a version.

    Raises:
        SemverError: it is none.
    """
    if not text:
        raise SemverError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise SemverError("No Major.Minor.Patch elements found")
    major = _read_part("Major", parts[0])
    minor = _read_part("Minor", parts[1])
    rest, plus, build = parts[2].partition("+")
    patch, dash, before = rest.partition("-")
    numbers = major, minor, _read_part("Patch", patch)
    marks = tuple(_read_mark(mark) for mark in before.split(".")) if dash else ()
    for word in build.split(".") if plus else ():
        if not word:
            raise SemverError("Build meta data is empty")
        if not _WORD.fullmatch(word):
            raise SemverError(f"Invalid character(s) found in build meta data {quote(word)}")
    return Semver(numbers, marks, text)


def normalize(text: str) -> str:
    """Return a loose version as a strict one: without ``v`` and leading zeros, with three numbers.

    Raises:
        SemverError: it is short and has more than numbers.
    """
    parts = text.removeprefix("v").split(".", 2)
    for i, part in enumerate(parts):
        if len(part.encode()) > 1:
            bare = part.lstrip("0")
            parts[i] = bare if bare and bare[0] in "123456789" else f"0{bare}"
    if len(parts) < 3 and set(parts[-1]) & {"+", "-"}:
        raise SemverError("short version cannot contain PreRelease/Build meta data")
    return ".".join(parts + ["0"] * (3 - len(parts)))


def _read_part(name: str, text: str) -> int:
    if not _DIGITS.fullmatch(text):
        raise SemverError(f"Invalid character(s) found in {name.lower()} number {quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise SemverError(f"{name} number must not contain leading zeroes {quote(text)}")
    return _read_uint(text)


def _read_mark(text: str) -> int | str:
    if not text:
        raise SemverError("Prerelease is empty")
    if _DIGITS.fullmatch(text):
        if len(text) > 1 and text[0] == "0":
            raise SemverError(
                f"Numeric PreRelease version must not contain leading zeroes {quote(text)}"
            )
        return _read_uint(text)
    if not _WORD.fullmatch(text):
        raise SemverError(f"Invalid character(s) found in prerelease {quote(text)}")
    return text


def _read_uint(text: str) -> int:
    if not text:
        raise SemverError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) > _UINT_MAX:
        raise SemverError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    return int(text)


_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def quote(text: str) -> str:
    """Write a text in quotes as Go's ``%q`` does."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_quote_char, text)) + '"'


def _quote_char(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
