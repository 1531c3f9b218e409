"""What a keeper of objects is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from scheduler.api.door.notes import Note


class Keeper(NamedTuple):
    """The functions that keep the objects of one kind.

    Attributes:
        see: takes an object that was added or changed, and the time.
        gone: takes the key of an object that was deleted, and the time.
        get_keys: returns the keys of all objects that are kept. It is not called for rare kinds: their watch itself
            knows which objects there were.
    """

    see: Callable[[Any, float], Sequence[Note]]
    gone: Callable[[str, float], Sequence[Note]]
    get_keys: Callable[[], Iterable[str]]
