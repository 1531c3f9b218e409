"""Evenkeel in the place of Kueue: a cluster as Kueue leaves it goes on, and nothing that runs is started anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scheduler.api import names
from scheduler.embedded.agents import nodes
from tests.operator import installed, servers, tenants
from tests.operator.kueue_jobs import find_workload, make_job, read_job, wait_until_placed
from tests.operator.world import World

Json = dict[str, Any]
_CONFIG = Path(installed.QUEUES) / "config.yaml"
_JOBS = "/apis/batch/v1/namespaces/default/jobs"


@pytest.fixture(scope="module")
def server(kueue_crds: list[Json], peers: None) -> Iterator[servers.Server]:  # noqa: ARG001 - builds them
    """An API server with Kueue's kinds, and Kubernetes' Job controller."""
    with servers.with_queues(kueue_crds, controllers=("job-controller",)) as running:
        yield running


async def test_a_cluster_as_kueue_leaves_it_goes_on_and_nothing_is_started_anew(
    world: World,
) -> None:
    """A job that runs, whose pods still have the gate of a topology, and one that waits."""
    await tenants.prepare(world)
    quota = {"name": "cpu", "nominalQuota": "2"}
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "plain", "resources": [quota]}]}
    await tenants.make_queue(world, "left", "left-over", resourceGroups=[group])
    await world.create(nodes.make_plain_node("k0", cpu="16"))
    # Kueue has started it, with the gate in its template.
    running = make_job("running", "left", n=2, suspend=True)
    made = await world.call("POST", _JOBS, running)
    workload = _make_left_workload(made)
    await world.call("POST", tenants.WORKLOADS, workload)
    await world.call(
        "PATCH", f"{tenants.WORKLOADS}/left-running/status", {"status": _make_left_status()}
    )
    template = {
        "metadata": {
            "annotations": {names.KUEUE_WORKLOAD: "left-running"},
            "labels": {names.KUEUE_POD_SET: "main"},
        },
        "spec": {"schedulingGates": [{"name": names.KUEUE_TOPOLOGY_GATE}]},
    }
    await world.call(
        "PATCH", f"{_JOBS}/running", {"spec": {"suspend": False, "template": template}}
    )
    await world.wait_until(
        world.pods, lambda found: sum(_is_of(one, "running") for one in found) == 2
    )
    before = {one["metadata"]["uid"] for one in await world.pods() if _is_of(one, "running")}
    generation = (await read_job(world, "running"))["metadata"]["generation"]
    await world.call("POST", _JOBS, make_job("waiting", "left", suspend=True))
    operator = await world.start_operator(args=("--config", str(_CONFIG)))
    await world.leads(operator)
    pods = await wait_until_placed(world, "running", 2)
    assert {one["metadata"]["uid"] for one in pods} == before
    waiting = await find_workload(world, "waiting")
    await tenants.becomes(world, waiting["metadata"]["name"], "QuotaReserved", "False")
    found = await read_job(world, "running")
    assert found["metadata"]["generation"] == generation
    left = await tenants.read_workload(world, "left-running")
    assert left["status"]["admission"] == _make_left_status()["admission"]
    assert operator.stop().code == 0


def _is_of(found: Json, job: str) -> bool:
    return bool(found["metadata"].get("labels", {}).get("job-name") == job)


def _make_left_workload(job: Json) -> Json:
    """The workload that Kueue has made of a Job."""
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": "running",
        "uid": job["metadata"]["uid"],
        "controller": True,
    }
    meta = {
        "name": "left-running", "ownerReferences": [owner], "finalizers": [names.KUEUE_IN_USE],
        "labels": {names.KUEUE_JOB_UID: job["metadata"]["uid"]},
    }  # fmt: skip
    template = {"metadata": {}, "spec": job["spec"]["template"]["spec"]}
    spec = {
        "queueName": "left",
        "priority": 0,
        "podSets": [{"name": "main", "count": 2, "template": template}],
    }
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": meta,
        "spec": spec,
    }


def _make_left_status() -> Json:
    now = "2026-01-01T00:00:00Z"
    given = {"name": "main", "flavors": {"cpu": "plain"}, "resourceUsage": {"cpu": "2"}, "count": 2}
    conditions = [
        {"type": one, "status": "True", "reason": one, "message": "", "lastTransitionTime": now}
        for one in ("QuotaReserved", "Admitted")
    ]
    return {
        "admission": {"clusterQueue": "left", "podSetAssignments": [given]},
        "conditions": conditions,
    }
