"""Regular expressions at work, in time that grows with the text and the pattern, never with their powers.

Python's own ``re`` tries every way in turn, so a tenant's pattern could hold the scheduler up for years; no package of
RE2 is there for every platform that Evenkeel runs on. Patterns that repeat two characters at most are given to ``re``
all the same if the text is short, for there it tries few ways and is faster; what it gets is written out from the tree.
Others run here: all ways at once, one character after the other, those preferred first.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from scheduler.devices.cel.charsets import Chars
from scheduler.devices.cel.errors import CelError
from scheduler.devices.cel.patterns import (
    Check,
    Either,
    PatternError,
    Repeat,
    Row,
    Tree,
    parse_pattern,
)
from scheduler.devices.cel.running import Run

_SIZE_LIMIT = 3000
# How long a text may be that is given to ``re``, by how much is repeated in the pattern.
_SHORT = (10_000, 256, 64)
_WORD = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")
_PYTHON = {"^": r"\A", "$": r"\Z", "^m": r"(?m:^)", "$m": r"(?m:$)", "b": r"\b", "B": r"\B"}


class _Step(NamedTuple):
    """One step of a program: a set of characters to take, a place to check, or ways to go on."""

    chars: Chars | None = None
    check: str = ""
    ways: tuple[int, ...] = ()
    is_end: bool = False


class Pattern:
    """A pattern that is ready to be searched for."""

    __slots__ = ("_fast", "_repeats", "_steps", "size")

    def __init__(self, text: str) -> None:
        """Compile a pattern.

        Raises:
            PatternError: it is none, or it is too large.
        """
        tree = parse_pattern(text)
        steps: list[_Step] = []
        _write(tree, steps)
        steps.append(_Step(is_end=True))
        self._steps = steps
        self.size = len(steps)
        self._repeats = _count(tree)
        self._fast = re.compile(_spell(tree), re.ASCII) if self._repeats < len(_SHORT) else None

    def matches(self, run: Run, text: str) -> bool:
        """Say whether a text has what the pattern describes."""
        return self.search(run, text, 0) is not None

    def _is_fast(self, run: Run, text: str) -> bool:
        """Say whether ``re`` may have the text, and count what it may cost at worst."""
        length, repeats = len(text), self._repeats
        if self._fast is None or length > _SHORT[repeats]:
            return False
        run.toil(1 + length ** (repeats + 1) // 100)
        return True

    def find_all(self, run: Run, text: str, limit: int) -> list[str]:
        """Return what the pattern describes in a text, from left to right; without a limit if it is negative."""
        found: list[str] = []
        at, last = 0, -1
        while at <= len(text) and len(found) != limit:
            span = self.search(run, text, at)
            if span is None:
                break
            start, end = span
            # Nothing right after something is not found.
            if end > start or start != last:
                found.append(text[start:end])
            at, last = max(end, at + (end == start)), end
            if end == start:
                at = end + 1
        return found

    def search(self, run: Run, text: str, at: int) -> tuple[int, int] | None:
        """Return where the first and preferred match is."""
        if self._fast is not None and self._is_fast(run, text):
            there = self._fast.search(text, at)
            return there.span() if there else None
        found: tuple[int, int] | None = None
        threads: list[tuple[int, int]] = []
        for i in range(at, len(text) + 1):
            seen: set[int] = {pc for pc, _ in threads}
            if found is None:
                self._follow(0, i, text, i, threads, seen)
            if found is not None and not threads:
                break
            run.toil(len(threads) + 1)
            coming: list[tuple[int, int]] = []
            reached: set[int] = set()
            char = text[i : i + 1]
            for pc, start in threads:
                step = self._steps[pc]
                if step.is_end:
                    found = start, i
                    break
                if char and step.chars is not None and step.chars.has(char):
                    self._follow(pc + 1, start, text, i + 1, coming, reached)
            threads = coming
        return found

    def _follow(
        self,
        pc: int,
        start: int,
        text: str,
        at: int,
        threads: list[tuple[int, int]],
        seen: set[int],
    ) -> None:
        """Add a thread, and all that it turns into before it takes a character."""
        waiting = [pc]
        while waiting:
            here = waiting.pop()
            if here in seen:
                continue
            seen.add(here)
            step = self._steps[here]
            if step.ways:
                waiting.extend(reversed(step.ways))
            elif step.check:
                if _holds(step.check, text, at):
                    waiting.append(here + 1)
            else:
                threads.append((here, start))


def _holds(check: str, text: str, at: int) -> bool:
    match check:
        case "^":
            return at == 0
        case "$":
            return at == len(text)
        case "^m":
            return at == 0 or text[at - 1] == "\n"
        case "$m":
            return at == len(text) or text[at] == "\n"
    before, after = text[at - 1 : at] if at else "", text[at : at + 1]
    return ((before in _WORD) != (after in _WORD)) == (check == "b")


def _write(tree: Tree, steps: list[_Step]) -> None:
    if len(steps) > _SIZE_LIMIT:
        raise PatternError("error parsing regexp: expression too large")
    match tree:
        case Chars():
            steps.append(_Step(chars=tree))
        case Check(sort):
            steps.append(_Step(check=sort))
        case Row(parts):
            for part in parts:
                _write(part, steps)
        case Either(parts):
            _write_either(parts, steps)
        case Repeat():
            _write_repeat(tree, steps)


def _write_either(parts: tuple[Tree, ...], steps: list[_Step]) -> None:
    fork = len(steps)
    steps.append(_Step())
    ways, ends = [], []
    for part in parts:
        ways.append(len(steps))
        _write(part, steps)
        ends.append(len(steps))
        steps.append(_Step())
    steps[fork] = _Step(ways=tuple(ways))
    for end in ends:
        steps[end] = _Step(ways=(len(steps),))


def _write_repeat(tree: Repeat, steps: list[_Step]) -> None:
    """Write a repetition; one without an end comes back to itself, and may be left out if none is needed."""
    is_endless = tree.most < 0
    for _ in range(tree.least - is_endless):
        _write(tree.part, steps)
    forks = []
    for _ in range(tree.least == 0 if is_endless else tree.most - tree.least):
        forks.append(len(steps))
        steps.append(_Step())
        if not is_endless:
            _write(tree.part, steps)
    if is_endless:
        start = len(steps)
        _write(tree.part, steps)
        steps.append(_Step(ways=_order(start, len(steps) + 1, is_greedy=tree.is_greedy)))
    for fork in forks:
        steps[fork] = _Step(ways=_order(fork + 1, len(steps), is_greedy=tree.is_greedy))


def _order(inside: int, after: int, *, is_greedy: bool) -> tuple[int, int]:
    return (inside, after) if is_greedy else (after, inside)


def _count(tree: Tree) -> int:
    """Return how much is repeated; three or more if ``re`` is not to have it."""
    match tree:
        case Chars():
            return 3 if tree.categories else 0
        case Row(parts) | Either(parts):
            return sum(map(_count, parts))
        case Repeat(part=part):
            return 1 if isinstance(part, Chars) and not part.categories else 3
        case Check("B"):
            return 3  # of a text without characters, Python says another thing
    return 0


def _spell(tree: Tree) -> str:
    match tree:
        case Chars(ranges, _, is_negated):
            if not ranges:
                return r"[\s\S]" if is_negated else r"(?!)"
            inside = "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)
            return f"[{'^' if is_negated else ''}{inside}]"
        case Check(sort):
            return _PYTHON[sort]
        case Row(parts):
            return "".join(map(_spell, parts))
        case Either(parts):
            return f"(?:{'|'.join(map(_spell, parts))})"
        case Repeat(part, least, most, is_greedy):
            upper = "" if most < 0 else most
            return f"{_spell(part)}{{{least},{upper}}}{'' if is_greedy else '?'}"
    raise AssertionError(tree)


def compile_pattern(run: Run | None, text: str, *, says: str = "") -> Pattern:
    """Compile a pattern that an expression has worked out.

    Raises:
        CelError: it is none.
    """
    if run is not None:
        run.toil(10 * len(text))
    try:
        pattern = Pattern(text)
    except PatternError as error:
        raise CelError(says + str(error)) from None
    if run is not None:
        run.toil(10 * pattern.size)
    return pattern
