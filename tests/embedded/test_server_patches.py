from collections.abc import Callable
from typing import Any

import pytest

from tests.embedded.conftest import Api


async def configmap(api: Api, data: Any) -> str:
    await api.made(api.at("configmaps"), {"metadata": {"name": "a"}, "data": data})
    return f"{api.at('configmaps')}/a"


async def test_a_merge_patch_merges_replaces_and_removes(api: Api) -> None:
    path = await configmap(api, {"keep": "1", "drop": "2", "change": "3"})
    reply = await api.merge(path, {"data": {"drop": None, "change": "4", "add": "5"}})
    assert reply["data"] == {"keep": "1", "change": "4", "add": "5"}


async def test_a_patch_with_an_old_version_conflicts(api: Api) -> None:
    path = await configmap(api, {})
    first = (await api.get(path))["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": first}, "data": {"n": "1"}}
    assert (await api.merge(path, patch)).code == 200
    patch["data"] = {"n": "2"}
    reply = await api.merge(path, patch)
    assert (reply.code, reply["reason"]) == (409, "Conflict")
    assert "the object has been modified" in reply["message"]


async def test_the_lock_of_a_node_can_be_taken_by_one_only(
    api: Api, unique: Callable[[str], str]
) -> None:
    """HAMi's node lock: a merge patch of an annotation that carries the node's version."""
    name = unique("n")
    node = await api.cluster_wide("/api/v1/nodes", {"metadata": {"name": name}})
    version = node["metadata"]["resourceVersion"]

    def lock(value: Any) -> Any:
        meta = {"resourceVersion": version, "annotations": {"hami.io/mutex.lock": value}}
        return api.merge(f"/api/v1/nodes/{name}", {"metadata": meta})

    codes = [(await lock("a")).code, (await lock("b")).code]
    assert codes == [200, 409]


async def test_json_patches(api: Api) -> None:
    path = await configmap(api, {"a": "1", "b": "2"})
    reply = await api.operations(
        path,
        [
            {"op": "test", "path": "/data/a", "value": "1"},
            {"op": "replace", "path": "/data/a", "value": "9"},
            {"op": "remove", "path": "/data/b"},
            {"op": "add", "path": "/data/d", "value": "3"},
            {"op": "copy", "from": "/data/d", "path": "/data/e"},
            {"op": "move", "from": "/data/d", "path": "/data/f"},
        ],
    )
    assert reply.code == 200, reply
    assert reply["data"] == {"a": "9", "e": "3", "f": "3"}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/data/a", "value": "2"},
        {"op": "replace", "path": "/none/none", "value": "2"},
        {"op": "remove", "path": "/nothing/here"},
    ],
)
async def test_a_failed_json_patch_is_a_422(api: Api, operation: Any) -> None:
    path = await configmap(api, {"a": "1"})
    reply = await api.operations(path, [operation])
    assert (reply.code, reply["reason"]) == (422, "Invalid")
    assert reply["message"] == "the server rejected our request due to an error in our request"
    assert (await api.get(path))["data"] == {"a": "1"}


async def test_lists_with_a_merge_key_merge_in_a_strategic_patch(api: Api) -> None:
    containers = [{"name": "a", "image": "i:1", "env": [{"name": "X", "value": "1"}]}]
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [*containers, {"name": "b", "image": "i:1"}]},
    }
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    collection = api.at("deployments", "apis/apps/v1")
    await api.made(collection, {"metadata": {"name": "d"}, "spec": spec})
    path = f"{collection}/d"

    async def patched(*items: Any, **more: Any) -> Any:
        body = {"spec": {"template": {"spec": {"containers": list(items), **more}}}}
        reply = await api.strategic(path, body)
        assert reply.code == 200, reply
        return reply["spec"]["template"]["spec"]

    found = await patched({"name": "a", "env": [{"name": "Y", "value": "2"}]})
    assert [one["name"] for one in found["containers"]] == ["a", "b"]
    assert found["containers"][0]["image"] == "i:1"
    env = {one["name"]: one["value"] for one in found["containers"][0]["env"]}
    assert env == {"X": "1", "Y": "2"}
    found = await patched({"name": "b", "$patch": "delete"})
    assert [one["name"] for one in found["containers"]] == ["a"]
    found = await patched(
        {"name": "a", "env": None}, tolerations=[{"key": "k", "operator": "Exists"}]
    )
    assert "env" not in found["containers"][0]
    found = await patched(tolerations=[{"key": "l", "operator": "Exists"}])
    assert [one["key"] for one in found["tolerations"]] == ["l"]
    found = await patched(
        {"name": "z", "image": "i:1"},
        {"name": "a"},
        **{"$setElementOrder/containers": [{"name": "z"}, {"name": "a"}]},
    )
    assert [one["name"] for one in found["containers"]] == ["z", "a"]


