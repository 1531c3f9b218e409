"""Kueue's queues without Kueue: the operator admits, preempts and says why who waits, as Kueue's own objects have it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from scheduler.api import names
from scheduler.api.jobs import table as jobs
from tests.controlplane.auditlog import AuditLog
from tests.operator import installed, lives, servers, tenants
from tests.operator.process import Operator
from tests.operator.world import World

Json = dict[str, Any]
Right = tuple[str, str, str]
_OURS = f"system:serviceaccount:{installed.NAMESPACE}:evenkeel"
_CONFIG = Path(installed.QUEUES) / "config.yaml"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> AuditLog:
    rule = {"level": "Metadata", "users": [_OURS], "omitStages": ["RequestReceived"]}
    return AuditLog(tmp_path_factory.mktemp("audit"), [rule])


@pytest.fixture(scope="module")
def server(kueue_crds: list[Json], log: AuditLog) -> Iterator[servers.Server]:
    """An API server with Kueue's kinds, and Evenkeel with the rights to manage them."""
    with servers.with_queues(kueue_crds, extra_apiserver_flags=log.flags) as running:
        yield running


async def _start(world: World, config: Path = _CONFIG) -> Operator:
    operator = await world.start_operator(args=("--config", str(config)))
    await world.leads(operator)
    return operator


async def test_queues_are_managed_as_kueue_does_it(world: World, log: AuditLog) -> None:
    await tenants.prepare(world)
    await tenants.make_queue(world, "left", "all", preemption={"reclaimWithinCohort": "Any"})
    await tenants.make_queue(world, "right", "all")
    operator = await _start(world)
    await _two_are_admitted_and_the_second_borrows(world)
    await _one_queue_takes_back_what_it_is_owed(world)
    await _a_queue_with_a_mistake_admits_nobody_and_nothing_else_stops(world)
    await _a_workload_with_a_check_runs_once_it_is_ready(world)
    await lives.a_workload_that_a_check_rejects_is_deactivated(world, "inspected")
    await lives.a_deleted_queue_stays_until_its_workload_has_ended(world)
    await lives.a_topology_stays_while_a_flavor_needs_it(world)
    assert operator.stop().code == 0
    before = await world.listed(tenants.WORKLOADS)
    operator = await _start(world, _make_fair_config(world))
    await _no_admission_is_written_anew(world, before)
    await _shares_are_written_where_they_count(world)
    await _nothing_is_written_while_kueue_leads(world, operator)
    entries = [one for one in log.entries() if "objectRef" in one]
    assert [one for one in entries if one["responseStatus"]["code"] == 403] == []
    # A workload is read only if it has changed while its decision was on the way. Here nobody has jobs.
    unused = {*await _list_rights(world)} - {*map(_find_right, entries)}
    assert unused <= {("get", "kueue.x-k8s.io", "workloads"), *_list_rights_of_jobs()}


def _list_rights_of_jobs() -> list[Right]:
    """The rights that jobs and pods with a queue take."""
    kinds_of_jobs = (one.kind for one in jobs.TABLE)
    return [
        *((verb, one.group, one.plural) for one in kinds_of_jobs for verb in ("get", "patch")),
        *((verb, "kueue.x-k8s.io", "workloads") for verb in ("create", "patch", "delete")),
        ("patch", "batch", "jobs/status"),
        ("patch", "", "pods"),
        ("list", "scheduling.k8s.io", "priorityclasses"),
    ]


