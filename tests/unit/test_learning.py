"""When the demand is learnt anew, and that its cost is bounded. What is learnt is compared with a twin
elsewhere."""

from typing import Any

import numpy as np
import pytest

from scheduler.api import names, wire
from scheduler.kernels.modes import cutting
from scheduler.modes import demand_tables
from scheduler.schema import columns as c
from tests import make


def gpu_pod(i: int, **more: Any) -> wire.Pod:
    return make.pod(name=f"p{i}", **{"cpu": 2, "gpu": 1, "gpucores": 30, "gpumem": 3000, **more})


def test_it_is_learnt_again_when_a_third_more_was_seen() -> None:
    cluster = make.cluster(nodes=[make.hami_node(name="a", cards=4)])
    cycle = make.cycle(cluster=cluster)
    learnt = []
    for i in range(1000):
        cluster.see_pod(gpu_pod(i, gpucores=10 + i % 50))
        if cycle.learn():
            learnt.append(i + 1)
    assert learnt[:7] == [60, 110, 160, 210, 273, 354, 460]


def test_nothing_new_is_no_new_table_and_no_board_is_scored_again() -> None:
    cluster = make.cluster(nodes=[make.hami_node(name="a")])
    cycle = make.cycle(cluster=cluster)
    for i in range(60):
        cluster.see_pod(gpu_pod(i))
    assert cycle.learn()
    tables = cycle.learner.get_tables(0)
    assert not cycle.learn()
    assert not cycle.learn(anew=True)
    assert cycle.learner.get_tables(0) is tables


def test_nodes_that_came_after_it_was_learnt_have_their_figures_before_they_are_scored() -> None:
    """Kernels index the tables by node row and by kind of card, and check no bounds."""
    cluster = make.cluster(nodes=[make.hami_node(name="a")])
    cycle = make.cycle(cluster=cluster)
    cycle.learn()
    pod = cluster.see_pod(gpu_pod(0))
    assert pod is not None
    assert cycle.get_shape(pod) is not None
    assert cycle.could_place(pod)
    odd = [make.card(uuid="odd", mib=81920)]
    cluster.see_node(make.hami_node(name="b", cards=odd))
    assert cycle.could_place(pod)
    assert cycle.learner.tables.value.shape[0] == len(cluster.cards.kinds) == 3
    for i in range(100):
        cluster.see_node(make.hami_node(name=f"n{i}"))
    assert cycle.could_place(pod)
    assert cycle.learner.tables.price.size == cluster.nodes.capacity == 128


def test_what_a_thousand_shapes_cost_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    solved = []
    solve = cutting.find_values

    def counted(sizes: c.Ints, *rest: object) -> int:
        solved.append(sizes.size)
        return solve(sizes, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(cutting, "find_values", counted)
    cluster = make.cluster(nodes=[make.hami_node(name="a", cards=4)])
    for i in range(1000):
        more = {names.USE_TYPE: f"model-{i}"} if i % 2 else {}
        cluster.see_pod(gpu_pod(i, cpu=1 + i % 90, gpumem=100 + 13 * i, annotations=more))
    cycle = make.cycle(cluster=cluster)
    cycle.learn()
    assert max(solved) == 32
    assert len(cycle.learner._hosts[0]) == 256
    made = cycle.learner.tables
    assert made.keel.weight.size <= 64
    assert made.fgd.weight.size <= 128


def test_shapes_that_are_seen_no_more_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demand_tables, "_PRICED_MAX", 3)
    cluster = make.cluster(nodes=[make.hami_node(name="a", cards=4)])
    cycle = make.cycle(cluster=cluster)
    for i in range(600):
        cluster.see_pod(gpu_pod(i, cpu=1 + i // 60))
        cycle.learn(anew=True)
    assert len(cycle.learner._hosts[0]) == 3


def test_values_grow_with_what_is_free_and_a_whole_card_is_worth_a_card() -> None:
    cluster = make.cluster(nodes=[make.hami_node(name="a", cards=4)])
    for i in range(400):
        cluster.see_pod(gpu_pod(i, gpumem=1000 + 700 * (i % 17)))
    cycle = make.cycle(cluster=cluster)
    cycle.learn()
    # The first kind is whole cards, which nobody cuts.
    for value in cycle.learner.tables.value[1:]:
        assert value[0] == 0
        assert (np.diff(value) >= 0).all()
        assert value[c.WHOLE] == pytest.approx(1000)


def test_a_billion_cards_asked_by_mistake_change_nothing() -> None:
    """Their weight would be beyond 64 bits, and nobody else's demand would count."""
    worlds = []
    for mistakes in (0, 5):
        cluster = make.cluster(nodes=[make.hami_node(name="a", cards=4), make.hami_node(name="b")])
        for i in range(400):
            cluster.see_pod(gpu_pod(i, gpu=1 + i % 4))
        for i in range(mistakes):
            cluster.see_pod(make.pod(name=f"m{i}", cpu=1, gpu=1_000_000_000))
        cycle = make.cycle(cluster=cluster)
        cycle.learn()
        worlds.append(cycle.learner.tables)
    for name in ("price", "value", "rates"):
        assert getattr(worlds[0], name) == pytest.approx(getattr(worlds[1], name), rel=1e-9)
    assert worlds[0].keel.cards.tolist() == worlds[1].keel.cards.tolist()


def test_a_node_without_cards_is_learnt_of_however_full_the_table_of_cards_is() -> None:
    """Its first card would be the one behind the last of the table, where the table ends."""
    cluster = make.cluster(nodes=[make.hami_node(name=f"n{i:02}", cards=8) for i in range(32)])
    assert cluster.cards.columns.numa.size == 256
    cluster.see_node(make.node(name="plain"))
    cycle = make.cycle(cluster=cluster)
    cycle.learn()
    pod = cluster.see_pod(gpu_pod(0))
    assert pod is not None
    assert len(cycle.schedule([pod]).binds) == 1


def test_cpu_that_gpus_would_leave_over_anyway_is_not_spared() -> None:
    """Where pods ask as much CPU per card as there is, GPUs are left over whatever one does."""
    weights = {}
    for cpu in (2, 8, 9, 10, 16):
        cluster = make.cluster(nodes=[make.hami_node(name="a", cards=4, cpu=40)])
        for i in range(400):
            cluster.see_pod(make.pod(name=f"p{i}", cpu=cpu, gpu=1))
        cycle = make.cycle(cluster=cluster)
        cycle.learn()
        weights[cpu] = float(cycle.learner.tables.rates[c.RATE_SHORT])
    expected = {2: 0.3, 8: 0.3, 9: 0.3 * (10 / 9 - 1) / 0.25, 10: 0.0, 16: 0.0}
    assert weights == pytest.approx(expected)


def test_the_33rd_kind_of_cards_counts_as_the_one_most_like_it() -> None:
    cluster = make.cluster(
        nodes=[
            make.hami_node(name=f"n{i:02}", cards=[make.card(uuid=f"g{i}", mib=1000 * (i + 1))])
            for i in range(40)
        ]
    )
    kinds = cluster.cards.kinds.values
    assert len(kinds) == 32
    d = cluster.registers.list_card_rows(cluster.nodes.find_row("n39"))[0]
    assert kinds[int(cluster.cards.columns.kind[d])] == (100, 31_000)
    make.cycle(cluster=cluster).learn()
