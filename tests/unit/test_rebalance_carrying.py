"""What is carried out of a plan, what of it is in the status, and when the next plan is made."""

import asyncio
import datetime as dt
from collections.abc import Sequence
from typing import Any, cast

import pytest

from scheduler.api import times
from scheduler.api.rebalancing.policy import Rebalancing
from scheduler.api.steering import RebalancePolicy
from scheduler.errors import ApiError
from scheduler.kube.evict.successors import Came, Order
from scheduler.plan.making import PlanAnswer
from scheduler.rebalance import budgets, controller
from scheduler.rebalance.budgets import Outcome, PastMove
from scheduler.rebalance.controller import Controller, Ties
from scheduler.rebalance.known import Policies
from scheduler.rebalance.statuses import Reason, Statuses
from tests.unit.test_defrag import NOW, share
from tests.unit.test_rebalance import NODES, PODS, Json, body, plan


class World:
    """An API server with one policy, a cluster, and a clock that only this test moves on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **spec: Any) -> None:
        self.now = float(NOW)
        self.policies = Policies()
        self.status: Json = {}
        self.version = 1
        self.said: list[tuple[Outcome, str]] = []
        self.mistakes: list[str] = []
        self.moved: list[str] = []
        self.came: list[Came] = []
        self.n_plans = self.n_mended = 0
        self.leads = True
        self.refuses = False
        self.objects = [*NODES, *PODS]
        self.change(1, **spec)
        monkeypatch.setattr(controller, "_now", lambda: self.now)
        monkeypatch.setattr("scheduler.kube.wall_clock.now", lambda: dt.datetime.fromtimestamp(self.now, dt.UTC))  # fmt: skip
        self.controller = self.begin()

    def begin(self) -> Controller:
        """Begin anew, as another process does."""
        ties = Ties(
            self._plan, self._mend, self._move, lambda: self.leads, self._report,
            lambda _, problem: self.mistakes.append(problem), lambda *_: None,
        )  # fmt: skip
        return Controller(self.policies, cast("Statuses", self), ties)

    def change(self, generation: int, **spec: Any) -> None:
        self.spec, self.generation, self.version = spec, generation, self.version + 1
        self.policies._known = {"p": body("p", generation, self.status, **spec)}

    async def look(self) -> None:
        """Let the controller do what is due."""
        self.policies._known = {"p": await self.read_policy("p")}
        for one in self.policies.list_policies():
            await self.controller._look_at(one)

    # Statuses.

    async def read_policy(self, name: str) -> RebalancePolicy:
        return body(name, self.generation, dict(self.status), self.version, **self.spec)

    async def write_state(self, policy: RebalancePolicy, reason: Reason, message: str, moves: Sequence[PastMove], **more: Any) -> RebalancePolicy:  # fmt: skip
        state = {"reason": reason, "message": message, "observedGeneration": policy.metadata.generation, **more}  # fmt: skip
        return await self.write(policy, moves, state)

    async def write_moves(
        self, policy: RebalancePolicy, moves: Sequence[PastMove]
    ) -> RebalancePolicy:
        return await self.write(policy, moves, {})

    async def write(
        self, policy: RebalancePolicy, moves: Sequence[PastMove], state: Json
    ) -> RebalancePolicy:
        if self.refuses:
            raise ApiError(500, "Broken", "etcd")
        if policy.metadata.resource_version != str(self.version):
            raise ApiError(409, "Conflict", "somebody has written it")
        self.status |= {**state, "moves": budgets.write_moves(moves)}
        self.version += 1
        return await self.read_policy(policy.metadata.name)

    async def move_as_another(self, name: str) -> None:
        """Write a move as another process does that leads by now."""
        now = await self.read_policy("p")
        move = PastMove(int(self.now), "x", name, "a", "b", Outcome.BEGUN)
        await self.write_moves(now, [*budgets.read_moves(now.status), move])

    # Ties.

    async def _plan(self, policy: Rebalancing, moves: Sequence[PastMove], most: int) -> PlanAnswer:
        self.n_plans += 1
        there = [one for one in self.objects if one["metadata"]["name"] not in self.moved]
        return plan(policy, moves, most, there)

    async def _mend(self) -> None:
        self.n_mended += 1

    async def _move(self, pod: Any, order: Order) -> Came:
        assert not order.find_hindrance()
        assert (order.is_planned is not None) is self.spec.get("surge", False)
        # The move is in the status before the pod goes.
        assert self.status["moves"][-1]["name"] == pod.name
        assert self.status["moves"][-1]["outcome"] == "Begun"
        assert self.status["moves"][-1]["controller"] == f"ReplicaSet {pod.name}"
        self.moved.append(pod.name)
        notes = {"hami.io/vgpu-devices-allocated": "c-0,NVIDIA,200,10:;"}
        return self.came.pop(0) if self.came else Came("new", "c", notes)

    def _report(self, _policy: Any, _pod: Any, outcome: Outcome, message: str) -> None:
        self.said.append((outcome, message))

    @property
    def outcomes(self) -> list[str]:
        return [one["outcome"] for one in self.status["moves"]]


async def test_a_plan_follows_the_other_until_one_is_not_carried_out(monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    world = World(monkeypatch)
    await world.look()
    assert (world.moved, world.outcomes, world.n_plans) == (["p0"], ["AsPlanned"], 1)
    # All went as planned: the next plan is made at once.
    world.came = [Came("new", "d")]
    await world.look()
    assert (world.moved, world.outcomes) == (["p0", "p1"], ["AsPlanned", "Elsewhere"])
    await world.look()
    assert world.n_plans == 2
    world.now += 599
    await world.look()
    assert world.n_plans == 2
    world.now += 1
    await world.look()
    assert (world.n_plans, world.status["plan"]["moves"]) == (3, 0)
    assert [outcome for outcome, _ in world.said] == [Outcome.AS_PLANNED, Outcome.ELSEWHERE]


async def test_a_budget_is_kept_across_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, budgets={"movesPerHour": 1})
    await world.look()
    world.now += 60
    await world.look()
    assert (world.moved, world.status["reason"]) == (["p0"], Reason.BUDGET_SPENT)
    assert world.status["nextPlanAt"] == times.write_time(NOW + 3600)
    world.controller = world.begin()
    await world.look()
    # A changed policy is looked at at once, and has no new budget.
    world.change(2, budgets={"movesPerHour": 1}, every="2m")
    await world.look()
    assert (world.moved, world.n_plans) == (["p0"], 1)
    world.now = NOW + 3600.0
    await world.look()
    assert world.moved == ["p0", "p1"]


@pytest.mark.parametrize("at", ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"])  # fmt: skip
async def test_a_status_with_times_that_cannot_be_holds_nothing_up(
    at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody has written it, or the clock was set back by years."""
    world = World(monkeypatch, budgets={"movesPerHour": 1})
    move = {"at": at, "namespace": "x", "name": "n", "from": "a", "to": "b", "outcome": "AsPlanned"}
    world.status = {"observedGeneration": 1, "nextPlanAt": at, "moves": [move]}
    await world.look()
    # It is waited for no longer than for any other plan.
    world.now += 600
    await world.look()
    world.now += 3600
    await world.look()
    assert world.moved[:1] == ["p0"]


