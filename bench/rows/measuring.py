"""One scheduler, one row, one size: pods per second on a real API server, from the first bind on in most rows.

Each figure has a freshly started control plane: the nodes are made, then what else there is, then the pods; the
scheduler starts with all of them pending (but those that arrive while others are bound). A watch on metadata alone
counts the binds as they happen.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from bench.rows.row import INCOMING, Row, Size, for_scheduler
from tests.controlplane import objects, plane
from tests.operator import crds

# Evenkeel and the null scheduler run as this user; kube-scheduler as its own, which is held back as little.
USER = "admin"
_PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
# Without a bind for so long a scheduler is taken not to finish. kube-scheduler tries to make room for each of
# thousands of pods before it binds the first of them; the last few that it leaves are not worth the wait.
_PATIENCE_SECONDS, _LAST_FEW_SECONDS = 900.0, 120.0
_LOOK_SECONDS = 0.02
# A program that takes so little of a core for so long has done all it has to do.
_QUIET_SECONDS, _QUIET_SHARE = 1.0, 0.05
_LOG_TAIL = 1_500

Figures = dict[str, Any]


@dataclass(slots=True)
class Seen:
    """Times at which incoming pods were seen bound, and the scheduler's CPU seconds by the first of them."""

    stamps: list[float] = field(default_factory=list)
    cpu_at_first: float = 0.0


def measure(row: Row, scheduler: str, size: Size) -> Figures:
    """The figures; those that need it to bind nearly all are left out if it does not."""
    name = "default-scheduler" if scheduler == "kube-scheduler" else "evenkeel"
    with plane.start(extra_apiserver_flags=crds.FLAGS if row.in_groups else ()) as cp:
        asyncio.run(_load(cp, row, size, name))
        for program in row.beside:
            _spawn_beside(cp, program, row, size, name)
        started = time.monotonic()
        process = _START[scheduler](cp, row, size)
        seen = asyncio.run(_watch(cp, (process, *row.beside), size.pods))
        found: Figures = {
            "pods_per_second": speed(seen.stamps, size.pods, started if row.from_start else None),
            "unbound": size.pods - len(seen.stamps),
        }
        if found["unbound"]:
            for one in (process, *row.beside):
                print(f"bench: {one}: …{cp.logs(one)[-_LOG_TAIL:]}", file=sys.stderr)
        if found["pods_per_second"] is None or not cp.is_running(process):
            return found | {"pods_per_second": None}
        rss = cp.rss(process)
        cpu = _cpu_until_quiet(cp, process) - seen.cpu_at_first
        return found | {
            "start_to_first_bind_seconds": round(seen.stamps[0] - started, 2),
            "start_cpu_seconds": round(seen.cpu_at_first, 2),
            "cpu_ms_per_pod": round(cpu * 1000 / size.pods, 3),
            "rss_mib": round(rss / 2**20),
        }


def speed(stamps: Sequence[float], n_pods: int, started: float | None = None) -> float | None:
    """Pods per second until all but one in a hundred are bound; None where fewer are.

    The last few can wait for minutes: kube-scheduler was seen to leave 3 of 300 that preempt for more than two.

    Args:
        stamps: when pods were seen bound, from the first to the last.
        n_pods: how many there are.
        started: when it began, None for the first bind.
    """
    n_counted = _counted(n_pods)
    if not 1 < n_counted <= len(stamps):
        return None
    n_timed = n_counted - (started is None)
    seconds = stamps[n_counted - 1] - (stamps[0] if started is None else started)
    return round(n_timed / seconds, 1) if seconds > 0 else None


def _counted(n_pods: int) -> int:
    """How many of them have to be bound."""
    return n_pods - n_pods // 100


def _patience(n_bound: int, n_pods: int) -> float:
    """How many seconds to wait for the next bind."""
    return _LAST_FEW_SECONDS if n_bound >= _counted(n_pods) else _PATIENCE_SECONDS


def _cpu_until_quiet(cp: plane.ControlPlane, process: str) -> float:
    """CPU seconds of a program, what it still has to tell of the pods included."""
    gives_up_at, before = time.monotonic() + _LAST_FEW_SECONDS, -math.inf
    while (now := cp.cpu_seconds(process)) - before > _QUIET_SHARE * _QUIET_SECONDS:
        if time.monotonic() > gives_up_at:
            break
        before = now
        time.sleep(_QUIET_SECONDS)
    return now


