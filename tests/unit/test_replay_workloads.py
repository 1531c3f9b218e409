"""Workloads keep their promises: the load to the rule, the rates, the means, and the seed."""

from pathlib import Path

import numpy as np
import pytest

from scheduler.errors import BadInput
from scheduler.replay import traces, words, workloads
from scheduler.replay.experiment import Trace, TraceNode, TracePod, Workload
from tests.unit import replay_engine

OPENB = Path(__file__).parents[2] / "bench/data/openb"
STREAMS = sorted(workloads.STREAMS)


def test_every_experiment_that_can_be_asked_for_can_be_drawn() -> None:
    assert set(words.EXPERIMENTS) == {"fill", "recorded", *workloads.STREAMS}


def asked(trace: Trace, workload: Workload) -> np.ndarray:
    return workloads.list_milli(trace)[workload.pod]


def offered(trace: Trace, workload: Workload, at: float) -> float:
    """Load of all that would run at ``at`` if nothing were lost."""
    is_there = (workload.at <= at) & (workload.at + workload.lifetime > at)
    return float(asked(trace, workload)[is_there].sum() / trace.capacity)


@pytest.mark.parametrize("seed", [42, 43, 44])
def test_an_inflated_fill_holds_every_pod_once_and_then_copies_up_to_the_load(seed: int) -> None:
    trace = traces.read_trace(OPENB)
    workload = workloads.draw_fill(trace, seed)
    n = len(trace.pods)
    assert sorted(workload.pod[:n]) == list(range(n))
    total = asked(trace, workload).sum()
    # The next draw would have passed it, and no pod asks more than this per GPU.
    assert 1.3 * trace.capacity - 1000 < total <= 1.3 * trace.capacity + 7000
    assert (workload.at == np.arange(len(workload.pod))).all()
    assert np.isinf(workload.lifetime).all()


def test_the_copies_follow_the_rule_draw_by_draw() -> None:
    """The same as drawing one pod at a time, milli per GPU counted once in the test."""
    trace = replay_engine.small_trace()
    workload = workloads.draw_fill(trace, 7, load=6.0)
    milli = [pod.gpu_milli for pod in trace.pods]
    total = sum(pod.gpus * pod.gpu_milli for pod in trace.pods)
    for pod in workload.pod[len(trace.pods) :]:
        assert total + milli[pod] <= 6.0 * trace.capacity
        total += trace.pods[pod].gpus * milli[pod]
    rng = np.random.default_rng(7)
    rng.permutation(len(trace.pods))
    drawn = rng.integers(len(trace.pods), size=4096)
    n_copies = len(workload.pod) - len(trace.pods)
    assert (workload.pod[len(trace.pods) :] == drawn[:n_copies]).all()
    assert total + milli[drawn[n_copies]] > 6.0 * trace.capacity


def test_pods_are_sorted_by_name_before_the_shuffle() -> None:
    trace = replay_engine.small_trace()
    turned = Trace(trace.name, trace.nodes, trace.pods[::-1])
    one, other = (workloads.draw_fill(t, 3, 5.0) for t in (trace, turned))
    names = [[t.pods[i].name for i in w.pod] for t, w in ((trace, one), (turned, other))]
    assert names[0] == names[1]


@pytest.mark.parametrize("load", [0.3, 0.7, 1.0])
def test_a_fill_that_is_cut_keeps_the_order_and_deletes_no_more_than_it_must(load: float) -> None:
    trace = traces.read_trace(OPENB, "multigpu50")
    whole = list(workloads.draw_fill(trace, 5, load=100.0).pod[: len(trace.pods)])
    kept = workloads.draw_fill(trace, 5, load)
    total = asked(trace, kept).sum()
    assert load * trace.capacity - 8000 < total <= load * trace.capacity
    places = {pod: place for place, pod in enumerate(whole)}
    assert (np.diff([places[pod] for pod in kept.pod]) > 0).all()


