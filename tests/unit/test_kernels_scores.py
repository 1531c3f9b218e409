"""kube-scheduler's resource scores: kernels against their twins, integer for integer."""

from collections.abc import Sequence

import numpy as np
import pytest

from scheduler.api.placement import Mode, Placement
from scheduler.config import Config
from scheduler.kernels.modes import score
from scheduler.plugins.rules import mode as mode_rule
from scheduler.schema import columns as c
from scheduler.schema import empty
from tests import make
from tests.oracles import kube_scores as twin

BLOCKS = 60
CURVES = [
    ((0, 0), (100, 10)),
    ((0, 10), (100, 0)),
    ((10, 0), (40, 7), (90, 3)),
    ((33, 5),),
    ((0, 0), (1, 9), (99, 1), (100, 10)),
]
FIT_MODES = [score.LEAST, score.MOST, score.RATIO]
Matrix = np.ndarray


def real_ask() -> c.Ask:
    """An Ask as a cycle compiles it, so that kernels see the types they see in earnest."""
    cluster = make.cluster(nodes=[make.node()], pods=[make.pod()])
    cycle = make.cycle(cluster=cluster)
    shape = cycle.get_shape(cluster.pods["default/pod"])
    assert shape is not None
    cycle.boards.refresh(shape)
    return shape.ask


REAL_ASK = real_ask()


def ask_of(
    mode: int, weights: Sequence[int], curve: Sequence[tuple[int, int]] = CURVES[0]
) -> c.Ask:
    """An Ask that differs in what the score kernels read."""
    scaled = np.array(curve, np.int64).T * np.array([[1], [10]])
    prefers = REAL_ASK.prefers.replace(
        mode=c.ModeTerm(mode, 5, -1, objective=c.NO_OBJECTIVE, unit=1, scorer=0, extra=0),
        weights=np.array(weights, np.int64),
        curve=np.ascontiguousarray(scaled),
    )
    return REAL_ASK.replace(prefers=prefers)


def random_figures(seed: int) -> tuple[Matrix, Matrix, Matrix]:
    """[6, n] capacity, use and request: absent, unrequested, exactly full and overcommitted ones."""
    rng = np.random.default_rng(seed)
    shape = (c.N_DIMS, BLOCKS * c.BLOCK)
    sizes = [16_000, 64 * 2**30, 400, 65_536, 10_000, 997]
    cap = np.array([rng.integers(1, size, shape[1]) for size in sizes])
    cap[rng.random(shape) < 0.15] = 0
    used = (cap * rng.choice([0, 0.1, 0.5, 0.9, 1, 1.3], shape)).astype(np.int64)
    used += rng.integers(0, 3, shape)
    ask = (cap * rng.choice([0, 0, 0.01, 0.2, 0.5, 1.1], shape)).astype(np.int64)
    ask += np.where(ask > 0, rng.integers(0, 3, shape), 0)
    exact = rng.random(shape) < 0.1
    ask[exact] = np.maximum(0, cap - used)[exact]
    ask[:, rng.random(shape[1]) < 0.05] = 0
    return cap, used, ask


def points(kernel_ask: c.Ask, cap: Matrix, used: Matrix, ask: Matrix) -> list[int]:
    """Milli-points of every lane, block by block."""
    kernel = (
        score.score_balance if kernel_ask.prefers.mode.blind == score.BALANCED else score.score_fit
    )
    s = empty.make_scratch(1, 1, 1)
    found: list[int] = []
    for at in range(0, cap.shape[1], c.BLOCK):
        lanes = min(c.BLOCK, cap.shape[1] - at)
        for column, figures in ((s.cap, cap), (s.used, used), (s.ask, ask)):
            column[:, :lanes] = figures[:, at : at + lanes]
        kernel(kernel_ask, s, lanes)
        found += s.points[:lanes].tolist()
    return found


def resources(
    weights: Sequence[int], cap: Matrix, used: Matrix, ask: Matrix, lane: int
) -> list[twin.Resource]:
    """One node in the twin's words; the figures of cpu and memory stand for both kinds of use."""
    built = []
    for d, weight in enumerate(weights):
        figures = [int(matrix[d, lane]) for matrix in (cap, used, ask)]
        if weight:
            capacity, taken, asked = figures
            pair = (taken, asked) if d < 2 else (None, None)
            built.append(twin.Resource(capacity, taken, asked, weight, *pair))
    return built


def expected(mode: int, curve: Sequence[tuple[int, int]], listed: Sequence[twin.Resource]) -> int:
    if mode == score.LEAST:
        return twin.least_allocated(listed)
    if mode == score.MOST:
        return twin.most_allocated(listed)
    if mode == score.RATIO:
        return twin.requested_to_capacity_ratio(listed, curve)
    return twin.balanced_allocation(listed) or 0


