"""Pods with shares of GPUs on a real API server: is the device plugin the only limit of how fast they start?

HAMi's plugin serves the pods of a node one after the other, so a node starts its pods no faster than the plugin answers. The
plugin is simulated, with a fixed time for each pod, over HTTP, like the kubelets. Of each node that gets several pods it is
measured, from the first lock to the last release: how long the plugin had a pod (from the bind to the release of the lock),
and how long the node stood without one although pods waited for it. All programs share the machine's cores: the CPU that
each takes for a pod says who keeps a node waiting.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections import defaultdict
from typing import Any

from scheduler.api import names
from scheduler.embedded.agents import fleet, nodes
from scheduler.embedded.agents.apiclient import Client
from scheduler.embedded.agents.hami_plugin import Knobs
from tests.controlplane import objects, plane
from tests.operator.manifests import vgpu

# HAMi's own Allocate was reported to take about 20 ms; five times as long shows what does not depend on the plugin.
_PLUGIN_SECONDS, _SLOW_SECONDS = 0.02, 0.1
_SIZES = ((50, 500, _PLUGIN_SECONDS), (50, 500, _SLOW_SECONDS), (500, 2_000, _PLUGIN_SECONDS))
_QUICK_SIZES = ((20, 100, _PLUGIN_SECONDS),)
_PROGRAMS = "evenkeel", "kube-apiserver", "etcd"
_START_SECONDS, _RUN_SECONDS = 300.0, 600.0


def run(quick: bool) -> list[dict[str, Any]]:
    """Pods that all differ, on nodes with four GPUs."""
    found = []
    for n_nodes, n_pods, seconds in _QUICK_SIZES if quick else _SIZES:
        found.append(_measure(n_nodes, n_pods, seconds))
        print(f"bench: {found[-1]}", file=sys.stderr, flush=True)
    return found


def _measure(n_nodes: int, n_pods: int, plugin_seconds: float) -> dict[str, Any]:
    with plane.start() as cp:
        asyncio.run(
            objects.create_many(cp, (nodes.make_gpu_node(f"n-{i}") for i in range(n_nodes)))
        )
        command = [sys.executable, "-m", "scheduler", "run", "--port", "0"]
        cp.spawn("evenkeel", [*command, "--kubeconfig", str(cp.kubeconfig())])
        deadline = time.monotonic() + _START_SECONDS
        while '"event": "leading"' not in cp.logs("evenkeel"):
            if time.monotonic() > deadline:
                raise RuntimeError(f"it does not lead: {cp.logs('evenkeel')}")
            time.sleep(0.2)
        before = _read_cpu(cp)
        found = asyncio.run(_start_pods(cp, n_pods, plugin_seconds))
        spent = {name: round(1000 * (now - before[name]) / n_pods, 1) for name, now in _read_cpu(cp).items()}  # fmt: skip
        return {"nodes": n_nodes, "pods": n_pods, **found, "cpu_ms_a_pod": spent}


def _read_cpu(cp: plane.ControlPlane) -> dict[str, float]:
    """Read the CPU seconds of each program; the agents are in this process."""
    return {name: cp.cpu_seconds(name) for name in _PROGRAMS} | {"agents": time.process_time()}


async def _start_pods(cp: plane.ControlPlane, n_pods: int, plugin_seconds: float) -> dict[str, Any]:
    turns = _Turns()
    async with fleet.run(
        cp.url, token=cp.token, ssl=cp.trust(), knobs=Knobs(delay_seconds=plugin_seconds)
    ):
        client = Client(cp.url, cp.token, cp.trust())
        watches = [
            asyncio.create_task(turns.follow_nodes(client)),
            asyncio.create_task(turns.follow_pods(client)),
        ]
        began = time.monotonic()
        pods = (vgpu(f"p-{i}", mem=500 + i % 997, cores=1 + i % 7) for i in range(n_pods))
        await objects.create_many(cp, pods)
        created = time.monotonic() - began
        deadline = began + _RUN_SECONDS
        while turns.n_running < n_pods and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        seconds = time.monotonic() - began
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)
        await client.close()
    return {
        "running": turns.n_running,
        "created_seconds": round(created, 2),
        "seconds": round(seconds, 2),
        "plugin_seconds_a_pod": plugin_seconds,
        **turns.sum_up(),
    }


class _Turns:
    """When each node was locked, by whom, when its pods were bound, and when the lock was gone, as watches show it."""

    def __init__(self) -> None:
        self.n_running = 0
        self._holder: dict[str, str] = {}
        self._locked: dict[str, list[float]] = defaultdict(list)
        self._released: dict[str, list[float]] = defaultdict(list)
        self._bound: dict[str, float] = {}
        self._pods_of: dict[str, list[str]] = defaultdict(list)

    async def follow_nodes(self, client: Client) -> None:
        async for _, node in client.follow("/api/v1/nodes"):
            name, notes = node["metadata"]["name"], node["metadata"].get("annotations") or {}
            holder = notes.get(names.HAMI_LOCK, "").rpartition(",")[2]
            before = self._holder.get(name, "")
            if holder == before:
                continue
            self._holder[name] = holder
            if before:
                self._released[name].append(time.monotonic())
            if holder:
                self._locked[name].append(time.monotonic())
                self._pods_of[name].append(holder)

    async def follow_pods(self, client: Client) -> None:
        running: set[str] = set()
        async for _, pod in client.follow("/api/v1/pods"):
            name = pod["metadata"]["name"]
            if pod["spec"].get("nodeName"):
                self._bound.setdefault(name, time.monotonic())
            if (pod.get("status") or {}).get("phase") == "Running":
                running.add(name)
                self.n_running = len(running)

    def sum_up(self) -> dict[str, float]:
        """Sum up the nodes that got several pods: percent of the time of their turns, and milliseconds for each pod."""
        spans, served, between, before_bind = 0.0, 0.0, [], []
        n_most = 0
        for node, locked in self._locked.items():
            released = self._released[node]
            n_most = max(n_most, len(locked))
            if len(locked) < 2 or len(released) < len(locked):
                continue
            spans += released[-1] - locked[0]
            between += [at - gone for at, gone in zip(locked[1:], released[:-1], strict=True)]
            for pod, at, gone in zip(self._pods_of[node], locked, released, strict=True):
                bound = self._bound[pod]
                served += gone - bound
                before_bind.append(bound - at)
        if not spans:
            return {}
        return {
            "pods_on_the_fullest_node": n_most,
            "plugin_busy_percent": round(100.0 * served / spans, 1),
            "unlocked_ms": round(1000 * statistics.median(between), 2),
            "lock_to_bind_ms": round(1000 * statistics.median(before_bind), 2),
        }
