"""The device plugins of other vendors than NVIDIA that work with HAMi, as a scheduler meets them: Allocate.

A plugin finds its pod by the node lock; one that has a lock of its own, or none, takes the first pod of its node that waits. It
consumes its ``to-allocate`` annotation slot by slot; a plugin without such an annotation reads the one that stays. When no
annotation of the pod has a device left, ``bind-phase: success`` is written and the lock released.

Source: Project-HAMi/HAMi v2.10, ``pkg/device``, and ``pkg/util`` for what the plugins have in common.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from scheduler.embedded.agents.apiclient import Client
from scheduler.embedded.agents.hami_plugin import (
    BIND_PHASE,
    BIND_TIME,
    LOCK,
    VGPU_NODE,
    AllocateError,
    release_lock,
)

Json = dict[str, Any]


class Protocol(NamedTuple):
    """How one plugin is called and answered.

    Attributes:
        resource: what the kubelet calls it for.
        consumed: the annotation that it reads and empties; empty if it reads ``named``.
        named: the annotation that names the devices for good.
        lock: the annotation of the node that says that it is busy; empty if there is none.
        counts: whether the kubelet's number is that of the devices.
    """

    resource: str
    consumed: str
    named: str
    lock: str = LOCK
    counts: bool = True


def _make(resource: str, word: str, **more: Any) -> Protocol:
    begin = f"hami.io/{word}-devices-"
    return Protocol(resource, f"{begin}to-allocate", f"{begin}allocated", **more)


_ASCEND = ("Ascend910A", "Ascend910B2", "Ascend910B3", "Ascend910B4-1", "Ascend910B4", "Ascend310P", "Ascend910C")  # fmt: skip
_ILUVATAR = ("MR-V100", "MR-V50", "BI-V150", "BI-V100")
PROTOCOLS = (
    _make("amd.com/gpu", "amd"),
    *(_make(f"huawei.com/{chip}", chip) for chip in _ASCEND),
    Protocol("aws.amazon.com/neuron", "", "hami.io/aws-neuron-devices-allocated", ""),
    _make("birentech.com/gpu", "Biren"),
    _make("cambricon.com/vmlu", "cambricon-mlu", lock="cambricon.com/dsmlu.lock"),
    _make("enflame.com/gcu", "enflame-gcu", lock=""),
    Protocol("enflame.com/drs-gcu", "", "hami.io/enflame-vgpu-devices-allocated", "", counts=False),
    _make("hygon.com/dcunum", "dcu"),
    *(_make(f"iluvatar.ai/{chip}-vgpu", chip) for chip in _ILUVATAR),
    Protocol("kunlunxin.com/xpu", "", "hami.io/kunlun-allocated", ""),
    _make("kunlunxin.com/vxpu", "xpu"),
    _make("metax-tech.com/gpu", "metax-gpu", lock=""),
    _make("metax-tech.com/sgpu", "metax-sgpu"),
    Protocol("mthreads.com/vgpu", "", "hami.io/mthreads-vgpu-devices-allocated", ""),
    _make("vastaitech.com/va", "Vastai"),
)
_RECORD = re.compile(r"[^:;]+:")


class VendorAllocation(NamedTuple):
    """What one call of Allocate gave to one container: the ids of devices."""

    pod: str
    node: str
    container: str
    resource: str
    devices: tuple[str, ...]


class VendorPlugins:
    """The plugins of all vendors on every node that this process plays.

    Attributes:
        allocations: every call that was answered, in order.
    """

    def __init__(self, client: Client) -> None:
        self.allocations: list[VendorAllocation] = []
        self._client = client
        self._one_at_a_time: dict[str, asyncio.Lock] = {}

    async def admit(self, pod: Json) -> None:
        """Answer the kubelet for all containers of a pod, in its order: those that run first come first.

        Raises:
            AllocateError: a plugin finds another pod, or another number of devices.
        """
        node, spec = pod["spec"]["nodeName"], pod["spec"]
        calls = [
            (container["name"], protocol, amount)
            for container in (*(spec.get("initContainers") or ()), *spec["containers"])
            for protocol, amount in list_calls(container)
            if protocol.named in (pod["metadata"].get("annotations") or {})
        ]
        if not calls:
            return
        served: Counter[Protocol] = Counter()
        async with self._one_at_a_time.setdefault(node, asyncio.Lock()):
            for container, protocol, amount in calls:
                devices = await self._consume(pod, protocol, served[protocol])
                if protocol.counts and len(devices) != amount:
                    raise AllocateError("device number not matched")
                served[protocol] += 1
                name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
                self.allocations.append(
                    VendorAllocation(name, node, container, protocol.resource, devices)
                )
            await self._finish(pod, served)

    async def _consume(self, pod: Json, protocol: Protocol, served: int) -> tuple[str, ...]:
        """Take the devices of the next container; ``served`` says how many containers have theirs."""
        found = await self._find_current_pod(pod["spec"]["nodeName"], protocol)
        if found["metadata"]["uid"] != pod["metadata"]["uid"]:
            name = found["metadata"]["name"]
            raise AllocateError(f"the plugin for {protocol.resource} found the pod {name}")
        notes = found["metadata"].get("annotations") or {}
        slots = notes.get(protocol.consumed or protocol.named, "").split(";")
        left = [i for i, slot in enumerate(slots) if _RECORD.search(slot)]
        # Slots of an annotation that nobody empties stay.
        left = left if protocol.consumed else left[served:]
        if not left:
            raise AllocateError("device request not found")
        devices = tuple(record.split(",")[0] for record in slots[left[0]].split(":") if record)
        if protocol.consumed:
            slots[left[0]] = ""
            await self._annotate(pod, {protocol.consumed: ";".join(slots)})
        return devices

    async def _find_current_pod(self, node: str, protocol: Protocol) -> Json:
        found = await self._client.get(f"/api/v1/nodes/{node}")
        lock = (found["metadata"].get("annotations") or {}).get(protocol.lock, "")
        if protocol.lock and not lock:
            raise AllocateError(f"node {node} has no lock {protocol.lock}")
        if lock.count(",") == 2:
            _, namespace, name = lock.split(",")
            return await self._client.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
        listed = await self._client.get("/api/v1/pods", {"fieldSelector": f"spec.nodeName={node}"})
        for pod in listed["items"]:
            notes = pod["metadata"].get("annotations") or {}
            is_waiting = (pod.get("status") or {}).get("phase") == "Pending"
            is_allocating = notes.get(BIND_PHASE) == "allocating" and BIND_TIME in notes
            if is_waiting and is_allocating and protocol.named in notes and notes.get(VGPU_NODE) == node:  # fmt: skip
                return dict(pod)
        raise AllocateError(f"no binding pod found on node {node}")

    async def _finish(self, pod: Json, protocols: Iterable[Protocol]) -> None:
        await self._annotate(pod, {BIND_PHASE: "success"})
        for lock in {one.lock for one in protocols if one.lock}:
            meta = pod["metadata"]
            await release_lock(
                self._client, pod["spec"]["nodeName"], meta["namespace"], meta["name"], lock
            )

    async def _annotate(self, pod: Json, notes: Json) -> None:
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        await self._client.patch(path, {"metadata": {"annotations": notes}})


def list_calls(container: Json) -> Iterator[tuple[Protocol, int]]:
    """List the plugins that the kubelet calls for a container, each with the number of devices."""
    limits = (container.get("resources") or {}).get("limits") or {}
    for protocol in PROTOCOLS:
        if protocol.resource in limits:
            yield protocol, int(limits[protocol.resource])
