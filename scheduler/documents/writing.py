"""Writes values as YAML that kubectl reads back unchanged; a text that looks like another type is quoted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from scheduler.documents import scalars


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:
        """Ignore aliases: a value that occurs twice is written twice."""
        del data
        return True


def _represent_text(dumper: Any, value: str) -> yaml.ScalarNode:
    is_text = isinstance(scalars.resolve(value), str) and value not in scalars.LETTERS
    style = None if is_text else "'"
    node: yaml.ScalarNode = dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)
    return node


_Dumper.add_representer(str, _represent_text)


def dump(value: Any) -> str:
    """Write one document."""
    return dump_all([value])


def dump_all(values: Iterable[Any]) -> str:
    """Write a document for each value."""
    return str(yaml.dump_all(values, Dumper=_Dumper, sort_keys=False))
