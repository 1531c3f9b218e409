"""Moves by one more replica: no pod fewer at any time, the right pod goes, and nothing is left of a move that was cut off."""

import asyncio
import datetime as dt
from collections.abc import Callable
from random import Random
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.errors import ApiError
from scheduler.kube.client import ApiClient
from scheduler.kube.evict import moves
from scheduler.kube.evict.successors import Came, Order
from scheduler.kube.evict.surge import leftovers, surging
from scheduler.state.pods import PodRecord
from tests import make
from tests.model.replicas import COST, LABEL, Killed, Replicas

NOW = 1_775_000_000.0
FORBIDDEN = ApiError(403, "Forbidden", "no right")


class Clock:
    """The time of day, and that of the loop; it goes on while somebody waits."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = NOW
        patch.setattr("scheduler.kube.wall_clock.now", lambda: dt.datetime.fromtimestamp(self.now, dt.UTC))  # fmt: skip
        patch.setattr(surging, "POLL_SECONDS", 0.0)
        patch.setattr(moves, "_POLL_SECONDS", 0.0)
        patch.setattr(surging, "get_time", self.get_time)

    def get_time(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def record() -> PodRecord:
    found = make.cluster().see_pod(make.pod(name="web-1-1", uid="web-1-1"))
    assert found is not None
    return found


async def move(api: Replicas, **order: Any) -> Came:
    wanted = Order("set", 60.0, is_planned=lambda came: came.node == "b")._replace(**order)
    return await moves.move_pod(cast("ApiClient", api), record(), wanted)


async def mend(api: Replicas, clock: Clock) -> list[str]:
    """Let a later process put right what is left, until the controllers have nothing to do."""
    clock.now += 2000
    said = []
    for _ in range(3):
        api.settle()
        said += await leftovers.mend_moves(cast("ApiClient", api))
    api.settle()
    return said


async def test_the_successor_is_ready_before_the_pod_goes(clock: Clock) -> None:
    api = Replicas(2)
    came = await move(api)
    assert (came.name, came.node, came.trouble) == ("web-1-3", "b", "")
    assert came.way == "which was ready before the pod went"
    assert api.list_nodes() == {"web-1-2": "a", "web-1-3": "b"}
    assert (api.deployment["spec"]["replicas"], api.least_ready, api.list_marked()) == (2, 2, [])
    # Nothing is left to do for anybody.
    assert await mend(api, clock) == []


@pytest.mark.usefixtures("clock")
async def test_the_only_pod_is_moved_without_a_gap() -> None:
    api = Replicas(1)
    assert (await move(api)).trouble == ""
    assert (api.list_nodes(), api.least_ready) == ({"web-1-2": "b"}, 1)


@given(st.integers(1, 3), st.integers(0, 6), st.randoms(use_true_random=False))
async def test_a_move_may_be_cut_off_anywhere(n: int, killed_at: int, random: Random) -> None:
    """Whenever the controllers work, and whichever of its writes was the last: no pod is missing, and nothing is left."""
    with pytest.MonkeyPatch.context() as patch:
        clock = Clock(patch)
        api = Replicas(n, random)
        api.killed_at = killed_at
        try:
            came = await move(api, seconds=1000.0)
        except Killed:
            came = None
        assert api.list_nodes()
        await mend(api, clock)
    assert api.deployment["spec"]["replicas"] == len(api.pods) == n == api.count_ready()
    assert api.least_ready == n
    assert api.list_marked() == []
    # No third pod has gone, and the one that is moved only if its successor has come.
    assert set(api.lost) <= {"web-1-1", f"web-1-{n + 1}"}
    if came is not None:
        assert (came.trouble, api.lost) == ("", ["web-1-1"])


@given(st.integers(1, 3), st.integers(0, 8), st.randoms(use_true_random=False))
async def test_a_successor_elsewhere_goes_again(n: int, killed_at: int, random: Random) -> None:
    with pytest.MonkeyPatch.context() as patch:
        clock = Clock(patch)
        api = Replicas(n, random)
        api.target, api.killed_at = "c", killed_at
        try:
            came = await move(api, seconds=1000.0)
        except Killed:
            came = None
        await mend(api, clock)
    assert (api.deployment["spec"]["replicas"], api.count_ready(), api.list_marked()) == (n, n, [])
    assert api.least_ready == n
    assert set(api.lost) <= {"web-1-1", f"web-1-{n + 1}"}
    if came is not None:
        # The controller may not have seen the mark of the successor yet: then the pod goes, as by an eviction.
        assert came.is_taken_back == (api.lost == [f"web-1-{n + 1}"])
        assert came.is_taken_back or came.node == "c"


@pytest.mark.usefixtures("clock")
async def test_a_successor_that_is_not_ready_in_time_goes_again() -> None:
    for place in ("target", "starts"):
        api = Replicas(2)
        setattr(api, place, "")
        came = await move(api, seconds=5.0)
        assert came.is_taken_back
        assert not came.is_evicted
        assert "in time" in came.trouble
        assert api.list_nodes() == {"web-1-1": "a", "web-1-2": "a"}
        assert (api.least_ready, api.list_marked(), api.lost) == (2, [], ["web-1-3"])


async def test_a_process_that_ends_has_the_successor_go_first(clock: Clock) -> None:
    api = Replicas(2)
    api.starts = False
    moving = asyncio.create_task(move(api, seconds=1e9))
    api.between = _once(api, lambda: _cancel(moving))
    with pytest.raises(asyncio.CancelledError):
        await moving
    assert api.deployment["spec"]["replicas"] == 2
    api.settle()
    assert api.lost == ["web-1-3"]
    assert api.list_marked() == ["web-1-1"]
    clock.now += 1e9
    assert await mend(api, clock) == []
    assert api.list_marked() == []


def _cancel(task: asyncio.Task[Came]) -> None:
    task.cancel()


@pytest.mark.usefixtures("clock")
async def test_a_write_without_an_answer_may_have_taken_effect() -> None:
    api = Replicas(2)
    api.unanswered = True
    assert (await move(api)).trouble == ""
    assert api.list_nodes() == {"web-1-2": "a", "web-1-3": "b"}


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("target", ["b", "c"])
async def test_an_api_server_that_is_away_is_waited_for(target: str) -> None:
    api = Replicas(2)
    api.target = target

    left = iter(range(9))

    def leave() -> None:
        api.refusals["/"] = ApiError(0, "Connection", "gone")
        api.between = come_back

    def come_back() -> None:
        if next(left, None) is None:
            api.refusals.clear()

    api.between = _once(api, leave)
    came = await move(api)
    assert came.is_taken_back == (target == "c")
    assert (api.least_ready, api.list_marked(), len(api.lost)) == (2, [], 1)


@pytest.mark.usefixtures("clock")
async def test_first_writes_that_never_come_through_leave_the_pod_where_it_is() -> None:
    api = Replicas(2)
    api.refusals["/scale"] = ApiError(0, "Timeout", "no answer")
    came = await move(api, seconds=5.0)
    assert came.trouble == "it stays: Timeout: no answer"
    assert (api.deployment["spec"]["replicas"], api.lost, api.list_marked()) == (2, [], [])


@pytest.mark.usefixtures("clock")
async def test_an_api_server_that_is_away_while_the_successor_goes_is_waited_for() -> None:
    api = Replicas(2)
    api.target = "c"
    left = iter(range(5))

    def work() -> None:
        # From the third write on: the mark of the successor.
        if len(api.pods) > 2 and api.pods[2]["spec"].get("nodeName"):
            api.refusals["/status"] = ApiError(0, "Connection", "gone")
            if next(left, None) is None:
                api.refusals.clear()

    api.between = work
    came = await move(api)
    assert (came.is_taken_back, api.lost, api.list_marked()) == (True, ["web-1-3"], [])


@pytest.mark.usefixtures("clock")
async def test_a_quota_without_room_ends_the_move_at_once() -> None:
    api = Replicas(2)
    api.refuses_pods = "exceeded quota: gpus"
    came = await move(api, seconds=1e9)
    assert came.trouble == "it stays: no pod more could be made: exceeded quota: gpus"
    assert (api.deployment["spec"]["replicas"], api.list_marked(), api.lost) == (2, [], [])


def _once(api: Replicas, what: Callable[[], None]) -> Callable[[], None]:
    """Do something as soon as there is one pod more."""
    n = len(api.pods)

    def work() -> None:
        if len(api.pods) > n:
            api.between = lambda: None
            what()

    return work


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("replicas", [2, 5, 1])
async def test_replicas_of_somebody_else_are_left_alone(replicas: int) -> None:
    api = Replicas(2)
    api.starts = False
    api.between = _once(api, lambda: api.scale(replicas, "autoscaler"))
    came = await move(api)
    assert came.is_taken_back or replicas == 1
    assert "somebody else has set the replicas" in came.trouble or replicas == 1
    assert api.deployment["spec"]["replicas"] == replicas
    api.starts = True
    api.settle()
    assert (len(api.pods), api.list_marked()) == (replicas, [])


@pytest.mark.usefixtures("clock")
async def test_a_changed_deployment_ends_the_move() -> None:
    api = Replicas(2)
    api.starts = False
    api.between = _once(api, api.change)
    came = await move(api)
    assert came.trouble == "it stays: Deployment web was changed meanwhile"
    assert (api.deployment["spec"]["replicas"], api.lost, api.list_marked()) == (2, ["web-1-3"], [])


@pytest.mark.usefixtures("clock")
async def test_what_speaks_against_it_by_then_ends_the_move() -> None:
    api = Replicas(2)
    said = iter(["", "the hours are over"])
    came = await move(api, find_hindrance=lambda: next(said))
    assert came.trouble == "it stays: the hours are over"
    assert api.lost == ["web-1-3"]


@pytest.mark.usefixtures("clock")
async def test_another_pod_that_breaks_meanwhile_is_waited_for() -> None:
    """It would go in the place of the one that is moved."""
    api = Replicas(3)
    api.between = _once(api, lambda: api.break_pod("web-1-2"))
    came = await move(api, seconds=5.0)
    assert came.trouble == "it stays: not all pods of its Deployment were ready in time"
    assert (len(api.pods), api.deployment["spec"]["replicas"], api.list_marked()) == (3, 3, [])


def _autoscale(api: Replicas) -> None:
    target = {"kind": "Deployment", "name": "web"}
    api.autoscalers = [{"metadata": {"name": "h"}, "spec": {"scaleTargetRef": target}}]


def _claim(api: Replicas, mode: str) -> None:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "models"}}
    api.deployment["spec"]["template"]["spec"] = {"volumes": [volume]}
    api.claims = [{"metadata": {"name": "models"}, "spec": {"accessModes": [mode]}}]


def _shape(**spec: Any) -> Callable[[Replicas], None]:
    return lambda api: api.deployment["spec"].update(spec)


def _annotate(api: Replicas) -> None:
    api.pods[1]["metadata"]["annotations"][COST] = "7"


def _refuse(path: str) -> Callable[[Replicas], None]:
    return lambda api: api.refusals.update({path: FORBIDDEN})


_OBJECTIONS: list[tuple[Callable[[Replicas], Any], str]] = [
    (_autoscale, "is scaled by HorizontalPodAutoscaler h"),
    (_refuse("horizontalpodautoscalers"), "horizontalpodautoscalers cannot be listed: 403"),
    (lambda api: _claim(api, "ReadWriteOnce"), "has the claim models"),
    (_shape(paused=True), "is paused"),
    (_shape(strategy={"type": "Recreate"}), "has the strategy Recreate"),
    (_shape(strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0}}), "has maxSurge 0"),
    (_shape(strategy={"rollingUpdate": {"maxSurge": "0%"}}), "has maxSurge 0"),
    (_annotate, "has a pod with controller.kubernetes.io/pod-deletion-cost, web-1-2"),
    (lambda api: api.break_pod("web-1-2"), "is being rolled out, or not all of its pods are ready"),
    (lambda api: api.deployment["metadata"].pop("managedFields"), "does not say who has set its replicas"),
    (lambda api: api.deployment["metadata"].update(deletionTimestamp="now"), "is being deleted"),
    (lambda api: api.set["metadata"].pop("ownerReferences"), "its controller is not a ReplicaSet of a Deployment"),
    (_refuse("/status"), "could not have one more: 403"),
    (_refuse("/scale"), "could not have one more: 403"),
]  # fmt: skip


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(("prepare", "why"), _OBJECTIONS, ids=[why for _, why in _OBJECTIONS])
async def test_a_workload_that_does_not_allow_it_is_moved_by_an_eviction(
    prepare: Callable[[Replicas], Any], why: str
) -> None:
    api = Replicas(2)
    prepare(api)
    came = await move(api)
    assert came.trouble == ""
    assert came.way.startswith("the pod went first: ")
    assert why in came.way
    assert (api.deployment["spec"]["replicas"], api.lost) == (2, [])
    assert not [one for one in api.pods if LABEL in one["metadata"]["labels"]]


@pytest.mark.usefixtures("clock")
async def test_a_claim_that_many_may_have_is_no_hindrance() -> None:
    api = Replicas(2)
    _claim(api, "ReadWriteMany")
    assert (await move(api)).way == "which was ready before the pod went"


@pytest.mark.usefixtures("clock")
async def test_a_move_of_another_process_is_left_alone() -> None:
    api = Replicas(2)
    api.scale(3, f"evenkeel-surge-{NOW + 60:.0f}")
    api.settle()
    assert await leftovers.mend_moves(cast("ApiClient", api)) == []
    came = await move(api)
    assert came.trouble == "it was not moved: Deployment web has one pod more by another move"
    assert not came.is_evicted
    assert not came.is_taken_back
    assert (api.deployment["spec"]["replicas"], api.lost) == (3, [])


async def test_a_mark_that_anybody_has_written_lowers_nothing(clock: Clock) -> None:
    for text in ("1", "x", "9" * 63, ""):
        api = Replicas(2)
        api.pods[0]["metadata"]["labels"][LABEL] = text
        await mend(api, clock)
        assert (api.deployment["spec"]["replicas"], api.lost) == (2, [])
        # One that says that its time is not over is nobody's business.
        assert bool(api.list_marked()) == (len(text) > 9)
