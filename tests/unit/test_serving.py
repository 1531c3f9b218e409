"""Extended resources of nodes with several devices: what GPUs cannot be used without, and who alone has it."""

import random
from typing import Any

import numpy as np
import pytest

from scheduler.api import names
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.telling.advice import losses
from scheduler.telling.advice.asking import Asking
from tests import make
from tests.unit import places_worlds

GBIT = "example.com/gbit"


def asking(gbit: int) -> dict[str, Any]:
    return {"requests": {GBIT: gbit}, "limits": {GBIT: gbit}} if gbit else {}


def cluster_of(gbits: dict[str, int]) -> Cluster:
    """Nodes of 4 GPUs, 64 CPU and 256Gi; 60 pods came that ask 20 Gbit with each GPU."""
    nodes = [
        make.node(
            name=name, cpu=64, memory="256Gi", gpus=4, allocatable={GBIT: gbit} if gbit else {}
        )
        for name, gbit in gbits.items()
    ]
    cluster = make.cluster(nodes=nodes)
    for i in range(60):
        cluster.see_pod(make.pod(name=f"past-{i}", gpu=1, cpu=8, memory="32Gi", **asking(20)))
    return cluster


def test_what_gpus_cannot_be_used_without_is_what_the_pods_ask_with_them() -> None:
    cluster = cluster_of({"a": 100, "b": 100})
    tables = places_worlds.cycle_of(cluster).learner.get_tables(0)
    served = dict(zip(tables.serving.tolist(), tables.served.tolist(), strict=True))
    assert served == pytest.approx(
        {
            c.MEMORY: 1000 / (0.85 * (32 << 30)),
            cluster.nodes.find_row_asked(GBIT): 1000 / (0.85 * 20),
        }
    )


def test_nodes_that_alone_have_what_many_ask_are_dear() -> None:
    cluster = cluster_of({"a": 100, "b": 0, "c": 0, "d": 0})
    price = places_worlds.cycle_of(cluster).learner.get_tables(0).price
    a, b = (price[cluster.nodes.find_row(name)] for name in "ab")
    assert a > b == 0
    pod = cluster.see_pod(make.pod(name="other", gpu=1, cpu=8, memory="32Gi"))
    assert pod is not None
    (bind,) = places_worlds.cycle_of(cluster).schedule([pod]).binds
    assert bind.node == "b"


def test_a_resource_that_no_node_has_is_asked_by_nobody_who_could_run() -> None:
    cluster = cluster_of({"a": 0, "b": 0})
    tables = places_worlds.cycle_of(cluster).learner.get_tables(0)
    assert not tables.serving.size
    assert np.isfinite(tables.price).all()


def test_a_gpu_that_nothing_is_left_to_use_is_short_and_lost_to_nobody() -> None:
    cluster = cluster_of({"a": 100, "z": 100})
    cluster.see_pod(make.pod(name="sender", node="z", cpu=1, memory="1Gi", **asking(100)))
    cycle = places_worlds.cycle_of(cluster)
    pod = cluster.see_pod(make.pod(name="p", gpu=1, cpu=8, memory="32Gi"))
    assert pod is not None
    shape = cycle.get_shape(pod)
    assert shape is not None
    cycle.boards.refresh(shape)
    on = {
        name: losses.measure_loss(Asking(cluster, cycle), shape, cluster.nodes.find_row(name))
        for name in "az"
    }
    assert on["a"] is not None
    assert on["z"] is not None
    term = "GPUs left without CPU or memory"
    # On z all four were short: the pod takes one of them. On a none is, with the pod or without.
    rate = float(cycle.learner.get_tables(0).rates[c.RATE_SHORT])
    assert on["z"].terms[term] == pytest.approx(-1000 * rate)
    assert term not in on["a"].terms


@pytest.mark.parametrize("seed", range(20))
def test_a_pod_goes_to_the_same_node_with_a_board_and_without(seed: int) -> None:
    rng = random.Random(seed)
    cluster = cluster_of({f"n{i:02}": rng.choice((0, 40, 100)) for i in range(16)})
    for i in range(30):
        on = f"n{rng.randrange(16):02}"
        row = cluster.nodes.find_row(on)
        gbit = rng.choice((0, 10, 20, 35))
        left = cluster.nodes.columns.allocatable[:, row] - cluster.nodes.columns.requested[:, row]
        if (
            left[cluster.nodes.find_row_asked(GBIT)] >= gbit
            and left[cluster.nodes.find_row_asked(names.GPU)] > 0
        ):
            pod = make.pod(
                name=f"runs-{i}", node=on, gpu=1, cpu=rng.randrange(1, 12), **asking(gbit)
            )
            cluster.see_pod(pod)
    cycle = places_worlds.cycle_of(cluster)
    chosen = []
    for i in range(8):
        ask = asking(rng.choice((0, 5, 20)))
        figures: dict[str, Any] = {
            "gpu": rng.randrange(3),
            "cpu": f"{rng.randrange(100, 9000)}m",
            "memory": "8Gi",
        }
        record = cluster.see_pod(make.pod(name=f"new-{i}", **figures, **ask))
        assert record is not None
        cold = cycle.schedule([record], explain=False).binds
        if cold:
            cluster.forget(record.uid)
        assert cycle.get_shape(record) is not None
        hot = cycle.schedule([record], explain=False).binds
        assert cold == hot
        chosen += [bind.node for bind in hot]
    assert chosen
