"""The process of the tenants: each creates the pods of one attack, one after another, as kubectl does.

More requests at once create hardly more pods in a second; they only make the API server's own watches lag.
"""

from __future__ import annotations

import asyncio
import io
import json
import ssl
import sys
from collections.abc import Iterator

import aiohttp
import msgspec

from tests.controlplane import objects
from tests.operator import attacks, paced_attacks
from tests.operator.paced_attacks import Step


def main() -> None:
    """Create the pods; print how many were created, and of how many."""
    url, ca_file, token, spaces, names, scale = json.loads(sys.argv[1])
    tenants = [_steps(name, space, scale) for space, name in zip(spaces, names, strict=False)]
    print(json.dumps(asyncio.run(_create(url, ca_file, token, tenants))))


def _steps(name: str, space: str, scale: float) -> Iterator[Step]:
    if name in paced_attacks.ALL:
        yield from paced_attacks.ALL[name](space, scale)
        return
    for pod in attacks.ALL[name](space, scale):
        yield Step("POST", objects.collection(pod), pod)


async def _create(
    url: str, ca_file: str, token: str, tenants: list[Iterator[Step]]
) -> tuple[int, int]:
    """Make all requests; how many objects were created, and of how many."""
    created = asked = 0

    async def work(session: aiohttp.ClientSession, steps: Iterator[Step]) -> None:
        nonlocal created, asked
        for step in steps:
            asked += step.verb == "POST"
            await asyncio.sleep(step.pause)
            for _ in range(5):
                body = io.BytesIO(msgspec.json.encode(step.body)) if step.body else None
                content = {"Content-Type": step.content}
                async with session.request(
                    step.verb, step.path, data=body, headers=content
                ) as answer:
                    await answer.read()
                    created += answer.status == 201
                    if answer.status != 429:
                        break
                await asyncio.sleep(1.0)

    headers = {"Authorization": f"Bearer {token}"}
    trust = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=ca_file))
    async with (
        aiohttp.ClientSession(base_url=url, headers=headers, connector=trust) as session,
        asyncio.TaskGroup() as group,
    ):
        for steps in tenants:
            group.create_task(work(session, steps))
    return created, asked


if __name__ == "__main__":
    main()
