"""Admissions decide whether an entity may be tried at all.

The pods of an entity that an admission holds get no ``Unschedulable`` condition: a new node would not help them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from scheduler.plugins.contract import Hint
from scheduler.state.entities import AnyEntity, Entity
from scheduler.tenancy.kai import tree
from scheduler.tenancy.kai.accounts import Accounts
from scheduler.tenancy.kai.rules import Reason
from scheduler.waiting.hooks import Hooks

# So many of those that were held lately are remembered until somebody says so.
_NEW_MOST = 4096


class Held(NamedTuple):
    """An entity may not be tried yet.

    Attributes:
        by: the name of the admission that holds the entity.
        until: the change after which the admissions are asked again; None: a change of the entity itself.
        why: what is missing, for people.
    """

    by: str
    until: Hint | None = None
    why: str = ""


class Admission(Protocol):
    """Answers whether an entity may be tried. It is asked whenever an entity would become active."""

    def judge(self, entity: AnyEntity) -> Held | None:
        """Return why the entity may not be tried; None when it may."""


class SchedulingGates:
    """Holds a pod until other programs have removed all its scheduling gates, and several pods until all are free."""

    _HELD = Held("SchedulingGates", why="Scheduling is blocked due to non-empty scheduling gates")

    def judge(self, entity: AnyEntity) -> Held | None:
        """Hold an entity that has a gate."""
        return self._HELD if entity.gated else None


class Completeness:
    """Holds a group until it is described, and enough of its pods exist to be placed at once."""

    def judge(self, entity: AnyEntity) -> Held | None:
        """Hold a group that lacks something, or with which something is wrong."""
        if not isinstance(entity, Entity):
            return None
        if entity.problem is not None:
            return Held("Completeness", why=str(entity.problem))
        return Held("Completeness", why=entity.lacks) if entity.lacks else None


_PROBLEMS = {
    tree.MISSING: "there is no queue {}",
    tree.INNER: "there are queues within queue {}, so no pod starts in it",
    tree.ORPHAN: "a queue above queue {} does not exist",
    tree.CYCLE: "the queues above queue {} are a cycle, or too many",
    tree.BAD: "queue {}, or one above it, has a mistake",
}


def say_problem(problem: str, name: str) -> str:
    """Say why one of KAI's queues starts no pods: a word of the tree in full."""
    return _PROBLEMS[problem].format(name)


class InQueue:
    """Holds a pod or group whose queue, one of KAI's, does not exist, starts no pods, or is another scheduler's.

    Attributes:
        accounts: those of the queues.
    """

    def __init__(self, accounts: Accounts) -> None:
        self.accounts = accounts
        # What was held since the last call of ``take_held``, by uid.
        self._new: dict[str, Held] = {}

    def take_held(self) -> dict[str, Held]:
        """Return by uid what was held since the last call."""
        taken, self._new = self._new, {}
        return taken

    def judge(self, entity: AnyEntity) -> Held | None:
        """Hold what names such a queue; whoever sees the queues change asks again."""
        queues = self.accounts.tree
        name = self.accounts.find_terms_of(entity).queue if len(queues) else ""
        if not name:
            return None
        held = self._judge_queue(name)
        if held is None or (held.by == Reason.RIVAL and not self.accounts.is_rival_known):
            return held
        if len(self._new) >= _NEW_MOST:
            # A replica that does not lead takes nothing of it.
            del self._new[next(iter(self._new))]
        self._new[entity.uid] = held
        return held

    def _judge_queue(self, name: str) -> Held | None:
        if self.accounts.rival:
            text = f"{self.accounts.rival}; pods in queue {name} wait until it has stopped"
            return Held(Reason.RIVAL, why=f"{Reason.RIVAL}: {text}")
        queues = self.accounts.tree
        queues.settle()
        problem = queues.find_problem(name)
        if not problem:
            return None
        return Held(Reason.NO_QUEUE, why=f"{Reason.NO_QUEUE}: {say_problem(problem, name)}")


ADMISSIONS: tuple[Admission, ...] = (SchedulingGates(), Completeness())


class Woken(NamedTuple):
    """Stands on the hooks for a held entity, where kinds of parked pods stand, too."""

    uid: str


class Door:
    """Asks all admissions, and registers the change after which a held entity is asked about again."""

    def __init__(self, admissions: Sequence[Admission], hooks: Hooks) -> None:
        self._admissions, self._hooks = admissions, hooks

    def judge(self, entity: AnyEntity) -> Held | None:
        """Return why an entity may not be tried; None when all admissions say yes."""
        for admission in self._admissions:
            if (held := admission.judge(entity)) is not None:
                return held
        return None

    def hold(self, uid: str, held: Held) -> None:
        """Register the change that a held entity waits for."""
        if held.until is not None:
            self._hooks.hang(Woken(uid), (held.until,))

    def release(self, uid: str) -> None:
        """Remove what was registered for an entity that is no longer held."""
        self._hooks.take_off(Woken(uid))
