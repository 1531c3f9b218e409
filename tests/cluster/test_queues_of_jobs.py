"""Jobs with a queue, with Kubernetes' own Job controller: they wait suspended, start, give way, and end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from scheduler.api import names
from scheduler.embedded.agents import nodes
from tests.operator import installed, servers, tenants
from tests.operator.kueue_jobs import JOBS, find_workload, make_job, read_job, wait_until_placed
from tests.operator.manifests import container, pod
from tests.operator.world import PODS, World

Json = dict[str, Any]
_CONFIG = Path(installed.QUEUES) / "config.yaml"
_CONTROLLERS = ("job-controller", "garbage-collector-controller")


@pytest.fixture(scope="module")
def server(kueue_crds: list[Json], peers: None) -> Iterator[servers.Server]:  # noqa: ARG001 - builds them
    """An API server with Kueue's kinds, Kubernetes' Job controller, and Evenkeel in the place of Kueue."""
    with servers.with_queues(kueue_crds, controllers=_CONTROLLERS) as running:
        yield running


async def _end_pod(world: World, found: Json) -> None:
    """End a pod as a kubelet would."""
    path = f"{PODS}/{found['metadata']['name']}/status"
    await world.call("PATCH", path, {"status": {"phase": "Succeeded"}})


async def test_jobs_wait_start_give_way_and_end(world: World) -> None:
    await tenants.prepare(world)
    flavor = {
        "nodeLabels": {"pool": "spot"},
        "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}],
    }
    await tenants.create(world, f"{tenants.API}/resourceflavors", "ResourceFlavor", "spot", flavor)
    quota = {"name": "cpu", "nominalQuota": "4"}
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "spot", "resources": [quota]}]}
    await tenants.make_queue(
        world, "team", "teams", resourceGroups=[group],
        preemption={"withinClusterQueue": "LowerPriority"},
    )  # fmt: skip
    classes = f"{tenants.API}/workloadpriorityclasses"
    kind = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass"}
    await world.call("POST", classes, {**kind, "metadata": {"name": "urgent"}, "value": 100})
    node = nodes.make_plain_node("n0", cpu="16")
    node["metadata"].setdefault("labels", {})["pool"] = "spot"
    node["spec"] = {"taints": [{"key": "spot", "value": "yes", "effect": "NoSchedule"}]}
    other = nodes.make_plain_node("n1", cpu="16")
    await world.create(node, other)
    operator = await world.start_operator(args=("--config", str(_CONFIG)))
    await world.leads(operator)
    await _one_waits_while_anotherwait_until_placed(world)
    await _an_urgent_one_takes_its_place(world)
    await _the_quota_of_one_that_has_ended_is_free(world)
    await _one_may_start_with_fewer_pods(world)
    await _one_that_is_deleted_leaves_nothing(world)
    await _one_waits_until_all_have_agreed(world)
    await _one_with_a_mistake_is_told_so(world)
    await _delete_jobs(world)
    assert operator.stop().code == 0
    assert await tenants.count_refusals(world) == 0


async def _one_waits_while_anotherwait_until_placed(world: World) -> None:
    # Nobody has suspended it: that is done for it, and pods that it has already go.
    await world.call("POST", JOBS, make_job("first", "team", n=3))
    await world.wait_until(partial(world.events, "Started", "first"))
    pods = await wait_until_placed(world, "first", 3)
    assert {one["spec"]["nodeName"] for one in pods} == {"n0"}
    workload = await find_workload(world, "first")
    first = await read_job(world, "first")
    template = first["spec"]["template"]
    assert template["spec"]["nodeSelector"] == {"pool": "spot"}
    assert template["spec"]["tolerations"] == [
        {"key": "spot", "operator": "Exists", "effect": "NoSchedule"}
    ]
    labels, texts = template["metadata"]["labels"], template["metadata"]["annotations"]
    assert labels[names.KUEUE_CLUSTER_QUEUE] == labels[names.KUEUE_LOCAL_QUEUE] == "team"
    assert texts == {names.KUEUE_WORKLOAD: workload["metadata"]["name"]}
    assert workload["metadata"]["labels"][names.KUEUE_JOB_UID] == first["metadata"]["uid"]
    await world.wait_until(partial(world.events, "Started", "first"))
    # Of two workloads of the same second the one with the lower uid would come first.
    await asyncio.sleep(1.0)
    await world.call("POST", JOBS, make_job("second", "team", n=2, suspend=True))
    second = await find_workload(world, "second")
    name = second["metadata"]["name"]
    waits = await tenants.becomes(world, name, "QuotaReserved", "False")
    assert tenants.list_conditions(waits)["QuotaReserved"][1] == "WaitingForQuota"
    assert (await read_job(world, "second"))["spec"]["suspend"]
    # No pod is made of one that waits.
    assert len(await world.pods()) == 3


async def _an_urgent_one_takes_its_place(world: World) -> None:
    labels = {names.KUEUE_CLASS: "urgent"}
    await world.call("POST", JOBS, make_job("third", "team", cpu=4, labels=labels))
    third = await find_workload(world, "third")
    assert third["spec"]["priority"] == 100
    assert third["spec"]["priorityClassRef"]["name"] == "urgent"
    first = await find_workload(world, "first")
    name = first["metadata"]["name"]
    again = await tenants.becomes(world, name, "Evicted", "True")
    assert tenants.list_conditions(again)["Preempted"] == ("True", "InClusterQueue")
    await wait_until_placed(world, "third", 1)
    waits = await tenants.becomes(world, name, "QuotaReserved", "False")
    assert tenants.list_conditions(waits)["Requeued"] == ("True", "Preempted")
    assert "admission" not in waits["status"]
    stopped = await world.wait_until(
        partial(read_job, world, "first"),
        lambda found: names.KUEUE_STOPPING not in found["metadata"].get("annotations", {}),
    )
    assert stopped["spec"]["suspend"]
    template = stopped["spec"]["template"]
    assert "nodeSelector" not in template["spec"]
    assert "tolerations" not in template["spec"]
    assert not template["metadata"].get("annotations")
    assert names.KUEUE_CLUSTER_QUEUE not in template["metadata"]["labels"]
    await world.wait_until(partial(world.events, "Stopped", "first"))


async def _the_quota_of_one_that_has_ended_is_free(world: World) -> None:
    (pod_of_third,) = await wait_until_placed(world, "third", 1)
    await _end_pod(world, pod_of_third)
    third = await find_workload(world, "third")
    name = third["metadata"]["name"]
    ended = await tenants.becomes(world, name, "Finished", "True")
    assert tenants.list_conditions(ended)["Finished"] == ("True", "Succeeded")
    await world.wait_until(
        partial(tenants.read_workload, world, name),
        lambda found: not found["metadata"].get("finalizers"),
    )
    await wait_until_placed(world, "first", 3)
    # The second one gets what the first one needs no longer.
    await _end_pod(world, (await wait_until_placed(world, "first", 3))[0])
    await wait_until_placed(world, "second", 2)
    first = await find_workload(world, "first")
    assert first["status"]["reclaimablePods"] == [{"name": "main", "count": 1}]
    for name in ("first", "second"):
        await world.call("DELETE", f"{JOBS}/{name}", {"propagationPolicy": "Background"})
    await tenants.has_status(world, f"{tenants.QUEUES}/team", reservingWorkloads=0)


async def _one_may_start_with_fewer_pods(world: World) -> None:
    least = {names.KUEUE_LEAST: "2"}
    job = make_job("elastic", "team", n=6, annotations=least, suspend=True)
    await world.call("POST", JOBS, job)
    await wait_until_placed(world, "elastic", 4)
    assert (await read_job(world, "elastic"))["spec"]["parallelism"] == 4
    workload = await find_workload(world, "elastic")
    assert (workload["spec"]["podSets"][0]["count"], workload["spec"]["podSets"][0]["minCount"]) == (6, 2)  # fmt: skip
    assert workload["status"]["admission"]["podSetAssignments"][0]["count"] == 4


async def _one_that_is_deleted_leaves_nothing(world: World) -> None:
    await world.call("DELETE", f"{JOBS}/elastic", {"propagationPolicy": "Background"})

    async def list_held() -> list[Json]:
        """The garbage collector hears late of Kueue's kinds: nothing keeps it from what it will delete then."""
        found = await world.listed(tenants.WORKLOADS)
        return [one for one in found if one["metadata"].get("finalizers")]

    await world.wait_until(list_held, lambda found: not found)
    await tenants.has_status(world, f"{tenants.QUEUES}/team", admittedWorkloads=0)


