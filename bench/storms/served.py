"""A storm on a real API server: seconds from a pod's creation to its binding, as others see it.

Evenkeel runs as installed. Before the storm it has looked at all pods that wait, and told them why as far as there was
time: what it has not said by then it writes in the storm. An API server in a storm is slow for everyone: beside each
pod that fits comes one that is bound as soon as it is seen, by a null scheduler.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import sys
import time
import urllib.request
from collections.abc import Callable
from typing import Any, NamedTuple

import aiohttp
import msgspec

from bench.storms import weather
from tests.controlplane import objects, plane

FLOORS = weather.FLOORS
_PODS = "/api/v1/namespaces/default/pods"
# Changes that are being written at once: where the API server is slower, there are fewer a second.
_UNDER_WAY_MOST = 16
# Who does not think.
_NULL = "null"
_WAIT, _UNTOLD = 'scheduler_pending_pods{queue="unschedulable"}', "evenkeel_reports_waiting"
# The first start compiles the kernels.
_START_SECONDS, _PARKED_SECONDS, _TOLD_SECONDS, _LATE_SECONDS = 300.0, 600.0, 120.0, 60.0


class _Size(NamedTuple):
    nodes: int
    waiting: int
    seconds: float


def run(quick: bool) -> list[dict[str, Any]]:
    """Like and different pods."""
    size = _Size(100, 1_000, 10.0) if quick else _Size(1_000, weather.WAITING, 60.0)
    found = []
    for alike in (True, False):
        found.append(_storm(size, alike=alike))
        print(f"bench: {found[-1]}", file=sys.stderr, flush=True)
    return found


def _storm(size: _Size, *, alike: bool) -> dict[str, Any]:
    with plane.start() as cp:
        asyncio.run(objects.create_many(cp, map(weather.node, range(size.nodes))))
        command = [sys.executable, "-m", "scheduler", "run", "--port", "0"]
        cp.spawn("evenkeel", [*command, "--kubeconfig", str(cp.kubeconfig())])
        if not _until(lambda: '"event": "leading"' in cp.logs("evenkeel"), _START_SECONDS):
            raise RuntimeError(f"it does not lead: {cp.logs('evenkeel')}")
        scheduler = _scheduler(cp)
        began = time.monotonic()
        pods = (weather.waiting(i, alike=alike) for i in range(size.waiting))
        asyncio.run(objects.create_many(cp, pods))
        created = time.monotonic() - began
        if not _until(lambda: _read(scheduler, _WAIT) >= size.waiting, _PARKED_SECONDS):
            raise RuntimeError("not all pods wait")
        parked = time.monotonic() - began
        _until(lambda: _read(scheduler, _UNTOLD) == 0, _TOLD_SECONDS)
        untold, cpu = _read(scheduler, _UNTOLD), cp.cpu_seconds("evenkeel")
        blown = asyncio.run(_Storm(cp, size).blow())
        return {
            "size": f"{size.nodes} nodes, {size.waiting} pods wait, {'alike' if alike else 'all different'}",
            "created_seconds": round(created, 1),
            "parked_seconds": round(parked, 1),
            "reports_untold": round(untold),
            **blown,
            "busy": round((cp.cpu_seconds("evenkeel") - cpu) / size.seconds, 3),
            "rss_mib": round(cp.rss("evenkeel") / 2**20),
        }


class _Storm:
    """The changes of nodes, the pods that fit, and when each of these was there and bound (loop time)."""

    def __init__(self, cp: plane.ControlPlane, size: _Size) -> None:
        self._cp, self._size = cp, size
        self._created: dict[str, float] = {}
        self._bound: dict[str, float] = {}
        self._n_changes = 0

    async def blow(self) -> dict[str, Any]:
        """What became of the pods that fit."""
        loop = asyncio.get_running_loop()
        async with objects.connect(self._cp) as session:
            told = await self._events(session)
            tasks = [
                asyncio.create_task(one)
                for one in (self._watch(session), self._change(session), self._fit(session))
            ]
            await asyncio.sleep(self._size.seconds)
            for task in tasks[1:]:
                task.cancel()
            gives_up_at = loop.time() + _LATE_SECONDS
            while self._created.keys() - self._bound.keys() and loop.time() < gives_up_at:
                await asyncio.sleep(0.1)
            tasks[0].cancel()
            for found in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(found, Exception):
                    raise found
            told = await self._events(session) - told
        came = self._created.keys() & self._bound.keys()
        waits = {name: self._bound[name] - self._created[name] for name in came}
        ours = [wait for name, wait in waits.items() if not name.startswith(_NULL)]
        n_ours = sum(not name.startswith(_NULL) for name in self._created)
        null = weather.figures([wait for name, wait in waits.items() if name.startswith(_NULL)], 0)
        return weather.figures(ours, n_ours - len(ours)) | {
            "null_p50_seconds": null["p50_seconds"],
            "null_p99_seconds": null["p99_seconds"],
            "changes_a_second": round(self._n_changes / self._size.seconds, 1),
            "events_a_second": round(told / self._size.seconds, 1),
        }

    async def _change(self, session: aiohttp.ClientSession) -> None:
        changes = weather.changes(self._size.nodes)
        under_way: set[asyncio.Task[None]] = set()
        async with asyncio.TaskGroup() as group:

            def begin() -> None:
                if len(under_way) < _UNDER_WAY_MOST:
                    task = group.create_task(self._patch(session, next(changes)))
                    under_way.add(task)
                    task.add_done_callback(under_way.discard)

            await self._at_a_rate(weather.CHANGES, begin)

    async def _patch(self, session: aiohttp.ClientSession, patch: weather.Patch) -> None:
        path = f"/api/v1/nodes/{weather.node(patch.node)['metadata']['name']}"
        # What is not written in time is not counted.
        with contextlib.suppress(objects.CallError):
            await objects.call(session, "PATCH", path + "/status" * patch.of_status, patch.body)
            self._n_changes += 1

    async def _fit(self, session: aiohttp.ClientSession) -> None:
        async with asyncio.TaskGroup() as group:
            numbers = itertools.count()

            def begin() -> None:
                number = next(numbers)
                pod, null = weather.fitting(number), weather.fitting(number)
                null["metadata"]["name"] = f"{_NULL}-{number:05}"
                null["spec"]["schedulerName"] = _NULL
                for one in (pod, null):
                    group.create_task(self._create(session, one))

            await self._at_a_rate(weather.FITTING, begin)

    async def _create(self, session: aiohttp.ClientSession, pod: objects.Manifest) -> None:
        with contextlib.suppress(objects.CallError):
            await objects.call(session, "POST", _PODS, pod)
            self._created[pod["metadata"]["name"]] = asyncio.get_running_loop().time()

    async def _watch(self, session: aiohttp.ClientSession) -> None:
        loop = asyncio.get_running_loop()
        query = {"watch": "true", "resourceVersion": "0", "labelSelector": "fits=yes"}
        forever = aiohttp.ClientTimeout(total=None)
        async with (
            asyncio.TaskGroup() as group,
            session.get(_PODS, params=query, timeout=forever) as answer,
        ):
            async for line in answer.content:
                change = msgspec.json.decode(line)
                pod = change["object"]
                if "nodeName" in pod["spec"]:
                    self._bound.setdefault(pod["metadata"]["name"], loop.time())
                elif pod["spec"]["schedulerName"] == _NULL and change["type"] == "ADDED":
                    group.create_task(self._bind(session, pod))

    async def _bind(self, session: aiohttp.ClientSession, pod: objects.Manifest) -> None:
        node = weather.node(1)["metadata"]["name"]
        binding = objects.binding(pod, node, pod["metadata"]["uid"])
        with contextlib.suppress(objects.CallError):
            await objects.call(session, "POST", objects.collection(binding), binding)

    @staticmethod
    async def _at_a_rate(a_second: float, begin: Callable[[], object]) -> None:
        """Begin something again and again, however long it takes, until cancelled."""
        loop = asyncio.get_running_loop()
        at = loop.time()
        while True:
            begin()
            at += 1 / a_second
            await asyncio.sleep(max(0.0, at - loop.time()))

    @staticmethod
    async def _events(session: aiohttp.ClientSession) -> float:
        """How many events have been written."""
        text = (await objects.call(session, "GET", "/metrics")).decode()
        return sum(
            float(line.rsplit(" ", 1)[1])
            for line in text.splitlines()
            if line.startswith("apiserver_request_total{")
            and 'resource="events"' in line
            and 'verb="POST"' in line
        )


def _scheduler(cp: plane.ControlPlane) -> str:
    """Where it tells its metrics."""
    started = (json.loads(one) for one in cp.logs("evenkeel").splitlines() if '"started"' in one)
    return f"http://127.0.0.1:{next(started)['port']}/metrics"


def _read(url: str, metric: str) -> float:
    with urllib.request.urlopen(url, timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return next(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(f"{metric} "))


def _until(holds: Callable[[], bool], seconds: float) -> bool:
    """Whether something holds in time."""
    deadline = time.monotonic() + seconds
    while not (found := holds()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found
