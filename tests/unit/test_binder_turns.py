"""The binder before a node that HAMi's plugin serves: what is written, in which order, for whom."""

import asyncio
import datetime as dt
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from scheduler.api import names, wire
from scheduler.api.cards import Grant
from scheduler.api.door import events
from scheduler.api.door.decisions import Bind
from scheduler.errors import ApiError
from scheduler.kube.bind import turns
from scheduler.kube.bind.binder import Binder
from tests import make
from tests.unit.test_binder import Api, binder, pod, until

_FORBIDDEN = events.BindFailed("default/p", "403 : no")
NODE = "/api/v1/nodes/n"


class Server(Api):
    """One node, whose lock is kept; binds of pods in ``refused`` are refused."""

    def __init__(self) -> None:
        super().__init__(self._answer)
        self.annotations: dict[str, str] = {}
        self.refused: set[str] = set()
        # The answers to the next writes of the lock.
        self.troubles: list[ApiError] = []

    def _answer(self, method: str, path: str) -> Any:
        if path == NODE:
            if method == "PATCH" and self.troubles:
                return self.troubles.pop()
            if method == "PATCH":
                changed = self.sent[-1]["metadata"]["annotations"]
                self.annotations = {k: v for k, v in (self.annotations | changed).items() if v}
            metadata = {"name": "n", "resourceVersion": "1", "annotations": self.annotations}
            return {"metadata": metadata}
        if method == "GET":
            raise ApiError(404, "NotFound", path)
        return ApiError(422, "Invalid", "refused") if path.split("/")[6] in self.refused else {}

    def did(self) -> list[str]:
        """BindWriters by what they are, in order."""
        words = {("PATCH", NODE): "lock"}
        return [words.get(one, one[1].split("/")[-2]) for one in self.asked if one[0] != "GET"]

    def seen(self) -> wire.Node:
        metadata = {"name": "n", "annotations": self.annotations}
        return msgspec.convert({"metadata": metadata}, wire.Node)


def submit(made: Binder, *wanted: str) -> None:
    for name in wanted:
        one = pod(name)
        made.submit_binds([Bind(one.uid, "n", (Grant("HAMi", ((),)),))], {one.uid: one})


def answered(name: str) -> wire.Pod:
    return make.pod(name=name, node="n", annotations={names.HAMI_BIND_PHASE: names.BIND_SUCCESS})


async def test_pods_of_one_node_are_locked_bound_and_served_one_after_another() -> None:
    server = Server()
    async with binder(server) as (made, reported):
        submit(made, "p", "q")
        await until(lambda: len(reported) == 1)
        await asyncio.sleep(0.05)
        assert server.did() == ["lock", "p"]
        assert made.backlog == 1
        made.see_pod(answered("p"))
        server.annotations = {}
        made.see_node(server.seen())
        await until(lambda: len(reported) == 2)
    assert server.did() == ["lock", "p", "lock", "q"]
    assert reported == [events.BindDone("default/p"), events.BindDone("default/q")]


async def test_a_bind_that_is_refused_gives_its_lock_back_and_lets_the_next_go() -> None:
    server = Server()
    server.refused = {"p"}
    async with binder(server) as (made, reported):
        submit(made, "p", "q")
        await until(lambda: len(reported) == 2)
    assert server.did() == ["lock", "p", "lock", "lock", "q"]
    assert server.annotations[names.HAMI_LOCK].endswith(",default,q")
    assert reported == [
        events.BindFailed("default/p", "422 Invalid: refused"), events.BindDone("default/q")
    ]  # fmt: skip


async def test_a_pod_that_is_deleted_before_its_turn_is_not_locked_for() -> None:
    """The lock of the pod before it, which is deleted too, is removed: nobody comes who would take it over."""
    server = Server()
    async with binder(server) as (made, reported):
        submit(made, "p", "q")
        await until(lambda: len(reported) == 1)
        did = server.did()
        made.note_pod_gone("default/q")
        made.note_pod_gone("default/p")
        await until(lambda: len(reported) == 2 and not server.annotations.get(names.HAMI_LOCK))
    assert reported[1] == events.BindFailed("default/q", "the pod is gone", gone=True)
    assert server.did() == [*did, "lock"]


@pytest.mark.parametrize(
    ("trouble", "is_kept"), [(ApiError(503, "", "busy"), True), (ApiError(403, "", "no"), False)]
)
async def test_a_pod_whose_lock_meets_trouble_of_the_api_server_is_not_overtaken(
    trouble: ApiError, *, is_kept: bool
) -> None:
    server = Server()
    server.troubles = [trouble]
    async with binder(server) as (made, reported):
        submit(made, "p", "q")
        await until(lambda: bool(reported))
    assert reported[0] == (events.BindDone("default/p") if is_kept else _FORBIDDEN)
    assert not server.troubles