def _is_gated_by(names_left: str, found: Json) -> bool:
    texts: Json = found["metadata"]["annotations"]
    return bool(texts.get(names.KUEUE_GATED, "") == names_left)


async def _one_waits_until_all_have_agreed(world: World) -> None:
    gated = {names.KUEUE_GATED: "example.com/budget,example.com/review"}
    await world.call("POST", JOBS, make_job("asked", "team", annotations=gated, suspend=True))
    name = (await find_workload(world, "asked"))["metadata"]["name"]
    await tenants.becomes(world, name, "QuotaReserved", "False")
    for left in ("example.com/review", ""):
        found = await tenants.read_workload(world, name)
        (reserved,) = found["status"]["conditions"]
        assert reserved["reason"] == "AdmissionGated"
        assert reserved["message"].startswith("Admission is gated by: example.com/")
        patch = {"metadata": {"annotations": {names.KUEUE_GATED: left or None}}}
        await world.call("PATCH", f"{JOBS}/asked", patch)
        await world.wait_until(
            partial(tenants.read_workload, world, name), partial(_is_gated_by, left)
        )
    await wait_until_placed(world, "asked", 1)
    await world.call("DELETE", f"{JOBS}/asked", {"propagationPolicy": "Background"})


async def _one_with_a_mistake_is_told_so(world: World) -> None:
    wrong = make_job("wrong", "team", suspend=True)
    wrong["spec"]["template"]["metadata"] = {"annotations": {names.KUEUE_UNCONSTRAINED: "perhaps"}}
    await world.call("POST", JOBS, wrong)
    (event,) = await world.wait_until(partial(world.events, "InvalidJob", "wrong"))
    assert names.KUEUE_UNCONSTRAINED in event["note"]
    unknown = make_job("lost", "team", labels={names.KUEUE_CLASS: "nowhere"}, suspend=True)
    await world.call("POST", JOBS, unknown)
    await world.wait_until(partial(world.events, "WorkloadPriorityClassNotFound", "lost"))
    await world.call("POST", JOBS, make_job("well", "team", suspend=True))
    await wait_until_placed(world, "well", 1)


