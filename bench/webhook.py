"""How long the webhook takes for a review while so many come each second as the API server may send.

The server runs in a process of its own, as it does in the operator: in a thread beside a loop that is busy for 10 ms of
every 20 ms (``busy``), as a loop is that decides, or beside one with nothing to do (``idle``). Reviews come over
connections that stay open, at an even pace, whether earlier ones have been answered or not, and the time of each counts
from when it should have been sent. So a pause of the client or the server counts for all that had to wait for it.
"""

from __future__ import annotations

import asyncio
import json
import resource
import ssl
import subprocess
import sys
import time
from datetime import UTC, datetime
from typing import Any

import numpy as np

from bench.floors import Floor
from scheduler.api import kinds, names
from scheduler.kube.loop_thread import LoopThread
from scheduler.kube.report.metrics.reviews import ReviewCounts
from scheduler.kube.webhook import certificates
from scheduler.kube.webhook.keeping import Pair
from scheduler.kube.webhook.known import Known
from scheduler.kube.webhook.server import ReviewServer
from scheduler.kube.webhook.webhook import SWITCH_SECONDS, Answers

Json = dict[str, Any]

_PER_SECOND, _SECONDS, _QUICK_SECONDS = 1_000, 10.0, 1.0
_CONNECTIONS, _WARM = 16, 200
_SLICE_SECONDS = 0.01
_LIMIT_SECONDS = 60.0

FLOORS = (Floor("idle.p99_ms", at_most=5), Floor("busy.reviews_a_second", at_least=990))


def run(quick: bool) -> Json:
    seconds = _QUICK_SECONDS if quick else _SECONDS
    return {name: _measure(name, seconds) for name in ("idle", "busy")}


def _measure(name: str, seconds: float) -> Json:
    command = [sys.executable, "-m", "bench.webhook", name]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        served = json.loads(server.stdout.readline())
        n = int(_PER_SECOND * seconds)
        took, whole = asyncio.run(_send(served, n))
        server.stdin.close()
        cpu_seconds = json.loads(server.stdout.readline())["cpu_seconds"]
    quantiles = np.quantile(took, [0.5, 0.99, 1.0]) * 1000
    return {
        "reviews": n,
        "reviews_a_second": round(n / whole, 1),
        **dict(zip(("p50_ms", "p99_ms", "max_ms"), quantiles.round(2).tolist(), strict=True)),
        "cpu_ms_a_review": round(cpu_seconds / (n + _WARM) * 1000, 3),
    }


def _make_reviews() -> list[bytes]:
    """Reviews of a Job and of a pod, each to be changed and checked, as HTTP requests."""
    containers = [
        {"name": f"c{i}", "image": "none", "env": [{"name": f"E{j}", "value": "x" * 40} for j in range(20)],
         "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
        for i in range(2)
    ]  # fmt: skip
    meta = {"name": "train", "namespace": "team", "labels": {names.KUEUE_QUEUE: "q"}}
    spec = {"containers": containers, "restartPolicy": "Never", "schedulerName": names.SCHEDULER}
    job = {"metadata": meta, "spec": {"parallelism": 4, "template": {"spec": spec}}}
    pod = {"metadata": meta, "spec": spec}
    found = []
    for kind, one in ((kinds.JOBS, job), (kinds.PODS, pod)):
        request = {
            "uid": "7c1f9a52-1111-2222-3333-444455556666",
            "kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
            "namespace": "team",
            "name": "train",
            "object": one,
        }
        review = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": request,
        }
        body = json.dumps(review).encode()
        for path in ("mutate", "validate"):
            head = (
                f"POST /{path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            found.append(head.encode() + body)
    return found


async def _send(served: Json, n: int) -> tuple[list[float], float]:
    """Send reviews at an even pace; the seconds that each took, and all of them together."""
    tls = ssl.create_default_context(cadata=served["authorities"])
    free: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
    for _ in range(_CONNECTIONS):
        free.put_nowait(await asyncio.open_connection("localhost", served["port"], ssl=tls))
    requests = _make_reviews()
    for i in range(_WARM):
        await _call(free, requests[i % len(requests)], 0.0)
    begun = time.perf_counter() + 0.05
    calls = []
    for i in range(n):
        due = begun + i / _PER_SECOND
        while (left := due - time.perf_counter()) > 0:
            await asyncio.sleep(left)
        calls.append(asyncio.create_task(_call(free, requests[i % len(requests)], due)))
    took = await asyncio.wait_for(asyncio.gather(*calls), _LIMIT_SECONDS)
    whole = time.perf_counter() - begun
    while not free.empty():
        free.get_nowait()[1].close()
    return took, whole


async def _call(
    free: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]],
    request: bytes,
    due: float,
) -> float:
    reader, writer = await free.get()
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    await reader.readexactly(int(length))
    took = time.perf_counter() - due
    free.put_nowait((reader, writer))
    return took


async def _serve(is_busy: bool) -> None:
    """Serve until standard input ends, in a thread as in the operator."""
    made = certificates.renew(None, ("localhost",), datetime.now(UTC))
    assert made is not None
    sys.setswitchinterval(SWITCH_SECONDS)
    thread = LoopThread("webhook")
    server = await thread.call(_start(Pair(made.certificate, made.key)))
    print(json.dumps({"port": server.port, "authorities": made.authorities.decode()}), flush=True)
    ended = asyncio.ensure_future(asyncio.to_thread(sys.stdin.read))
    before = resource.getrusage(resource.RUSAGE_SELF)
    n_slices = 0
    while not ended.done():
        if is_busy:
            _work()
            n_slices += 1
        await asyncio.sleep(_SLICE_SECONDS)
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu_seconds = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps({"cpu_seconds": cpu_seconds - n_slices * _SLICE_SECONDS}), flush=True)
    await thread.call(server.stop())
    await thread.stop()


def _work() -> None:
    """Be busy in Python for a slice."""
    end = time.thread_time() + _SLICE_SECONDS
    while time.thread_time() < end:
        sum(range(100))


async def _start(pair: Pair) -> ReviewServer:
    answers = Answers(of_queues=Known(lambda key: key is not None, lambda _: False))
    server = ReviewServer(answers.list_by_path(), ReviewCounts())
    server.use(pair)
    await server.start("127.0.0.1", 0)
    return server


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1] == "busy"))
