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
    """A question to ``Engine.ask``, which returns an ``A_co``. It changes no decision, unless it is a ``Foresight``."""

    @property
    def is_about_facts(self) -> bool:
        """Whether the answer is the same while a decision is under way, as no trial changes it."""
        return False


class Lookup(Question[A_co], Generic[A_co], frozen=True):
    """A question about what was seen of an object or decided for a pod.

    No answer depends on what waits, so the groups that have changed need not be formed first. The operator puts such
    questions with every bind: to form a group of 500 pods for each of their binds would take seconds.
    """


class Fact(Lookup[A_co], Generic[A_co], frozen=True):
    """A question about something that no trial changes.

    Tasks beside the loop put it often, or from another thread. So a decision that has paused need not come to its end
    first: only the thread that has begun it may go on with it.
    """

    @property
    def is_about_facts(self) -> bool:
        """True."""
        return True


class Foresight(Question[A_co], Generic[A_co], frozen=True):
    """A question about what would be decided now.

    The engine gets ready for it as for a decision at this time: it learns the demand, and ends the backoff of pods
    whose time has come. So later decisions may differ from those without the question. Only commands that have an
    engine of their own put such questions; the operator does not.
    """
