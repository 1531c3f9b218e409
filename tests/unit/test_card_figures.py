"""The figures of cards that a pod is told, against a twin that looks at one card after the other."""

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import names
from scheduler.kernels import diagnose
from scheduler.kernels.devices import choose
from scheduler.plugins.rules import gpu_cards
from scheduler.schema import columns as c
from scheduler.shapes import diagnosis
from scheduler.state.cluster import Cluster
from tests import make
from tests.model import card_situations
from tests.oracles import hami as twin
from tests.oracles import shortage

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
        start = cluster.registers.list_card_rows(cluster.nodes.find_row(name))[0]
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
    shape = cycle.get_shape(record)
    assert shape is not None
    cycle.boards.refresh(shape)
    world, nodes, cards = (
        cycle.boards.get_world(shape),
        cluster.nodes.columns,
        cluster.cards.columns,
    )
    rows = diagnosis.list_rows(cluster)
    rows = rows[
        [
            choose.choose_devices(nodes, cards, shape.ask, int(row), world.scratch) < 0
            for row in rows
        ]
    ]
    bits: c.Ints = cycle.boards.find_refusals(shape, rows)
    judged = diagnosis.gather_refusals(cluster, shape, world, rows, bits)
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
    @settings(max_examples=300, deadline=None, derandomize=True, database=None)
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
APART = "the containers do not fit together: once container"


@pytest.mark.parametrize(
    ("nodes", "asked", "said"),
    [
        (
            ONE_CARD, {"one": {"gpumem": 9000}, "two": {"gpumem": 9000}},
            [f"CardInsufficientMemory on 1 GPU: {APART} one is placed, the largest free for container two is 6360 on a"],
        ),
        (
            ONE_CARD, {"one": {"gpumem": 9000}, "two": {"limits": {names.GPU_MEMORY_PERCENT: 60}}},
            [f"CardInsufficientMemory on 1 GPU: {APART} one is placed, the largest free for container two is 41 % on a"],
        ),
        (
            ONE_CARD, {name: {"gpumem": 100, "gpucores": 60} for name in "abcde"},
            [f"CardInsufficientCore on 1 GPU: {APART} a is placed, the largest free for container b is 40 % on a"],
        ),
        (
            ONE_CARD, {"one": {"gpumem": 100}, "two": {"gpu": 3, "gpumem": 100}},
            ["NodeInsufficientDevice on 1 node: container two requested 3 GPUs, the most on one node is 1, on a"],
        ),
        (
            TWO_CARDS, {"one": {"gpumem": 100}, "two": {"gpumem": 90000}, "three": {"gpumem": 80000}, "four": {"gpumem": 90000}},
            [("CardInsufficientMemory on 3 GPUs: containers two and four each requested 90000 MiB of a GPU and container "
              "three 80000 MiB of a GPU, the largest free is 15360 on a")],
        ),
        (
            # On b, two is short; on a, each fits.
            TWO_CARDS, {"one": {}, "two": {"gpu": 2}},
            [f"AllocatedCardsInsufficientRequest on 1 node: {APART} one is placed, container two fits on 1 of 2 requested GPUs on a",
             "NodeInsufficientDevice on 1 node: container two requested 2 GPUs, the most on one node is 1, on b",
             f"CardInsufficientMemory on 1 GPU: {APART} one is placed, the largest free for container two is 0 % on a"],
        ),
        (
            # The walk ends at the init container everywhere, and the other fits on a.
            TWO_CARDS, {"app": {"gpu": 2, "gpumem": 100}, "init": {"init": True, "gpu": 3, "gpumem": 100}},
            ["NodeInsufficientDevice on 2 nodes: container init requested 3 GPUs, the most on one node is 2, on a"],
        ),
        (
            # The walk ends at one everywhere, and two would fit nowhere either.
            TWO_CARDS, {"one": {"gpumem": 20000}, "two": {"gpu": 3, "gpumem": 100}},
            ["NodeInsufficientDevice on 2 nodes: container two requested 3 GPUs, the most on one node is 2, on a",
             "CardInsufficientMemory on 3 GPUs: container one requested 20000 MiB of a GPU, the largest free is 15360 on a"],
        ),
        (
            ONE_CARD, {"one": {"gpumem": 100}, "two": {"gpumem": 100, "gpucores": 100}},
            [f"ExclusiveDeviceAllocateConflict on 1 GPU: {APART} one is placed, container two fits on 0 of 1 requested GPU on a"],
        ),
    ],
)  # fmt: skip
def test_the_containers_that_are_short_are_named_with_what_they_request_and_what_is_free(
    nodes: dict[str, int], asked: dict[str, dict[str, Any]], said: list[str]
) -> None:
    cluster = make.cluster(nodes=[make.hami_node(name=name, cards=n) for name, n in nodes.items()])
    containers = {
        name: make.container(name=name, **{"gpu": 1} | one) for name, one in asked.items()
        if not one.pop("init", False)
    }  # fmt: skip
    first = [make.container(name=name, **{"gpu": 1} | one) for name, one in asked.items() if name not in containers]  # fmt: skip
    pod = make.pod(containers=list(containers.values()), init_containers=first)
    record = cluster.see_pod(pod)
    assert record is not None
    (hold,) = make.cycle(cluster=cluster).schedule([record]).holds
    assert hold.diagnosis is not None
    assert [detail.text for detail in hold.diagnosis.details] == said


