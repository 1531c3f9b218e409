"""Pods without GPUs are full citizens: loads, figures and lines are of the resource that binds."""

import dataclasses

import numpy as np
import pytest

from scheduler.errors import BadInput
from scheduler.replay import demand, fan_out, workloads
from scheduler.replay.experiment import RunOptions, Trace, TraceNode, TracePod
from scheduler.replay.fan_out import Finished, Job
from scheduler.replay.measures.averages import Record
from tests.unit import replay_engine

IOPS = "example.com/iops"
# 24 cores, 48 GiB and 600 iops; asked are 9 cores, 12 GiB and 200 iops: ratios 0.375, 0.25 and 0.333.
NODES = tuple(TraceNode(f"n{i}", 8000, 16_384, 0, "", ((IOPS, 200),)) for i in range(3))
PODS = (
    TracePod("small", 1000, 2048, 0, 0, ()),
    TracePod("even", 2000, 4096, 0, 0, (), extended=((IOPS, 50),)),
    TracePod("fast", 2000, 2048, 0, 0, (), extended=((IOPS, 150),)),
    TracePod("large", 4000, 4096, 0, 0, ()),
)
TRACE = Trace("plain", NODES, PODS)
GPUS = replay_engine.small_trace()


def played(
    experiment: str, load: float = 1.2, mode: str = "keel", *, queue: bool = False
) -> Finished:
    options = RunOptions(mode, "seen", queue, 3, measure_frag=True)
    (one,) = fan_out.run_jobs([Job("x", experiment, load, 400, options)], {"x": TRACE})
    return one


def test_what_binds_is_what_there_is_the_least_of_for_what_is_asked() -> None:
    found = demand.read_demand(TRACE)
    assert found.names == ("cpu", "memory", IOPS)
    assert found.total.tolist() == [24_000, 49_152, 600]
    assert found.ratios == pytest.approx([0.375, 0.25, 1 / 3])
    assert found.load_name == "cpu"
    # Memory's ratio is two thirds of the largest.
    assert [found.names[row] for row in found.binding_rows] == ["cpu", IOPS]


def test_a_ratio_of_three_quarters_of_the_largest_binds_still() -> None:
    pod = TracePod("p", 4000, 3072, 0, 0, ())
    found = demand.read_demand(Trace("t", (TraceNode("n", 8000, 8192, 0, ""),), (pod,)))
    assert found.binding_rows == [0, 1]


def test_where_gpus_are_asked_for_load_is_of_them_whatever_binds() -> None:
    pod = TracePod("p", 8000, 1, 1, 500, ())
    found = demand.read_demand(Trace("t", (TraceNode("n", 8000, 8192, 2, ""),), (pod,)))
    assert (found.names, found.load_name) == (("cpu", "memory", "gpu"), "gpu")
    assert [found.names[row] for row in found.binding_rows] == ["cpu"]


def test_gpus_that_nobody_asks_for_do_not_matter() -> None:
    nodes = tuple(dataclasses.replace(node, gpus=8) for node in NODES)
    assert demand.read_demand(Trace("t", nodes, PODS)).names == ("cpu", "memory", IOPS)


@pytest.mark.parametrize("name", sorted(workloads.STREAMS))
def test_a_stream_has_the_rate_that_its_load_asks_for(name: str) -> None:
    # 0.9 of 24 cores, 2.25 of which a pod asks in the mean.
    assert workloads.find_rate(TRACE, 0.9) == pytest.approx(0.9 * 24 / 2.25)
    workload = workloads.STREAMS[name](TRACE, 1, 0.9, 20_000)
    later = workload.at[workload.at > 0]
    assert len(later) / later[-1] == pytest.approx(9.6, rel=0.1)


@pytest.mark.parametrize("load", [0.3, 1.0, 2.0])
def test_a_fill_comes_up_to_its_load(load: float) -> None:
    pod = workloads.draw_fill(TRACE, 2, load).pod
    asked = sum(PODS[i].cpu_milli for i in pod)
    assert 24_000 * load - 4000 < asked <= 24_000 * load


def test_a_fill_of_nothing_is_refused() -> None:
    with pytest.raises(
        BadInput,
        match=r"--load: no pod was drawn: the smallest pod requests 0.0416667 of it, and the load is 0.01 of all cpu",
    ):
        workloads.draw_fill(TRACE, 1, 0.01)


