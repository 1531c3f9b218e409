"""Nodes with cards that HAMi's plugin from 2.10 on cuts by MIG."""

from __future__ import annotations

import json
from typing import Any

from scheduler.api import names
from scheduler.state.cluster import Cluster
from tests import make

Json = dict[str, Any]
# An A100 of 40 GB, as the plugin reports it: MiB, percent of cores, slices, and the places.
A100 = {
    "1g.5gb": (4864, 15, 1, [(i, 1) for i in range(7)]),
    "2g.10gb": (9856, 29, 2, [(0, 2), (2, 2), (4, 2)]),
    "3g.20gb": (19968, 43, 3, [(0, 4), (4, 4)]),
    "4g.20gb": (19968, 58, 4, [(0, 4)]),
    "7g.40gb": (40192, 100, 7, [(0, 8)]),
}


def make_card(uuid: str, index: int = 0, profiles: tuple[str, ...] = tuple(A100)) -> Json:
    told = [
        {
            "name": name,
            "memoryMB": A100[name][0],
            "core": A100[name][1],
            "sliceCount": A100[name][2],
            "placements": [{"start": start, "size": size} for start, size in A100[name][3]],
        }
        for name in profiles
    ]
    return make.card(uuid=uuid, index=index, sharers=7, mib=40960, mode="mig") | {
        "migProfiles": told
    }


def tell_instance(
    uuid: str, profile: str, at: tuple[int, int], known: Json | None = None
) -> dict[str, str]:
    """The annotations of a pod with an instance; ``at`` are start and size, ``known`` is what the plugin has added."""
    told = {
        "containerIndex": 0,
        "deviceIndex": 0,
        "gpuUUID": uuid,
        "profile": profile,
        "placement": {"start": at[0], "size": at[1]},
    }
    mib, cores, *_ = A100[profile]
    return {
        names.HAMI_ALLOCATED: f"{uuid},NVIDIA,{mib},{cores}:;",
        names.HAMI_MIG_ALLOCATIONS: json.dumps([told | (known or {})]),
    }


def make_cluster(n_cards: int = 1, profiles: tuple[str, ...] = tuple(A100)) -> Cluster:
    cards = [make_card(f"GPU-{i}", i, profiles) for i in range(n_cards)]
    return make.cluster(nodes=[make.hami_node(name="n", cards=cards, cpu=64)])
