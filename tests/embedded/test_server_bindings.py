"""The one write that the whole operator leans on, word for word as the real server answers it."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.embedded.conftest import Api


async def test_a_binding_sets_node_metadata_and_condition_in_one_write(api: Api) -> None:
    made = await api.made(
        api.pods,
        {
            "metadata": {"name": "p", "annotations": {"mine": "1"}, "labels": {"l": "1"}},
            "spec": {"containers": [{"name": "c", "image": "i:1"}]},
        },
    )
    start = made["metadata"]["resourceVersion"]
    async with api.watch(api.pods, resourceVersion=start) as watch:
        meta = {
            "uid": made["metadata"]["uid"],
            "annotations": {"hami.io/vgpu-node": "n1"},
            "labels": {"l": "2", "m": "3"},
        }
        reply = await api.bind("p", "n1", meta)
        assert reply.code == 201
        assert reply.body == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "code": 201,
        }
        bound = (await watch.next())["object"]
        assert await watch.silent()
    assert bound["spec"]["nodeName"] == "n1"
    assert bound["metadata"]["annotations"] == {"mine": "1", "hami.io/vgpu-node": "n1"}
    assert bound["metadata"]["labels"] == {"l": "2", "m": "3"}
    assert bound["metadata"]["generation"] == 1
    (condition,) = bound["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    assert condition["lastTransitionTime"]
    assert "reason" not in condition
    assert bound["status"]["phase"] == "Pending"


async def test_the_collection_of_bindings_binds_too(api: Api) -> None:
    await api.pod()
    body = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    assert (await api.post(api.at("bindings"), body)).code == 201
    assert (await api.get(f"{api.pods}/p"))["spec"]["nodeName"] == "n1"


async def test_a_bound_pod_cannot_be_bound_again(api: Api) -> None:
    await api.pod()
    await api.bind("p", "n1")
    reply = await api.bind("p", "n2")
    assert (reply.code, reply["reason"]) == (409, "Conflict")
    assert reply["message"] == (
        'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n1"'
    )
    assert reply["details"] == {"name": "p", "kind": "pods/binding"}


async def test_a_binding_for_another_uid_is_a_conflict(api: Api) -> None:
    made = await api.pod()
    other = "00000000-0000-4000-8000-000000000000"
    reply = await api.bind("p", "n1", {"uid": other})
    assert (reply.code, reply["reason"]) == (409, "Conflict")
    assert reply["message"] == (
        'Operation cannot be fulfilled on pods "p": StorageError: invalid object, Code: 4, Key:'
        f" /registry/pods/{api.namespace}/p, ResourceVersion: 0, AdditionalErrorMsg: Precondition"
        f" failed: UID in precondition: {other}, UID in object meta: {made['metadata']['uid']}"
    )


async def test_a_binding_for_an_old_version_is_a_conflict(api: Api) -> None:
    made = await api.pod()
    await api.merge(f"{api.pods}/p", {"metadata": {"labels": {"a": "b"}}})
    reply = await api.bind("p", "n1", {"resourceVersion": made["metadata"]["resourceVersion"]})
    assert reply.code == 409
    assert "ResourceVersion in precondition" in reply["message"]


async def test_a_pod_that_is_being_deleted_cannot_be_bound(api: Api) -> None:
    await api.made(
        api.pods,
        {
            "metadata": {"name": "p", "finalizers": ["test.dev/keep"]},
            "spec": {"containers": [{"name": "c", "image": "i:1"}]},
        },
    )
    await api.delete(f"{api.pods}/p")
    reply = await api.bind("p", "n1")
    assert reply.code == 409
    assert reply["message"] == (
        'Operation cannot be fulfilled on pods/binding "p": pod p is being deleted, cannot be'
        " assigned to a host"
    )
    await api.merge(f"{api.pods}/p", {"metadata": {"finalizers": None}})


async def test_a_gated_pod_cannot_be_bound(api: Api) -> None:
    await api.pod(schedulingGates=[{"name": "test.dev/wait"}])
    reply = await api.bind("p", "n1")
    assert reply.code == 409
    assert reply["message"].endswith("pod p has non-empty .spec.schedulingGates")


async def test_a_pod_that_is_not_there_is_a_404(api: Api) -> None:
    reply = await api.bind("p", "n1")
    assert reply.code == 404
    assert reply["message"] == 'pods "p" not found'


async def test_a_node_that_does_not_exist_is_accepted(api: Api) -> None:
    await api.pod()
    assert (await api.bind("p", "no-such-node")).code == 201


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        (
            {"metadata": {"name": "other"}, "target": {"name": "n"}},
            400,
            "name in URL does not match name in Binding object",
        ),
        ({"metadata": {"name": "p"}, "target": {}}, 500, "target.name: Required value"),
        (
            {"metadata": {"name": "p"}, "target": {"kind": "Pod", "name": "n"}},
            500,
            'target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"',
        ),
    ],
)
async def test_senseless_bindings_are_refused(api: Api, body: Any, code: int, text: str) -> None:
    await api.pod()
    reply = await api.post(f"{api.pods}/p/binding", body)
    assert (reply.code, reply["message"]) == (code, text)


async def test_topology_labels_of_the_node_are_copied_to_the_pod(
    api: Api, unique: Callable[[str], str]
) -> None:
    name = unique("n")
    zone = {"topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/region": "r1"}
    labels = {**zone, "other": "x"}
    await api.cluster_wide("/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})
    await api.pod()
    assert (await api.bind("p", name)).code == 201
    assert (await api.get(f"{api.pods}/p"))["metadata"]["labels"] == zone


async def test_binding_clears_a_nomination_and_keeps_other_conditions(api: Api) -> None:
    await api.pod()
    status = {
        "nominatedNodeName": "n2",
        "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"},
            {"type": "Other", "status": "True"},
        ],
    }
    assert (await api.strategic(f"{api.pods}/p/status", {"status": status})).code == 200
    await api.bind("p", "n1")
    bound = (await api.get(f"{api.pods}/p"))["status"]
    assert "nominatedNodeName" not in bound
    assert [(one["type"], one["status"]) for one in bound["conditions"]] == [
        ("PodScheduled", "True"),
        ("Other", "True"),
    ]


async def test_annotations_of_a_binding_are_not_validated_as_labels_of_a_pod_are(api: Api) -> None:
    """HAMi's label with a long node name fails in a patch; in a Binding nothing checks it."""
    await api.pod()
    assert (await api.bind("p", "n", {"labels": {"hami.io/vgpu-node": "x" * 64}})).code == 201
