"""What a policy lets move: its budgets, and the pods that it selects."""

from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.api import times, wire
from scheduler.api.placement import Mode, Placement
from scheduler.api.rebalancing.policy import Rebalancing, read_policy
from scheduler.api.steering import RebalancePolicy
from scheduler.config import Config
from scheduler.plan.making import PlanAnswer, Wish, make_plan
from scheduler.rebalance import budgets
from scheduler.rebalance.budgets import Outcome, PastMove
from scheduler.rebalance.limits import find_limits
from scheduler.simulate.reading.gathering import Live, gather_objects
from tests.unit.test_defrag import NOW, cards_node, moved, share, waiting

Json = dict[str, Any]
NODES = [cards_node(name) for name in "abcd"]
# Two bundles of one move each.
PODS = [
    share("p0", "a-0", 200), share("p1", "b-0", 200),
    share("q0", "c-0", 500, kind=""), share("q1", "d-0", 500, kind=""),
]  # fmt: skip


def body(
    name: str = "p", generation: int = 1, status: Any = None, version: int = 1, **spec: Any
) -> RebalancePolicy:
    meta = wire.Meta(
        name=name, uid=f"uid-{name}", generation=generation, resource_version=str(version)
    )
    return RebalancePolicy(metadata=meta, spec=spec, status=status)


def plan(
    policy: Rebalancing, moves: Sequence[PastMove], most: int, objects: Sequence[Json]
) -> PlanAnswer:
    config = Config(placement=Placement(mode=Mode.BEST_FIT))
    wish = Wish(
        only_for=None, most=most, run_seconds=policy.min_run, now=NOW,
        find_limits=lambda inventory: find_limits(policy, moves, inventory),
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
        st.sampled_from(("", "ReplicaSet r")),
    )
)  # fmt: skip


@given(_MOVES, st.integers(0, 20_000))
def test_a_status_remembers_the_moves_of_an_hour(moves: list[PastMove], now: int) -> None:
    written = budgets.write_moves(moves)
    assert budgets.read_moves({"moves": written}) == moves
    recent = budgets.keep_recent(moves, now)
    # A move that began later than now did so by a clock that was set back since: it counts from now on.
    dated = [one._replace(at=min(one.at, now)) for one in moves]
    counted = [one for one in dated if one.at > now - 3600 and one.outcome != Outcome.REFUSED]
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
        found = plan(read_policy(body(**spec)), [], 9, objects)
        return sorted(name for name, *_ in moved(found.printed))

    assert names() == ["p0", "p1"]
    assert names(namespaceSelector={"matchLabels": {"team": "blue"}}) == ["p1"]
    assert names(namespaceSelector={"matchLabels": {"team": "green"}}) == []
    without = {"matchExpressions": [{"key": "stays", "operator": "DoesNotExist"}]}
    assert names(podSelector=without) == ["p0"]


def test_a_namespace_has_a_budget_of_its_own() -> None:
    policy = read_policy(body(budgets={"movesPerNamespacePerHour": 1}))
    # Two bundles of the same namespace: one of them is left.
    found = plan(policy, [], 9, [*NODES, *PODS])
    assert len(moved(found.printed)) == 1
    past = PastMove(NOW - 60, "default", "gone", "a", "b", Outcome.AS_PLANNED)
    found = plan(policy, [past], 9, [*NODES, *PODS])
    assert moved(found.printed) == []
    said = {one["reason"]: one["pods"] for one in found.printed["stays"]}
    assert said["in namespaces of which no more pods may be moved this hour"] == 2


@pytest.mark.parametrize("outcome", list(Outcome))
def test_after_a_move_that_went_wrong_its_controller_is_left_alone(outcome: Outcome) -> None:
    """The successor has another name, and the scheduler may send it elsewhere again at each plan."""
    past = PastMove(NOW - 60, "default", "old", "a", "b", outcome, controller="ReplicaSet p0")
    found = plan(read_policy(body()), [past], 9, [*NODES, *PODS])
    stay = [] if outcome == Outcome.AS_PLANNED else ["p0"]
    assert sorted(name for name, *_ in moved(found.printed)) == sorted({"p0", "p1"} - {*stay})
    said = {one["reason"]: one["pods"] for one in found.printed["stays"]}
    why = "of controllers of which a move did not end as planned within the hour"
    assert said.get(why, 0) == len(stay)
    # Of another namespace it is another controller.
    found = plan(read_policy(body()), [past._replace(namespace="x")], 9, [*NODES, *PODS])
    assert len(moved(found.printed)) == 2


def test_a_bundle_that_its_namespace_cannot_carry_whole_is_not_begun() -> None:
    """Two pods have to leave a card; one move of them frees nothing."""
    nodes = [cards_node(name) for name in "ab"]
    pods = [share("p0", "a-0", 200), share("p1", "a-0", 200), share("q0", "b-0", 600, kind="")]  # fmt: skip
    assert len(moved(plan(read_policy(body()), [], 9, [*nodes, *pods]).printed)) == 2
    one = read_policy(body(budgets={"movesPerNamespacePerHour": 1}))
    assert moved(plan(one, [], 9, [*nodes, *pods]).printed) == []


def test_a_node_whose_clock_is_ahead_makes_no_pod_older() -> None:
    """A kubelet writes by its own clock when a pod has started."""
    ahead = share("ahead", "d-0", 100, kind="")
    ahead["status"]["startTime"] = times.write_time(NOW + 7 * 86_400)
    age = NOW - (times.read_time(PODS[0]["status"]["startTime"]) or 0)
    for seconds, n_moves in ((age, 2), (age + 60, 0)):
        found = plan(read_policy(body(minRun=f"{seconds}s")), [], 9, [*NODES, *PODS, ahead])
        assert len(moved(found.printed)) == n_moves


def test_only_moves_for_pods_that_wait() -> None:
    policy = read_policy(body(when="PodsWait"))
    assert moved(plan(policy, [], 9, [*NODES, *PODS]).printed) == []
    wide = waiting("wide", gpu=1, gpumem=1000)
    found = plan(policy, [], 9, [*NODES, *PODS, wide])
    assert len(moved(found.printed)) == 1
    assert found.printed["bundles"][0]["moves"][0]["letsIn"]
