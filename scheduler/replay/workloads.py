"""Which pods arrive when, drawn from a trace and a seed; equal seeds give equal workloads for every mode.

``fill`` is the published experiment of "Beware of Fragmentation" (USENIX ATC'23): pods arrive and
stay. The next are our own: pods come and go while the load (what all that would run if nothing were
lost request, over the capacity) keeps its mean. Their unit of time is the mean lifetime. Load is of GPUs where
the trace has any, else of the resource that binds, see ``demand``. ``recorded`` is what really happened,
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


def fill(trace: Trace, seed: int, load: float = FILL_LOAD) -> Workload:
    """Every pod of the trace once in random order, inflated or cut to ``load`` x capacity.

    Pods sorted by name are shuffled. Below the load, pods drawn uniformly with replacement are
    appended until the next draw would pass it; that draw is dropped. Above it, uniformly random pods
    are deleted until they do not. As in the paper's artifact, the test for the next draw counts a
    pod's milli per GPU once, not times its GPUs. Arrivals are at 0, 1, 2, ... and never leave.

    Raises:
        BadInput: the load is too little for any pod that requests the resource of the load.
    """
    rng = np.random.default_rng(seed)
    by_name = np.array(sorted(range(len(trace.pods)), key=lambda i: trace.pods[i].name))
    asked, capacity = of_load(trace)
    once = np.array([pod.gpu_milli for pod in trace.pods]) if trace.has_gpus else asked
    # Rounded to a milli: a load such as 0.1 is no exact double.
    target = round(load * capacity)
    pods = rng.permutation(by_name)
    total = int(asked.sum())
    if total > target:
        pods = _cut(rng, pods, asked, target)
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
        raise BadInput("--load", _too_little(trace, load))
    at = np.arange(len(pod), dtype=np.float64)
    return Workload(_order(rng, trace), pod, at, np.full(len(pod), np.inf))


def churn(trace: Trace, seed: int, load: float = STREAM_LOAD, arrivals: int = ARRIVALS) -> Workload:
    """Poisson arrivals of pods drawn uniformly, exponential lifetimes of mean 1."""
    rng = np.random.default_rng(seed)
    at = np.cumsum(rng.exponential(1.0 / rate(trace, load), arrivals))
    pod = rng.integers(len(trace.pods), size=arrivals)
    return Workload(_order(rng, trace), pod, at, rng.exponential(1.0, arrivals))


def bursts(
    trace: Trace, seed: int, load: float = STREAM_LOAD, arrivals: int = ARRIVALS
) -> Workload:
    """As ``churn``, but pods come as batches of one pod, of geometric size with mean 20.

    Batches are Poisson at 1/20 of the rate, so the mean load is that of ``churn``; the pods of a
    batch arrive at one moment and live each its own exponential lifetime.
    """
    rng = np.random.default_rng(seed)
    size = rng.geometric(1.0 / BURST_MEAN, arrivals)  # as many batches as pods is more than enough
    batch = np.repeat(np.arange(arrivals), size)[:arrivals]
    at = np.cumsum(rng.exponential(BURST_MEAN / rate(trace, load), arrivals))[batch]
    pod = rng.integers(len(trace.pods), size=arrivals)[batch]
    return Workload(_order(rng, trace), pod, at, rng.exponential(1.0, arrivals))


def daily(trace: Trace, seed: int, load: float = STREAM_LOAD, arrivals: int = ARRIVALS) -> Workload:
    """As ``churn``, but the arrival rate swings by 60 % as a sine, a day being one mean lifetime.

    The arrivals of a steady Poisson stream are moved to where the integral of the swinging rate,
    t + s (1 - cos(2 pi t / day)) with s = 0.6 day / (2 pi), reaches their time.
    """
    steady = churn(trace, seed, load, arrivals)
    swing = DAY_SWING * DAY / (2.0 * math.pi)
    low, high = steady.at - 2.0 * swing, steady.at.copy()
    for _ in range(60):  # halvings: to the last bit of a double
        middle = (low + high) / 2.0
        is_early = middle + swing * (1.0 - np.cos(2.0 * math.pi * middle / DAY)) < steady.at
        low, high = np.where(is_early, middle, low), np.where(is_early, high, middle)
    at = np.maximum(0.0, np.sort(high))
    return Workload(steady.order, steady.pod, at, steady.lifetime)


def heavy_tail(
    trace: Trace, seed: int, load: float = STREAM_LOAD, arrivals: int = ARRIVALS
) -> Workload:
    """As ``churn``, but lifetimes are lognormal with mean 1 and sigma 2.

    From an empty cluster, such a load takes tens of mean lifetimes to build up, far beyond the run.
    So the stream starts in its steady state: before the ``arrivals``, at time 0, come the pods that would
    be running, Poisson in number, each with what is left of its life. A life under way is
    length-biased, for a lognormal again lognormal with mu + sigma², and a uniform part of it is left.
    """
    rng = np.random.default_rng(seed)
    per_time = rate(trace, load)
    mu = -(TAIL_SIGMA**2) / 2.0
    n_running = int(rng.poisson(per_time))
    left = rng.lognormal(mu + TAIL_SIGMA**2, TAIL_SIGMA, n_running) * rng.random(n_running)
    later = np.cumsum(rng.exponential(1.0 / per_time, arrivals))
    at = np.concatenate([np.zeros(n_running), later])
    lifetime = np.concatenate([left, rng.lognormal(mu, TAIL_SIGMA, arrivals)])
    pod = rng.integers(len(trace.pods), size=len(at))
    return Workload(_order(rng, trace), pod, at, lifetime)


def recorded(trace: Trace, seed: int) -> Workload:
    """The pods as they came and left, in seconds; those that came at once in the order of their file.

    The seed gives the fixed order of the nodes, nothing else.

    Raises:
        BadInput: no arrival times are recorded.
    """
    check_recorded(trace)
    arrival = np.array([pod.arrival for pod in trace.pods])
    pod = np.argsort(arrival, kind="stable")
    lifetime = np.array([pod.departure for pod in trace.pods]) - arrival
    order = _order(np.random.default_rng(seed), trace)
    return Workload(order, pod, arrival[pod], lifetime[pod], unit_seconds=1.0)


def check_recorded(trace: Trace) -> None:
    """Refuse a trace without arrival times.

    Raises:
        BadInput: says what is missing.
    """
    if not trace.is_recorded:
        raise BadInput(
            "--experiment",
            f"recorded: the pods of {trace.name} have no arrival times. pods.csv needs the column arrival; a pod list "
            "of openb needs creation_time, which the multigpu lists lack",
        )


STREAMS: dict[str, Stream] = {
    "churn": churn,
    "bursts": bursts,
    "daily": daily,
    "heavy-tail": heavy_tail,
}


def rate(trace: Trace, load: float) -> float:
    """Arrivals per mean lifetime such that load x capacity = rate x mean requested amount."""
    asked, capacity = of_load(trace)
    return load * capacity / float(asked.mean())


def of_load(trace: Trace) -> tuple[Ints, int]:
    """[pods] how much each requests of the load's resource, and its capacity."""
    if trace.has_gpus:
        return milli_asked(trace), trace.capacity
    asked = demand.of_trace(trace)
    return asked.amounts[asked.load_row], int(asked.total[asked.load_row])


