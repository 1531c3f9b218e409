"""Figures of runs small enough to work out by hand."""

from typing import Any

import numpy as np
import pytest

from scheduler.replay.experiment import Series, Trace, TraceNode, TracePod, Workload
from scheduler.replay.measures import classes, fill, streams, summary
from scheduler.replay.measures.averages import Record

NAN = float("nan")
# 1 node of 2 GPUs: a hundredth of the capacity is 20 milli.
SHAPES = [(1, 1000), (1, 10), (0, 0), (2, 1000), (3, 1000), (4, 1000), (8, 1000), (16, 1000)]
TRACE = Trace(
    "hand",
    (TraceNode("n", 1000, 1000, 2, "A"),),
    tuple(TracePod(f"p{i}", 1, 1, gpus, milli, ()) for i, (gpus, milli) in enumerate(SHAPES)),
)


def series(n: int, **columns: Any) -> Series:
    given = {
        "asked": [0] * n, "allocated": [0] * n, "frag": [NAN] * n, "placed_at": [NAN] * n,
        "node": [-1] * n, "occupied": [0] * n, "cpu_used": [0], "memory_used": [0],
    } | columns  # fmt: skip
    kinds = {"frag": np.float64, "placed_at": np.float64}
    arrays: dict[str, Any] = {
        k: np.array(v, dtype=kinds.get(k, np.int64)) for k, v in given.items()
    }
    return Series(gpu_used=((0, 0),), seconds=0.0, **arrays)


def workload(pod: list[int], at: list[float]) -> Workload:
    lifetime = np.full(len(pod), np.inf)
    return Workload(np.array([0]), np.array(pod), np.array(at, dtype=np.float64), lifetime)


def test_sizes_are_told_apart() -> None:
    found = [classes.CLASSES[i] for i in classes.classify_pods(TRACE)]
    assert found == ["1", "share", "cpu", "2", "4", "4", "8", "8"]


def test_a_fill_averages_the_arrivals_whose_load_rounds_to_the_percent() -> None:
    # Loads 79.5 (to the even 80), 80.4, 80.6 (81), 100, 100.
    found = fill.make_figures(
        TRACE,
        workload([0] * 5, [0.0] * 5),
        series(
            5,
            asked=[1590, 1608, 1612, 2000, 2000],
            allocated=[1500, 1600, 1700, 1800, 2000],
            frag=[100, 300, 300, 100, 0],
            node=[0, 0, 0, -1, -1],
        ),
    )
    assert found["allocated_percent_at_80"] == pytest.approx((75 + 80) / 2)
    assert found["allocated_percent_at_100"] == pytest.approx((90 + 100) / 2)
    # Nobody came between 81 and 100: what was there at 81 stayed. Beyond the last nothing is known.
    assert found["allocated_percent_at_90"] == found["allocated_percent_at_95"] == 85.0
    assert found["frag_percent_at_90"] == 15.0
    assert found["frag_percent_at_60"] is found["allocated_percent_at_110"] is None
    assert found["allocated_percent_at_end"] == found["asked_percent_at_end"] == 100.0
    assert found["frag_percent_at_80"] == pytest.approx((5 + 15) / 2)
    assert found["frag_ratio_percent_at_80"] == pytest.approx((100 / 500 + 300 / 400) / 2 * 100)
    # With nothing idle there is no ratio.
    assert found["frag_ratio_percent_at_100"] == pytest.approx(50.0)
    assert found["frag_ratio_mean_percent"] == pytest.approx((47.5 + 100.0 + 50.0) / 3)
    assert found["frag_percent_at_100"] == pytest.approx((5 + 0) / 2)
    assert found["dropped_pods"] == 2


def test_a_fill_counts_nodes_in_use_at_half_load_and_no_ratio_beyond_full() -> None:
    found = fill.make_figures(
        TRACE,
        workload([0] * 3, [0.0] * 3),
        series(
            3, asked=[992, 1008, 2020], allocated=[0, 0, 1000], occupied=[3, 6, 9], frag=[0, 0, 9]
        ),
    )
    assert found["occupied_nodes_at_50"] == pytest.approx((3 + 6) / 2)
    assert found["frag_ratio_mean_percent"] == pytest.approx(0.0)


def test_fragments_that_were_not_measured_are_no_figure() -> None:
    found = fill.make_figures(
        TRACE,
        workload([0, 0], [0.0, 0.0]),
        series(2, asked=[1600, 2000], allocated=[1600, 2000]),
    )
    assert [found[name] for name in found if "frag" in name] == [None] * 13
    assert found["allocated_percent_at_100"] == pytest.approx(100.0)


