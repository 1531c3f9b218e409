"""Devices and claims of ``resource.k8s.io/v1`` by the few words that a test is about."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from tests.operator.manifests import pod
from tests.operator.world import PODS, Refused, World

Json = dict[str, Any]
API = "/apis/resource.k8s.io/v1"
_HERE = f"{API}/namespaces/default"
CLAIMS, TEMPLATES = f"{_HERE}/resourceclaims", f"{_HERE}/resourceclaimtemplates"
SLICES, CLASSES, RULES = (
    f"{API}/{kind}" for kind in ("resourceslices", "deviceclasses", "devicetaintrules")
)
DRIVER = "gpu.example.com"
FINALIZER = "resource.kubernetes.io/delete-protection"
# So many consumers may a claim have.
_PATHS = (CLAIMS, TEMPLATES, SLICES, CLASSES, RULES)


def device_class(name: str = "gpu", *expressions: str) -> Json:
    """A class; by default all devices of the driver are of it."""
    texts = expressions or (f"device.driver == '{DRIVER}'",)
    selectors = [{"cel": {"expression": text}} for text in texts]
    return {"metadata": {"name": name}, "spec": {"selectors": selectors}}


def device(name: str, *, attributes: Mapping[str, Json] | None = None, **more: Any) -> Json:
    """A device; attributes by name, each with its type (``{"string": "x"}``)."""
    return {"name": name, **({"attributes": dict(attributes)} if attributes else {}), **more}


def device_slice(node: str, devices: Sequence[Json], *, driver: str = DRIVER, **spec: Any) -> Json:
    """The only slice of a node's pool."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    made = {"driver": driver, "nodeName": node, "pool": pool, "devices": list(devices), **spec}
    return {"metadata": {"name": f"{node}-{driver}"}, "spec": made}


def request(name: str = "gpu", of_class: str = "gpu", **more: Any) -> Json:
    """A request for devices of a class; one device, if ``more`` does not say otherwise."""
    return {"name": name, "exactly": {"deviceClassName": of_class, **more}}


def claim_spec(*requests: Json, **more: Any) -> Json:
    """What a claim or a template requests: by default one device."""
    return {"devices": {"requests": list(requests) or [request()], **more}}


def claim(name: str, *requests: Json, **more: Any) -> Json:
    """A claim."""
    return {"metadata": {"name": name}, "spec": claim_spec(*requests, **more)}


def template(name: str, *requests: Json, **more: Any) -> Json:
    """A template from which each pod gets a claim of its own."""
    return {"metadata": {"name": name}, "spec": {"spec": claim_spec(*requests, **more)}}


def pod_with(name: str, *claims: str, of_template: str = "", **more: Any) -> Json:
    """A pod with claims by name, or with one from a template."""
    entries = [{"name": one, "resourceClaimName": one} for one in claims]
    if of_template:
        entries.append({"name": "own", "resourceClaimTemplateName": of_template})
    made = pod(name, resourceClaims=entries, **more)
    of_container = [{"name": one["name"]} for one in entries]
    made["spec"]["containers"][0]["resources"]["claims"] = of_container
    return made


def allocation(node: str, name: str, *, asked: str = "gpu", driver: str = DRIVER) -> Json:
    """The allocation of one device of a node, as a scheduler writes it."""
    here = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    result = {"request": asked, "driver": driver, "pool": node, "device": name}
    selector = {"nodeSelectorTerms": [{"matchFields": here}]}
    return {"devices": {"results": [result]}, "nodeSelector": selector}


async def allocate(world: World, name: str, given: Json, *pods: Json) -> None:
    """Write an allocation as another scheduler would, with pods that may use the claim."""
    guard = {"metadata": {"finalizers": [FINALIZER]}}
    await world.call("PATCH", f"{CLAIMS}/{name}", guard)
    status: Json = {"allocation": given}
    if pods:
        status["reservedFor"] = [consumer(one) for one in pods]
    await world.call("PATCH", f"{CLAIMS}/{name}/status", {"status": status})


def consumer(of: Json) -> Json:
    """A pod as ``reservedFor`` names it."""
    return {"resource": "pods", "name": of["metadata"]["name"], "uid": of["metadata"]["uid"]}


def list_devices(found: Json) -> list[str]:
    """List the devices of a claim as pool/device."""
    given = found.get("status", {}).get("allocation")
    return [f"{one['pool']}/{one['device']}" for one in given["devices"]["results"]] if given else []  # fmt: skip


def list_users(found: Json) -> list[str]:
    """List the names of those for whom a claim is reserved."""
    return sorted(one["name"] for one in found.get("status", {}).get("reservedFor", ()))


async def read_claim(world: World, name: str) -> Json:
    """A claim as it is now."""
    return await world.call("GET", f"{CLAIMS}/{name}")


async def set_condition(world: World, name: str, kind: str, message: str = "") -> None:
    """Say of the only device of a claim, as its driver would, that a condition is true."""
    given = (await read_claim(world, name))["status"]["allocation"]["devices"]["results"][0]
    told = {
        "type": kind, "status": "True", "reason": "Told", "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    one = {key: given[key] for key in ("driver", "pool", "device")} | {"conditions": [told]}
    await world.call("PATCH", f"{CLAIMS}/{name}/status", {"status": {"devices": [one]}})


@asynccontextmanager
async def offered(world: World, *slices: Json, classes: Sequence[Json] = ()) -> AsyncIterator[None]:
    """Slices, and classes (by default ``gpu``), while the block runs; then all claims and devices are removed."""
    for one in classes or [device_class()]:
        await world.call("POST", CLASSES, one)
    for one in slices:
        await world.call("POST", SLICES, one)
    try:
        yield
    finally:
        for one in await world.pods():
            with suppress(Refused):
                await world.delete(f"{PODS}/{one['metadata']['name']}")
        for path in _PATHS:
            for one in await world.listed(path):
                at = f"{path}/{one['metadata']['name']}"
                with suppress(Refused):
                    # Where no controller is, nobody else would let go of it.
                    await world.call("PATCH", at, {"metadata": {"finalizers": None}})
                with suppress(Refused):
                    await world.delete(at)
