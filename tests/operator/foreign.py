"""Pods of other schedulers, bound as these bind them."""

from __future__ import annotations

from tests.operator import audit
from tests.operator.manifests import pod
from tests.operator.world import PODS, World


async def bind_for_another(world: World, name: str, node: str, devices: str = "") -> None:
    """A pod that another scheduler has bound, whose cards are being allocated.

    ``devices`` is what its annotations say of them; empty takes a share of the node's first card.
    """
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 100}
    await world.create(pod(name, limits=limits, schedulerName="hami-scheduler"))
    if not devices:
        card = next(iter(audit.cards(await world.node(node))))
        devices = f"{card},NVIDIA,100,0:;"
    annotations = {
        "hami.io/vgpu-node": node,
        "hami.io/vgpu-time": "1",
        audit.TO_ALLOCATE: devices,
        audit.ALLOCATED: devices,
        "hami.io/bind-phase": "allocating",
        "hami.io/bind-time": "1",
    }
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "annotations": annotations},
        "target": {"kind": "Node", "name": node},
    }
    await world.call("POST", f"{PODS}/{name}/binding", binding)
