"""The figures of cards that a pod is told, against a twin that looks at one card after the other."""

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import names
from scheduler.cycle import diagnosis
from scheduler.kernels.devices import gpus
from scheduler.plugins import cards_seen, container_figures
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


ONE_CARD, TWO_CARDS = {"a": 1}, {"a": 2, "b": 1}
BEFORE = "(before any of them has a GPU)"
APART = f"{BEFORE}, but they do not fit together: once container"


@pytest.mark.parametrize(
    ("nodes", "asked", "said"),
    [
        (
            ONE_CARD, {"one": {"gpumem": 9000}, "two": {"gpumem": 9000}},
            (f"CardInsufficientMemory on 1 GPU: containers one and two each requested 9000 MiB of a GPU, the largest free "
            f"is 15360 on a {APART} one is placed, the largest free for container two is 6360 on a"),
        ),
        (
            ONE_CARD, {"one": {"limits": {names.GPU_MEMORY_PERCENT: 60}}, "two": {"gpumem": 9000}},
            (f"CardInsufficientMemory on 1 GPU: container one requested 60 % of the memory of a GPU, the largest free is "
            f"100 % on a; container two requested 9000 MiB of a GPU, the largest free is 15360 on a {APART} one is "
            f"placed, the largest free for container two is 6144 on a"),
        ),
        (
            ONE_CARD, {name: {"gpumem": 100, "gpucores": 60} for name in "abcde"},
            (f"CardInsufficientCore on 1 GPU: containers a, b, c and 2 more each requested 60 % of the cores of a GPU, the "
            f"largest free is 100 % on a {APART} a is placed, the largest free for container b is 40 % on a"),
        ),
        (
            ONE_CARD, {"one": {"gpumem": 100}, "two": {"gpu": 3, "gpumem": 100}},
            ("NodeInsufficientDevice on 1 node: container two requested 3 GPUs, the most on one node is 1, on a; "
            "container one requested 1 GPU, the most on one node is 1, on a"),
        ),
        (
            TWO_CARDS, {"one": {"gpumem": 100}, "two": {"gpumem": 90000}, "three": {"gpumem": 100}},
            ("CardInsufficientMemory on 3 GPUs: container two requested 90000 MiB of a GPU, the largest free is 15360 on a; "
            f"containers one and three each requested 100 MiB of a GPU, the largest free is 15360 on a {BEFORE}"),
        ),
        (
            TWO_CARDS, {"one": {}, "two": {"gpu": 2, "gpumem": 100}},
            ("AllocatedCardsInsufficientRequest on 1 node: container one requested 1 GPU, the most that would fit on one "
            "node is 2, on a; container two requested 2 GPUs, the most that would fit on one node is 2, on a "
            f"{APART} one is placed, container two fits on 1 of 2 requested GPUs on a"),
        ),
    ],
)  # fmt: skip
def test_each_of_several_containers_is_named_with_what_it_requests_and_what_is_free(
    nodes: dict[str, int], asked: dict[str, dict[str, Any]], said: str
) -> None:
    cluster = make.cluster(nodes=[make.hami_node(name=name, cards=n) for name, n in nodes.items()])
    containers = [make.container(name=name, **{"gpu": 1} | one) for name, one in asked.items()]
    record = cluster.see_pod(make.pod(containers=containers))
    assert record is not None
    (hold,) = make.cycle(cluster=cluster).schedule([record]).holds
    assert hold.diagnosis is not None
    assert said in [detail.text for detail in hold.diagnosis.details]


def test_of_many_containers_the_largest_requests_are_measured_and_the_others_counted() -> None:
    """A tenant's pod of a thousand containers must not cost a thousand looks at all cards."""
    looks = 0

    def counting(*args: Any) -> c.Ints:
        nonlocal looks
        looks += 1
        found: c.Ints = find(*args)
        return found

    find = cards_seen.find_refusals
    containers = [make.container(name=f"c{i}", gpu=1, gpumem=100 + i) for i in range(300)]
    cards = [make.card(sharers=400)]
    cluster = make.cluster(nodes=[make.hami_node(name="a", cards=cards)])
    record = cluster.see_pod(make.pod(containers=containers))
    assert record is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(container_figures, "find_refusals", counting)
        hold = make.cycle(cluster=cluster).why_not(record)
    assert hold is not None
    assert hold.diagnosis is not None
    text = " ".join(detail.text for detail in hold.diagnosis.details)
    assert "container c296 requested 396 MiB of a GPU" in text
    assert "and 297 other requests" in text
    assert looks < 30


