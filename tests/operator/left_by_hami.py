"""A cluster as HAMi 2.10 leaves it: what its plugins and its scheduler have written, in their own words.

Source: Project-HAMi/HAMi v2.10. Nothing of the scheduler is imported, so that a mistake in how it reads shows.
"""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import yaml

from scheduler.embedded.agents import cards, nodes
from tests.operator import audit
from tests.operator.manifests import container, pod
from tests.operator.world import NODES, PODS, World

Json = dict[str, Any]
HAMI = "hami-scheduler"
MAPS = "/api/v1/namespaces/kube-system/configmaps"
MAP = "hami-scheduler-device"
QUOTAS = "/api/v1/namespaces/default/resourcequotas"
MIG_ALLOCATIONS = "hami.io/vgpu-mig-allocations"
DCU_TO_ALLOCATE, DCU_ALLOCATED = (
    f"hami.io/dcu-devices-{end}" for end in ("to-allocate", "allocated")
)
SHARED = ("card-0", "card-1", "card-2")
# Which mode a pod accepts; a cluster with both kinds of cards has it on its pods.
NO_MIG = {"nvidia.com/vgpu-mode": "hami-core"}
CHART = Path(__file__).parents[1] / "data" / "hami" / "config" / "chart-2.10.yaml"
_PROFILES = (
    {"name": "1g.10gb", "memoryMB": 9728, "core": 15, "sliceCount": 1,
     "placements": [{"start": start, "size": 1} for start in range(7)]},
    {"name": "3g.40gb", "memoryMB": 40192, "core": 43, "sliceCount": 3,
     "placements": [{"start": start, "size": 4} for start in (0, 4)]},
)  # fmt: skip
# As HAMi's chart had them up to 2.9.
_GEOMETRIES = [{
    "models": ["A100-SXM4-40GB"],
    "allowedGeometries": [
        [{"name": "1g.5gb", "core": 14, "memory": 5120, "count": 7}],
        [
            {"name": "1g.5gb", "core": 14, "memory": 5120, "count": 1},
            {"name": "2g.10gb", "core": 28, "memory": 10240, "count": 3},
        ],
        [{"name": "3g.20gb", "core": 42, "memory": 20480, "count": 2}],
    ],
}]  # fmt: skip
# What HAMi's plugin has added to what HAMi's scheduler had reserved.
_INSTANCE = {
    "containerIndex": 0, "deviceIndex": 0, "gpuUUID": "GPU-mig", "profile": "1g.10gb",
    "placement": {"start": 6, "size": 1},
    "migUUID": "MIG-1", "gpuInstanceID": 9, "computeInstanceID": 0,
}  # fmt: skip


def find_card(node: str, index: int) -> str:
    """The UUID of a card."""
    return cards.make_card_id(node, index)


async def leave_cluster(world: World) -> None:
    """Nodes, pods, device configuration, quota and locks; a pod is between bind and Allocate."""
    await world.call("POST", MAPS, _make_map())
    await world.create(*_make_nodes())
    first = find_card("card-0", 0)
    one = container(limits={audit.GPU: 1, "nvidia.com/gpumem": 4000, "nvidia.com/gpucores": 30})
    text = {audit.ALLOCATED: f"{first},NVIDIA,4000,30:;"}
    await _leave(world, "left-a", "card-0", text, containers=[one])
    # HAMi 2.10.0 leaves out the slot of a container without cards.
    two = [container("side"), container(limits={audit.GPU: 1, "nvidia.com/gpumem": 3000})]
    text = {audit.ALLOCATED: f"{first},NVIDIA,3000,0:;"}
    await _leave(world, "left-b", "card-0", text, containers=two)
    text = {
        audit.ALLOCATED: "".join(f"{find_card('card-1', i)},NVIDIA,5000,0:" for i in (1, 0)) + ";"
    }
    await _leave(world, "left-c", "card-1", text, mem=5000, count=2)
    text = {audit.ALLOCATED: f"{find_card('card-2', 1)},NVIDIA,11514,0:;"}
    await _leave(world, "left-d", "card-2", text, mem=11514)
    text = {audit.ALLOCATED: "GPU-mig,NVIDIA,9728,15:;", MIG_ALLOCATIONS: json.dumps([_INSTANCE])}
    await _leave(world, "left-m", "mig-0", text, mem=9000)
    text = {DCU_ALLOCATED: "DCU-b,DCU,16384,25:;"}
    limits = {"hygon.com/dcunum": 1, "hygon.com/dcumem": 16, "hygon.com/dcucores": 25}
    await _leave(world, "left-u", "dcu-0", text, containers=[container(limits=limits)])
    text = {audit.ALLOCATED: f"{find_card('card-0', 1)},NVIDIA,2000,0:;"}
    await _leave(world, "holds", "card-0", text, mem=2000, is_running=False)
    await world.annotate(f"{NODES}/card-0", {audit.LOCK: make_lock("holds")})
    await world.annotate(f"{NODES}/card-1", {audit.LOCK: make_lock("gone", age_seconds=400)})
    quota = {"metadata": {"name": "cores"}, "spec": {"hard": {"limits.nvidia.com/gpucores": "230"}}}
    await world.call("POST", QUOTAS, quota)


