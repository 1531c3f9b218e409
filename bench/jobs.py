"""How many Jobs are unsuspended a second on a real API server, beside the real Kueue on another one in the same run.

The Jobs wait suspended in 30 queues with quota for all. Each program makes their Workloads, gives these quota, and
starts the Jobs. Their pods name another scheduler, and nobody makes pods: what is measured is the way from the Job to
its start. Kueue has as many workers as it is installed with, and its client may make as many requests as it is installed
with (``installed``), or as many as it likes (``unlimited``): then both are as fast as the API server, which spends
several times as much CPU on a Job as either of them.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from typing import Any

import aiohttp
import msgspec

from bench.floors import Floor
from tests.controlplane import build, objects, plane
from tests.differential.queues.program import NAME, Program, start_plane
from tests.differential.queues.quotas import NAMESPACE
from tests.differential.queues.throughput import make_queues

Json = dict[str, Any]

_N, _QUICK_N = 2_000, 100
_COHORTS, _QUEUES, _CORES = 5, 6, 10_000
_JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
_CONNECTIONS = {
    "installed": {"qps": 50, "burst": 100},
    "unlimited": {"qps": 5_000, "burst": 5_000},
}
_LIMIT_SECONDS = 600.0

FLOORS = (
    Floor("ratio.installed", at_least=5),
    Floor("ratio.unlimited", at_least=1),
    Floor("cpu_ratio.*", at_least=1),
)


def run(quick: bool) -> Json:
    build.ensure("etcd", "kube-apiserver", "kueue")
    n_jobs = _QUICK_N if quick else _N
    ours = asyncio.run(_measure(n_jobs, _start_evenkeel))
    theirs = {
        name: asyncio.run(_measure(n_jobs, partial(_start_kueue, connection)))
        for name, connection in _CONNECTIONS.items()
    }
    key, cpu = "started_a_second", "cpu_ms_a_job"
    return {
        "jobs": n_jobs,
        "evenkeel": ours,
        "kueue": theirs,
        "ratio": {name: round(ours[key] / one[key], 2) for name, one in theirs.items()},
        "cpu_ratio": {name: round(one[cpu] / ours[cpu], 2) for name, one in theirs.items()},
    }


def _start_evenkeel(control: plane.ControlPlane, plain: aiohttp.ClientSession) -> str:
    del plain
    config = control.folder / "evenkeel.json"
    config.write_text(json.dumps({"queues": {"kueue": True}}))
    command = [sys.executable, "-m", "scheduler", "run", "--port", "0"]
    files = ["--kubeconfig", str(control.kubeconfig()), "--config", str(config)]
    control.spawn("evenkeel", [*command, *files])
    return "evenkeel"


def _start_kueue(
    connection: Json, control: plane.ControlPlane, plain: aiohttp.ClientSession
) -> str:
    settings = {"clientConnection": connection}
    Program(control, plain).start(settings, has_gate=False, has_jobs=True)
    return NAME


async def _measure(
    n_jobs: int, start: Callable[[plane.ControlPlane, aiohttp.ClientSession], str]
) -> Json:
    """Let one program start all Jobs; seconds of the wall clock, from its start to that of the last Job, and of CPUs."""
    with start_plane() as control:
        await objects.create_many(control, make_queues(_COHORTS, _QUEUES, _CORES))
        await objects.create_many(control, _make_jobs(n_jobs))
        async with objects.connect(control) as session, aiohttp.ClientSession() as plain:
            seen = asyncio.create_task(_note_starts(session, n_jobs))
            before = control.cpu_seconds("kube-apiserver")
            began_at = time.monotonic()
            name = await asyncio.to_thread(start, control, plain)
            seconds = await asyncio.wait_for(seen, _LIMIT_SECONDS) - began_at
            cpu_seconds = control.cpu_seconds(name)
            of_server = control.cpu_seconds("kube-apiserver") - before
            return {
                "started_a_second": round(n_jobs / seconds, 1),
                "seconds": round(seconds, 2),
                "cpu_ms_a_job": round(cpu_seconds / n_jobs * 1000, 2),
                "apiserver_cpu_ms_a_job": round(of_server / n_jobs * 1000, 2),
                "rss_mib": round(control.rss(name) / 2**20, 1),
            }


async def _note_starts(session: aiohttp.ClientSession, n_jobs: int) -> float:
    """Return when the last Job may run."""
    started: set[str] = set()
    async for one in _watch(session):
        if not one["spec"]["suspend"]:
            started.add(one["metadata"]["name"])
            if len(started) == n_jobs:
                break
    return time.monotonic()


async def _watch(session: aiohttp.ClientSession) -> AsyncIterator[Mapping[str, Any]]:
    """Each Job as it changes, from now on."""
    found = msgspec.json.decode(await objects.call(session, "GET", f"{_JOBS}?limit=1"))
    query = {"watch": "1", "resourceVersion": found["metadata"]["resourceVersion"]}
    forever = aiohttp.ClientTimeout(total=None)
    async with session.get(_JOBS, params=query, timeout=forever) as answer:
        async for line in answer.content:
            yield msgspec.json.decode(line)["object"]


def _make_jobs(n_jobs: int) -> Iterator[Json]:
    """Suspended Jobs that come to the queues in turn."""
    for i in range(n_jobs):
        container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": "1"}}}
        spec = {"restartPolicy": "Never", "containers": [container]}
        labels = {"kueue.x-k8s.io/queue-name": f"queue-{i % (_COHORTS * _QUEUES)}"}
        yield {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": f"job-{i}", "namespace": NAMESPACE, "labels": labels},
            "spec": {"suspend": True, "template": {"spec": spec}},
        }
