"""Cycles over all trees in which somebody may get quota, until nobody gets any more.

Kueue deals with one workload of each queue and then begins anew; whoever is admitted or parked makes room for the next
one. Here cycles follow each other at once as long as anything comes of them, so all get quota who could get it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from scheduler.tenancy.assignments import Assignment
from scheduler.tenancy.concessions import note_given_way
from scheduler.tenancy.tenants import Tenants
from scheduler.tenancy.turns import Turn
from scheduler.tenancy.victims import Victim
from scheduler.tenancy.works import Work


class Round(NamedTuple):
    """What came of a cycle over one tree.

    Attributes:
        admitted: who got quota, and in which flavors.
        preempted: who is asked to go, for whom and why.
        left: those who were tried and got nothing; each knows why.
    """

    admitted: list[tuple[Work, Assignment]]
    preempted: list[tuple[Victim, Work]]
    left: list[Work]


def run_rounds(
    tenants: Tenants, now: float, goes_on: Callable[[], bool] = lambda: True
) -> Iterator[Round]:
    """Run cycles until nothing comes of any; yield what came of each.

    ``goes_on`` says before a cycle whether there is time for it. Where there is none, another call goes on later,
    whatever has happened until then.
    """
    due_queues, index = tenants.due_queues, tenants.index
    for turn in tenants.list_due(now):
        is_begun = False
        while not turn.is_over(heads := tenants.find_heads(turn.tree)):
            if turn.may_be_left and not goes_on():
                if is_begun:
                    due_queues.leave(turn, index.n_changes)
                return
            is_begun = True
            yield _run_cycle(tenants, turn, heads, now)
        due_queues.end(turn)


def _run_cycle(tenants: Tenants, turn: Turn, heads: list[Work], now: float) -> Round:
    outcome = tenants.run_cycle(turn.tree, heads, now, turn.kept)
    for victim, asker in outcome.preempted:
        note_given_way(tenants.works[victim.key], asker)
    turn.note_cycle(heads, outcome)
    return Round(outcome.admitted, outcome.preempted, [work for work, _ in outcome.left])
