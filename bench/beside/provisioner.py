"""A provisioner and the volume controller in one: a claim with a node chosen gets a volume there, and is bound."""

from __future__ import annotations

import asyncio
from typing import Any

from bench.beside import caller
from bench.beside.caller import Caller

SELECTED = "volume.kubernetes.io/selected-node"
_BOUND = "pv.kubernetes.io/bind-completed"
_AT_ONCE = 16
_CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


async def work(api: Caller) -> None:
    """Provision, for ever."""
    wanted: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    begun: set[str] = set()

    async def provision() -> None:
        while True:
            claim = await wanted.get()
            made = volume(claim)
            await api.call("POST", "/api/v1/persistentvolumes", made)
            patch = {
                "metadata": {"annotations": {_BOUND: "yes"}},
                "spec": {"volumeName": made["metadata"]["name"]},
            }
            await api.call("PATCH", f"{_CLAIMS}/{claim['metadata']['name']}", patch)

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(provision())
        async for change in api.changes(_CLAIMS, whole=True):
            meta = change.object["metadata"]
            if SELECTED in meta.get("annotations", {}) and meta["uid"] not in begun:
                begun.add(meta["uid"])
                wanted.put_nowait(change.object)


def volume(claim: dict[str, Any]) -> dict[str, Any]:
    """A volume for the claim, that is reached from its node alone."""
    meta, spec = claim["metadata"], claim["spec"]
    expression = {
        "key": "kubernetes.io/hostname", "operator": "In", "values": [meta["annotations"][SELECTED]]
    }  # fmt: skip
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"volume-of-{meta['name']}"},
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": spec["resources"]["requests"],
            "storageClassName": spec["storageClassName"],
            "persistentVolumeReclaimPolicy": "Delete",
            "csi": {"driver": "bench.evenkeel.dev", "volumeHandle": meta["uid"]},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                **{key: meta[key] for key in ("namespace", "name", "uid", "resourceVersion")},
            },
            "nodeAffinity": {
                "required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
            },
        },
    }


if __name__ == "__main__":
    caller.main(work)
