"""HAMi's NVIDIA device plugin, as a scheduler meets it: registration and Allocate.

Source: Project-HAMi/HAMi v2.10. The plugin finds the pod by the node lock (or, without a lock, by a guess
that can be wrong), consumes its ``to-allocate`` annotation slot by slot, and after the last slot writes
``bind-phase: success`` and releases the lock.
"""

import asyncio
import json
import re
import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from scheduler.embedded.agents import cards, mig
from scheduler.embedded.agents.apiclient import CallError, Client

Json = dict[str, Any]

LOCK = "hami.io/mutex.lock"
TO_ALLOCATE = "hami.io/vgpu-devices-to-allocate"
VGPU_NODE = "hami.io/vgpu-node"
BIND_PHASE = "hami.io/bind-phase"
BIND_TIME = "hami.io/bind-time"
VENDOR = "NVIDIA"

# How the annotations end that plugins empty.
_CONSUMED = "-devices-to-allocate"
_BARE_TIME = re.compile(r"^[^,]+$")


class AllocateError(Exception):
    """Allocate refused; the kubelet turns this into UnexpectedAdmissionError."""


class Share(NamedTuple):
    """A part of one card, as encoded in the annotation."""

    uuid: str
    mem_mib: int
    cores: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """What one call of Allocate gave to one container."""

    namespace: str
    pod: str
    node: str
    # The container of this call, and the slot of the annotation that was used for it.
    container: str
    slot: int
    shares: tuple[Share, ...]


@dataclass(slots=True, kw_only=True)
class Knobs:
    """What a test can make the plugin do."""

    delay_seconds: float = 0.0
    # The plugin never answers: the pod hangs, and the lock stays.
    dead: bool = False
    # Pod names ("namespace/name") whose next Allocate fails, with the message.
    failing: dict[str, str] = field(default_factory=dict)
    # Seed for the order of cards in a registration; None sorts them by index.
    seed: int | None = None
    # How often cards are announced again; the text may flip although nothing changed.
    register_seconds: float = 30.0


