"""Regular expressions in the syntax of RE2, as Go reads them, to a tree."""

from __future__ import annotations

from typing import NamedTuple

from scheduler.devices.cel.charsets import (
    CATEGORIES,
    ESCAPES,
    LAST,
    PERL,
    POSIX,
    Chars,
    fold,
    invert,
    merge,
)

# Go's own limits are higher by far; they bound memory, these bound how long a match takes.
DEPTH_LIMIT = 40
_REPEAT_LIMIT = 1000


class PatternError(ValueError):
    """A text is no pattern; the message is Go's."""


class Check(NamedTuple):
    """A place: ``^`` and ``$`` of the text or of lines, ``b`` and ``B`` of words."""

    sort: str


class Row(NamedTuple):
    """One after the other."""

    parts: tuple[Tree, ...]


class Either(NamedTuple):
    """One of them, the first that fits."""

    parts: tuple[Tree, ...]


class Repeat(NamedTuple):
    """A part some number of times; without an upper bound if ``most`` is -1."""

    part: Tree
    least: int
    most: int
    is_greedy: bool


Tree = Chars | Check | Row | Either | Repeat


_PLACES = {"A": "^", "z": "$", "b": "b", "B": "B"}


def parse_pattern(text: str) -> Tree:
    """Parse a pattern.

    Raises:
        PatternError: it is none.
    """
    parser = _Parser(text)
    tree = parser.parse_either(0)
    if parser.at < len(text):
        raise PatternError(f"error parsing regexp: unexpected ): `{text}`")
    return tree


