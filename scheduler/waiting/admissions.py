"""Who may be tried at all. What is held here has no condition that says so: no new node would help it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from scheduler.plugins.contract import Hint
from scheduler.state.entities import AnyEntity
from scheduler.waiting.hooks import Hooks


class Held(NamedTuple):
    """An entity may not be tried yet.

    Attributes:
        by: the name of the admission that holds it.
        until: the change after which it is to be asked again; None: a change of the entity itself.
    """

    by: str
    until: Hint | None = None


class Admission(Protocol):
    """Answers whether an entity may be tried; asked again whenever it would become active."""

    def judge(self, entity: AnyEntity) -> Held | None:
        """Why not; None where it may."""


class SchedulingGates:
    """Gates that others take off the pod; of several pods, off each of them."""

    _HELD = Held("SchedulingGates")

    def judge(self, entity: AnyEntity) -> Held | None:
        """Until its last gate is removed."""
        return self._HELD if entity.gated else None


class Completeness:
    """As many members as must have a node at once."""

    _HELD = Held("Completeness")

    def judge(self, entity: AnyEntity) -> Held | None:
        """Until so many are there."""
        least = entity.minimum
        return self._HELD if least > 1 and len(entity.members) < least else None


ADMISSIONS: tuple[Admission, ...] = (SchedulingGates(), Completeness())


class Woken(NamedTuple):
    """What hangs on the hooks for a held entity, among the kinds of those that are parked."""

    uid: str


class Door:
    """The admissions that all have to say yes, and what wakes those that one of them holds."""

    def __init__(self, admissions: Sequence[Admission], hooks: Hooks) -> None:
        self._admissions, self._hooks = admissions, hooks

    def judge(self, entity: AnyEntity) -> Held | None:
        """Why an entity may not be tried; None where it may."""
        for admission in self._admissions:
            if (held := admission.judge(entity)) is not None:
                return held
        return None

    def hold(self, uid: str, held: Held) -> None:
        """An entity is held, and woken by what it is held until."""
        if held.until is not None:
            self._hooks.hang(Woken(uid), (held.until,))

    def let_go(self, uid: str) -> None:
        """An entity is held no longer."""
        self._hooks.take_off(Woken(uid))
