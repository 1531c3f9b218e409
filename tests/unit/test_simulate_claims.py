"""``evenkeel simulate`` names the devices that the claims of each pod get."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from scheduler.api import names
from scheduler.simulate import schedule
from tests import make
from tests.operator import devices
from tests.operator.manifests import pod
from tests.unit.test_simulate import simulate

Json = dict[str, Any]


def make_object(kind: str, body: Json) -> Json:
    api = "v1" if kind in {"Pod", "Node"} else "resource.k8s.io/v1"
    return {"apiVersion": api, "kind": kind, **body}


def make_cluster(*published: Json) -> list[Json]:
    """A node with a driver's devices, and a class of them."""
    return [
        make_object("Node", msgspec.to_builtins(make.node(name="n0"))),
        make_object("DeviceClass", devices.device_class()),
        make_object("ResourceSlice", devices.device_slice("n0", published)),
    ]


def list_claims(*objects: Json) -> dict[str, list[tuple[str, str, Json]]]:
    """The claim, the device and what is consumed of it, by pod."""
    found = schedule(objects)
    assert found["summary"]["pending"] == 0
    return {
        pod["name"]: [(one["claim"], one["device"], one["consumed"]) for one in pod["claims"]]
        for pod in found["pods"]
    }


def test_a_claim_from_a_template_and_a_claim_that_two_pods_share() -> None:
    found = list_claims(
        *make_cluster(devices.device("gpu-0"), devices.device("gpu-1")),
        make_object("ResourceClaimTemplate", devices.template("own")),
        make_object("ResourceClaim", devices.claim("shared")),
        make_object("Pod", devices.pod_with("a", of_template="own")),
        make_object("Pod", devices.pod_with("b", "shared")),
        make_object("Pod", devices.pod_with("c", "shared")),
    )
    assert {claim for claim, _, _ in found["a"]} == {"a-own"}
    assert found["b"] == found["c"]
    assert {device for one in found.values() for _, device, _ in one} == {"gpu-0", "gpu-1"}


def test_what_a_pod_consumes_of_a_shared_device_is_in_its_line(tmp_path: Path) -> None:
    memory = {"memory": {"value": "80Gi"}}
    half = devices.request(capacity={"requests": {"memory": "40Gi"}})
    objects = [
        *make_cluster(devices.device("gpu-0", allowMultipleAllocations=True, capacity=memory)),
        make_object("ResourceClaim", devices.claim("half", half)),
        make_object("Pod", devices.pod_with("p", "half")),
    ]
    assert list_claims(*objects) == {"p": [("half", "gpu-0", {"memory": "40Gi"})]}
    file = tmp_path / "all.json"
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}))
    assert "device gpu-0 memory 40Gi\n" in simulate("-f", str(file)).stdout
    assert "1 × `gpu.example.com`" in simulate("-f", str(file), "-o", "markdown").stdout


def make_extended_class() -> Json:
    made = devices.device_class()
    made["spec"]["extendedResourceName"] = "example.com/gpu"
    return make_object("DeviceClass", made)


def make_pod_of(name: str, n: int = 1, **more: Any) -> Json:
    amount = {"example.com/gpu": str(n)}
    return make_object("Pod", pod(name, requests=amount, limits=amount, **more))


def test_extended_resources_of_a_class_and_of_a_plugin(tmp_path: Path) -> None:
    """Each pod whose devices a class serves gets a claim, which is named as in the cluster; the others get none."""
    two = [devices.device("gpu-0"), devices.device("gpu-1")]
    plugin = make.node(name="n1", allocatable={"example.com/gpu": 1})
    objects = [
        make_object("Node", msgspec.to_builtins(make.node(name="n0"))),
        make_object("Node", msgspec.to_builtins(plugin)),
        make_extended_class(),
        make_object("ResourceSlice", devices.device_slice("n0", two)),
        *(make_pod_of(f"p{i}") for i in range(4)),
    ]
    found = schedule(objects)
    assert found["summary"] == {"nodes": 2, "pods": 4, "scheduled": 3, "pending": 1}
    of_class = [one for one in found["pods"] if one["claims"]]
    assert sorted(use["device"] for one in of_class for use in one["claims"]) == ["gpu-0", "gpu-1"]
    assert {one["node"] for one in of_class} == {"n0"}
    for one in of_class:
        (use,) = one["claims"]
        assert use["claim"].startswith(f"{one['name']}-extended-resources-")
        assert use["request"] == "container-0-request-0"
    (left,) = (one for one in found["pods"] if one["node"] is None)
    text = "0/2 nodes are available: 1 Insufficient example.com/gpu, 1 cannot allocate all claims."
    assert left["message"].startswith(text)
    file = tmp_path / "all.json"
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}))
    assert "device gpu-0" in simulate("-f", str(file)).stdout


def test_a_claim_that_is_left_from_a_bind_is_deleted_and_its_pod_is_placed() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
    left = devices.claim("left-over")
    left["metadata"] |= {
        "namespace": "default",
        "uid": "uid-left",
        "annotations": {names.EXTENDED_CLAIM: "true"},
        "ownerReferences": [owner],
    }
    left["status"] = {"allocation": devices.allocation("n0", "gpu-0")}
    waiting = make_pod_of("p")
    waiting["metadata"]["uid"] = "uid-p"
    objects = [
        make_object("Node", msgspec.to_builtins(make.node(name="n0"))),
        make_extended_class(),
        make_object("ResourceSlice", devices.device_slice("n0", [devices.device("gpu-0")])),
        make_object("ResourceClaim", left),
        waiting,
    ]
    (found,) = schedule(objects)["pods"]
    print(found["message"])
    assert found["node"] == "n0"
    assert [use["device"] for use in found["claims"]] == ["gpu-0"]
    assert found["claims"][0]["claim"] != "left-over"
