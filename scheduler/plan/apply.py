"""Carries a plan out, one move after the other, and plans anew where a pod went elsewhere than planned."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import IntEnum
from functools import partial

from scheduler.defrag.contract import Move
from scheduler.kube.evict.successors import Came
from scheduler.plan import words
from scheduler.plan.making import PlanAnswer
from scheduler.state.pods import PodRecord

# The end of the annotations that name the devices of a pod, whichever their driver.
_ALLOCATED = "-allocated"
# So often a plan is made anew, because a pod went elsewhere.
_AGAIN_MAX = 3

# Moves a pod of the controller with a uid; the last one says whether a successor is where it should be, if it may come first.
MovePod = Callable[[PodRecord, str, Callable[[Came], bool] | None], Came]


class Ended(IntEnum):
    """How the carrying out has ended, as an exit code."""

    DONE = 0
    STOPPED = 1


def apply_plan(
    made: PlanAnswer,
    move_pod: MovePod,
    plan_again: Callable[[int], PlanAnswer],
    say: Callable[[str], None],
    most: int,
) -> Ended:
    """Carry a plan out.

    Args:
        made: the plan.
        move_pod: moves a pod.
        plan_again: makes a plan of at most so many moves for the cluster as it is by now.
        say: takes a sentence about what was done.
        most: the most moves.
    """
    n_again = 0
    while made.plan.bundles:
        is_missed = False
        for number, move in _number_moves(made):
            most -= 1
            pod, owner = made.pods[move.uid], made.owners.makers[move.uid]
            came = move_pod(pod, owner.uid, make_check(move))
            if came.trouble:
                say(f"{number} {pod.key}: {came.trouble}; no more pods are moved")
                return Ended.STOPPED
            is_missed = not is_planned(move, came)
            where = "but not as planned" if is_missed else "as planned"
            say(f"{number} {pod.key}: {describe_successor(came)}, {where}")
            if is_missed:
                break
        if not is_missed:
            return Ended.DONE
        if not most or n_again == _AGAIN_MAX:
            say("no more plans are made; the rest of this one is left")
            return Ended.STOPPED
        n_again += 1
        made = plan_again(most)
        say(f"planned anew: {words.sum_up(made.printed)}")
    return Ended.DONE


def _number_moves(made: PlanAnswer) -> list[tuple[str, Move]]:
    return [
        (f"{i}.{k}" if len(bundle) > 1 else f"{i}", move)
        for i, bundle in enumerate(made.plan.bundles, 1)
        for k, move in enumerate(bundle, 1)
    ]


def describe_successor(came: Came) -> str:
    """Say where a successor is, and how the pod was moved where there was a choice."""
    way = f" ({came.way})" if came.way else ""
    return f"its successor {came.name} is on {came.node}{way}"


def make_check(move: Move) -> Callable[[Came], bool] | None:
    """Make what says whether a successor is where it should be; None if it has no room before the pod has gone."""
    return partial(is_planned, move) if move.is_ahead else None


def is_planned(move: Move, came: Came) -> bool:
    """Whether a successor is on the planned node, and has each of the planned cards by the annotations of its devices."""
    notes = "\n".join(text for key, text in came.notes.items() if key.endswith(_ALLOCATED))
    return came.node == move.came.node and all(
        re.search(rf"(?<![\w-]){re.escape(card.uuid)}(?![\w-])", notes) for card in move.came.cards
    )
