import re
from typing import Any

import pytest

from tests.embedded.conftest import Api


async def test_a_created_object_gets_what_only_the_server_gives(api: Api) -> None:
    made = await api.made(api.at("configmaps"), {"metadata": {"name": "a"}, "data": {"k": "v"}})
    assert (made["kind"], made["apiVersion"]) == ("ConfigMap", "v1")
    meta = made["metadata"]
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", meta["uid"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", meta["creationTimestamp"])
    assert meta["namespace"] == api.namespace
    assert "generation" not in meta
    read = await api.get(f"{api.at('configmaps')}/a")
    assert read.body == made


async def test_versions_grow_across_all_resources(api: Api) -> None:
    versions = []
    for name in "abc":
        versions.append(await api.made(api.at("configmaps"), {"metadata": {"name": name}}))
        versions.append(await api.made(api.at("secrets"), {"metadata": {"name": name}}))
    numbers = [int(made["metadata"]["resourceVersion"]) for made in versions]
    assert numbers == sorted(set(numbers))


async def test_generated_names_complete_the_start(api: Api) -> None:
    body = {"metadata": {"generateName": "job-"}}
    first = await api.made(api.at("configmaps"), body)
    second = await api.made(api.at("configmaps"), body)
    assert re.fullmatch(r"job-[bcdfghjklmnpqrstvwxz2456789]{5}", first["metadata"]["name"])
    assert first["metadata"]["name"] != second["metadata"]["name"]


async def test_a_name_can_be_taken_only_once(api: Api) -> None:
    await api.made(api.at("configmaps"), {"metadata": {"name": "a"}})
    reply = await api.post(api.at("configmaps"), {"metadata": {"name": "a"}})
    assert (reply.code, reply["reason"]) == (409, "AlreadyExists")
    assert reply["message"] == 'configmaps "a" already exists'
    assert reply["details"] == {"name": "a", "kind": "configmaps"}


async def test_what_is_not_there_is_a_404_with_its_name(api: Api) -> None:
    reply = await api.get(f"{api.at('leases', 'apis/coordination.k8s.io/v1')}/nope")
    assert reply.code == 404
    assert reply["message"] == 'leases.coordination.k8s.io "nope" not found'
    assert reply["details"] == {
        "name": "nope",
        "group": "coordination.k8s.io",
        "kind": "leases",
    }


async def test_a_path_that_nothing_serves_is_a_plain_404(api: Api) -> None:
    reply = await api.get("/apis/nothing.dev/v1/things")
    assert reply.code == 404
    assert reply.body == "404 page not found\n"


async def test_objects_need_an_existing_namespace(api: Api) -> None:
    reply = await api.post("/api/v1/namespaces/nowhere/configmaps", {"metadata": {"name": "a"}})
    assert reply.code == 404
    assert reply["message"] == 'namespaces "nowhere" not found'


@pytest.mark.parametrize(
    ("meta", "code", "text"),
    [
        ({}, 422, "metadata.name: Required value: name or generateName is required"),
        ({"name": "A_b"}, 422, 'metadata.name: Invalid value: "A_b": a lowercase RFC 1123 subdom'),
        ({"name": "a", "resourceVersion": "1"}, 500, "resourceVersion should not be set on"),
        ({"name": "a", "namespace": "other"}, 400, "the namespace of the provided object does"),
        ({"name": "a", "labels": {"k": "x" * 64}}, 422, "must be no more than 63"),
        ({"name": "a", "labels": {"k": "-"}}, 422, "a valid label must be an empty string or"),
        ({"name": "a", "labels": {"a b": "x"}}, 422, "name part must consist of alphanumeric"),
    ],
)
async def test_bad_metadata_is_refused(api: Api, meta: Any, code: int, text: str) -> None:
    reply = await api.post(api.at("configmaps"), {"metadata": meta})
    assert reply.code == code, reply
    assert text in reply["message"]


async def test_the_version_in_the_data_must_be_that_of_the_path(api: Api) -> None:
    body = {"apiVersion": "apps/v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    reply = await api.post(api.at("configmaps"), body)
    assert reply.code == 400
    assert reply["message"].startswith(
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: no kind "ConfigMap" is'
        ' registered for version "apps/v1"'
    )


async def test_a_body_that_is_no_json_is_a_400(api: Api) -> None:
    reply = await api.call("POST", api.at("configmaps"), b"{nope")
    assert (reply.code, reply["reason"]) == (400, "BadRequest")


async def test_yaml_bodies_are_read(api: Api) -> None:
    text = b"metadata: {name: yaml}\ndata:\n  day: '2026-01-01'\n"
    reply = await api.call("POST", api.at("configmaps"), text, "application/yaml")
    assert reply.code == 201
    assert reply["data"] == {"day": "2026-01-01"}


async def test_an_update_with_an_old_version_conflicts(api: Api) -> None:
    path = f"{api.at('configmaps')}/a"
    made = await api.made(api.at("configmaps"), {"metadata": {"name": "a"}, "data": {"n": "1"}})
    assert (await api.put(path, {**made, "data": {"n": "2"}})).code == 200
    reply = await api.put(path, {**made, "data": {"n": "3"}})
    assert (reply.code, reply["reason"]) == (409, "Conflict")
    assert reply["message"] == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please'
        " apply your changes to the latest version and try again"
    )


