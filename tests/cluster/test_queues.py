"""Kueue's queues without Kueue: the operator admits, preempts and says why who waits, as Kueue's own objects have it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from scheduler.api import names
from tests.controlplane.auditlog import AuditLog
from tests.operator import installed, servers
from tests.operator.process import Operator
from tests.operator.world import Refused, World

Json = dict[str, Any]
Right = tuple[str, str, str]
_OURS = f"system:serviceaccount:{installed.NAMESPACE}:evenkeel"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_API = "/apis/kueue.x-k8s.io/v1beta2"
_WORKLOADS = f"{_API}/namespaces/default/workloads"
_QUEUES = f"{_API}/clusterqueues"
_LOCALS = f"{_API}/namespaces/default/localqueues"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
_CONFIG = Path(installed.QUEUES) / "config.yaml"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> AuditLog:
    rule = {"level": "Metadata", "users": [_OURS], "omitStages": ["RequestReceived"]}
    return AuditLog(tmp_path_factory.mktemp("audit"), [rule])


@pytest.fixture(scope="module")
def server(kueue_crds: list[Json], log: AuditLog) -> Iterator[servers.Server]:
    """An API server with Kueue's kinds, and Evenkeel with the rights to manage them."""
    with servers.real(extra_apiserver_flags=log.flags, install=installed.with_queues) as running:
        assert running.plane is not None
        for crd in kueue_crds:
            assert running.plane.request("POST", _CRDS, crd).status < 400
        yield running


async def _start(world: World, config: Path = _CONFIG) -> Operator:
    operator = await world.start_operator(args=("--config", str(config)))
    await world.leads(operator)
    return operator


async def _serve(world: World) -> None:
    for path in (_QUEUES, _LOCALS, _WORKLOADS, f"{_API}/resourceflavors", f"{_API}/cohorts"):
        await world.wait_until(partial(_is_served, world, path))


async def _is_served(world: World, path: str) -> bool:
    with suppress(Refused):
        await world.call("GET", path)
        return True
    return False


async def _create(world: World, path: str, kind: str, name: str, spec: Json) -> None:
    made = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}}
    await world.call("POST", path, made | {"spec": spec})


async def _make_queue(world: World, name: str, cohort: str, **more: Any) -> None:
    quota = {"name": "cpu", "nominalQuota": "4"}
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "plain", "resources": [quota]}]}
    spec = {"cohortName": cohort, "namespaceSelector": {}, "resourceGroups": [group], **more}
    await _create(world, _QUEUES, "ClusterQueue", name, spec)
    await _create(world, _LOCALS, "LocalQueue", name, {"clusterQueue": name})


async def _submit(world: World, name: str, queue: str, cpu: int, *, labels: Any = None) -> None:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": str(cpu)}}}
    pods = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    spec = {"queueName": queue, "podSets": [{"name": "main", "count": 1, "template": pods}]}
    kind = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload"}
    made = {**kind, "metadata": {"name": name, "labels": labels or {}}, "spec": spec}
    await world.call("POST", _WORKLOADS, made)


async def _workload(world: World, name: str) -> Json:
    return await world.call("GET", f"{_WORKLOADS}/{name}")


def _conditions(found: Json) -> dict[str, tuple[str, str]]:
    conditions = found.get("status", {}).get("conditions", ())
    return {one["type"]: (one["status"], one["reason"]) for one in conditions}


async def _becomes(world: World, name: str, kind: str, status: str) -> Json:
    """Wait until a condition of a workload is so."""
    return await world.wait_until(
        partial(_workload, world, name),
        lambda found: _conditions(found).get(kind, ("",))[0] == status,
    )


async def _status(world: World, path: str, **wanted: Any) -> Json:
    """Wait until a status has some fields."""

    async def read() -> Json:
        found: Json = (await world.call("GET", path)).get("status", {})
        return found

    return await world.wait_until(
        read, lambda found: all(found.get(key) == one for key, one in wanted.items())
    )


async def _end_as_a_job_would(world: World, name: str) -> None:
    """Clear the admission of an evicted workload once its job has stopped, as Kueue's job controllers do."""
    found = await _workload(world, name)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for one in found["status"]["conditions"]:
        if one["type"] in {"QuotaReserved", "Admitted"}:
            one |= {"status": "False", "reason": "Pending", "lastTransitionTime": now}
    status = {"admission": None, "conditions": found["status"]["conditions"]}
    await world.call("PATCH", f"{_WORKLOADS}/{name}/status", {"status": status})


def _use(total: str, borrowed: str | None = None) -> list[Json]:
    resource = {"name": "cpu", "total": total}
    if borrowed is not None:
        resource["borrowed"] = borrowed
    return [{"name": "plain", "resources": [resource]}]


