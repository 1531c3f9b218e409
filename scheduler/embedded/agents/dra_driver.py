"""The drivers of devices on all nodes, as a scheduler meets them: they publish slices, prepare claims and say how devices are.

A driver publishes what it is told to. Kubelets ask it for the claims of a pod: a pod whose claims are not allocated, or not
reserved for it, is not admitted.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from scheduler.embedded.agents.apiclient import CallError, Client
from scheduler.embedded.agents.claims import API, find_group, list_entries
from scheduler.embedded.agents.dra_devices import Pool
from scheduler.embedded.agents.hami_plugin import AllocateError
from scheduler.embedded.store.metadata import write_timestamp

Json = dict[str, Any]

# So many devices with counters or taints may a slice have.
_DEVICES_MAX = 64


class Prepared(NamedTuple):
    """A device that was prepared for a pod: exclusive, or a share of it."""

    pod: str
    claim: str
    node: str
    device: str
    share: str


class Driver:
    """The drivers of all nodes.

    Attributes:
        prepared: every device that was prepared, in order.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._published: dict[tuple[str, str], tuple[Pool, int]] = {}
        self.prepared: list[Prepared] = []

    # What there is.

    async def publish(self, node: str, pool: Pool) -> None:
        """Publish the devices of a node; what the driver has published for the node before is replaced."""
        key = node, pool.driver
        _, generation = self._published.get(key, (pool, 0))
        self._published[key] = pool, generation + 1
        await self._write(key)

    async def withdraw(self, node: str, driver: str, device: str) -> None:
        """Take a device out of the slices, as a driver does that does not find it any more."""
        pool, _ = self._published[node, driver]
        left = tuple(one for one in pool.devices if one["name"] != device)
        await self.publish(node, pool._replace(devices=left))

    async def change(self, node: str, driver: str, device: str, **fields: Any) -> None:
        """Change what is said of a device, such as its ``taints`` or its ``bindingConditions``."""
        pool, _ = self._published[node, driver]
        changed = tuple({**one, **fields} if one["name"] == device else one for one in pool.devices)
        await self.publish(node, pool._replace(devices=changed))

    async def _write(self, key: tuple[str, str]) -> None:
        """Write all slices of a pool: those of the former generation stay until the new ones are there."""
        (node, driver), (pool, generation) = key, self._published[key]
        path = f"{API}/resourceslices"
        listed = await self._client.get(path, {"fieldSelector": f"spec.nodeName={node}"})
        old = [one for one in listed["items"] if one["spec"]["driver"] == driver]
        parts: list[Json] = [{"sharedCounters": list(pool.counters)}] if pool.counters else []
        parts += [{"devices": list(some)} for some in _split(pool.devices)]
        for i, part in enumerate(parts):
            about = {"name": node, "generation": generation, "resourceSliceCount": len(parts)}
            body = {
                "metadata": {"name": f"{node}-{driver}-{generation}-{i:02}"},
                "spec": {"driver": driver, "nodeName": node, "pool": about, **part},
            }
            await self._client.post(path, body)
        for one in old:
            await self._client.delete(f"{path}/{one['metadata']['name']}")

    async def set_condition(self, namespace: str, claim: str, kind: str, message: str = "") -> None:
        """Say of the devices of a claim that a condition is true, such as that they are ready."""
        path = f"{API}/namespaces/{namespace}/resourceclaims/{claim}"
        found = await self._client.get(path)
        told = {
            "type": kind,
            "status": "True",
            "reason": "Told",
            "message": message,
            "lastTransitionTime": write_timestamp(),
        }
        given = found["status"]["allocation"]["devices"]["results"]
        keys = ("driver", "pool", "device", "shareID")
        devices = [
            {key: one[key] for key in keys if key in one} | {"conditions": [told]} for one in given
        ]
        await self._client.patch(f"{path}/status", {"status": {"devices": devices}})

    # What kubelets ask for.

    async def prepare(self, pod: Json) -> None:
        """Prepare the claims of a pod on its node.

        Raises:
            AllocateError: a claim is not there, is not allocated to the node or not reserved for the pod.
        """
        meta, node = pod["metadata"], pod["spec"]["nodeName"]
        for entry, name in list_entries(pod):
            if name is None:
                raise AllocateError(f"the claim of {entry['name']} is not made yet")
            try:
                claim = await self._client.get(
                    f"{API}/namespaces/{meta['namespace']}/resourceclaims/{name}"
                )
            except CallError as error:
                if error.code != 404:
                    raise
                raise AllocateError(f"claim {name} is not there") from None
            self._prepare_claim(pod, claim, node)

    def _prepare_claim(self, pod: Json, claim: Json, node: str) -> None:
        name, status = claim["metadata"]["name"], claim.get("status") or {}
        users = status.get("reservedFor") or ()
        group = (find_group(pod) or ("", ""))[1]
        if not any(
            one["uid"] == pod["metadata"]["uid"]
            or (one["resource"] == "podgroups" and one["name"] == group)
            for one in users
        ):
            raise AllocateError(f"claim {name} is not reserved for the pod")
        if not status.get("allocation"):
            raise AllocateError(f"claim {name} is not allocated")
        for one in status["allocation"]["devices"]["results"]:
            key = node, one["driver"]
            if key in self._published and one["pool"] != node:
                raise AllocateError(f"claim {name} has a device of pool {one['pool']}")
            device = f"{one['driver']}/{one['pool']}/{one['device']}"
            self.prepared.append(
                Prepared(pod["metadata"]["name"], name, node, device, one.get("shareID", ""))
            )


def _split(devices: Sequence[Json]) -> list[Sequence[Json]]:
    return [devices[i : i + _DEVICES_MAX] for i in range(0, len(devices), _DEVICES_MAX)]
