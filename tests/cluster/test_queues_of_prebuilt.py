"""Jobs that name a Workload that was made before them, and Workloads whose owner is gone, on a real API server."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator
from functools import partial
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
_CONTROLLERS = ("job-controller", "garbage-collector-controller")


@pytest.fixture(scope="module")
def server(kueue_crds: list[Json], peers: None) -> Iterator[servers.Server]:  # noqa: ARG001 - builds them
    """An API server with Kueue's kinds, Kubernetes' Job controller, and Evenkeel in the place of Kueue."""
    with servers.with_queues(kueue_crds, controllers=_CONTROLLERS) as running:
        yield running


async def _make_before(world: World, name: str, job: Json, path: str = tenants.WORKLOADS) -> None:
    """Make the Workload of a job, before the job, as whoever plans jobs does."""
    template = copy.deepcopy(job["spec"]["template"])
    pod_set = {"name": "main", "count": job["spec"]["parallelism"], "template": template}
    spec = {"queueName": job["metadata"]["labels"][names.KUEUE_QUEUE], "podSets": [pod_set]}
    kind = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload"}
    await world.call("POST", path, {**kind, "metadata": {"name": name}, "spec": spec})


async def _delete(world: World, name: str, how: str = "Background") -> None:
    await world.call("DELETE", f"{_JOBS}/{name}", {"propagationPolicy": how})
    await tenants.has_status(world, f"{tenants.QUEUES}/team", reservingWorkloads=0)


def _name(job: Json, workload: str) -> Json:
    """Have a job name a Workload."""
    job["metadata"]["labels"][names.KUEUE_PREBUILT] = workload
    return job


async def test_jobs_take_over_the_workloads_that_they_name(world: World) -> None:
    await tenants.prepare(world)
    await tenants.make_queue(world, "team", "teams")
    await world.create(nodes.make_plain_node("n0", cpu="16"))
    operator = await world.start_operator(args=("--config", str(_CONFIG)))
    await world.leads(operator)
    await _one_starts_with_its_own(world)
    await _one_waits_until_it_is_there(world)
    await _one_that_does_not_fit_never_starts(world)
    await _no_job_has_that_of_another_namespace(world)
    await _one_that_has_lost_its_job_has_no_quota(world)
    await _checks_that_change_are_listed(world)
    assert operator.stop().code == 0
    assert await tenants.count_refusals(world) == 0


async def _one_starts_with_its_own(world: World) -> None:
    job = make_job("first", "team", n=2, suspend=True)
    await _make_before(world, "before", job)
    await tenants.becomes(world, "before", "Admitted", "True")
    await world.call("POST", _JOBS, _name(job, "before"))
    pods = await wait_until_placed(world, "first", 2)
    assert {one["metadata"]["annotations"][names.KUEUE_WORKLOAD] for one in pods} == {"before"}
    taken = await tenants.read_workload(world, "before")
    (owner,) = taken["metadata"]["ownerReferences"]
    found = await read_job(world, "first")
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Job", "first", found["metadata"]["uid"])  # fmt: skip
    assert taken["metadata"]["labels"][names.KUEUE_JOB_UID] == owner["uid"]
    assert len(await world.listed(tenants.WORKLOADS)) == 1
    # It is that of this job by now.
    other = _name(make_job("thief", "team", n=2, suspend=True), "before")
    await world.call("POST", _JOBS, other)
    (event,) = await world.wait_until(partial(world.events, "PrebuiltWorkloadInUse", "thief"))
    assert "that of Job 'first'" in event["note"]
    assert (await read_job(world, "thief"))["spec"]["suspend"]
    await _delete(world, "first")


async def _one_waits_until_it_is_there(world: World) -> None:
    """Nobody has suspended it, so it runs for a moment."""
    job = make_job("second", "team", n=3)
    await world.call("POST", _JOBS, _name(copy.deepcopy(job), "later"))
    (event,) = await world.wait_until(partial(world.events, "PrebuiltWorkloadNotFound", "second"))
    assert "'later'" in event["note"]
    assert (await read_job(world, "second"))["spec"]["suspend"]
    await asyncio.sleep(1.0)
    assert not [
        one
        for one in await world.listed(tenants.WORKLOADS)
        for owner in one["metadata"].get("ownerReferences", ())
        if owner["name"] == "second"
    ]
    await _make_before(world, "later", job)
    await wait_until_placed(world, "second", 3)
    await _delete(world, "second")


async def _one_that_does_not_fit_never_starts(world: World) -> None:
    job = make_job("third", "team", n=2, suspend=True)
    await _make_before(world, "small", make_job("third", "team", n=1))
    await world.call("POST", _JOBS, _name(job, "small"))
    found = await tenants.becomes(world, "small", "Finished", "True")
    assert tenants.list_conditions(found)["Finished"][1] == "OutOfSync"
    await world.wait_until(partial(world.events, "PrebuiltWorkloadFinished", "third"))
    await tenants.has_status(world, f"{tenants.QUEUES}/team", reservingWorkloads=0)
    assert (await read_job(world, "third"))["spec"]["suspend"]


async def _no_job_has_that_of_another_namespace(world: World) -> None:
    await world.call("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
    job = make_job("fourth", "team", suspend=True)
    await _make_before(world, "foreign", job, f"{tenants.API}/namespaces/other/workloads")
    texts = {names.KUEUE_PREBUILT: "../../other/workloads/foreign"}
    job["metadata"]["annotations"] = texts
    await world.call("POST", _JOBS, job)
    (event,) = await world.wait_until(partial(world.events, "InvalidJob", "fourth"))
    assert "is not the name of a Workload" in event["note"]
    path = f"{tenants.API}/namespaces/other/workloads/foreign"
    assert "ownerReferences" not in (await world.call("GET", path))["metadata"]


async def _one_that_has_lost_its_job_has_no_quota(world: World) -> None:
    await world.call("POST", _JOBS, make_job("sixth", "team", suspend=True))
    await wait_until_placed(world, "sixth", 1)
    name = (await find_workload(world, "sixth"))["metadata"]["name"]
    await _delete(world, "sixth", "Orphan")
    found = await tenants.becomes(world, name, "Finished", "True")
    assert tenants.list_conditions(found)["Finished"] == ("True", "OwnerNotFound")
    # As the garbage collector leaves it, and as whoever takes the owner from it.
    await tenants.submit(world, "stray", "team", 1)
    await tenants.becomes(world, "stray", "Admitted", "True")
    labels = {names.KUEUE_JOB_UID: "gone"}
    patch = {"metadata": {"labels": labels, "finalizers": [names.KUEUE_IN_USE]}}
    await world.call("PATCH", f"{tenants.WORKLOADS}/stray", patch)
    found = await tenants.becomes(world, "stray", "Finished", "True")
    assert tenants.list_conditions(found)["Finished"][1] == "OwnerNotFound"
    await world.wait_until(
        partial(tenants.read_workload, world, "stray"),
        lambda found: not found["metadata"].get("finalizers"),
    )
    await tenants.has_status(world, f"{tenants.QUEUES}/team", reservingWorkloads=0)


async def _checks_that_change_are_listed(world: World) -> None:
    """While a job has quota and waits for them, and while it runs."""
    for name in ("budget", "late"):
        spec = {"controllerName": "test.evenkeel.dev/by-hand"}
        await tenants.create(world, f"{tenants.API}/admissionchecks", "AdmissionCheck", name, spec)
    await _require(world, "budget")
    await world.call("POST", _JOBS, make_job("seventh", "team", suspend=True))
    name = (await find_workload(world, "seventh"))["metadata"]["name"]
    await tenants.becomes(world, name, "QuotaReserved", "True")
    await _lists(world, name, budget="Pending")
    await _require(world, "budget", "late")
    found = await _lists(world, name, budget="Pending", late="Pending")
    states = [one | {"state": "Ready"} for one in found["status"]["admissionChecks"][:1]]
    patch = {"status": {"admissionChecks": [*states, *found["status"]["admissionChecks"][1:]]}}
    await world.call("PATCH", f"{tenants.WORKLOADS}/{name}/status", patch)
    await asyncio.sleep(1.0)
    assert (await read_job(world, "seventh"))["spec"]["suspend"]
    # Nothing else keeps it from starting.
    await _require(world, "budget")
    await _lists(world, name, budget="Ready")
    await wait_until_placed(world, "seventh", 1)
    await _require(world, "budget", "late")
    found = await _lists(world, name, budget="Ready", late="Pending")
    assert tenants.list_conditions(found)["Admitted"][0] == "True"
    await _require(world)
    await _lists(world, name)
    assert not (await read_job(world, "seventh"))["spec"]["suspend"]


async def _require(world: World, *checks: str) -> None:
    strategy = {"admissionChecks": [{"name": name} for name in checks]} if checks else None
    patch = {"spec": {"admissionChecksStrategy": strategy}}
    await world.call("PATCH", f"{tenants.QUEUES}/team", patch)


async def _lists(world: World, name: str, **states: str) -> Json:
    """Wait until a workload lists some checks."""
    return await world.wait_until(
        partial(tenants.read_workload, world, name),
        lambda found: (
            {one["name"]: one["state"] for one in found["status"].get("admissionChecks") or ()}
            == states
        ),
    )
