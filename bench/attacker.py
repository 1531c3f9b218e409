"""The process of the tenants: each creates the pods of one attack, one after another, as kubectl does.

More requests at once create hardly more pods in a second; they only make the API server's own watches lag.
"""

from __future__ import annotations

import asyncio
import io
import json
import ssl
import sys

import aiohttp
import msgspec

from tests.controlplane import objects
from tests.operator import attacks


def main() -> None:
    """Create the pods; print how many were created, and of how many."""
    url, ca_file, token, spaces, names, scale = json.loads(sys.argv[1])
    tenants = [attacks.ALL[name](space, scale) for space, name in zip(spaces, names, strict=False)]
    n_created = asyncio.run(_create(url, ca_file, token, tenants))
    print(json.dumps([n_created, sum(map(len, tenants))]))


async def _create(url: str, ca_file: str, token: str, tenants: list[list[objects.Manifest]]) -> int:
    created = 0

    async def work(session: aiohttp.ClientSession, pods: list[objects.Manifest]) -> None:
        nonlocal created
        for pod in pods:
            for _ in range(5):
                body = io.BytesIO(msgspec.json.encode(pod))
                async with session.post(objects.collection(pod), data=body) as answer:
                    await answer.read()
                    created += answer.status == 201
                    if answer.status != 429:
                        break
                await asyncio.sleep(1.0)

    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    trust = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=ca_file))
    async with (
        aiohttp.ClientSession(base_url=url, headers=headers, connector=trust) as session,
        asyncio.TaskGroup() as group,
    ):
        for pods in tenants:
            group.create_task(work(session, pods))
    return created


if __name__ == "__main__":
    main()