async def _delete_jobs(world: World) -> None:
    """Delete all jobs, and wait until the Job controller has let go of their pods: the next test has none."""
    for job in await world.listed(JOBS):
        path = f"{JOBS}/{job['metadata']['name']}"
        await world.call("DELETE", path, {"propagationPolicy": "Background"})
    await world.wait_until(world.pods, lambda found: not found)


_GROUP_LABELS = {names.KUEUE_QUEUE: "pods", names.KUEUE_GROUP: "crew"}


def make_pod(name: str, labels: Json, *, annotations: Json | None = None, cpu: str = "1") -> Json:
    """A pod of a user who has no webhook: it has a queue, and no gate."""
    made = pod(name, containers=[container(requests={"cpu": cpu})])
    made["metadata"] |= {"labels": labels, "annotations": annotations or {}}
    return made


async def test_pods_wait_start_give_way_and_end(world: World) -> None:
    await tenants.prepare(world)
    quota = {"name": "cpu", "nominalQuota": "3"}
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "plain", "resources": [quota]}]}
    preemption = {"withinClusterQueue": "LowerPriority"}
    await tenants.make_queue(world, "pods", "pods", resourceGroups=[group], preemption=preemption)
    await world.create(nodes.make_plain_node("p0", cpu="16"))
    operator = await world.start_operator(args=("--config", str(_CONFIG)))
    await world.leads(operator)
    await _pods_by_themselves_wait_for_quota(world)
    await _one_with_a_gate_loses_it(world)
    await _a_group_waits_until_all_have_quota(world)
    await _a_group_that_disagrees_is_told_so(world)
    assert operator.stop().code == 0


async def _pods_by_themselves_wait_for_quota(world: World) -> None:
    """Nothing holds them but the scheduler itself."""
    labels = {names.KUEUE_QUEUE: "pods"}
    await world.create(make_pod("one", labels, cpu="2"))
    await world.bound("one")
    await world.create(make_pod("two", labels, cpu="2"))
    two = await find_workload(world, "two")
    await tenants.becomes(world, two["metadata"]["name"], "QuotaReserved", "False")
    assert "nodeName" not in (await world.pod("two"))["spec"]
    await _end_pod(world, await world.pod("one"))
    await world.bound("two")
    one = await find_workload(world, "one")
    await tenants.becomes(world, one["metadata"]["name"], "Finished", "True")
    await world.delete(f"{PODS}/two")


async def _one_with_a_gate_loses_it(world: World) -> None:
    """The webhook of Kueue, or of others, has written it."""
    labels = {names.KUEUE_QUEUE: "pods", names.KUEUE_MANAGED: "true"}
    gated = make_pod("gated", labels)
    gated["spec"]["schedulingGates"] = [{"name": names.KUEUE_GATE}]
    gated["metadata"]["finalizers"] = [names.KUEUE_MANAGED]
    await world.create(gated)
    await world.bound("gated")
    found = await world.pod("gated")
    assert "schedulingGates" not in found["spec"]
    assert found["metadata"]["labels"][names.KUEUE_CLUSTER_QUEUE] == "pods"
    await world.call("DELETE", f"{PODS}/gated", {"gracePeriodSeconds": 0})
    await world.wait_until(world.pods, lambda pods: "gated" not in _list_names(pods))


