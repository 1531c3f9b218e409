"""Many jobs of many teams, while schedulers and the API server are killed: nothing is started twice, lost or kept.

By hand with 2,000 jobs: ``EVENKEEL_JOBS=2000``.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from scheduler.api import quantities
from scheduler.embedded.agents import nodes
from tests.operator import installed, servers, tenants
from tests.operator.kueue_jobs import make_job
from tests.operator.world import PODS, Refused, World

Json = dict[str, Any]
_CONFIG = Path(installed.QUEUES) / "config.yaml"
_ARGS = ("--config", str(_CONFIG), "--lease-seconds", "5")
_JOBS = "/apis/batch/v1/namespaces/default/jobs"
_N, _TEAMS, _COHORTS, _CORES = int(os.environ.get("EVENKEEL_JOBS", "200")), 20, 4, 4
_SECONDS = 120.0 + _N
_KILL_SECONDS = 6.0
# What a call may meet while the API server is away.
_AWAY = (Refused, aiohttp.ClientError, OSError)


@pytest.fixture(scope="module")
def server(kueue_crds: list[Json], peers: None) -> Iterator[servers.Server]:  # noqa: ARG001 - builds them
    """An API server with Kueue's kinds, and Kubernetes' Job controller."""
    with servers.with_queues(kueue_crds, controllers=("job-controller",)) as running:
        yield running


async def test_jobs_outlive_kills(world: World) -> None:
    await tenants.prepare(world)
    for i in range(_TEAMS):
        quota = {"name": "cpu", "nominalQuota": str(_CORES)}
        group = {"coveredResources": ["cpu"], "flavors": [{"name": "plain", "resources": [quota]}]}
        await tenants.make_queue(
            world, f"team-{i}", f"cohort-{i % _COHORTS}", resourceGroups=[group]
        )
    for i in range(8):
        await world.create(nodes.make_plain_node(f"n{i}", cpu="32"))
    made = [make_job(f"job-{i}", f"team-{i % _TEAMS}", cpu=1 + i % 3, suspend=True) for i in range(_N)]  # fmt: skip
    await asyncio.gather(*(_submit(world, one) for one in made))
    ended = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_kill_again_and_again(world, ended))
        tasks.create_task(_end_pods(world, ended))
        tasks.create_task(_check_quotas(world, ended))
        await _wait_for_all(world)
        ended.set()
    await _nothing_is_left(world)


async def _submit(world: World, job: Json) -> None:
    await world.call("POST", _JOBS, job)


async def _kill_again_and_again(world: World, ended: asyncio.Event) -> None:
    """A scheduler every few seconds, and the API server once."""
    assert world.server.plane is not None
    for i in range(1_000_000):
        operator = await world.start_operator(name=f"r{i}", args=_ARGS)
        with suppress(TimeoutError):
            async with asyncio.timeout(_KILL_SECONDS + 5.0):
                await ended.wait()
        if ended.is_set():
            break
        if i == 1:
            await asyncio.to_thread(world.server.plane.restart_apiserver)
            world.rights_in_doubt = True
        operator.kill()


async def _end_pods(world: World, ended: asyncio.Event) -> None:
    """Pods that have a node run to their end at once, as a kubelet would have it."""
    while not ended.is_set():
        await asyncio.sleep(0.2)
        with suppress(*_AWAY):
            for one in await world.listed(PODS):
                if one["spec"].get("nodeName") and one["status"]["phase"] == "Pending":
                    path = f"{PODS}/{one['metadata']['name']}/status"
                    await world.call("PATCH", path, {"status": {"phase": "Succeeded"}})


async def _check_quotas(world: World, ended: asyncio.Event) -> None:
    """At no time a cohort uses more than it is owed, counted from the objects."""
    most = _CORES * _TEAMS // _COHORTS
    while not ended.is_set():
        await asyncio.sleep(0.3)
        with suppress(*_AWAY):
            used: Counter[int] = Counter()
            for one in await world.listed(tenants.WORKLOADS):
                admission = one.get("status", {}).get("admission")
                if admission and not _is_finished(one):
                    team = int(admission["clusterQueue"].removeprefix("team-"))
                    (given,) = admission["podSetAssignments"]
                    used[team % _COHORTS] += quantities.read_value(given["resourceUsage"]["cpu"])
            assert all(n <= most for n in used.values()), used


def _is_finished(workload: Json) -> bool:
    return tenants.list_conditions(workload).get("Finished", ("",))[0] == "True"


async def _wait_for_all(world: World) -> None:
    """Wait until every job is complete."""
    async with asyncio.timeout(_SECONDS):
        while True:
            await asyncio.sleep(0.5)
            with suppress(*_AWAY):
                found = await world.listed(_JOBS)
                done = [one for one in found if _has_completed(one)]
                if len(done) == _N:
                    return


def _has_completed(job: Json) -> bool:
    conditions = job["status"].get("conditions", ())
    return any(one["type"] == "Complete" and one["status"] == "True" for one in conditions)


async def _nothing_is_left(world: World) -> None:
    """Each job had one pod and one workload, and no quota is held."""
    jobs = await world.listed(_JOBS)
    assert {(one["status"]["succeeded"], one["status"].get("failed", 0)) for one in jobs} == {
        (1, 0)
    }
    owners = Counter(one["metadata"]["ownerReferences"][0]["name"] for one in await world.pods())
    assert len(owners) == _N
    assert set(owners.values()) == {1}

    async def list_unfinished() -> list[str]:
        found = await world.listed(tenants.WORKLOADS)
        return [
            one["metadata"]["name"]
            for one in found
            if not _is_finished(one) or one["metadata"].get("finalizers")
        ]

    await world.wait_until(list_unfinished, lambda found: not found, 60.0)
    of = Counter(one["metadata"]["ownerReferences"][0]["name"] for one in await world.listed(tenants.WORKLOADS))  # fmt: skip
    assert len(of) == _N
    assert set(of.values()) == {1}
    for i in range(_TEAMS):
        await tenants.has_status(
            world, f"{tenants.QUEUES}/team-{i}", admittedWorkloads=0, reservingWorkloads=0,
            pendingWorkloads=0, flavorsReservation=tenants.make_use("0", "0"),
        )  # fmt: skip
