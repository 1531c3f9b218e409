"""Carrying a plan out: in its order, anew where a pod went elsewhere, and no further after trouble."""

import io
from collections.abc import Callable
from typing import Any, cast

import pytest

from scheduler.api.placement import Mode, Placement
from scheduler.config import Config
from scheduler.errors import ApiError
from scheduler.kube.client import ApiClient
from scheduler.kube.evict import moves
from scheduler.kube.evict.successors import Came, Order
from scheduler.plan.apply import Ended, apply_plan
from scheduler.plan.command import Request, plan_defrag
from scheduler.plan.making import PlanAnswer
from scheduler.simulate.reading.gathering import Live
from scheduler.state.pods import PodRecord
from tests.unit.test_defrag import NOW, cards_node, share

Json = dict[str, Any]
NODES = [cards_node(name) for name in "abcd"]
# Two bundles of one move each.
PODS = [
    share("p0", "a-0", 200), share("p1", "b-0", 200),
    share("q0", "c-0", 500, kind=""), share("q1", "d-0", 500, kind=""),
]  # fmt: skip


def plan(*objects: Json, most: int = 10) -> PlanAnswer:
    placement = Placement(mode=Mode.BEST_FIT)
    request = Request(config=Config(placement=placement), now=NOW, most=most)
    return plan_defrag(request, Live(objects), io.StringIO(), lambda *_: None)


class Cluster:
    """Says of each pod in turn where its successor is; plans anew what it is given."""

    def __init__(self, *came: Came, again: PlanAnswer | None = None) -> None:
        self.came, self.again = [*came], again
        self.moved: list[tuple[str, str]] = []
        self.said: list[str] = []
        self.planned: list[int] = []

    def move(self, pod: PodRecord, owner: str, is_there: Callable[[Came], bool] | None) -> Came:
        # Each has room before the pod goes, on the planned card.
        assert is_there is not None
        assert is_there(came("c"))
        assert not is_there(came("d"))
        self.moved.append((pod.name, owner))
        return self.came.pop(0)

    def plan_again(self, most: int) -> PlanAnswer:
        self.planned.append(most)
        assert self.again is not None
        return self.again

    def apply(self, made: PlanAnswer, most: int = 10) -> Ended:
        return apply_plan(made, self.move, self.plan_again, self.said.append, most)


def came(node: str, card: str = "") -> Came:
    return Came(
        "new", node, {"hami.io/vgpu-devices-allocated": f"{card or f'{node}-0'},NVIDIA,200,10:;"}
    )


def test_moves_are_made_in_their_order() -> None:
    cluster = Cluster(came("c"), came("c"))
    assert cluster.apply(plan(*NODES, *PODS)) == Ended.DONE
    assert cluster.moved == [("p0", "p0"), ("p1", "p1")]
    assert cluster.said == [
        "1 default/p0: its successor new is on c, as planned",
        "2 default/p1: its successor new is on c, as planned",
    ]


def test_after_a_pod_that_went_elsewhere_the_rest_is_planned_anew() -> None:
    again = plan(*NODES, *PODS[1:])
    for other in (came("d"), came("c", card="c-9"), came("c", card="c-01"), came("c", card="xc-0")):
        cluster = Cluster(other, came("c"), again=again)
        assert cluster.apply(plan(*NODES, *PODS)) == Ended.DONE
        assert (cluster.planned, cluster.moved) == ([9], [("p0", "p0"), ("p1", "p1")])
        assert cluster.said[0].endswith(f"is on {other.node}, but not as planned")
        assert cluster.said[1].startswith(
            "planned anew: 1 move in 1 bundle: it frees 1 card and 1 node."
        )


def test_nobody_plans_anew_for_ever_or_beyond_the_most_moves() -> None:
    made = plan(*NODES, *PODS)
    cluster = Cluster(*[came("d")] * 4, again=made)
    assert cluster.apply(made) == Ended.STOPPED
    assert cluster.planned == [9, 8, 7]
    cluster = Cluster(came("d"), again=made)
    assert (cluster.apply(made, most=1), cluster.planned) == (Ended.STOPPED, [])


def test_trouble_ends_it() -> None:
    cluster = Cluster(Came(trouble="no successor had a node after 5 s"))
    assert cluster.apply(plan(*NODES, *PODS)) == Ended.STOPPED
    assert cluster.said == [
        "1 default/p0: no successor had a node after 5 s; no more pods are moved"
    ]


def test_a_plan_without_moves_is_done() -> None:
    assert Cluster().apply(plan(*NODES)) == Ended.DONE


# So often an evicted pod is listed.
_ENDING = 3


class Api:
    """An API server that refuses so many evictions, and has a successor as soon as one has gone through."""

    def __init__(self, *refusals: int) -> None:
        self.refusals = [*refusals]
        self.evicted: list[Json] = []
        self.listed = 0

    async def send(self, method: str, path: str, body: Json, *, params: Any) -> bytes:
        assert not params
        assert (method, path) == ("POST", "/api/v1/namespaces/default/pods/p0/eviction")
        if self.refusals:
            raise ApiError(self.refusals.pop(0), "Refused", "its budget")
        self.evicted.append(body)
        return b""

    async def get(self, path: str) -> Json:
        assert path == "/api/v1/namespaces/default/pods"
        # The pod is listed until its successor has been seen once.
        self.listed += bool(self.evicted)
        old = [share("p0", "a-0")] if self.listed < _ENDING else []
        names = ["p0-new", "p0-newer"] if self.evicted else []
        new = [share(name, "b-0", of="p0") for name in names]
        for one in new[1:]:
            one["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        if new:
            # The first one has no node yet, and the pod of another controller is none.
            del new[0]["spec"]["nodeName"]
        return {"items": [*old, *new, share("stranger", "a-0")]}


async def move(api: Api, seconds: float) -> Came:
    made = plan(*NODES, *PODS)
    return await moves.move_pod(cast("ApiClient", api), made.pods["default/p0"], Order("p0", seconds))  # fmt: skip


async def test_an_eviction_that_a_budget_refuses_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(moves, "_POLL_SECONDS", 0.0)
    api = Api(429, 429)
    found = await move(api, 60)
    assert (found.name, found.node, found.trouble) == ("p0-newer", "b", "")
    assert "b-0,NVIDIA" in found.notes["hami.io/vgpu-devices-allocated"]
    # The next move begins when the pod has ended.
    assert api.listed == _ENDING
    [body] = api.evicted
    assert body["deleteOptions"] == {"preconditions": {"uid": "default/p0"}}
    api = Api(429)
    assert (await move(api, 0)).trouble.startswith("it was not evicted: ")
    assert not api.evicted
    # The pod is gone, or another one has its name.
    assert "its budget" in (await move(Api(409), 60)).trouble
