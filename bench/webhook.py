"""How long the webhook takes for a review while so many come each second as the API server may send.

The server runs in a process of its own, as it does in the operator: in a thread beside a loop that is busy for 10 ms of
every 20 ms (``busy``), as a loop is that decides, or beside one with nothing to do (``idle``).
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime
from typing import Any

from bench import review_client
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

_SECONDS, _QUICK_SECONDS = 10.0, 1.0
_SLICE_SECONDS = 0.01

FLOORS = (Floor("*.p99_ms", at_most=5), Floor("*.reviews_a_second", at_least=990))


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
        n = int(review_client.PER_SECOND * seconds)
        sent = review_client.send_reviews(served, _make_reviews(), n)
        server.stdin.close()
        cpu_seconds = json.loads(server.stdout.readline())["cpu_seconds"]
    per_review = cpu_seconds / (n + review_client.count_warm()) * 1000
    return {**sent.describe(), "cpu_ms_a_review": round(per_review, 3)}


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
    return [
        review_client.write_request(f"/{path}", kind.group, kind.kind, one)
        for kind, one in ((kinds.JOBS, job), (kinds.PODS, pod))
        for path in ("mutate", "validate")
    ]


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
