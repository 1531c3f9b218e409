"""The webhook for jobs and pods with a queue, called by a real API server, with Kubernetes' own controllers."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler.api import kinds, names
from scheduler.embedded.agents import nodes
from tests.controlplane import processes
from tests.operator import crds, installed, servers, tenants
from tests.operator.manifests import container, pod
from tests.operator.process import Operator
from tests.operator.world import PODS, Refused, World

Json = dict[str, Any]
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_JOBS = "/apis/batch/v1/namespaces/default/jobs"
_DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
_SETS = "/apis/apps/v1/namespaces/default/statefulsets"
_REPLICAS = kinds.LEADER_WORKER_SETS.find_list_path("default")
_SERVICES = f"/api/v1/namespaces/{installed.NAMESPACE}/services"
_SECRET = f"/api/v1/namespaces/{installed.NAMESPACE}/secrets/evenkeel-webhook"
_NAME = "evenkeel-webhook"
_CONTROLLERS = (
    "job-controller", "deployment-controller", "replicaset-controller", "statefulset-controller",
)  # fmt: skip
_QUEUE = {names.KUEUE_QUEUE: "team"}


@pytest.fixture(scope="module")
def server(kueue_crds: list[Json], peers: None) -> Iterator[servers.Server]:  # noqa: ARG001 - builds them
    """An API server with Kueue's kinds and Kubernetes' controllers, as the kustomization of the webhook installs it."""
    with servers.real(install=installed.with_webhook) as running:
        assert running.plane is not None
        for crd in [*kueue_crds, crds.make_crd(kinds.LEADER_WORKER_SETS)]:
            assert running.plane.request("POST", _CRDS, crd).status < 400
        running.plane.start_controller_manager(_CONTROLLERS)
        yield running


async def _start(world: World, name: str = "a") -> tuple[Operator, int]:
    """Start a replica, and lead the API server to it; the replica and its port."""
    (port,) = processes.free_ports(1)
    config = yaml.safe_load((Path(installed.WEBHOOK) / "config.yaml").read_text())
    config["queues"]["webhook"]["port"] = port
    path = world.server.folder / f"webhook-{name}.yaml"
    path.write_text(yaml.safe_dump(config))
    operator = await world.start_operator(name=name, args=("--config", str(path)))
    await _lead_to(world, port)
    return operator, port


async def _stand_in_for_the_network(world: World) -> None:
    """There is no network of Services here: the Service leads to this machine."""
    with suppress(Refused):
        await world.call("DELETE", f"{_SERVICES}/{_NAME}")
    spec = {"type": "ExternalName", "externalName": "localhost"}
    await world.call("POST", _SERVICES, {"metadata": {"name": _NAME}, "spec": spec})


async def _lead_to(world: World, port: int) -> None:
    for kind in (kinds.MUTATING_WEBHOOKS, kinds.VALIDATING_WEBHOOKS):
        found = await world.call("GET", kind.find_path(_NAME))
        for one in found["webhooks"]:
            one["clientConfig"]["service"]["port"] = port
        await world.call("PUT", kind.find_path(_NAME), found)
    await world.wait_until(partial(_is_called, world))


async def _is_called(world: World) -> bool:
    """Whether the API server knows whom to call, and is answered."""
    job = _make_job("probe", {})
    job["metadata"]["labels"] = {names.KUEUE_QUEUE: "Not_A_Name"}
    try:
        await world.call("POST", f"{_JOBS}?dryRun=All", job)
    except Refused as refused:
        return "is not the name of a LocalQueue" in str(refused)
    return False


def _make_template(labels: Json, cpu: int = 1, **more: Any) -> Json:
    spec = {
        "schedulerName": names.SCHEDULER,
        "terminationGracePeriodSeconds": 0,
        "containers": [container(requests={"cpu": str(cpu)})],
        **more,
    }
    return {"metadata": {"labels": labels}, "spec": spec}


def _make_job(name: str, labels: Json, *, n: int = 1, cpu: int = 1) -> Json:
    template = _make_template({}, cpu, restartPolicy="Never")
    spec = {"parallelism": n, "completions": n, "template": template}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


async def _list_pods(world: World, **labels: str) -> list[Json]:
    chosen = ",".join(f"{key}={one}" for key, one in labels.items())
    return await world.listed(PODS, labelSelector=chosen)


async def _are_bound(world: World, n: int, **labels: str) -> list[Json]:
    async def find() -> list[Json]:
        return [one for one in await _list_pods(world, **labels) if one["spec"].get("nodeName")]

    return await world.wait_until(find, lambda found: len(found) == n)


async def _is_refused(world: World, method: str, path: str, body: Json, *words: str) -> None:
    with pytest.raises(Refused) as refused:
        await world.call(method, path, body)
    for word in words:
        assert word in str(refused.value)


async def _free_queue(world: World) -> None:
    """Let what has had quota give it back."""
    await tenants.has_status(world, f"{tenants.QUEUES}/team", reservingWorkloads=0)


async def _prepare(world: World) -> None:
    await tenants.prepare(world)
    flavor = {
        "nodeLabels": {"pool": "spot"},
        "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}],
    }
    await tenants.create(world, f"{tenants.API}/resourceflavors", "ResourceFlavor", "spot", flavor)
    quota = {"name": "cpu", "nominalQuota": "4"}
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "spot", "resources": [quota]}]}
    await tenants.make_queue(world, "team", "teams", resourceGroups=[group])
    node = nodes.make_plain_node("n0", cpu="32")
    node["metadata"].setdefault("labels", {})["pool"] = "spot"
    node["spec"] = {"taints": [{"key": "spot", "value": "yes", "effect": "NoSchedule"}]}
    await world.create(node, nodes.make_plain_node("n1", cpu="32"))


async def test_the_webhook(world: World) -> None:
    await _prepare(world)
    await _stand_in_for_the_network(world)
    operator, port = await _start(world)
    await world.leads(operator)
    await _it_has_its_certificate_in_the_secret(world)
    await _a_job_has_no_pod_before_it_is_admitted(world)
    await _a_pod_waits_by_a_gate_and_gets_what_its_flavor_says(world)
    await _mistakes_are_refused_by_name(world)
    await _the_default_queue_is_given_in_namespaces_that_want_it(world)
    await _pods_of_a_deployment_wait_one_by_one(world)
    await _a_stateful_set_waits_as_one(world)
    await _a_replica_of_a_leader_worker_set_waits_as_one(world)
    await world.measured(operator, _counts_reviews)
    await _a_replica_that_does_not_lead_serves_it_too(world)
    await _lead_to(world, port)
    assert operator.stop().code == 0
    await _a_dead_webhook_blocks_only_what_has_a_queue(world)


def _counts_reviews(found: dict[str, float]) -> bool:
    """Whether a replica reports what it has answered."""
    name, seconds = "evenkeel_webhook_requests_total", "evenkeel_webhook_request_seconds_count"
    paths, results = ("mutate", "validate"), ("allowed", "changed", "refused", "failed")
    n = {
        (path, result): found.get(f'{name}{{result="{result}",webhook="{path}"}}', 0)
        for path in paths
        for result in results
    }
    n_timed = sum(found.get(f'{seconds}{{webhook="{path}"}}', 0) for path in paths)
    some = n["mutate", "changed"], n["validate", "allowed"], n["validate", "refused"]
    return sum(n.values()) == n_timed and all(some) and not n["validate", "failed"]


async def _it_has_its_certificate_in_the_secret(world: World) -> None:
    data = (await world.call("GET", _SECRET))["data"]
    assert set(data) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}
    for kind in (kinds.MUTATING_WEBHOOKS, kinds.VALIDATING_WEBHOOKS):
        found = await world.call("GET", kind.find_path(_NAME))
        assert {one["clientConfig"]["caBundle"] for one in found["webhooks"]} == {data["ca.crt"]}
    assert b"BEGIN CERTIFICATE" in base64.b64decode(data["tls.crt"])


async def _a_job_has_no_pod_before_it_is_admitted(world: World) -> None:
    async with world.recorded(PODS) as seen:
        made = await world.call("POST", _JOBS, _make_job("large", _QUEUE, n=3, cpu=2))
        assert made["spec"]["suspend"] is True
        small = await world.call("POST", _JOBS, _make_job("small", _QUEUE, n=2))
        assert small["spec"]["suspend"] is True
        pods = await _are_bound(world, 2, **{"job-name": "small"})
    assert {one["spec"]["nodeName"] for one in pods} == {"n0"}
    labels = {one["object"]["metadata"]["labels"]["job-name"] for one in seen}
    assert labels == {"small"}
    # Its pods had what its flavor says from the first: it was not started before.
    added = [one["object"] for one in seen if one["type"] == "ADDED"]
    assert len(added) == 2
    assert all(one["spec"]["nodeSelector"] == {"pool": "spot"} for one in added)
    for name in ("large", "small"):
        await world.call("DELETE", f"{_JOBS}/{name}", {"propagationPolicy": "Background"})
    for one in pods:
        await world.delete(f"{PODS}/{one['metadata']['name']}")
    await _free_queue(world)


async def _a_pod_waits_by_a_gate_and_gets_what_its_flavor_says(world: World) -> None:
    waits = pod("waits", containers=[container(requests={"cpu": "5"})])
    waits["metadata"]["labels"] = dict(_QUEUE)
    (made,) = await world.create(waits)
    assert made["spec"]["schedulingGates"] == [{"name": names.KUEUE_GATE}]
    assert made["metadata"]["labels"][names.KUEUE_MANAGED] == "true"
    assert made["metadata"]["annotations"][names.KUEUE_ROLE]
    one = pod("one", containers=[container(requests={"cpu": "1"})])
    one["metadata"]["labels"] = dict(_QUEUE)
    await world.create(one)
    assert await world.bound("one") == ["n0"]
    found = await world.pod("one")
    assert found["spec"]["nodeSelector"] == {"pool": "spot"}
    assert "schedulingGates" not in found["spec"]
    assert "nodeName" not in (await world.pod("waits"))["spec"]
    for name in ("one", "waits"):
        await world.delete(f"{PODS}/{name}")
    await _free_queue(world)


async def _mistakes_are_refused_by_name(world: World) -> None:
    least = _make_job("least", _QUEUE, n=2)
    least["metadata"]["annotations"] = {names.KUEUE_LEAST: "2"}
    await _is_refused(world, "POST", _JOBS, least, "Job default/least", names.KUEUE_LEAST, "1..1")
    managed = pod("managed", containers=[container(requests={"cpu": "1"})])
    managed["metadata"]["labels"] = {**_QUEUE, names.KUEUE_GROUP: "crew"}
    await _is_refused(world, "POST", PODS, managed, "Pod default/managed", names.KUEUE_TOTAL)
    late = _make_job("late", {**_QUEUE, names.KUEUE_RUN_TIME: "soon"})
    await _is_refused(world, "POST", _JOBS, late, names.KUEUE_RUN_TIME, "soon")
    await world.call("POST", _JOBS, _make_job("runs", _QUEUE))
    (running,) = await _are_bound(world, 1, **{"job-name": "runs"})
    other = {"metadata": {"labels": {names.KUEUE_QUEUE: "other"}}}
    await _is_refused(
        world, "PATCH", f"{_JOBS}/runs", other, "may not change while it runs", "team"
    )
    none = {"metadata": {"labels": {names.KUEUE_QUEUE: None}}}
    await _is_refused(world, "PATCH", f"{_JOBS}/runs", none, "may not change while it runs")
    await world.call("DELETE", f"{_JOBS}/runs", {"propagationPolicy": "Background"})
    await world.delete(f"{PODS}/{running['metadata']['name']}")
    await _free_queue(world)


async def _the_default_queue_is_given_in_namespaces_that_want_it(world: World) -> None:
    labels = {"scheduling.evenkeel.dev/default-queue": "true"}
    await world.call(
        "POST", "/api/v1/namespaces", {"metadata": {"name": "wants", "labels": labels}}
    )
    locals_ = f"{tenants.API}/namespaces/wants/localqueues"
    jobs = "/apis/batch/v1/namespaces/wants/jobs"
    before = await world.call("POST", jobs, _make_job("before", {}))
    assert not before["metadata"].get("labels", {}).get(names.KUEUE_QUEUE)
    await tenants.create(world, locals_, "LocalQueue", "default", {"clusterQueue": "team"})

    async def has_default() -> bool:
        made = await world.call("POST", f"{jobs}?dryRun=All", _make_job("after", {}))
        queue = made["metadata"].get("labels", {}).get(names.KUEUE_QUEUE)
        return bool(queue == "default" and made["spec"]["suspend"])

    await world.wait_until(has_default)
    elsewhere = await world.call("POST", f"{_JOBS}?dryRun=All", _make_job("after", {}))
    assert names.KUEUE_QUEUE not in elsewhere["metadata"].get("labels", {})


async def _pods_of_a_deployment_wait_one_by_one(world: World) -> None:
    template = _make_template({"app": "web"}, 2)
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    made = await world.call("POST", _DEPLOYMENTS, {"metadata": {"name": "web", "labels": _QUEUE}, "spec": spec})  # fmt: skip
    assert made["spec"]["template"]["metadata"]["labels"][names.KUEUE_QUEUE] == "team"
    pods = await _are_bound(world, 2, app="web")
    assert {one["spec"]["nodeName"] for one in pods} == {"n0"}
    assert len(await _list_pods(world, app="web")) == 3
    none = {"metadata": {"labels": {names.KUEUE_QUEUE: None}}}
    await _is_refused(world, "PATCH", f"{_DEPLOYMENTS}/web", none, "may not be removed")
    await world.call("PATCH", f"{_DEPLOYMENTS}/web", {"spec": {"replicas": 0}})
    await world.wait_until(partial(_list_pods, world, app="web"), lambda found: not found)
    await _free_queue(world)


def _make_set(name: str, n: int, cpu: int) -> Json:
    spec = {
        "replicas": n,
        "serviceName": name,
        "selector": {"matchLabels": {"app": name}},
        "template": _make_template({"app": name}, cpu),
    }
    return {"metadata": {"name": name, "labels": _QUEUE}, "spec": spec}


async def _a_stateful_set_waits_as_one(world: World) -> None:
    await world.call("POST", _SETS, _make_set("big", 3, 2))
    made = await world.call("POST", _SETS, _make_set("db", 2, 1))
    meta = made["spec"]["template"]["metadata"]
    assert meta["annotations"][names.KUEUE_TOTAL] == "2"
    (first,) = await _are_bound(world, 1, app="db")
    # Its pods come one after the other.
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    await world.call("PATCH", f"{PODS}/{first['metadata']['name']}/status", ready)
    await _are_bound(world, 2, app="db")
    workload = await tenants.read_workload(world, meta["labels"][names.KUEUE_GROUP])
    assert [one["count"] for one in workload["spec"]["podSets"]] == [2]

    async def list_owners() -> list[Json]:
        found = await tenants.read_workload(world, meta["labels"][names.KUEUE_GROUP])
        return list(found["metadata"]["ownerReferences"])

    await world.wait_until(list_owners, lambda found: len(found) == 2)
    # The larger one needs 6 of 4, and has none of them.
    (waiting,) = await _list_pods(world, app="big")
    assert waiting["spec"]["schedulingGates"]
    await _is_refused(world, "PATCH", f"{_SETS}/db", {"spec": {"replicas": 3}}, "spec.replicas", "scale to 0 first")  # fmt: skip
    pods = {"template": {"spec": {"nodeSelector": {"disk": "ssd"}}}}
    await _is_refused(world, "PATCH", f"{_SETS}/db", {"spec": pods}, "may not change while")
    # As `kubectl scale` does it, which no webhook sees: the pod is refused.
    (second,) = (one for one in await _list_pods(world, app="db") if one["metadata"]["name"] == "db-1")  # fmt: skip
    await world.call("PATCH", f"{PODS}/db-1/status", ready)
    await world.call("PATCH", f"{_SETS}/db/scale", {"spec": {"replicas": 3}})
    assert second["metadata"]["labels"][names.KUEUE_GROUP] == meta["labels"][names.KUEUE_GROUP]

    async def list_failures() -> list[Json]:
        found = await world.listed("/api/v1/namespaces/default/events")
        return [
            one for one in found if one["reason"] == "FailedCreate" and "db-2" in one["message"]
        ]

    (failure, *_) = await world.wait_until(list_failures)
    assert "quota for 2 pods" in failure["message"]
    for name in ("big", "db"):
        await world.call("PATCH", f"{_SETS}/{name}/scale", {"spec": {"replicas": 0}})
        await world.wait_until(partial(_list_pods, world, app=name), lambda found: not found)


def _make_replica_pod(index: int) -> Json:
    """A pod as the controller of a LeaderWorkerSet makes it, with what the webhook has written on its template."""
    made = pod(f"llm-0-{index}", containers=[container(requests={"cpu": "1"})])
    made["metadata"]["labels"] = {
        **_QUEUE, names.LWS_NAME: "llm", names.LWS_GROUP: "0", names.LWS_INDEX: str(index),
    }  # fmt: skip
    return made


async def _a_replica_of_a_leader_worker_set_waits_as_one(world: World) -> None:
    await world.wait_until(partial(tenants.is_served, world, _REPLICAS))
    worker = _make_template({}, 1)
    pair = {"size": 2, "workerTemplate": worker}
    body = {
        "apiVersion": kinds.LEADER_WORKER_SETS.api_version,
        "kind": kinds.LEADER_WORKER_SETS.kind,
        "metadata": {"name": "llm", "labels": _QUEUE},
        "spec": {"replicas": 1, "leaderWorkerTemplate": pair},
    }
    late = {**body, "spec": {**body["spec"], "startupPolicy": "LeaderReady"}}  # type: ignore[dict-item]
    await _is_refused(world, "POST", _REPLICAS, late, "spec.startupPolicy", "LeaderCreated")
    made = await world.call("POST", _REPLICAS, body)
    meta = made["spec"]["leaderWorkerTemplate"]["workerTemplate"]["metadata"]
    assert meta["labels"] == _QUEUE
    for index in range(2):
        one = _make_replica_pod(index)
        one["metadata"]["annotations"] = {**meta["annotations"], names.LWS_SIZE: "2"}
        await world.create(one)
    await world.bound("llm-0-0", "llm-0-1")
    groups = {one["metadata"]["labels"][names.KUEUE_GROUP] for one in await _list_pods(world, **{names.LWS_NAME: "llm"})}  # fmt: skip
    (group,) = groups
    workload = await tenants.read_workload(world, group)
    assert [one["count"] for one in workload["spec"]["podSets"]] == [2]


async def _a_replica_that_does_not_lead_serves_it_too(world: World) -> None:
    before = await world.call("GET", _SECRET)
    operator, _ = await _start(world, "b")
    assert not operator.is_deciding
    made = await world.call("POST", f"{_JOBS}?dryRun=All", _make_job("other", _QUEUE))
    assert made["spec"]["suspend"] is True
    # It uses the certificate that the first one has made.
    assert await world.call("GET", _SECRET) == before
    assert operator.stop().code == 0


async def _a_dead_webhook_blocks_only_what_has_a_queue(world: World) -> None:
    await world.call("POST", _JOBS, _make_job("free", {}))
    await world.create(pod("free", containers=[container(requests={"cpu": "1"})]))
    await _is_refused(world, "POST", _JOBS, _make_job("bound", _QUEUE), "failed calling webhook")
    held = pod("bound", containers=[container(requests={"cpu": "1"})])
    held["metadata"]["labels"] = dict(_QUEUE)
    await _is_refused(world, "POST", PODS, held, "failed calling webhook")
