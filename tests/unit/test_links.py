"""The policy ``topology-aware``: cards by the links between them, against all sets that there are."""

from __future__ import annotations

import itertools
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import names, wire
from scheduler.api.cards import list_uses
from scheduler.kernels.devices import linked
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from tests import make, slices

Scores = list[list[int]]
MODE = names.MODE


def make_node(
    scores: Scores | None, *, numa: int = 1, text: str | None = None, name: str = "n"
) -> wire.Node:
    n = 8 if scores is None else len(scores)
    cards = [make.card(uuid=f"GPU-{i}", index=i, numa=i * numa // n) for i in range(n)]
    node = make.hami_node(name=name, cards=cards, cpu=640)
    told = [
        {
            "uuid": f"GPU-{i}",
            "score": {f"GPU-{j}": scores[i][j] for j in range(n) if j != i and scores[i][j]},
        }
        for i in range(n if scores else 0)
        if scores is not None
    ]
    assert node.metadata.annotations is not None
    node.metadata.annotations[names.HAMI_SCORE] = json.dumps(told) if text is None else text
    return node


def place(cluster: Cluster, name: str, gpu: int, policy: str, **notes: str) -> list[int]:
    """The indices of the cards that a pod gets, in the order in which they are given."""
    annotations = {names.HAMI_GPU_POLICY: policy, **notes}
    record = cluster.see_pod(make.pod(name=name, gpu=gpu, annotations=annotations))
    assert record is not None
    binds = make.cycle(cluster=cluster).schedule([record]).binds
    checks.verify(cluster)
    return [int(use.uuid.removeprefix("GPU-")) for one in binds for use in list_uses(one.devices)]


def choose_by_twin(scores: Scores, walk: list[int], wanted: int) -> list[int]:
    """HAMi's choice among these cards, in the order of its walk."""
    if len(walk) < wanted:
        return []
    if len(walk) == wanted:
        return walk
    if wanted == 1:
        return [min(walk, key=lambda i: sum(scores[i][j] for j in walk if j != i))]
    # ``max`` takes the first of equals, and only what the earlier card says of a pair counts.
    best = max(
        itertools.combinations(walk, wanted),
        key=lambda some: sum(scores[i][j] for i, j in itertools.combinations(some, 2)),
    )
    return list(best)


def draw_scores(seed: int, n: int, kinds: int) -> Scores:
    """Scores of several kinds of machines: few different ones, as real links have, or all different; also one-sided."""
    rng = random.Random(seed)
    values = [0, 10, 20, 50, 100, 200, 1800][:kinds] if kinds < 8 else range(2000)
    return [[rng.choice(values) for _ in range(n)] for _ in range(n)]


@settings(max_examples=slices.count_examples(120), deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(2, 9),
    st.integers(1, 8),
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
)
def test_cards_are_those_that_are_linked_best(
    seed: int, n: int, kinds: int, wanted: list[int]
) -> None:
    scores = draw_scores(seed, n, kinds)
    cluster, idle = make.cluster(nodes=[make_node(scores)]), list(range(n))
    for i, gpu in enumerate(wanted):
        # All cards are idle or wholly taken: the walk begins at the end of those that are left.
        expected = choose_by_twin(scores, idle[::-1], gpu)
        assert place(cluster, f"p{i}", gpu, "topology-aware") == expected
        idle = [one for one in idle if one not in expected]


@pytest.mark.parametrize(("n", "wanted"), [(16, 4), (16, 8), (12, 6)])
def test_it_is_exact_for_16_cards(n: int, wanted: int) -> None:
    scores = draw_scores(n + wanted, n, 8)
    cluster = make.cluster(nodes=[make_node(scores)])
    expected = choose_by_twin(scores, list(range(n))[::-1], wanted)
    assert place(cluster, "p", wanted, "topology-aware") == expected


def test_of_very_many_cards_a_good_set_is_taken_in_bounded_time() -> None:
    """40 cards in islands of eight: there are 76,904,685 sets of eight."""
    assert linked._STEPS_MAX <= 1 << 17
    scores = [[500 if i // 8 == j // 8 else 10 for j in range(40)] for i in range(40)]
    cluster = make.cluster(nodes=[make_node(scores)])
    assert len({card // 8 for card in place(cluster, "p", 8, "topology-aware")}) == 1


def test_two_islands_stay_whole_as_long_as_possible() -> None:
    scores = [[200 if i // 4 == j // 4 else 10 for j in range(8)] for i in range(8)]
    cluster = make.cluster(nodes=[make_node(scores)])
    one = place(cluster, "one", 1, "topology-aware")
    four = place(cluster, "four", 4, "topology-aware")
    assert {card // 4 for card in four} == {1 - one[0] // 4}
    # The next single card is of the island that is broken already.
    assert place(cluster, "two", 1, "topology-aware")[0] // 4 == one[0] // 4


def test_with_numa_bind_the_first_socket_with_enough_serves() -> None:
    scores = [[200 if i % 2 == j % 2 else 10 for j in range(8)] for i in range(8)]
    cluster = make.cluster(nodes=[make_node(scores, numa=2)])
    got = place(cluster, "p", 2, "topology-aware", **{names.NUMA_BIND: "true"})
    assert len({card // 4 for card in got}) == 1
    assert len({card % 2 for card in got}) == 1


@pytest.mark.parametrize(
    "text", ["", "[", "{}", '[{"uuid":1}]', '[{"uuid":"GPU-0","score":{"GPU-1":-5}}]']
)
def test_scores_that_cannot_be_read_count_as_none(text: str) -> None:
    cluster = make.cluster(nodes=[make_node(None, text=text)])
    assert place(cluster, "p", 2, "topology-aware") == [7, 6]


def test_without_the_policy_links_do_not_matter_and_new_links_are_taken_up() -> None:
    scores = [[500 if {i, j} == {0, 3} else 10 for j in range(8)] for i in range(8)]
    cluster = make.cluster(nodes=[make_node(None)])
    cluster.see_node(make_node(scores))
    assert place(cluster, "plain", 2, "spread") == [7, 6]
    assert place(cluster, "linked", 2, "topology-aware") == [3, 0]


PER_PAIR = (0, 10, 20, 60, 110, 160, 700, 1860)


def score_by_twin(scores: Scores, idle: list[int], wanted: int) -> int:
    """The milli-points of the best set: 1 for a score of 1 of a mean pair up to 60, 40 for the 1,800 of all NVLinks."""
    some = choose_by_twin(scores, idle[::-1], wanted)
    pairs = [scores[i][j] for i, j in itertools.combinations(some, 2)]
    if not pairs:
        return 0
    total, n = sum(pairs), len(pairs)
    if total <= 60 * n:
        return total * 1000 // n
    return min(99_999, 60_000 + (total - 60 * n) * 40_000 // (1_800 * n))


def make_alike(rng: random.Random, n_nodes: int) -> tuple[dict[str, Scores], list[wire.Node]]:
    """Nodes that differ by their links only."""
    tables = {}
    for i in range(n_nodes):
        values = rng.sample(PER_PAIR, 3)
        scores = [[0] * 6 for _ in range(6)]
        for a, b in itertools.combinations(range(6), 2):
            scores[a][b] = scores[b][a] = rng.choice(values)
        tables[f"n{i}"] = scores
    return tables, [make_node(scores, name=name) for name, scores in tables.items()]


LINKED = {names.HAMI_GPU_POLICY: "topology-aware"}


@settings(max_examples=slices.count_examples(80), deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from(
        [{MODE: "first-fit"}, {names.HAMI_NODE_POLICY: "binpack"}, {MODE: "most-allocated"}]
    ),
    st.lists(st.integers(1, 4), min_size=1, max_size=5),
)
def test_of_nodes_that_are_worth_the_same_the_best_linked_one_is_taken(
    seed: int, placement: dict[str, str], wanted: list[int]
) -> None:
    """Each pod is alone on all nodes, which are alike but for their links; some cards of all nodes are taken before."""
    rng = random.Random(seed)
    tables, nodes = make_alike(rng, rng.randint(2, 5))
    cluster, taken = make.cluster(nodes=nodes), rng.sample(range(6), rng.randrange(3))
    for name in tables:
        claim = ",NVIDIA,16384,100:".join(f"GPU-{i}" for i in taken)
        if taken:
            notes = {"hami.io/vgpu-devices-allocated": f"{claim},NVIDIA,16384,100:;"}
            cluster.see_pod(
                make.pod(name=f"on-{name}", node=name, gpu=len(taken), annotations=notes)
            )
    idle = [i for i in range(6) if i not in taken]
    for i, gpu in enumerate(wanted):
        record = cluster.see_pod(
            make.pod(name=f"p{i}", gpu=gpu, annotations={**LINKED, **placement})
        )
        assert record is not None
        (bind,) = make.cycle(cluster=cluster).schedule([record]).binds
        points = {name: score_by_twin(scores, idle, gpu) for name, scores in tables.items()}
        assert bind.node == max(points, key=lambda name: (points[name], -int(name[1:])))
        got = [int(use.uuid.removeprefix("GPU-")) for use in list_uses(bind.devices)]
        assert got == choose_by_twin(tables[bind.node], idle[::-1], gpu)
        checks.verify(cluster)
        cluster.drop_pod(record.uid)


@pytest.mark.parametrize("policy", ["", "binpack", "spread", "numa,mutex"])
def test_pods_without_the_policy_go_where_they_go_without_links(policy: str) -> None:
    rng, placed = random.Random(len(policy)), []
    _, nodes = make_alike(rng, 5)
    plain = [make_node([[0] * 6 for _ in range(6)], name=node.metadata.name) for node in nodes]
    pods = [(rng.randint(1, 4), rng.choice(["", "binpack", "spread"])) for _ in range(8)]
    for some in (nodes, plain):
        cluster = make.cluster(nodes=some)
        for i, (gpu, node_policy) in enumerate(pods):
            notes = {names.HAMI_GPU_POLICY: policy, names.HAMI_NODE_POLICY: node_policy}
            said = {key: word for key, word in notes.items() if word}
            cluster.see_pod(make.pod(name=f"p{i}", gpu=gpu, annotations=said))
        outcome = make.cycle(cluster=cluster).schedule(list(cluster.pods.values()))
        placed.append([(one.uid, one.node, one.devices) for one in outcome.binds])
    assert placed[0]
    assert placed[0] == placed[1]


def test_links_come_before_a_little_loss_of_keel_and_after_a_fuller_node_of_a_node_policy() -> None:
    """One GPU is in use on ``fuller``, whose links are worse."""
    well = [[660 if i != j else 0 for j in range(8)] for i in range(8)]
    badly = [[10 if i != j else 0 for j in range(8)] for i in range(8)]
    for placement, wanted in (({}, "well"), ({names.HAMI_NODE_POLICY: "binpack"}, "fuller")):
        nodes = [make_node(badly, name="fuller"), make_node(well, name="well")]
        cluster = make.cluster(nodes=nodes)
        notes = {"hami.io/vgpu-devices-allocated": "GPU-0,NVIDIA,16384,100:;"}
        cluster.see_pod(make.pod(name="there", node="fuller", gpu=1, annotations=notes))
        record = cluster.see_pod(make.pod(name="p", gpu=2, annotations={**LINKED, **placement}))
        assert record is not None
        assert make.cycle(cluster=cluster).schedule([record]).binds[0].node == wanted
