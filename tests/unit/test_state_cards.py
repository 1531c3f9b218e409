"""Pods that do not tell their cards, and nodes whose register is gone: no more is closed than must be."""

from typing import Any

import msgspec
import pytest

from scheduler.api import names, wire
from scheduler.state import checks
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
    cluster.drop_pod(pod.uid)
    return result


@pytest.mark.parametrize("scheduler_name", [names.SCHEDULER, "other"])
@pytest.mark.parametrize("text", [NONSENSE, ""])
def test_a_pod_that_does_not_tell_its_cards_is_charged_what_it_asks_on_the_first(
    scheduler_name: str, text: str
) -> None:
    cluster = Cluster()
    cluster.see_node(make.hami_node(cards=2))
    pod = cluster.see_pod(holder(text, scheduler_name=scheduler_name))
    assert pod is not None
    problem = str(cluster.find_claim_problem(pod))
    assert names.HAMI_ALLOCATED in problem
    assert ("lots" if text else "is missing") in problem
    assert not fits(cluster, gpu=2, gpumem=8000)
    assert fits(cluster, gpu=2, gpumem=make.T4_MIB - 8000)
    assert fits(cluster, gpu=1)
    cluster.see_pod(holder(HELD, scheduler_name=scheduler_name))
    assert not cluster.find_claim_problem(cluster.pods[pod.uid])
    cluster.see_pod(holder(text, scheduler_name=scheduler_name))
    cluster.drop_pod(pod.uid)
    assert fits(cluster, gpu=2)


def test_a_pod_that_asks_no_cards_has_nothing_to_tell() -> None:
    cluster = Cluster()
    cluster.see_node(make.hami_node(cards=2))
    for i, text in enumerate((HELD, NONSENSE, "x")):
        notes = {names.HAMI_ALLOCATED: text}
        pod = cluster.see_pod(make.pod(name=f"p{i}", node="node", annotations=notes))
        assert pod is not None
        assert not cluster.find_claim_problem(pod)
    assert fits(cluster, gpu=2)


def test_cards_that_come_after_such_a_pod_are_charged_too() -> None:
    cluster = Cluster()
    pod = cluster.see_pod(holder(NONSENSE))
    assert pod is not None
    cluster.see_node(make.hami_node(cards=2))
    assert not fits(cluster, gpu=2)
    cluster.see_node(make.hami_node(cards=3, cordoned=["node-GPU-1"]))
    assert fits(cluster, gpu=1)
    assert not fits(cluster, gpu=2)
    cluster.drop_pod(pod.uid)
    assert fits(cluster, gpu=2)


def test_what_pods_say_of_themselves_makes_no_node_hamis() -> None:
    """Else one pod with a forged annotation closes the plain GPUs of a node."""
    cluster = Cluster()
    cluster.see_node(make.node(gpus=4))
    for text in (HELD, NONSENSE):
        pod = cluster.see_pod(holder(text))
        assert pod is not None
        assert not cluster.find_claim_problem(pod)
        assert fits(cluster, gpu=3)
        assert not fits(cluster, gpu=4)


def test_a_node_with_the_name_of_one_that_was_hamis_is_a_new_one() -> None:
    cluster = Cluster()
    cluster.see_node(make.hami_node(cards=2, uid="first"))
    cluster.see_node(make.node(gpus=2, uid="first"))
    assert not fits(cluster, gpu=1)
    cluster.see_node(make.node(gpus=2, uid="second"))
    assert fits(cluster, gpu=1)


def test_a_node_whose_register_is_gone_stays_hamis() -> None:
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


def test_when_the_last_node_that_a_plugin_wrote_on_goes_others_are_no_longer_counted_as_its_own() -> (
    None
):
    cluster = Cluster()
    cluster.see_node(make.node(name="silent", gpus=20))

    def is_managed() -> bool:
        return bool(cluster.nodes.find_managed(0)[cluster.nodes.rows["silent"]])

    assert not is_managed()
    for name in ("first", "last"):
        cluster.see_node(make.hami_node(name=name, cards=2))
    cluster.drop_node("first")
    assert is_managed()
    cluster.drop_node("last")
    assert not is_managed()
    checks.verify(cluster)
