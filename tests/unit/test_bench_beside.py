"""Programs beside a measured scheduler, against the embedded API server: each does its part to the end of a row."""

import argparse
import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from bench.beside import churner, kubelet
from bench.beside.caller import Caller
from bench.beside.null_scheduler import NullScheduler
from bench.rows import table
from bench.rows.row import INCOMING, Size, for_scheduler
from scheduler.embedded import cluster
from scheduler.kube.writes import WriteConnections

SIZE = Size(4, 12)
Json = dict[str, Any]
Work = Callable[[Caller], Coroutine[Any, Any, None]]


def null_scheduler(api: Caller) -> Coroutine[Any, Any, None]:
    return NullScheduler(api).run()


async def pods_after(name: str, *programs: Work) -> dict[str, Json]:
    """Pods by name, once every incoming pod of a row is bound by these programs."""
    row = table.BY_NAME[name]
    async with cluster.start() as running:
        running.add(*map(row.node, range(SIZE.nodes)))
        running.add(*(for_scheduler(one, "evenkeel") for one in row.before(SIZE)))
        if not row.arrive:
            running.add(*(row.incoming(i, SIZE, "evenkeel") for i in range(SIZE.pods)))
        async with calling(running.url, name) as api:
            tasks = [asyncio.create_task(work(api)) for work in programs]
            try:
                async with asyncio.timeout(30):
                    while not _is_done(found := await _pods(running.url)):
                        broken = next((task for task in tasks if task.done()), None)
                        assert broken is None or broken.result()
                        await asyncio.sleep(0.02)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
    return found


@asynccontextmanager
async def calling(url: str, row: str) -> AsyncIterator[Caller]:
    given = argparse.Namespace(
        token="any", row=row, scheduler="evenkeel", nodes=SIZE.nodes, pods=SIZE.pods
    )
    writes = WriteConnections(url, None, most=8)
    async with aiohttp.ClientSession(base_url=url) as session:
        yield Caller(session, writes, given)
    writes.close()


async def _pods(url: str) -> dict[str, Json]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{url}/api/v1/namespaces/default/pods") as answer,
    ):
        return {pod["metadata"]["name"]: pod for pod in (await answer.json())["items"]}


def _is_done(pods: dict[str, Json]) -> bool:
    incoming = [pod for pod in pods.values() if _is_incoming(pod)]
    return len(incoming) == SIZE.pods and all(pod["spec"].get("nodeName") for pod in incoming)


def _is_incoming(pod: Json) -> bool:
    labels: dict[str, str] = pod["metadata"].get("labels", {})
    return INCOMING.items() <= labels.items()


def where(pods: dict[str, Json]) -> list[str]:
    """The nodes of the incoming pods, by their numbers."""
    return [pod["spec"]["nodeName"] for _, pod in sorted(pods.items()) if _is_incoming(pod)]


def decided(name: str) -> list[str]:
    return [table.BY_NAME[name].decide(i, SIZE).node for i in range(SIZE.pods)]


async def test_the_null_scheduler_carries_out_the_decisions_of_a_row() -> None:
    assert where(await pods_after("affinity", null_scheduler)) == decided("affinity")


async def test_a_pod_leaves_for_each_that_comes_and_the_null_scheduler_hears_of_those_that_come() -> (
    None
):
    pods = await pods_after("churn", churner.work, null_scheduler)
    assert where(pods) == decided("churn")
    # The last deletions may come after the last bind.
    old = sum(not _is_incoming(pod) for pod in pods.values())
    assert old <= churner.AT_ONCE


async def test_the_null_scheduler_binds_when_its_victims_have_gone() -> None:
    """They are told to go, and have gone when the kubelet says so."""
    pods = await pods_after("preemption", kubelet.work, null_scheduler)
    assert where(pods) == decided("preemption")
    row = table.BY_NAME["preemption"]
    victims = {row.decide(i, SIZE).victim for i in range(SIZE.pods)}
    assert len(victims) == SIZE.pods
    assert not victims & pods.keys()
