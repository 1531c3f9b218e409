"""A scheduler that does not think: a list of decisions, bound and reported as fast as it can.

The limit that any scheduler on this API server could reach from Python: same client library, as many
requests in flight as Evenkeel has, an event per pod behind the binds; no streams, no choice.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import itertools
import ssl

import aiohttp
import msgspec
import uvloop

IN_FLIGHT = 32
REPORTERS = 4


async def run(url: str, token: str, ca_file: str, scheduler: str) -> None:
    context = ssl.create_default_context(cafile=ca_file)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=64, ssl=context),
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    ) as session:
        nodes = await _names(session, f"{url}/api/v1/nodes")
        pods = await _names(
            session, f"{url}/api/v1/pods?fieldSelector=spec.schedulerName={scheduler}"
        )
        decisions = iter(list(zip(pods, itertools.cycle([n for _, n, _ in nodes]), strict=False)))
        done: asyncio.Queue[tuple[tuple[str, str, str], str] | None] = asyncio.Queue()

        async def bind() -> None:
            for pod, node in decisions:
                namespace, name, uid = pod
                body = msgspec.json.encode(
                    {
                        "apiVersion": "v1",
                        "kind": "Binding",
                        "metadata": {"name": name, "uid": uid},
                        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
                    }
                )
                path = f"{url}/api/v1/namespaces/{namespace}/pods/{name}/binding"
                async with session.post(path, data=body) as answer:
                    await answer.read()
                    answer.raise_for_status()
                done.put_nowait((pod, node))

        async def report() -> None:
            while (item := await done.get()) is not None:
                (namespace, name, uid), node = item
                now = dt.datetime.now(dt.UTC)
                body = msgspec.json.encode({
                    "apiVersion": "events.k8s.io/v1",
                    "kind": "Event",
                    "metadata": {"name": f"{name}.{now.timestamp()}", "namespace": namespace},
                    "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
                    "reportingController": scheduler,
                    "reportingInstance": "null",
                    "action": "Binding",
                    "reason": "Scheduled",
                    "regarding": {
                        "apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name, "uid": uid
                    },
                    "note": f"Successfully assigned {namespace}/{name} to {node}",
                    "type": "Normal",
                })  # fmt: skip
                path = f"{url}/apis/events.k8s.io/v1/namespaces/{namespace}/events"
                async with session.post(path, data=body) as answer:
                    await answer.read()

        reporters = [asyncio.create_task(report()) for _ in range(REPORTERS)]
        await asyncio.gather(*(bind() for _ in range(IN_FLIGHT)))
        for _ in reporters:
            done.put_nowait(None)
        await asyncio.gather(*reporters)


async def _names(session: aiohttp.ClientSession, url: str) -> list[tuple[str, str, str]]:
    async with session.get(url) as answer:
        items = (await answer.json())["items"]
    return [
        (m.get("namespace", ""), m["name"], m["uid"]) for m in (item["metadata"] for item in items)
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for option in ("--url", "--token", "--ca-file", "--scheduler"):
        parser.add_argument(option, required=True)
    given = parser.parse_args()
    uvloop.run(run(given.url, given.token, given.ca_file, given.scheduler))