FREE = re.compile(
    r"container(?:s)? ([\w, ]+?)(?: each)? requested (?:(\d+) GPUs with )?(\d+) MiB of (?:a GPU|each), "
    r"the largest free(?: on \d+ GPUs of one node)? is (\d+),? on (\w+)"
)
LEFT = re.compile(
    r"once (.+?) (?:is|are) placed, the largest free for container (\w+) is (\d+) on (\w+)"
)


def of_several(cluster: Cluster, pod: twin.Pod) -> str:
    """What a pod of several containers is told of the memory of cards; empty if it fits or has another trouble."""
    containers = [
        make.container(name=f"c{i}", gpu=one.nums, gpumem=one.mem, gpucores=one.cores)
        for i, one in enumerate(pod.containers)
    ]
    record = cluster.see_pod(make.pod(containers=containers))
    assert record is not None
    cycle = make.cycle(cluster=cluster)
    hold = cycle.why_not(record)
    details = dict(hold.diagnosis.details) if hold and hold.diagnosis else {}
    return details.get("CardInsufficientMemory", "")


@st.composite
def several(draw: st.DrawFn) -> tuple[shortage.Nodes, twin.Pod]:
    """Some nodes, and a pod of two or three containers that request MiB of cards."""
    some = draw(st.lists(card_situations.nodes(), min_size=1, max_size=4))
    asks = st.tuples(
        st.sampled_from([1, 1, 2]), st.sampled_from([3000, 8192, 12000, 40000]), st.sampled_from([0, 30, 60])
    )  # fmt: skip
    containers = tuple(
        twin.Container("app", nums, mem, twin.PERCENT_UNSET, cores)
        for nums, mem, cores in draw(st.lists(asks, min_size=2, max_size=3))
    )
    return {f"n{i}": one for i, one in enumerate(some)}, twin.Pod(containers)


def test_the_figures_of_several_containers_are_those_of_a_card_by_card_look() -> None:
    seen: Counter[str] = Counter()

    @given(several())
    @settings(max_examples=compiled.examples(300), deadline=None, derandomize=True, database=None)
    def agree(situation: tuple[shortage.Nodes, twin.Pod]) -> None:
        nodes, pod = situation
        said = of_several(built(nodes), pod)
        for names_, nums, mem, most, _ in FREE.findall(said):
            seen["free"] += 1
            for name in re.findall(r"c\d", names_):
                asked = pod.containers[int(name[1:])]
                assert (asked.nums, asked.mem) == (int(nums or 1), int(mem))
                assert int(most) == _nth_largest(nodes, asked)
        for before, name, left, node in LEFT.findall(said):
            seen["left"] += 1
            served = len(re.findall(r"c\d", before))
            failing = int(name[1:])
            assert failing == served
            asked = pod.containers[failing]
            assert int(left) < asked.mem
            # The containers before it fit there, and it does not, even with one MiB more than is left.
            assert twin.choose(nodes[node], replace(pod, containers=pod.containers[:served])).fits
            more = (*pod.containers[:served], replace(asked, mem=int(left) + 1))
            assert not twin.choose(nodes[node], replace(pod, containers=more)).fits

    agree()
    assert min(seen["free"], seen["left"]) > 0


def _nth_largest(nodes: shortage.Nodes, asked: twin.Container) -> int:
    """The most that is free for a container alone, on as many cards of one node as it requests."""
    alone = twin.Pod((replace(asked, nums=1),))
    found = []
    for cards in nodes.values():
        tried = [(card, twin.choose([card], alone)) for card in cards]
        free = sorted(
            (
                max(0, card.mem - card.used_mem)
                for card, one in tried
                if one.fits or one.reasons["CardInsufficientMemory"]
            ),
            reverse=True,
        )
        found += free[asked.nums - 1 : asked.nums]
    return max(found)


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
