"""Functions that search texts for patterns."""

from __future__ import annotations

from math import ceil
from typing import Any

from scheduler.devices.cel.errors import CelError
from scheduler.devices.cel.matching import Pattern, compile_pattern
from scheduler.devices.cel.overloads import Library, Work
from scheduler.devices.cel.running import Run
from scheduler.devices.cel.values import measure


def _matches(run: Run, text: str, pattern: str) -> bool:
    return compile_pattern(run, pattern).matches(run, text)


def _find(run: Run, text: str, pattern: str) -> str:
    return _find_with(compile_pattern(run, pattern, says="Illegal regex: "), run, text)


def _find_all(run: Run, text: str, pattern: str, limit: int = -1) -> list[str]:
    return compile_pattern(run, pattern, says="Illegal regex: ").find_all(run, text, limit)


def _find_with(pattern: Pattern, run: Run, text: str) -> str:
    span = pattern.search(run, text, 0)
    return text[span[0] : span[1]] if span else ""


def _refuse(_run: Run, text: Any, *_rest: Any) -> Any:
    raise CelError("no such overload" if type(text) is str else "no such overload: matches")


def prepare(function: str, pattern: Pattern) -> Work:
    """Return what a function does whose pattern is known beforehand."""
    match function:
        case "matches":
            work: Work = lambda run, text, _: pattern.matches(run, text)  # noqa: E731
        case "find":
            work = lambda run, text, _: _find_with(pattern, run, text)  # noqa: E731
        case _:
            work = lambda run, text, _, limit=-1: pattern.find_all(run, text, limit)  # noqa: E731

    def search(run: Run, text: Any, *rest: Any) -> Any:
        if type(text) is not str:
            raise CelError("no such overload")
        return work(run, text, *rest)

    return search


def _cost(text: Any, pattern: Any, *_: Any) -> int:
    return ceil((1 + measure(text)) * 0.1) * ceil(measure(pattern) * 0.25)


PATTERNED = frozenset(["matches", "find", "findAll"])
REGEXES = Library(
    functions={"matches(string, string): bool": _matches},
    members={
        "matches(string, string): bool": _matches,
        "find(string, string): string": _find,
        "findAll(string, string): list(string)": _find_all,
        "findAll(string, string, int): list(string)": _find_all,
    },
    costs=dict.fromkeys(PATTERNED, _cost),
    otherwise={"matches": _refuse},
)