def of_gpus(record: Record) -> Record:
    """Figures that are of GPUs alone."""
    names = (
        "allocated_percent",
        "frag",
        "lost_gpu",
        "lost_pods_percent_",
        "wait_mean_",
        "wait_p99_",
    )
    return {name: value for name, value in record.items() if name.startswith(names)}


@pytest.mark.parametrize("experiment", ["fill", *sorted(workloads.STREAMS)])
def test_every_experiment_has_its_figures_and_none_of_gpus(experiment: str) -> None:
    one = played(experiment)
    found = one.record
    assert (found["load_of"], found["binding"]) == ("cpu", f"cpu, {IOPS}")
    assert set(of_gpus(found).values()) == {None}
    at = "_at_100" if experiment == "fill" else ""
    for name in ("cpu", "memory", IOPS):
        assert 0 < float(found[f"allocated_{name}_percent{at}"] or 0) < 100
        assert 0 <= float(found[f"stranded_{name}_percent{at}"] or 0) < 100
        assert 0 < float(found[f"lost_{name}_percent"] or 0) < 100
    both = float(found["lost_cpu_percent"] or 0) + float(found[f"lost_{IOPS}_percent"] or 0)
    assert found["lost_percent"] == pytest.approx(both / 2)
    assert 0 < float(found["nodes_occupied_percent"] or 0) <= 100
    assert 60 < one.curve.allocated.max() <= 100
    assert np.isnan(one.curve.frag).all()
    assert (one.used <= demand.read_demand(TRACE).capacity).all()
    assert one.used.any(axis=1).all()


def test_of_those_who_wait_it_tells_how_long_and_not_by_size() -> None:
    found = played("churn", queue=True).record
    assert float(found["wait_mean"] or 0) > 0
    assert set(of_gpus(found).values()) == {None}
    assert not [name for name in found if name.startswith("lost")]


def test_a_fill_by_hand() -> None:
    """Four pods of 5 of 8 cores on three nodes, and 1 GiB of 16 each: the fourth is lost."""
    pods = tuple(TracePod(f"p{i}", 5000, 1024, 0, 0, ()) for i in range(4))
    options = RunOptions("first-fit", "seen", False, 1, False)
    job = Job("x", "fill", 20 / 24, 1, options)
    (one,) = fan_out.run_jobs([job], {"x": Trace("t", NODES, pods)})
    found = one.record
    # Loads are 20.8, 41.7, 62.5 and 83.3 %: at 80 it is what the third has left.
    assert found["allocated_cpu_percent_at_80"] == pytest.approx(100 * 15 / 24)
    assert found["allocated_cpu_percent_at_90"] is None
    assert found["allocated_memory_percent_at_end"] == pytest.approx(100 * 3 / 48)
    assert (
        found["lost_cpu_percent"] == found["lost_memory_percent"] == found["lost_percent"] == 25.0
    )
    assert found["asked_percent_at_end"] == pytest.approx(100 * 20 / 24)
    assert found["nodes_occupied_percent"] == pytest.approx(100 * (1 + 2 + 3 + 3) / 12)
    # 3 cores are left on each node, which is CPU itself that is gone; memory beside it is stranded.
    assert found["stranded_cpu_percent_at_80"] == pytest.approx(0.0)
    assert found["stranded_memory_percent_at_80"] == pytest.approx(100 * 45 / 48)


def test_where_there_are_gpus_theirs_are_told_under_both_names() -> None:
    options = RunOptions("first-fit", "seen", False, 3, measure_frag=False)
    jobs = [Job("x", name, 1.3, 300, options) for name in ("fill", "churn")]
    filled, streamed = (one.record for one in fan_out.run_jobs(jobs, {"x": GPUS}))
    for load in (80, 100, 130):
        assert filled[f"allocated_gpu_percent_at_{load}"] == pytest.approx(
            filled[f"allocated_percent_at_{load}"]
        )
    # One counts what each arrival left until the next, the other departures in between too.
    by_arrivals = float(streamed["allocated_percent_by_time"] or 0)
    assert 0.8 * by_arrivals < float(streamed["allocated_gpu_percent"] or 0) < by_arrivals
