"""A hostile tenant against normal work, on a real API server: time to bind, leases lost, memory.

Every second a normal CPU pod and a normal GPU pod (a share of a card) are created on 500 plain and 10 GPU
nodes, while a tenant who may only create pods attacks from a namespace of its own (or, all attacks at once,
from several). Two replicas run, as installed; ``bulk`` also restarts the leader in its middle, which is then
the standby. The attacks: tests/operator/attacks.py; those that also change and delete objects:
tests/operator/paced_attacks.py.

An API server under attack is slow for everyone, and its watches lag. A null scheduler shows how slow, in the
same run: it binds a third pod a second, watches nothing but these pods, and does not think.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from bench.floors import Floor
from scheduler.embedded.agents import fleet as agents
from scheduler.embedded.agents import nodes
from tests.controlplane import access, objects
from tests.operator import attacks, paced_attacks, servers
from tests.operator.process import Operator

FLOORS = (
    Floor("*.p99_seconds", at_most=1.0),
    Floor("*.never_bound", at_most=0),
    Floor("*.terms_lost", at_most=0),
    Floor("*.restarts", at_most=0),
    Floor("*.rss_mib", at_most=600),
    Floor("*.rss_after_mib", at_most=350),
)
_NORMAL = "normal"
_LEAD_IN_SECONDS = 4.0
# A kubelet that waits five seconds for /livez, every ten, kills after the third failure.
_LIVEZ_SECONDS, _LIVEZ_EVERY, _LIVEZ_FAILURES = 5.0, 10.0, 3
_LATE_SECONDS = 60.0
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(slots=True)
class Normal:
    """The normal pods: when each was there and when it was seen bound (loop time).

    ``creates`` are the seconds that the API server took to create each, which shows how busy it is.
    """

    created: dict[str, float] = field(default_factory=dict)
    bound: dict[str, float] = field(default_factory=dict)
    creates: list[float] = field(default_factory=list)

    def waits(self, *kinds: str) -> list[float]:
        """Seconds to bind, ascending, of the pods of some kinds that were bound."""
        return sorted(
            at - self.created[name]
            for name, at in self.bound.items()
            if name in self.created and name.startswith(kinds)
        )

    def figures(self) -> dict[str, Any]:
        """What became of them."""
        waits = self.waits("cpu", "gpu")
        n_created = sum(not name.startswith("null") for name in self.created)
        return {
            "pods": n_created,
            "never_bound": n_created - len(waits),
            "median_seconds": round(statistics.median(waits), 3),
            "p99_seconds": _p99(waits),
            "p99_of_kind": {kind: _p99(self.waits(kind)) for kind in ("cpu", "gpu")},
            "null_p99_seconds": _p99(self.waits("null")),
            "longest_seconds": round(waits[-1], 3),
            "longest_create_seconds": round(max(self.creates), 3),
        }


def _p99(ascending: list[float]) -> float:
    return round(ascending[min(len(ascending) - 1, int(len(ascending) * 0.99))], 3)


@dataclass(slots=True)
class Watched:
    """What is seen of the scheduler's processes; memory is that of the larger one."""

    operators: list[Operator]
    rss_mib: int = 0
    restarts: int = 0

    def rss(self) -> int:
        """Resident MiB, 0 when none is there."""
        found = 0
        for operator in self.operators:
            with contextlib.suppress(OSError):
                statm = Path(f"/proc/{operator.pid}/statm").read_text(encoding="ascii")
                found = max(found, int(statm.split()[1]) * _PAGE_BYTES >> 20)
        return found

    async def memory(self) -> None:
        """Keep the largest resident size, until cancelled."""
        while True:
            self.rss_mib = max(self.rss_mib, self.rss())
            await asyncio.sleep(0.2)

    async def liveness(self, operator: Operator) -> None:
        """Probe as a kubelet would, and count how often it would have killed the container."""
        failures = 0
        while operator in self.operators:
            status, _ = await asyncio.to_thread(operator.get, "/livez", _LIVEZ_SECONDS)
            failures = 0 if status == 200 else failures + 1
            if failures == _LIVEZ_FAILURES or not operator.is_running:
                self.restarts += operator in self.operators
                failures = 0
            await asyncio.sleep(_LIVEZ_EVERY)

    def leader(self) -> Operator | None:
        """The one that decides."""
        return next((one for one in self.operators if one.is_deciding), None)


