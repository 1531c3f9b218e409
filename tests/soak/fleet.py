"""The nodes: shares by HAMi's plugin, MIG that it cuts, parts that others have cut, whole GPUs, twelve vendors, and none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from scheduler.embedded.agents import cards, nodes
from tests.model.mig import A100
from tests.soak import vendors
from tests.soak.holdings import Device

Json = dict[str, Any]
_PROFILES: tuple[Json, ...] = tuple(
    {
        "name": name,
        "memoryMB": mib,
        "core": cores,
        "sliceCount": slices,
        "placements": [{"start": start, "size": size} for start, size in places],
    }
    for name, (mib, cores, slices, places) in A100.items()
)
_SHARED = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.memory": "40960"}
_DCUS = "".join(f"DCU-{i},4,65520,100,DCU-K100_AI,0,true,{i},hami-core:" for i in range(2))


class Fleet(NamedTuple):
    """All nodes by name, what the devices of vendors have, and the resources that vendors' plugins offer."""

    nodes: dict[str, Json]
    vendors: dict[str, dict[str, Device]]
    resources: tuple[str, ...]


def make_fleet(*, size: int = 1) -> Fleet:
    """Ninety nodes for a ``size`` of 2, and half as many for 1."""
    found = {node["metadata"]["name"]: node for node in _make_nvidia(size)}
    of_vendors = list(vendors.make_nodes(size))
    truth = {one.body["metadata"]["name"]: one.devices for one in of_vendors}
    for one in of_vendors:
        found[one.body["metadata"]["name"]] = one.body
    both = found["both-0"]
    both["metadata"]["annotations"]["hami.io/node-dcu-register"] = _DCUS
    for part in ("capacity", "allocatable"):
        both["status"][part]["hygon.com/dcunum"] = "8"
    truth["both-0"] = {f"DCU-{i}": Device(4, 65_520, 100) for i in range(2)}
    return Fleet(found, truth, tuple(sorted({one.resource for one in of_vendors})))


def _make_nvidia(size: int) -> Iterator[Json]:
    amounts: Json = {"cpu": "64", "memory": "512Gi"}
    for i in range(10 * size):
        form = ("json", "json", "json", "text7", "text9")[i % 5]
        yield nodes.make_gpu_node(f"share-{i}", cards=i % 4 + 1, register=form, **amounts)
    for i in range(2 * size):
        few = cards.Card(
            id=f"GPU-A10G-{i}", count=2, devmem=23_028, devcore=100, type="NVIDIA A10G"
        )
        hardware = cards.Hardware(cards=(few,))
        yield nodes.add_cards(nodes.make_plain_node(f"a10-{i}", **amounts), hardware)
        cut = tuple(
            cards.Card(
                id=f"GPU-cut-{i}-{k}",
                index=k,
                count=7,
                devmem=40_960,
                type="NVIDIA A100",
                mode="mig",
                migProfiles=_PROFILES,
            )
            for k in range(2)
        )
        hardware = cards.Hardware(cards=cut)
        yield nodes.add_cards(nodes.make_plain_node(f"mig-{i}", **amounts), hardware)
        shared = {"nvidia.com/gpu.shared": "8"}
        yield nodes.make_plain_node(f"sliced-{i}", labels=_SHARED, resources=shared, **amounts)
        parts = {"nvidia.com/mig-1g.10gb": "7"}
        yield nodes.make_plain_node(f"parts-{i}", resources=parts, **amounts)
        yield nodes.make_plain_node(f"whole-{i}", resources={"nvidia.com/gpu": "4"}, **amounts)
        yield nodes.make_plain_node(f"plain-{i}", **amounts)
    yield nodes.make_gpu_node("both-0", cards=2, **amounts)
