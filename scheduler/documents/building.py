"""Builds values from the events of a parser.

PyYAML would first make nodes from the events, with a mark on each, and then values from these: that takes five times
as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import yaml

from scheduler.documents import bounds, scalars
from scheduler.documents.bounds import Unreadable

_NONE = object()
_MERGE = object()


class Builder:
    """Builds the documents of a text."""

    def __init__(self, text: str) -> None:
        # Wheels of PyYAML have the parser in C, which is ten times as fast.
        self._next: Callable[[], Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(
            text
        ).get_event
        self._handlers: dict[type, Callable[[Any], None]] = {
            yaml.ScalarEvent: self._add_scalar,
            yaml.AliasEvent: self._add_alias,
            yaml.MappingStartEvent: self._start,
            yaml.SequenceStartEvent: self._start,
            yaml.MappingEndEvent: self._end,
            yaml.SequenceEndEvent: self._end,
        }
        # Most scalars come again and again: each is resolved and kept once.
        self._scalars: dict[str, Any] = {}
        self._keys: dict[str, Any] = {}

    def build_documents(self) -> Iterator[Any]:
        """Build the value of each document.

        Raises:
            Unreadable: a document is beyond a bound.
            yaml.YAMLError, ValueError: a document is no YAML, or has values that JSON cannot express.
        """
        while type(event := self._next()) is not yaml.StreamEndEvent:
            if type(event) is yaml.DocumentStartEvent:
                yield self._build_document()

    def _build_document(self) -> Any:
        self._root: Any = None
        # The mapping or list that is being filled, the key that waits for its value, and the same of those around them.
        self._holder: Any = None
        self._key: Any = _NONE
        self._outer: list[tuple[Any, Any]] = []
        self._anchors: dict[str, Any] = {}
        self._merged, self._is_repeated = 0, False
        handlers = self._handlers
        while type(event := self._next()) is not yaml.DocumentEndEvent:
            handlers[type(event)](event)
        if self._is_repeated:
            bounds.Size().check(self._root)
        return self._root

    def _add_scalar(self, event: yaml.ScalarEvent) -> None:
        text, is_plain = event.value, event.implicit[0] and event.tag is None
        if self._key is _NONE and type(self._holder) is dict:
            value = (
                self._make_key(text)
                if is_plain
                else scalars.write_key(scalars.resolve_tagged(event))
            )
            self._key = value
        else:
            value = self._make_value(text) if is_plain else scalars.resolve_tagged(event)
            self._put(value)
        if event.anchor:
            self._anchors[event.anchor] = value

    def _add_alias(self, event: yaml.AliasEvent) -> None:
        if event.anchor not in self._anchors:
            raise ValueError(f"unknown anchor '{event.anchor}' referenced")
        value, self._is_repeated = self._anchors[event.anchor], True
        if self._key is _NONE and type(self._holder) is dict:
            self._key = scalars.write_key(value)
        else:
            self._put(value)

    def _start(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        if self._key is _NONE and type(self._holder) is dict:
            raise ValueError("a mapping or a list cannot be a key")
        if len(self._outer) > bounds.DEPTH_MAX:
            raise Unreadable(bounds.TOO_DEEP)
        value: Any = {} if type(event) is yaml.MappingStartEvent else []
        if event.anchor:
            self._anchors[event.anchor] = value
        key = self._key
        if key is not _MERGE:
            self._put(value)
        self._outer.append((self._holder, key))
        self._holder, self._key = value, _NONE

    def _end(self, _: yaml.MappingEndEvent | yaml.SequenceEndEvent) -> None:
        ended = self._holder
        self._holder, key = self._outer.pop()
        self._key = _NONE
        if key is _MERGE:
            self._merge(ended)

    def _put(self, value: Any) -> None:
        holder = self._holder
        if type(holder) is list:
            holder.append(value)
        elif holder is None:
            self._root = value
        elif self._key is _MERGE:
            self._key = _NONE
            self._merge(value)
        else:
            holder[self._key] = value
            self._key = _NONE

    def _make_key(self, text: str) -> Any:
        known = self._keys.get(text)
        if known is None:
            known = _MERGE if text == "<<" else scalars.write_key(scalars.resolve(text))
            self._keys[text] = known
        return known

    def _make_value(self, text: str) -> Any:
        known = self._scalars.get(text, _NONE)
        if known is _NONE:
            known = self._scalars[text] = scalars.convert_to_json(scalars.resolve(text))
        return known

    def _merge(self, given: Any) -> None:
        """Put the entries of a merge key in place. A later entry replaces an earlier one, whichever key names it."""
        named = given if isinstance(given, list) else [given]
        if len(named) > bounds.MERGED_MAX:
            raise Unreadable(f"a merge key names more than {bounds.MERGED_MAX} mappings")
        if not all(isinstance(one, dict) for one in named):
            raise ValueError("a merge key must name a mapping or a list of mappings")
        for one in reversed(named):
            self._merged += len(one)
            if self._merged > bounds.REPEATED_MAX:
                raise Unreadable(bounds.REPEATED)
            self._holder.update(one)
        self._is_repeated = True