async def _load(cp: plane.ControlPlane, row: Row, size: Size, scheduler_name: str) -> None:
    """First what others refer to by name, then what can be made in any order."""
    await objects.create_many(cp, map(row.node, range(size.nodes)))
    before = [for_scheduler(one, scheduler_name) for one in row.before(size)]
    for is_pod in (False, True):
        await objects.create_many(cp, [one for one in before if (one["kind"] == "Pod") is is_pod])
    if not row.arrive:
        pods = (row.incoming(i, size, scheduler_name) for i in range(size.pods))
        await objects.create_many(cp, pods)


async def _watch(cp: plane.ControlPlane, programs: tuple[str, ...], n_pods: int) -> Seen:
    """Until all are bound, or none for too long, or one of the programs has ended; the first is the scheduler."""
    seen = Seen()
    (selector,) = (f"{key}={value}" for key, value in INCOMING.items())
    counting = asyncio.ensure_future(count_bound(cp, seen, n_pods, selector))
    heard, heard_at = 0, time.monotonic()
    while not counting.done() and time.monotonic() < heard_at + _patience(heard, n_pods):
        await asyncio.sleep(_LOOK_SECONDS)
        if not all(map(cp.is_running, programs)):
            break
        if len(seen.stamps) > heard:
            if not heard:
                seen.cpu_at_first = cp.cpu_seconds(programs[0])
            heard, heard_at = len(seen.stamps), time.monotonic()
    counting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await counting
    return seen


async def count_bound(cp: plane.ControlPlane, seen: Seen, n_pods: int, selector: str) -> None:
    """Add to ``seen`` when pods with a label have got a node, until so many have."""
    wanted = {
        "watch": "true",
        "fieldSelector": "spec.nodeName!=",
        "labelSelector": selector,
        "allowWatchBookmarks": "true",
    }
    headers = {"Accept": _PARTIAL, "Authorization": f"Bearer {cp.token}"}
    version = "0"
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=cp.trust())) as session:
        # The API server ends a watch that falls behind; it goes on from the last version seen.
        while len(seen.stamps) < n_pods:
            async with session.get(
                f"{cp.url}/api/v1/pods",
                params={**wanted, "resourceVersion": version},
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=None),
            ) as answer:
                async for now, lines in _lines(answer):
                    # Later changes of a bound pod arrive as MODIFIED.
                    seen.stamps += [now] * sum(b'"type":"ADDED"' in line for line in lines)
                    if len(seen.stamps) >= n_pods:
                        return
                    version = json.loads(lines[-1])["object"]["metadata"]["resourceVersion"]


async def _lines(answer: aiohttp.ClientResponse) -> AsyncIterator[tuple[float, list[bytes]]]:
    """Complete lines, as they come together."""
    rest = b""
    async for chunk in answer.content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield time.monotonic(), lines


# Programs.


def _spawn_beside(cp: plane.ControlPlane, program: str, row: Row, size: Size, name: str) -> None:
    command = [sys.executable, "-m", f"bench.beside.{program}", "--url", cp.url]
    access = ["--token", cp.tokens[USER], "--ca-file", str(cp.ca_file)]
    measured = ["--row", row.name, "--nodes", str(size.nodes), "--pods", str(size.pods)]
    cp.spawn(program, [*command, *access, *measured, "--scheduler", name])


def _start_evenkeel(cp: plane.ControlPlane, *more: str) -> str:
    command = [sys.executable, "-m", "scheduler", "run", "--port", "0", "--log-level", "warning"]
    access = ["--kubeconfig", str(cp.kubeconfig(token=cp.tokens[USER]))]
    cp.spawn("evenkeel", [*command, *access, *more])
    return "evenkeel"


def _start_recording(cp: plane.ControlPlane) -> str:
    return _start_evenkeel(cp, "--record", str(cp.folder / "events"))


def _start_null(cp: plane.ControlPlane, row: Row, size: Size) -> str:
    _spawn_beside(cp, "null_scheduler", row, size, "evenkeel")
    return "null_scheduler"


def _start_kube_scheduler(cp: plane.ControlPlane, row: Row) -> str:
    cp.start_scheduler(extra_flags=[crds.GATES_FLAG] if row.in_groups else [])
    return "kube-scheduler"


_START: dict[str, Callable[[plane.ControlPlane, Row, Size], str]] = {
    "evenkeel": lambda cp, *_: _start_evenkeel(cp),
    "null": _start_null,
    "kube-scheduler": lambda cp, row, _: _start_kube_scheduler(cp, row),
    "recording": lambda cp, *_: _start_recording(cp),
}
SCHEDULERS = tuple(_START)
