"""What a keeper of objects is, and one that says what is wrong with its objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from scheduler.api.door.notes import Note, QueueRead
from scheduler.errors import BadInput


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


def make_keeper(
    kind: type[Any],
    put: Callable[[Any], None],
    drop: Callable[[str], None],
    list_keys: Callable[[], Iterable[str]],
    note_time: Callable[[float], None],
) -> Keeper:
    """Make a keeper that says of each object what is wrong with it."""
    name = str(kind.__struct_config__.tag)

    def see(found: Any, now: float) -> Sequence[Note]:
        note_time(now)
        meta, problem = found.metadata, ""
        try:
            put(found)
        except BadInput as error:
            problem = str(error)
        key = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
        return (QueueRead(name, key, meta.generation, problem),)

    def gone(key: str, now: float) -> Sequence[Note]:
        note_time(now)
        drop(key)
        return ()

    return Keeper(see, gone, list_keys)
