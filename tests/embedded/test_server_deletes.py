import pytest

from tests.embedded.conftest import Api


async def test_a_finished_delete_answers_with_a_status(api: Api) -> None:
    made = await api.made(api.at("configmaps"), {"metadata": {"name": "a"}})
    reply = await api.delete(f"{api.at('configmaps')}/a")
    assert reply.code == 200
    assert (reply["kind"], reply["status"]) == ("Status", "Success")
    assert reply["details"] == {
        "name": "a",
        "kind": "configmaps",
        "uid": made["metadata"]["uid"],
    }
    assert (await api.get(f"{api.at('configmaps')}/a")).code == 404


async def test_a_pod_without_a_node_goes_at_once(api: Api) -> None:
    await api.pod()
    reply = await api.delete(f"{api.pods}/p")
    assert (reply.code, reply["kind"]) == (200, "Pod")
    assert (await api.get(f"{api.pods}/p")).code == 404


async def test_a_bound_pod_waits_for_its_kubelet(api: Api) -> None:
    made = await api.pod()
    await api.bound("p", "n1")
    reply = await api.delete(f"{api.pods}/p")
    assert (reply.code, reply["kind"]) == (200, "Pod")
    read = await api.get(f"{api.pods}/p")
    assert read["metadata"]["deletionGracePeriodSeconds"] == 30
    assert read["metadata"]["deletionTimestamp"] > made["metadata"]["creationTimestamp"]
    assert read["metadata"]["generation"] == 2
    # A second, longer wish changes nothing; a shorter one counts.
    await api.delete(f"{api.pods}/p", {"gracePeriodSeconds": 60})
    again = await api.get(f"{api.pods}/p")
    assert again.body == read.body
    await api.delete(f"{api.pods}/p", gracePeriodSeconds=5)
    read = await api.get(f"{api.pods}/p")
    assert read["metadata"]["deletionGracePeriodSeconds"] == 5
    await api.delete(f"{api.pods}/p", {"gracePeriodSeconds": 0})
    assert (await api.get(f"{api.pods}/p")).code == 404


async def test_a_finished_pod_goes_at_once(api: Api) -> None:
    await api.pod()
    await api.bound("p", "n1")
    await api.merge(f"{api.pods}/p/status", {"status": {"phase": "Failed"}})
    await api.delete(f"{api.pods}/p")
    assert (await api.get(f"{api.pods}/p")).code == 404


async def test_the_grace_period_of_the_pod_counts(api: Api) -> None:
    await api.pod(terminationGracePeriodSeconds=7)
    await api.bound("p", "n1")
    await api.delete(f"{api.pods}/p")
    meta = (await api.get(f"{api.pods}/p"))["metadata"]
    assert meta["deletionGracePeriodSeconds"] == 7
    await api.delete(f"{api.pods}/p", {"gracePeriodSeconds": 0})


async def test_finalizers_hold_an_object_until_they_are_gone(api: Api) -> None:
    path = f"{api.at('configmaps')}/a"
    meta = {"name": "a", "finalizers": ["test.dev/one", "test.dev/two"]}
    made = await api.made(api.at("configmaps"), {"metadata": meta})
    async with api.watch(
        api.at("configmaps"),
        resourceVersion=made["metadata"]["resourceVersion"],
        fieldSelector="metadata.name=a",
    ) as watch:
        reply = await api.delete(path)
        assert (reply.code, reply["kind"]) == (200, "ConfigMap")
        assert reply["metadata"]["deletionTimestamp"]
        assert reply["metadata"]["deletionGracePeriodSeconds"] == 0
        more = {"metadata": {"finalizers": ["test.dev/one", "test.dev/three"]}}
        refused = await api.merge(path, more)
        assert refused.code == 422
        assert (
            "no new finalizers can be added if the object is being deleted" in (refused["message"])
        )
        await api.merge(path, {"metadata": {"finalizers": ["test.dev/two"]}})
        assert (await api.get(path)).code == 200
        last = await api.merge(path, {"metadata": {"finalizers": []}})
        assert last.code == 200
        assert (await api.get(path)).code == 404
        events = [await watch.next() for _ in range(3)]
        assert [event["type"] for event in events] == ["MODIFIED", "MODIFIED", "DELETED"]


