"""Nodes that a user creates while the agents run, as copied from another cluster, are played as well."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from scheduler.embedded.agents import cards, nodes
from scheduler.embedded.agents import fleet as agents
from tests.embedded.conftest import Api

NODES = "/api/v1/nodes"
REGISTERS = {
    "json": json.dumps(
        [
            # With blanks and a field that this plugin never writes; what is left out is zero.
            {"id": "GPU-a", "count": 10, "devmem": 24576, "devcore": 100, "type": "NVIDIA-A10", "health": True,
             "devicepairscore": {}},
            {"id": "GPU-b", "index": 1, "count": 10, "devmem": 24576, "devcore": 100, "type": "NVIDIA-A10"},
        ]
    ),
    "text7": "GPU-a,10,24576,100,NVIDIA-A10,0,true:GPU-b,10,24576,100,NVIDIA-A10,0,false:",
    "text9": (
        "GPU-a,10,24576,100,NVIDIA-A10,0,true,0,hami-core:"
        "GPU-b,10,24576,100,NVIDIA-A10,0,false,1,hami-core:"
    ),
}  # fmt: skip


@pytest.fixture
async def name(api: Api, unique: Callable[[str], str]) -> AsyncIterator[str]:
    """Of a node that is not there yet, with agents that would play it."""
    chosen = unique("copied")
    async with agents.run(api.url, nodes={chosen}, token=api.token, ssl=api.context):
        yield chosen


@pytest.mark.parametrize("form", REGISTERS)
async def test_a_node_with_only_a_register_runs_pods_on_its_cards(
    api: Api, name: str, eventually: Any, form: str
) -> None:
    register = REGISTERS[form]
    meta = {"name": name, "annotations": {cards.REGISTER: register}}
    await api.cluster_wide(NODES, {"metadata": meta})
    path = f"{NODES}/{name}"
    found = await eventually(
        lambda: api.get(path),
        lambda reply: "nvidia.com/gpu" in reply["status"].get("allocatable", {}),
    )
    # The second card is not healthy.
    assert found["status"]["allocatable"]["nvidia.com/gpu"] == "10"
    assert found["status"]["capacity"]["nvidia.com/gpu"] == "20"
    assert found["metadata"]["annotations"][cards.REGISTER] == register
    devices = "GPU-a,NVIDIA,1000,10:;"
    limits = {"nvidia.com/gpu": "1"}
    await api.pod(containers=[{"name": "c", "image": "i:1", "resources": {"limits": limits}}])
    lock = {"annotations": {"hami.io/mutex.lock": f"2026-01-01T00:00:00Z,{api.namespace},p"}}
    await api.merge(path, {"metadata": lock})
    written = {
        "hami.io/vgpu-node": name,
        "hami.io/vgpu-devices-to-allocate": devices,
        "hami.io/bind-phase": "allocating",
    }
    assert (await api.bind("p", name, {"annotations": written})).code == 201
    pod = await eventually(
        lambda: api.get(f"{api.pods}/p"), lambda reply: reply["status"]["phase"] == "Running"
    )
    assert pod["metadata"]["annotations"]["hami.io/bind-phase"] == "success"
    found = await api.get(path)
    assert "hami.io/mutex.lock" not in found["metadata"]["annotations"]


async def test_a_node_that_tells_no_size_has_one_and_is_ready(
    api: Api, name: str, eventually: Any
) -> None:
    await api.cluster_wide(
        NODES, {"metadata": {"name": name}, "status": {"capacity": {"cpu": "3"}}}
    )
    found = await eventually(
        lambda: api.get(f"{NODES}/{name}"), lambda reply: "conditions" in reply["status"]
    )
    assert found["status"]["allocatable"] == {"cpu": "3", "memory": "128Gi", "pods": "110"}
    ready = [one for one in found["status"]["conditions"] if one["type"] == "Ready"]
    assert [one["status"] for one in ready] == ["True"]


async def test_a_node_of_the_same_name_is_announced_again(
    api: Api, name: str, eventually: Any
) -> None:
    path = f"{NODES}/{name}"
    body = nodes.remove_announcement(nodes.make_gpu_node(name, cards=1))

    def announced(reply: Any) -> bool:
        return reply.code == 200 and "nvidia.com/gpu" in reply["status"]["allocatable"]

    await api.cluster_wide(NODES, body)
    await eventually(lambda: api.get(path), announced)
    assert (await api.delete(path)).code == 200
    await eventually(lambda: api.get(path), lambda reply: reply.code == 404)
    await api.made(NODES, body)
    await eventually(lambda: api.get(path), announced)


@pytest.mark.parametrize("register", ["", "[]", "[1]", '[{"index": 1}]', "GPU-a,1:", "{", "x"])
def test_a_register_that_cannot_be_read_tells_no_cards(register: str) -> None:
    """The operator says what is wrong with it; the agents go on."""
    node = {"metadata": {"annotations": {cards.REGISTER: register}}}
    assert cards.read_hardware(node) is None