def test_a_load_met_to_the_milli_is_left_alone() -> None:
    trace = replay_engine.small_trace()
    load = int(workloads.list_milli(trace).sum()) / trace.capacity
    assert len(workloads.draw_fill(trace, 1, load).pod) == len(trace.pods)


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("load", [0.8, 1.2])
def test_a_stream_has_the_rate_that_its_load_asks_for(name: str, load: float) -> None:
    trace = traces.read_trace(OPENB)
    workload = workloads.STREAMS[name](trace, 1, load, 60_000)
    later = workload.at[workload.at > 0]
    found = len(later) / later[-1]
    expected = load * trace.capacity / workloads.list_milli(trace).mean()
    # 3,000 batches of spread twice a batch: 2 % is one standard error of bursts.
    assert found == pytest.approx(expected, rel=0.08 if name == "bursts" else 0.02)
    assert (np.diff(workload.at) >= 0).all()
    assert workload.at[0] >= 0
    assert sorted(workload.order) == list(range(len(trace.nodes)))
    assert 0 <= workload.pod.min() < workload.pod.max() < len(trace.pods)


@pytest.mark.parametrize("name", ["churn", "bursts", "daily"])
def test_lifetimes_are_exponential_of_mean_one(name: str) -> None:
    lifetime = workloads.STREAMS[name](replay_engine.small_trace(), 1, 1.0, 50_000).lifetime
    assert lifetime.mean() == pytest.approx(1.0, abs=0.02)
    assert np.median(lifetime) == pytest.approx(np.log(2), abs=0.02)


def test_bursts_are_one_pod_at_one_moment_twenty_times_in_the_mean() -> None:
    workload = workloads.draw_bursts(traces.read_trace(OPENB), 2, 1.0, 100_000)
    moments, size = np.unique(workload.at, return_counts=True)
    assert size.mean() == pytest.approx(20, rel=0.05)
    assert (size == 1).mean() == pytest.approx(1 / 20, abs=0.01)
    first = np.searchsorted(workload.at, moments)
    assert (workload.pod == np.repeat(workload.pod[first], size)).all()


def test_the_daily_rate_swings_by_sixty_percent_as_a_sine() -> None:
    at = workloads.draw_daily(replay_engine.small_trace(), 2, 1000.0, 400_000).at
    whole_days = at[at < np.floor(at[-1])]
    share = np.histogram(whole_days % 1.0, bins=8, range=(0, 1))[0] / len(whole_days)
    edges = np.linspace(0, 1, 9)
    integral = edges - 0.6 / (2 * np.pi) * np.cos(2 * np.pi * edges)
    assert share == pytest.approx(np.diff(integral), abs=0.003)


def test_a_heavy_tail_is_in_its_steady_state_from_the_start() -> None:
    trace = traces.read_trace(OPENB)
    workloads_of_seeds = [workloads.draw_heavy_tail(trace, seed, 0.9, 30_000) for seed in range(8)]
    for moment in (0.0, 0.5, 1.5, 3.0):
        loads = [offered(trace, one, moment) for one in workloads_of_seeds]
        assert np.mean(loads) == pytest.approx(0.9, abs=0.02)
    later = np.concatenate([one.lifetime[one.at > 0] for one in workloads_of_seeds])
    assert len(later) == 8 * 30_000
    assert np.median(later) == pytest.approx(np.exp(-2), rel=0.03)
    assert np.log(later).std() == pytest.approx(2.0, rel=0.01)


@pytest.mark.parametrize("name", ["fill", *STREAMS])
def test_a_seed_draws_the_same_again_and_another_seed_something_else(name: str) -> None:
    trace = replay_engine.small_trace()

    def draw(seed: int) -> Workload:
        if name == "fill":
            return workloads.draw_fill(trace, seed, 20.0)
        return workloads.STREAMS[name](trace, seed, 1.0, 300)

    one, again, other = draw(1), draw(1), draw(2)
    for field in ("order", "pod", "at", "lifetime"):
        assert getattr(one, field).tobytes() == getattr(again, field).tobytes()
    assert one.pod.tobytes() != other.pod.tobytes()
    assert one.pod.dtype == one.order.dtype == np.int64
    assert one.at.dtype == one.lifetime.dtype == np.float64


def test_a_fill_of_nothing_is_refused() -> None:
    """Else the table would be empty, and nobody told why."""
    trace = Trace("t", (TraceNode("n", 1, 1, 1, ""),), (TracePod("p", 1, 1, 1, 500, ()),))
    with pytest.raises(BadInput, match=r"--load: no pod was drawn: the smallest pod requests 0.5"):
        workloads.draw_fill(trace, 1, 0.1)
