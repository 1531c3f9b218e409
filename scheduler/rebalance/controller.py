"""When plans are made: for each policy in turn, at intervals, within its hours and its budget.

Of a plan only the first bundle is carried out; then another plan is made of the cluster as it is by then, at once if all went
as planned, else after the interval. One pod is moved at a time, whatever the number of policies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import structlog

from scheduler.api import times
from scheduler.api.rebalancing.policy import Rebalancing, read_policy
from scheduler.api.steering import RebalancePolicy
from scheduler.errors import ApiError, BadInput
from scheduler.kube import answers, wall_clock
from scheduler.plan import words
from scheduler.plan.making import PlanAnswer
from scheduler.rebalance import budgets
from scheduler.rebalance.budgets import PastMove
from scheduler.rebalance.carrying import Carrier, Hands
from scheduler.rebalance.known import Policies
from scheduler.rebalance.planned import write_planned
from scheduler.rebalance.statuses import Reason, Statuses

# The time of day is looked at so often, in case it is set.
_LOOK_SECONDS = 30.0
# After a failure of the API server.
_AGAIN_SECONDS = 30.0
_log = structlog.get_logger("evenkeel.rebalance")


class Ties(NamedTuple):
    """What the controller needs of its surroundings.

    Attributes:
        plan: makes a plan of at most so many moves for a policy; takes its moves of the last hour.
        mend_moves: puts right what a process left that ended amid a move.
        move_pod: as in ``Hands``.
        is_leading: whether this process may act.
        report: as in ``Hands``.
        report_mistake: takes a policy that cannot be read, and why.
        note_plan: takes a policy and its plan.
    """

    plan: Callable[[Rebalancing, Sequence[PastMove], int], Awaitable[PlanAnswer]]
    mend_moves: Callable[[], Awaitable[None]]
    move_pod: Callable[..., Awaitable[Any]]
    is_leading: Callable[[], bool]
    report: Callable[..., None]
    report_mistake: Callable[[RebalancePolicy, str], None]
    note_plan: Callable[[Rebalancing, PlanAnswer], None]


class _Due(NamedTuple):
    """When something is to be done for a policy of a generation, in seconds since 1970."""

    uid: str
    generation: int
    at: float


class Controller:
    """Carries all policies out."""

    def __init__(self, policies: Policies, statuses: Statuses, ties: Ties) -> None:
        self._policies, self._statuses, self._ties = policies, statuses, ties
        self._due: dict[str, _Due] = {}

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            self._policies.changed.clear()
            if self._ties.is_leading():
                for body in self._policies.list_policies():
                    if self._ties.is_leading():
                        await self._look_at(body)
            else:
                self._due.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._find_wait()):
                    await self._policies.changed.wait()

    def _find_wait(self) -> float:
        """Find how long there is nothing to do."""
        if not self._ties.is_leading():
            return 1.0
        known = {body.metadata.name for body in self._policies.list_policies()}
        self._due = {name: due for name, due in self._due.items() if name in known}
        first = min((due.at for due in self._due.values()), default=float("inf"))
        return max(0.0, min(_LOOK_SECONDS, first - _now()))

    async def _look_at(self, body: RebalancePolicy) -> None:
        """Work on a policy if it is due."""
        meta = body.metadata
        due = self._due.get(meta.name)
        is_known = due is not None and (due.uid, due.generation) == (meta.uid, meta.generation)
        if is_known and due is not None and due.at > _now():
            return
        if not is_known and (at := _find_planned_time(body)) > _now():
            # Another process has planned for it not long ago.
            self._due[meta.name] = _Due(meta.uid, meta.generation, at)
            return
        try:
            again = await self._work_on(await self._statuses.read_policy(meta.name))
        except ApiError as error:
            again = _now() + _AGAIN_SECONDS
            if not answers.is_not_found(error):
                _log.warning("a policy is not carried out", policy=meta.name, error=str(error))
        self._due[meta.name] = _Due(meta.uid, meta.generation, again)

    async def _work_on(self, body: RebalancePolicy) -> float:
        """Plan for a policy and move pods, as far as it allows; return when it is due again.

        Raises:
            ApiError: the API server refused something, or did not answer.
        """
        now = _now()
        moves = budgets.keep_recent(budgets.read_moves(body.status), now)
        try:
            policy = read_policy(body)
        except BadInput as error:
            self._ties.report_mistake(body, str(error))
            await self._statuses.write_state(
                body, Reason.INVALID, str(error), moves, nextPlanAt=None
            )
            return float("inf")
        if not policy.hours.has(now):
            at = policy.hours.find_next(now)
            message = (
                f"no pod is moved at this hour; the next one is from {times.write_time(at)} on"
            )
            return await self._put_off(body, Reason.OUTSIDE_HOURS, message, at, moves)
        left = budgets.count_left(policy, moves)
        if left <= 0:
            at = budgets.find_next_left(policy, moves)
            message = f"{policy.per_hour} pods were moved within an hour, as many as spec.budgets.movesPerHour allows"
            return await self._put_off(body, Reason.BUDGET_SPENT, message, at, moves)
        try:
            await self._ties.mend_moves()
            made = await self._ties.plan(policy, moves, left)
        except (ApiError, BadInput) as error:
            at = now + _AGAIN_SECONDS
            message = f"no plan could be made: {error}"
            return await self._put_off(body, Reason.NO_PLAN, message, at, moves)
        self._ties.note_plan(policy, made)
        return await self._carry_out(body, policy, made, moves)

    async def _put_off(
        self,
        body: RebalancePolicy,
        reason: Reason,
        message: str,
        at: float,
        moves: Sequence[PastMove],
    ) -> float:
        """Write why no plan is made now, and when there will be one; return that time."""
        await self._statuses.write_state(
            body, reason, message, moves, nextPlanAt=times.write_time(at)
        )
        return at

    async def _carry_out(
        self,
        body: RebalancePolicy,
        policy: Rebalancing,
        made: PlanAnswer,
        moves: Sequence[PastMove],
    ) -> float:
        """Write the plan into the status, and carry its first bundle out; return when the policy is due again."""
        now = _now()
        at, is_idle = now + policy.every, policy.is_dry or not made.plan.bundles
        reason = Reason.DRY_RUN if policy.is_dry else Reason.IN_FORCE
        written = await self._statuses.write_state(
            body,
            reason,
            words.sum_up(made.printed),
            moves,
            plannedAt=times.write_time(now),
            nextPlanAt=times.write_time(at),
            plan=write_planned(made),
        )
        if is_idle:
            return at
        hands = Hands(
            self._ties.move_pod,
            self._statuses.read_policy,
            self._statuses.write_moves,
            self._find_hindrance,
            self._ties.report,
        )
        carrier = Carrier(hands, written, policy, moves)
        return _now() if await carrier.carry_out(made, made.plan.bundles[0]) else at

    def _find_hindrance(self, body: RebalancePolicy, policy: Rebalancing) -> str:
        """Find why a policy may not move another pod now; empty if it may."""
        now, meta = self._policies.find_policy(policy.name), body.metadata
        if not self._ties.is_leading():
            return "another process leads"
        if now is None or (now.metadata.uid, now.metadata.generation) != (
            meta.uid,
            meta.generation,
        ):
            return "the policy was changed or deleted"
        return "" if policy.hours.has(_now()) else "the hours of the policy are over"


def _now() -> float:
    return wall_clock.now().timestamp()


def _find_planned_time(body: RebalancePolicy) -> float:
    """Find when the next plan is due by the status, if the status is of this generation; else 0.

    It is due at the latest when it would be after a plan that is made now: the clock may have been set back.
    """
    status = body.status
    if (
        not isinstance(status, Mapping)
        or status.get("observedGeneration") != body.metadata.generation
    ):
        return 0.0
    at = status.get("nextPlanAt")
    try:
        most = _now() + read_policy(body).every
    except BadInput:
        return 0.0
    return min(float(times.read_time(at) or 0), most) if isinstance(at, str) else 0.0