async def _list_rights(world: World) -> list[Right]:
    """The rights that the management of queues takes, as they are installed."""
    role = await world.call(
        "GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/evenkeel-queues"
    )
    return [
        (verb, group, resource)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


def _find_right(entry: Json) -> Right:
    what = entry["objectRef"]
    resource = "/".join(filter(None, (what["resource"], what.get("subresource", ""))))
    return entry["verb"], what.get("apiGroup", ""), resource


async def test_a_replica_that_takes_over_goes_on_where_the_other_ended(world: World) -> None:
    """It has watched all the time, and lists the workloads once more before it decides."""
    await tenants.prepare(world)
    await tenants.make_queue(world, "handed", "over")
    first = await _start(world)
    second = await world.start_operator(name="b", args=("--config", str(_CONFIG)))
    await tenants.submit(world, "early", "handed", 3)
    early = await tenants.becomes(world, "early", "Admitted", "True")
    assert first.stop().code == 0
    await world.leads(second)
    await tenants.submit(world, "too-large", "handed", 2)
    await tenants.submit(world, "fits", "handed", 1)
    await tenants.becomes(world, "fits", "Admitted", "True")
    await tenants.becomes(world, "too-large", "QuotaReserved", "False")
    assert await tenants.read_workload(world, "early") == early
    await tenants.has_status(
        world, f"{tenants.QUEUES}/handed", admittedWorkloads=2, pendingWorkloads=1
    )
    await world.measured(second, _measures_the_queue)


def _measures_the_queue(found: dict[str, float]) -> bool:
    """Whether a replica reports how the queue is, and has counted only what it has done itself."""
    wanted = {
        'kueue_admitted_active_workloads{cluster_queue="handed"}': 2,
        'kueue_pending_workloads{cluster_queue="handed",status="inadmissible"}': 1,
        'kueue_admitted_workloads_total{cluster_queue="handed"}': 1,
        'kueue_local_queue_admitted_active_workloads{name="handed",namespace="default"}': 2,
        'kueue_local_queue_pending_workloads{name="handed",namespace="default",status="inadmissible"}': 1,
        'kueue_admission_wait_time_seconds_count{cluster_queue="handed"}': 1,
    }
    return wanted.items() <= found.items()


async def test_what_a_local_queue_has_used_survives_a_crash(world: World) -> None:
    """With a half-life of half a minute, half of four cores count after half a minute, whoever adds them up."""
    path = world.server.folder / "usage.yaml"
    history = "{usageHalfLifeTime: 30s, usageSamplingInterval: 1s}"
    path.write_text(f"{_CONFIG.read_text()}  admissionFairSharing: {history}\n")
    await tenants.prepare(world)
    scope = {"admissionMode": "UsageBasedAdmissionFairSharing"}
    await tenants.make_queue(world, "counted", "usage", admissionScope=scope)
    first = await _start(world, path)
    await tenants.submit(world, "heavy", "counted", 4)
    await tenants.becomes(world, "heavy", "Admitted", "True")
    read = partial(lives.read_usage, world, "counted")
    before = await world.wait_until(read, lambda found: _read_cores(found) > 0.5)
    first.kill()
    await asyncio.sleep(5.0)
    await _start(world, path)
    after = await world.wait_until(read, lambda found: found["lastUpdate"] > before["lastUpdate"])
    # Four cores of which the most do not count yet gain at least a third of a core in these five seconds.
    assert _read_cores(after) > _read_cores(before) + 0.3
    assert _read_cores(after) < 4.0


def _read_cores(usage: Json) -> float:
    return float(usage.get("consumedResources", {}).get("cpu", 0))


async def test_after_a_crash_in_the_midst_no_quota_is_given_twice(world: World) -> None:
    await tenants.prepare(world)
    quota = {"name": "cpu", "nominalQuota": "100"}
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "plain", "resources": [quota]}]}
    await tenants.make_queue(world, "crashed", "midst", resourceGroups=[group])
    first = await _start(world)
    submitting = asyncio.create_task(_submit_many(world, "crashed", 150))
    await world.wait_until(partial(_count_admitted, world, "crashed"), lambda n: n >= 20)
    first.kill()
    await submitting
    before = await _count_admitted(world, "crashed")
    assert before < 100
    await _start(world)
    await tenants.has_status(
        world, f"{tenants.QUEUES}/crashed", admittedWorkloads=100, pendingWorkloads=50
    )
    assert await _count_admitted(world, "crashed") == 100


async def _submit_many(world: World, queue: str, n: int) -> None:
    for i in range(n):
        await tenants.submit(world, f"{queue}-{i}", queue, 1)


async def _count_admitted(world: World, queue: str) -> int:
    found = await world.listed(tenants.WORKLOADS)
    return sum(
        one.get("status", {}).get("admission", {}).get("clusterQueue") == queue for one in found
    )


async def _two_are_admitted_and_the_second_borrows(world: World) -> None:
    await tenants.submit(world, "first", "right", 3)
    first = await tenants.becomes(world, "first", "Admitted", "True")
    await asyncio.sleep(1.0)
    await tenants.submit(world, "second", "right", 3)
    await tenants.becomes(world, "second", "Admitted", "True")
    assert first["status"]["admission"] == {
        "clusterQueue": "right",
        "podSetAssignments": [
            {
                "name": "main",
                "flavors": {"cpu": "plain"},
                "resourceUsage": {"cpu": "3"},
                "count": 1,
            }
        ],
    }
    reserved, admitted = first["status"]["conditions"]
    assert (reserved["type"], reserved["reason"], reserved["message"]) == (
        "QuotaReserved",
        "QuotaReserved",
        "Quota reserved in ClusterQueue right",
    )
    assert (admitted["type"], admitted["reason"], admitted["message"]) == (
        "Admitted",
        "Admitted",
        "The workload is admitted",
    )
    assert reserved["observedGeneration"] == first["metadata"]["generation"]
    await world.wait_until(partial(world.events, "QuotaReserved", "first"))
    await world.wait_until(partial(world.events, "Admitted", "first"))
    both = {"reservingWorkloads": 2, "admittedWorkloads": 2, "pendingWorkloads": 0}
    borrows = tenants.make_use("6", "2")
    right = await tenants.has_status(
        world, f"{tenants.QUEUES}/right", flavorsReservation=borrows, flavorsUsage=borrows, **both
    )
    (active,) = right["conditions"]
    assert (active["type"], active["status"], active["reason"], active["message"]) == (
        "Active",
        "True",
        "Ready",
        "Can admit new workloads",
    )
    local = await tenants.has_status(
        world, f"{tenants.LOCALS}/right", flavorsUsage=tenants.make_use("6"), **both
    )
    assert local["conditions"][0]["message"] == "Can submit new workloads to localQueue"