async def leave_old_mig(world: World) -> None:
    """A node of a plugin up to 2.9 with two cards in MIG mode, and a pod on each; the second one cannot be read."""
    await world.call("POST", MAPS, _make_map(knownMigGeometries=_GEOMETRIES))
    card = {"devmem": 40_960, "type": "NVIDIA-NVIDIA A100-SXM4-40GB", "mode": "mig"}
    hardware = _list_cards("old-0", 2, **card)
    node = nodes.add_cards(nodes.make_plain_node("old-0", labels={"gpu": "on"}), hardware)
    node["metadata"]["annotations"][audit.REGISTER] = cards.write_register(hardware)
    await world.create(node)
    text = {audit.ALLOCATED: f"{find_card('old-0', 0)}[1-1],NVIDIA,10240,28:;"}
    await _leave(world, "left-t", "old-0", text, mem=9000)
    text = {audit.ALLOCATED: f"{find_card('old-0', 1)}[2-x],NVIDIA,20480,42:;"}
    await _leave(world, "left-x", "old-0", text, mem=15_000)


def make_lock(name: str, *, age_seconds: float = 0.0) -> str:
    """The lock of a node as HAMi's scheduler writes it for a pod."""
    since = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=age_seconds)
    return f"{since.strftime('%Y-%m-%dT%H:%M:%SZ')},default,{name}"


def make_abandoned_claim() -> dict[str, str]:
    """What HAMi's scheduler leaves on a pod that it chose cards for, twice, and never bound: cards of an old attempt."""
    return {
        "hami.io/vgpu-node": "card-0",
        "hami.io/vgpu-time": "1",
        audit.TO_ALLOCATE: f"{find_card('card-0', 3)},NVIDIA,15360,100:;",
        audit.ALLOCATED: f"{find_card('card-0', 3)},NVIDIA,15360,100:;",
        MIG_ALLOCATIONS: json.dumps([{key: _INSTANCE[key] for key in list(_INSTANCE)[:5]}]),
    }


def _make_nodes() -> list[Json]:
    t4 = [_list_cards("card-0", 4), nodes.mark_unhealthy(_list_cards("card-1", 4), 3)]
    a10 = _list_cards("card-2", 3, devmem=23_028, type="NVIDIA A10G")
    mig = cards.Card(
        id="GPU-mig", count=7, devmem=81_920, type="NVIDIA A100-SXM4-80GB", mode="mig", migProfiles=_PROFILES
    )  # fmt: skip
    hardware = [*t4, a10, cards.Hardware(cards=(mig,))]
    made = [
        nodes.add_cards(nodes.make_plain_node(name, labels={"gpu": "on"}), one)
        for name, one in zip([*SHARED, "mig-0"], hardware, strict=True)
    ]
    for node, one in zip(made, hardware, strict=True):
        # The plugin lists cards in any order, and plugins from 2.8 on never answer the scheduler's request.
        node["metadata"]["annotations"] |= {
            audit.REGISTER: cards.write_register(one, order="left"),
            "hami.io/node-handshake": "Requesting_2026-01-01 00:00:00",
        }
    made[2]["metadata"]["annotations"]["hami.io/device-cordon"] = find_card("card-2", 0)
    dcu = nodes.make_plain_node("dcu-0", resources={"hygon.com/dcunum": "8"})
    dcu["metadata"]["annotations"] |= {
        "hami.io/node-dcu-register": "".join(
            f"DCU-{name},4,65520,100,DCU-K100_AI,0,true,{index},hami-core:"
            for index, name in enumerate("ab")
        ),
        "hami.io/node-handshake-dcu": "Requesting_2026-01-01 00:00:00",
    }
    return [*made, dcu]


def _list_cards(node: str, count: int, **more: Any) -> cards.Hardware:
    listed = (cards.Card(id=find_card(node, i), index=i, **more) for i in range(count))
    return cards.Hardware(cards=tuple(listed))


def _make_map(**nvidia: Any) -> Json:
    """The device configuration of HAMi's chart; a unit of DCU memory is a GiB."""
    config = yaml.safe_load(CHART.read_text(encoding="utf-8"))
    config["hygon"]["memoryFactor"] = 1024
    config["nvidia"] |= nvidia
    data = {"device-config.yaml": yaml.safe_dump(config)}
    return {"metadata": {"name": MAP}, "data": data}


async def _leave(
    world: World,
    name: str,
    node: str,
    allocated: dict[str, str],
    *,
    mem: int = 4000,
    count: int = 1,
    is_running: bool = True,
    **more: Any,
) -> None:
    """A pod that HAMi's scheduler has bound; where it runs, the plugin has emptied the second text of its cards."""
    limits = {audit.GPU: count, "nvidia.com/gpumem": mem}
    made = pod(name, limits=limits, labels={"hami.io/vgpu-node": node}, schedulerName=HAMI)
    made["spec"] |= more
    await world.create(made)
    ((key, text),) = ((key, one) for key, one in allocated.items() if key.endswith("-allocated"))
    left = "".join(";" for _ in range(text.count(";"))) if is_running else text
    notes = {
        "hami.io/vgpu-node": node,
        "hami.io/vgpu-time": "1790000000",
        key.replace("-allocated", "-to-allocate"): left,
        **allocated,
        "hami.io/bind-phase": "success" if is_running else "allocating",
        "hami.io/bind-time": "1790000000",
    }
    meta = {"name": name, "annotations": notes}
    target = {"kind": "Node", "name": node}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
    await world.call("POST", f"{PODS}/{name}/binding", body)
    if is_running:
        await world.call("PATCH", f"{PODS}/{name}/status", {"status": {"phase": "Running"}})
