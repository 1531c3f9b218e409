"""The base of all questions, and the types of long and of repeated answers."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Generic, TypeVar

import msgspec

A_co = TypeVar("A_co", covariant=True)
T = TypeVar("T")

# An answer that takes long: it yields after each piece of work, and returns the answer. Events may come in between.
Steps = Generator[None, None, T]
# An answer that is asked for again and again: each ``next`` has it as it is then, and looks only at what changed. It
# is about the state of when it was asked for first, and a fresh start of the engine ends that.
Readings = Iterator[T]


class Question(msgspec.Struct, Generic[A_co], frozen=True, gc=False):
    """A question to ``Engine.ask``, which returns an ``A_co``. It changes no decision."""
