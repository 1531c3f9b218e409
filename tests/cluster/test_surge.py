"""Moves by one more replica with Kubernetes' own controllers: the test is the scheduler and the kubelet."""

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from scheduler.embedded.agents import nodes
from scheduler.kube import client
from scheduler.kube.client import ApiClient
from scheduler.kube.evict import moves
from scheduler.kube.evict.successors import Came, Order
from scheduler.kube.evict.surge import leftovers
from scheduler.state.pods import PodRecord
from tests import make
from tests.model.replicas import COST, LABEL, Killed
from tests.operator import servers
from tests.operator.world import PODS, Refused, World, enter

Json = dict[str, Any]
_APPS = "/apis/apps/v1/namespaces/default"
_DEPLOYMENTS, _SETS = f"{_APPS}/deployments", f"{_APPS}/replicasets"
_SCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
_QUOTAS = "/api/v1/namespaces/default/resourcequotas"
_CONTROLLERS = (
    "deployment-controller",
    "replicaset-controller",
    "disruption-controller",
    "garbage-collector-controller",
)


@pytest.fixture(scope="module")
def server(peers: None) -> Iterator[servers.Server]:  # noqa: ARG001 - builds them
    with servers.real() as running:
        assert running.plane is not None
        running.plane.start_controller_manager(_CONTROLLERS)
        yield running


class Killing(ApiClient):
    """A client whose process ends right after one of its writes."""

    killed_at = 0
    calls = 0

    async def send(self, method: str, path: str, body: object, *, content_type: str = client.JSON, params: Mapping[str, str] | None = None) -> bytes:  # fmt: skip
        answer = await super().send(method, path, body, content_type=content_type, params=params)
        self.calls += method == "PATCH"
        if self.calls == self.killed_at and method == "PATCH":
            raise Killed
        return answer


class Web:
    """A Deployment of two pods on node a.

    Attributes:
        target: the node of new pods.
        starts: whether new pods become ready.
        fewest: the fewest pods that were ready at any time.
    """

    def __init__(self, world: World, api: Killing) -> None:
        self.world, self.api = world, api
        self.target, self.starts, self.fewest = "a", True, 2
        self.first: list[str] = []

    async def play(self) -> None:
        """Be the scheduler and the kubelet."""
        while True:
            for one in await self.world.listed(PODS):
                with suppress(Refused):
                    await self._play_pod(one)
            await asyncio.sleep(0.02)

    async def _play_pod(self, pod: Json) -> None:
        path = f"{PODS}/{pod['metadata']['name']}"
        if "deletionTimestamp" in pod["metadata"]:
            await self.world.call("DELETE", path, {"gracePeriodSeconds": 0})
        elif not pod["spec"].get("nodeName"):
            target = {"apiVersion": "v1", "kind": "Node", "name": self.target}
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod["metadata"]["name"]}, "target": target}  # fmt: skip
            await self.world.call("POST", f"{path}/binding", body)
        elif self.starts and pod["status"].get("phase") != "Running":
            conditions = [{"type": "Ready", "status": "True"}]
            await self.world.call("PATCH", f"{path}/status", {"status": {"phase": "Running", "conditions": conditions}})  # fmt: skip

    async def find_nodes(self) -> list[str]:
        return sorted(
            one["spec"].get("nodeName", "")
            for one in await self.world.listed(PODS)
            if one["status"].get("phase") == "Running"
            and "deletionTimestamp" not in one["metadata"]
        )

    async def settle(self, *wanted: str) -> None:
        await self.world.wait_until(self.find_nodes, lambda found: found == [*wanted], 60.0)

    async def read(self) -> Json:
        return await self.world.call("GET", f"{_DEPLOYMENTS}/web")

    async def move(self, seconds: float = 60.0) -> Came:
        """Move a pod to node b."""
        self.target = "b"
        old = min(await self.world.listed(PODS), key=lambda one: str(one["metadata"]["name"]))
        self.first = [one["metadata"]["name"] for one in await self.world.listed(PODS)]
        (of,) = old["metadata"]["ownerReferences"]
        order = Order(of["uid"], seconds, is_planned=lambda came: came.node == "b")
        async with self.world.recorded(PODS) as changes:
            before = await self.world.listed(PODS)
            try:
                return await moves.move_pod(self.api, _record(old), order)
            finally:
                self.fewest = min(_count_ready(before, changes))

    async def has_ended(self, *wanted: str, replicas: int = 2) -> None:
        """Nothing is left of a move but where the pods are."""
        await self.settle(*wanted)
        assert (await self.read())["spec"]["replicas"] == replicas
        for one in await self.world.listed(PODS):
            meta = one["metadata"]
            assert LABEL not in meta.get("labels", {})
            assert COST not in meta.get("annotations", {})