async def _traffic(server: servers.Server, normal: Normal) -> None:
    """A CPU pod and a GPU pod a second, no two alike, and one for the null scheduler."""
    async with objects.connect(server.plane) as session:  # type: ignore[arg-type]
        loop = asyncio.get_running_loop()
        i = 0
        while True:
            due = loop.time() + 1.0
            gpu = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 400 + i % 50}
            cpu = {"cpu": f"{50 + i % 40}m"}
            for kind, limits in (("cpu", cpu), ("gpu", gpu), ("null", cpu)):
                name = f"{kind}-{i:05}"
                pod = objects.pod(name, _NORMAL, requests=limits, limits=limits)
                if kind == "null":
                    pod["spec"]["schedulerName"] = kind
                began = loop.time()
                async with session.post(f"/api/v1/namespaces/{_NORMAL}/pods", json=pod) as answer:
                    if answer.status < 400:
                        normal.created[name] = loop.time()
                        normal.creates.append(loop.time() - began)
            i += 1
            await asyncio.sleep(max(0.0, due - loop.time()))


async def _binds(server: servers.Server, normal: Normal) -> None:
    loop = asyncio.get_running_loop()
    async with objects.connect(server.plane) as session:  # type: ignore[arg-type]
        async for name in _come(session, "spec.nodeName!="):
            normal.bound.setdefault(name, loop.time())


async def _null(server: servers.Server, node: str) -> None:
    """Bind what asks for the null scheduler, all to one node."""
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    async with objects.connect(server.plane) as session:  # type: ignore[arg-type]
        async for name in _come(session, "spec.nodeName=,spec.schedulerName=null"):
            path = f"/api/v1/namespaces/{_NORMAL}/pods/{name}/binding"
            binding = {"metadata": {"name": name}, "target": target}
            async with session.post(path, json=binding) as answer:
                await answer.read()


async def _come(session: aiohttp.ClientSession, selector: str) -> AsyncIterator[str]:
    """Names of normal pods as they come under a selector; of each only the metadata is sent."""
    query = {"watch": "true", "fieldSelector": selector, "resourceVersion": "0"}
    accept = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
    while True:
        timeout = aiohttp.ClientTimeout(total=None)
        async with session.get(
            f"/api/v1/namespaces/{_NORMAL}/pods", params=query, headers=accept, timeout=timeout
        ) as answer:
            async for line in answer.content:
                event = msgspec.json.decode(line)
                if event["type"] == "ADDED":
                    yield event["object"]["metadata"]["name"]


async def _attack(
    plane: access.Access, spaces: list[str], names: tuple[str, ...], scale: float
) -> tuple[int, int]:
    """Attack from a process of its own, so that what is measured does not wait for it.

    Returns how many pods were created, and of how many. What the API server refuses is not tried again.
    """
    given = [plane.url, str(plane.ca_file), plane.token, spaces, names, scale]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.attacker", json.dumps(given)), stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    n_created, n_pods = json.loads(said)
    return n_created, n_pods


