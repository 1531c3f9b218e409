"""The words of a text."""

from __future__ import annotations

import re
from typing import NamedTuple

from scheduler.devices.cel.errors import Complaint

_ESCAPE = r"\\(?:[abfnrtv\"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"
_STRING = "|".join(
    (
        r'[rR]"""(?:[^"]|"(?!""))*"""',
        r"[rR]'''(?:[^']|'(?!''))*'''",
        r'[rR]"[^"\n\r]*"',
        r"[rR]'[^'\n\r]*'",
        rf'"""(?:{_ESCAPE}|[^"\\]|"(?!""))*"""',
        rf"'''(?:{_ESCAPE}|[^'\\]|'(?!''))*'''",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
    )
)
# Each alternative begins with what no other begins with, or is tried after the longer ones: no text is slow to read.
_WORD = re.compile(
    rf"""(?P<space>[\t\ \r\n\f]+|//[^\n]*)
    |(?P<bytes>[bB](?:{_STRING.replace(" ", "[ ]")}))
    |(?P<string>{_STRING.replace(" ", "[ ]")})
    |(?P<double>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<uint>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])
    |(?P<int>0x[0-9a-fA-F]+|[0-9]+)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<quoted>`[A-Za-z0-9_.\-/\ ]+`)
    |(?P<sign>==|!=|<=|>=|&&|\|\||[<>\[\](){{}}.,\-!?:+*/%])""",
    re.VERBOSE | re.ASCII,
)
KEYWORDS = frozenset(["in", "true", "false", "null"])
_CHARS = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_ESCAPED = re.compile(_ESCAPE)


class Word(NamedTuple):
    """A word: its sort (a group of the pattern above, a sign itself, ``end``), its text, its place."""

    sort: str
    text: str
    at: int


def split_words(source: str) -> tuple[list[Word], list[Complaint]]:
    """Split a text; what is no word is left out and complained of."""
    words: list[Word] = []
    complaints: list[Complaint] = []
    at = 0
    while at < len(source):
        found = _WORD.match(source, at)
        if found is None:
            shown = _find_odd(source, at)
            complaints.append(Complaint(at, f"Syntax error: token recognition error at: '{shown}'"))
            at += len(shown)
            continue
        sort, text = str(found.lastgroup), found[0]
        if sort == "sign" or (sort == "name" and text in KEYWORDS):
            sort = text
        if sort != "space":
            words.append(Word(sort, text, at))
        at = found.end()
    words.append(Word("end", "<EOF>", len(source)))
    return words, complaints


def _find_odd(source: str, at: int) -> str:
    """Return what is no word: up to where it ceases to be the beginning of one."""
    char = source[at]
    if char in "|=&":
        return source[at : at + 2]
    if char not in "\"'`":
        return char
    end = at + 1
    while end < len(source) and source[end] not in "\n\r":
        if source[end] == "\\" and not _ESCAPED.match(source, end):
            return source[at : end + 2]
        end += 1 + (source[end] == "\\")
    return source[at : end + 1]


def read_string(text: str) -> str:
    """Return what a text in quotes says.

    Raises:
        ValueError: an escape names no character.
    """
    raw, body = _strip(text)
    if raw or "\\" not in body:
        return body
    return _ESCAPED.sub(lambda found: _read_char(found[0]), body)


def read_bytes(text: str) -> bytes:
    """Return the bytes that a text in quotes says, after its ``b``.

    Raises:
        ValueError: an escape has no place in bytes.
    """
    raw, body = _strip(text[1:])
    if raw or "\\" not in body:
        return body.encode()
    parts, at = [], 0
    for found in _ESCAPED.finditer(body):
        escape = found[0]
        if escape[1] in "uU":
            raise ValueError("unable to unescape string")
        parts += [body[at : found.start()].encode(), bytes([_read_code(escape)])]
        at = found.end()
    return b"".join([*parts, body[at:].encode()])


def _strip(text: str) -> tuple[bool, str]:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[0] in "rR"
    text = text[raw:]
    quotes = 3 if len(text) >= 6 and text[:3] in {'"""', "'''"} else 1
    return raw, text[quotes:-quotes]


def _read_char(escape: str) -> str:
    code = _read_code(escape)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise ValueError("invalid unicode code point")
    return chr(code)


def _read_code(escape: str) -> int:
    letter = escape[1]
    if letter in "xXuU":
        return int(f"0x{escape[2:]}", 0)
    if letter.isdigit():
        return int(escape[1:], 8)
    return _CHARS.get(letter, ord(letter))
