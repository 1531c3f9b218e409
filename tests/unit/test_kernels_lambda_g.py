"""The lambda-g kernels against their twins, thousands of nodes and pods a test."""

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from scheduler.kernels.modes import lambda_g
from scheduler.schema import columns as c
from scheduler.schema import empty
from tests.oracles import lambda_g as twin

TOLERANCE = 1e-9
BLOCKS = 200
# Full capacity of each dimension in base units; cpu milli, bytes, percent, MiB, counts.
FULL = np.array([64_000, 512 * 2**30, 800, 8 * 81_920, 100_000, 25_000])
# Hundredths of a capacity at which the formulas branch, and their neighbours.
EDGES = [0, 1, 7, 8, 9, 10, 11, 15, 19, 20, 21, 29, 30, 31, 69, 70, 71, 80, 81, 85, 86, 92, 93, 100]

Figures = tuple[np.ndarray, np.ndarray, np.ndarray]


def scored(
    kernel: Callable[..., None], cap: np.ndarray, used: np.ndarray, ask: np.ndarray
) -> np.ndarray:
    """Scores of [6, n] figures, through blocks of 64 lanes that are left dirty in between."""
    s = empty.make_scratch(1, 1, 1)
    scores = []
    for at in range(0, cap.shape[1], c.BLOCK):
        lanes = min(c.BLOCK, cap.shape[1] - at)
        for column, figures in ((s.cap, cap), (s.used, used), (s.ask, ask)):
            column[:, :lanes] = figures[:, at : at + lanes]
        kernel(s, lanes)
        scores.append(s.out[:lanes].copy())
    return np.concatenate(scores)


def random_figures(seed: int) -> Figures:
    """Nodes of all kinds; half of the shares on the formulas' edges, exact fills, idle, full and over-full."""
    rng = np.random.default_rng(seed)
    shape = (c.N_DIMS, BLOCKS * c.BLOCK)
    cap = FULL[:, None] // rng.choice([1, 2, 4, 16, 50], shape)
    cap = np.where(cap >= 100, cap - cap % 100, 100)
    cap[rng.random(shape) < 0.2] = 0
    used_share = np.where(
        rng.random(shape) < 0.5, rng.choice(EDGES, shape) / 100, rng.random(shape) ** 2
    )
    # Limits are not requests, and what is allocatable may shrink under running pods.
    over = rng.random(shape) < 0.03
    used_share[over] += rng.choice([0.01, 0.2, 1.0], over.sum())
    used = np.rint(cap * used_share).astype(np.int64)
    loose = rng.random(shape) < 0.5
    ask_share = np.where(loose, rng.random(shape) * 0.5, rng.choice(EDGES, shape) / 100)
    left = np.maximum(0, cap - used)
    ask = np.rint(np.where(loose, left, cap) * ask_share).astype(np.int64)
    ask = np.where((rng.random(shape) < 0.9) & (ask > left), left, ask)
    ask[rng.random(shape) < 0.2] = 0
    exact = rng.random(shape[1]) < 0.05
    ask[:, exact] = left[:, exact]
    best_effort = rng.random(shape[1]) < 0.05
    ask[:, best_effort] = 0
    ask[cap == 0] = rng.choice([0, 5], ask.shape)[cap == 0]
    return cap.astype(float), used.astype(float), ask.astype(float)


def lanes_of(figures: Figures) -> list[tuple[list[float], list[float], list[float]]]:
    return list(zip(*(matrix.T.tolist() for matrix in figures), strict=True))


@pytest.mark.parametrize("seed", [1, 2])
def test_lambda_g_is_its_twin_to_1e_9_on_12_800_random_nodes(seed: int) -> None:
    figures = random_figures(seed)
    expected = [twin.lambda_g(*lane) for lane in lanes_of(figures)]
    np.testing.assert_allclose(
        scored(lambda_g.score_lambda_g, *figures), expected, rtol=0, atol=TOLERANCE
    )


@pytest.mark.parametrize("seed", [3, 4])
def test_lambda_g_v3_is_its_twin_to_1e_9_on_12_800_random_nodes(seed: int) -> None:
    figures = random_figures(seed)
    expected = [twin.lambda_g_v3(*lane) for lane in lanes_of(figures)]
    np.testing.assert_allclose(
        scored(lambda_g.score_lambda_g_v3, *figures), expected, rtol=0, atol=TOLERANCE
    )


def test_random_nodes_reach_every_branch_of_both_formulas() -> None:
    """Without this the two tests above could agree on nothing but refusals."""
    lanes = lanes_of(random_figures(1))
    first = Counter(_bucket(twin.lambda_g(*lane)) for lane in lanes)
    assert all(first[kind] > 500 for kind in ("zero", "gated", "between", "top"))
    hybrid = Counter(_bucket(twin.lambda_g_v3(*lane)) for lane in lanes)
    assert all(hybrid[kind] > 500 for kind in ("refused", "zero", "between"))
    shares = Counter(
        round((used + ask) / cap, 4)
        for caps, useds, asks in lanes
        for cap, used, ask in zip(caps, useds, asks, strict=True)
        if cap > 0
    )
    assert all(shares[edge] > 20 for edge in (0.10, 0.20, 0.30, 0.70, 0.80, 0.85, 0.92, 1.0))


def _bucket(score: float) -> str:
    edges = {-1.0: "refused", 0.0: "zero", 0.5: "gated", 9.0: "top"}
    return edges.get(score, "between")


def test_a_node_without_any_dimension_scores_zero() -> None:
    nothing = np.zeros((c.N_DIMS, 1))
    assert scored(lambda_g.score_lambda_g, nothing, nothing, nothing).tolist() == [0.0]
    assert scored(lambda_g.score_lambda_g_v3, nothing, nothing, nothing).tolist() == [0.0]


def test_a_lane_does_not_see_its_neighbours() -> None:
    """A node scores the same wherever it stands in a block and however long the block is."""
    cap, used, ask = (matrix[:, :130] for matrix in random_figures(5))
    for kernel in (lambda_g.score_lambda_g, lambda_g.score_lambda_g_v3):
        together = scored(kernel, cap, used, ask)
        alone = [
            scored(kernel, cap[:, i : i + 1], used[:, i : i + 1], ask[:, i : i + 1])[0]
            for i in range(cap.shape[1])
        ]
        assert together.tolist() == alone


def test_ln_is_the_logarithm_to_four_ulps_over_all_magnitudes() -> None:
    rng = np.random.default_rng(6)
    values = [
        *np.exp(rng.uniform(math.log(1e-10), 0, 4000)).tolist(),
        *np.exp(rng.uniform(-700, 700, 1000)).tolist(),
        *(1 + rng.uniform(-1e-6, 1e-6, 1000)).tolist(),
        *(2.0 ** np.arange(-40, 40)).tolist(),
        math.sqrt(0.5),
        math.sqrt(2.0),
        1e-10,
        1.0,
    ]
    worst = max(
        abs(lambda_g.ln(x) - math.log(x)) / max(math.ulp(math.log(x)), 5e-324) for x in values
    )
    assert worst <= 4
    assert lambda_g.ln(1.0) == 0.0
