"""Carrying policies out: budgets, what a policy lets move, what is carried out of a plan, and when the next one is made."""

import asyncio
import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.api import times, wire
from scheduler.api.placement import Mode, Placement
from scheduler.api.rebalancing.policy import Rebalancing, read_policy
from scheduler.api.steering import RebalancePolicy
from scheduler.config import Config
from scheduler.errors import ApiError
from scheduler.kube.evict.moves import Came
from scheduler.plan.making import PlanAnswer, Wish, make_plan
from scheduler.rebalance import budgets, controller
from scheduler.rebalance.budgets import Outcome, PastMove
from scheduler.rebalance.controller import Controller, Ties
from scheduler.rebalance.known import Policies
from scheduler.rebalance.limits import find_limits
from scheduler.rebalance.statuses import Reason, Statuses
from scheduler.simulate.reading.gathering import Live, gather_objects
from tests.unit.test_defrag import NOW, cards_node, moved, share, waiting

Json = dict[str, Any]
NODES = [cards_node(name) for name in "abcd"]
# Two bundles of one move each.
PODS = [
    share("p0", "a-0", 200), share("p1", "b-0", 200),
    share("q0", "c-0", 500, kind=""), share("q1", "d-0", 500, kind=""),
]  # fmt: skip


def body(name: str = "p", generation: int = 1, status: Any = None, **spec: Any) -> RebalancePolicy:
    meta = wire.Meta(name=name, uid=f"uid-{name}", generation=generation)
    return RebalancePolicy(metadata=meta, spec=spec, status=status)


def plan(
    policy: Rebalancing, used: Mapping[str, int], most: int, objects: Sequence[Json]
) -> PlanAnswer:
    config = Config(placement=Placement(mode=Mode.BEST_FIT))
    wish = Wish(
        only_for=None, most=most, run_seconds=policy.min_run, now=NOW,
        find_limits=lambda inventory: find_limits(policy, used, inventory),
    )  # fmt: skip
    live = Live(objects)
    gathered = gather_objects((), live, cast("Any", None), lambda *_: None, command="x")
    return make_plan(gathered, config, wish, live.unlisted, lambda *_: None)


def in_namespace(made: Json, namespace: str, **labels: str) -> Json:
    meta = made["metadata"]
    return {**made, "metadata": {**meta, "namespace": namespace, "labels": labels, "uid": f"{namespace}-{meta['name']}"}}  # fmt: skip


# Budgets.

_MOVES = st.lists(
    st.builds(
        PastMove, st.integers(0, 20_000), st.sampled_from(("x", "y")), st.just("n"), st.just("a"),
        st.just("b"), st.sampled_from(list(Outcome)), st.sampled_from(("", "why")),
    )
)  # fmt: skip


@given(_MOVES, st.integers(0, 20_000))
def test_a_status_remembers_the_moves_of_an_hour(moves: list[PastMove], now: int) -> None:
    written = budgets.write_moves(moves)
    assert budgets.read_moves({"moves": written}) == moves
    recent = budgets.keep_recent(moves, now)
    counted = [one for one in moves if one.at > now - 3600 and one.outcome != Outcome.REFUSED]
    assert [one for one in recent if one.outcome != Outcome.REFUSED] == counted
    assert len(recent) <= len(counted) + 10
    policy = read_policy(body(budgets={"movesPerHour": 2}))
    assert budgets.count_left(policy, recent) == 2 - len(counted)
    assert budgets.count_by_namespace(recent).total() == len(counted)
    if len(counted) >= 2:
        # At that moment one more may be moved, and a second before none.
        at = int(budgets.find_next_left(policy, recent))
        assert budgets.count_left(policy, budgets.keep_recent(recent, at)) >= 1
        assert budgets.count_left(policy, budgets.keep_recent(recent, at - 1)) <= 0


@pytest.mark.parametrize("status", [None, 5, {"moves": 7}, {"moves": [1, {}, {"at": "x"}]}, {"moves": "none"}])  # fmt: skip
def test_a_status_that_somebody_has_broken_has_no_moves(status: Any) -> None:
    assert budgets.read_moves(status) == []


# What a policy lets move.