def milli_asked(trace: Trace) -> Ints:
    """[pods] milli-GPU that each pod of the trace requests."""
    return np.array([pod.gpus * pod.gpu_milli for pod in trace.pods], dtype=np.int64)


def _too_little(trace: Trace, load: float) -> str:
    asked, capacity = of_load(trace)
    least = int(asked[asked > 0].min(initial=capacity))
    if trace.has_gpus:
        of, smallest = f"{capacity / WHOLE:g} GPUs", f"{least / WHOLE:g}"
    else:
        of, smallest = (
            f"all {demand.of_trace(trace).load_name}",
            f"{least / capacity:g} of it",
        )
    return f"no pod was drawn: the smallest pod requests {smallest}, and the load is {load:g} of {of}; use a larger --load"


def _order(rng: np.random.Generator, trace: Trace) -> Ints:
    return rng.permutation(len(trace.nodes))


def _cut(rng: np.random.Generator, pods: Ints, asked: Ints, target: int) -> Ints:
    """``pods`` in their order, without as many uniformly random ones as it takes to come down to ``target``."""
    victims = rng.permutation(len(pods))
    left: Ints = asked[pods].sum() - np.cumsum(asked[pods[victims]])
    return np.delete(pods, victims[: int((left <= target).argmax()) + 1])
