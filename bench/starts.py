"""From the start of a process, or the end of a leader, to the first bind, on a real API server.

The cluster is full of running pods, and thousands of pods wait. Four ways to begin to lead: the lease is new, a leader
has given it back before, a leader gives it back to a standby, or a leader was killed. After a crash the lease's own time
is left out, which a fresh process waits from its first look at the lease on.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

from bench.floors import Floor
from bench.rows.measuring import USER, Seen, count_bound
from tests.controlplane import objects, plane

_ASKS = {"cpu": "100m", "memory": "500Mi"}
_LEASE_SECONDS = 15
_PATIENCE_SECONDS, _LOOK_SECONDS, _QUIET_SECONDS, _QUIET_SHARE = 120.0, 0.02, 2.0, 0.05
# Pods that are made for a standby once the leader has been told to end.
_PROBES = 20
_PODS = "/api/v1/namespaces/default/pods"

FLOORS = (
    Floor("new.first_bind_seconds", at_most=2.5),
    Floor("returned.first_bind_seconds", at_most=2.5),
    Floor("standby.first_bind_seconds", at_most=1.0),
    Floor("killed.first_bind_seconds", at_most=4.0),
    Floor("new.rss_mib", at_most=300),
)


def run(quick: bool) -> dict[str, Any]:
    """Sizes, and for each way the seconds to the first bind."""
    nodes, running, waiting = (200, 800, 500) if quick else (5_000, 20_000, 5_000)
    with plane.start() as cp:
        found = asyncio.run(_measure(cp, nodes, running, waiting))
    return {"nodes": nodes, "running": running, "waiting": waiting} | found


async def _measure(
    cp: plane.ControlPlane, nodes: int, running: int, waiting: int
) -> dict[str, Any]:
    await objects.create_many(cp, [objects.node(f"node-{i:05}") for i in range(nodes)])
    await objects.create_many(
        cp, [_pod(f"runs-{i:05}", nodeName=f"node-{i % nodes:05}") for i in range(running)]
    )
    found: dict[str, Any] = {}

    async def note(way: str, began: float, without: float = 0.0, n: int = waiting) -> None:
        seen = Seen()
        async with asyncio.timeout(_PATIENCE_SECONDS):
            await count_bound(cp, seen, n, f"bench={way}")
        found[way] = {"first_bind_seconds": round(seen.stamps[0] - began - without, 2)}
        print(f"bench: starts: {way}: {found[way]}", file=sys.stderr, flush=True)

    for way in ("new", "returned"):
        await _create(cp, way, waiting)
        began = time.monotonic()
        _start(cp, way)
        await note(way, began)
        found[way]["rss_mib"] = round(cp.rss(way) / 2**20)
        if way == "new":
            await asyncio.to_thread(cp.terminate, way)
        await objects.delete_all(cp, _PODS, labelSelector=f"bench={way}")
    # So many wait for a node that is not there, while the leader changes.
    await _create(cp, "parked", waiting, nodeSelector={"no": "where"})
    _start(cp, "standby")
    await _wait_quiet(cp, "standby")
    began = time.monotonic()
    ending = asyncio.ensure_future(asyncio.to_thread(cp.terminate, "returned"))
    await asyncio.sleep(_LOOK_SECONDS)
    await _create(cp, "standby", _PROBES)
    await note("standby", began, n=_PROBES)
    await ending
    await objects.delete_all(cp, _PODS, labelSelector="bench=parked")
    cp.kill("standby")
    await _create(cp, "killed", waiting)
    began = time.monotonic()
    _start(cp, "killed")
    await note("killed", began, without=_LEASE_SECONDS)
    return found


def _pod(name: str, way: str = "runs", **spec: Any) -> objects.Manifest:
    return objects.pod(name, requests=_ASKS, labels={"bench": way}, **spec)


async def _create(cp: plane.ControlPlane, way: str, n: int, **spec: Any) -> None:
    await objects.create_many(cp, [_pod(f"{way}-{i:05}", way, **spec) for i in range(n)])


def _start(cp: plane.ControlPlane, name: str) -> None:
    command = [sys.executable, "-m", "scheduler", "run", "--port", "0", "--log-level", "warning"]
    access = ["--kubeconfig", str(cp.kubeconfig(token=cp.tokens[USER]))]
    lease = ["--lease-namespace", "default", "--lease-seconds", str(_LEASE_SECONDS)]
    cp.spawn(name, [*command, *access, *lease])


async def _wait_quiet(cp: plane.ControlPlane, name: str) -> None:
    """Until a program has read all there is."""
    before = -1.0
    while (now := cp.cpu_seconds(name)) - before > _QUIET_SHARE * _QUIET_SECONDS:
        before = now
        await asyncio.sleep(_QUIET_SECONDS)