def _list_names(found: list[Json]) -> list[str]:
    return [one["metadata"]["name"] for one in found]


async def _a_group_waits_until_all_have_quota(world: World) -> None:
    total = {names.KUEUE_TOTAL: "3"}
    await world.create(make_pod("rest", {names.KUEUE_QUEUE: "pods"}))
    await world.bound("rest")
    for i in range(3):
        await world.create(make_pod(f"crew-{i}", _GROUP_LABELS, annotations=total))

    async def list_crew() -> list[Json]:
        return [
            one
            for one in await world.listed(tenants.WORKLOADS)
            if one["metadata"]["name"] == "crew"
        ]

    await world.wait_until(list_crew)
    await tenants.becomes(world, "crew", "QuotaReserved", "False")
    crew = await tenants.read_workload(world, "crew")
    assert [one["count"] for one in crew["spec"]["podSets"]] == [3]
    assert len(crew["metadata"]["ownerReferences"]) == 3
    await _end_pod(world, await world.pod("rest"))
    await world.bound("crew-0", "crew-1", "crew-2")
    for i in range(3):
        await _end_pod(world, await world.pod(f"crew-{i}"))
    ended = await tenants.becomes(world, "crew", "Finished", "True")
    (finished,) = (one for one in ended["status"]["conditions"] if one["type"] == "Finished")
    assert finished["message"] == "Pods succeeded: 3/3."

    async def list_held() -> list[Json]:
        return [one for one in await world.pods() if one["metadata"].get("finalizers")]

    await world.wait_until(list_held, lambda found: not found)


async def _a_group_that_disagrees_is_told_so(world: World) -> None:
    labels = _GROUP_LABELS | {names.KUEUE_GROUP: "odd"}
    for name, total in (("odd-0", "2"), ("odd-1", "3")):
        await world.create(make_pod(name, labels, annotations={names.KUEUE_TOTAL: total}))

    async def read() -> list[Json]:
        return [
            *await world.events("InvalidJob", "odd-0"),
            *await world.events("InvalidJob", "odd-1"),
        ]

    (event, *_) = await world.wait_until(read)
    assert names.KUEUE_TOTAL in event["note"]
    await world.create(make_pod("well", {names.KUEUE_QUEUE: "pods"}))
    await world.bound("well")


async def test_a_job_whose_pods_are_late_is_put_back_and_at_last_deactivated(world: World) -> None:
    """No kubelet runs its pods, so they are never ready."""
    strategy = "{backoffBaseSeconds: 1, backoffLimitCount: 1}"
    ready = f"{{timeout: 3s, blockAdmission: true, requeuingStrategy: {strategy}}}"
    path = world.server.folder / "ready.yaml"
    path.write_text(f"{_CONFIG.read_text()}  waitForPodsReady: {ready}\n")
    await tenants.prepare(world)
    await tenants.make_queue(world, "late", "late")
    await world.create(nodes.make_plain_node("n9", cpu="16"))
    operator = await world.start_operator(args=("--config", str(path)))
    await world.leads(operator)
    await world.call("POST", JOBS, make_job("slow", "late", suspend=True))
    name = (await find_workload(world, "slow"))["metadata"]["name"]
    ready_now = await tenants.becomes(world, name, "PodsReady", "False")
    assert tenants.list_conditions(ready_now)["PodsReady"] == ("False", "WaitForStart")
    await world.call("POST", JOBS, make_job("next", "late", suspend=True))
    other = (await find_workload(world, "next"))["metadata"]["name"]
    waits = await tenants.becomes(world, other, "QuotaReserved", "False")
    assert tenants.list_conditions(waits)["QuotaReserved"][1] == "WaitingForPodsReady"
    await world.wait_until(partial(world.events, "EvictedDueToPodsReadyTimeout", name))
    # Another one gets its turn, and ends: then the first one is tried again, and deactivated.
    await world.call("DELETE", f"{JOBS}/next", {"propagationPolicy": "Background"})
    found = await world.wait_until(
        partial(tenants.read_workload, world, name),
        lambda found: found["spec"]["active"] is False and "admission" not in found["status"],
    )
    reason = "DeactivatedDueToRequeuingLimitExceeded"
    assert tenants.list_conditions(found)["Evicted"] == ("True", reason)
    assert tenants.list_conditions(found)["Requeued"] == ("False", reason)
    counts = {
        one["reason"]: one["count"] for one in found["status"]["schedulingStats"]["evictions"]
    }
    assert counts == {"PodsReadyTimeout": 1, "Deactivated": 1}
    assert found["status"]["accumulatedPastExecutionTimeSeconds"] >= 6
    assert (await read_job(world, "slow"))["spec"]["suspend"]
    assert operator.stop().code == 0
