"""Kubernetes' Jobs with a queue on a test's API server: made, and read with their Workloads and pods."""

from __future__ import annotations

from typing import Any

from scheduler.api import names
from tests.operator import tenants
from tests.operator.manifests import container
from tests.operator.world import World

Json = dict[str, Any]
JOBS = "/apis/batch/v1/namespaces/default/jobs"


def make_job(name: str, queue: str, *, n: int = 1, cpu: int = 1, **more: Any) -> Json:
    """A Job as a user writes it, with Evenkeel as its scheduler."""
    template = {
        "spec": {
            "schedulerName": names.SCHEDULER,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [container(requests={"cpu": str(cpu)})],
        }
    }
    labels = {names.KUEUE_QUEUE: queue} | more.pop("labels", {})
    meta = {"name": name, "labels": labels, "annotations": more.pop("annotations", {})}
    spec = {"parallelism": n, "completions": n, "template": template, **more}
    return {"metadata": meta, "spec": spec}


async def read_job(world: World, name: str) -> Json:
    """Read a Job."""
    return await world.call("GET", f"{JOBS}/{name}")


async def find_workload(world: World, job: str) -> Json:
    """The one workload of a job, once there is one."""

    async def find() -> list[Json]:
        return [
            one
            for one in await world.listed(tenants.WORKLOADS)
            if [owner["name"] for owner in one["metadata"].get("ownerReferences", ())] == [job]
        ]

    (found,) = await world.wait_until(find, lambda found: len(found) == 1)
    return found


async def wait_until_placed(world: World, name: str, n: int) -> list[Json]:
    """Wait until so many pods of a job have nodes."""

    async def find() -> list[Json]:
        return [
            one
            for one in await world.pods()
            if one["metadata"]["labels"].get("job-name") == name and one["spec"].get("nodeName")
        ]

    return await world.wait_until(find, lambda found: len(found) == n)
