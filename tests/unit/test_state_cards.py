"""Cards whose holders cannot be read, and nodes whose register is gone: nothing is given away."""

from typing import Any

import msgspec
import pytest

from scheduler.api import names, wire
from scheduler.state.cluster import Cluster
from tests import make

HELD = "node-GPU-0,NVIDIA,8000,50:;"
NONSENSE = "node-GPU-0,NVIDIA,lots,50:;"


def holder(text: str, **figures: Any) -> wire.Pod:
    """A pod that runs on ``node`` and holds what its annotation says."""
    notes = {names.HAMI_NODE: "node", names.HAMI_ALLOCATED: text}
    return make.pod(name="holder", node="node", gpu=1, gpumem=8000, annotations=notes, **figures)


def fits(cluster: Cluster, **figures: Any) -> bool:
    """Whether a pod with these figures would find a place."""
    pod = cluster.see_pod(make.pod(name="asks", **figures))
    assert pod is not None
    result = make.cycle(cluster=cluster).could_place(pod)
    cluster.pod_gone(pod.uid)
    return result


@pytest.mark.parametrize("scheduler_name", [names.SCHEDULER, "other"])
def test_a_pod_whose_cards_cannot_be_read_closes_the_cards_of_its_node(scheduler_name: str) -> None:
    cluster = Cluster()
    cluster.see_node(make.hami_node(cards=2))
    readable = holder(HELD, scheduler_name=scheduler_name)
    cluster.see_pod(readable)
    assert fits(cluster, gpu=1, gpumem=100)
    nonsense = holder(NONSENSE, scheduler_name=scheduler_name)
    pod = cluster.see_pod(nonsense)
    assert pod is not None
    assert names.HAMI_ALLOCATED in pod.problem
    assert "lots" in pod.problem
    assert not fits(cluster, gpu=1, gpumem=100)
    assert fits(cluster, cpu="1")
    cluster.see_pod(readable)
    assert fits(cluster, gpu=1, gpumem=100)
    cluster.see_pod(nonsense)
    cluster.pod_gone(pod.uid)
    assert fits(cluster, gpu=2, gpumem=100)


def test_cards_that_come_while_a_pod_cannot_be_read_are_closed_too() -> None:
    cluster = Cluster()
    cluster.see_pod(holder(NONSENSE))
    cluster.see_node(make.hami_node(cards=2))
    assert not fits(cluster, gpu=1, gpumem=100)
    cluster.see_node(make.hami_node(cards=3, cordoned=["node-GPU-1"]))
    assert not fits(cluster, gpu=1, gpumem=100)
    cluster.pod_gone("default/holder")
    assert fits(cluster, gpu=2, gpumem=100)
    assert not fits(cluster, gpu=3, gpumem=100)


def test_a_node_whose_register_is_gone_stays_hamis_while_pods_hold_its_cards() -> None:
    """Its nvidia.com/gpu counts shares: read as cards, ten pods would get a whole card each."""
    cluster = Cluster()
    node = make.hami_node(cards=2)
    bare = msgspec.json.decode(msgspec.json.encode(node), type=wire.Node)
    bare.metadata.annotations = {}
    cluster.see_node(node)
    cluster.see_pod(holder(HELD))
    cluster.see_node(bare)
    assert not fits(cluster, gpu=1)
    cluster.see_node(node)
    assert fits(cluster, gpu=1)
    assert not fits(cluster, gpu=2)
