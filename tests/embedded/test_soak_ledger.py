"""A scheduler that does not heed the node lock, before real agents: the ledger of the soak sees who was not served."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from scheduler.embedded.agents import cards, nodes
from scheduler.embedded.agents import fleet as agents
from tests.embedded.conftest import Api
from tests.operator.manifests import vgpu
from tests.soak.ledger import Ledger

Json = dict[str, Any]
_LOCK = "hami.io/mutex.lock"


async def _bind(api: Api, node: str, name: str, index: int) -> None:
    """What a scheduler writes: the lock, whoever holds it, and the bind."""
    lock = {_LOCK: f"2026-01-01T00:00:00Z,{api.namespace},{name}"}
    await api.merge(f"/api/v1/nodes/{node}", {"metadata": {"annotations": lock}})
    text = f"{cards.make_card_id(node, index)},NVIDIA,1000,0:;"
    written = {
        "hami.io/vgpu-node": node,
        "hami.io/vgpu-devices-to-allocate": text,
        "hami.io/vgpu-devices-allocated": text,
        "hami.io/bind-phase": "allocating",
        "hami.io/bind-time": "1767225600",
    }
    assert (await api.bind(name, node, {"annotations": written})).code == 201


async def test_two_pods_bound_under_one_lock_are_found(
    api: Api, unique: Callable[[str], str], eventually: Callable[..., Awaitable[Any]]
) -> None:
    node = unique("gpu")
    await api.cluster_wide("/api/v1/nodes", nodes.make_gpu_node(node, cards=2))
    for name in ("first", "second"):
        await api.made(api.pods, vgpu(name, namespace=api.namespace))
        await _bind(api, node, name, 0)
    ledger = Ledger({})
    ledger.see_node((await api.get(f"/api/v1/nodes/{node}")).body, 0.0)

    async def read() -> list[Json]:
        listed: list[Json] = (await api.get(api.pods))["items"]
        return listed

    # The plugin gives the first pod that starts what the lock's pod was to get.
    async with agents.run(api.url, nodes={node}, token=api.token, ssl=api.context):
        for one in await eventually(read, _are_decided):
            ledger.see_pod(one, 1.0)
    assert list(ledger.wrongs) == [f"{api.namespace}/first runs on {node} and was not served"]


def _are_decided(pods: list[Json]) -> bool:
    return all(one["status"].get("phase") in {"Running", "Failed"} for one in pods)