async def test_a_refused_eviction_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, budgets={"movesPerHour": 1})
    world.came = [Came(trouble="a budget", is_evicted=False)]
    await world.look()
    assert world.outcomes == ["Refused"]
    world.moved.clear()
    world.now += 600
    world.came = [Came(trouble="no successor was ready", is_evicted=True)]
    await world.look()
    assert world.outcomes == ["Refused", "Unfinished"]
    world.now += 600
    await world.look()
    assert world.status["reason"] == Reason.BUDGET_SPENT


async def test_a_successor_may_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, surge=True, budgets={"movesPerHour": 1})
    world.came = [Came(trouble="it stays: not ready", is_evicted=False, is_taken_back=True)]
    await world.look()
    # What is left of moves is put right before each plan.
    assert world.n_mended == world.n_plans == 1
    assert world.outcomes == ["TakenBack"]
    assert world.said == [(Outcome.TAKEN_BACK, "it stays: not ready")]
    # Pods were started and ended, so it counts for the budget.
    world.now += 600
    await world.look()
    assert world.status["reason"] == Reason.BUDGET_SPENT


async def test_the_way_of_a_move_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, surge=True)
    world.came = [Came("new", "c", {"hami.io/vgpu-devices-allocated": "c-0,NVIDIA,200,10:;"}, way="which came first")]  # fmt: skip
    await world.look()
    assert world.said == [(Outcome.AS_PLANNED, "its successor new is on c (which came first)")]


async def test_a_dry_run_moves_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, dryRun=True)
    await world.look()
    assert (world.moved, world.status["reason"]) == ([], Reason.DRY_RUN)
    assert world.status["plan"]["moves"] == 2
    assert world.status["plan"]["steps"][0].startswith("default/p0: a card 0 -> c card 0; frees")
    await world.look()
    assert world.n_plans == 1