async def test_a_pod_whose_lock_meets_nothing_but_trouble_is_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "_TROUBLE_SECONDS", 0.0)
    server = Server()
    server.troubles = [ApiError(503, "", "busy")] * 7
    async with binder(server) as (made, reported):
        submit(made, "p")
        await until(lambda: bool(reported))
    assert reported == [events.BindFailed("default/p", "503 : busy")]


@pytest.mark.parametrize("comes_another", [False, True])
async def test_the_lock_of_a_pod_that_is_gone_before_it_was_served_is_removed(
    comes_another: bool,
) -> None:
    """The plugin releases the lock of a pod that it serves; nobody else would."""
    server = Server()
    async with binder(server) as (made, reported):
        submit(made, "p")
        await until(lambda: len(reported) == 1)
        assert server.annotations[names.HAMI_LOCK].endswith(",default,p")
        made.note_pod_gone("default/p")
        if comes_another:
            submit(made, "q")
            await until(lambda: len(reported) == 2)
            await asyncio.sleep(0.05)
            assert server.annotations[names.HAMI_LOCK].endswith(",default,q")
        else:
            await until(lambda: not server.annotations.get(names.HAMI_LOCK))
    assert len(reported) == 1 + comes_another


async def test_pods_that_are_in_no_list_are_not_waited_for() -> None:
    server = Server()
    async with binder(server) as (made, reported):
        submit(made, "p", "q")
        await until(lambda: len(reported) == 1)
        made.reconcile_pods({"default/q"})
        await until(lambda: len(reported) == 2)
        made.reconcile_nodes(set())
        submit(made, "r")
        await until(lambda: len(reported) == 3)
    assert reported[1:] == [events.BindDone("default/q"), events.BindDone("default/r")]


async def test_a_stop_gives_back_what_waits_and_finishes_what_is_under_way() -> None:
    server = Server()
    async with binder(server) as (made, reported):
        submit(made, "p", "q")
        # Turns begin when all that was decided together is queued.
        await asyncio.sleep(0)
        await made.drain(1.0)
        assert made.backlog == 0
    assert reported == [
        events.BindFailed("default/q", "stopped before its turn"), events.BindDone("default/p")
    ]  # fmt: skip


class Held(Server):
    """The lock is another scheduler's; ``meanwhile`` is called with each request, before its answer."""

    def __init__(self) -> None:
        super().__init__()
        since = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.annotations = {names.HAMI_LOCK: f"{since},default,foreign"}
        self.meanwhile: Callable[[str], None] = lambda _: None

    def _answer(self, method: str, path: str) -> Any:
        self.meanwhile(f"{method} {path}")
        if path.endswith("/pods/foreign"):
            return {"metadata": {}, "spec": {"nodeName": "n", "schedulerName": "other"}}
        return super()._answer(method, path)


async def test_a_pod_that_waits_for_its_nodes_lock_is_taken_back() -> None:
    """Its bind was never sent: who takes its place need not delete it."""
    server = Held()
    async with binder(server) as (made, reported):
        submit(made, "p")
        await until(
            lambda: server.asked[-1:] == [("GET", "/api/v1/namespaces/default/pods/foreign")]
        )
        await asyncio.sleep(0.01)
        assert made.withdraw_bind("default/p", "preempted")
        assert reported == [events.BindFailed("default/p", "preempted")]
        assert made.backlog == 0
        submit(made, "q")
        server.annotations = {}
        made.see_node(server.seen())
        await until(lambda: len(reported) == 2)
    assert server.did() == ["lock", "q"]
    assert reported[1] == events.BindDone("default/q")


async def withdrawn_at(server: Held, is_time: Callable[[str], bool]) -> tuple[bool, Any]:
    """Take a pod back at the first request of a kind: whether it was taken back, and what was reported."""
    taken: list[bool] = []

    def withdraw_bind(request: str) -> None:
        if is_time(request) and not taken:
            taken.append(made.withdraw_bind("default/p", "preempted"))

    server.meanwhile = withdraw_bind
    async with binder(server) as (made, reported):
        submit(made, "p")
        await until(lambda: bool(reported))
        assert made.backlog == 0
    (was_taken,) = taken
    (result,) = reported
    return was_taken, result


TAKEN_BACK = (True, events.BindFailed("default/p", "preempted"))


async def test_a_pod_is_taken_back_while_its_node_is_found_locked() -> None:
    server = Held()
    assert await withdrawn_at(server, lambda request: request.endswith("/foreign")) == TAKEN_BACK
    assert server.did() == []


async def test_a_pod_that_is_taken_back_while_it_takes_the_lock_gives_the_lock_back() -> None:
    server = Held()
    server.annotations = {}
    assert await withdrawn_at(server, lambda request: request.startswith("PATCH")) == TAKEN_BACK
    assert server.did() == ["lock", "lock"]
    assert server.annotations == {}


async def test_a_pod_whose_bind_is_sent_is_not_taken_back() -> None:
    server = Held()
    server.annotations = {}
    found = await withdrawn_at(server, lambda request: request.endswith("/binding"))
    assert found == (False, events.BindDone("default/p"))