def _record(pod: Json) -> PodRecord:
    meta = pod["metadata"]
    found = make.cluster().see_pod(make.pod(name=meta["name"], uid=meta["uid"]))
    assert found is not None
    return found


def _count_ready(before: list[Json], changes: list[Json]) -> list[int]:
    """Count the pods that are ready and do not end, after each change."""
    there = {one["metadata"]["uid"]: one for one in before}
    counts = []
    for change in [None, *changes]:
        if change is not None:
            uid = change["object"]["metadata"]["uid"]
            there[uid] = change["object"]
            if change["type"] == "DELETED":
                del there[uid]
        counts.append(
            sum(
                one["status"].get("phase") == "Running" and "deletionTimestamp" not in one["metadata"]
                for one in there.values()
            )
        )  # fmt: skip
    return counts


@pytest.fixture
async def web(server: servers.Server, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Web]:
    assert server.plane is not None
    monkeypatch.setattr("scheduler.kube.evict.surge.surging.POLL_SECONDS", 0.1)
    access = client.load_access(str(server.plane.kubeconfig()))
    async with enter(server) as world, _open(access) as api:
        for name in "ab":
            await world.create(nodes.make_plain_node(name, cpu="4"))
        made = Web(world, api)
        playing = asyncio.create_task(made.play())
        await world.call("POST", _DEPLOYMENTS, _make_deployment())
        await made.settle("a", "a")
        # The controllers have heard of it too.
        await world.wait_until(made.read, lambda one: one["status"].get("availableReplicas") == 2)
        yield made
        made.starts = True
        for path in (_DEPLOYMENTS, _SCALERS, _QUOTAS):
            for one in await world.listed(path):
                await world.delete(f"{path}/{one['metadata']['name']}")
        await world.wait_until(lambda: world.listed(PODS), lambda found: not found, 60.0)
        playing.cancel()


@asynccontextmanager
async def _open(access: client.Access) -> AsyncIterator[Killing]:
    api = Killing(access)
    try:
        yield api
    finally:
        await api.close()


def _make_deployment() -> Json:
    labels = {"app": "web"}
    spec = {"schedulerName": "other", "containers": [{"name": "main", "image": "work"}]}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
    }


async def test_a_pod_moves_and_never_is_one_missing(web: Web) -> None:
    came = await web.move()
    assert (came.node, came.trouble, came.way) == ("b", "", "which was ready before the pod went")
    await web.has_ended("a", "b")
    assert web.fewest == 2
    # And again: what is left of the first move is no hindrance.
    assert (await web.move()).way == "which was ready before the pod went"


async def test_a_successor_that_is_not_ready_goes_again(web: Web) -> None:
    web.starts = False
    came = await web.move(seconds=2.0)
    assert came.is_taken_back
    assert came.trouble.endswith("was not ready in time")
    web.starts = True
    await web.has_ended("a", "a")
    assert web.fewest == 2
    assert {one["metadata"]["name"] for one in await web.world.listed(PODS)} == set(web.first)


async def test_a_successor_elsewhere_goes_again(web: Web) -> None:
    moving = asyncio.create_task(web.move())
    await asyncio.sleep(0)
    web.target = "a"
    while not moving.done():
        web.target = "a"
        await asyncio.sleep(0)
    came = await moving
    assert "went to a, and not as planned" in came.trouble
    await web.has_ended("a", "a")
    assert web.fewest == 2


# After which write, and where the pods are then, and where in the end. Three writes are all where all goes well; with the third
# the pod goes, and takes its mark along.
_KILLED = {1: (["a", "a"], ["a", "a"]), 2: (["a", "a", "b"], ["a", "b"]), 3: (["a", "b"],) * 2}


