"""Jobs of other projects, by their own CRDs: each gets a workload, starts, and is stopped as it was."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from scheduler.api.jobs import table
from scheduler.api.jobs.parts import get_in
from tests.controlplane.auditlog import AuditLog
from tests.operator import installed, job_kinds, servers, tenants
from tests.operator.world import Refused, World

Json = dict[str, Any]
_CONFIG = Path(installed.QUEUES) / "config.yaml"
_OURS = f"system:serviceaccount:{installed.NAMESPACE}:evenkeel"
# The pod sets of each kind, with their counts.
_SETS = {
    "JobSet": {"leader": 1, "workers": 4},
    "MPIJob": {"launcher": 1, "worker": 2},
    "PyTorchJob": {"master": 1, "worker": 2},
    "TFJob": {"chief": 1, "ps": 1, "worker": 2},
    "XGBoostJob": {"master": 1, "worker": 2},
    "PaddleJob": {"master": 1, "worker": 2},
    "JAXJob": {"worker": 2},
    "TrainJob": {"leader": 1, "workers": 4},
    "RayCluster": {"head": 1, "workers": 2},
    "RayJob": {"head": 1, "workers": 2, "submitter": 1},
    "RayService": {"head": 1, "workers": 2},
}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> AuditLog:
    rule = {"level": "Metadata", "users": [_OURS], "omitStages": ["RequestReceived"]}
    return AuditLog(tmp_path_factory.mktemp("audit"), [rule])


@pytest.fixture(scope="module")
def server(kueue_crds: list[Json], log: AuditLog) -> Iterator[servers.Server]:
    """An API server with Kueue's kinds and those of jobs, and Evenkeel in the place of Kueue."""
    crds = (*kueue_crds, *job_kinds.read_crds())
    with servers.with_queues(crds, extra_apiserver_flags=log.flags) as running:
        yield running


async def test_jobs_of_every_kind_start_and_stop(world: World, log: AuditLog) -> None:
    await tenants.prepare(world)
    flavor = {"nodeLabels": {"pool": "spot"}, "tolerations": [{"key": "spot", "operator": "Exists"}]}  # fmt: skip
    await tenants.create(world, f"{tenants.API}/resourceflavors", "ResourceFlavor", "spot", flavor)
    # The pod that submits a RayJob asks for memory.
    quotas = [{"name": one, "nominalQuota": n} for one, n in (("cpu", "100"), ("memory", "100Gi"))]
    flavors = [{"name": "spot", "resources": quotas}]
    group = {"coveredResources": ["cpu", "memory"], "flavors": flavors}
    await tenants.make_queue(world, "team", "teams", resourceGroups=[group])
    await world.create(_make_node())
    operator = await world.start_operator(args=("--config", str(_CONFIG)))
    await world.leads(operator)
    jobs = job_kinds.make_jobs("team")
    for kind, job in jobs.items():
        await _create(world, kind, job)
    await _make_job_set_of_train_job(world)
    await asyncio.gather(*(_starts_and_stops(world, kind, job) for kind, job in jobs.items()))
    assert operator.stop().code == 0
    entries = [one for one in log.entries() if "objectRef" in one]
    assert [one for one in entries if one["responseStatus"]["code"] == 403] == []
    used = {(one["verb"], one["objectRef"]["resource"]) for one in entries}
    plurals = [table.BY_NAME[kind].kind.plural for kind in _SETS]
    assert {(verb, one) for verb in ("get", "patch") for one in plurals} <= used


def _make_node() -> Json:
    labels = {"pool": "spot", "disk": "fast", "kubernetes.io/hostname": "n0"}
    amounts = {"cpu": "64", "memory": "64Gi", "pods": "110"}
    status = {"allocatable": amounts, "capacity": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n0", "labels": labels}, "status": status}  # fmt: skip


async def _create(world: World, kind: str, job: Json) -> None:
    found = table.BY_NAME[kind].kind
    path = found.find_list_path("default")
    await world.wait_until(partial(_is_served, world, path))
    made = {"apiVersion": found.api_version, "kind": found.kind, **job}
    await world.call("POST", path, made)


async def _is_served(world: World, path: str) -> bool:
    with suppress(Refused):
        await world.call("GET", path)
        return True
    return False


async def _make_job_set_of_train_job(world: World) -> None:
    """As the trainer does: it makes it also of a job that is suspended."""
    train = await _read(world, "TrainJob", "trainjob")
    kind = table.BY_NAME["TrainJob"].kind
    owner = {"apiVersion": kind.api_version, "kind": kind.kind, "name": "trainjob", "uid": train["metadata"]["uid"], "controller": True}  # fmt: skip
    meta = {"name": "trainjob", "ownerReferences": [owner]}
    await _create(world, "JobSet", {"metadata": meta, "spec": job_kinds.make_job_set_spec()})


async def _read(world: World, kind: str, name: str) -> Json:
    return await world.call("GET", table.BY_NAME[kind].kind.find_path(name, "default"))


async def _find_workload(world: World, kind: str) -> Json:
    async def find() -> list[Json]:
        return [
            one
            for one in await world.listed(tenants.WORKLOADS)
            if one["metadata"]["ownerReferences"][0]["kind"] == kind
        ]

    (found,) = await world.wait_until(find, lambda found: len(found) == 1)
    return found


async def _starts_and_stops(world: World, kind: str, job: Json) -> None:
    row, name = table.BY_NAME[kind], job["metadata"]["name"]
    workload = await _find_workload(world, kind)
    counts = {one["name"]: one["count"] for one in workload["spec"]["podSets"]}
    assert counts == _SETS[kind]
    started = await world.wait_until(
        partial(_read, world, kind, name), lambda found: not get_in(found, row.suspend)
    )
    if row.made is None:
        for part in row.list_parts(started):
            selector = part.template["spec"].get("nodeSelector", {})
            assert selector.get("pool") == "spot", part.name
            assert part.template["spec"]["tolerations"] == [{"key": "spot", "operator": "Exists"}]
    else:
        (patch,) = started["spec"]["runtimePatches"]
        given = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
        assert [one["name"] for one in given] == list(_SETS[kind])
    path = f"{tenants.WORKLOADS}/{workload['metadata']['name']}"
    await world.call("PATCH", path, {"spec": {"active": False}})
    stopped = await world.wait_until(
        partial(_read, world, kind, name), lambda found: get_in(found, row.suspend) is True
    )
    await tenants.becomes(world, workload["metadata"]["name"], "QuotaReserved", "False")
    if row.made is None:
        for part in row.list_parts(stopped):
            assert "pool" not in part.template["spec"].get("nodeSelector", {}), part.name
            assert not part.template["spec"].get("tolerations")
