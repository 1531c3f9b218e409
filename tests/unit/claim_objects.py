"""Small clusters with devices and claims, as ``evenkeel explain`` reads them."""

from __future__ import annotations

from typing import Any

import jsonschema
import msgspec

from docs.schemas import write
from tests import make
from tests.operator import devices
from tests.unit.test_explain import answer
from tests.unit.test_simulate_claims import make_object

Json = dict[str, Any]
MODEL = f"{devices.DRIVER}/model"
OLD = [{"key": "old", "value": "yes", "effect": "NoSchedule"}]


def of_model(model: str) -> Json:
    return {"model": {"string": model}}


def node_of(name: str, *published: Json, **spec: Any) -> list[Json]:
    """A node with a driver's devices."""
    found = devices.device_slice(name, published, **spec)
    return [
        make_object("Node", msgspec.to_builtins(make.node(name=name))),
        make_object("ResourceSlice", found),
    ]


def claim(name: str, *requests: Json, **more: Any) -> Json:
    found = make_object("ResourceClaim", devices.claim(name, *requests, **more))
    found["metadata"] |= {"namespace": "default", "uid": f"claim-{name}"}
    return found


def used(name: str, node: str, device: str, *pods: str) -> Json:
    """A claim that has a device, reserved for pods."""
    consumers = [{"resource": "pods", "name": one, "uid": f"pod-{one}"} for one in pods]
    status = {"allocation": devices.allocation(node, device), "reservedFor": consumers}
    return claim(name) | {"status": status}


def pod_of(name: str, *claims: str, node: str = "") -> Json:
    found = make_object("Pod", devices.pod_with(name, *claims))
    found["metadata"] |= {"namespace": "default", "uid": f"pod-{name}"}
    if node:
        found["spec"]["nodeName"] = node
    return found


CLASS = make_object("DeviceClass", devices.device_class())


def explained(*objects: Json) -> Json:
    """The answer about pod p, which follows the schema."""
    found = answer("pod", "p", objects=[CLASS, *objects])
    jsonschema.validate(found, write.explain())
    return found
