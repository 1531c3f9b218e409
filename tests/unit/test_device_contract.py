"""What drivers are promised: choices over two pools at once, and devices that belong to no node."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import names
from scheduler.api.cards import Grants, list_uses
from scheduler.api.door.decisions import Bind
from scheduler.cycle.schedule import Cycle
from scheduler.devices.table import Devices, make_drivers
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from tests import make, slices
from tests.model.device_drivers import (
    MEMORY,
    NIC,
    NICS,
    SWITCH,
    Fabric,
    NicCards,
    Slices,
    make_fabric,
)

Numas = list[int]


def make_cluster() -> Cluster:
    return Cluster(devices=Devices((*make_drivers(), NicCards(), Fabric(), Slices())))


def see_node(cluster: Cluster, name: str, gpus: Numas, nics: Numas, **more: Any) -> None:
    """A node with GPUs and network cards on these NUMA nodes."""
    cards = [make.card(uuid=f"{name}-gpu-{i}", index=i, numa=n) for i, n in enumerate(gpus)]
    told = json.dumps([[f"{name}-nic-{i}", n] for i, n in enumerate(nics)])
    node = make.hami_node(name=name, cards=cards, allocatable={NIC: len(nics)}, **more)
    node.metadata.annotations = {**(node.metadata.annotations or {}), NICS: told}
    cluster.see_node(node)


def place(cluster: Cluster, name: str, **asked: Any) -> Bind | None:
    record = cluster.see_pod(make.pod(name=name, **asked))
    assert record is not None
    binds = make.cycle(cluster=cluster).schedule([record]).binds
    checks.verify(cluster)
    return binds[0] if binds else None


def find_numas(cluster: Cluster, devices: Grants) -> dict[str, list[int]]:
    """The NUMA nodes of the devices of each driver."""
    row_of = {cluster.cards.find_uuid(d): d for d in range(cluster.cards.columns.numa.size)}
    return {
        grant.driver: [
            int(cluster.cards.columns.numa[row_of[use.uuid]]) for use in list_uses((grant,))
        ]
        for grant in devices
    }


def test_a_pod_gets_devices_of_two_drivers_in_one_decision() -> None:
    cluster = make_cluster()
    see_node(cluster, "a", [0, 0], [0])
    bind = place(cluster, "p", gpu=1, requests={NIC: 1})
    assert bind is not None
    assert [grant.driver for grant in bind.devices] == ["HAMi", "nics"]
    assert cluster.nodes.columns.pools.used[2].sum() == 2
    assert place(cluster, "q", gpu=1, requests={NIC: 1}) is None
    assert place(cluster, "r", gpu=1) is not None


def test_the_nic_is_taken_from_the_numa_node_of_the_gpu() -> None:
    cluster = make_cluster()
    see_node(cluster, "a", [0, 0, 1], [1])
    bind = place(cluster, "p", gpu=1, requests={NIC: 1})
    assert bind is not None
    assert find_numas(cluster, bind.devices) == {"HAMi": [1], "nics": [1]}
    # Both kinds are free on the node, but on no NUMA node together.
    see_node(cluster, "b", [0, 0], [1, 1])
    assert place(cluster, "q", gpu=1, requests={NIC: 1}) is None
    assert place(cluster, "alone", requests={NIC: 1}) is not None


@settings(max_examples=slices.count_examples(120), deadline=None)
@given(
    gpus=st.lists(st.integers(0, 2), min_size=1, max_size=6),
    nics=st.lists(st.integers(0, 2), min_size=1, max_size=4),
    taken=st.integers(0, 3),
    asked=st.tuples(st.integers(1, 3), st.integers(1, 2)),
)
def test_a_joint_choice_is_found_exactly_if_there_is_one(
    gpus: Numas, nics: Numas, taken: int, asked: tuple[int, int]
) -> None:
    """The twin tries every set of GPUs with every set of network cards."""
    cluster = make_cluster()
    see_node(cluster, "a", gpus, nics)
    for i in range(min(taken, len(gpus))):
        place(cluster, f"holds-{i}", gpu=1)
    held = {use.uuid for pod in cluster.pods.values() for use in list_uses(pod.claim)}
    free = [n for i, n in enumerate(gpus) if f"a-gpu-{i}" not in held]
    is_possible = any(
        len({*a, *b}) == 1
        for a in combinations(free, asked[0])
        for b in combinations(nics, asked[1])
    )
    bind = place(cluster, "p", gpu=asked[0], requests={NIC: asked[1]})
    assert (bind is not None) == is_possible
    if bind is not None:
        numas = find_numas(cluster, bind.devices)
        assert [len(one) for one in numas.values()] == list(asked)
        assert len({n for one in numas.values() for n in one}) == 1


def test_devices_of_a_shared_pool_are_given_away_once_whichever_node_they_go_to() -> None:
    cluster = make_cluster()
    for name in ("a", "b", "apart"):
        see_node(cluster, name, [0], [], labels={} if name == "apart" else {SWITCH: "switch"})
    cluster.shared.see_pool(make_fabric(2))
    asked = {"requests": {MEMORY: 1}}
    assert place(cluster, "far", node_selector={names.HOSTNAME: "apart"}, **asked) is None
    got = [place(cluster, f"p{i}", cpu=1, **asked) for i in range(3)]
    assert [bind is not None for bind in got] == [True, True, False]
    uses = [use.uuid for bind in got if bind for use in list_uses(bind.devices)]
    assert sorted(uses) == ["switch-0", "switch-1"]


def test_a_family_comes_with_the_first_node_that_offers_it_and_never_with_a_pod() -> None:
    cluster = make_cluster()
    see_node(cluster, "a", [0], [])
    known = len(cluster.nodes.devices.families)
    small, large = "example.com/slice-1g", "example.com/slice-3g"
    assert place(cluster, "early", requests={small: 1}) is None
    assert len(cluster.nodes.devices.families) == known
    cluster.see_node(make.node(name="b", cpu=64, allocatable={small: 7, large: 1}))
    assert cluster.nodes.devices.families[known:] == [small, large]
    got = [place(cluster, f"p{i}", cpu=1, requests={large: 1}) for i in range(2)]
    assert [bind.node if bind else "" for bind in got] == ["b", ""]
    assert cluster.nodes.columns.n_pools[cluster.nodes.find_row("b")] == 2
    cluster.see_node(make.node(name="b", cpu=64, allocatable={small: 7}))
    checks.verify(cluster)
    assert cluster.nodes.columns.n_pools[cluster.nodes.find_row("b")] == 1


def place_all(cluster: Cluster, cycle: Cycle, n: int) -> int:
    """Place like pods in one decision; the board of their shape is kept for the next."""
    pods = [
        cluster.see_pod(make.pod(name=f"{i}-{len(cluster.pods)}", requests={MEMORY: 1}))
        for i in range(n)
    ]
    found = len(cycle.schedule([pod for pod in pods if pod]).binds)
    checks.verify(cluster)
    return found


def test_a_run_of_like_pods_does_not_take_more_of_a_shared_pool_than_there_is() -> None:
    """One kernel call places like pods, and looks again only at the node that the last one went to."""
    cluster = make_cluster()
    for i in range(5):
        see_node(cluster, f"n{i}", [0], [], labels={SWITCH: "switch"})
    cluster.shared.see_pool(make_fabric(3))
    cycle = make.cycle(cluster=cluster)
    assert place_all(cluster, cycle, 5) == 3
    cluster.shared.see_pool(make_fabric(4, generation=1))
    assert place_all(cluster, cycle, 3) == 1


def test_of_a_pool_whose_source_has_not_said_everything_nothing_is_given_away() -> None:
    cluster = make_cluster()
    see_node(cluster, "a", [0], [], labels={SWITCH: "switch"})
    cluster.shared.see_pool(make_fabric(2, generation=3, complete=False))
    asked = {"requests": {MEMORY: 1}}
    assert place(cluster, "early", **asked) is None
    cluster.shared.see_pool(make_fabric(2, generation=2))
    assert place(cluster, "old", **asked) is None
    cluster.shared.see_pool(make_fabric(2, generation=4))
    assert place(cluster, "p", **asked) is not None
    cluster.shared.drop_pool("switch")
    checks.verify(cluster)
    assert place(cluster, "late", **asked) is None


@pytest.mark.parametrize("seed", range(slices.count_examples(10)))
def test_pods_come_and_go_on_nodes_that_share_a_pool_and_nothing_is_given_twice(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cluster = make_cluster()
    for i in range(4):
        see_node(cluster, f"n{i}", [0, 1], [0, 1], labels={SWITCH: str(i % 2)})
    for key in ("0", "1"):
        cluster.shared.see_pool(make_fabric(3, key=key))
    for i in range(40):
        bound = [pod for pod in cluster.pods.values() if pod.node]
        if bound and rng.random() < 0.4:
            cluster.drop_pod(bound[int(rng.integers(len(bound)))].uid)
        else:
            wanted = {NIC: 1} if rng.random() < 0.5 else {MEMORY: int(rng.integers(1, 3))}
            place(cluster, f"p{i}", gpu=int(rng.integers(2)) or None, requests=wanted)
        held = [use.uuid for pod in cluster.pods.values() for use in list_uses(pod.claim)]
        assert len(set(held)) == len(held)
        assert not checks.list_overcommitted(cluster)