class Plugin:
    """The plugin on every node that this process plays."""

    def __init__(self, client: Client, knobs: Knobs) -> None:
        self.knobs = knobs
        self.allocations: list[Allocation] = []
        self.mig = mig.MigCards()
        self._client = client
        self._registrations = 0
        self._announced: dict[str, str] = {}
        self._one_at_a_time: dict[str, asyncio.Lock] = {}

    async def see_node(self, node: Json) -> None:
        """Announce the cards of a node that is new or whose hardware has changed."""
        hardware, name = cards.read_hardware(node), node["metadata"]["name"]
        if hardware is not None and self._announced.get(name) != hardware.write_annotation():
            self._announced[name] = hardware.write_annotation()
            await self.register(node)

    def drop_node(self, name: str) -> None:
        """Forget a node: if a node of the same name comes later, its cards are announced again."""
        self._announced.pop(name, None)

    async def register(self, node: Json) -> None:
        """Announce a node's cards; only annotations that change are written."""
        hardware, name = cards.read_hardware(node), node["metadata"]["name"]
        if hardware is None or self.knobs.dead:
            return
        self._registrations += 1
        seed = self.knobs.seed
        order = "" if seed is None else f"{seed}/{self._registrations}"
        text = cards.write_register(hardware, order)
        annotations = node["metadata"].get("annotations") or {}
        patch: Json = {}
        if annotations.get(cards.REGISTER) != text:
            patch[cards.REGISTER] = text
        if hardware.form != "json":
            # Plugins up to 2.7 also write the handshake every time; newer ones never write it.
            patch[cards.HANDSHAKE] = "Reported " + time.strftime("%Y.%m.%d %H:%M:%S")
        path = f"/api/v1/nodes/{name}"
        if patch:
            await self._client.patch(path, {"metadata": {"annotations": patch}})
        capacity, allocatable = hardware.count_allocatable()
        status = node.get("status") or {}
        wanted = {"capacity": str(capacity), "allocatable": str(allocatable)}
        if any(
            (status.get(part) or {}).get(cards.RESOURCE) != amount
            for part, amount in wanted.items()
        ):
            body = {part: {cards.RESOURCE: amount} for part, amount in wanted.items()}
            await self._client.patch(f"{path}/status", {"status": body})

    async def allocate(self, node: str, container: str, device_ids: int) -> Allocation:
        """Answer the kubelet's call for one container that asked for some devices."""
        # The plugin of a node serves one call at a time.
        async with self._one_at_a_time.setdefault(node, asyncio.Lock()):
            if self.knobs.dead:
                await asyncio.Event().wait()
            await asyncio.sleep(self.knobs.delay_seconds)
            pod = await self._find_current_pod(node)
            try:
                return await self._consume(node, pod, container, device_ids)
            except (AllocateError, CallError, ValueError):
                await self._finish(node, pod, "failed")
                raise

    async def _find_current_pod(self, node: str) -> Json:
        found = await self._client.get(f"/api/v1/nodes/{node}")
        lock = (found["metadata"].get("annotations") or {}).get(LOCK, "")
        if lock and not _BARE_TIME.match(lock):
            parts = lock.split(",")
            if len(parts) != 3:
                raise AllocateError(f"malformed lock annotation {lock}")
            try:
                return await self._client.get(f"/api/v1/namespaces/{parts[1]}/pods/{parts[2]}")
            except CallError as error:
                raise AllocateError(f"the pod of the lock {lock} is not there") from error
        listed = await self._client.get("/api/v1/pods", {"fieldSelector": f"spec.nodeName={node}"})
        for pod in listed["items"]:
            annotations = pod["metadata"].get("annotations") or {}
            if (
                (pod.get("status") or {}).get("phase") == "Pending"
                and BIND_TIME in annotations
                and annotations.get(BIND_PHASE) in {"allocating", "success"}
                and annotations.get(VGPU_NODE) == node
            ):
                return dict(pod)
        raise AllocateError(f"no binding pod found on node {node}")

    async def _consume(self, node: str, pod: Json, container: str, device_ids: int) -> Allocation:
        meta = pod["metadata"]
        namespace, name = meta["namespace"], meta["name"]
        if message := self.knobs.failing.pop(f"{namespace}/{name}", ""):
            raise AllocateError(message)
        text = (meta.get("annotations") or {}).get(TO_ALLOCATE, "")
        slots = text.split(";")
        slot = next((place for place, one in enumerate(slots) if VENDOR in one), None)
        if slot is None:
            raise AllocateError("device request not found")
        shares = decode_slot(slots[slot])
        if len(shares) != device_ids:
            raise AllocateError("device number not matched")
        instances = await self._make_instances(node, pod, slot, shares)
        slots[slot] = ""
        left = ";".join(slots)
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        notes = {TO_ALLOCATE: left} | instances
        await self._client.patch(path, {"metadata": {"annotations": notes}})
        allocation = Allocation(
            namespace=namespace, pod=name, node=node, container=container, slot=slot, shares=shares
        )
        self.allocations.append(allocation)
        # The plugins of other vendors may have to serve the pod as well: the last one finishes.
        others = [
            text
            for key, text in (meta.get("annotations") or {}).items()
            if key.endswith(_CONSUMED) and key != TO_ALLOCATE
        ]
        if VENDOR not in left and not any(":" in text for text in others):
            await self._finish(node, pod, "success")
        return allocation

    async def _make_instances(
        self, node: str, pod: Json, slot: int, shares: tuple[Share, ...]
    ) -> dict[str, str]:
        """Make the MIG instances of one container; return the annotation that says so, if there are any."""
        hardware = cards.read_hardware(await self._client.get(f"/api/v1/nodes/{node}"))
        cut = {card.id: card for card in hardware.cards if card.mode == "mig"} if hardware else {}
        if not cut:
            return {}
        listed = await self._client.get("/api/v1/pods", {"fieldSelector": f"spec.nodeName={node}"})
        living = {one["metadata"]["uid"] for one in listed["items"] if not _is_over(one)}
        self.mig.drop_instances(node, living)
        named = [share.uuid for share in shares if share.uuid.partition("[")[0] in cut]
        # Plugins up to 2.9 report no profiles, and cut by templates.
        old = [uuid for uuid in named if not cut[uuid.partition("[")[0]].migProfiles]
        mine = [uuid for uuid in named if uuid not in old]
        try:
            self.mig.take_instances(node, pod["metadata"]["uid"], old)
            text = self.mig.make_instances(node, pod, slot, mine)
        except mig.PlaceTakenError as error:
            raise AllocateError(str(error)) from error
        return {mig.ALLOCATIONS: text} if text else {}

    async def _finish(self, node: str, pod: Json, phase: str) -> None:
        """Write the bind phase and release the node's lock."""
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        await self._client.patch(path, {"metadata": {"annotations": {BIND_PHASE: phase}}})
        await release_lock(self._client, node, namespace, name)


def _is_over(pod: Json) -> bool:
    """Whether the plugin removes the instances of a pod: it has ended, or is being deleted."""
    ended = (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}
    return ended or "deletionTimestamp" in pod["metadata"]


async def release_lock(
    client: Client, node: str, namespace: str, name: str, key: str = LOCK
) -> None:
    """Remove the lock of a node if it names the pod, or nobody."""
    path = f"/api/v1/nodes/{node}"
    for _ in range(5):
        found = (await client.get(path))["metadata"]
        lock = (found.get("annotations") or {}).get(key, "")
        ours = lock.endswith(f",{namespace},{name}")
        if not lock or not (ours or _BARE_TIME.match(lock)):
            return
        body = {
            "resourceVersion": found["resourceVersion"],
            "annotations": {key: None},
        }
        try:
            await client.patch(path, {"metadata": body})
        except CallError as error:
            if error.code != 409:
                raise
        else:
            return


def decode_slot(slot: str) -> tuple[Share, ...]:
    """Read one container's slot of the annotation."""
    shares = []
    for record in slot.split(":"):
        if not record:
            continue
        fields = record.split(",")
        if len(fields) < 4:
            raise ValueError(f"a device has four fields, found {record!r}")
        shares.append(Share(fields[0], int(fields[2]), int(fields[3])))
    return tuple(shares)


def describe_allocations(allocations: list[Allocation]) -> str:
    """Return allocations as JSON lines, for people."""
    return "\n".join(
        json.dumps(
            {
                "pod": f"{one.namespace}/{one.pod}",
                "node": one.node,
                "container": one.container,
                "shares": [share._asdict() for share in one.shares],
            }
        )
        for one in allocations
    )
