"""Functions of texts."""

from __future__ import annotations

from math import ceil
from typing import Any

from scheduler.devices.cel.errors import CelError
from scheduler.devices.cel.formatting import format_text
from scheduler.devices.cel.operators import RECEIVERS
from scheduler.devices.cel.overloads import Library, Work, by_length, cost_traversal
from scheduler.devices.cel.running import Run
from scheduler.devices.cel.values import show

_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
# What Unicode calls white space.
_SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
_QUOTED = {
    ord(char): escape
    for char, escape in zip(
        '\a\b\f\n\r\t\v\\"',
        ("\\a", "\\b", "\\f", "\\n", "\\r", "\\t", "\\v", "\\\\", '\\"'),
        strict=True,
    )
}


def _bare(_run: Run, *_args: Any) -> Any:
    raise CelError("no such overload")


def _check(index: int) -> None:
    if index < 0:
        raise CelError(f"index out of range: {index}")


def _char_at(_run: Run, text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise CelError(f"index out of range: {index}")
    return text[index : index + 1]


def _index_of(_run: Run, text: str, part: str, start: int = 0) -> int:
    _check(start)
    if not part:
        return min(start, len(text))
    return text.find(part, start) if start < len(text) else -1


def _last_index_of(_run: Run, text: str, part: str) -> int:
    return text.rfind(part)


def _last_index_of_from(_run: Run, text: str, part: str, start: int) -> int:
    _check(start)
    if not part:
        return min(start, len(text))
    return text.rfind(part, 0, start + len(part)) if start < len(text) else -1


def _replace(run: Run, text: str, old: str, new: str, count: int = -1) -> str:
    found = len(text) + 1 if not old else text.count(old)
    if 0 <= count < found:
        found = count
    run.toil(max(0, found * (len(new) - len(old))) // 10 + len(text) // 10)
    return text.replace(old, new, found)


def _split(run: Run, text: str, separator: str, count: int = -1) -> list[str]:
    run.toil(len(text))
    if count == 0:
        return []
    if not separator:
        if count < 0 or count > len(text):
            return list(text)
        return [*text[: count - 1], text[count - 1 :]]
    return text.split(separator, count - 1 if count > 0 else -1)


def _substring(_run: Run, text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    return text[start:]


def _substring_to(_run: Run, text: str, start: int, end: int) -> str:
    if start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise CelError(f"index out of range: {index}")
    return text[start:end]


def _join(run: Run, texts: list[Any], separator: str = "") -> str:
    run.toil(len(texts))
    for text in texts:
        if type(text) is not str:
            run.charge(1)
            raise CelError(f"join: invalid input: {show(text)}")
    run.charge(ceil((sum(map(len, texts)) + len(separator) * max(0, len(texts) - 1)) * 0.2))
    return separator.join(texts)


def _contains(_run: Run, text: str, part: str) -> bool:
    return part in text


_SIZED = ("bytes", "list(A)", "map(A, B)", "string")


def _size(_run: Run, value: Any) -> int:
    return len(value)


def _refuse_size(_run: Run, value: Any) -> Any:
    raise CelError("no such overload" if type(value) in RECEIVERS else "no such overload: size")


def _cost_contains(text: str, part: str) -> int:
    return ceil(_length(text) * 0.1) * ceil(_length(part) * 0.1)


def _length(value: Any) -> int:
    return len(value) if type(value) in {str, bytes, list, dict} else 1


def _cost_join(texts: Any, separator: Any = "") -> int:
    """Return the cost of what cannot be joined; the rest is counted when the length of the result is known."""
    return int(
        type(texts) is not list
        or type(separator) is not str
        or (texts != [] and type(texts[0]) is not str)
    )


_STARTS: dict[str, Work] = {
    "startsWith(string, string): bool": lambda _, text, part: text.startswith(part),
    "endsWith(string, string): bool": lambda _, text, part: text.endswith(part),
    "contains(string, string): bool": _contains,
}

STRINGS = Library(
    functions={
        "strings.quote(string): string": lambda _, text: f'"{text.translate(_QUOTED)}"',
        **{f"size({kind}): int": _size for kind in _SIZED},
    },
    members={
        **{f"size({kind}): int": _size for kind in _SIZED},
        **_STARTS,
        "charAt(string, int): string": _char_at,
        "indexOf(string, string): int": _index_of,
        "indexOf(string, string, int): int": _index_of,
        "lastIndexOf(string, string): int": _last_index_of,
        "lastIndexOf(string, string, int): int": _last_index_of_from,
        "lowerAscii(string): string": lambda _, text: text.translate(_LOWER),
        "upperAscii(string): string": lambda _, text: text.translate(_UPPER),
        "replace(string, string, string): string": _replace,
        "replace(string, string, string, int): string": _replace,
        "split(string, string): list(string)": _split,
        "split(string, string, int): list(string)": _split,
        "substring(string, int): string": _substring,
        "substring(string, int, int): string": _substring_to,
        "trim(string): string": lambda _, text: text.strip(_SPACES),
        "join(list(string)): string": _join,
        "join(list(string), string): string": _join,
        "format(string, list(dyn)): string": format_text,
    },
    costs={
        "startsWith": lambda _, part: ceil(_length(part) * 0.1),
        "endsWith": lambda _, part: ceil(_length(part) * 0.1),
        "contains": _cost_contains,
        **dict.fromkeys(
            ("lowerAscii", "upperAscii", "substring", "trim", "format", "strings.quote"),
            by_length(),
        ),
        "replace": by_length(0.2),
        "split": by_length(0.2),
        "join": _cost_join,
        **dict.fromkeys(("indexOf", "lastIndexOf"), cost_traversal),
    },
    otherwise={
        "size": _refuse_size,
        **dict.fromkeys(("startsWith", "endsWith", "contains"), _bare),
    },
)
