"""Kueue's objects on a test's API server: made, read, and changed as Kueue's own controllers would."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

from scheduler.api import names
from tests.operator.world import Refused, World

Json = dict[str, Any]
API = "/apis/kueue.x-k8s.io/v1beta2"
WORKLOADS = f"{API}/namespaces/default/workloads"
QUEUES = f"{API}/clusterqueues"
LOCALS = f"{API}/namespaces/default/localqueues"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kueue-system/leases"


async def serve(world: World) -> None:
    for path in (QUEUES, LOCALS, WORKLOADS, f"{API}/resourceflavors", f"{API}/cohorts"):
        await world.wait_until(partial(is_served, world, path))


async def prepare(world: World) -> None:
    """Wait until Kueue's kinds are served, and make a flavor unless another test has."""
    await serve(world)
    with suppress(Refused):
        await create(world, f"{API}/resourceflavors", "ResourceFlavor", "plain", {})


async def is_served(world: World, path: str) -> bool:
    with suppress(Refused):
        await world.call("GET", path)
        return True
    return False


async def create(world: World, path: str, kind: str, name: str, spec: Json) -> None:
    made = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}}
    await world.call("POST", path, made | {"spec": spec})


async def make_queue(world: World, name: str, cohort: str, **more: Any) -> None:
    quota = {"name": "cpu", "nominalQuota": "4"}
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "plain", "resources": [quota]}]}
    spec = {"cohortName": cohort, "namespaceSelector": {}, "resourceGroups": [group], **more}
    await create(world, QUEUES, "ClusterQueue", name, spec)
    await create(world, LOCALS, "LocalQueue", name, {"clusterQueue": name})


async def submit(world: World, name: str, queue: str, cpu: int, *, job: str = "") -> None:
    """Make a workload; ``job``: the uid of the job that owns it."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": str(cpu)}}}
    pods = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    spec = {"queueName": queue, "podSets": [{"name": "main", "count": 1, "template": pods}]}
    kind = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload"}
    meta: Json = {"name": name}
    if job:
        owner = {"apiVersion": "test.evenkeel.dev/v1", "kind": "Other", "name": name, "uid": job}
        meta |= {"labels": {names.KUEUE_JOB_UID: job}, "ownerReferences": [owner]}
    await world.call("POST", WORKLOADS, {**kind, "metadata": meta, "spec": spec})


async def read_workload(world: World, name: str) -> Json:
    return await world.call("GET", f"{WORKLOADS}/{name}")


def list_conditions(found: Json) -> dict[str, tuple[str, str]]:
    conditions = found.get("status", {}).get("conditions", ())
    return {one["type"]: (one["status"], one["reason"]) for one in conditions}


async def becomes(world: World, name: str, kind: str, status: str) -> Json:
    """Wait until a condition of a workload is so."""
    return await world.wait_until(
        partial(read_workload, world, name),
        lambda found: list_conditions(found).get(kind, ("",))[0] == status,
    )


async def has_status(world: World, path: str, **wanted: Any) -> Json:
    """Wait until a status has some fields."""

    async def read() -> Json:
        found: Json = (await world.call("GET", path)).get("status", {})
        return found

    return await world.wait_until(
        read, lambda found: all(found.get(key) == one for key, one in wanted.items())
    )


async def end_as_a_job_would(world: World, name: str) -> None:
    """Clear the admission of an evicted workload once its job has stopped, as Kueue's job controllers do."""
    found = await read_workload(world, name)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for one in found["status"]["conditions"]:
        if one["type"] in {"QuotaReserved", "Admitted"}:
            one |= {"status": "False", "reason": "Pending", "lastTransitionTime": now}
    status = {"admission": None, "conditions": found["status"]["conditions"]}
    await world.call("PATCH", f"{WORKLOADS}/{name}/status", {"status": status})


async def count_refusals(world: World) -> float:
    """Count the writes that the admission policy for Workloads has refused, whoever sent them."""
    cp = world.server.plane
    assert cp is not None
    answer = await asyncio.to_thread(cp.request, "GET", "/metrics")
    lines = answer.body.splitlines()
    assert any(one.startswith("apiserver_request_total{") for one in lines)
    name = "apiserver_validating_admission_policy_check_total{"
    found = (one for one in lines if one.startswith(name) and 'policy="evenkeel-queues"' in one)
    return sum(float(one.split()[-1]) for one in found)


def make_use(total: str, borrowed: str | None = None) -> list[Json]:
    resource = {"name": "cpu", "total": total}
    if borrowed is not None:
        resource["borrowed"] = borrowed
    return [{"name": "plain", "resources": [resource]}]


async def hold_lease(world: World) -> None:
    """Hold Kueue's lease, as its controller does."""
    spec = {"holderIdentity": "kueue-controller-manager-0_x", "leaseDurationSeconds": 15}
    kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    lease = {**kind, "metadata": {"name": names.KUEUE_LEASE}, "spec": spec}
    # A namespace in which Kueue was installed.
    await world.call("POST", "/api/v1/namespaces", {"metadata": {"name": "kueue-system"}})
    await world.call("POST", LEASES, lease)
    while True:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        path = f"{LEASES}/{names.KUEUE_LEASE}"
        await world.call("PATCH", path, {"spec": {"renewTime": now}})
        await asyncio.sleep(1.0)