class _Parser:
    """A pattern and how far it is read; flags hold from where they stand to the end of their group."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.flags = {"i": False, "m": False, "s": False, "U": False}

    def _fail(self, problem: str, start: int | None = None) -> PatternError:
        shown = self.text if start is None else self.text[start : self.at]
        return PatternError(f"error parsing regexp: {problem}: `{shown}`")

    def _next(self) -> str:
        return self.text[self.at : self.at + 1]

    def _take(self, text: str) -> bool:
        if not self.text.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def parse_either(self, depth: int) -> Tree:
        if depth > DEPTH_LIMIT:
            raise self._fail("expression nests too deeply")
        ways = [self._parse_row(depth)]
        while self._take("|"):
            ways.append(self._parse_row(depth))
        return ways[0] if len(ways) == 1 else Either(tuple(ways))

    def _parse_row(self, depth: int) -> Tree:
        parts: list[Tree] = []
        while (char := self._next()) and char not in "|)":
            start = self.at
            if char in "*+?" or (char == "{" and self._peek_count()):
                self._take_repeat(char)
                raise self._fail("missing argument to repetition operator", start)
            part = self._parse_part(char, depth)
            if part is not None:
                parts.append(self._parse_repeats(part))
        return parts[0] if len(parts) == 1 else Row(tuple(parts))

    def _parse_repeats(self, part: Tree) -> Tree:
        first = self.at
        is_repeated = False
        while (char := self._next()) and (char in "*+?" or (char == "{" and self._peek_count())):
            start = self.at
            least, most = self._take_repeat(char)
            if is_repeated:
                raise self._fail("invalid nested repetition operator", first)
            if most > _REPEAT_LIMIT or least > _REPEAT_LIMIT or 0 <= most < least:
                raise self._fail("invalid repeat count", start)
            is_lazy = self._take("?")
            part = Repeat(part, least, most, is_greedy=is_lazy == self.flags["U"])
            if _count_repeats(part) > _REPEAT_LIMIT:
                raise self._fail("invalid repeat count", start)
            is_repeated = True
        return part

    def _peek_count(self) -> bool:
        at = self.at
        found = self._read_count() is not None
        self.at = at
        return found

    def _read_count(self) -> tuple[int, int] | None:
        """Read ``{n}``, ``{n,}`` or ``{n,m}``; anything else is a plain text."""
        end = self.text.find("}", self.at)
        low, comma, high = self.text[self.at + 1 : max(end, self.at + 1)].partition(",")
        numbers = [low, high] if high else [low]
        if end < 0 or not all(
            one.isascii() and one.isdigit() and (one == "0" or one[0] != "0") for one in numbers
        ):
            return None
        self.at = end + 1
        least = _bound(low)
        if not comma:
            return least, least
        return least, _bound(high) if high else -1

    def _take_repeat(self, char: str) -> tuple[int, int]:
        if char == "{":
            count = self._read_count()
            assert count is not None  # noqa: S101 - it was looked at before
            return count
        self.at += 1
        return (1 if char == "+" else 0), (1 if char == "?" else -1)

    def _parse_part(self, char: str, depth: int) -> Tree | None:
        start = self.at
        self.at += 1
        parse = {"[": self._parse_class, "\\": self._parse_escape}.get(char)
        if parse is not None:
            return parse(start)
        if char == "(":
            return self._parse_group(start, depth)
        if char in "^$":
            return Check(f"{char}m" if self.flags["m"] else char)
        if char == ".":
            return Chars(((0, LAST),) if self.flags["s"] else ((0, 9), (11, LAST)))
        return self._make([(ord(char), ord(char))])

    def _make(self, ranges: list[tuple[int, int]]) -> Chars:
        return Chars(merge(fold(ranges) if self.flags["i"] else ranges))

    def _parse_group(self, start: int, depth: int) -> Tree | None:
        flags = dict(self.flags)
        if self._take("?"):
            if self._take("P<") or self._take("<"):
                self._take_name(start)
            elif self._take_flags(start):
                return None
        tree = self.parse_either(depth + 1)
        if not self._take(")"):
            raise self._fail("missing closing )")
        self.flags = flags
        return tree if isinstance(tree, Row | Either) else Row((tree,))

    def _take_name(self, start: int) -> None:
        end = self.text.find(">", self.at)
        name = self.text[self.at : max(end, self.at)]
        rest = self.text[start:]
        if end < 0:
            raise PatternError(f"error parsing regexp: invalid named capture: `{rest}`")
        self.at = end + 1
        if not name or not all(char.isascii() and (char.isalnum() or char == "_") for char in name):
            raise self._fail("invalid named capture", start)

    def _take_flags(self, start: int) -> bool:
        """Take flags; say whether the group ends with them, so that they hold for what follows it."""
        value, seen = True, False
        while char := self._next():
            self.at += 1
            if char in self.flags:
                self.flags[char] = value
                seen = True
            elif char == "-" and value:
                value, seen = False, False
            elif char in ":)" and (value or seen):
                return char == ")"
            else:
                break
        raise self._fail("invalid or unsupported Perl syntax", start)

    def _parse_escape(self, start: int) -> Tree:
        char = self._next()
        if char in _PLACES and char:
            self.at += 1
            return Check(_PLACES[char])
        if self._take("Q"):
            end = self.text.find("\\E", self.at)
            quoted = self.text[self.at : end] if end >= 0 else self.text[self.at :]
            self.at = end + 2 if end >= 0 else len(self.text)
            return Row(tuple(self._make([(ord(one), ord(one))]) for one in quoted))
        found = self._read_set(start)
        if isinstance(found, Chars):
            return found
        code = self._read_char(start)
        return self._make([(code, code)])

    def _read_set(self, start: int) -> Chars | None:
        r"""Read what follows a backslash if it is a set, such as ``\d`` or ``\pL``."""
        char = self._next()
        if char in PERL and char:
            self.at += 1
            return Chars(merge(PERL[char]))
        if char not in {"p", "P"}:
            return None
        self.at += 1
        name = self._next()
        self.at += 1
        if name == "{":
            end = self.text.find("}", self.at)
            if end < 0:
                self.at = len(self.text)
                raise self._fail("invalid character class range", start)
            name, self.at = self.text[self.at : end], end + 1
        is_negated = (char == "P") != name.startswith("^")
        name = name.removeprefix("^")
        if name == "Any":
            return Chars(() if is_negated else ((0, LAST),))
        if name not in CATEGORIES:
            raise self._fail("invalid character class range", start)
        return Chars((), ((name, is_negated),))

    def _read_char(self, start: int) -> int:
        """Read the character that follows a backslash."""
        char = self._next()
        self.at += 1
        if not char:
            raise PatternError("error parsing regexp: trailing backslash at end of expression: ``")
        if char in ESCAPES:
            return ESCAPES[char]
        if char == "x":
            return self._read_hex(start)
        if char == "0" or (char in "1234567" and self._next() and self._next() in "01234567"):
            digits = char
            while len(digits) < 3 and self._next() and self._next() in "01234567":
                digits += self._next()
                self.at += 1
            return int(digits, 8)
        if ord(char) < 128 and not char.isalnum():
            return ord(char)
        raise self._fail("invalid escape sequence", start)

    def _read_hex(self, start: int) -> int:
        hexadecimal = "0123456789abcdefABCDEF"
        if self._take("{"):
            end = self.text.find("}", self.at)
            digits, self.at = self.text[self.at : max(end, self.at)], max(end + 1, self.at)
        else:
            digits, self.at = self.text[self.at : self.at + 2], min(self.at + 2, len(self.text))
            digits = digits if len(digits) == 2 else ""
        if (
            not digits
            or len(digits) > 8
            or set(digits) - set(hexadecimal)
            or int(digits, 16) > LAST
        ):
            raise self._fail("invalid escape sequence", start)
        return int(digits, 16)

    def _parse_class(self, start: int) -> Tree:
        is_negated = self._take("^")
        ranges: list[tuple[int, int]] = []
        categories: list[tuple[str, bool]] = []
        is_first = True
        while is_first or self._next() != "]":
            if not self._next():
                raise PatternError(
                    f"error parsing regexp: missing closing ]: `{self.text[start:]}`"
                )
            is_first = False
            if self._take_posix(ranges):
                continue
            item = self.at
            if self._take("\\"):
                found = self._read_set(item)
                if found is not None:
                    ranges += found.ranges
                    categories += found.categories
                    continue
                self.at = item
            ranges.append(self._read_range(item))
        self.at += 1
        folded = fold(ranges) if self.flags["i"] else ranges
        return Chars(merge(folded), tuple(categories), is_negated)

    def _take_posix(self, ranges: list[tuple[int, int]]) -> bool:
        start = self.at
        if not self._take("[:"):
            return False
        end = self.text.find(":]", self.at)
        if end < 0:
            self.at = start
            return False
        name, self.at = self.text[self.at : end], end + 2
        found = POSIX.get(name.removeprefix("^"))
        if found is None:
            raise self._fail("invalid character class range", start)
        ranges += invert(found) if name.startswith("^") else found
        return True

    def _read_range(self, start: int) -> tuple[int, int]:
        low = self._read_one(start)
        high = low
        if self._next() == "-" and self.text[self.at + 1 : self.at + 2] not in {"]", ""}:
            self.at += 1
            high = self._read_one(start)
            if high < low:
                raise self._fail("invalid character class range", start)
        return low, high

    def _read_one(self, start: int) -> int:
        if self._take("\\"):
            return self._read_char(start)
        self.at += 1
        return ord(self.text[self.at - 1])


def _bound(digits: str) -> int:
    return int(digits) if len(digits) < 5 else _REPEAT_LIMIT + 1


def _count_repeats(tree: Tree) -> int:
    """Return how often the innermost part may be written out."""
    if isinstance(tree, Repeat):
        return max(tree.least, tree.most, 1) * _count_repeats(tree.part)
    if isinstance(tree, Row | Either):
        return max(map(_count_repeats, tree.parts), default=1)
    return 1
