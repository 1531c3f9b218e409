"""Parts of GPUs that NVIDIA's device plugin offers: time-slicing, MPS, and MIG instances that an administrator has made."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.api import names
from scheduler.api.placement import Mode
from scheduler.api.plugin_parts import UNKNOWN, WHOLE, Part, Way, is_part, read_part
from scheduler.schema import columns as c
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from tests import make

GPU, SHARED, SMALL = "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb"
A100 = "NVIDIA-A100-SXM4-40GB"


@pytest.mark.parametrize(
    ("resource", "labels", "offered", "part"),
    [
        # As feature discovery writes them: without sharing, shared under the usual name, and under a name of its own.
        (GPU, {"gpu.product": A100, "gpu.replicas": "1", "gpu.memory": "40960"}, 8, WHOLE),
        (
            GPU,
            {
                "gpu.product": f"{A100}-SHARED",
                "gpu.replicas": "4",
                "gpu.memory": "40960",
                "gpu.sharing-strategy": "time-slicing",
            },
            32,
            Part(1 / 4, 10240, Way.TIME_SLICING),
        ),
        (
            SHARED,
            {
                "gpu.product": A100,
                "gpu.replicas": "10",
                "gpu.memory": "40960",
                "gpu.sharing-strategy": "mps",
            },
            80,
            Part(1 / 10, 4096, Way.MPS),
        ),
        # Older labels have no replicas; then the number of cards says it.
        (
            GPU,
            {"gpu.product": "Tesla-T4-SHARED", "gpu.count": "2"},
            9,
            Part(1 / 5, 0, Way.TIME_SLICING),
        ),
        (SHARED, {"gpu.count": "4"}, 16, Part(1 / 4, 0, Way.TIME_SLICING)),
        (SHARED, {}, 16, UNKNOWN),
        (GPU, {"gpu.count": "4"}, 16, WHOLE),
        # MIG: instances by name, and all instances of a node under the name of whole GPUs.
        (
            SMALL,
            {"gpu.product": A100, "mig-1g.5gb.memory": "4864", "mig-1g.5gb.replicas": "1"},
            7,
            Part(1 / 7, 4864, Way.MIG),
        ),
        ("nvidia.com/mig-3g.20gb", {}, 2, Part(3 / 7, 0, Way.MIG)),
        ("nvidia.com/mig-2g.12gb", {"gpu.product": "NVIDIA-A30"}, 2, Part(2 / 4, 0, Way.MIG)),
        ("nvidia.com/mig-1g.10gb.me", {}, 1, Part(1 / 7, 0, Way.MIG)),
        (
            f"{SMALL}.shared",
            {"mig-1g.5gb.memory": "4864", "mig-1g.5gb.replicas": "2"},
            14,
            Part(1 / 14, 2432, Way.MIG),
        ),
        (
            GPU,
            {"gpu.product": f"{A100}-MIG-2g.10gb", "gpu.slices.gi": "2", "gpu.memory": "9856"},
            3,
            Part(2 / 7, 9856, Way.MIG),
        ),
        # What no plugin writes.
        (GPU, {"gpu.replicas": "-3"}, 8, WHOLE),
        (GPU, {"gpu.replicas": "٣"}, 8, WHOLE),
        (GPU, {"gpu.replicas": "9" * 5000}, 8, WHOLE),
        (GPU, {"gpu.slices.gi": "99"}, 8, Part(1.0, 0, Way.MIG)),
        ("nvidia.com/mig-1g", {}, 1, WHOLE),
    ],
)
def test_labels_say_what_a_device_is(
    resource: str, labels: dict[str, str], offered: int, part: Part
) -> None:
    named = {f"nvidia.com/{key}": text for key, text in labels.items()}
    assert read_part(resource, named, offered) == part


@given(
    st.sampled_from([GPU, SHARED, SMALL, f"{SMALL}.shared"]),
    st.dictionaries(
        st.sampled_from([
            f"{base}.{end}"
            for base in (GPU, SMALL)
            for end in ("count", "replicas", "product", "memory", "slices.gi", "sharing-strategy")
        ]),
        st.one_of(st.integers(0, 99).map(str), st.text(max_size=4), st.just("X-SHARED")),
    ),
    st.integers(0, 300),
)  # fmt: skip
def test_a_device_is_never_more_than_a_gpu(
    resource: str, labels: dict[str, str], offered: int
) -> None:
    part = read_part(resource, labels, offered)
    assert 0 <= part.gpus <= 1
    assert part.mib >= 0


def test_only_names_of_parts_are_parts() -> None:
    assert [is_part(one) for one in (SHARED, SMALL, GPU, "amd.com/gpu", "nvidia.com/gpumem")] == [
        True,
        True,
        False,
        False,
        False,
    ]


def see_node(cluster: Cluster, name: str, labels: dict[str, str], **offered: int) -> None:
    cluster.see_node(make.node(name=name, cpu=64, labels=labels, allocatable=offered))


def place(cluster: Cluster, name: str, **requests: int) -> str | None:
    record = cluster.see_pod(make.pod(name=name, requests=requests))
    assert record is not None
    binds = make.cycle(cluster=cluster).schedule([record]).binds
    checks.verify(cluster)
    return binds[0].node if binds else None


def test_pods_get_parts_by_their_number() -> None:
    cluster = make.cluster()
    see_node(cluster, "mig", {}, **{SMALL: 2})
    see_node(cluster, "shared", {"nvidia.com/gpu.replicas": "4"}, **{SHARED: 4})
    assert [place(cluster, f"m{i}", **{SMALL: 1}) for i in range(3)] == ["mig", "mig", None]
    assert [place(cluster, f"s{i}", **{SHARED: 2}) for i in range(3)] == ["shared", "shared", None]
    # A pod that names an instance that no node offers waits, and adds no family.
    families = list(cluster.registers.devices.families)
    assert place(cluster, "odd", **{"nvidia.com/mig-9g.9gb": 1}) is None
    assert cluster.registers.devices.families == families


def test_a_node_says_how_much_of_its_gpus_parts_are() -> None:
    cluster = make.cluster()
    labels = {f"{GPU}.product": A100, f"{SMALL}.memory": "4864"}
    see_node(cluster, "n", labels, **{SMALL: 5, "nvidia.com/mig-2g.10gb": 1})
    (row,) = cluster.nodes.rows.values()
    pools, own = cluster.nodes.columns.pools, list(cluster.registers.list_pools(row))
    found = {
        cluster.registers.devices.families[int(pools.family[pool])]: (
            *pools.part[:, pool].tolist(),
            *pools.total[:, pool].tolist(),
        )
        for pool in own
    }
    assert found == {
        SMALL: (1 / 7, 4864, 1, 71, 5 * 4864, 0),
        "nvidia.com/mig-2g.10gb": (2 / 7, 0, 1, 29, 0, 0),
    }
    # The labels of the node change: the administrator has other GPUs.
    see_node(cluster, "n", {f"{GPU}.product": "NVIDIA-A30"}, **{SMALL: 4})
    (pool,) = cluster.registers.list_pools(row)
    assert pools.part[:, pool].tolist() == [1 / 4, 0, 1]
    assert pools.total[c.CORES, pool] == 100


@pytest.mark.parametrize("known", ["a", "b"])
def test_the_balance_counts_the_memory_of_parts(known: str) -> None:
    """Of two nodes with the same instances one says how much memory they have: the scores differ, whichever comes first."""
    cluster = make.cluster()
    for name in ("a", "b"):
        labels = {f"{SMALL}.memory": "4864"} if name == known else {}
        see_node(cluster, name, labels, **{SMALL: 4})
    record = cluster.see_pod(
        make.pod(
            name="p",
            cpu=48,
            requests={SMALL: 1},
            annotations={names.MODE: Mode.BALANCED_ALLOCATION},
        )
    )
    assert record is not None
    (bind,) = make.cycle(cluster=cluster).schedule([record]).binds
    assert bind.node == known