def test_of_many_containers_the_largest_requests_are_evaluated() -> None:
    """A tenant's pod of a thousand containers must not cost a thousand looks at all cards."""
    looks = 0

    def counting(*args: Any) -> Any:
        nonlocal looks
        looks += 1
        return count(*args)

    count = diagnose.count_card_codes
    containers = [make.container(name=f"c{i}", gpu=1, gpumem=20000 + i) for i in range(300)]
    cards = [make.card(sharers=400)]
    cluster = make.cluster(nodes=[make.hami_node(name="a", cards=cards)])
    record = cluster.see_pod(make.pod(containers=containers))
    assert record is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diagnose, "count_card_codes", counting)
        hold = make.cycle(cluster=cluster).explain_hold(record)
    assert hold is not None
    assert hold.diagnosis is not None
    text = " ".join(detail.text for detail in hold.diagnosis.details)
    assert "and container c298 20298 MiB of a GPU" in text
    assert text.endswith("; and other requests")
    assert looks < 30


LEFT = re.compile(
    r"once (.+?) (?:is|are) placed, the largest free for container (\w+) is (\d+) on (\w+)"
)
MOST = re.compile(r", the (?:largest free|most) .*?is (\d+)(?: %)?,? on (n\d)")
OF_ONE = ("NodeInsufficientDevice", "AllocatedCardsInsufficientRequest", "CardInsufficientMemory", "CardInsufficientCore")  # fmt: skip


def describe_several(cluster: Cluster, pod: twin.Pod) -> dict[str, str]:
    """By reason, the text of a pod of several containers; empty if the pod fits."""
    containers: dict[str, list[Any]] = {"init": [], "app": []}
    for i, one in enumerate(pod.containers):
        containers[one.kind].append(
            make.container(name=f"c{i}", gpu=one.nums, gpumem=one.mem, gpucores=one.cores)
        )
    record = cluster.see_pod(
        make.pod(
            containers=containers["app"],
            init_containers=containers["init"],
            annotations={names.HAMI_GPU_POLICY: pod.policy},
        )
    )
    assert record is not None
    hold = make.cycle(cluster=cluster).explain_hold(record)
    return dict(hold.diagnosis.details) if hold and hold.diagnosis else {}


@st.composite
def several(draw: st.DrawFn) -> tuple[shortage.Nodes, twin.Pod]:
    """Some nodes, and a pod of two to four containers that request MiB of cards, perhaps an init container first."""
    some = draw(st.lists(card_situations.nodes(), min_size=1, max_size=4))
    asks = st.tuples(
        st.sampled_from([1, 1, 2, 3]), st.sampled_from([3000, 8192, 12000, 40000]), st.sampled_from([0, 30, 60, 100])
    )  # fmt: skip
    drawn = draw(st.lists(asks, min_size=2, max_size=4))
    kinds = [draw(st.sampled_from(["app", "init"])), *["app"] * (len(drawn) - 1)]
    containers = tuple(
        twin.Container(kind, nums, mem, twin.PERCENT_UNSET, cores)
        for kind, (nums, mem, cores) in zip(kinds, drawn, strict=True)
    )
    return {f"n{i}": one for i, one in enumerate(some)}, twin.Pod(containers)


