"""Reads bytes into text, and text into documents.

Source: apimachinery's util/yaml, cli-runtime's visitors.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import yaml

from scheduler.documents import bounds, mistakes
from scheduler.documents.bounds import Unreadable
from scheduler.documents.building import Builder

# The longest marks come first: the mark of UTF-32 begins like that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_START = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_SPACE = re.compile(r"\s*")


class Document(NamedTuple):
    """One document of a text.

    Attributes:
        number: its place, from 1; empty documents count, too.
        value: its content; None for an empty document, and for one that cannot be read.
        problem: why it cannot be read; None if it can be read.
    """

    number: int
    value: Any
    problem: Unreadable | None = None


def decode(raw: bytes) -> str:
    """Decode the text of a file: from UTF-8, or from the encoding of the mark at its start, as PowerShell writes it.

    Raises:
        UnicodeError: the file has another encoding.
    """
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            return raw[len(mark) :].decode(encoding)
    return raw.decode("utf-8")


def read_first(text: str) -> Any:
    """Read the first document of a text; None if there is none.

    Raises:
        Unreadable: the document is neither YAML nor JSON, or is beyond the bounds.
    """
    for one in read_all(text):
        if one.problem is not None:
            raise one.problem
        return one.value
    return None


def read_all(text: str) -> Iterator[Document]:
    """Read every document. One that cannot be read does not hide the others."""
    if text.lstrip().startswith(("{", "[")):
        found = _read_json(text)
        if found is not None:
            yield from found
            return
    number = 0
    for start, chunk in _split_chunks(text):
        values: list[Any] = []
        try:
            for value in Builder(chunk).build_documents():
                values.append(value)
                yield Document(number + len(values), value)
        except Unreadable as error:
            values.append(None)
            yield Document(number + len(values), None, error)
        except (yaml.YAMLError, ValueError) as error:
            values.append(None)
            lines = text.count("\n", 0, start)
            yield Document(number + len(values), None, _make_problem(chunk, lines, error))
        number += max(len(values), 1)


def _make_problem(chunk: str, lines: int, error: Exception) -> Unreadable:
    """Make the error for a document that begins after so many lines."""
    if mistakes.is_template(chunk):
        return Unreadable(mistakes.TEMPLATE)
    return Unreadable(mistakes.explain_error(chunk, lines, error), is_form=True)


def _split_chunks(text: str) -> Iterator[tuple[int, str]]:
    """Split a text into documents, with the start of each."""
    start = 0
    for found in _START.finditer(text):
        # Text before the first separator, and directives before any separator, are no documents of their own.
        before = text[start : found.start()]
        if (start == 0 or "%" in before) and not _has_content(before):
            continue
        yield start, text[start : found.start()]
        start = found.start()
    yield start, text[start:]


def _has_content(text: str) -> bool:
    lines = (line.strip() for line in text.splitlines())
    return any(line and line[0] not in "#%" for line in lines)


def _read_json(text: str) -> list[Document] | None:
    """Read documents of JSON one after the other; None if the text is no JSON."""
    try:
        return [_check_bounds(1, msgspec.json.decode(text))]
    except RecursionError:
        return [Document(1, None, Unreadable(bounds.TOO_DEEP))]
    except msgspec.DecodeError:
        pass
    found: list[Document] = []
    decoder, at = json.JSONDecoder(), 0
    try:
        while (at := _skip_space(text, at)) < len(text):
            value, at = decoder.raw_decode(text, at)
            # A half of a character has no bytes: every API server refuses it.
            msgspec.json.encode(value)
            found.append(_check_bounds(len(found) + 1, value))
    except RecursionError:
        return [Document(1, None, Unreadable(bounds.TOO_DEEP))]
    except ValueError:
        return None  # YAML in braces
    return found


def _skip_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _check_bounds(number: int, value: Any) -> Document:
    try:
        bounds.Size().check(value)
    except Unreadable as error:
        return Document(number, None, error)
    return Document(number, value)