@pytest.mark.parametrize("weights", [(1, 1, 1, 1, 1, 1), (1, 1, 0, 0, 0, 0), (3, 1, 7, 100, 0, 2)])
@pytest.mark.parametrize("mode", [*FIT_MODES, score.BALANCED])
def test_every_mode_gives_kube_schedulers_integer_on_3_840_random_nodes(
    mode: int, weights: tuple[int, ...]
) -> None:
    cap, used, ask = random_figures(100 * mode + sum(weights))
    found = points(ask_of(mode, weights), cap, used, ask)
    assert found == [
        1000 * expected(mode, CURVES[0], resources(weights, cap, used, ask, lane))
        for lane in range(cap.shape[1])
    ]
    assert len(set(found)) > 30


@pytest.mark.parametrize("curve", CURVES)
def test_ratio_follows_every_shape_rising_falling_and_bent(
    curve: tuple[tuple[int, int], ...],
) -> None:
    weights = (2, 1, 1, 0, 3, 1)
    cap, used, ask = random_figures(9)
    found = points(ask_of(score.RATIO, weights, curve), cap, used, ask)
    assert found == [
        1000 * expected(score.RATIO, curve, resources(weights, cap, used, ask, lane))
        for lane in range(cap.shape[1])
    ]


@pytest.mark.parametrize(
    ("mode", "cap", "used", "ask", "score_wanted"),
    [
        # (1000 - 250) / 10 = 75 and (800 - 200) / 8 = 75.
        (score.LEAST, (1000, 800), (150, 100), (100, 100), 75),
        (score.LEAST, (1000, 800), (950, 100), (51, 100), 37),
        (score.MOST, (1000, 800), (950, 100), (51, 100), 62),
        (score.RATIO, (1000, 800), (150, 100), (100, 100), 25),
        # No change of balance is 75 in Kubernetes 1.37; a change moves half as far.
        (score.BALANCED, (1000, 1000), (100, 100), (100, 100), 75),
        (score.BALANCED, (1000, 1000), (0, 0), (1000, 0), 50),
        (score.BALANCED, (1000, 1000), (1000, 0), (0, 1000), 100),
        (score.BALANCED, (1000, 1000), (500, 0), (0, 0), 0),
    ],
)
def test_scores_worked_by_hand(
    mode: int,
    cap: tuple[int, ...],
    used: tuple[int, ...],
    ask: tuple[int, ...],
    score_wanted: int,
) -> None:
    full, taken, asked = (np.array([[*row, 0, 0, 0, 0]]).T for row in (cap, used, ask))
    weights = (1, 1, 1, 1, 1, 1)
    assert points(ask_of(mode, weights), full, taken, asked) == [1000 * score_wanted]
    assert expected(mode, CURVES[0], resources(weights, full, taken, asked, 0)) == score_wanted


def test_a_scalar_that_the_pod_does_not_ask_counts_for_nothing() -> None:
    """A GPU's weight is nothing to a pod without GPUs, however full the node's GPUs are."""
    cap = np.array([[100], [100], [100], [100], [0], [0]])
    ask = np.array([[10], [10], [0], [0], [0], [0]])
    for mode in (*FIT_MODES, score.BALANCED):
        idle, full = np.array([[10], [10], [0], [0], [0], [0]]), cap
        full = np.array([[10], [10], [100], [100], [0], [0]])
        weights = (1, 1, 50, 50, 1, 1)
        assert points(ask_of(mode, weights), cap, idle, ask) == points(
            ask_of(mode, weights), cap, full, ask
        )


def test_bytes_of_a_very_big_node_are_exact() -> None:
    """4 PiB less one byte: truncation must see the byte."""
    big = 2**52
    cap, used = np.array([[0, big, 0, 0, 0, 0]]).T, np.array([[0, big // 2, 0, 0, 0, 0]]).T
    weights = (1, 1, 0, 0, 0, 0)
    for ask, wanted in ((0, 50), (1, 49)):
        asked = np.array([[0, ask, 0, 0, 0, 0]]).T
        assert points(ask_of(score.LEAST, weights), cap, used, asked) == [1000 * wanted]


def test_taints_and_affinity_are_normalised_as_kube_scheduler_does() -> None:
    assert twin.default_normalize([0, 0], reverse=True) == [100, 100]
    assert twin.default_normalize([3, 1, 0], reverse=True) == [0, 67, 100]
    assert twin.default_normalize([3, 1, 0], reverse=False) == [100, 33, 0]
    assert twin.default_normalize([0, 0], reverse=False) == [0, 0]


def test_placement_names_every_mode_that_the_kernels_score() -> None:
    tables = (mode_rule.BLIND, mode_rule.AWARE)
    assert set().union(*tables) == set(Mode)
    for table in tables:
        assert len(set(table.values())) == len(table)
    assert not mode_rule.BLIND.keys() & mode_rule.AWARE.keys()
    assert Config().placement == Placement()
