"""The table of all modes over all clusters: the same pods for all, losses as by hand, and fair words."""

from typing import Any

import numpy as np
import pytest

from bench.everywhere import losses, mixes, running, standings
from bench.everywhere.cases import MODES, Figure, cases
from bench.everywhere.mixes import Mix
from bench.floors import judged
from scheduler.api.placement import Mode
from scheduler.replay.experiment import Series, Trace, TraceNode, TracePod, Workload

ALL = mixes.mixes() | mixes.two_resources() | mixes.networks()


def few(name: str) -> Mix:
    """The mix on a tenth of its nodes."""
    return ALL[name]._replace(nodes=ALL[name].nodes[::15])


@pytest.mark.parametrize("name", ["1..16, 2/4/8", "pareto", "openb CPU", "network binds"])
def test_a_seed_gives_the_same_pods_every_time_and_another_seed_others(name: str) -> None:
    mix = few(name)
    for seed in (3, (3, 1)):
        for heavy_tail in (False, True):
            first, again, other = (
                mixes.churn(name, mix, 1.0, one, heavy_tail=heavy_tail) for one in (seed, seed, 4)
            )
            same(first, again)
            assert first[0].pods != other[0].pods
        same(mixes.fill(name, mix, seed), mixes.fill(name, mix, seed))
    assert mixes.fill(name, mix, 3)[0].pods != mixes.fill(name, mix, (3, 1))[0].pods


def same(one: tuple[Trace, Workload], other: tuple[Trace, Workload]) -> None:
    assert one[0] == other[0]
    for name in ("order", "pod", "at", "lifetime"):
        assert getattr(one[1], name).tolist() == getattr(other[1], name).tolist()


@pytest.mark.parametrize("name", sorted(ALL))
def test_a_fill_asks_for_a_tenth_more_than_there_is_of_what_binds(name: str) -> None:
    mix = few(name)
    trace, workload = mixes.fill(name, mix, 1)
    there = np.array(mix.nodes).sum(axis=0)
    asked = np.array([(p.cpu_milli / 1000, p.memory_mib / 1024, *(n for _, n in p.extended)) for p in trace.pods])  # fmt: skip
    before, after = asked[:-1].sum(axis=0) / there, asked.sum(axis=0) / there
    # Rounding to a thousandth of a core may cross the line.
    is_at = (before <= mixes.FILL_LOAD + 1e-3) & (after >= mixes.FILL_LOAD - 1e-3)
    assert is_at.any()
    assert np.isinf(workload.lifetime).all()


def test_a_stream_with_a_heavy_tail_starts_with_those_who_would_run() -> None:
    mix = few("1..16, 2/4/8")
    trace, workload = mixes.churn("", mix, 1.0, 5, heavy_tail=True)
    running_at_first = int((workload.at == 0).sum())
    cores = sum(pod.cpu_milli for pod in trace.pods[:running_at_first]) / 1000
    memory = sum(pod.memory_mib for pod in trace.pods[:running_at_first]) / 1024
    assert 0.7 < max(cores / (48 * 10), memory / (192 * 10)) < 1.3
    assert mixes.churn("", mix, 1.0, 5)[1].at[0] > 0


@pytest.mark.parametrize("name", sorted(mixes.two_resources() | mixes.networks()))
def test_every_pod_fits_some_empty_node(name: str) -> None:
    nodes, draw = ALL[name]
    asked = np.stack(draw(np.random.default_rng(1), 20_000))
    fits = [(np.array(node) >= asked.T).all(axis=1) for node in set(nodes)]
    assert np.any(fits, axis=0).all()


def test_network_binds_where_the_row_says_so() -> None:
    for name, binding in (("network binds", 1), ("network and CPU bind", 2)):
        nodes, draw = ALL[name]
        asked = [float(amounts.mean()) for amounts in draw(np.random.default_rng(1), 50_000)]
        ratios = [one / there for one, there in zip(asked, nodes[0], strict=True)]
        assert max(ratios) == ratios[2]
        assert sum(ratio >= 0.75 * ratios[2] for ratio in (ratios[0], ratios[2])) == binding


