"""Claims and devices of ``resource.k8s.io/v1``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.embedded.conftest import Api, Reply
from tests.operator import devices
from tests.operator.devices import FINALIZER
from tests.operator.manifests import pod

Json = dict[str, Any]
_GROUP = "apis/resource.k8s.io/v1"


def _at(api: Api) -> str:
    return api.at("resourceclaims", _GROUP)


async def _claim(api: Api, name: str = "c") -> str:
    await api.made(_at(api), devices.claim(name))
    return f"{_at(api)}/{name}"


async def _allocated(api: Api, *uids: str) -> str:
    path = await _claim(api)
    await api.merge(path, {"metadata": {"finalizers": [FINALIZER]}})
    status = {"allocation": devices.allocation("n", "gpu-0"), "reservedFor": [_user(one) for one in uids]}  # fmt: skip
    assert (await api.strategic(f"{path}/status", {"status": status})).code == 200
    return path


def _user(uid: str) -> Json:
    return {"resource": "pods", "name": f"pod-{uid}", "uid": uid}


def _says(reply: Reply, field: str, text: str) -> None:
    assert reply.code == 422, reply
    assert f"{field}: {text}" in reply["message"]


async def test_a_claim_gets_its_defaults_and_an_empty_status(api: Api) -> None:
    wanted = devices.request(tolerations=[{"key": "a", "effect": "NoSchedule"}])
    body = devices.claim("c", wanted) | {"status": {"allocation": devices.allocation("n", "d")}}
    made = await api.made(_at(api), body)
    [request] = made["spec"]["devices"]["requests"]
    assert request["exactly"] == {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": 1,
        "tolerations": [{"key": "a", "operator": "Equal", "effect": "NoSchedule"}],
    }
    assert made["status"] == {}
    assert "generation" not in made["metadata"]


async def test_a_request_is_of_one_kind_and_what_is_requested_stays(api: Api) -> None:
    both = {"name": "r", "exactly": {"deviceClassName": "c"}, "firstAvailable": [{"name": "x", "deviceClassName": "c"}]}  # fmt: skip
    for one in ({"name": "r"}, both):
        reply = await api.post(_at(api), devices.claim("x", one))
        assert reply.code == 422
        assert "spec.devices.requests[0]" in reply["message"]
    path = await _claim(api)
    reply = await api.merge(path, {"spec": {"devices": {"requests": [devices.request("other")]}}})
    _says(reply, "spec", "Invalid value: null: field is immutable")


async def test_users_of_a_claim_come_and_go_by_uid(api: Api) -> None:
    path = f"{await _allocated(api, 'a')}/status"
    added = await api.strategic(path, {"status": {"reservedFor": [_user("b")]}})
    assert {one["uid"] for one in added["status"]["reservedFor"]} == {"a", "b"}
    gone = await api.strategic(
        path, {"status": {"reservedFor": [{"$patch": "delete", "uid": "a"}]}}
    )
    assert [one["uid"] for one in gone["status"]["reservedFor"]] == ["b"]


async def test_devices_do_not_change_but_can_be_taken_away(api: Api) -> None:
    path = f"{await _allocated(api, 'a')}/status"
    other = {"status": {"allocation": devices.allocation("n", "gpu-1")}}
    reply = await api.strategic(path, other)
    _says(reply, "status.allocation", "Invalid value: null: field cannot be modified once set")
    freed = await api.strategic(path, {"status": {"allocation": None, "reservedFor": None}})
    assert freed["status"] == {}
    assert (await api.strategic(path, other)).code == 200


async def test_only_a_claim_with_devices_has_users_and_not_too_many(api: Api) -> None:
    path = await _claim(api)
    reply = await api.strategic(f"{path}/status", {"status": {"reservedFor": [_user("a")]}})
    _says(reply, "status.reservedFor", "Forbidden: may not be specified when `allocated` is not set")  # fmt: skip
    many = [_user(str(i)) for i in range(257)]
    status = {"allocation": devices.allocation("n", "gpu-0"), "reservedFor": many}
    reply = await api.strategic(f"{path}/status", {"status": status})
    _says(reply, "status.reservedFor", "Too many: 257: must have at most 256 items")
    status["reservedFor"] = many[:256]
    assert (await api.strategic(f"{path}/status", {"status": status})).code == 200


async def test_a_write_of_the_status_changes_no_finalizers(api: Api) -> None:
    path = await _claim(api)
    body = {"metadata": {"finalizers": [FINALIZER]}, "status": {"allocation": devices.allocation("n", "d")}}  # fmt: skip
    reply = await api.strategic(f"{path}/status", body)
    assert reply["status"]["allocation"]
    assert "finalizers" not in reply["metadata"]


async def test_a_claim_with_devices_stays_until_its_finalizer_is_removed(api: Api) -> None:
    path = await _allocated(api, "a")
    assert (await api.delete(path))["metadata"]["deletionTimestamp"]
    reply = await api.strategic(f"{path}/status", {"status": {"reservedFor": [_user("b")]}})
    why = "Forbidden: new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
    _says(reply, "status.reservedFor", why)
    freed = await api.strategic(f"{path}/status", {"status": {"allocation": None, "reservedFor": None}})  # fmt: skip
    assert freed.code == 200
    assert (await api.merge(path, {"metadata": {"finalizers": None}})).code == 200
    assert (await api.get(path)).code == 404


async def test_what_is_told_of_devices_goes_with_them(api: Api) -> None:
    path = f"{await _allocated(api, 'a')}/status"
    one = {"driver": devices.DRIVER, "pool": "n", "device": "gpu-0"}
    told = await api.merge(path, {"status": {"devices": [one]}})
    assert [each["device"] for each in told["status"]["devices"]] == ["gpu-0"]
    freed = await api.merge(path, {"status": {"allocation": None, "reservedFor": None}})
    assert not freed["status"].get("devices")


async def test_a_template_keeps_what_it_is(api: Api) -> None:
    path = api.at("resourceclaimtemplates", _GROUP)
    made = await api.made(path, devices.template("t"))
    assert made["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1
    reply = await api.merge(f"{path}/t", {"spec": {"metadata": {"labels": {"a": "b"}}}})
    assert reply.code == 422
    assert reply["message"].endswith("field is immutable")
    assert (await api.delete(f"{path}/t"))["metadata"]["name"] == "t"


@pytest.mark.parametrize(
    ("spec", "field", "text"),
    [
        ({"nodeName": None}, "spec", "Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"),
        ({"devices": [{"name": "d", "capacity": {"cores": {"value": "1", "requestPolicy": {"default": "1"}}}}]}, "spec.devices[0].capacity[cores].requestPolicy", "Forbidden: allowMultipleAllocations must be true"),
    ],
)  # fmt: skip
async def test_a_slice_that_breaks_a_rule_is_refused(
    api: Api, unique: Callable[[str], str], spec: Json, field: str, text: str
) -> None:
    body = devices.device_slice(unique("n"), [devices.device("d")])
    body["spec"] |= spec
    _says(await api.post(devices.SLICES, body), field, text)


async def test_a_slice_changes_its_devices_and_not_its_driver(
    api: Api, unique: Callable[[str], str]
) -> None:
    node = unique("n")
    made = await api.cluster_wide(devices.SLICES, devices.device_slice(node, [devices.device("a")]))
    path = f"{devices.SLICES}/{made['metadata']['name']}"
    assert made["metadata"]["generation"] == 1
    taint = {"key": "k", "effect": "NoSchedule"}
    changed = await api.merge(path, {"spec": {"devices": [devices.device("a", taints=[taint])]}})
    [one] = changed["spec"]["devices"][0]["taints"]
    assert one.pop("timeAdded").endswith("Z")
    assert one == taint
    assert changed["metadata"]["generation"] == 2
    reply = await api.merge(path, {"spec": {"driver": "other.example.com"}})
    _says(reply, "spec.driver", 'Invalid value: "other.example.com": field is immutable')
    listed = await api.get(devices.SLICES, fieldSelector=f"spec.nodeName={node}")
    assert [item["metadata"]["name"] for item in listed["items"]] == [made["metadata"]["name"]]


async def test_classes_and_rules_are_served(api: Api, unique: Callable[[str], str]) -> None:
    made = await api.cluster_wide(devices.CLASSES, devices.device_class(unique("gpu")))
    assert made["metadata"]["generation"] == 1
    taint = {"key": "k", "effect": "NoSchedule"}
    name = unique("sick")
    rule = {"metadata": {"name": name}, "spec": {"deviceSelector": {"driver": "d"}, "taint": taint}}
    made = await api.cluster_wide(devices.RULES, rule)
    assert made["spec"]["taint"]["timeAdded"].endswith("Z")
    assert made["status"] == {}
    bad = {"metadata": {"name": "bad"}, "spec": {"taint": {"key": "k", "effect": "Never"}}}
    assert (await api.post(devices.RULES, bad)).code == 422


async def test_a_class_stands_for_no_resource_of_kubernetes_own(
    api: Api, unique: Callable[[str], str]
) -> None:
    for name in ("cpu", "kubernetes.io/gpu"):
        made = devices.device_class(unique("class"))
        made["spec"]["extendedResourceName"] = name
        reply = await api.post(devices.CLASSES, made)
        _says(reply, "spec.extendedResourceName", f'Invalid value: "{name}"')


async def test_a_pods_claim_for_extended_resources_names_containers_and_their_requests(
    api: Api,
) -> None:
    """What is said can be changed, and not removed."""
    amount = {"example.com/gpu": "1"}
    path = api.at("pods")
    body = pod("p", requests=amount, limits=amount)
    del body["metadata"]["namespace"]
    await api.made(path, body)
    container = (await api.get(f"{path}/p"))["spec"]["containers"][0]["name"]
    right = {"containerName": container, "resourceName": "example.com/gpu", "requestName": "r"}
    field = "status.extendedResourceClaimStatus"

    async def tell(*mappings: Json, name: str = "c") -> Reply:
        told = {"requestMappings": list(mappings), "resourceClaimName": name}
        return await api.strategic(f"{path}/p/status", {"status": {"extendedResourceClaimStatus": told}})  # fmt: skip

    _says(await tell(), f"{field}.requestMappings", "Required value")
    wrong = right | {"containerName": "x"}
    _says(await tell(wrong), f"{field}.requestMappings[0].containerName", "Invalid value")
    wrong = right | {"resourceName": "example.com/nic"}
    _says(await tell(right, wrong), f"{field}.requestMappings[1].resourceName", "Invalid value")
    _says(await tell(right, name=""), f"{field}.resourceClaimName", "Required value")
    assert (await tell(right)).code == 200
    assert (await tell(right, name="d")).code == 200
    gone = {"status": {"extendedResourceClaimStatus": None}}
    reply = await api.strategic(f"{path}/p/status", gone)
    assert reply["status"]["extendedResourceClaimStatus"]["resourceClaimName"] == "d"