def test_only_pods_that_a_policy_selects_are_moved() -> None:
    teams = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"team": name}}}
        for name in ("red", "blue")
    ]  # fmt: skip
    pods = [in_namespace(PODS[0], "red"), in_namespace(PODS[1], "blue", stays="yes"), *PODS[2:]]
    objects = [*NODES, *teams, *pods]

    def names(**spec: Any) -> list[str]:
        found = plan(read_policy(body(**spec)), {}, 9, objects)
        return sorted(name for name, *_ in moved(found.printed))

    assert names() == ["p0", "p1"]
    assert names(namespaceSelector={"matchLabels": {"team": "blue"}}) == ["p1"]
    assert names(namespaceSelector={"matchLabels": {"team": "green"}}) == []
    without = {"matchExpressions": [{"key": "stays", "operator": "DoesNotExist"}]}
    assert names(podSelector=without) == ["p0"]


def test_a_namespace_has_a_budget_of_its_own() -> None:
    policy = read_policy(body(budgets={"movesPerNamespacePerHour": 1}))
    # Two bundles of the same namespace: one of them is left.
    found = plan(policy, {}, 9, [*NODES, *PODS])
    assert len(moved(found.printed)) == 1
    found = plan(policy, {"default": 1}, 9, [*NODES, *PODS])
    assert moved(found.printed) == []
    said = {one["reason"]: one["pods"] for one in found.printed["stays"]}
    assert said["in namespaces of which no more pods may be moved this hour"] == 2


def test_a_bundle_that_its_namespace_cannot_carry_whole_is_not_begun() -> None:
    """Two pods have to leave a card; one move of them frees nothing."""
    nodes = [cards_node(name) for name in "ab"]
    pods = [share("p0", "a-0", 200), share("p1", "a-0", 200), share("q0", "b-0", 600, kind="")]  # fmt: skip
    assert len(moved(plan(read_policy(body()), {}, 9, [*nodes, *pods]).printed)) == 2
    one = read_policy(body(budgets={"movesPerNamespacePerHour": 1}))
    assert moved(plan(one, {}, 9, [*nodes, *pods]).printed) == []


def test_only_moves_for_pods_that_wait() -> None:
    policy = read_policy(body(when="PodsWait"))
    assert moved(plan(policy, {}, 9, [*NODES, *PODS]).printed) == []
    wide = waiting("wide", gpu=1, gpumem=1000)
    found = plan(policy, {}, 9, [*NODES, *PODS, wide])
    assert len(moved(found.printed)) == 1
    assert found.printed["bundles"][0]["moves"][0]["letsIn"]


# What is carried out.


class World:
    """An API server with one policy, a cluster, and a clock that only this test moves on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **spec: Any) -> None:
        self.now = float(NOW)
        self.policies = Policies()
        self.status: Json = {}
        self.said: list[tuple[Outcome, str]] = []
        self.mistakes: list[str] = []
        self.moved: list[str] = []
        self.came: list[Came] = []
        self.n_plans = 0
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
            self._plan, self._move, lambda: self.leads, self._report,
            lambda _, problem: self.mistakes.append(problem), lambda *_: None,
        )  # fmt: skip
        return Controller(self.policies, cast("Statuses", self), ties)

    def change(self, generation: int, **spec: Any) -> None:
        self.spec, self.generation = spec, generation
        self.policies._known = {"p": body("p", generation, self.status, **spec)}

    async def look(self) -> None:
        """Let the controller do what is due."""
        self.policies._known = {"p": await self.read_policy("p")}
        for one in self.policies.list_policies():
            await self.controller._look_at(one)

    # Statuses.

    async def read_policy(self, name: str) -> RebalancePolicy:
        return body(name, self.generation, dict(self.status), **self.spec)

    async def write_state(self, policy: RebalancePolicy, reason: Reason, message: str, moves: Sequence[PastMove], **more: Any) -> None:  # fmt: skip
        self.status |= {"reason": reason, "message": message, "observedGeneration": policy.metadata.generation, **more}  # fmt: skip
        await self.write_moves(policy, moves)

    async def write_moves(self, _: RebalancePolicy, moves: Sequence[PastMove]) -> None:
        if self.refuses:
            raise ApiError(500, "Broken", "etcd")
        self.status["moves"] = budgets.write_moves(moves)

    # Ties.

    async def _plan(self, policy: Rebalancing, used: Mapping[str, int], most: int) -> PlanAnswer:
        self.n_plans += 1
        there = [one for one in self.objects if one["metadata"]["name"] not in self.moved]
        return plan(policy, used, most, there)

    async def _move(self, pod: Any, _owner: str, _seconds: float, find_hindrance: Any) -> Came:
        assert not find_hindrance()
        # The move is in the status before the pod goes.
        assert self.status["moves"][-1]["name"] == pod.name
        assert self.status["moves"][-1]["outcome"] == "Begun"
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