@pytest.mark.parametrize("killed_at", _KILLED)
async def test_what_a_process_leaves_that_is_killed_is_put_right(
    web: Web, killed_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    web.api.killed_at = killed_at
    with suppress(Killed):
        await web.move()
    assert web.api.calls == killed_at
    web.api.killed_at = 0
    left, wanted = _KILLED[killed_at]
    await web.settle(*left)
    # Another process may be at it.
    assert await leftovers.mend_moves(web.api) == []
    _let_pass(monkeypatch)
    assert bool(await leftovers.mend_moves(web.api)) == (killed_at == 2)
    await web.has_ended(*wanted)
    assert web.fewest == 2


async def test_a_process_that_is_killed_amid_going_back_leaves_nothing_either(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    for killed_at in (3, 4, 5):
        web.starts, web.api.killed_at, web.api.calls = False, killed_at, 0
        with suppress(Killed):
            await web.move(seconds=2.0)
        assert web.api.calls == killed_at
        web.api.killed_at = 0
        with monkeypatch.context() as patch:
            _let_pass(patch)
            await leftovers.mend_moves(web.api)
            web.starts = True
            await web.has_ended("a", "a")
        assert web.fewest == 2


async def _mend(web: Web) -> list[Json]:
    await leftovers.mend_moves(web.api)
    return [
        one for one in await web.world.listed(PODS) if LABEL in one["metadata"].get("labels", {})
    ]


def _let_pass(patch: pytest.MonkeyPatch) -> None:
    """Let the time of a move be over."""
    later = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=600)
    patch.setattr("scheduler.kube.wall_clock.now", lambda: later)


async def _await_three(web: Web) -> None:
    await web.world.wait_until(lambda: web.world.listed(PODS), lambda found: len(found) == 3)


async def _change(web: Web, what: Callable[[], Awaitable[Any]]) -> Came:
    """Change something while there is one pod more."""
    web.starts = False
    moving = asyncio.create_task(web.move())
    await _await_three(web)
    await what()
    came = await moving
    web.starts = True
    return came


async def test_a_rollout_meanwhile_ends_the_move(web: Web) -> None:
    patch = {"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}}

    async def roll_out() -> None:
        await web.world.call("PATCH", f"{_DEPLOYMENTS}/web", patch)
        web.starts = True

    came = await _change(web, roll_out)
    assert "Deployment web was changed meanwhile" in came.trouble or came.node
    await web.has_ended("b", "b")


async def test_replicas_that_somebody_sets_meanwhile_are_left_alone(web: Web) -> None:
    async def scale() -> None:
        await web.world.call("PATCH", f"{_DEPLOYMENTS}/web/scale", {"spec": {"replicas": 4}})

    came = await _change(web, scale)
    assert "somebody else has set the replicas of Deployment web" in came.trouble
    await web.settle("a", "a", "b", "b")
    await web.world.wait_until(lambda: web.world.listed(PODS, labelSelector=LABEL), lambda one: not one)  # fmt: skip
    await web.has_ended("a", "a", "b", "b", replicas=4)


async def test_a_workload_that_is_scaled_by_itself_is_moved_by_an_eviction(web: Web) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    scaler = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"}, "spec": {"maxReplicas": 3, "scaleTargetRef": target}}  # fmt: skip
    await web.world.call("POST", _SCALERS, scaler)
    came = await web.move()
    assert (came.node, came.trouble) == ("b", "")
    assert came.way == "the pod went first: Deployment web is scaled by HorizontalPodAutoscaler web"
    await web.has_ended("a", "b")


async def test_a_quota_without_room_ends_the_move(web: Web) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "full"}, "spec": {"hard": {"pods": "2"}}}  # fmt: skip
    await web.world.call("POST", _QUOTAS, quota)
    full = {"hard": {"pods": "2"}, "used": {"pods": "2"}}
    await web.world.call("PATCH", f"{_QUOTAS}/full/status", {"status": full})
    came = await web.move()
    assert "no pod more could be made: pods " in came.trouble
    assert "exceeded quota: full" in came.trouble
    await web.has_ended("a", "a")
