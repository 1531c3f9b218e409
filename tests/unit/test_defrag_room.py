"""Who is let in by a plan, and what is no gain: turns, limits, and nodes and pods that are not Evenkeel's to move."""

import copy
import io
from typing import Any

from scheduler.api.placement import Mode, Placement
from scheduler.config import Config
from scheduler.defrag import movable
from scheduler.plan.command import Request, plan_defrag
from scheduler.simulate.reading.gathering import Live
from tests.unit.test_defrag import (
    LARGE,
    MIB,
    NODES,
    NOW,
    SMALL,
    cards_node,
    moved,
    planned,
    share,
    stays,
    waiting,
)  # fmt: skip

Json = dict[str, Any]


def test_a_group_of_lower_priority_comes_after_the_successor() -> None:
    """The scheduler spreads pods: the successor would go back, unless the group took its place before."""
    gang = waiting("gang", gpu=1, gpumem=MIB, gpucores=100, labels={"scheduling.x-k8s.io/pod-group": "gang"})  # fmt: skip
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": "default"}, "spec": {"minMember": 1},
    }  # fmt: skip
    for priority, moves in ((0, [("small", "a", "b")]), (1000, [])):
        pods = [copy.deepcopy(one) for one in (SMALL, LARGE)]
        for one in pods:
            one["spec"]["priority"] = priority
            # Its successor comes when the pod is gone, and may go back.
            one["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
        found = planned(*NODES, *pods, gang, group, mode=Mode.LEAST_ALLOCATED)
        assert moved(found) == moves


def test_a_queue_lets_no_more_pods_in_than_it_may_have() -> None:
    free, limited = {"quota": -1, "limit": -1}, {"quota": 0, "limit": 1}
    queue = {
        "apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "q"},
        "spec": {"resources": {"cpu": free, "memory": free, "gpu": limited}},
    }  # fmt: skip
    nodes = [cards_node(name) for name in "abcd"]
    pods = [
        share("p0", "a-0", 200), share("p1", "b-0", 200),
        share("q0", "c-0", 500, kind=""), share("q1", "d-0", 500, kind=""),
    ]  # fmt: skip
    wide = [
        waiting(f"w{i}", gpu=1, gpumem=MIB, gpucores=100, labels={"kai.scheduler/queue": "q"})
        for i in range(2)
    ]
    found = planned(*nodes, *pods, *wide, queue)
    assert let_in(found) == ["w0"]
    assert found["totals"]["after"]["waitingPods"] == 1


def test_nodes_of_another_scheduler_of_devices_are_no_gain() -> None:
    nodes = [cards_node(name) for name in "ab"]
    nodes[0]["metadata"]["labels"]["scheduler"] = "hami"
    config = Config(placement=Placement(mode=Mode.BEST_FIT), hami_scheduler_nodes="scheduler=hami")
    request = Request(config=config, now=NOW)
    found = plan_defrag(request, Live((*nodes, SMALL, LARGE)), io.StringIO(), lambda *_: None)
    assert moved(found.printed) == []


def test_a_node_of_whose_cards_none_can_be_given_is_no_gain() -> None:
    nodes = [cards_node(name) for name in "ab"]
    assert moved(planned(*nodes, SMALL, LARGE)) == [("small", "a", "b")]
    nodes[0]["metadata"]["annotations"]["hami.io/device-cordon"] = "a-0"
    assert moved(planned(*nodes, SMALL, LARGE)) == []


def test_a_pod_that_several_budgets_cover_stays() -> None:
    """The Eviction API refuses it whatever the budgets allow."""

    def budget(name: str) -> Json:
        return {
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": 1},
        }  # fmt: skip

    both = [share(f"web-{i}", f"{at}-0", 200, of="web", labels={"app": "web"}) for i, at in enumerate("ab")]  # fmt: skip
    assert len(moved(planned(*NODES, *both, budget("p")))) == 1
    found = planned(*NODES, *both, budget("p"), budget("q"))
    assert (moved(found), stays(found)) == ([], {movable.TWICE: 2})


def let_in(found: Json) -> list[str]:
    """List who is let in by a plan."""
    moves = [move for bundle in found["bundles"] for move in bundle["moves"]]
    return [one["pod"]["name"] for move in moves for one in move["letsIn"]]
