"""Pods per second from the first bind to the last, on a real API server, for three schedulers.

Each figure has a freshly started control plane: the nodes are made, then the pods, then the scheduler starts
with all of them pending. A watch on metadata alone counts the binds as they happen.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import aiohttp

from bench.floors import Floor
from tests.controlplane import objects, plane

# All three run as the same kind of user, so that API priority and fairness treats them alike.
USER = "admin"
_PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_WATCH = {"watch": "true", "fieldSelector": "spec.nodeName!=", "allowWatchBookmarks": "true"}

FLOORS = (
    Floor("*.times_kube_scheduler", at_least=1.6, only=("pods", "plain")),
    Floor("*.times_kube_scheduler", at_least=2.0, only=("pods", "one GPU")),
    Floor("*.of_null_scheduler", at_least=0.85),
)


def measure(
    scheduler: str, *, n_nodes: int, n_pods: int, gpu: bool, distinct: bool = False
) -> dict[str, Any]:
    """One scheduler at one size: pods/s from first bind to last, and its CPU time and RSS.

    ``distinct``: every pod asks CPU and memory of its own.
    """
    with plane.start() as cp:
        asyncio.run(_load(cp, scheduler, n_nodes, n_pods, gpu=gpu, distinct=distinct))
        started = time.monotonic()
        process = _START[scheduler](cp)
        stamps = asyncio.run(_binds(cp, n_pods))
        seconds = stamps[-1] - stamps[0]
        return {
            "scheduler": scheduler,
            "nodes": n_nodes,
            "pods": n_pods,
            "gpu": gpu,
            "pods_per_second": round((n_pods - 1) / seconds, 1),
            "start_to_first_bind_seconds": round(stamps[0] - started, 2),
            "cpu_ms_per_pod": round(cp.cpu_seconds(process) * 1000 / n_pods, 3),
            "rss_mib": round(cp.rss(process) / 2**20),
        }


async def _load(
    cp: plane.ControlPlane,
    scheduler: str,
    n_nodes: int,
    n_pods: int,
    *,
    gpu: bool,
    distinct: bool,
) -> None:
    extended = {"nvidia.com/gpu": 8} if gpu else None
    name = "default-scheduler" if scheduler == "kube-scheduler" else "evenkeel"
    limits = {"nvidia.com/gpu": 1} if gpu else None
    await objects.create_many(
        cp, [objects.node(f"node-{i:05}", extended=extended) for i in range(n_nodes)]
    )
    await objects.create_many(
        cp,
        [
            objects.pod(
                f"pod-{i:05}",
                requests=_requests(i if distinct else 0),
                limits=limits,
                schedulerName=name,
            )
            for i in range(n_pods)
        ],
    )


def _requests(number: int) -> dict[str, str | int]:
    """Of a pod: no two numbers below 10,000 ask the same."""
    return {"cpu": f"{100 + number % 100}m", "memory": f"{500 + number // 100}Mi"}


async def _binds(cp: plane.ControlPlane, n_pods: int) -> list[float]:
    """Times at which pods were seen bound."""
    stamps: list[float] = []
    version = "0"
    headers = {"Accept": _PARTIAL, "Authorization": f"Bearer {cp.token}"}
    timeout = aiohttp.ClientTimeout(total=600)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=cp.trust())) as session:
        # The API server ends a watch that falls behind; it goes on from the last version seen.
        for _ in range(100):
            params = {**_WATCH, "resourceVersion": version}
            async with session.get(
                f"{cp.url}/api/v1/pods", params=params, headers=headers, timeout=timeout
            ) as answer:
                rest = b""
                async for chunk in answer.content.iter_any():
                    now = time.monotonic()
                    lines = (rest + chunk).split(b"\n")
                    rest = lines.pop()
                    # Later changes of a bound pod arrive as MODIFIED.
                    stamps += [now] * sum(b'"type":"ADDED"' in line for line in lines)
                    if len(stamps) >= n_pods:
                        return stamps
                    if lines:
                        version = json.loads(lines[-1])["object"]["metadata"]["resourceVersion"]
    raise RuntimeError(f"the watch ended for good after {len(stamps)} of {n_pods} binds")


def _start_evenkeel(cp: plane.ControlPlane, *more: str) -> str:
    command = [sys.executable, "-m", "scheduler", "run", "--port", "0", "--log-level", "warning"]
    access = ["--kubeconfig", str(cp.kubeconfig(token=cp.tokens[USER]))]
    cp.spawn("evenkeel", [*command, *access, *more])
    return "evenkeel"


def _start_recording(cp: plane.ControlPlane) -> str:
    return _start_evenkeel(cp, "--record", str(cp.folder / "events"))


def _start_null(cp: plane.ControlPlane) -> str:
    command = [sys.executable, "-m", "bench.null_scheduler", "--url", cp.url]
    cp.spawn("null", [
        *command, "--token", cp.tokens[USER], "--ca-file", str(cp.ca_file), "--scheduler", "evenkeel"
    ])  # fmt: skip
    return "null"


def _start_kube_scheduler(cp: plane.ControlPlane) -> str:
    cp.start_scheduler()
    return "kube-scheduler"


_START: dict[str, Callable[[plane.ControlPlane], str]] = {
    "evenkeel": _start_evenkeel,
    "null": _start_null,
    "kube-scheduler": _start_kube_scheduler,
    "recording": _start_recording,
}
_MEASURED = ("pods_per_second", "start_to_first_bind_seconds", "cpu_ms_per_pod", "rss_mib")
_COMPARED = ("evenkeel", "null", "kube-scheduler")


def run(quick: bool) -> list[dict[str, Any]]:
    """All sizes and shapes; ratios against kube-scheduler and against not thinking."""
    sizes = (1_000,) if quick else (1_000, 5_000)
    return [compared(n_nodes, gpu=gpu, quick=quick) for n_nodes in sizes for gpu in (False, True)]


def medians(
    schedulers: Sequence[str], n_nodes: int, *, gpu: bool, quick: bool, distinct: bool = False
) -> dict[str, dict[str, Any]]:
    """Of each scheduler the median of three turns, of one if ``quick``.

    A machine is a fifth slower or faster from one minute to the next, and the first of a turn runs on a cooler
    one, so each is first in turn.
    """
    found: dict[str, list[dict[str, Any]]] = {scheduler: [] for scheduler in schedulers}
    n_pods, turns = (2_000, 1) if quick else (5_000, 3)
    for turn in range(turns):
        first = turn % len(schedulers)
        for scheduler in (*schedulers[first:], *schedulers[:first]):
            figures = measure(scheduler, n_nodes=n_nodes, n_pods=n_pods, gpu=gpu, distinct=distinct)
            print(f"bench: {figures}", file=sys.stderr, flush=True)
            found[scheduler].append(figures)
    return {
        scheduler: every[0]
        | {figure: statistics.median(one[figure] for one in every) for figure in _MEASURED}
        for scheduler, every in found.items()
    }


def compared(
    n_nodes: int, *, gpu: bool, quick: bool = False, distinct: bool = False
) -> dict[str, Any]:
    """All three schedulers with the same nodes and pods."""
    figures = medians(_COMPARED, n_nodes, gpu=gpu, quick=quick, distinct=distinct)
    ours = figures["evenkeel"]["pods_per_second"]
    row = {
        "nodes": n_nodes,
        "pods": "one GPU" if gpu else "plain",
        "times_kube_scheduler": round(ours / figures["kube-scheduler"]["pods_per_second"], 2),
        "of_null_scheduler": round(ours / figures["null"]["pods_per_second"], 2),
        "schedulers": figures,
    }
    print(f"bench: {row}", file=sys.stderr, flush=True)
    return row
