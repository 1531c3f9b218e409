"""A card that leaves its node's register under pods: they hold that card, and no healthy one instead."""

from typing import Any

import pytest

from scheduler.api import names, wire
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord
from tests import make

SMALL = {"gpu": 1, "gpumem": 3000, "gpucores": 20}


def node(*cards: int, uid: str = "node-uid", mode: str = "hami-core") -> wire.Node:
    there = [make.card(uuid=f"GPU-{i}", index=i, mode=mode) for i in cards]
    return make.hami_node(uid=uid, cards=there)


def holding(cluster: Cluster, name: str, claim: str, **asked: Any) -> PodRecord:
    notes = {names.HAMI_ALLOCATED: claim}
    record = cluster.see_pod(make.pod(name=name, node="node", annotations=notes, **asked))
    assert record is not None
    return record


def used(cluster: Cluster) -> dict[str, tuple[int, ...]]:
    """Of each card that is there: cores, MiB, slots."""
    checks.verify(cluster)
    cards = checks.take_fingerprint(cluster)["node"]["cards"]
    return {uuid: tuple(figures[1]) for uuid, figures in cards.items() if any(figures[1])}


def test_pods_on_a_card_that_leaves_close_no_other() -> None:
    cluster = make.cluster(nodes=[node(0, 1, 2, 3)])
    small = [holding(cluster, f"p{i}", "GPU-3,NVIDIA,3000,20:;", **SMALL) for i in range(5)]
    holding(cluster, "whole", "GPU-0,NVIDIA,15360,100:;", gpu=1)
    before = used(cluster)
    assert before == {"GPU-0": (100, 15360, 1), "GPU-3": (100, 15000, 5)}
    cluster.see_node(node(0, 1, 2))
    assert used(cluster) == {"GPU-0": (100, 15360, 1)}
    assert not any(cluster.find_claim_problem(pod) for pod in small)
    row = cluster.nodes.find_row("node")
    assert cluster.registers.are_usable(row, ["GPU-0"])
    assert not cluster.registers.are_usable(row, ["GPU-3"])
    # Pods go and others change meanwhile, and what is left is there with the card.
    cluster.drop_pod(small.pop().uid)
    holding(cluster, "p0", "GPU-3,NVIDIA,2000,20:;", **SMALL)
    cluster.see_node(node())
    assert used(cluster) == {}
    assert not any(cluster.find_claim_problem(pod) for pod in small)
    cluster.see_node(node(3, 0))
    assert used(cluster) == {"GPU-0": (100, 15360, 1), "GPU-3": (80, 11000, 4)}


def test_what_is_not_told_is_on_no_card_that_left() -> None:
    cluster = make.cluster(nodes=[node(0, 1)])
    pod = holding(cluster, "p", "GPU-0,NVIDIA,3000,20:;", gpu=3, gpumem=3000, gpucores=20)
    cluster.see_node(node(1, 2))
    assert used(cluster) == {"GPU-1": (20, 3000, 1), "GPU-2": (20, 3000, 1)}
    assert "names 1 of the 3 cards that container 1 requests" in str(
        cluster.find_claim_problem(pod)
    )


def test_who_tells_nothing_is_on_no_card_that_left_under_another() -> None:
    cluster = make.cluster(nodes=[node(0, 1)])
    holding(cluster, "other", "GPU-1,NVIDIA,3000,20:;", **SMALL)
    cluster.see_node(node(0))
    silent = holding(cluster, "silent", "", gpu=3, gpumem=3000, gpucores=20)
    assert used(cluster) == {"GPU-0": (20, 3000, 1)}
    assert cluster.read_held(silent).keys() == {cluster.registers.list_cards("", 0, 0)["GPU-0"]}


@pytest.mark.parametrize("card", ["GPU-1", "GPU-1[0-1]"])
def test_a_card_in_mig_mode_was_all_that_its_pods_told(card: str) -> None:
    cluster = make.cluster(nodes=[node(0, 1, mode="mig")])
    pod = holding(cluster, "p", f"{card},NVIDIA,100,15:;", gpu=2, gpumem=100)
    for left in ((0,), (0, 2), (0,)):
        cluster.see_node(node(*left, mode="mig"))
        assert used(cluster) == {}
        assert not cluster.find_claim_problem(pod)


def test_another_node_of_the_name_never_had_the_card() -> None:
    """A scheduler that starts anew cannot know the card: it takes the pod to be on the first one."""
    cluster = make.cluster(nodes=[node(0, 1)])
    pod = holding(cluster, "p", "GPU-1,NVIDIA,3000,20:;", **SMALL)
    cluster.see_node(node(0))
    assert used(cluster) == {}
    cluster.see_node(node(0, uid="another"))
    assert used(cluster) == {"GPU-0": (20, 3000, 1)}
    assert "names 0 of the 1 cards" in str(cluster.find_claim_problem(pod))
    cluster.see_node(node(0, 1, uid="another"))
    cluster.see_node(node(0, uid="another"))
    assert used(cluster) == {}
    cluster.drop_node("node")
    cluster.see_node(node(0, uid="another"))
    assert used(cluster) == {"GPU-0": (20, 3000, 1)}


def test_of_the_cards_that_left_only_those_are_known_that_pods_still_name() -> None:
    cluster = make.cluster(nodes=[node(0)])
    for i in range(100):
        cluster.see_node(node(2 * i, 2 * i + 1))
        pod = holding(cluster, "p", f"GPU-{2 * i},NVIDIA,3000,20:;", **SMALL)
        assert set(cluster.registers._gone_from[0].get(pod.uid, {})) <= {f"GPU-{2 * i - 2}"}
    cluster.see_node(node(500))
    assert {uid: set(lost) for uid, lost in cluster.registers._gone_from[0].items()} == {
        pod.uid: {"GPU-198"}
    }
    cluster.drop_pod(pod.uid)
    cluster.see_node(node(501))
    assert cluster.registers._gone_from[0] == {}


def test_who_names_a_card_that_left_under_another_holds_what_it_asks() -> None:
    cluster = make.cluster(nodes=[node(0, 1)])
    first = holding(cluster, "first", "GPU-1,NVIDIA,3000,20:;", **SMALL)
    other = holding(cluster, "other", "GPU-0,NVIDIA,3000,20:;", **SMALL)
    cluster.see_node(node(0))
    late = holding(cluster, "late", "GPU-1,NVIDIA,3000,20:;", **SMALL)
    assert used(cluster) == {"GPU-0": (40, 6000, 2)}
    assert "names 0 of the 1 cards" in str(cluster.find_claim_problem(late))
    assert not cluster.find_claim_problem(first)
    # Nor does one that was there, and names it now; while who had it may name another and it again.
    other = holding(cluster, "other", "GPU-1,NVIDIA,3000,20:;", **SMALL)
    assert "names 0 of the 1 cards" in str(cluster.find_claim_problem(other))
    first = holding(cluster, "first", "GPU-0,NVIDIA,3000,20:;", **SMALL)
    assert used(cluster) == {"GPU-0": (60, 9000, 3)}
    holding(cluster, "first", "GPU-1,NVIDIA,3000,20:;", **SMALL)
    # It changes nothing that other cards leave, or that no card is left for a while.
    for left in (node(0, 5), node(), node(0)):
        cluster.see_node(left)
    assert used(cluster) == {"GPU-0": (40, 6000, 2)}
    for pod in (late, other, first):
        cluster.drop_pod(pod.uid)
    assert used(cluster) == {}
