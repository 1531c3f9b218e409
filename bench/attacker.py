"""The tenant's process: creates the pods of some attacks as fast as the API server takes them."""

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

_AT_ONCE = 8


def main() -> None:
    """Create them; print how many were, and of how many."""
    url, ca_file, token, spaces, names, scale = json.loads(sys.argv[1])
    pods = [
        pod
        for space, name in zip(spaces, names, strict=False)
        for pod in attacks.ALL[name](space, scale)
    ]
    print(json.dumps([asyncio.run(_create(url, ca_file, token, pods)), len(pods)]))


async def _create(url: str, ca_file: str, token: str, pods: list[objects.Manifest]) -> int:
    queue, created = iter(pods), 0

    async def work(session: aiohttp.ClientSession) -> None:
        nonlocal created
        for pod in queue:
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
        for _ in range(_AT_ONCE):
            group.create_task(work(session))
    return created


if __name__ == "__main__":
    main()
