"""Whose turn it would be if victims were gone: who comes before the pods that need the room is no victim of theirs.

Else the victim, which waits then, would be next, take the room back, and be sent away again without end.

Source: KAI-Scheduler (2026-03), ``actions/common/action.go``: victims are placed again in the order of the queues.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from heapq import merge
from typing import Any, NamedTuple

from scheduler.api.queues.kai import UNLIMITED, Vector
from scheduler.disruption.group_units import Unit
from scheduler.state.trials import Trial
from scheduler.tenancy.kai.accounts import Accounts
from scheduler.tenancy.kai.ordering import comes_before, pick
from scheduler.tenancy.kai.rules import Taker, find_over
from scheduler.tenancy.kai.tree import Queue
from scheduler.tenancy.kai.turns import BELOW, JUST

# So many of those that wait are looked at before the taker has its turn.
_TURNS_MAX = 256


class Rival(NamedTuple):
    """Who waits in a queue.

    Attributes:
        place: its place in its queue, the lowest first.
        wants: what its next turn wants.
        uid: of an entity that waits; empty for a victim.
        unit: if it is a victim: what goes; else None.
    """

    place: tuple[Any, ...]
    wants: Vector
    uid: str = ""
    unit: Unit | None = None


# By queue, in the order of the queue.
Rivals = Mapping[str, Sequence[Rival]]


class TakersQuota:
    """What the queues of a taker have room for, and whose turn it is, in the open trial."""

    def __init__(self, taker: Taker, uid: str, accounts: Accounts, rivals: Rivals) -> None:
        """``uid``: that of the entity that takes; ``rivals``: all that wait, itself among them."""
        self._taker, self._uid = taker, uid
        self._accounts, self._rivals = accounts, rivals

    def open(self, leaving: Sequence[str]) -> AbstractContextManager[None]:
        """Let pods that are on their way out count as there, until the trial takes them away."""
        return self._accounts.lift_leaving(leaving)

    def has_room(self) -> bool:
        """Whether the queues have room for the pods, which are not placed yet."""
        return find_over(self._taker) is None

    def is_kept(self) -> bool:
        """Whether no queue of the pods has more than it may have, now that they are placed."""
        return all(
            most == UNLIMITED or held <= most
            for queue in self._taker.queue.path
            for held, most in zip(queue.figures.allocated, queue.defined.limit, strict=True)
        )

    def put_back_first(self, trial: Trial, units: Sequence[Unit]) -> list[Unit]:
        """Put back who has its turn before the taker; return the others."""
        victims: dict[str, list[Rival]] = {}
        for unit in units:
            queue = self._accounts.find_terms(unit.pods[0]).queue
            victims.setdefault(queue, []).append(self._make_rival(unit))
        # Of each queue: who waits, and who would wait.
        lines = {
            name: merge(
                self._rivals.get(name, ()),
                sorted(victims.get(name, ()), key=_get_place),
                key=_get_place,
            )
            for name in {**self._rivals, **victims}
        }
        heads = {name: one for name, line in lines.items() if (one := next(line, None))}
        back: set[int] = set()
        for _ in range(_TURNS_MAX):
            name = pick(self._accounts.tree.queues, heads, self._comes_before)
            if name is None or heads[name].uid == self._uid:
                break
            one = heads.pop(name)
            if one.unit is not None:
                for pod in one.unit.pods:
                    trial.put_back(pod.uid)
                back.add(id(one.unit))
            if (following := next(lines[name], None)) is not None:
                heads[name] = following
        return [unit for unit in units if id(unit) not in back]

    def _comes_before(self, one: tuple[Queue, Rival], other: tuple[Queue, Rival]) -> bool:
        wants = one[1].wants, other[1].wants
        return comes_before(one[0], other[0], wants, self._accounts.total)

    def _make_rival(self, unit: Unit) -> Rival:
        """Say what a victim would want if it waited."""
        terms = self._accounts.find_terms(unit.pods[0])
        wants = self._accounts.sum_wants(unit.pods)
        fill = JUST if unit.is_extra else BELOW
        oldest = min(unit.pods, key=lambda pod: (pod.created, pod.order))
        return Rival((-terms.priority, fill, oldest.created, oldest.order), wants, unit=unit)


def _get_place(one: Rival) -> tuple[Any, ...]:
    return one.place
