"""Manifests from files: YAML or JSON, single objects, lists, several documents."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import yaml

from scheduler.errors import BadInput


# The C loader is ten times as fast; wheels of PyYAML carry it.
class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Kubernetes' YAML has no dates: a timestamp without quotes is text."""


_TIMESTAMP = "tag:yaml.org,2002:timestamp"
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}


def read(name: str, stdin: TextIO) -> list[dict[str, Any]]:
    """All objects of a file, or of standard input when ``name`` is ``-``; Lists are unfolded.

    Raises:
        BadInput: the file cannot be read or does not hold Kubernetes objects.
    """
    return list(_unfold(name, _documents(name, _text(name, stdin))))


def policies(name: str, stdin: TextIO) -> list[dict[str, Any]]:
    """BalancePolicies of a file; one that is only a spec is named after the file.

    Raises:
        BadInput: as ``read``.
    """
    found = []
    for document in _documents(name, _text(name, stdin)):
        if isinstance(document, dict) and "kind" not in document:
            body = {"kind": "BalancePolicy", "metadata": {"name": Path(name).stem}}
            found.append({**body, "spec": document})
        else:
            found += _unfold(name, [document])
    return found


def _text(name: str, stdin: TextIO) -> str:
    try:
        return stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(name, str(error)) from error


def _documents(name: str, text: str) -> list[Any]:
    if text.lstrip().startswith("{"):
        try:
            return [json.loads(text)]
        except ValueError:
            pass  # several JSON documents, or YAML in braces: YAML reads both
    try:
        return [
            document for document in yaml.load_all(text, Loader=_Loader) if document is not None
        ]
    except (yaml.YAMLError, ValueError) as error:
        raise BadInput(name, f"neither YAML nor JSON: {error}") from error


def _unfold(name: str, documents: list[Any]) -> Iterator[dict[str, Any]]:
    for document in documents:
        if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
            raise BadInput(name, "holds a document that is no Kubernetes object: kind is missing")
        if document["kind"].endswith("List"):
            items = document.get("items")
            if not isinstance(items, list | None):
                raise BadInput(name, f"{document['kind']}: items must be a list, not {items!r}")
            kind = document["kind"].removesuffix("List")
            for item in items or ():
                if isinstance(item, dict) and kind:
                    # Items of a typed list need not repeat their kind.
                    item.setdefault("kind", kind)
                yield from _unfold(name, [item])
        else:
            yield document
