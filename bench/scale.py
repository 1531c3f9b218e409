"""Start-up time and memory with many nodes and bound pods: from process start to ready, and RSS then."""

from __future__ import annotations

import asyncio
import json
import sys
import time
import urllib.request
from typing import Any

from bench.floors import Floor
from tests.controlplane import objects, plane

FLOORS = (Floor("start_up_seconds", at_most=10), Floor("rss_mib", at_most=500))


def run(quick: bool) -> dict[str, Any]:
    n_nodes, n_pods = (500, 2_000) if quick else (5_000, 20_000)
    with plane.start() as cp:
        asyncio.run(_load(cp, n_nodes, n_pods))
        began = time.monotonic()
        cp.spawn(
            "evenkeel",
            [
                *(sys.executable, "-m", "scheduler", "run", "--port", "0"),
                *("--kubeconfig", str(cp.kubeconfig())),
            ],
        )
        port = _until(lambda: _port(cp.logs("evenkeel")))
        _until(lambda: _is_ready(port))
        ready = time.monotonic() - began
        # The columns are complete when the replica leads: it has then listed everything twice.
        _until(lambda: '"event": "leading"' in cp.logs("evenkeel"))
        leading = time.monotonic() - began
        time.sleep(2)
        return {
            "nodes": n_nodes,
            "bound_pods": n_pods,
            "ready_seconds": round(ready, 2),
            "start_up_seconds": round(leading, 2),
            "rss_mib": round(cp.rss("evenkeel") / 2**20),
        }


async def _load(cp: plane.ControlPlane, n_nodes: int, n_pods: int) -> None:
    await objects.create_many(
        cp, [objects.node(f"node-{i:05}", extended={"nvidia.com/gpu": 8}) for i in range(n_nodes)]
    )
    await objects.create_many(
        cp,
        [
            objects.pod(
                f"pod-{i:05}",
                requests={"cpu": "100m", "memory": "500Mi"},
                nodeName=f"node-{i % n_nodes:05}",
            )
            for i in range(n_pods)
        ],
    )


def _port(log: str) -> int:
    for line in log.splitlines():
        if '"started"' in line:
            return int(json.loads(line)["port"])
    return 0


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _until(read: Any, seconds: float = 120) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := read()):
        if time.monotonic() > deadline:
            raise RuntimeError("not ready in time")
        time.sleep(0.02)
    return found
