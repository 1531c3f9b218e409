"""A start that fails or is cancelled: what becomes of the lease."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog
from aiohttp import web

from scheduler.api import names, wire
from scheduler.config import Config
from scheduler.engine.engine import Engine
from scheduler.kernels import compiling
from scheduler.kube.app import Operator
from scheduler.kube.client import Access
from scheduler.kube.options import Options
from scheduler.kube.parts import Parts
from tests import make

Json = dict[str, Any]
LEASES = "/apis/coordination.k8s.io/v1/namespaces/ek/leases"
LEARNT = "12.500/900,3.000/400"


class Server:
    """Serves one lease, and lists of the rare kinds if it is told to; a write to the lease takes a while."""

    def __init__(
        self, *, serves_rare: bool, is_given_back: bool, pods: Sequence[wire.Pod] = ()
    ) -> None:
        self.pods = pods
        self.serves_rare, self.lease = serves_rare, dict[str, Any]()
        self.version, self.n_rare = 7, 0
        self.is_writing = asyncio.Event()
        if is_given_back:
            annotations = {names.DEPARTURES: LEARNT, names.HOLDER: "old", names.SETTLED: "4"}
            spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 4}
            self.lease = {
                "metadata": {
                    "name": "evenkeel",
                    "resourceVersion": "7",
                    "annotations": annotations,
                },
                "spec": spec,
            }

    async def answer_lease(self, request: web.Request) -> web.Response:
        if request.method == "GET":
            return web.json_response(self.lease) if self.lease else _fail(404, "NotFound")
        body = await request.json()
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self.lease = body
        self.is_writing.set()
        await asyncio.sleep(0.1)
        return web.json_response(body)

    async def answer_rest(self, request: web.Request) -> web.Response:
        if request.method == "POST":
            return web.json_response({"status": {"allowed": True}})
        if self.pods and request.path.endswith("/pods") and "watch" not in request.query:
            body = {"metadata": {"resourceVersion": "1"}, "items": self.pods}
            return web.Response(body=msgspec.json.encode(body))
        if "pods" in request.path or "nodes" in request.path:
            # Nobody gets as far as this in time.
            await asyncio.sleep(30.0)
        self.n_rare += 1
        if not self.serves_rare:
            return _fail(403, "Forbidden")
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})


def _fail(code: int, reason: str) -> web.Response:
    status = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": ""}
    return web.json_response(status, status=code)


@asynccontextmanager
async def starting(
    server: Server, monkeypatch: pytest.MonkeyPatch, **more: Any
) -> AsyncIterator[asyncio.Task[None]]:
    """An operator that starts; afterwards the start is cancelled."""
    monkeypatch.setattr(compiling, "has_uncached", bool)
    # A start that goes on for ever, until it is cancelled.
    monkeypatch.setattr(compiling, "load_kernels", partial(itertools.repeat, "kernel"))
    app = web.Application()
    for path in (LEASES, LEASES + "/{name}"):
        app.router.add_route("*", path, server.answer_lease)
    app.router.add_route("*", "/{rest:.*}", server.answer_rest)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    access = Access(url=f"http://127.0.0.1:{runner.addresses[0][1]}")
    options = Options(
        access=access, config=Config(), identity="new", lease_namespace="ek", port=0, **more
    )
    task = asyncio.create_task(Operator(options).start())
    try:
        yield task
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    finally:
        await runner.cleanup()


async def _until(is_so: Any) -> None:
    async with asyncio.timeout(10.0):
        while not is_so():
            await asyncio.sleep(0.01)


async def test_who_cannot_read_what_every_decision_needs_leaves_the_lease_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else it would hold the lease for ever, and nobody would schedule."""
    server = Server(serves_rare=False, is_given_back=True)
    async with starting(server, monkeypatch):
        await _until(lambda: server.n_rare >= 2)
        assert not server.is_writing.is_set()
    assert server.lease["spec"]["holderIdentity"] == ""
    assert server.lease["metadata"]["annotations"][names.SETTLED] == "4"


async def test_a_replica_is_not_ready_before_its_start_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The main loop turns before, while kernels are loaded and lists come."""
    made: list[Parts] = []
    make_parts = Parts.__init__

    def note_parts(parts: Parts, *args: Any, **more: Any) -> None:
        make_parts(parts, *args, **more)
        made.append(parts)

    monkeypatch.setattr(Parts, "__init__", note_parts)
    server = Server(serves_rare=True, is_given_back=True)
    async with starting(server, monkeypatch):
        await _until(lambda: made and made[0].loop.turned_at)
        assert "starting" in made[0].probes.list_reasons_not_ready()
        made[0].is_started = True
        assert "starting" not in made[0].probes.list_reasons_not_ready()


async def test_a_start_that_is_cancelled_while_it_takes_the_lease_gives_it_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the leader of before has learnt stays on the lease; whether anything is on its way nobody knows."""
    server = Server(serves_rare=True, is_given_back=True)
    async with starting(server, monkeypatch):
        await server.is_writing.wait()
        assert server.lease["spec"]["holderIdentity"] == "new"
    assert server.lease["spec"]["holderIdentity"] == ""
    assert server.lease["metadata"]["annotations"][names.DEPARTURES] == LEARNT


async def test_a_start_that_is_cancelled_after_it_took_the_lease_gives_it_back_in_good_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Server(serves_rare=True, is_given_back=True)
    async with starting(server, monkeypatch) as start:
        await server.is_writing.wait()
        await asyncio.sleep(0.5)
        assert not start.done()
    assert server.lease["spec"]["holderIdentity"] == ""
    annotations = server.lease["metadata"]["annotations"]
    assert (annotations[names.DEPARTURES], annotations[names.SETTLED]) == (LEARNT, "5")


async def test_a_recording_has_the_event_by_which_a_start_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    failed = asyncio.Event()

    def fail(_engine: Engine, pod: wire.Pod, _now: float) -> None:
        failed.set()
        raise ZeroDivisionError(pod.metadata.name)

    monkeypatch.setattr(Engine, "_see_pod", fail)
    server = Server(serves_rare=True, is_given_back=True, pods=[make.pod(name="poison")])
    with structlog.testing.capture_logs() as logs:
        async with starting(server, monkeypatch, record=tmp_path / "log"):
            async with asyncio.timeout(10.0):
                await failed.wait()
            # The part that has died says so in its next turn.
            await asyncio.sleep(0.1)
    assert b"poison" in (tmp_path / "log").read_bytes()
    said = [one["event"] for one in logs]
    assert "a part of the scheduler failed" in said
    assert "stopped before it had started" not in said
