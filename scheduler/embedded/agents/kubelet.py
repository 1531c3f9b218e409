"""The kubelet, as far as a scheduler can see it: pods start, run, end and go away."""

import asyncio
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass
from typing import Any, NamedTuple

from scheduler.embedded.agents import cards
from scheduler.embedded.agents.apiclient import STRATEGIC, CallError, Client
from scheduler.embedded.agents.dra_driver import Driver
from scheduler.embedded.agents.hami_plugin import AllocateError, Plugin
from scheduler.embedded.agents.vendor_plugins import VendorPlugins
from scheduler.embedded.store.metadata import write_timestamp

Json = dict[str, Any]
Work = Callable[[Json], Coroutine[Any, Any, None]]

RUN_SECONDS = "evenkeel.dev/run-seconds"
# The amounts of a machine if its node object names none.
_AMOUNTS = {"cpu": "32", "memory": "128Gi", "pods": "110"}
_OVER = frozenset({"Succeeded", "Failed"})


@dataclass(slots=True, kw_only=True)
class Pace:
    """How long pods take to start and to stop."""

    start_seconds: float = 0.0
    stop_seconds: float = 0.0


class Plugins(NamedTuple):
    """What kubelets call for devices: NVIDIA's plugin, those of other vendors, and the drivers of claims."""

    hami: Plugin
    vendors: VendorPlugins
    dra: Driver


class Kubelet:
    """The kubelets of all nodes that this process plays."""

    def __init__(
        self, client: Client, plugins: Plugins, pace: Pace, names: Collection[str] | None = None
    ) -> None:
        self.pace = pace
        self._client = client
        self._plugin, self._vendors, self._dra = plugins
        self._names = names
        # Pods that were seen before their node: two watches have no common order.
        self._early: dict[str, list[Json]] = {}
        self._nodes: dict[str, Json] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._stopping: set[str] = set()
        # Device slots in use per node and pod: the kubelet refuses pods for which it has no slot.
        self._slots: dict[str, dict[str, int]] = {}
        self._addresses = 0

    def is_played(self, name: str) -> bool:
        """Tell whether this process plays a node."""
        return self._names is None or name in self._names

    def list_nodes(self) -> list[Json]:
        """Return the nodes as last seen."""
        return list(self._nodes.values())

    async def see_node(self, node: Json) -> None:
        """Add a node; if it is not Ready yet, write that it is, and its size."""
        name = node["metadata"]["name"]
        self._nodes[name] = node
        for pod in self._early.pop(name, ()):
            self.see_pod(pod)
        conditions = (node.get("status") or {}).get("conditions") or ()
        if any(one["type"] == "Ready" for one in conditions):
            return
        now = write_timestamp()
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "kubelet is posting ready status",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        path = f"/api/v1/nodes/{name}/status"
        told = {"conditions": [ready], **_find_missing_amounts(node.get("status") or {})}
        await self._client.patch(path, {"status": told}, STRATEGIC)

    def drop_node(self, name: str) -> None:
        """Forget a node."""
        self._nodes.pop(name, None)

    def see_pod(self, pod: Json) -> None:
        """React to a pod that is bound to one of the nodes."""
        meta, uid, node = pod["metadata"], pod["metadata"]["uid"], pod["spec"]["nodeName"]
        if node not in self._nodes:
            self._early.setdefault(node, []).append(pod)
            return
        if "deletionTimestamp" in meta:
            if uid not in self._stopping:
                self._stopping.add(uid)
                self._cancel(uid)
                self._spawn(self._stop, pod)
        elif (pod.get("status") or {}).get("phase") in _OVER:
            self._free(pod)
        elif uid not in self._tasks:
            self._spawn(self._run, pod)

    def drop_pod(self, pod: Json) -> None:
        """Forget a pod that was removed."""
        uid = pod["metadata"]["uid"]
        self._cancel(uid)
        self._stopping.discard(uid)
        self._free(pod)

    async def close(self) -> list[BaseException | None]:
        """End all tasks that are under way; return how each ended."""
        tasks = list(self._tasks.values())
        for uid in list(self._tasks):
            self._cancel(uid)
        return await asyncio.gather(*tasks, return_exceptions=True)

    def _spawn(self, work: Work, pod: Json) -> None:
        self._tasks[pod["metadata"]["uid"]] = asyncio.create_task(self._run_guarded(work, pod))

    async def _run_guarded(self, work: Work, pod: Json) -> None:
        try:
            await work(pod)
        except CallError as error:
            # The pod was deleted or replaced meanwhile: nothing is left to do.
            if error.code not in {404, 409}:
                raise

    def _cancel(self, uid: str) -> None:
        task = self._tasks.pop(uid, None)
        if task is not None:
            task.cancel()

    def _free(self, pod: Json) -> None:
        self._slots.get(pod["spec"].get("nodeName", ""), {}).pop(pod["metadata"]["uid"], None)

    async def _run(self, pod: Json) -> None:
        if (pod.get("status") or {}).get("phase") == "Running":
            # The pod started before this process: only its slots must be counted.
            self._slots.setdefault(pod["spec"]["nodeName"], {})[pod["metadata"]["uid"]] = (
                count_slots(pod["spec"])
            )
        else:
            await asyncio.sleep(self.pace.start_seconds)
            try:
                await self._admit(pod)
            except AllocateError as error:
                await self._refuse(pod, str(error))
                return
            await self._write_status(pod, self._make_running(pod))
        seconds = (pod["metadata"].get("annotations") or {}).get(RUN_SECONDS)
        if seconds is not None:
            await asyncio.sleep(float(seconds))
            await self._write_status(pod, _make_succeeded(pod))

    async def _admit(self, pod: Json) -> None:
        """Ask for the claims, then the device plugin container by container: init containers and sidecars come first."""
        await self._dra.prepare(pod)
        node = pod["spec"]["nodeName"]
        if cards.read_hardware(self._nodes[node]) is None:
            await self._vendors.admit(pod)
            return
        spec = pod["spec"]
        wanted = [
            (container["name"], amount)
            for container in [*(spec.get("initContainers") or ()), *spec["containers"]]
            if (amount := count_gpus(container))
        ]
        if not wanted:
            await self._vendors.admit(pod)
            return
        self._take_slots(pod)
        for name, amount in wanted:
            await self._plugin.allocate(node, name, amount)
        await self._vendors.admit(pod)

    def _take_slots(self, pod: Json) -> None:
        node, needed = pod["spec"]["nodeName"], count_slots(pod["spec"])
        status = self._nodes[node].get("status") or {}
        total = int((status.get("allocatable") or {}).get(cards.RESOURCE, 0))
        used = self._slots.setdefault(node, {})
        free = total - sum(used.values())
        if needed > free:
            raise AllocateError(
                f"requested number of devices unavailable for {cards.RESOURCE}."
                f" Requested: {needed}, Available: {free}"
            )
        used[pod["metadata"]["uid"]] = needed

    async def _refuse(self, pod: Json, why: str) -> None:
        self._free(pod)
        message = f"Pod was rejected: Allocate failed due to {why}, which is unexpected"
        status = {
            "phase": "Failed",
            "reason": "UnexpectedAdmissionError",
            "message": message,
            "startTime": write_timestamp(),
        }
        await self._write_status(pod, status)

    async def _stop(self, pod: Json) -> None:
        """End a pod that is being deleted: wait for the containers, then the final delete."""
        await asyncio.sleep(self.pace.stop_seconds)
        body = {
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": pod["metadata"]["uid"]},
        }
        await self._client.delete(_make_path(pod), body)

    async def _write_status(self, pod: Json, status: Json) -> None:
        # The uid protects a later pod of the same name.
        body = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        await self._client.patch(f"{_make_path(pod)}/status", body, STRATEGIC)

    def _make_running(self, pod: Json) -> Json:
        now = write_timestamp()
        self._addresses += 1
        address = ".".join(str(self._addresses >> shift & 255) for shift in (16, 8, 0))
        address = f"10.{address}"
        spec = pod["spec"]
        started = {"running": {"startedAt": now}}
        ended = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": now}}
        init = [
            _make_container_status(one, started if one.get("restartPolicy") == "Always" else ended)
            for one in spec.get("initContainers") or ()
        ]
        status: Json = {
            "phase": "Running",
            "startTime": now,
            "podIP": address,
            "podIPs": [{"ip": address}],
            "conditions": _make_conditions("True", now),
            "containerStatuses": [
                _make_container_status(one, started) for one in spec["containers"]
            ],
        }
        if init:
            status["initContainerStatuses"] = init
        return status