async def test_an_update_without_a_version_wins_except_where_it_must_not(api: Api) -> None:
    path = f"{api.at('configmaps')}/a"
    await api.made(api.at("configmaps"), {"metadata": {"name": "a"}})
    assert (await api.put(path, {"metadata": {"name": "a"}, "data": {"n": "1"}})).code == 200
    leases = api.at("leases", "apis/coordination.k8s.io/v1")
    lease = {"metadata": {"name": "a"}, "spec": {"holderIdentity": "x"}}
    await api.made(leases, lease)
    reply = await api.put(f"{leases}/a", lease)
    assert reply.code == 422
    assert reply["message"] == (
        'leases.coordination.k8s.io "a" is invalid: metadata.resourceVersion: Invalid value: 0:'
        " must be specified for an update"
    )


async def test_leases_can_be_created_by_put(api: Api) -> None:
    leases = api.at("leases", "apis/coordination.k8s.io/v1")
    reply = await api.put(f"{leases}/new", {"metadata": {"name": "new"}, "spec": {}})
    assert reply.code == 201
    reply = await api.put(f"{api.at('configmaps')}/new", {"metadata": {"name": "new"}})
    assert reply.code == 404


async def test_an_update_of_another_uid_conflicts(api: Api) -> None:
    path = f"{api.at('configmaps')}/a"
    made = await api.made(api.at("configmaps"), {"metadata": {"name": "a"}})
    other = "00000000-0000-4000-8000-000000000000"
    reply = await api.put(path, {"metadata": {"name": "a", "uid": other}})
    assert reply.code == 409
    assert (
        f"UID in precondition: {other}, UID in object meta: {made['metadata']['uid']}"
        in (reply["message"])
    )


async def test_system_fields_survive_an_update(api: Api) -> None:
    path = f"{api.at('configmaps')}/a"
    made = await api.made(api.at("configmaps"), {"metadata": {"name": "a"}})
    changed = {"metadata": {"name": "a", "creationTimestamp": "2001-01-01T00:00:00Z"}}
    reply = await api.put(path, changed)
    for field in ("uid", "creationTimestamp"):
        assert reply["metadata"][field] == made["metadata"][field]


async def test_a_write_that_changes_nothing_uses_no_version(api: Api) -> None:
    path = f"{api.at('configmaps')}/a"
    made = await api.made(api.at("configmaps"), {"metadata": {"name": "a"}, "data": {"n": "1"}})
    reply = await api.merge(path, {"data": {"n": "1"}})
    assert reply["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_the_name_in_the_body_must_be_that_of_the_path(api: Api) -> None:
    await api.made(api.at("configmaps"), {"metadata": {"name": "a"}})
    reply = await api.put(f"{api.at('configmaps')}/a", {"metadata": {"name": "b"}})
    assert reply.code == 400
    assert reply["message"] == ("the name of the object (b) does not match the name on the URL (a)")


async def test_status_and_spec_are_written_apart(api: Api) -> None:
    path = f"{api.at('deployments', 'apis/apps/v1')}/d"
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    made = await api.made(
        api.at("deployments", "apis/apps/v1"),
        {"metadata": {"name": "d"}, "spec": spec, "status": {"replicas": 9}},
    )
    assert made["status"].get("replicas") is None
    assert made["metadata"]["generation"] == 1
    reply = await api.merge(path, {"spec": {"replicas": 2}, "status": {"replicas": 9}})
    assert (reply["spec"]["replicas"], reply["status"].get("replicas")) == (2, None)
    assert reply["metadata"]["generation"] == 2
    body = {"spec": {"replicas": 3}, "status": {"replicas": 2}}
    reply = await api.merge(f"{path}/status", body)
    assert (reply["spec"]["replicas"], reply["status"]["replicas"]) == (2, 2)
    assert reply["metadata"]["generation"] == 2


async def test_dry_runs_leave_no_trace(api: Api) -> None:
    reply = await api.post(api.at("configmaps"), {"metadata": {"name": "a"}}, dryRun="All")
    assert reply.code == 201
    assert (await api.get(f"{api.at('configmaps')}/a")).code == 404
    await api.pod()
    body = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
    assert (await api.post(f"{api.pods}/p/binding", body, dryRun="All")).code == 201
    assert "nodeName" not in (await api.get(f"{api.pods}/p"))["spec"]


async def test_methods_that_a_path_does_not_have_are_405(api: Api) -> None:
    reply = await api.put(api.at("configmaps"), {"metadata": {"name": "a"}})
    assert (reply.code, reply["reason"]) == (405, "MethodNotAllowed")