async def test_queues_are_managed_as_kueue_does_it(world: World, log: AuditLog) -> None:
    await _serve(world)
    await _create(world, f"{_API}/resourceflavors", "ResourceFlavor", "plain", {})
    await _make_queue(world, "left", "all", preemption={"reclaimWithinCohort": "Any"})
    await _make_queue(world, "right", "all")
    operator = await _start(world)
    await _two_are_admitted_and_the_second_borrows(world)
    await _one_queue_takes_back_what_it_is_owed(world)
    await _a_queue_with_a_mistake_admits_nobody_and_nothing_else_stops(world)
    await _a_workload_with_a_check_runs_once_it_is_ready(world)
    assert operator.stop().code == 0
    before = await world.listed(_WORKLOADS)
    operator = await _start(world, _make_fair_config(world))
    await _no_admission_is_written_anew(world, before)
    await _shares_are_written_where_they_count(world)
    await _nothing_is_written_while_kueue_leads(world, operator)
    entries = [one for one in log.entries() if "objectRef" in one]
    assert [one for one in entries if one["responseStatus"]["code"] == 403] == []
    # A workload is read only if it has changed while its decision was on the way.
    unused = {*await _list_rights(world)} - {*map(_find_right, entries)}
    assert unused <= {("get", "kueue.x-k8s.io", "workloads")}


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
    await _make_queue(world, "handed", "over")
    first = await _start(world)
    second = await world.start_operator(name="b", args=("--config", str(_CONFIG)))
    await _submit(world, "early", "handed", 3)
    early = await _becomes(world, "early", "Admitted", "True")
    assert first.stop().code == 0
    await world.leads(second)
    await _submit(world, "too-large", "handed", 2)
    await _submit(world, "fits", "handed", 1)
    await _becomes(world, "fits", "Admitted", "True")
    await _becomes(world, "too-large", "QuotaReserved", "False")
    assert await _workload(world, "early") == early
    await _status(world, f"{_QUEUES}/handed", admittedWorkloads=2, pendingWorkloads=1)


async def _two_are_admitted_and_the_second_borrows(world: World) -> None:
    await _submit(world, "first", "right", 3)
    first = await _becomes(world, "first", "Admitted", "True")
    await asyncio.sleep(1.0)
    await _submit(world, "second", "right", 3)
    await _becomes(world, "second", "Admitted", "True")
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
    borrows = _use("6", "2")
    right = await _status(
        world, f"{_QUEUES}/right", flavorsReservation=borrows, flavorsUsage=borrows, **both
    )
    (active,) = right["conditions"]
    assert (active["type"], active["status"], active["reason"], active["message"]) == (
        "Active",
        "True",
        "Ready",
        "Can admit new workloads",
    )
    local = await _status(world, f"{_LOCALS}/right", flavorsUsage=_use("6"), **both)
    assert local["conditions"][0]["message"] == "Can submit new workloads to localQueue"


async def _one_queue_takes_back_what_it_is_owed(world: World) -> None:
    """From the newest one that borrows."""
    await _submit(world, "owner", "left", 4, labels={names.KUEUE_JOB_UID: "the-job"})
    evicted = await _becomes(world, "second", "Evicted", "True")
    assert _conditions(evicted)["Evicted"] == ("True", "Preempted")
    assert _conditions(evicted)["Preempted"] == ("True", "InCohortReclamation")
    owner = await _workload(world, "owner")
    message = (
        f"Preempted to accommodate a workload (UID: {owner['metadata']['uid']}, JobUID: the-job) due to "
        "reclamation within the cohort; preemptor path: /all/left; preemptee path: /all/right"
    )
    said = {one["message"] for one in evicted["status"]["conditions"] if one["status"] == "True"}
    assert message in said
    assert "admission" in evicted["status"]
    assert _conditions(owner)["QuotaReserved"] == ("False", "WaitingForPreemptedWorkloads")
    await world.wait_until(partial(world.events, "Preempted", "second"))
    await world.wait_until(partial(world.events, "PreemptedWorkload", "owner"))
    await _end_as_a_job_would(world, "second")
    await _becomes(world, "owner", "Admitted", "True")
    waits = await world.wait_until(
        partial(_workload, world, "second"),
        lambda found: _conditions(found)["QuotaReserved"] == ("False", "WaitingForQuota"),
    )
    assert _conditions(waits)["Evicted"][0] == "True"
    await world.wait_until(partial(world.events, "WaitingForQuota", "second"))
    one_each = {"reservingWorkloads": 1, "admittedWorkloads": 1}
    await _status(
        world, f"{_QUEUES}/left", pendingWorkloads=0, flavorsUsage=_use("4", "0"), **one_each
    )
    await _status(world, f"{_LOCALS}/right", pendingWorkloads=1, flavorsUsage=_use("3"), **one_each)


