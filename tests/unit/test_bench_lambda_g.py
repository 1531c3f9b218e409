"""The five-scenario benchmark: published figures to the digit, and the product's part in it told truly."""

import json
import sys

import pytest

from bench import lambda_g, lambda_g_product, lambda_g_reference
from bench.lambda_g_metrics import Figures, measure, total
from bench.lambda_g_workload import (
    GPU_COMPUTE,
    NODE_KINDS,
    POD_KINDS,
    SCENARIOS,
    Vector,
    Workload,
    draw,
)
from scheduler.api.placement import Mode
from tests.oracles import lambda_g as formulas

PUBLISHED = 42
MODES = lambda_g_product.modes()
# Balance by scenario, then stranded, waste and pending in total: the author's script at seed 42.
FIGURES = {
    "upstream-least": ((72.0, 70.5, 75.3, 65.1, 65.3), 92, 205_249, 278),
    "upstream-most": ((70.0, 70.0, 70.0, 70.0, 70.0), 0, 0, 660),
    "upstream-balanced": ((78.7, 81.3, 79.4, 72.3, 74.1), 44, 144_588, 263),
    "upstream-dominant": ((79.4, 76.6, 78.9, 68.8, 73.8), 59, 116_304, 268),
    "upstream-v3": ((81.8, 81.9, 82.8, 74.7, 76.7), 34, 67_975, 266),
}


def reference(score: lambda_g_reference.Score, *, above_zero: bool) -> list[Figures]:
    found = []
    for scenario in SCENARIOS:
        workload = draw(scenario, PUBLISHED)
        placement = lambda_g_reference.place(workload, score, above_zero=above_zero)
        found.append(measure(workload, placement))
    return found


@pytest.mark.parametrize("name", FIGURES)
def test_the_published_figures_come_out_to_the_digit(name: str) -> None:
    balance, stranded, waste, pending = FIGURES[name]
    score, above_zero = lambda_g_reference.STRATEGIES[name]
    found = reference(score, above_zero=above_zero)
    everything = total(found)
    assert tuple(one.balance for one in found) == balance
    assert (everything.stranded, everything.waste, everything.pending) == (stranded, waste, pending)


def test_the_first_formula_is_level_with_least_allocated_on_its_authors_own_seed() -> None:
    found = total(reference(formulas.lambda_g, above_zero=True))
    assert round(found.balance, 1) == 69.6
    assert (found.stranded, found.waste, found.pending) == (76, 146_014, 274)


@pytest.mark.parametrize(
    ("scenario", "n_nodes", "n_pods"),
    [("S1", 30, 120), ("S2", 20, 80), ("S3", 20, 60), ("S4", 25, 100), ("S5", 60, 300)],
)
def test_a_scenario_has_its_nodes_and_pods_within_their_ranges(
    scenario: str, n_nodes: int, n_pods: int
) -> None:
    workload = draw(scenario, 7)
    assert (len(workload.nodes), len(workload.pods)) == (n_nodes, n_pods)
    assert draw(scenario, 7) == workload != draw(scenario, 8)
    for pod in workload.pods:
        assert any(
            all(least <= asked <= most for asked, (least, most) in zip(pod, ranges, strict=True))
            for ranges in POD_KINDS.values()
        )


# Shares 1, 0.25, 0.5, 0.5: variance 0.07421875, so 70.3125 of 100 for evenness.
UNEVEN = (8.0, 8.0, 0.0, 0.0, 25.0, 5.0)


def test_figures_of_one_uneven_node_by_hand() -> None:
    workload = Workload(("bal", "bal"), (UNEVEN,))
    assert measure(workload, [1]) == Figures(
        balance=79.2, stranded=1, waste=103, sched_pct=100.0, pending=0, placed=1, gpu_compute_pct=0.0
    )  # fmt: skip


def test_a_level_node_strands_nothing_however_full() -> None:
    full = NODE_KINDS["gpu-inf"]
    assert measure(Workload(("gpu-inf", "gpu-train"), (full,)), [0]) == Figures(
        balance=100.0, stranded=0, waste=0, sched_pct=100.0, pending=0, placed=1, gpu_compute_pct=33.3
    )  # fmt: skip


def test_a_cluster_that_refuses_everything_has_a_balance_of_70() -> None:
    figures = measure(Workload(("bal",), (UNEVEN,)), [-1])
    assert (figures.balance, figures.pending, figures.placed) == (70.0, 1, 0)


def test_scenarios_are_averaged_where_a_sum_says_nothing() -> None:
    one = Figures(80.0, 1, 10.0, 50.0, 2, 2, 40.0)
    two = Figures(70.0, 2, 5.0, 100.0, 0, 6, 60.0)
    assert total([one, two]) == Figures(75.0, 3, 15.0, 75.0, 2, 8, 50.0)


def test_differences_are_paired_by_seed() -> None:
    def seed(ours: float, base: float) -> lambda_g.Results:
        rows = dict.fromkeys(lambda_g.BASELINES, base) | {"ours": ours}
        return {
            name: {s: Figures(balance, 0, 0, 0, 0, 0, 0) for s in SCENARIOS}
            for name, balance in rows.items()
        }

    found = lambda_g.summary([seed(71, 70), seed(83, 80)])["ours"]
    assert found["total"]["balance"] == 77
    assert found["scenarios"]["S4"]["balance"] == 77
    for base in lambda_g.BASELINES:
        assert found["minus"][base]["balance"] == [2, 1]


def test_the_published_seed_is_none_of_the_others() -> None:
    seeds = lambda_g.other_seeds(300)
    assert len(set(seeds)) == 300
    assert PUBLISHED not in seeds
    assert lambda_g.other_seeds(3) == [1, 2, 3]