async def test_finalizers_add_up_in_a_strategic_patch(api: Api) -> None:
    path = await configmap(api, {})
    await api.strategic(path, {"metadata": {"finalizers": ["t.dev/a"]}})
    reply = await api.strategic(path, {"metadata": {"finalizers": ["t.dev/b"]}})
    assert sorted(reply["metadata"]["finalizers"]) == ["t.dev/a", "t.dev/b"]
    body = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["t.dev/a"]}}
    reply = await api.strategic(path, body)
    assert reply["metadata"]["finalizers"] == ["t.dev/b"]
    await api.merge(path, {"metadata": {"finalizers": None}})


async def test_taints_are_replaced_as_a_whole(api: Api, unique: Callable[[str], str]) -> None:
    name = unique("n")
    one = {"key": "a", "effect": "NoSchedule"}
    two = {"key": "b", "effect": "NoSchedule"}
    body = {"metadata": {"name": name}, "spec": {"taints": [one]}}
    await api.cluster_wide("/api/v1/nodes", body)
    reply = await api.strategic(f"/api/v1/nodes/{name}", {"spec": {"taints": [two]}})
    assert reply["spec"]["taints"] == [two]


async def test_a_patch_of_what_is_not_there_is_a_404(api: Api) -> None:
    assert (await api.merge(f"{api.at('configmaps')}/no", {"data": {}})).code == 404


async def test_an_unknown_kind_of_patch_is_a_415(api: Api) -> None:
    path = await configmap(api, {})
    reply = await api.call("PATCH", path, {"data": {}}, "application/json")
    assert (reply.code, reply["reason"]) == (415, "UnsupportedMediaType")


async def test_apply_creates_merges_and_forgets(api: Api) -> None:
    path = f"{api.at('configmaps')}/a"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    reply = await api.apply(path, {**body, "data": {"x": "1", "y": "2"}})
    assert reply.code == 201, reply
    await api.merge(path, {"data": {"other": "3"}})
    reply = await api.apply(path, {**body, "data": {"x": "9"}})
    assert reply.code == 200, reply
    assert reply["data"] == {"x": "9", "other": "3"}
    (entry,) = [one for one in reply["metadata"]["managedFields"] if one["manager"] == "m"]
    assert entry["operation"] == "Apply"
    assert entry["fieldsV1"] == {"f:data": {"f:x": {}}}


async def test_two_appliers_conflict_unless_one_forces(api: Api) -> None:
    path = f"{api.at('configmaps')}/a"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    await api.apply(path, {**body, "data": {"x": "1"}}, "first")
    reply = await api.apply(path, {**body, "data": {"x": "2"}}, "second")
    assert (reply.code, reply["reason"]) == (409, "Conflict")
    assert reply["message"] == 'Apply failed with 1 conflict: conflict with "first": .data.x'
    assert reply["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "first"', "field": ".data.x"}
    ]
    assert (await api.apply(path, {**body, "data": {"x": "1"}}, "second")).code == 200
    reply = await api.apply(path, {**body, "data": {"x": "3"}}, "second", force="true")
    assert (reply.code, reply["data"]) == (200, {"x": "3"})
    # Nothing of it is the first one's any more, so forgetting it removes nothing.
    reply = await api.apply(path, {**body, "data": {}}, "first")
    assert reply["data"] == {"x": "3"}


async def test_apply_needs_a_manager(api: Api) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    reply = await api.call(
        "PATCH", f"{api.at('configmaps')}/a", body, "application/apply-patch+yaml"
    )
    assert reply.code == 422
    assert "fieldManager: Required value: is required for apply patch" in reply["message"]


async def test_apply_merges_lists_by_their_keys(api: Api) -> None:
    path = f"{api.pods}/p"
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}}}
    spec = {"containers": [{"name": "c", "image": "i:1"}]}
    assert (await api.apply(path, {**body, "spec": spec})).code == 201
    spec = {"containers": [{"name": "c", "image": "i:2"}]}
    reply = await api.apply(path, {**body, "spec": spec})
    assert reply.code == 200, reply
    (container,) = reply["spec"]["containers"]
    assert container["image"] == "i:2"
    assert container["terminationMessagePath"] == "/dev/termination-log"
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    status = {"apiVersion": "v1", "kind": "Pod", "status": {"conditions": [condition]}}
    reply = await api.apply(f"{path}/status", status, "scheduler")
    assert reply.code == 200, reply
    assert reply["status"]["conditions"][0]["reason"] == "Unschedulable"
    assert reply["spec"]["containers"][0]["image"] == "i:2"