def made(pods: list[tuple[int, int]], placed: list[int], *, leave: bool) -> Any:
    """On nodes of 10 cores and 100 GiB together."""
    nodes = tuple(TraceNode(f"n{i}", 5_000, 50 * 1024, 0, "") for i in range(2))
    asked = tuple(
        TracePod(f"p{i}", 1000 * cores, 1024 * gib, 0, 0, ()) for i, (cores, gib) in enumerate(pods)
    )
    n = len(pods)
    zeros = np.zeros(n, np.int64)
    series = Series(
        asked=zeros, allocated=zeros, frag=np.zeros(n), placed_at=np.zeros(n),
        node=np.array(placed), cpu_used=zeros[:2], memory_used=zeros[:2], gpu_used=((), ()),
        occupied=zeros, seconds=0.0,
    )  # fmt: skip
    lifetime = np.full(n, 1.0 if leave else np.inf)
    return Trace("", nodes, asked), Workload(np.arange(2), np.arange(n), np.arange(n, dtype=float), lifetime), series  # fmt: skip


@pytest.mark.parametrize(
    ("pods", "placed", "leave", "lost"),
    [
        # Cores 1.0 of all, memory 0.9: both bind. Parts: .35, .3, .3.
        pytest.param([(4, 30), (3, 30), (3, 30)], [0, 0, -1], False, 30 / 95, id="both bind"),
        # Cores 1.0, memory 0.3: only cores count.
        pytest.param([(4, 30), (3, 0), (3, 0)], [0, 0, -1], False, 3 / 10, id="cores bind"),
        pytest.param([(4, 30), (3, 0), (3, 0)], [-1, 0, 1], False, 4 / 10, id="one that is large"),
        pytest.param([(4, 1), (4, 1), (1, 1), (3, 1)], [-1, -1, 0, -1], True, 3 / 4, id="second half"),
        pytest.param([(4, 1), (4, 1)], [0, 0], True, 0, id="none"),
    ],
)  # fmt: skip
def test_what_is_lost_is_the_part_of_what_binds(
    pods: list[tuple[int, int]], placed: list[int], leave: bool, lost: float
) -> None:
    found = losses.lost_percent(*made(pods, placed, leave=leave))
    assert found == pytest.approx(100 * lost)


@pytest.mark.parametrize(
    ("ours", "theirs", "is_higher_better", "behind", "is_level"),
    [
        # Gaps 1, 2, 3: mean 2, error 0.577.
        pytest.param([2, 4, 6], [1, 2, 3], False, 2, False, id="clearly behind"),
        pytest.param([2, 4, 6], [1, 2, 3], True, -2, True, id="more is better: ahead"),
        # Gaps -1, 0, 4: mean 1, error 1.53.
        pytest.param([1, 2, 8], [2, 2, 4], False, 1, True, id="behind by less than two errors"),
        pytest.param([1, 1, 1], [0.9, 0.9, 0.9], False, 0.1, False, id="the errors are of pairs"),
        pytest.param([5], [4], False, 1, False, id="one seed"),
        pytest.param([4], [4], False, 0, True, id="one seed, equal"),
    ],
)
def test_level_is_within_two_errors_of_the_paired_difference(
    ours: list[float], theirs: list[float], is_higher_better: bool, behind: float, is_level: bool
) -> None:
    figure = Figure("", "lost %", is_higher_better)
    worst = [-99.0 if is_higher_better else 99.0] * len(ours)
    found = standings.row(figure, "CPU", {"keel": ours, "fgd": theirs, "first-fit": worst})
    assert found["best_other"] == "fgd"
    assert found["behind"] == pytest.approx(behind)
    assert found["is_first_or_level"] is is_level
    assert found["first"] == ("fgd" if behind > 0 else "keel")