def test_what_is_asked_is_rounded_up_and_by_less_than_a_step() -> None:
    for pod in draw("S3", PUBLISHED).pods:
        asked = lambda_g_product.as_asked(pod)
        for d, (drawn, read) in enumerate(zip(pod, asked, strict=True)):
            step = 1 if d == GPU_COMPUTE else 0.001
            assert drawn - 1e-12 <= read < drawn + step


def test_every_mode_is_measured_but_those_left_out_with_a_reason() -> None:
    assert set(MODES) | set(lambda_g_product.LEFT_OUT) <= set(Mode)
    assert {Mode.LEAST_ALLOCATED, Mode.LAMBDA_G, Mode.LAMBDA_G_V3} <= set(MODES)
    assert all(lambda_g_product.LEFT_OUT.values())


def test_a_mode_for_the_simulator_only_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Mode, "__doc__", "Modes. ``lambda-g`` and MOST_ALLOCATED are simulator only."
    )
    left = set(MODES) - set(lambda_g_product.modes())
    assert left == {Mode.LAMBDA_G, Mode.MOST_ALLOCATED}


def steps(amounts: Vector) -> list[int]:
    """Amounts in whole thousandths, GPU compute in whole percents."""
    return [round(x * (1 if d == GPU_COMPUTE else 1000)) for d, x in enumerate(amounts)]


class Replay:
    """The product's rule of what fits, in plain integers, followed pod by pod."""

    def __init__(self, workload: Workload) -> None:
        self.capacities = [steps(capacity) for capacity in workload.capacities]
        self.used = [[0] * 6 for _ in self.capacities]

    def fitting(self, asked: list[int]) -> list[int]:
        return [
            node
            for node, (capacity, used) in enumerate(zip(self.capacities, self.used, strict=True))
            if all(u + a <= c for c, u, a in zip(capacity, used, asked, strict=True))
        ]

    def charge(self, node: int, asked: list[int]) -> None:
        self.used[node] = [u + a for u, a in zip(self.used[node], asked, strict=True)]


@pytest.mark.parametrize("scenario", ["S2", "S4"])
@pytest.mark.parametrize("mode", MODES)
def test_a_pod_is_placed_where_it_fits_and_is_pending_only_where_it_fits_nowhere(
    mode: Mode, scenario: str
) -> None:
    workload = draw(scenario, 7)
    placement = lambda_g_product.place(workload, mode)
    figures = measure(workload, placement)
    assert figures.placed + figures.pending == len(workload.pods) == len(placement)
    assert figures.pending > 0
    replay = Replay(workload)
    for pod, node in zip(workload.pods, placement, strict=True):
        asked = steps(lambda_g_product.as_asked(pod))
        fitting = replay.fitting(asked)
        assert node in fitting or (node == -1 and not fitting)
        if fitting:
            replay.charge(node, asked)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_lambda_g_v3_is_the_published_one_with_gpu_nodes_kept_free_and_no_score_refused(
    scenario: str,
) -> None:
    """Pod by pod the same node as the plain formula, under three rules that the author has not.

    Requests are rounded up to what Kubernetes and HAMi can say; of the nodes that fit, a pod without
    GPU gets one without if there is any; scores count in steps of 0.001, and 0 is no refusal.
    """
    workload = draw(scenario, PUBLISHED)
    replay, expected = Replay(workload), []
    for pod in workload.pods:
        asked = steps(lambda_g_product.as_asked(pod))
        fitting = replay.fitting(asked)
        without = [n for n in fitting if not replay.capacities[n][GPU_COMPUTE]]
        ranked = [
            (
                -int(
                    formulas.lambda_g_v3(replay.capacities[n], replay.used[n], asked) * 1000 + 0.5
                ),
                n,
            )
            for n in (without if without and not asked[GPU_COMPUTE] else fitting)
        ]
        node = min(ranked)[1] if ranked else -1
        expected.append(node)
        if ranked:
            replay.charge(node, asked)
    assert lambda_g_product.place(workload, Mode.LAMBDA_G_V3) == expected


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_on_gpu_pods_alone_lambda_g_v3_places_as_the_authors_v3_without_its_refusal(
    scenario: str,
) -> None:
    drawn = draw(scenario, PUBLISHED)
    pods = tuple(lambda_g_product.as_asked(pod) for pod in drawn.pods if pod[GPU_COMPUTE])
    workload = drawn._replace(pods=pods)
    expected = lambda_g_reference.place(workload, formulas.lambda_g_v3, above_zero=False)
    assert lambda_g_product.place(workload, Mode.LAMBDA_G_V3) == expected


def test_the_benchmark_prints_json_and_beside_it_a_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench.lambda_g", "--seeds", "2", "--jobs", "1"])
    lambda_g.main()
    printed = capsys.readouterr()
    result = json.loads(printed.out)
    published = result["published_seed"]["strategies"]
    assert published["upstream-v3"]["scenarios"]["S2"]["balance"] == 81.9
    assert set(map(str, MODES)) | set(FIGURES) <= set(published)
    assert set(result["other_seeds"]["strategies"]) == set(published)
    for name in published:
        assert name in printed.err


@pytest.mark.parametrize("given", [["--seeds", "1"], ["--jobs", "0"]])
def test_too_few_seeds_or_processes_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], given: list[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench.lambda_g", *given])
    with pytest.raises(SystemExit) as stopped:
        lambda_g.main()
    assert stopped.value.code == 2
    assert given[0] in capsys.readouterr().err
