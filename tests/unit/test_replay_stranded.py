"""What a replay calls stranded is what an audit does, and of extended resources the same by hand."""

import functools
from pathlib import Path

import numpy as np
import pytest

from scheduler.config import Config
from scheduler.measure import figures
from scheduler.measure.typical import Typical, TypicalPod
from scheduler.replay import run as engine
from scheduler.replay import traces, workloads
from scheduler.replay.experiment import RunOptions, Trace, TraceNode, TracePod, Workload
from scheduler.replay.measures.stranded import LOOKS, Looks, StrandedGauge, find_typical
from scheduler.state.demand import DemandShape

OPENB = Path(__file__).parents[2] / "bench/data/openb"
IOPS = "example.com/iops"
shape_of = functools.partial(engine._read_shape, config=Config())


def options(mode: str = "first-fit") -> RunOptions:
    return RunOptions(mode, "seen", queue=False, seed=1, measure_frag=False)


def audited(played: engine.Replay, trace: Trace) -> list[float]:
    """Milli-CPU, MiB and milli-GPU that an audit would call stranded, judged by the same pods."""
    kinds = find_typical(trace, shape_of)
    pods = []
    for pod, n in zip(kinds.pods, kinds.counts.tolist(), strict=True):
        plain = DemandShape(pod.cpu_milli, pod.memory_mib << 20)
        pods.append(TypicalPod(shape_of(pod) if pod.gpus else plain, n))
    found = figures.measure_cluster(
        played.engine._cluster,
        Typical(pods=tuple(pods), gpu_seen=0, plain_seen=0, gpu_assumed=False, plain_assumed=False),
    )
    cpu, memory, gpu, _ = found.amounts[figures.STRANDED].sum(axis=1).tolist()
    return [1000 * cpu, 1024 * memory, 1000 * gpu]


@pytest.mark.parametrize("variant", ["default", "gpuspec33", "multigpu50"])
@pytest.mark.parametrize("mode", ["first-fit", "least-allocated"])
def test_it_is_what_an_audit_would_say_at_the_end(variant: str, mode: str) -> None:
    whole = traces.read_trace(OPENB, variant)
    trace = Trace("small", whole.nodes[::40], whole.pods)
    played = engine.Replay(trace, workloads.draw_churn(trace, 3, 1.1, 600), options(mode))
    samples = played.play().samples
    assert samples is not None
    expected = audited(played, trace)
    assert samples.stranded[-1] == pytest.approx(expected)
    assert min(expected) > 0


def test_reading_what_changed_is_reading_everything() -> None:
    whole = traces.read_trace(OPENB)
    trace = Trace("small", whole.nodes[::40], whole.pods)
    played = engine.Replay(trace, workloads.draw_churn(trace, 3, 1.1, 600), options())
    samples = played.play().samples
    assert samples is not None
    names = ("cpu", "memory", "gpu")
    anew = StrandedGauge(played.engine, find_typical(trace, shape_of), names)
    assert samples.stranded[-1] == pytest.approx(anew.read())
    assert anew.read() == pytest.approx(anew.read())


def test_what_is_free_beside_what_is_gone_is_stranded() -> None:
    """By hand: of three nodes one is out of CPU, one out of iops, one is empty."""
    node = TraceNode("n", 4000, 8192, 0, "", ((IOPS, 100),))
    even = TracePod("even", 1000, 1024, 0, 0, (), extended=((IOPS, 10),))
    plain = TracePod("plain", 4000, 1024, 0, 0, ())
    quick = TracePod("quick", 1000, 1024, 0, 0, (), extended=((IOPS, 100),))
    trace = Trace("t", (node,) * 3, (even, plain, quick))
    order = np.arange(3)
    workload = Workload(order, np.array([1, 2]), np.array([0.0, 1.0]), np.full(2, np.inf))
    samples = engine.run_experiment(trace, workload, options()).samples
    assert samples is not None
    # First node: no CPU, 7 GiB and all iops free, and each pod lacks nothing but CPU: all is stranded.
    # Second: 3 cores and 7 GiB free, no iops. Of CPU, plain would not do by CPU itself, so it has its say but
    # is not kept off by something else: even and quick are, 2 of 6 cores asked. Of memory all three
    # are: plain lacks CPU.
    assert samples.stranded[-1] == pytest.approx([3000 * 2 / 6, 7168 + 7168, 100])


def test_typical_pods_are_the_most_frequent_of_each_kind() -> None:
    pods = [TracePod(f"a{i}", 1000, 1, 0, 0, ()) for i in range(95)]
    pods += [TracePod(f"b{i}", 2000 + i, 1, 0, 0, ()) for i in range(5)]
    pods += [TracePod(f"g{i}", i, 1, 1, 500, ()) for i in range(70)]
    kinds = find_typical(Trace("t", (), tuple(pods)), shape_of)
    # 95 of 100 without GPU, and 64 of those with, whose first is asked as often as the last.
    assert [pod.gpus for pod in kinds.pods] == [1] * 64 + [0]
    assert kinds.counts.tolist() == [1.0] * 64 + [95.0]
    assert len(kinds.shapes) == 64


class Counting:
    """A gauge that says how often it was read."""

    n = 0

    def read(self) -> np.ndarray:
        self.n += 1
        return np.array([float(self.n)])


def test_looks_are_as_far_apart_as_each_other_and_the_last_is_at_the_end() -> None:
    looks = Looks(Counting(), [10.0, 11.0, 30.0])  # type: ignore[arg-type]
    while looks.next_at < np.inf:
        looks.look(2)
    samples = looks.list_samples(10.0)
    assert len(samples.at) == LOOKS
    assert np.diff(samples.at) == pytest.approx(2.0 / LOOKS)
    assert samples.at[-1] == 3.0
    assert samples.stranded[:, 0].tolist() == list(range(1, LOOKS + 1))


def test_of_what_comes_at_once_there_is_one_look() -> None:
    looks = Looks(Counting(), [7.0, 7.0])  # type: ignore[arg-type]
    assert looks.next_at == 7.0
    looks.look(1)
    assert looks.next_at == np.inf
    assert looks.list_samples(1.0).after.tolist() == [1]