async def test_nobody_is_moved_outside_the_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    at = dt.datetime.fromtimestamp(NOW, dt.UTC)
    begin = (at + dt.timedelta(minutes=5)).strftime("%H:%M")
    end = (at + dt.timedelta(minutes=6)).strftime("%H:%M")
    world = World(monkeypatch, hours={"windows": [{"begin": begin, "end": end}]})
    await world.look()
    assert (world.n_plans, world.status["reason"]) == (0, Reason.OUTSIDE_HOURS)
    world.now = float(times.read_time(world.status["nextPlanAt"]) or 0)
    await world.look()
    assert world.moved == ["p0"]
    # Between two plans the hours end.
    world.now += 120
    await world.look()
    assert (world.moved, world.status["reason"]) == (["p0"], Reason.OUTSIDE_HOURS)


async def test_a_mistake_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, when="Sometimes")
    await world.look()
    world.now += 10_000
    await world.look()
    assert world.status["reason"] == Reason.INVALID
    assert world.mistakes == ["spec.when: 'Sometimes' is unknown; allowed are Always and PodsWait"]
    world.change(2)
    await world.look()
    assert world.moved == ["p0"]


async def test_nobody_goes_whose_move_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.refuses = True
    await world.look()
    assert world.moved == []
    world.refuses = False
    world.now += 30
    await world.look()
    assert world.moved == ["p0"]


@pytest.mark.parametrize("what", ["nothing", "leads", "changed", "deleted"])
async def test_the_rest_of_a_bundle_is_left_if_something_changes(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(monkeypatch)
    # Both pods have to leave card a-0.
    world.objects = [
        *NODES[:2], share("p0", "a-0", 200), share("p1", "a-0", 200), share("q0", "b-0", 600, kind=""),
    ]  # fmt: skip
    move = world._move

    async def move_once(*arguments: Any) -> Came:
        await move(*arguments)
        if what == "leads":
            world.leads = False
        elif what == "changed":
            world.change(2)
        elif what == "deleted":
            world.policies._known = {}
        return Came("new", "b", {"hami.io/vgpu-devices-allocated": "b-0,NVIDIA,200,10:;"})

    monkeypatch.setattr(world, "_move", move_once)
    world.controller = world.begin()
    await world.look()
    n_moved = 2 if what == "nothing" else 1
    assert world.outcomes == ["AsPlanned"] * n_moved
    assert len(world.moved) == n_moved


async def test_moves_of_the_next_leader_stay_in_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may lose the lease while it awaits a successor, or while it makes a plan."""
    world = World(monkeypatch)
    move, make = world._move, world._plan

    async def move_long(*arguments: Any) -> Came:
        came = await move(*arguments)
        world.leads = False
        await world.move_as_another("theirs")
        return came

    monkeypatch.setattr(world, "_move", move_long)
    world.controller = world.begin()
    await world.look()
    names = [(one["name"], one["outcome"]) for one in world.status["moves"]]
    assert names == [("theirs", "Begun"), ("p0", "AsPlanned")]

    async def plan_long(*arguments: Any) -> PlanAnswer:
        made = await make(*arguments)
        await world.move_as_another("last")
        return made

    monkeypatch.setattr(world, "_plan", plan_long)
    world.leads = True
    world.controller = world.begin()
    world.now += 600
    await world.look()
    assert [one["name"] for one in world.status["moves"]] == ["theirs", "p0", "last"]
    assert world.moved == ["p0"]


async def test_the_outcome_of_a_move_is_written_though_the_policy_was_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(monkeypatch)
    move = world._move

    async def move_once(*arguments: Any) -> Came:
        await move(*arguments)
        world.change(2)
        return Came(trouble="a budget", is_evicted=False)

    monkeypatch.setattr(world, "_move", move_once)
    world.controller = world.begin()
    await world.look()
    assert world.outcomes == ["Refused"]


async def test_it_waits_for_what_is_due_first(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, dryRun=True, every="1m")
    world.policies._known = {"p": await world.read_policy("p")}
    running = asyncio.create_task(world.controller.run())
    while not world.n_plans:
        await asyncio.sleep(0)
    assert world.controller._find_wait() == 30.0
    world.now += 45
    assert world.controller._find_wait() == 15.0
    world.leads = False
    assert world.controller._find_wait() == 1.0
    running.cancel()