def test_a_group_is_compared_with_the_one_mode_that_is_best_over_all_its_rows() -> None:
    lost = Figure("", "lost %")
    rows = {
        "a": standings.row(lost, "CPU", {"keel": [3.0], "fgd": [2.0], "best-fit": [8.0]}),
        "b": standings.row(lost, "CPU", {"keel": [3.0], "fgd": [6.0], "best-fit": [1.0]}),
        "c": standings.row(
            Figure("", "GPU %", is_higher_better=True), "openb", {"keel": [90.0], "fgd": [95.0]}
        ),
        "d": standings.row(Figure("", "wait"), "waits", {"keel": [9.0], "fgd": [1.0]}),
    }
    whole = standings.summary(rows)
    assert (whole["rows"], whole["first"], whole["first_or_level"]) == (4, 0, 0)
    assert set(whole["groups"]) == {"CPU", "openb"}
    assert (whole["groups"]["CPU"]["best_other"], whole["groups"]["CPU"]["behind"]) == ("fgd", -1.0)
    assert whole["groups"]["openb"]["behind"] == 5.0
    told = judged("everywhere", {"summary": whole}, running.floors(quick=False))
    assert {one["figure"].partition("summary.")[2]: one["met"] for one in told} == {
        "groups.CPU.behind": True,
        "groups.openb.behind": False,
        "share_first_or_level": False,
    }
    assert all(len(line) for line in (*standings.table(rows), *standings.told(whole)))


def test_every_mode_of_the_product_is_in_the_table_and_rows_have_names_of_their_own() -> None:
    assert set(MODES) == set(Mode) - {Mode.RANDOM, Mode.REQUESTED_TO_CAPACITY_RATIO}
    for quick in (False, True):
        names = [figure.name for case in cases(quick=quick) for figure in case.figures]
        assert len(set(names)) == len(names)
    assert len(names) < 20


def test_seeds_of_a_report_are_none_of_those_that_weights_are_chosen_on() -> None:
    asked = running.Request()
    for case in asked.cases().values():
        assert max(asked.seeds_of(case)) < running.TRAINING


def test_rows_and_modes_can_be_chosen() -> None:
    asked = running.Request(quick=True, modes=("keel", "gpu-packing"), seeds=(7,), only="fill$")
    found = {case.figures[0].name: asked.modes_of(case) for case in asked.cases().values()}
    assert found["openb default: fill"] == ("keel", "gpu-packing")
    assert found["12 nodes, 1..16, 2/4/8: fill"] == ("keel",)
    assert all(asked.seeds_of(case) == (7,) for case in asked.cases().values())


def test_a_case_plays_the_same_run_every_time() -> None:
    (case,) = running.Request(quick=True, only="^5 nodes.*fill$").cases().values()
    (first,), (again,) = (case.run("first-fit", 2) for _ in range(2))
    assert first == again
    assert 0 < first < 100


def test_gpus_and_cores_count_alike_where_both_are_lost() -> None:
    nodes = (TraceNode("g", 8_000, 1024, 4, "T4"), TraceNode("c", 8_000, 1024, 0, ""))
    pods = (
        TracePod("g0", 4_000, 0, 1, 1000, ()),
        TracePod("g1", 2_000, 0, 3, 1000, ()),
        TracePod("c0", 10_000, 0, 0, 0, ()),
    )
    n = np.arange(3)
    zeros = np.zeros(3, np.int64)
    series = Series(
        asked=zeros, allocated=zeros, frag=np.zeros(3), placed_at=np.zeros(3),
        node=np.array([0, -1, -1]), cpu_used=zeros[:2], memory_used=zeros[:2],
        gpu_used=((), ()), occupied=zeros, seconds=0.0,
    )  # fmt: skip
    workload = Workload(n[:2], n, n.astype(float), np.full(3, np.inf))
    found = losses.lost_of_both_percent(Trace("", nodes, pods), workload, series)
    assert found == pytest.approx((75 + 75) / 2)