async def _a_queue_with_a_mistake_admits_nobody_and_nothing_else_stops(world: World) -> None:
    await _make_queue(world, "wrong", "all", resourceGroups=[_make_wrong_group()])
    wrong = await world.wait_until(
        partial(world.call, "GET", f"{_QUEUES}/wrong"), lambda found: "status" in found
    )
    (active,) = wrong["status"]["conditions"]
    assert (active["type"], active["status"], active["reason"]) == (
        "Active",
        "False",
        "Misconfigured",
    )
    assert "spec.resourceGroups" in active["message"]
    await world.wait_until(partial(world.events, "Misconfigured", "wrong"))
    await _submit(world, "lost", "wrong", 1)
    await _submit(world, "small", "right", 1)
    await _becomes(world, "small", "Admitted", "True")
    assert (await _status(world, f"{_LOCALS}/wrong", pendingWorkloads=1))["conditions"][0]["reason"] == "ClusterQueueIsInactive"  # fmt: skip


async def _a_workload_with_a_check_runs_once_it_is_ready(world: World) -> None:
    """The controller of the check says so; here it is done by hand."""
    strategy = {"admissionChecks": [{"name": "budget"}]}
    spec = {"controllerName": "test.evenkeel.dev/by-hand"}
    await _create(world, f"{_API}/admissionchecks", "AdmissionCheck", "budget", spec)
    await _make_queue(world, "checked", "alone", admissionChecksStrategy=strategy)
    await _submit(world, "inspected", "checked", 2)
    reserved = await _becomes(world, "inspected", "QuotaReserved", "True")
    assert "Admitted" not in _conditions(reserved)
    (check,) = reserved["status"]["admissionChecks"]
    assert (check["name"], check["state"]) == ("budget", "Pending")
    await _status(
        world, f"{_QUEUES}/checked", reservingWorkloads=1, admittedWorkloads=0,
        flavorsReservation=_use("2", "0"), flavorsUsage=_use("0", "0"),
    )  # fmt: skip
    ready = {"status": {"admissionChecks": [check | {"state": "Ready"}]}}
    await world.call("PATCH", f"{_WORKLOADS}/inspected/status", ready)
    await _becomes(world, "inspected", "Admitted", "True")
    await _status(world, f"{_QUEUES}/checked", admittedWorkloads=1, flavorsUsage=_use("2", "0"))


async def _no_admission_is_written_anew(world: World, before: list[Json]) -> None:
    await _submit(world, "late", "right", 1)
    await _becomes(world, "late", "QuotaReserved", "False")
    after = {one["metadata"]["name"]: one for one in await world.listed(_WORKLOADS)}
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
    await _create(world, f"{_API}/cohorts", "Cohort", "all", spec)
    await _status(world, f"{_API}/cohorts/all", fairSharing={"weightedShare": 0})
    await _status(world, f"{_QUEUES}/left", fairSharing={"weightedShare": 0})


async def _nothing_is_written_while_kueue_leads(world: World, operator: Operator) -> None:
    renewing = asyncio.create_task(_hold_lease(world))
    await world.measured(operator, lambda found: found["evenkeel_queues_held"] == 1)
    assert operator.said("queues are not managed here: Kueue's own controller manages them")
    await world.delete(f"{_WORKLOADS}/owner")
    await asyncio.sleep(3.0)
    assert "admission" not in (await _workload(world, "second"))["status"]
    held = await world.call("GET", f"{_QUEUES}/left")
    assert held["status"]["admittedWorkloads"] == 1
    renewing.cancel()
    await world.call("PATCH", f"{_LEASES}/{names.KUEUE_LEASE}", {"spec": {"holderIdentity": ""}})
    again = await _becomes(world, "second", "Admitted", "True")
    assert _conditions(again)["Evicted"] == ("False", "QuotaReserved")
    assert _conditions(again)["Preempted"] == ("False", "QuotaReserved")
    await _status(world, f"{_QUEUES}/left", admittedWorkloads=0, reservingWorkloads=0)


def _make_wrong_group() -> Json:
    """A group that the schema allows, and Kueue's webhook does not: resources in another order than it says."""
    quotas = [{"name": name, "nominalQuota": "4"} for name in ("memory", "cpu")]
    flavor = {"name": "plain", "resources": quotas}
    return {"coveredResources": ["cpu", "memory"], "flavors": [flavor]}


async def _hold_lease(world: World) -> None:
    """Hold Kueue's lease, as its controller does."""
    spec = {"holderIdentity": "kueue-controller-manager-0_x", "leaseDurationSeconds": 15}
    kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    lease = {**kind, "metadata": {"name": names.KUEUE_LEASE}, "spec": spec}
    await world.call("POST", _LEASES, lease)
    while True:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        path = f"{_LEASES}/{names.KUEUE_LEASE}"
        await world.call("PATCH", path, {"spec": {"renewTime": now}})
        await asyncio.sleep(1.0)