def _find_missing_amounts(status: Json) -> Json:
    """Return what every kubelet reports of its machine and the node object lacks."""
    capacity, allocatable = (status.get(part) or {} for part in ("capacity", "allocatable"))
    return {
        "capacity": {**_AMOUNTS, **capacity},
        # A node object that names allocatable amounts has deducted what is reserved on the machine.
        "allocatable": {**_AMOUNTS, **capacity, **allocatable},
    }


def count_gpus(container: Json) -> int:
    """Return how many devices a container asks the kubelet for."""
    resources = container.get("resources") or {}
    for part in ("limits", "requests"):
        amount = (resources.get(part) or {}).get(cards.RESOURCE)
        if amount is not None:
            return int(amount)
    return 0


def count_slots(spec: Json) -> int:
    """Return the device slots of a pod: app containers reuse those of finished init ones."""
    app = sum(count_gpus(container) for container in spec["containers"])
    sidecars, highest = 0, 0
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            sidecars += count_gpus(container)
        else:
            highest = max(highest, sidecars + count_gpus(container))
    return max(app + sidecars, highest)


def _make_path(pod: Json) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _make_container_status(container: Json, state: Json) -> Json:
    running = "running" in state
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": running,
        "started": running,
        "restartCount": 0,
        "state": state,
    }


def _make_conditions(status: str, now: str) -> list[Json]:
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
    return [{"type": kind, "status": status, "lastTransitionTime": now} for kind in kinds]


def _make_succeeded(pod: Json) -> Json:
    now = write_timestamp()
    ended = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": now}}
    over = [
        {"type": kind, "status": "False", "reason": "PodCompleted", "lastTransitionTime": now}
        for kind in ("Ready", "ContainersReady")
    ]
    return {
        "phase": "Succeeded",
        "conditions": over,
        "containerStatuses": [
            _make_container_status(one, ended) for one in pod["spec"]["containers"]
        ],
    }
