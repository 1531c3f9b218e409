"""Manifests from files: YAML or JSON, single objects, lists, several documents."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import msgspec
import yaml

from scheduler.errors import BadInput, one_line, unreadable

# Objects of Kubernetes are not nested half as deep.
_DEPTH_MAX = 200
# Values that aliases or merge keys repeat; a few lines can ask for billions.
_REPEATED_MAX = 100_000
# Mappings that one merge key names.
_MERGED_MAX = 100
_MERGE = "tag:yaml.org,2002:merge"
# How JSON may spell a half of a character.
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_TOO_DEEP = f"is nested more than {_DEPTH_MAX} levels deep, or holds itself"
_REPEATED = f"aliases repeat more than {_REPEATED_MAX} values, the most that is read"


class Placed(NamedTuple):
    """An object, and where in its file it stands, such as ``document 3, item 2``."""

    body: dict[str, Any]
    place: str


class _TooMuchError(Exception):
    """A document is larger than it looks, or nested too deep."""


# The C loader is ten times as fast; wheels of PyYAML carry it.
class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Kubernetes' YAML has no dates: a timestamp without quotes is text."""

    _merged = 0

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Put in place what merge keys (``<<``) name: every entry, also one that is named before, so they add up."""
        named = [value for key, value in node.value if key.tag == _MERGE]
        if not named:
            return
        if any(isinstance(n, yaml.SequenceNode) and len(n.value) > _MERGED_MAX for n in named):
            raise _TooMuchError(f"a merge key names more than {_MERGED_MAX} mappings")
        own = len(node.value)
        super().flatten_mapping(node)
        self._merged += len(node.value) - own
        if self._merged > _REPEATED_MAX:
            raise _TooMuchError(_REPEATED)


_TIMESTAMP = "tag:yaml.org,2002:timestamp"
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}


def read(name: str, stdin: TextIO) -> list[dict[str, Any]]:
    """All objects of a file, or of standard input when ``name`` is ``-``; Lists are unfolded.

    Raises:
        BadInput: the file cannot be read, or is neither YAML nor JSON within the bounds.
    """
    return [body for body, _ in placed(name, stdin)]


def placed(name: str, stdin: TextIO, where: str = "") -> list[Placed]:
    """As ``read``, with where each stands: what has no name can be told by its place alone.

    Raises:
        BadInput: as ``read``; calls the file ``where`` if that is given, such as ``--add-node FILE``.
    """
    where = where or name
    documents = _documents(where, _text(name, stdin, where))
    return [one for place, document in documents for one in _unfold(where, document, place)]


def policies(name: str, stdin: TextIO, where: str) -> list[Placed]:
    """BalancePolicies of a file; one that is only a spec is named after the file.

    Raises:
        BadInput: as ``placed``.
    """
    found: list[Placed] = []
    for place, document in _documents(where, _text(name, stdin, where)):
        if isinstance(document, dict) and "kind" not in document:
            body = {"kind": "BalancePolicy", "metadata": {"name": Path(name).stem}}
            found.append(Placed({**body, "spec": document}, place))
        else:
            found += _unfold(where, document, place)
    return found


def _text(name: str, stdin: TextIO, where: str) -> str:
    try:
        return stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise BadInput(where, unreadable(error)) from error


def _documents(where: str, text: str) -> list[tuple[str, Any]]:
    """Each document that holds anything, and its place: empty ones count."""
    try:
        documents = _parsed(text)
        for document in documents:
            _Size().check(document)
    except _TooMuchError as error:
        raise BadInput(where, str(error)) from error
    except RecursionError as error:
        raise BadInput(where, _TOO_DEEP) from error
    except (yaml.YAMLError, ValueError) as error:
        raise BadInput(where, f"neither YAML nor JSON: {one_line(error)}") from error
    return [(f"document {i}", one) for i, one in enumerate(documents, 1) if one is not None]


def _parsed(text: str) -> list[Any]:
    if text.lstrip().startswith("{"):
        try:
            document = json.loads(text)
            if _HALF.search(text):
                # A half of a character has no bytes: no API server takes it.
                msgspec.json.encode(document)
        except ValueError:
            pass  # several JSON documents, or YAML in braces: YAML reads both
        else:
            return [document]
    return list(yaml.load_all(text, Loader=_Loader))


class _Size:
    """How large a document is once every alias is a copy, and how deep; each value is looked at once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, int]] = {}
        self._written = 0

    def check(self, document: Any) -> None:
        """Refuse a document beyond the bounds.

        Raises:
            _TooMuchError: says which bound.
        """
        if isinstance(document, dict | list):
            self._of(document, 0)

    def _of(self, value: dict[Any, Any] | list[Any], level: int) -> tuple[int, int]:
        """The number of values in one, itself included, and how many levels they have."""
        if found := self._known.get(id(value)):
            return found
        if level > _DEPTH_MAX:
            raise _TooMuchError(_TOO_DEEP)
        inner = value.values() if isinstance(value, dict) else value
        held = [one for one in inner if isinstance(one, dict | list)]
        size, depth = 1 + len(value) - len(held), 0
        self._written += size
        for one in held:
            more, deeper = self._of(one, level + 1)
            size, depth = size + more, max(depth, deeper + 1)
        if depth > _DEPTH_MAX:
            raise _TooMuchError(_TOO_DEEP)
        if size - self._written > _REPEATED_MAX:
            raise _TooMuchError(_REPEATED)
        self._known[id(value)] = size, depth
        return size, depth


def _unfold(where: str, document: Any, place: str) -> Iterator[Placed]:
    """The objects. What is none, or has no kind, is handed on: it is one mistake among objects that are good."""
    if not isinstance(document, dict):
        yield Placed({}, place)
    elif not str(document.get("kind")).endswith("List"):
        yield Placed(document, place)
    else:
        items = document.get("items")
        if not isinstance(items, list | None):
            raise BadInput(where, f"{document['kind']}: items must be a list, not {items!r}")
        kind = document["kind"].removesuffix("List")
        for i, item in enumerate(items or (), 1):
            if isinstance(item, dict) and kind:
                # Items of a typed list need not repeat their kind.
                item.setdefault("kind", kind)
            yield from _unfold(where, item, f"{place}, item {i}")
