"""Small worked examples of the lambda-g formulas, each with the figures their analysis gives.

Inputs are shares in hundredths: capacity 100 where nothing else is said. An example checks the
kernel against the figure, and the kernel against its twin.
"""

from collections.abc import Callable, Sequence

import pytest

from scheduler.kernels.modes import lambda_g
from scheduler.schema import empty
from tests import make
from tests.oracles import lambda_g as twin
from tests.unit import compiled

Vector = Sequence[float]
FULL = [100.0] * 6
EMPTY = [0.0] * 6
CPU_NODE = [16, 32, 0, 0, 50, 10]
GPU_NODE = [8, 32, 50, 80, 100, 25]


def first(capacity: Vector, used: Vector, request: Vector) -> float:
    """The first formula's score of one node, kernel and twin being of one mind."""
    return both(lambda_g.score_lambda_g, twin.lambda_g, capacity, used, request)


def v3(capacity: Vector, used: Vector, request: Vector) -> float:
    """The hybrid's score of one node, likewise."""
    return both(lambda_g.score_lambda_g_v3, twin.lambda_g_v3, capacity, used, request)


def both(kernel: Callable[..., None], oracle: Callable[..., float], *figures: Vector) -> float:
    s = empty.make_scratch(1, 1, 1)
    s.cap[:] = s.used[:] = s.ask[:] = 0.0
    for column, values in zip((s.cap, s.used, s.ask), figures, strict=True):
        column[: len(values), 0] = values
    kernel(s, 1)
    score = float(s.out[0])
    assert score == pytest.approx(oracle(*figures), abs=1e-9)
    return score


def test_f_strand_one_leaving_one_of_six_dimensions_whole_scores_the_full_9() -> None:
    assert first(FULL, EMPTY, [100] * 5 + [0]) == 9.0
    assert round(first(FULL, EMPTY, [50] * 6), 1) == 5.4


@pytest.mark.parametrize(
    ("free", "asked", "term"),
    [
        pytest.param((1.0, 0.2, 0.2, 0.2), (0.3, 0, 0, 0), -0.20, id="f-repairs-shape"),
        pytest.param((0.7, 0.9, 0.9, 0.9), (0.6, 0, 0, 0), +0.27, id="f-worsens-shape"),
    ],
)
def test_the_entropy_term_punishes_repair_and_pays_for_damage(
    free: Vector, asked: Vector, term: float
) -> None:
    after = [has - wants for has, wants in zip(free, asked, strict=True)]
    assert round(twin.PHI * (twin.entropy(free) - twin.entropy(after)), 2) == term
    score = first([1000] * 4, [1000 * (1 - f) for f in free], [1000 * p for p in asked])
    assert score == pytest.approx(2.25 * twin.raw(free, asked), abs=1e-9)


def test_f_exact_fill_jumps_by_2_9_raw_where_a_near_exact_fill_does_not() -> None:
    nearly = [0.999999] * 6
    jump = twin.raw([1.0] * 6, [1.0] * 6) - twin.raw([1.0] * 6, nearly)
    assert round(jump, 1) == 2.9
    assert round(jump * 9 / 4, 1) == 6.5
    assert first(FULL, EMPTY, FULL) == 9.0
    assert first([1e6] * 6, EMPTY, [999_999] * 6) < 6.6


def test_cosine_ignores_magnitude_so_the_score_over_fill_is_u_shaped() -> None:
    scores = {
        free: round(first([1000] * 4, [1000 - free] * 4, [100] * 4), 2)
        for free in (1000, 600, 300, 120)
    }
    assert scores == {1000: 4.54, 600: 4.42, 300: 4.59, 120: 5.60}
    middle = [first([1000] * 4, [1000 - free] * 4, [100] * 4) for free in range(300, 1001, 10)]
    assert round(max(middle) - min(middle), 2) == 0.17


def test_f_tiny_proportional_pays_nine_tenths_for_six_leaks() -> None:
    assert twin.leak([0.95] * 6, [0.05] * 6) == pytest.approx(0.9)
    tiny, small = first(FULL, EMPTY, [5] * 6), first(FULL, EMPTY, [10] * 6)
    assert small - tiny == pytest.approx(2.25 * (0.9 + 0.05), abs=1e-9)


def test_f_zero_pod_empty_clips_an_empty_node_to_zero() -> None:
    assert first(FULL, EMPTY, EMPTY) == 0.0
    assert first(FULL, [89] * 6, EMPTY) > 0.0


