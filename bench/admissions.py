"""How long the webhook takes for pods with devices while 1,000 are created each second, beside kopf's own server.

Each server runs in a process of its own, in a thread with its own loop as in the operator: beside a loop with nothing to do
(``idle``), one that is busy in Python for 10 ms of every 20 ms (``busy``), or the operator's engine in a storm: 1,000 nodes
of which one changes a hundred times a second, and 20,000 different pods that wait (``deciding``). ``kopf`` is kopf's
WebhookServer with kopf's handlers around the same decisions, in the same arrangement.
"""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, cast

import kopf
import msgspec
from kopf._cogs.structs import ephemera, references
from kopf._core.engines import admission
from kopf._core.engines.indexing import OperatorIndexers
from kopf._core.intents.registries import OperatorRegistry
from kopf._core.reactor import inventory

from bench import review_client
from bench.floors import Floor
from bench.storms import weather
from bench.storms.alone import Storm
from scheduler.api.admission.settings import AdmissionSettings
from scheduler.devices.admission import steps
from scheduler.kernels import compiling
from scheduler.kube import heap
from scheduler.kube.loop_thread import LoopThread
from scheduler.kube.report.metrics.reviews import ReviewCounts
from scheduler.kube.webhook import certificates
from scheduler.kube.webhook.certificates import Certificates
from scheduler.kube.webhook.devices import DeviceAdmission
from scheduler.kube.webhook.keeping import Pair
from scheduler.kube.webhook.server import ReviewServer
from scheduler.kube.webhook.webhook import SWITCH_SECONDS, Answers

Json = dict[str, Any]
_SECONDS, _QUICK_SECONDS = 10.0, 1.0
_SLICE_SECONDS = 0.01
_PATH = "/mutate-device-pods"
_NODES, _TURN_SECONDS = 1_000, 0.5
_CASES = {"evenkeel": ("idle", "busy", "deciding"), "kopf": ("idle", "busy")}

FLOORS = (
    Floor("evenkeel.*.p99_ms", at_most=5),
    Floor("evenkeel.*.reviews_a_second", at_least=990),
)


def run(quick: bool) -> Json:
    seconds = _QUICK_SECONDS if quick else _SECONDS
    return {
        server: {beside: _measure(server, beside, seconds) for beside in cases}
        for server, cases in _CASES.items()
    }


def _measure(server: str, beside: str, seconds: float) -> Json:
    command = [sys.executable, "-m", "bench.admissions", server, beside]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as serving:
        assert serving.stdin is not None
        assert serving.stdout is not None
        served = json.loads(serving.stdout.readline())
        n = int(review_client.PER_SECOND * seconds)
        sent = review_client.send_reviews(served, _make_reviews(), n)
        serving.stdin.close()
        cpu_seconds = json.loads(serving.stdout.readline())["cpu_seconds"]
    per_review = cpu_seconds / (n + review_client.count_warm()) * 1000
    return {**sent.describe(), "cpu_ms_a_review": round(per_review, 3)}


def _make_reviews() -> list[bytes]:
    """Pods as the API server has them: one with a share of a card, one with a whole card, and one of another scheduler."""
    found = []
    for limits, scheduler in (
        ({"nvidia.com/gpumem": "4096"}, "default-scheduler"),
        ({"nvidia.com/gpu": "1"}, "evenkeel"),
        ({"nvidia.com/gpu": "1"}, "other"),
    ):
        containers = [
            {"name": f"c{i}", "image": "none", "env": [{"name": f"E{j}", "value": "x" * 40} for j in range(20)],
             "resources": {"limits": limits, "requests": {**limits, "cpu": "1", "memory": "1Gi"}},
             "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
             "terminationMessagePath": "/dev/termination-log", "imagePullPolicy": "Always"}
            for i in range(2)
        ]  # fmt: skip
        labels = {f"example.com/label-{i}": "x" * 20 for i in range(10)}
        fields: Json = {f"f:label-{i}": {} for i in range(40)}
        meta = {
            "generateName": "train-", "namespace": "team", "labels": labels,
            "managedFields": [{"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": {"f:metadata": fields}}],
        }  # fmt: skip
        spec = {"containers": containers, "restartPolicy": "Never", "schedulerName": scheduler}
        pod = {"kind": "Pod", "apiVersion": "v1", "metadata": meta, "spec": spec, "status": {}}
        found.append(review_client.write_request(_PATH, "", "Pod", pod, "pods"))
    return found


