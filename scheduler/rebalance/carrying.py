"""Carries one bundle of moves out, one move after the other.

A move is written into the status before the pod is evicted. Nothing is worse after a part of the moves than before, so the
rest may be left at any time: when the hours are over, when the policy is another one, or when a pod goes elsewhere.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import structlog

from scheduler.api.rebalancing.policy import Rebalancing
from scheduler.api.steering import RebalancePolicy
from scheduler.defrag.contract import Move
from scheduler.errors import ApiError
from scheduler.kube import wall_clock
from scheduler.kube.evict.successors import Came, Order
from scheduler.plan.apply import describe_successor, is_planned, make_check
from scheduler.plan.making import PlanAnswer
from scheduler.rebalance import budgets
from scheduler.rebalance.budgets import Outcome, PastMove
from scheduler.state.pods import PodRecord

_log = structlog.get_logger("evenkeel.rebalance")


class Hands(NamedTuple):
    """What carrying out needs of its surroundings.

    Attributes:
        move_pod: moves a pod.
        read_policy: reads a policy as it is now.
        write_moves: writes the moves of the last hour into the status of a policy, and returns the policy as it is then.
        find_hindrance: why the policy may not move another pod now; empty if it may.
        report: takes a pod, what has become of its move, and the words for it.
    """

    move_pod: Callable[[PodRecord, Order], Awaitable[Came]]
    read_policy: Callable[[str], Awaitable[RebalancePolicy]]
    write_moves: Callable[[RebalancePolicy, Sequence[PastMove]], Awaitable[RebalancePolicy]]
    find_hindrance: Callable[[RebalancePolicy, Rebalancing], str]
    report: Callable[[RebalancePolicy, PodRecord, Outcome, str], None]


class Carrier:
    """Carries bundles of one policy out.

    Attributes:
        moves: the moves of the last hour, those of this carrier included.
    """

    def __init__(
        self, hands: Hands, body: RebalancePolicy, policy: Rebalancing, moves: Sequence[PastMove]
    ) -> None:
        self._hands, self._body, self._policy = hands, body, policy
        # The policy as it was written last.
        self._written = body
        self.moves = [*moves]

    async def carry_out(self, made: PlanAnswer, bundle: Sequence[Move]) -> bool:
        """Move the pods of a bundle; return whether all went as planned.

        Raises:
            ApiError: the status cannot be written; nobody was evicted without it.
        """
        for move in bundle:
            if hindrance := self._find_hindrance():
                _log.info("the rest of a plan is left", policy=self._policy.name, why=hindrance)
                return False
            if await self._move(made, move) != Outcome.AS_PLANNED:
                return False
        return True

    def _find_hindrance(self) -> str:
        if self._written.metadata.generation != self._body.metadata.generation:
            return "the policy was changed"
        return self._hands.find_hindrance(self._body, self._policy)

    async def _move(self, made: PlanAnswer, move: Move) -> Outcome:
        pod, owner = made.pods[move.uid], made.owners.makers[move.uid]
        at = int(wall_clock.now().timestamp())
        begun = PastMove(
            at,
            pod.namespace,
            pod.name,
            move.left.node,
            move.came.node,
            Outcome.BEGUN,
            controller=budgets.name_controller(owner),
        )
        self.moves.append(begun)
        self._written = await self._hands.write_moves(self._written, self.moves)
        check = make_check(move) if self._policy.is_surge else None
        order = Order(owner.uid, self._policy.move_seconds, self._find_hindrance, check)
        came = await self._hands.move_pod(pod, order)
        outcome = _find_outcome(move, came)
        message = came.trouble or describe_successor(came)
        ended = begun._replace(
            outcome=outcome, target=came.node or begun.target, message=came.trouble
        )
        _log.info("a pod was moved", policy=self._policy.name, pod=pod.key, outcome=outcome, what=message)  # fmt: skip
        self._hands.report(self._body, pod, outcome, message)
        try:
            await self._write_end(begun, ended)
        except ApiError as error:
            # It counts as begun, so no budget is exceeded.
            _log.warning("status of a move not written", policy=self._policy.name, error=str(error))
        return outcome

    async def _write_end(self, begun: PastMove, ended: PastMove) -> None:
        """Write what has become of a move into the status as it is by now: the policy may have been changed since."""
        now = await self._hands.read_policy(self._policy.name)
        if now.metadata.uid != self._body.metadata.uid:
            return
        self.moves = [one for one in budgets.read_moves(now.status) if one != begun]
        self.moves.append(ended)
        self._written = await self._hands.write_moves(now, self.moves)


def _find_outcome(move: Move, came: Came) -> Outcome:
    if came.is_taken_back:
        return Outcome.TAKEN_BACK
    if came.trouble:
        return Outcome.UNFINISHED if came.is_evicted else Outcome.REFUSED
    return Outcome.AS_PLANNED if is_planned(move, came) else Outcome.ELSEWHERE