async def test_a_pod_with_a_finalizer_and_a_node_needs_both_to_let_go(api: Api) -> None:
    body = {
        "metadata": {"name": "p", "finalizers": ["test.dev/one"]},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]},
    }
    await api.made(api.pods, body)
    await api.bound("p", "n1")
    await api.delete(f"{api.pods}/p")
    await api.merge(f"{api.pods}/p", {"metadata": {"finalizers": None}})
    assert (await api.get(f"{api.pods}/p")).code == 200
    await api.delete(f"{api.pods}/p", {"gracePeriodSeconds": 0})
    assert (await api.get(f"{api.pods}/p")).code == 404


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
async def test_a_delete_of_something_else_conflicts(api: Api, field: str) -> None:
    await api.made(api.at("configmaps"), {"metadata": {"name": "a"}})
    body = {"preconditions": {field: "00000000-0000-4000-8000-000000000000"}}
    if field == "resourceVersion":
        body = {"preconditions": {field: "1"}}
    reply = await api.delete(f"{api.at('configmaps')}/a", body)
    assert (reply.code, reply["reason"]) == (409, "Conflict")
    assert "in the precondition" in reply["message"]
    assert (await api.get(f"{api.at('configmaps')}/a")).code == 200


async def test_a_collection_is_deleted_by_selector(api: Api) -> None:
    for name, label in (("a", "x"), ("b", "x"), ("c", "y")):
        await api.made(api.at("configmaps"), {"metadata": {"name": name, "labels": {"l": label}}})
    reply = await api.delete(api.at("configmaps"), labelSelector="l=x")
    assert reply.code == 200
    left = await api.get(api.at("configmaps"), labelSelector="l")
    assert [item["metadata"]["name"] for item in left["items"]] == ["c"]


@pytest.mark.usefixtures("cluster")
async def test_a_namespace_takes_its_content_along(api: Api) -> None:
    await api.pod()
    await api.bound("p", "n1")
    await api.made(api.at("configmaps"), {"metadata": {"name": "a"}})
    reply = await api.delete(f"/api/v1/namespaces/{api.namespace}")
    assert reply["status"]["phase"] == "Terminating"
    assert (await api.get(f"{api.at('configmaps')}/a")).code == 404
    refused = await api.post(api.at("configmaps"), {"metadata": {"name": "b"}})
    assert refused.code == 403
    assert refused["message"] == (
        f'configmaps "b" is forbidden: unable to create new content in namespace {api.namespace}'
        " because it is being terminated"
    )
    # The bound pod holds the namespace until its kubelet is done.
    assert (await api.get(f"/api/v1/namespaces/{api.namespace}")).code == 200
    await api.delete(f"{api.pods}/p", {"gracePeriodSeconds": 0})
    assert (await api.get(f"/api/v1/namespaces/{api.namespace}")).code == 404


async def test_an_eviction_deletes_unless_a_budget_forbids(api: Api) -> None:
    budgets = api.at("poddisruptionbudgets", "apis/policy/v1")
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
    budget = await api.made(budgets, {"metadata": {"name": "b"}, "spec": spec})
    await api.pod(labels={"app": "x"})
    await api.bound("p", "n1")
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await api.merge(f"{api.pods}/p/status", {"status": ready})
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "p", "namespace": api.namespace},
    }
    reply = await api.post(f"{api.pods}/p/eviction", eviction)
    assert (reply.code, reply["reason"]) == (429, "TooManyRequests")
    status = {
        "observedGeneration": budget["metadata"]["generation"],
        "disruptionsAllowed": 0,
        "currentHealthy": 1,
        "desiredHealthy": 1,
        "expectedPods": 1,
    }
    await api.merge(f"{budgets}/b/status", {"status": status})
    reply = await api.post(f"{api.pods}/p/eviction", eviction)
    assert reply.code == 429
    assert reply["message"] == ("Cannot evict pod as it would violate the pod's disruption budget.")
    (cause,) = reply["details"]["causes"]
    assert cause["message"] == "The disruption budget b needs 1 healthy pods and has 1 currently"
    await api.merge(f"{budgets}/b/status", {"status": {**status, "disruptionsAllowed": 1}})
    reply = await api.post(f"{api.pods}/p/eviction", eviction)
    assert (reply.code, reply["status"]) == (201, "Success")
    going = await api.get(f"{api.pods}/p")
    assert "deletionTimestamp" in going["metadata"]
    assert going["status"]["conditions"][-1]["reason"] == "EvictionByEvictionAPI"
    assert (await api.get(f"{budgets}/b"))["status"]["disruptionsAllowed"] == 0
    await api.delete(f"{api.pods}/p", {"gracePeriodSeconds": 0})
