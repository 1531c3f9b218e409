"""What kubectl asks for: tables, discovery, and a little OpenAPI."""

from collections.abc import Callable

import pytest

from tests.embedded.conftest import Api

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
AGGREGATED = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)


async def test_pods_print_as_kubectl_users_know_them(api: Api) -> None:
    await api.pod()
    await api.bind("p", "n1")
    statuses = [
        {
            "name": "c",
            "ready": True,
            "restartCount": 2,
            "image": "i",
            "imageID": "",
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        }
    ]
    status = {"phase": "Running", "containerStatuses": statuses}
    await api.merge(f"{api.pods}/p/status", {"status": status})
    table = await api.get(api.pods, accept=TABLE)
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    names = [(one["name"], one["priority"]) for one in table["columnDefinitions"]]
    assert names == [
        ("Name", 0),
        ("Ready", 0),
        ("Status", 0),
        ("Restarts", 0),
        ("Age", 0),
        ("IP", 1),
        ("Node", 1),
        ("Nominated Node", 1),
        ("Readiness Gates", 1),
    ]
    (row,) = table["rows"]
    assert [cell for place, cell in enumerate(row["cells"]) if place != 4] == [
        "p",
        "1/1",
        "Running",
        "2",
        "<none>",
        "n1",
        "<none>",
        "<none>",
    ]
    assert row["object"]["kind"] == "PartialObjectMetadata"
    assert row["object"]["metadata"]["name"] == "p"


async def test_gated_and_terminating_pods_say_so(api: Api) -> None:
    await api.pod("a", schedulingGates=[{"name": "t.dev/x"}])
    await api.pod("b")
    await api.bind("b", "n1")
    await api.delete(f"{api.pods}/b")
    table = await api.get(api.pods, accept=TABLE)
    assert [row["cells"][2] for row in table["rows"]] == ["SchedulingGated", "Terminating"]
    await api.delete(f"{api.pods}/b", {"gracePeriodSeconds": 0})


async def test_one_object_can_be_a_table_too(api: Api) -> None:
    await api.pod()
    table = await api.get(f"{api.pods}/p", accept=TABLE, includeObject="Object")
    assert table["rows"][0]["object"]["spec"]["schedulerName"] == "default-scheduler"


async def test_nodes_print_as_kubectl_users_know_them(
    api: Api, unique: Callable[[str], str]
) -> None:
    name = unique("n")
    body = {
        "metadata": {"name": name, "labels": {"node-role.kubernetes.io/worker": ""}},
        "spec": {"unschedulable": True},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "nodeInfo": {"kubeletVersion": "v1.36.0"},
        },
    }
    await api.cluster_wide("/api/v1/nodes", body)
    table = await api.get(f"/api/v1/nodes/{name}", accept=TABLE)
    cells = table["rows"][0]["cells"]
    assert cells[:3] == [name, "Ready,SchedulingDisabled", "worker"]
    assert cells[4:6] == ["v1.36.0", "10.0.0.1"]


async def test_metadata_alone_can_be_asked_for(api: Api) -> None:
    await api.pod()
    accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    reply = await api.get(api.pods, accept=accept)
    assert reply["kind"] == "PartialObjectMetadataList"
    assert reply["items"][0]["metadata"]["name"] == "p"
    assert "spec" not in reply["items"][0]


async def test_a_client_that_takes_no_json_gets_a_406(api: Api) -> None:
    reply = await api.get(api.pods, accept="application/xml")
    assert reply.code == 406


@pytest.mark.usefixtures("cluster")
async def test_discovery_in_both_forms_names_the_same_resources(api: Api) -> None:
    groups = (await api.get("/apis"))["groups"]
    classic = {("", "v1")} | {
        (group["name"], version["version"]) for group in groups for version in group["versions"]
    }
    core = await api.get("/api", accept=AGGREGATED)
    others = await api.get("/apis", accept=AGGREGATED)
    assert "as=APIGroupDiscoveryList" in core.headers["Content-Type"]
    found = {
        (item["metadata"].get("name", ""), version["version"])
        for reply in (core, others)
        for item in reply["items"]
        for version in item["versions"]
    }
    assert found == classic
    (version,) = core["items"][0]["versions"]
    pods = next(one for one in version["resources"] if one["resource"] == "pods")
    assert {one["subresource"] for one in pods["subresources"]} == {
        "status",
        "binding",
        "eviction",
    }
    assert pods["shortNames"] == ["po"]


@pytest.mark.parametrize("path", ["/readyz", "/livez", "/healthz"])
async def test_probes_answer(api: Api, path: str) -> None:
    assert (await api.get(path)).body == "ok"


async def test_every_group_has_its_openapi(api: Api) -> None:
    index = (await api.get("/openapi/v3"))["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/coordination.k8s.io/v1"} <= index.keys()
    address = index["api/v1"]["serverRelativeURL"].partition("?")[0]
    document = await api.get(address)
    patch = document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert "fieldValidation" in [one.get("name") for one in patch["parameters"]]


async def test_questions_about_rights_are_answered(api: Api) -> None:
    body = {"spec": {"resourceAttributes": {"verb": "create", "resource": "pods"}}}
    reply = await api.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
    assert (reply.code, reply["status"]["allowed"]) == (201, True)


async def test_the_version_is_that_of_the_server_we_copy(api: Api) -> None:
    version = await api.get("/version")
    assert (version["major"], version["minor"]) == ("1", "37")
