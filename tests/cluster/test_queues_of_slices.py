"""Jobs that change their size while they run, with Kubernetes' own Job controller: they grow, wait, shrink and give way."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from scheduler.api import names
from scheduler.embedded.agents import nodes
from tests.operator import installed, servers, tenants
from tests.operator.kueue_jobs import JOBS, make_job, read_job, wait_until_placed
from tests.operator.world import Refused, World

Json = dict[str, Any]
_CONFIG = Path(installed.QUEUES) / "config.yaml"
_CONTROLLERS = ("job-controller", "garbage-collector-controller")
_QUEUE = f"{tenants.QUEUES}/team"


@pytest.fixture(scope="module")
def server(kueue_crds: list[Json], peers: None) -> Iterator[servers.Server]:  # noqa: ARG001 - builds them
    """An API server with Kueue's kinds, Kubernetes' Job controller, and Evenkeel in the place of Kueue."""
    with servers.with_queues(kueue_crds, controllers=_CONTROLLERS) as running:
        yield running


async def _resize(world: World, n: int, job: str = "grows") -> None:
    await world.call("PATCH", f"{JOBS}/{job}", {"spec": {"parallelism": n}})


async def _list_slices(world: World, job: str = "grows") -> list[Json]:
    """List the workloads of a job that are not finished, the one with the fewest pods first."""
    found = [
        one
        for one in await world.listed(tenants.WORKLOADS)
        if any(owner["name"] == job for owner in one["metadata"].get("ownerReferences", ()))
        and tenants.list_conditions(one).get("Finished", ("",))[0] != "True"
    ]
    return sorted(found, key=_count)


def _count(workload: Json) -> int:
    return int(workload["spec"]["podSets"][0]["count"])


async def _has_slices(world: World, *counts: int) -> list[Json]:
    found: list[Json] = await world.wait_until(
        partial(_list_slices, world), lambda found: [_count(one) for one in found] == list(counts)
    )
    return found


async def _list_gated(world: World) -> list[Json]:
    """List the pods that wait with the gate."""
    return [one for one in await world.pods() if one["spec"].get("schedulingGates")]


async def test_a_job_grows_and_shrinks_while_it_runs(world: World) -> None:
    await tenants.prepare(world)
    await tenants.make_queue(
        world, "team", "teams", preemption={"withinClusterQueue": "LowerPriority"}
    )
    classes = f"{tenants.API}/workloadpriorityclasses"
    kind = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass"}
    await world.call("POST", classes, {**kind, "metadata": {"name": "urgent"}, "value": 100})
    await world.create(*(nodes.make_plain_node(f"n{i}", cpu="4") for i in range(4)))
    operator = await world.start_operator(args=("--config", str(_CONFIG)))
    await world.leads(operator)
    await _it_starts(world)
    await _it_grows(world)
    await _it_waits_for_more(world)
    assert operator.stop().code == 0
    operator = await world.start_operator(args=("--config", str(_CONFIG)))
    await world.leads(operator)
    await _it_shrinks(world)
    await _it_gives_way(world)
    await _it_ends(world)
    assert operator.stop().code == 0
    await _the_policy_refused_nothing(world)


async def test_pods_that_come_later_get_what_checks_add_to_their_slice(world: World) -> None:
    """The controller of the check says so; here it is done by hand, anew for each slice."""
    await tenants.prepare(world)
    spec = {"controllerName": "test.evenkeel.dev/by-hand"}
    await tenants.create(world, f"{tenants.API}/admissionchecks", "AdmissionCheck", "budget", spec)
    strategy = {"admissionChecks": [{"name": "budget"}]}
    await tenants.make_queue(world, "checked", "alone", admissionChecksStrategy=strategy)
    await world.create(*(nodes.make_plain_node(f"n{i}", cpu="4") for i in range(4)))
    operator = await world.start_operator(args=("--config", str(_CONFIG)))
    await world.leads(operator)
    job = make_job(
        "checks", "checked", n=1, annotations={names.KUEUE_ELASTIC: "true"}, suspend=True
    )
    job["spec"] |= {"parallelism": 1, "completions": 40}
    await world.call("POST", JOBS, job)
    await _pass_check(world, 1, {"annotations": {"ticket": "a"}})
    await wait_until_placed(world, "checks", 1)
    await _resize(world, 2, "checks")
    toleration = {"key": "spot", "operator": "Exists"}
    more = {"annotations": {"budget": "b"}, "labels": {"l": "m"}, "tolerations": [toleration]}
    await _pass_check(world, 2, more)
    pods = await wait_until_placed(world, "checks", 2)
    (late,) = (one for one in pods if "budget" in one["metadata"]["annotations"])
    assert late["metadata"]["annotations"]["ticket"] == "a"
    assert late["metadata"]["labels"]["l"] == "m"
    assert toleration in late["spec"]["tolerations"]
    await _resize(world, 3, "checks")
    await _pass_check(world, 3, {"annotations": {"ticket": "c"}})
    (gated,) = await world.wait_until(partial(_list_gated, world), bool)
    (event,) = await world.wait_until(
        partial(world.events, "FailedToStart", gated["metadata"]["name"])
    )
    for part in (f"pod {gated['metadata']['name']}", "metadata.annotations[ticket]", "'a'", "'c'"):
        assert part in event["note"]
    await wait_until_placed(world, "checks", 2)
    assert operator.stop().code == 0


async def _pass_check(world: World, n: int, update: Json) -> None:
    """Have the slice with so many pods pass its check, which adds something to its pods."""

    def find_reserved(found: list[Json]) -> list[Json]:
        return [one for one in found if _count(one) == n and "admission" in one.get("status", {})]

    found = await world.wait_until(partial(_list_slices, world, "checks"), find_reserved)
    (one,) = find_reserved(found)
    (check,) = one["status"]["admissionChecks"]
    checks = [check | {"state": "Ready", "podSetUpdates": [{"name": "main"} | update]}]
    path = f"{tenants.WORKLOADS}/{one['metadata']['name']}/status"
    await world.call("PATCH", path, {"status": {"admissionChecks": checks}})


async def _it_starts(world: World) -> None:
    texts = {names.KUEUE_ELASTIC: "true"}
    job = make_job("grows", "team", n=1, annotations=texts, suspend=True)
    job["spec"] |= {"parallelism": 2, "completions": 40}
    await world.call("POST", JOBS, job)
    pods = await wait_until_placed(world, "grows", 2)
    (workload,) = await _has_slices(world, 2)
    for one in pods:
        assert one["metadata"]["annotations"][names.KUEUE_CHAIN] == workload["metadata"]["name"]


async def _it_grows(world: World) -> None:
    (first,) = await _has_slices(world, 2)
    await _resize(world, 3)
    await wait_until_placed(world, "grows", 3)
    (second,) = await _has_slices(world, 3)
    key = f"default/{first['metadata']['name']}"
    assert second["metadata"]["annotations"][names.KUEUE_REPLACES] == key
    over = await tenants.read_workload(world, first["metadata"]["name"])
    assert tenants.list_conditions(over)["Finished"] == ("True", "WorkloadSliceReplaced")
    await tenants.has_status(world, _QUEUE, reservingWorkloads=1, admittedWorkloads=1)
    (event,) = await world.wait_until(
        partial(world.events, "WorkloadSliceReplaced", first["metadata"]["name"])
    )
    assert second["metadata"]["uid"] in event["note"]
    assert not await _list_gated(world)


async def _it_waits_for_more(world: World) -> None:
    """Its pods beyond those with quota keep their gate, and the others run on."""
    await _resize(world, 6)
    _, waits = await _has_slices(world, 3, 6)
    name = waits["metadata"]["name"]
    waits = await tenants.becomes(world, name, "QuotaReserved", "False")
    await world.wait_until(partial(_list_gated, world), lambda found: len(found) == 3)
    await wait_until_placed(world, "grows", 3)
    assert not (await read_job(world, "grows"))["spec"]["suspend"]


async def _it_shrinks(world: World) -> None:
    """What it gives back goes to another one."""
    await _resize(world, 2)
    await _has_slices(world, 2)
    await wait_until_placed(world, "grows", 2)
    await tenants.has_status(world, _QUEUE, reservingWorkloads=1)
    await world.call("POST", JOBS, make_job("other", "team", n=2, suspend=True))
    await wait_until_placed(world, "other", 2)
    await world.call("DELETE", f"{JOBS}/other", {"propagationPolicy": "Background"})
    await tenants.has_status(world, _QUEUE, reservingWorkloads=1)


async def _it_gives_way(world: World) -> None:
    """All its pods go, it waits in the size that it has by now, and starts again in this one."""
    await _resize(world, 4)
    await wait_until_placed(world, "grows", 4)
    labels = {names.KUEUE_CLASS: "urgent"}
    await world.call("POST", JOBS, make_job("urgent", "team", n=3, labels=labels, suspend=True))
    await wait_until_placed(world, "urgent", 3)
    await wait_until_placed(world, "grows", 0)
    assert (await read_job(world, "grows"))["spec"]["suspend"]
    await _resize(world, 3)
    (workload,) = await _has_slices(world, 3)
    await tenants.becomes(world, workload["metadata"]["name"], "QuotaReserved", "False")
    await world.call("DELETE", f"{JOBS}/urgent", {"propagationPolicy": "Background"})
    await wait_until_placed(world, "grows", 3)


async def _it_ends(world: World) -> None:
    """None of its slices keeps quota."""
    await _resize(world, 9)
    await _has_slices(world, 3, 9)
    failed = {"spec": {"activeDeadlineSeconds": 1}}
    await world.call("PATCH", f"{JOBS}/grows", failed)
    await world.wait_until(partial(_list_slices, world), lambda found: not found)
    await tenants.has_status(world, _QUEUE, reservingWorkloads=0)


async def _the_policy_refused_nothing(world: World) -> None:
    """The policy for Workloads is in force, and Evenkeel has kept to it: the one refusal that is counted is the one here."""
    found = await world.listed(tenants.WORKLOADS)
    reserved = (one for one in found if tenants.list_conditions(one)["QuotaReserved"][0] == "True")
    one = next(reserved)
    one["spec"]["podSets"][0]["count"] += 1
    with pytest.raises(Refused, match="may only get smaller"):
        await world.call("PUT", f"{tenants.WORKLOADS}/{one['metadata']['name']}", one)
    assert await tenants.count_refusals(world) == 1
