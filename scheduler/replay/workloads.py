"""Draws which pods arrive when, from a trace and a seed; equal seeds give equal workloads for every mode.

``fill`` is the published experiment of "Beware of Fragmentation" (USENIX ATC'23): pods arrive and
stay. The next experiments are our own: pods come and go while the load keeps its mean. The load is what the pods
request that would run if none were lost, over the capacity. The unit of time is the mean lifetime. Load is the load of
GPUs if the trace has any, else of the resource that binds, see ``demand``. ``recorded`` is what really happened,
in seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from scheduler.errors import BadInput
from scheduler.replay import demand
from scheduler.replay.experiment import WHOLE, Ints, Trace, Workload

FILL_LOAD, STREAM_LOAD = 1.3, 1.0
ARRIVALS = 50_000
BURST_MEAN = 20.0
# A day is one mean lifetime: the load follows the rate, damped to 0.6 / sqrt(1 + (2 pi)^2) = ±9 %.
DAY, DAY_SWING = 1.0, 0.6
# Half of the pods live less than exp(-2) = 0.14 mean lifetimes, a hundredth more than 14.
TAIL_SIGMA = 2.0
_DRAWS = 4096

Stream = Callable[[Trace, int, float, int], Workload]


def draw_fill(trace: Trace, seed: int, load: float = FILL_LOAD) -> Workload:
    """Draw every pod of the trace once in random order, inflated or cut to ``load`` x capacity.

    Pods sorted by name are shuffled. If they request less than the load, pods drawn uniformly with replacement are
    appended until the next draw would exceed the load; that draw is dropped. If they request more, uniformly random pods
    are deleted until they do not. As in the paper's artifact, the test for the next draw counts a
    pod's milli per GPU once, not times its GPUs. Arrivals are at 0, 1, 2, ... and never leave.

    Raises:
        BadInput: the load is too small for any pod that requests the resource of the load.
    """
    rng = np.random.default_rng(seed)
    by_name = np.array(sorted(range(len(trace.pods)), key=lambda i: trace.pods[i].name))
    asked, capacity = read_load(trace)
    once = np.array([pod.gpu_milli for pod in trace.pods]) if trace.has_gpus else asked
    # The target is rounded to a milli: a load such as 0.1 is no exact double.
    target = round(load * capacity)
    pods = rng.permutation(by_name)
    total = int(asked.sum())
    if total > target:
        pods = _cut_pods(rng, pods, asked, target)
    parts = [pods]
    is_full = total >= target
    while not is_full:
        drawn = by_name[rng.integers(len(by_name), size=_DRAWS)]
        before = total + np.cumsum(asked[drawn]) - asked[drawn]
        passes = before + once[drawn] > target
        is_full = bool(passes.any())
        kept = drawn[: int(passes.argmax())] if is_full else drawn
        total += int(asked[kept].sum())
        parts.append(kept)
    pod = np.concatenate(parts)
    if not asked[pod].any():
        raise BadInput("--load", _describe_too_little(trace, load))
    at = np.arange(len(pod), dtype=np.float64)
    return Workload(_draw_order(rng, trace), pod, at, np.full(len(pod), np.inf))


def draw_churn(
    trace: Trace, seed: int, load: float = STREAM_LOAD, arrivals: int = ARRIVALS
) -> Workload:
    """Draw Poisson arrivals of uniformly drawn pods, with exponential lifetimes of mean 1."""
    rng = np.random.default_rng(seed)
    at = np.cumsum(rng.exponential(1.0 / find_rate(trace, load), arrivals))
    pod = rng.integers(len(trace.pods), size=arrivals)
    return Workload(_draw_order(rng, trace), pod, at, rng.exponential(1.0, arrivals))


def draw_bursts(
    trace: Trace, seed: int, load: float = STREAM_LOAD, arrivals: int = ARRIVALS
) -> Workload:
    """As ``draw_churn``, but pods come in batches of the same pod, of geometric size with mean 20.

    Batches are Poisson at 1/20 of the rate, so the mean load is that of ``draw_churn``; the pods of a
    batch arrive at the same moment, and each has its own exponential lifetime.
    """
    rng = np.random.default_rng(seed)
    size = rng.geometric(1.0 / BURST_MEAN, arrivals)  # as many batches as pods is more than enough
    batch = np.repeat(np.arange(arrivals), size)[:arrivals]
    at = np.cumsum(rng.exponential(BURST_MEAN / find_rate(trace, load), arrivals))[batch]
    pod = rng.integers(len(trace.pods), size=arrivals)[batch]
    return Workload(_draw_order(rng, trace), pod, at, rng.exponential(1.0, arrivals))


def draw_daily(
    trace: Trace, seed: int, load: float = STREAM_LOAD, arrivals: int = ARRIVALS
) -> Workload:
    """As ``draw_churn``, but the arrival rate swings by 60 % as a sine, and a day is one mean lifetime.

    The arrivals of a steady Poisson stream are moved to where the integral of the swinging rate,
    t + s (1 - cos(2 pi t / day)) with s = 0.6 day / (2 pi), reaches their time.
    """
    steady = draw_churn(trace, seed, load, arrivals)
    swing = DAY_SWING * DAY / (2.0 * math.pi)
    low, high = steady.at - 2.0 * swing, steady.at.copy()
    for _ in range(60):  # halvings: to the last bit of a double
        middle = (low + high) / 2.0
        is_early = middle + swing * (1.0 - np.cos(2.0 * math.pi * middle / DAY)) < steady.at
        low, high = np.where(is_early, middle, low), np.where(is_early, high, middle)
    at = np.maximum(0.0, np.sort(high))
    return Workload(steady.order, steady.pod, at, steady.lifetime)


def draw_heavy_tail(
    trace: Trace, seed: int, load: float = STREAM_LOAD, arrivals: int = ARRIVALS
) -> Workload:
    """As ``draw_churn``, but lifetimes are lognormal with mean 1 and sigma 2.

    From an empty cluster, such a load takes tens of mean lifetimes to build up, far beyond the run.
    So the stream starts in its steady state: before the ``arrivals``, at time 0, come the pods that would
    be running, Poisson in number, each with the rest of its lifetime. A lifetime under way is
    length-biased: for a lognormal it is again lognormal with mu + sigma², and a uniform part of it is left.
    """
    rng = np.random.default_rng(seed)
    per_time = find_rate(trace, load)
    mu = -(TAIL_SIGMA**2) / 2.0
    n_running = int(rng.poisson(per_time))
    left = rng.lognormal(mu + TAIL_SIGMA**2, TAIL_SIGMA, n_running) * rng.random(n_running)
    later = np.cumsum(rng.exponential(1.0 / per_time, arrivals))
    at = np.concatenate([np.zeros(n_running), later])
    lifetime = np.concatenate([left, rng.lognormal(mu, TAIL_SIGMA, arrivals)])
    pod = rng.integers(len(trace.pods), size=len(at))
    return Workload(_draw_order(rng, trace), pod, at, lifetime)


def make_recorded(trace: Trace, seed: int) -> Workload:
    """Make the workload of pods as they came and left, in seconds; pods that came together are in the order of their file.

    The seed decides only the fixed order of the nodes.

    Raises:
        BadInput: the trace has no arrival times.
    """
    check_recorded(trace)
    arrival = np.array([pod.arrival for pod in trace.pods])
    pod = np.argsort(arrival, kind="stable")
    lifetime = np.array([pod.departure for pod in trace.pods]) - arrival
    order = _draw_order(np.random.default_rng(seed), trace)
    return Workload(order, pod, arrival[pod], lifetime[pod], unit_seconds=1.0, is_recorded=True)


def check_recorded(trace: Trace) -> None:
    """Refuse a trace without arrival times.

    Raises:
        BadInput: the error says what is missing.
    """
    if not trace.is_recorded:
        raise BadInput(
            "--experiment",
            f"recorded: the pods of {trace.name} have no arrival times. pods.csv needs the column arrival; a pod list "
            "of openb needs creation_time, which the multigpu lists lack",
        )


STREAMS: dict[str, Stream] = {
    "churn": draw_churn,
    "bursts": draw_bursts,
    "daily": draw_daily,
    "heavy-tail": draw_heavy_tail,
}


def find_rate(trace: Trace, load: float) -> float:
    """Find the arrivals per mean lifetime such that load x capacity = rate x mean requested amount."""
    asked, capacity = read_load(trace)
    return load * capacity / float(asked.mean())


def read_load(trace: Trace) -> tuple[Ints, int]:
    """Read [pods] how much each pod requests of the load's resource, and its capacity."""
    if trace.has_gpus:
        return list_milli(trace), trace.capacity
    asked = demand.read_demand(trace)
    return asked.amounts[asked.load_row], int(asked.total[asked.load_row])


