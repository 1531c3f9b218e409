"""Workloads that work: pods come from templates, follow the number asked, and go with their owner."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from scheduler.embedded.agents import fleet as agents
from scheduler.embedded.agents import nodes
from scheduler.embedded.agents.kubelet import RUN_SECONDS
from scheduler.embedded.agents.workloads import controllers, plans
from scheduler.embedded.cluster import Cluster
from tests.embedded.conftest import Api

Json = dict[str, Any]
APPS = "apis/apps/v1"
BATCH = "apis/batch/v1"


@pytest.fixture(autouse=True)
async def running(api: Api, unique: Callable[[str], str]) -> AsyncIterator[None]:
    """A node, its kubelet, the controllers, and who binds every pod of the test to the node."""
    node = unique("n")
    await api.cluster_wide("/api/v1/nodes", nodes.make_plain_node(node, pods="1000"))
    access: Json = {"token": api.token, "ssl": api.context}
    async with agents.run(api.url, nodes={node}, **access), controllers.run(api.url, **access):
        binder = asyncio.create_task(_bind_all(api, node))
        yield
        binder.cancel()


async def _bind_all(api: Api, node: str) -> None:
    while True:
        for pod in (await api.get(api.pods))["items"]:
            if not pod["spec"].get("nodeName"):
                await api.bind(pod["metadata"]["name"], node)
        await asyncio.sleep(0.05)


def workload(
    name: str = "w", image: str = "i:1", annotations: Json | None = None, **spec: Any
) -> Json:
    meta = {"labels": {"app": name}, "annotations": annotations or {}}
    pod: Json = {"containers": [{"name": "c", "image": image}]}
    if spec.pop("job", False):
        pod["restartPolicy"] = "Never"
    else:
        spec["selector"] = {"matchLabels": {"app": name}}
    return {
        "metadata": {"name": name},
        "spec": {**spec, "template": {"metadata": meta, "spec": pod}},
    }


async def live(api: Api) -> list[Json]:
    """Pods that are not going, by name."""
    items = (await api.get(api.pods))["items"]
    return [pod for pod in items if "deletionTimestamp" not in pod["metadata"]]


def all_ready(count: int) -> Callable[[list[Json]], bool]:
    return lambda pods: len(pods) == count and all(map(plans.is_ready, pods))


async def until_status(api: Api, path: str, **wanted: int) -> Json:
    """Wait until a status says these numbers; a number that is not there is 0."""
    for _ in range(2000):
        found: Json = (await api.get(path)).body
        status = found.get("status") or {}
        if all(status.get(field, 0) == value for field, value in wanted.items()):
            return found
        await asyncio.sleep(0.01)
    raise AssertionError(f"still {status}, not {wanted}")


async def reasons(api: Api, kind: str) -> dict[str, str]:
    """The events about a kind: reason and text."""
    events = (await api.get(api.at("events")))["items"]
    return {
        one["reason"]: one["message"] for one in events if one["involvedObject"]["kind"] == kind
    }


def conditions(found: Json) -> dict[str, str]:
    return {one["type"]: one["status"] for one in found["status"]["conditions"]}


async def test_a_deployment_makes_a_replica_set_and_that_its_pods(
    api: Api, eventually: Any
) -> None:
    made = await api.made(api.at("deployments", APPS), workload(replicas=3))
    path = f"{api.at('deployments', APPS)}/w"
    found = await until_status(api, path, readyReplicas=3, updatedReplicas=3, replicas=3)
    assert conditions(found) == {"Available": "True", "Progressing": "True"}
    assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
    (owned,) = (await api.get(api.at("replicasets", APPS)))["items"]
    digest = owned["metadata"]["labels"]["pod-template-hash"]
    assert owned["metadata"]["name"] == f"w-{digest}"
    (reference,) = owned["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["uid"]) == ("Deployment", made["metadata"]["uid"])
    pods = await eventually(lambda: live(api), all_ready(3))
    for pod in pods:
        start, _, suffix = pod["metadata"]["name"].rpartition("-")
        assert (start, len(suffix)) == (f"w-{digest}", 5)
        assert pod["metadata"]["labels"] == {"app": "w", "pod-template-hash": digest} | {
            key: value for key, value in pod["metadata"]["labels"].items() if "kubernetes.io" in key
        }
        assert pod["metadata"]["ownerReferences"][0]["uid"] == owned["metadata"]["uid"]


async def test_a_deployment_follows_its_scale_and_makes_up_for_lost_pods(
    api: Api, eventually: Any
) -> None:
    await api.made(api.at("deployments", APPS), workload(replicas=2))
    path = f"{api.at('deployments', APPS)}/w"
    first = await eventually(lambda: live(api), all_ready(2))
    await api.merge(f"{path}/scale", {"spec": {"replicas": 4}})
    await eventually(lambda: live(api), all_ready(4))
    lost = first[0]["metadata"]["name"]
    await api.delete(f"{api.pods}/{lost}")
    pods = await eventually(
        lambda: live(api),
        lambda pods: all_ready(4)(pods) and lost not in [pod["metadata"]["name"] for pod in pods],
    )
    assert first[1]["metadata"]["name"] in [pod["metadata"]["name"] for pod in pods]
    await api.merge(f"{path}/scale", {"spec": {"replicas": 0}})
    await until_status(api, path, replicas=0, readyReplicas=0)
    assert await live(api) == []


async def test_a_changed_template_gets_new_pods_after_the_old_ones(
    api: Api, eventually: Any
) -> None:
    await api.made(api.at("deployments", APPS), workload(replicas=2))
    path = f"{api.at('deployments', APPS)}/w"
    await eventually(lambda: live(api), all_ready(2))
    change = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}}
    await api.strategic(path, change)
    pods = await eventually(
        lambda: live(api),
        lambda pods: all_ready(2)(pods) and pods[0]["spec"]["containers"][0]["image"] == "i:2",
    )
    assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {"i:2"}
    owned = (await api.get(api.at("replicasets", APPS)))["items"]
    assert sorted(one["spec"]["replicas"] for one in owned) == [0, 2]
    found = await until_status(api, path, replicas=2, updatedReplicas=2, readyReplicas=2)
    revision = "deployment.kubernetes.io/revision"
    assert found["metadata"]["annotations"][revision] == "2"
    assert {one["metadata"]["annotations"][revision] for one in owned} == {"1", "2"}


@pytest.mark.usefixtures("cluster")
async def test_what_a_deployment_made_goes_with_it(api: Api, eventually: Any) -> None:
    """On the real server its own controllers do this, which do not run in these tests."""
    await api.made(api.at("deployments", APPS), workload(replicas=3))
    await eventually(lambda: live(api), all_ready(3))
    await api.pod("other")
    await api.delete(f"{api.at('deployments', APPS)}/w", {"propagationPolicy": "Background"})
    left = await eventually(lambda: live(api), lambda pods: len(pods) == 1)
    assert left[0]["metadata"]["name"] == "other"
    assert (await api.get(api.at("replicasets", APPS)))["items"] == []


@pytest.mark.usefixtures("cluster")
async def test_a_workload_may_come_again_at_once(api: Api) -> None:
    """Its ReplicaSet has the name of one that is not gone yet."""
    path = f"{api.at('deployments', APPS)}/w"
    for _ in range(3):
        made = await api.made(api.at("deployments", APPS), workload(replicas=2))
        await until_status(api, path, readyReplicas=2)
        await api.delete(path)
    await api.made(api.at("deployments", APPS), workload(replicas=1))
    found = await until_status(api, path, readyReplicas=1, replicas=1)
    assert found["metadata"]["uid"] != made["metadata"]["uid"]
    assert "FailedCreate" not in await reasons(api, "Deployment")


async def test_a_name_that_is_taken_is_told(api: Api) -> None:
    await api.pod("w-0")
    await api.made(api.at("statefulsets", APPS), workload(replicas=1, serviceName="s"))
    for _ in range(2000):
        if said := (await reasons(api, "StatefulSet")).get("FailedCreate"):
            break
        await asyncio.sleep(0.01)
    assert said == 'Error creating: 409: pods "w-0" already exists'
    await api.delete(f"{api.pods}/w-0")
    await until_status(api, f"{api.at('statefulsets', APPS)}/w", readyReplicas=1)


async def test_pods_of_an_owner_that_is_gone_before_they_are_seen_go_too(
    api: Api, eventually: Any
) -> None:
    reference = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "gone",
        "uid": "00000000-0000-4000-8000-000000000000",
        "controller": True,
    }
    stranger = {**reference, "apiVersion": "x.dev/v1", "kind": "Thing"}
    for name, one in (("orphan", reference), ("strangers", stranger)):
        spec = {"containers": [{"name": "c", "image": "i"}]}
        await api.made(
            api.pods, {"metadata": {"name": name, "ownerReferences": [one]}, "spec": spec}
        )
    left = await eventually(lambda: live(api), all_ready(1))
    assert left[0]["metadata"]["name"] == "strangers"


async def test_an_absurd_number_is_cut_and_said(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "MOST_PODS", 3)
    await api.made(api.at("deployments", APPS), workload(replicas=1_000_000_000))
    found = await until_status(api, f"{api.at('deployments', APPS)}/w", readyReplicas=3)
    assert conditions(found)["ReplicaFailure"] == "True"
    text = "requests 1000000000 pods; this cluster makes at most 3 for one workload"
    assert (await reasons(api, "Deployment"))["FailedCreate"] == f"Deployment {text}"
    assert (await reasons(api, "ReplicaSet"))["FailedCreate"] == f"ReplicaSet {text}"
    await asyncio.sleep(0.2)
    assert len(await live(api)) == 3


async def test_why_no_pod_can_be_made_is_said_until_it_can(api: Api, unique: Any) -> None:
    name = unique("high")
    body = workload(replicas=1)
    body["spec"]["template"]["spec"]["priorityClassName"] = name
    await api.made(api.at("replicasets", APPS), body)
    path = f"{api.at('replicasets', APPS)}/w"
    for _ in range(2000):
        found = (await api.get(path))["status"].get("conditions") or [{}]
        if found[0].get("type") == "ReplicaFailure":
            break
        await asyncio.sleep(0.01)
    assert f"no PriorityClass with name {name} was found" in found[0]["message"]
    assert "{" not in found[0]["message"]
    priority = {"metadata": {"name": name}, "value": 5}
    await api.cluster_wide("/apis/scheduling.k8s.io/v1/priorityclasses", priority)
    await until_status(api, path, readyReplicas=1)
    for _ in range(2000):
        if not (await api.get(path))["status"].get("conditions"):
            break
        await asyncio.sleep(0.01)
    else:
        raise AssertionError("the failure is still told")


async def test_a_stateful_set_goes_up_and_down_in_order(api: Api, eventually: Any) -> None:
    body = workload(replicas=3, serviceName="s")
    path = f"{api.at('statefulsets', APPS)}/w"
    seen: list[str] = []
    async with api.watch(api.pods) as watch:
        await api.made(api.at("statefulsets", APPS), body)
        while len(seen) < 3:
            event = await watch.next()
            pod = event["object"]
            if event["type"] == "ADDED":
                # Whoever is made finds all before it ready.
                seen.append(pod["metadata"]["name"])
                before = [one for one in await live(api) if one["metadata"]["name"] in seen[:-1]]
                assert all(map(plans.is_ready, before))
        assert seen == ["w-0", "w-1", "w-2"]
        await until_status(api, path, readyReplicas=3, updatedReplicas=3, replicas=3)
        await api.merge(f"{path}/scale", {"spec": {"replicas": 1}})
        gone: list[str] = []
        while len(gone) < 2:
            event = await watch.next()
            if event["type"] == "DELETED":
                gone.append(event["object"]["metadata"]["name"])
    assert gone == ["w-2", "w-1"]
    (pod,) = await eventually(lambda: live(api), all_ready(1))
    assert pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] == "w-0"
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("w-0", "s")


async def test_a_stateful_set_gives_a_new_template_to_the_last_pod_first(
    api: Api, eventually: Any
) -> None:
    await api.made(api.at("statefulsets", APPS), workload(replicas=2, serviceName="s"))
    path = f"{api.at('statefulsets', APPS)}/w"
    await eventually(lambda: live(api), all_ready(2))
    change = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}}
    async with api.watch(api.pods) as watch:
        await api.strategic(path, change)
        gone: list[str] = []
        while len(gone) < 2:
            event = await watch.next()
            if event["type"] == "DELETED":
                gone.append(event["object"]["metadata"]["name"])
    assert gone == ["w-1", "w-0"]
    found = await until_status(api, path, readyReplicas=2, updatedReplicas=2)
    assert found["status"]["currentRevision"] == found["status"]["updateRevision"]


async def test_volumes_of_a_stateful_set_are_refused_in_words(api: Api) -> None:
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    claim["spec"]["resources"] = {"requests": {"storage": "1Gi"}}  # type: ignore[index]
    body = workload(replicas=1, serviceName="s", volumeClaimTemplates=[claim])
    await api.made(api.at("statefulsets", APPS), body)
    for _ in range(2000):
        if said := (await reasons(api, "StatefulSet")).get("FailedCreate"):
            break
        await asyncio.sleep(0.01)
    assert said
    assert said.startswith("volumeClaimTemplates are not made here")
    assert await live(api) == []


async def test_a_job_runs_until_enough_pods_have_succeeded(api: Api) -> None:
    body = workload("j", job=True, parallelism=2, completions=5, annotations={RUN_SECONDS: "0.1"})
    await api.made(api.at("jobs", BATCH), body)
    found = await until_status(api, f"{api.at('jobs', BATCH)}/j", succeeded=5)
    assert (found["status"].get("active", 0), conditions(found)["Complete"]) == (0, "True")
    pods = (await api.get(api.pods, labelSelector="batch.kubernetes.io/job-name=j"))["items"]
    assert [pod["status"]["phase"] for pod in pods] == ["Succeeded"] * 5


async def test_an_indexed_job_runs_every_number_once(api: Api) -> None:
    body = workload("j", job=True, parallelism=3, completions=4, completionMode="Indexed", annotations={RUN_SECONDS: "0.1"})  # fmt: skip
    await api.made(api.at("jobs", BATCH), body)
    found = await until_status(api, f"{api.at('jobs', BATCH)}/j", succeeded=4)
    assert found["status"]["completedIndexes"] == "0-3"
    key = "batch.kubernetes.io/job-completion-index"
    pods = (await api.get(api.pods))["items"]
    assert sorted(pod["metadata"]["annotations"][key] for pod in pods) == ["0", "1", "2", "3"]
    assert {pod["metadata"]["name"].rpartition("-")[0] for pod in pods} == {
        f"j-{number}" for number in range(4)
    }


async def test_a_job_without_an_end_stays_active(api: Api) -> None:
    await api.made(api.at("jobs", BATCH), workload("j", job=True, parallelism=2, completions=2))
    found = await until_status(api, f"{api.at('jobs', BATCH)}/j", active=2, ready=2)
    assert not found["status"].get("succeeded")


async def test_odd_workloads_harm_no_others(api: Api, cluster: Cluster, eventually: Any) -> None:
    """Put where no check sees them: the API server refuses such objects."""
    buckets = ("deployments.apps", "replicasets.apps", "statefulsets.apps", "jobs.batch")
    odd: tuple[Json, ...] = ({}, {"replicas": "x", "template": 3}, {"template": {"metadata": 7}})
    for number, spec in enumerate(odd):
        for bucket in buckets:
            meta = {"namespace": api.namespace, "uid": f"odd-{bucket}-{number}"}
            key = (api.namespace, f"odd-{number}")
            cluster.store.put(bucket, key, {"metadata": {**meta, "name": key[1]}, "spec": spec})
    owners: tuple[Any, ...] = (7, ["x"], [{"controller": True}], [{"controller": True, "kind": 3}])
    for number, references in enumerate(owners):
        key = (api.namespace, f"odd-{number}")
        meta = {"name": key[1], "namespace": key[0], "uid": key[1], "ownerReferences": references}
        pod_spec = {"nodeName": "elsewhere", "containers": [{"name": "c"}]}
        cluster.store.put("pods", key, {"metadata": meta, "spec": pod_spec, "status": {}})
    await api.made(api.at("deployments", APPS), workload(replicas=1))
    await until_status(api, f"{api.at('deployments', APPS)}/w", readyReplicas=1)

    async def unreadable() -> set[str]:
        events = (await api.get(api.at("events")))["items"]
        return {one["involvedObject"]["kind"] for one in events if one["reason"] == "Unreadable"}

    every = {"Deployment", "ReplicaSet", "StatefulSet", "Job"}
    await eventually(unreadable, lambda kinds: kinds == every)


@pytest.mark.usefixtures("cluster")
async def test_orphans_outlive_their_owner(api: Api, eventually: Any) -> None:
    await api.made(api.at("replicasets", APPS), workload(replicas=2))
    await eventually(lambda: live(api), all_ready(2))
    await api.delete(f"{api.at('replicasets', APPS)}/w", {"propagationPolicy": "Orphan"})
    # Once another workload was seen to, this one's pods have been looked at as well.
    await api.made(api.at("replicasets", APPS), workload("x", replicas=1))
    pods = await eventually(lambda: live(api), all_ready(3))
    assert sum(not pod["metadata"].get("ownerReferences") for pod in pods) == 2