async def _serve(server: str, beside: str) -> None:
    """Serve until standard input ends, in a thread as in the operator."""
    made = certificates.renew(None, ("localhost",), datetime.now(UTC))
    assert made is not None
    turn = _make_turn(beside)
    sys.setswitchinterval(SWITCH_SECONDS)
    thread = LoopThread("webhook")
    start = _serve_ours if server == "evenkeel" else _serve_kopf
    serving = start(made)
    port = await thread.call(serving.__aenter__())
    print(json.dumps({"port": port, "authorities": made.authorities.decode()}), flush=True)
    ended = asyncio.ensure_future(asyncio.to_thread(sys.stdin.read))
    before = await thread.call(_read_cpu())
    while not ended.done():
        turn()
        await asyncio.sleep(_SLICE_SECONDS)
    used = await thread.call(_read_cpu()) - before
    print(json.dumps({"cpu_seconds": used}), flush=True)
    await thread.call(_leave(serving))
    await thread.stop()


def _make_turn(beside: str) -> Callable[[], object]:
    """Make what the loop beside the webhook does in each turn."""
    if beside != "deciding":
        return _work if beside == "busy" else lambda: None
    compiling.compile_kernels(lambda _: None)
    storm = Storm(_NODES)
    for i in range(weather.WAITING):
        storm.see(weather.waiting(i, alike=False))
    storm.turn_until_quiet()
    heap.freeze()
    return partial(storm.blow, _TURN_SECONDS)


def _work() -> None:
    """Be busy in Python for a slice."""
    end = time.thread_time() + _SLICE_SECONDS
    while time.thread_time() < end:
        sum(range(100))


async def _read_cpu() -> float:
    """Read how long the thread of the webhook has computed."""
    return time.thread_time()


async def _leave(serving: AbstractAsyncContextManager[int]) -> None:
    await serving.__aexit__(None, None, None)


@asynccontextmanager
async def _serve_ours(made: Certificates) -> AsyncIterator[int]:
    answers = Answers(of_devices=DeviceAdmission(AdmissionSettings()))
    server = ReviewServer(answers.list_by_path(), ReviewCounts())
    server.use(Pair(made.certificate, made.key))
    await server.start("127.0.0.1", 0)
    try:
        yield server.port
    finally:
        await server.stop()


@asynccontextmanager
async def _serve_kopf(made: Certificates) -> AsyncIterator[int]:
    logging.disable(logging.INFO)
    pods = references.Resource(
        group="", version="v1", plural="pods", kind="Pod", singular="pod", namespaced=True,
        preferred=True, shortcuts=frozenset(), categories=frozenset(), subresources=frozenset(), verbs=frozenset(),
    )  # fmt: skip
    insights = references.Insights()
    insights.webhook_resources.add(pods)
    registry = OperatorRegistry()
    kopf.on.mutate("pods", registry=registry, id="mutate-device-pods")(_mutate)
    answer = partial(
        admission.serve_admission_request,
        settings=kopf.OperatorSettings(), memories=inventory.ResourceMemories(), memobase=ephemera.AnyMemo(ephemera.Memo()),
        registry=registry, insights=insights, indices=OperatorIndexers().indices,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = Path(folder) / "tls.crt", Path(folder) / "tls.key"
        certificate.write_bytes(made.certificate)
        key.write_bytes(made.key)
        server = kopf.WebhookServer(addr="127.0.0.1", certfile=certificate, pkeyfile=key)
        configs = cast(AsyncGenerator[Any, None], server(answer))
        async with aclosing(configs):
            config = await anext(configs)
            yield int(str(config["url"]).rpartition(":")[2].partition("/")[0])


def _mutate(body: kopf.Body, patch: kopf.Patch, **_: Any) -> None:
    """Change a pod as the webhook does."""
    raw = msgspec.json.encode(dict(body))
    verdict = steps.review_pod(raw, "team", AdmissionSettings(), steps.ClusterFacts())
    if not isinstance(verdict, steps.Allowed):
        raise kopf.AdmissionError(verdict.message)
    if not verdict.patch:
        return
    containers = [dict(one) for one in body["spec"]["containers"]]
    for one in verdict.patch:
        *_under, place, _resources, _limits, name = ["", "", *one["path"].split("/")][-6:]
        if name == "schedulerName":
            patch.spec["schedulerName"] = one["value"]
        else:
            limits = containers[int(place)]["resources"]["limits"]
            limits[name.replace("~1", "/")] = one["value"]
    patch.spec["containers"] = containers


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], sys.argv[2]))