async def _one_queue_takes_back_what_it_is_owed(world: World) -> None:
    """From the newest one that borrows."""
    await tenants.submit(world, "owner", "left", 4, job="the-job")
    evicted = await tenants.becomes(world, "second", "Evicted", "True")
    assert tenants.list_conditions(evicted)["Evicted"] == ("True", "Preempted")
    assert tenants.list_conditions(evicted)["Preempted"] == ("True", "InCohortReclamation")
    owner = await tenants.becomes(world, "owner", "QuotaReserved", "False")
    message = (
        f"Preempted to accommodate a workload (UID: {owner['metadata']['uid']}, JobUID: the-job) due to "
        "reclamation within the cohort; preemptor path: /all/left; preemptee path: /all/right"
    )
    said = {one["message"] for one in evicted["status"]["conditions"] if one["status"] == "True"}
    assert message in said
    assert "admission" in evicted["status"]
    assert tenants.list_conditions(owner)["QuotaReserved"] == (
        "False",
        "WaitingForPreemptedWorkloads",
    )
    await world.wait_until(partial(world.events, "Preempted", "second"))
    await world.wait_until(partial(world.events, "PreemptedWorkload", "owner"))
    await tenants.end_as_a_job_would(world, "second")
    await tenants.becomes(world, "owner", "Admitted", "True")
    waits = await world.wait_until(
        partial(tenants.read_workload, world, "second"),
        lambda found: (
            tenants.list_conditions(found)["QuotaReserved"] == ("False", "WaitingForQuota")
        ),
    )
    assert tenants.list_conditions(waits)["Evicted"][0] == "True"
    await world.wait_until(partial(world.events, "WaitingForQuota", "second"))
    one_each = {"reservingWorkloads": 1, "admittedWorkloads": 1}
    await tenants.has_status(
        world,
        f"{tenants.QUEUES}/left",
        pendingWorkloads=0,
        flavorsUsage=tenants.make_use("4", "0"),
        **one_each,
    )
    await tenants.has_status(
        world,
        f"{tenants.LOCALS}/right",
        pendingWorkloads=1,
        flavorsUsage=tenants.make_use("3"),
        **one_each,
    )


async def _a_queue_with_a_mistake_admits_nobody_and_nothing_else_stops(world: World) -> None:
    await tenants.make_queue(world, "wrong", "all", resourceGroups=[_make_wrong_group()])
    wrong = await world.wait_until(
        partial(world.call, "GET", f"{tenants.QUEUES}/wrong"), lambda found: "status" in found
    )
    (active,) = wrong["status"]["conditions"]
    assert (active["type"], active["status"], active["reason"]) == (
        "Active",
        "False",
        "Misconfigured",
    )
    assert "spec.resourceGroups" in active["message"]
    # The flavor of the first group is in another one, too.
    groups = [_make_group("cpu"), _make_group("memory")]
    spec = {"namespaceSelector": {}, "resourceGroups": groups}
    await tenants.create(world, tenants.QUEUES, "ClusterQueue", "doubtful", spec)
    await tenants.create(
        world, tenants.LOCALS, "LocalQueue", "doubtful", {"clusterQueue": "doubtful"}
    )
    (event,) = await world.wait_until(partial(world.events, "Doubtful", "doubtful"))
    assert "flavor plain is in another resource group" in event["note"]
    await tenants.submit(world, "doubtful", "doubtful", 1)
    await tenants.becomes(world, "doubtful", "Admitted", "True")
    await world.wait_until(partial(world.events, "Misconfigured", "wrong"))
    await tenants.submit(world, "lost", "wrong", 1)
    await tenants.submit(world, "small", "right", 1)
    await tenants.becomes(world, "small", "Admitted", "True")
    assert (await tenants.has_status(world, f"{tenants.LOCALS}/wrong", pendingWorkloads=1))["conditions"][0]["reason"] == "ClusterQueueIsInactive"  # fmt: skip


