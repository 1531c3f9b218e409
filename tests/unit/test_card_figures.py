"""The figures of cards that a pod is told, against a twin that looks at one card after the other."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import names
from scheduler.cycle import diagnosis
from scheduler.kernels.devices import gpus
from scheduler.plugins.rules import gpu_cards
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from tests import make
from tests.model import card_situations
from tests.oracles import hami as twin
from tests.oracles import shortage
from tests.unit import compiled

# The reasons with figures of their own, and how these end.
FIGURES = {
    "CardInsufficientMemory": ("the largest free is {} on {}", "the most free is {} % on {}"),
    "CardInsufficientCore": ("the most free is {} % on {}",),
    "NodeInsufficientDevice": ("the most on one node is {}, on {}",),
    "AllocatedCardsInsufficientRequest": ("the most that would fit on one node is {}, on {}",),
}


def built(nodes: shortage.Nodes) -> Cluster:
    """These nodes, and what is used of their cards written straight into the columns."""
    cluster = make.cluster(
        nodes=[
            make.hami_node(
                name=name,
                cards=[
                    make.card(
                        uuid=card.uuid, index=card.index, sharers=card.count, mib=card.mem,
                        cores=card.cores, model=card.model, numa=card.numa, mode=card.mode,
                        healthy=card.health,
                    )
                    for card in cards
                ],
                cordoned=[card.uuid for card in cards if card.cordoned],
            )
            for name, cards in nodes.items()
        ]
    )  # fmt: skip
    columns = cluster.cards.columns
    for name, cards in nodes.items():
        start = int(cluster.nodes.columns.card_start[0, cluster.nodes.row_of(name)])
        for d, card in enumerate(sorted(cards, key=lambda card: card.index), start):
            columns.used[:, d] = (card.used_cores, card.used_mem, card.used)
    return cluster


def told(cluster: Cluster, pod: twin.Pod) -> dict[str, str]:
    """By reason, what a pod is told of its cards over the nodes that have not enough."""
    (asked,) = pod.containers
    by_share = asked.percent != twin.PERCENT_UNSET
    record = cluster.see_pod(
        make.pod(
            gpu=asked.nums,
            gpumem=None if by_share else asked.mem,
            gpumem_percent=asked.percent if by_share else None,
            gpucores=asked.cores,
            annotations={
                names.HAMI_GPU_POLICY: pod.policy,
                names.USE_TYPE: pod.use_type,
                names.NOUSE_TYPE: pod.nouse_type,
                names.USE_UUID: pod.use_uuid,
                names.NOUSE_UUID: pod.nouse_uuid,
            },
        )
    )
    assert record is not None
    cycle = make.cycle(cluster=cluster)
    shape = cycle.shape_of(record)
    assert shape is not None
    cycle.boards.refresh(shape)
    scratch, nodes, cards = cycle.boards.scratch, cluster.nodes.columns, cluster.cards.columns
    rows = diagnosis.all_rows(cluster)
    rows = rows[[gpus.choose(nodes, cards, shape.ask, int(row), scratch) < 0 for row in rows]]
    bits: c.Ints = cycle.boards.refusals(shape, rows)
    judged = diagnosis.judged(cluster, shape, scratch, rows, bits)
    assert gpu_cards.RULE.sum_up is not None
    return dict(gpu_cards.RULE.sum_up(judged).details)


@st.composite
def situations(draw: st.DrawFn) -> tuple[shortage.Nodes, twin.Pod]:
    """Some nodes, and a pod of one container that binds no NUMA node: there the walk counts otherwise."""
    some = draw(st.lists(card_situations.nodes(), min_size=1, max_size=4))
    pod = draw(card_situations.pods())
    asked = next(one for one in pod.containers if one.nums)
    order = draw(st.permutations(range(len(some))))
    return (
        {f"n{i}": some[i] for i in order},
        replace(pod, containers=(replace(asked, kind="app"),), numa_bind=False, vgpu_mode=None),
    )


def test_cards_are_told_by_reason_with_the_best_that_there_is_of_what_is_short() -> None:
    """Whatever order the nodes came in: of several that are as good the first by name is told."""
    seen: Counter[str] = Counter()

    @given(situations())
    @settings(max_examples=compiled.examples(300), deadline=None, derandomize=True, database=None)
    def agree(situation: tuple[shortage.Nodes, twin.Pod]) -> None:
        nodes, pod = situation
        expected, found = shortage.of(nodes, pod), told(built(nodes), pod)
        assert found.keys() == expected.keys()
        for reason, (n, best, node) in expected.items():
            of_nodes = reason.startswith(("Node", "Allocated"))
            assert found[reason].startswith(f"{reason} on {n} {'node' if of_nodes else 'GPU'}")
            if reason not in FIGURES:
                continue
            seen[reason] += best > 0
            ends = [text.format(best, node) for text in FIGURES[reason]]
            ends = ends if best else ["none of them has any free"]
            assert found[reason].endswith(tuple(ends)), (found[reason], ends)

    agree()
    assert seen.keys() == FIGURES.keys()
    assert min(seen.values()) > 0


def test_a_pod_of_several_containers_is_told_only_what_is_true_of_it() -> None:
    """The second finds the card full because of the first: nothing is short of what one of them asks."""
    cluster = make.cluster(nodes=[make.hami_node(name="a", cards=1)])
    two = [make.container(name=name, gpu=1, gpumem=9000) for name in ("one", "two")]
    record = cluster.see_pod(make.pod(containers=two))
    assert record is not None
    (hold,) = make.cycle(cluster=cluster).schedule([record]).holds
    assert hold.diagnosis is not None
    assert [detail.text for detail in hold.diagnosis.details] == [
        (
            "CardInsufficientMemory on 1 GPU: requested 9000 MiB and 9000 MiB of a card's memory in 2 containers, "
            "the largest free is 15360 MiB on a"
        )
    ]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            [{"limits": {names.GPU_MEMORY_PERCENT: 60}}, {"gpumem": 9000}],
            ("CardInsufficientMemory on 1 GPU: requested 60 % and 9000 MiB of a card's memory in 2 containers, "
            "the largest free is 15360 MiB on a"),
        ),
        (
            [{"gpumem": 100, "gpucores": 60}] * 5,
            ("CardInsufficientCore on 1 GPU: requested 60 %, 60 %, 60 % and 2 more of a card's cores in 5 containers, "
            "the largest free is 100 % on a"),
        ),
        (
            [{"gpumem": 100}, {"gpu": 3, "gpumem": 100}],
            ("NodeInsufficientDevice on 1 node: requested 1 and 3 GPUs in 2 containers, "
            "the most on one node for one of them is 1, on a"),
        ),
        (
            [{"gpumem": 100}, {"gpumem": 90000}],
            "CardInsufficientMemory on 1 GPU: requested 90000 MiB a card, the largest free is 15360 on a",
        ),
    ],
)  # fmt: skip
def test_several_containers_are_told_what_each_asks(asked: list[dict[str, Any]], said: str) -> None:
    cluster = make.cluster(nodes=[make.hami_node(name="a", cards=1)])
    containers = [make.container(name=f"c{i}", **{"gpu": 1} | one) for i, one in enumerate(asked)]
    record = cluster.see_pod(make.pod(containers=containers))
    assert record is not None
    (hold,) = make.cycle(cluster=cluster).schedule([record]).holds
    assert hold.diagnosis is not None
    assert said in [detail.text for detail in hold.diagnosis.details]


def test_what_nodes_are_short_of_is_told_before_what_more_cards_are_short_of() -> None:
    """It is what keeps the pod: one more card that would do, and it had a place."""
    cards = [make.card(uuid=f"GPU-{i}", index=i, mib=1000 if i else 16000) for i in range(4)]
    cluster = make.cluster(nodes=[make.hami_node(name="a", cards=cards)])
    record = cluster.see_pod(make.pod(gpu=2, gpumem=9000))
    assert record is not None
    (hold,) = make.cycle(cluster=cluster).schedule([record]).holds
    assert hold.diagnosis is not None
    assert [detail.text for detail in hold.diagnosis.details] == [
        "AllocatedCardsInsufficientRequest on 1 node: requested 2 GPUs, the most that would fit on one node is 1, on a",
        "CardInsufficientMemory on 3 GPUs: requested 9000 MiB a card, the largest free is 1000 on a",
    ]  # fmt: skip