def find_named(text: str) -> dict[int, tuple[int, str]]:
    """By container that a text says is short, the figure and its node."""
    found = {}
    for clause in text.split("; "):
        if (most := MOST.search(clause)) and "together" not in clause:
            for name in re.findall(r"\bc(\d)", clause[: most.start()]):
                found[int(name)] = int(most[1]), most[2]
    return found


def test_exactly_the_containers_that_are_short_are_named_with_a_figure_below_their_request() -> (
    None
):
    seen: Counter[str] = Counter()

    @given(several())
    @settings(max_examples=300, deadline=None, derandomize=True, database=None)
    def agree(situation: tuple[shortage.Nodes, twin.Pod]) -> None:
        nodes, pod = situation
        said = describe_several(built(nodes), pod)
        if not said:
            return
        walks = {name: twin.choose(cards, pod).reasons for name, cards in nodes.items()}
        alone = [
            {name: twin.choose(cards, replace(pod, containers=(one,))) for name, cards in nodes.items()}
            for one in pod.containers
        ]  # fmt: skip
        for reason in set(OF_ONE) & said.keys():
            named = find_named(said[reason])
            for i, (figure, node) in named.items():
                asked = pod.containers[i]
                assert figure < {"CardInsufficientMemory": asked.mem, "CardInsufficientCore": asked.cores}.get(reason, asked.nums)  # fmt: skip
                assert alone[i][node].reasons[reason]
                assert not alone[i][node].fits
            there = [name for name, reasons in walks.items() if reasons[reason]]
            counts = [walks[name][reason] for name in there]
            n = len(there) if reason in OF_ONE[:2] else sum(counts)
            if re.search(r" on (\d+)", said[reason])[1] != str(n):  # type: ignore[index]
                # With the nodes of a container to which the walk never comes.
                seen["hidden"] += 1
                continue
            short = {
                i: [name for name in there if not one[name].fits and one[name].reasons[reason]]
                for i, one in enumerate(alone)
            }
            short = {i: at for i, at in short.items() if at}
            nowhere = {i for i in short if not any(alone[i][name].fits for name in there)}
            apart = [name for name in there if not any(name in at for at in short.values())]
            expected = nowhere or (set() if apart else set(short))
            # More than three requests are counted, and more cores than there are can be in use.
            if "other request" not in said[reason] and all(
                pod.containers[i].cores for i in expected
            ):
                assert named.keys() == expected
            assert ("do not fit together" in said[reason]) == (not nowhere and bool(apart))
            seen[f"{reason} {'apart' if apart and not nowhere else 'short'}"] += 1
        for i, one in enumerate(alone):
            if not any(choice.fits for choice in one.values()) and said.keys() <= {*OF_ONE}:
                seen["nowhere"] += 1
                assert any(i in find_named(text) for text in said.values()) or any(
                    "other request" in text for text in said.values()
                )
        for before, name, left, node in LEFT.findall(said.get("CardInsufficientMemory", "")):
            seen["left"] += 1
            failing = int(name[1:])
            asked = pod.containers[failing]
            assert int(left) < asked.mem
            assert before.removeprefix("container")[0] in " s"
            # The containers before it fit there, and it does not, even with one MiB more than is left.
            assert twin.choose(nodes[node], replace(pod, containers=pod.containers[:failing])).fits
            more = (*pod.containers[:failing], replace(asked, mem=int(left) + 1))
            assert not twin.choose(nodes[node], replace(pod, containers=more)).fits

    agree()
    assert {"hidden", "nowhere", "left", *(f"{one} short" for one in OF_ONE)} <= seen.keys()


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