@asynccontextmanager
async def _background(*work: Any) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(one) for one in work]
    try:
        yield
        for task in tasks:
            if task.done():
                task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def measure(names: tuple[str, ...], *, scale: float, rest_seconds: float) -> dict[str, Any]:
    """The scheduler under some attacks at once, each from a namespace of its own."""
    with servers.real() as server:
        plane = server.plane
        assert plane is not None
        spaces = [f"tenant-{i}" for i in range(max(10, len(names)))]
        await objects.create_many(plane, [objects.namespace(s) for s in (*spaces, _NORMAL)])
        fleet = [nodes.plain_node(f"plain-{i:03}") for i in range(round(500 * min(1.0, scale * 2)))]
        fleet += [nodes.gpu_node(f"gpu-{i:02}") for i in range(10)]
        await objects.create_many(plane, fleet)
        started = [Operator(server, name=f"bench-{i}") for i in range(2)]
        normal, seen = Normal(), Watched(list(started))
        try:
            for operator in started:
                await asyncio.to_thread(operator.wait_ready)
            while not await asyncio.to_thread(seen.leader):
                await asyncio.sleep(0.1)
            before_mib = seen.rss()
            gpu_nodes = [node["metadata"]["name"] for node in fleet[-10:]]
            kubelets = agents.run(server.url, nodes=gpu_nodes, token=server.token, ssl=server.tls)
            async with (
                kubelets,
                _background(
                    seen.memory(),
                    *map(seen.liveness, started),
                    _binds(server, normal),
                    _null(server, fleet[0]["metadata"]["name"]),
                ),
            ):
                async with _background(_traffic(server, normal)):
                    await asyncio.sleep(_LEAD_IN_SECONDS)
                    began = time.monotonic()
                    n_created, n_pods = await _attack(plane, spaces, names, scale)
                    attacked = time.monotonic() - began
                    if "bulk" in names and (leader := await asyncio.to_thread(seen.leader)):
                        seen.operators.remove(leader)
                        await asyncio.to_thread(leader.stop)
                        started.append(Operator(server, name="bench-2"))
                        seen.operators.append(started[-1])
                    await asyncio.sleep(rest_seconds)
                gives_up_at = time.monotonic() + _LATE_SECONDS
                while (
                    normal.created.keys() - normal.bound.keys() and time.monotonic() < gives_up_at
                ):
                    await asyncio.sleep(0.2)
                more: dict[str, Any] = {}
                if "unlike" in names:
                    space = spaces[names.index("unlike")]
                    more = await _helped(plane, space, scale) | await _told(server, spaces)
                peak = seen.rss_mib
                print(f"bench: before the pods go: {normal.figures()} {more}", file=sys.stderr)
                for space in spaces:
                    await _clear(plane, space)
                await asyncio.sleep(60.0 if scale >= 1 else 20.0)
                after_mib = seen.rss()
            result = {
                "attack": "+".join(names),
                "attack_pods": f"{n_created} of {n_pods}",
                "attack_seconds": round(attacked, 1),
                **normal.figures(),
                "terms_lost": sum(len(one.said("no longer leading")) for one in started),
                "restarts": seen.restarts,
                "rss_before_mib": before_mib,
                "rss_mib": peak,
                "rss_after_mib": after_mib,
            }
            return result | more
        finally:
            for operator in started:
                operator.kill()


async def _clear(plane: access.Access, space: str) -> None:
    """Delete the pods: an API server gives up in the middle of many thousands, and goes on when asked again."""
    for _ in range(20):
        with contextlib.suppress(objects.CallError, aiohttp.ClientError, TimeoutError):
            await objects.delete_all(plane, f"/api/v1/namespaces/{space}/pods")
            return
    raise AssertionError(f"the pods of {space} cannot be deleted")


async def _helped(plane: access.Access, space: str, scale: float) -> dict[str, Any]:
    """Seconds until one pod of thousands that wait is bound to a new node that helps only this one."""
    number = round(10_000 * scale)
    node = nodes.plain_node("helps", cpu="64", labels={"rack": f"r{number}"})
    began = time.monotonic()
    await objects.create_many(plane, [node])
    async with objects.connect(plane) as session:
        while True:
            async with session.get(f"/api/v1/namespaces/{space}/pods/unlike-{number}") as answer:
                if "nodeName" in (await answer.json())["spec"]:
                    return {"helped_seconds": round(time.monotonic() - began, 3)}
            if time.monotonic() - began > _LATE_SECONDS:
                return {"helped_seconds": None}
            await asyncio.sleep(0.02)


async def _told(server: servers.Server, spaces: list[str]) -> dict[str, Any]:
    """How many waiting pods never got a PodScheduled condition, once nothing new is being written."""
    previous = -1
    while True:
        without = waiting = 0
        for space in spaces:
            for pod in await objects.list_all(server.plane, f"/api/v1/namespaces/{space}/pods"):  # type: ignore[arg-type]
                if "nodeName" not in pod["spec"]:
                    waiting += 1
                    kinds = {one["type"] for one in pod["status"].get("conditions") or ()}
                    without += "PodScheduled" not in kinds
        if without in {0, previous}:
            return {"waiting": waiting, "without_condition": without}
        previous = without
        await asyncio.sleep(15.0)


def run(quick: bool) -> list[dict[str, Any]]:
    """Every attack alone, then all at once that only create pods."""
    chosen = [(name,) for name in (*attacks.ALL, *paced_attacks.ALL)] + [tuple(attacks.ALL)]
    if given := os.environ.get("ATTACKS"):
        chosen = [tuple(one.split("+")) for one in given.split(",")]
    results = []
    for names in chosen:
        scale, rest = (0.1, 10.0) if quick else (1.0, 30.0)
        result = asyncio.run(measure(names, scale=scale, rest_seconds=rest))
        print(f"bench: {result}", file=sys.stderr, flush=True)
        results.append(result)
    return results
