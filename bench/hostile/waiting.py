"""What is asked of thousands of pods that wait: whether news of one wakes only that one, and what is told of all."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from scheduler.embedded.agents import nodes
from tests.controlplane import access, objects

_LATE_SECONDS = 60.0


async def measure_help(plane: access.Access, space: str, scale: float) -> dict[str, Any]:
    """Seconds until one pod of thousands that wait is bound to a new node that helps only this one."""
    number = round(10_000 * scale)
    node = nodes.make_plain_node("helps", cpu="64", labels={"rack": f"r{number}"})
    began = time.monotonic()
    await objects.create_many(plane, [node])
    async with objects.connect(plane) as session:
        while True:
            async with session.get(f"/api/v1/namespaces/{space}/pods/unlike-{number}") as answer:
                if "nodeName" in (await answer.json())["spec"]:
                    return {"helped_seconds": round(time.monotonic() - began, 3)}
            if time.monotonic() - began > _LATE_SECONDS:
                return {"helped_seconds": None}
            await asyncio.sleep(0.02)


async def count_untold(plane: access.Access, spaces: list[str]) -> dict[str, Any]:
    """How many waiting pods never got a PodScheduled condition, once nothing new is being written."""
    previous = -1
    while True:
        without = waiting = 0
        for space in spaces:
            for pod in await objects.list_all(plane, f"/api/v1/namespaces/{space}/pods"):
                if "nodeName" not in pod["spec"]:
                    waiting += 1
                    kinds = {one["type"] for one in pod["status"].get("conditions") or ()}
                    without += "PodScheduled" not in kinds
        if without in {0, previous}:
            return {"waiting": waiting, "without_condition": without}
        previous = without
        await asyncio.sleep(15.0)