def test_f_zero_pod_71_falls_off_a_cliff_between_70_and_71_percent_free() -> None:
    assert first(FULL, [29] * 6, EMPTY) == 0.0
    assert first(FULL, [30] * 6, EMPTY) == pytest.approx(0.3 * 0.7 * 2.25, abs=1e-9)


def test_f_gate_not_gpu_a_node_out_of_vram_is_never_gated() -> None:
    assert first(FULL, [0, 0, 0, 95, 0, 0], [10, 10, 10, 5, 10, 10]) > 0.5
    assert first(FULL, [95, 0, 0, 0, 0, 0], [5, 10, 10, 5, 10, 10]) == 0.5


def test_the_gate_is_a_strict_cliff_at_ten_percent_and_outranks_a_clipped_node() -> None:
    assert first(FULL, [90] + [0] * 5, [5] * 6) > 0.5
    gated = first([1000] * 6, [901] + [0] * 5, [5] * 6)
    assert gated == 0.5 > first(FULL, EMPTY, EMPTY) == 0.0


def test_feasibility_comes_before_the_gate() -> None:
    assert first(FULL, [95] + [0] * 5, [6] + [0] * 5) == 0.0


def test_q_gpu_asked_none_there_drops_the_dimension_so_a_gpu_pod_scores_well_on_a_cpu_node() -> (
    None
):
    with_gpu = first(CPU_NODE, EMPTY, [4, 8, 40, 20, 12.5, 2.5])
    assert with_gpu == first(CPU_NODE, EMPTY, [4, 8, 0, 0, 12.5, 2.5]) > 4.0
    assert first(CPU_NODE[:2], EMPTY[:2], [4, 8]) > 0


def test_q_clip_request_makes_twice_the_node_fit_an_empty_one() -> None:
    assert first(FULL, EMPTY, [200] * 6) == first(FULL, EMPTY, FULL) == 9.0
    assert first(FULL, [1] * 6, [200] * 6) == 0.0


@pytest.mark.parametrize(
    ("order", "score_is_gated"),
    [
        pytest.param((0, 1, 2, 3, 4, 5), True, id="q-order-cpu-first"),
        pytest.param((5, 4, 3, 2, 1, 0), False, id="q-order-network-first"),
    ],
)
def test_which_dimensions_stand_first_decides_gate_and_headroom(
    order: Sequence[int], *, score_is_gated: bool
) -> None:
    used, ask = [95, 20, 30, 40, 50, 60], [1, 10, 10, 10, 10, 10]
    score = first(FULL, [used[i] for i in order], [ask[i] for i in order])
    assert (score == 0.5) == score_is_gated


def test_q_order_the_gate_moves_on_when_the_node_has_no_memory_dimension() -> None:
    without_memory = [100, 0, 100, 100, 100, 100]
    assert first(without_memory, [0, 0, 95, 0, 0, 0], [1] * 6) == 0.5
    assert first([100], [95], [1]) != 0.5


def test_f_fp_boundary_fit_is_refused_in_shares_and_placed_in_integers() -> None:
    """0.1 + 0.2 is above 0.3 in floats; 100m + 200m fits 300m free, and the pod gets its node."""
    assert first([10, 10], [7, 7], [10 * (0.1 + 0.2), 1]) == 0.0
    assert first([10, 10], [7, 7], [3, 1]) > 0.0
    cluster = make.cluster(
        nodes=[make.node(name="only", cpu="1000m")],
        pods=[
            make.pod(name="there", node="only", cpu="700m"),
            make.pod(
                name="new",
                containers=[make.container(cpu="100m"), make.container(name="b", cpu="200m")],
                annotations={"scheduling.evenkeel.dev/mode": "lambda-g"},
            ),
        ],
    )
    outcome = make.cycle(cluster=cluster).schedule([cluster.pods["default/new"]])
    assert [bind.node for bind in outcome.binds] == ["only"]


def test_r_cpu_pod_loses_alignment_by_free_gpu_it_does_not_ask() -> None:
    pod = [2, 8, 0, 0, 0, 0]
    no_gpu, half_used, idle = [8, 32, 0, 0], [8, 32, 50, 80], [8, 32, 50, 80]
    scores = (
        first(no_gpu, EMPTY[:4], pod[:4]),
        first(half_used, [0, 0, 25, 40], pod[:4]),
        first(idle, EMPTY[:4], pod[:4]),
    )
    cosines = (1.0, twin.alignment([1, 1, 0.5, 0.5], [0.25, 0.25, 0, 0]), 0.5**0.5)
    assert twin.alignment([1, 1, 1, 1], [0.25, 0.25, 0, 0]) == pytest.approx(cosines[2])
    assert cosines[0] > cosines[1] > cosines[2]
    # The idle node pays two leaks on top; the half-used one gains by its entropy.
    assert scores[1] > scores[2]


