"""A mock of what completes a binding: an external provisioner, and the controller that binds claims to volumes.

With kube-controller-manager's own controller beside it (tests/cluster/test_volumes.py) only the provisioner is played.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from tests.operator.world import Refused, World

Json = dict[str, Any]
CLAIMS, VOLUMES = "/api/v1/namespaces/default/persistentvolumeclaims", "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
SELECTED, BOUND = "volume.kubernetes.io/selected-node", "pv.kubernetes.io/bind-completed"
DRIVER = "mock.csi.example.com"
GI = "1Gi"
# Whether the controller is played as well, which binds claims to volumes that are for them.
BINDS = True


def storage_class(name: str, provisioner: str = DRIVER) -> Json:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def claim(name: str, of_class: str, mode: str = "ReadWriteOnce") -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "storageClassName": of_class,
            "accessModes": [mode],
            "resources": {"requests": {"storage": GI}},
        },
    }


def volume(name: str, of_class: str, node: str, size: str = GI, **spec: Any) -> Json:
    """A volume that can be used on one node only."""
    host = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": of_class,
            "csi": {"driver": DRIVER, "volumeHandle": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [host]}]}},
            **spec,
        },
    }


class Provisioner:
    """Looks at all claims again and again.

    Attributes:
        refuses: nodes for which it can make no volume: it takes the annotation away, as provisioners do.
        holds: it makes nothing for now.
    """

    def __init__(self, world: World) -> None:
        self._world, self._binds = world, BINDS
        self.refuses: set[str] = set()
        self.holds = False

    async def run(self) -> None:
        while True:
            for one in await self._world.listed(CLAIMS):
                with suppress(Refused):
                    await self._look(one)
            await asyncio.sleep(0.05)

    async def _look(self, found: Json) -> None:
        meta, spec = found["metadata"], found["spec"]
        notes = meta.get("annotations") or {}
        if spec.get("volumeName") or self.holds:
            return
        node = notes.get(SELECTED)
        if node in self.refuses:
            patch: Json = {"metadata": {"annotations": {SELECTED: None}}}
            await self._world.call("PATCH", f"{CLAIMS}/{meta['name']}", patch)
            return
        given = [
            one["metadata"]["name"]
            for one in await self._world.listed(VOLUMES)
            if (one["spec"].get("claimRef") or {}).get("uid") == meta["uid"]
        ]
        if node and not given:
            reference = {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default",
                "name": meta["name"], "uid": meta["uid"],
            }  # fmt: skip
            more = {"claimRef": reference, "accessModes": spec["accessModes"]}
            made = volume(f"pvc-{meta['uid']}", spec["storageClassName"], node, **more)
            await self._world.call("POST", VOLUMES, made)
            given = [made["metadata"]["name"]]
        if self._binds and given:
            patch = {
                "metadata": {"annotations": {BOUND: "yes"}},
                "spec": {"volumeName": given[0]},
            }
            await self._world.call("PATCH", f"{CLAIMS}/{meta['name']}", patch)


@asynccontextmanager
async def provisioning(world: World) -> AsyncIterator[Provisioner]:
    """One while the block runs; then all storage is removed."""
    made = Provisioner(world)
    running = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        for path in (CLAIMS, VOLUMES, CLASSES):
            for one in await world.listed(path):
                at = f"{path}/{one['metadata']['name']}"
                with suppress(Refused):
                    # No controller is there that would let go of them.
                    await world.call("PATCH", at, {"metadata": {"finalizers": None}})
                    await world.delete(at)