def list_milli(trace: Trace) -> Ints:
    """List [pods] the milli-GPU that each pod of the trace requests."""
    return np.array([pod.gpus * pod.gpu_milli for pod in trace.pods], dtype=np.int64)


def _describe_too_little(trace: Trace, load: float) -> str:
    asked, capacity = read_load(trace)
    least = int(asked[asked > 0].min(initial=capacity))
    if trace.has_gpus:
        of, smallest = f"{capacity / WHOLE:g} GPUs", f"{least / WHOLE:g}"
    else:
        of, smallest = (
            f"all {demand.read_demand(trace).load_name}",
            f"{least / capacity:g} of it",
        )
    return f"no pod was drawn: the smallest pod requests {smallest}, and the load is {load:g} of {of}; use a larger --load"


def _draw_order(rng: np.random.Generator, trace: Trace) -> Ints:
    return rng.permutation(len(trace.nodes))


def _cut_pods(rng: np.random.Generator, pods: Ints, asked: Ints, target: int) -> Ints:
    """Cut uniformly random pods from ``pods`` until they request no more than ``target``; the order stays."""
    victims = rng.permutation(len(pods))
    left: Ints = asked[pods].sum() - np.cumsum(asked[pods[victims]])
    return np.delete(pods, victims[: int((left <= target).argmax()) + 1])