def test_b_92_edge_costs_3_5_and_b_92_over_next_to_nothing() -> None:
    assert twin.pressure([0.92]) == pytest.approx(3.5)
    assert twin.pressure([0.9201]) == pytest.approx(0.05)
    assert twin.pressure([0.927]) == pytest.approx(3.5)
    six_edges = v3([10_000] * 6, [9_100] * 6, [100] * 6)
    six_over = v3([10_000] * 6, [9_100] * 6, [101] * 6)
    assert six_over - six_edges == pytest.approx(6 * 3.45, abs=1e-9)


def test_v3_takes_15_for_every_pair_of_a_full_and_an_idle_dimension_up_to_135() -> None:
    used = [0.81, 0.81, 0.81, 0.19, 0.19, 0.19]
    assert twin.strand(used) == 135.0
    assert twin.strand([0.80, 0.20]) == 0.0
    assert v3(FULL, [share * 100 - 1 for share in used], [1] * 6) == 0.0


def test_v3_has_a_ceiling_of_90_for_an_even_pod_of_almost_nothing() -> None:
    assert v3([1e6] * 6, EMPTY, [1] * 6) == pytest.approx(90.0, abs=1e-4)


def test_p_sentinels_empty_absent_dimensions_do_not_make_an_empty_node_jagged() -> None:
    """The plugin form's stand-ins (0.55 used) would; the benchmark form leaves them out."""
    pod = [1.6, 3.2, 0, 0, 5, 1]
    dense = [(cap, ask) for cap, ask in zip(CPU_NODE, pod, strict=True) if cap]
    score = v3(CPU_NODE, EMPTY, pod)
    assert score == v3([cap for cap, _ in dense], [0] * 4, [ask for _, ask in dense])
    assert score == pytest.approx(90.0)
    assert v3(FULL, [0, 0, 50, 50, 50, 50], [10, 10, 5, 5, 5, 5]) < score - 10


def test_b_cpu_pod_empty_gpu_draws_a_cpu_pod_to_the_empty_gpu_node_and_0_to_the_tight_one() -> None:
    pod = [1, 2, 0, 0, 1, 1]
    assert round(v3(GPU_NODE, EMPTY, pod), 1) == 82.8
    assert v3(CPU_NODE, [15, 2, 0, 0, 2, 1], pod) == 0.0


def test_v3_refuses_with_minus_1_and_never_otherwise_falls_below_0() -> None:
    assert v3(FULL, [95] + [0] * 5, [6] + [0] * 5) == -1.0
    assert v3(FULL, [95] + [0] * 5, [5] + [0] * 5) == 0.0


def test_v3_is_only_refused_by_a_dimension_that_the_pod_asks() -> None:
    """Of what is over its capacity nothing is free, no less; who asks none of it may come."""
    pod = [0, 5, 0, 0, 5, 0]
    caps = [100, 100, 0, 0, 100, 0]
    assert v3(caps, [101, 60, 0, 0, 60, 0], pod) == pytest.approx(30.755, abs=1e-3)
    assert v3(caps, [95, 10, 0, 0, 10, 0], pod) == pytest.approx(7.018, abs=1e-3)
    assert v3(caps, [101, 60, 0, 0, 60, 0], [1, 5, 0, 0, 5, 0]) == -1.0
    assert first(caps, [95, 10, 0, 0, 10, 0], pod) == 0.5
    assert first(caps, [101, 60, 0, 0, 60, 0], pod) == 0.5
    assert first(caps, [60, 101, 0, 0, 60, 0], [5, 1, 0, 0, 5, 0]) == 0.0


@compiled.needs_jit
def test_both_kernels_compiled_exactly_one_version() -> None:
    first(FULL, EMPTY, EMPTY)
    v3(FULL, EMPTY, EMPTY)
    assert len(compiled.versions(lambda_g.score_lambda_g)) == 1
    assert len(compiled.versions(lambda_g.score_lambda_g_v3)) == 1