async def _a_workload_with_a_check_runs_once_it_is_ready(world: World) -> None:
    """The controller of the check says so; here it is done by hand."""
    strategy = {"admissionChecks": [{"name": "budget"}]}
    spec = {"controllerName": "test.evenkeel.dev/by-hand"}
    await tenants.create(world, f"{tenants.API}/admissionchecks", "AdmissionCheck", "budget", spec)
    await tenants.make_queue(world, "checked", "alone", admissionChecksStrategy=strategy)
    await tenants.submit(world, "inspected", "checked", 2)
    reserved = await tenants.becomes(world, "inspected", "QuotaReserved", "True")
    assert "Admitted" not in tenants.list_conditions(reserved)
    (check,) = reserved["status"]["admissionChecks"]
    assert (check["name"], check["state"]) == ("budget", "Pending")
    await tenants.has_status(
        world, f"{tenants.QUEUES}/checked", reservingWorkloads=1, admittedWorkloads=0,
        flavorsReservation=tenants.make_use("2", "0"), flavorsUsage=tenants.make_use("0", "0"),
    )  # fmt: skip
    ready = {"status": {"admissionChecks": [check | {"state": "Ready"}]}}
    await world.call("PATCH", f"{tenants.WORKLOADS}/inspected/status", ready)
    await tenants.becomes(world, "inspected", "Admitted", "True")
    await tenants.has_status(
        world,
        f"{tenants.QUEUES}/checked",
        admittedWorkloads=1,
        flavorsUsage=tenants.make_use("2", "0"),
    )


async def _no_admission_is_written_anew(world: World, before: list[Json]) -> None:
    await tenants.submit(world, "late", "right", 1)
    await tenants.becomes(world, "late", "QuotaReserved", "False")
    after = {one["metadata"]["name"]: one for one in await world.listed(tenants.WORKLOADS)}
    for one in before:
        if "admission" in one.get("status", {}):
            assert after[one["metadata"]["name"]] == one


def _make_fair_config(world: World) -> Path:
    """The same with shares, which a restart may bring."""
    path = world.server.folder / "fair.yaml"
    path.write_text(f"{_CONFIG.read_text()}  fairSharing: {{}}\n")
    return path


async def _shares_are_written_where_they_count(world: World) -> None:
    spec = {"fairSharing": {"weight": "1"}}
    await tenants.create(world, f"{tenants.API}/cohorts", "Cohort", "all", spec)
    await tenants.has_status(world, f"{tenants.API}/cohorts/all", fairSharing={"weightedShare": 0})
    await tenants.has_status(world, f"{tenants.QUEUES}/left", fairSharing={"weightedShare": 0})


async def _nothing_is_written_while_kueue_leads(world: World, operator: Operator) -> None:
    renewing = asyncio.create_task(tenants.hold_lease(world))
    await world.measured(operator, lambda found: found["evenkeel_queues_held"] == 1)
    assert operator.said("queues are not managed here: Kueue's own controller manages them")
    await world.delete(f"{tenants.WORKLOADS}/owner")
    await asyncio.sleep(3.0)
    assert "admission" not in (await tenants.read_workload(world, "second"))["status"]
    held = await world.call("GET", f"{tenants.QUEUES}/left")
    assert held["status"]["admittedWorkloads"] == 1
    renewing.cancel()
    await world.call(
        "PATCH", f"{tenants.LEASES}/{names.KUEUE_LEASE}", {"spec": {"holderIdentity": ""}}
    )
    again = await tenants.becomes(world, "second", "Admitted", "True")
    assert tenants.list_conditions(again)["Evicted"] == ("False", "QuotaReserved")
    assert tenants.list_conditions(again)["Preempted"] == ("False", "QuotaReserved")
    await tenants.has_status(
        world, f"{tenants.QUEUES}/left", admittedWorkloads=0, reservingWorkloads=0
    )


def _make_group(resource: str) -> Json:
    flavor = {"name": "plain", "resources": [{"name": resource, "nominalQuota": "4"}]}
    return {"coveredResources": [resource], "flavors": [flavor]}


def _make_wrong_group() -> Json:
    """A group that the schema allows, and Kueue's webhook does not: resources in another order than it says."""
    quotas = [{"name": name, "nominalQuota": "4"} for name in ("memory", "cpu")]
    flavor = {"name": "plain", "resources": quotas}
    return {"coveredResources": ["cpu", "memory"], "flavors": [flavor]}