def test_a_stream_counts_its_second_half_by_arrivals_and_by_time() -> None:
    found = streams.make_figures(
        TRACE,
        workload([0, 0, 0, 0], [0, 1, 2, 5]),
        series(4, allocated=[2000, 2000, 1000, 500], node=[0, -1, 0, 0], placed_at=[0, NAN, 2, 5]),
        is_queued=False,
    )
    assert found["allocated_percent"] == pytest.approx((50 + 25) / 2)
    # 50 % from 2 to 5; nothing lasts after the last arrival.
    assert found["allocated_percent_by_time"] == pytest.approx(50.0)
    assert found["lost_pods_percent"] == pytest.approx(0.0)  # the lost one was in the first half
    assert found["frag_percent"] is None


def test_losses_are_told_by_pods_and_by_gpus_and_by_size() -> None:
    # Counted: a whole GPU kept, a share of 10 lost, a CPU pod lost, a pod of 2 GPUs kept.
    found = streams.make_figures(
        TRACE,
        workload([0] * 4 + [0, 1, 2, 3], list(range(8))),
        series(8, node=[0] * 4 + [0, -1, -1, 0]),
        is_queued=False,
    )
    assert found["lost_pods_percent"] == pytest.approx(50.0)
    assert found["lost_gpu_percent"] == pytest.approx(100 * 10 / 3010)
    assert found["lost_pods_percent_cpu"] == found["lost_pods_percent_share"] == 100.0
    assert found["lost_pods_percent_1"] == found["lost_gpu_percent_2"] == 0.0
    assert found["lost_pods_percent_8"] is found["lost_gpu_percent_8"] is None
    assert "lost_gpu_percent_cpu" not in found
    assert not [name for name in found if "wait" in name]


def test_waiting_counts_those_who_still_wait_with_their_wait_so_far() -> None:
    # Ten arrivals at 0..9; the third was never placed, nor the last, and one was placed at 11.
    placed = [0, 1, NAN, 3, 4, 7, 6, 11, 8, NAN]
    found = streams.make_figures(
        TRACE,
        workload([0] * 5 + [0, 0, 3, 3, 1], list(range(10))),
        series(10, placed_at=placed, node=[-1 if np.isnan(p) else 0 for p in placed]),
        is_queued=True,
    )
    assert found["wait_longest"] == pytest.approx(9.0)  # of the third, from 2 to 11
    assert found["still_waiting_pods"] == 1
    assert found["wait_mean"] == pytest.approx((2 + 0 + 4 + 0 + 2) / 5)
    assert found["wait_mean_1"] == pytest.approx(1.0)
    assert found["wait_p99_1"] == pytest.approx(0.99 * 2)
    assert found["wait_mean_2"] == pytest.approx(2.0)
    assert found["wait_mean_share"] == pytest.approx(2.0)
    assert found["wait_mean_8"] is found["wait_p99_8"] is None
    assert not [name for name in found if "lost" in name]


def test_lines_of_a_fill_have_a_point_per_percent_that_was_reached() -> None:
    curve = fill.make_curve(TRACE, series(3, asked=[0, 0, 100], allocated=[0, 100, 100]))
    assert curve.x.tolist() == [0.0, 5.0]
    assert curve.allocated.tolist() == [2.5, 5.0]
    assert np.isnan(curve.frag).all()


def test_lines_of_a_stream_are_means_over_steps_of_time() -> None:
    n = streams.N_STEPS
    given = workload([0, 0, 0], [0.25, 0.75, n])
    curve = streams.make_curve(
        TRACE, given, series(3, allocated=[0, 1000, 2000], frag=[0, 20, NAN])
    )
    assert curve.x.tolist() == [0.5, n - 0.5]
    assert curve.allocated.tolist() == [25.0, 100.0]
    assert curve.frag[0] == pytest.approx(0.5)
    assert np.isnan(curve.frag[1])


def test_a_summary_is_mean_and_sample_spread_in_order_of_first_sight() -> None:
    records: list[Record] = [
        {"mode": "b", "seed": 1, "x": 1.0, "gone": None, "word": "w"},
        {"mode": "a", "seed": 1, "x": 7.0, "gone": None, "word": "w"},
        {"mode": "b", "seed": 2, "x": 4.0, "gone": 5, "word": "w"},
    ]
    assert summary.summarise_records(records, ("mode",), ("seed", "word")) == [
        {"mode": "b", "runs": 2, "x": 2.5, "x_sd": pytest.approx(4.5**0.5), "gone": 5.0, "gone_sd": None},
        {"mode": "a", "runs": 1, "x": 7.0, "x_sd": None, "gone": None, "gone_sd": None},
    ]  # fmt: skip
