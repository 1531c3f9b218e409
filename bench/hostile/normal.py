"""The normal pods: who creates them, who sees them bound, and how long each waited."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import msgspec

from tests.controlplane import objects
from tests.operator import servers

NAMESPACE = "normal"
# Preempts the low pods that the attack ``repels`` puts on every node.
_HIGH = "above-all"


@dataclass(slots=True)
class Normal:
    """The normal pods: when each was created and when it was bound (loop time).

    Attributes:
        kinds: of which kinds one is created each second, beside one of the null scheduler's.
        creates: the seconds that the API server took to create each, which shows how busy it is.
    """

    kinds: tuple[str, ...]
    created: dict[str, float] = field(default_factory=dict)
    bound: dict[str, float] = field(default_factory=dict)
    creates: list[float] = field(default_factory=list)

    def find_waits(self, kinds: Iterable[str]) -> list[float]:
        """Seconds to bind, ascending, of the pods of some kinds that were bound."""
        return sorted(
            at - self.created[name]
            for name, at in self.bound.items()
            if name in self.created and name.startswith(tuple(kinds))
        )

    def measure(self) -> dict[str, Any]:
        """How many pods there were, and how long they waited."""
        waits = self.find_waits(self.kinds)
        n_created = sum(name.startswith(self.kinds) for name in self.created)
        return {
            "pods": n_created,
            "never_bound": n_created - len(waits),
            "median_seconds": round(statistics.median(waits), 3) if waits else None,
            "p99_seconds": _find_p99(waits),
            "p99_of_kind": {kind: _find_p99(self.find_waits([kind])) for kind in self.kinds},
            "null_p99_seconds": _find_p99(self.find_waits(["null"])),
            "longest_seconds": round(waits[-1], 3) if waits else None,
            "longest_create_seconds": round(max(self.creates), 3),
        }


def _find_p99(ascending: list[float]) -> float | None:
    if not ascending:
        return None
    return round(ascending[min(len(ascending) - 1, int(len(ascending) * 0.99))], 3)


async def create_class(server: servers.Server) -> None:
    """The priority of the pods of the kind ``high``."""
    manifest = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": _HIGH},
        "value": 1000,
    }
    assert server.plane is not None
    await objects.create_many(server.plane, [manifest])


async def create(server: servers.Server, normal: Normal) -> None:
    """A pod of each kind a second, no two alike, and one for the null scheduler, until cancelled."""
    async with objects.connect(server.plane) as session:  # type: ignore[arg-type]
        loop = asyncio.get_running_loop()
        i = 0
        while True:
            due = loop.time() + 1.0
            for kind in (*normal.kinds, "null"):
                pod = _make_pod(kind, i)
                began = loop.time()
                async with session.post(f"/api/v1/namespaces/{NAMESPACE}/pods", json=pod) as answer:
                    if answer.status < 400:
                        normal.created[pod["metadata"]["name"]] = loop.time()
                        normal.creates.append(loop.time() - began)
            i += 1
            await asyncio.sleep(max(0.0, due - loop.time()))


def _make_pod(kind: str, i: int) -> dict[str, Any]:
    """A pod; how much it requests depends on its number."""
    limits: dict[str, Any] = {"cpu": f"{50 + i % 40}m"}
    if kind == "gpu":
        limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 400 + i % 50}
    elif kind == "high":
        limits = {"cpu": f"{20_000 + i % 40}m"}
    pod = objects.pod(f"{kind}-{i:05}", NAMESPACE, requests=limits, limits=limits)
    if kind == "null":
        pod["spec"]["schedulerName"] = kind
    elif kind == "high":
        pod["spec"]["priorityClassName"] = _HIGH
    return pod


async def watch_binds(server: servers.Server, normal: Normal) -> None:
    """Note when each normal pod has a node, until cancelled."""
    loop = asyncio.get_running_loop()
    async with objects.connect(server.plane) as session:  # type: ignore[arg-type]
        async for name in _watch_names(session, "spec.nodeName!="):
            normal.bound.setdefault(name, loop.time())


async def bind_null(server: servers.Server, node: str) -> None:
    """Bind what names the null scheduler, all to one node, until cancelled."""
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    async with objects.connect(server.plane) as session:  # type: ignore[arg-type]
        async for name in _watch_names(session, "spec.nodeName=,spec.schedulerName=null"):
            path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/binding"
            binding = {"metadata": {"name": name}, "target": target}
            async with session.post(path, json=binding) as answer:
                await answer.read()


async def _watch_names(session: aiohttp.ClientSession, selector: str) -> AsyncIterator[str]:
    """Names of normal pods as they come under a selector; of each only the metadata is sent."""
    query = {"watch": "true", "fieldSelector": selector, "resourceVersion": "0"}
    accept = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
    while True:
        timeout = aiohttp.ClientTimeout(total=None)
        async with session.get(
            f"/api/v1/namespaces/{NAMESPACE}/pods", params=query, headers=accept, timeout=timeout
        ) as answer:
            async for line in answer.content:
                event = msgspec.json.decode(line)
                if event["type"] == "ADDED":
                    yield event["object"]["metadata"]["name"]
