"""The input and the result of a replay: the types that readers, engine and reports share.

GPU amounts are milli-GPU: 1000 is one whole GPU. Extended resources are (name, whole number), by name. A node of the trace is known by its index in
``Trace.nodes``, a pod by its index in ``Trace.pods``; an arrival is one visit of such a pod.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from scheduler.replay.words import Learning

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Hears how much of a run is done, 0..1.
Tell = Callable[[float], None]

WHOLE = 1000  # milli of one GPU
# In experiments whose unit of time is the mean lifetime, this is how long one is.
LIFETIME_SECONDS = 3600.0

Amounts = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class TraceNode:
    """A node: CPU in 1/1000 core, host memory in MiB, whole GPUs, their model, extended resources."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    model: str
    extended: Amounts = ()


@dataclass(frozen=True, slots=True)
class TracePod:
    """What a pod requests.

    Attributes:
        name: its name, unique in the trace.
        cpu_milli: CPU in 1/1000 core.
        memory_mib: host memory in MiB, may be 0.
        gpus: whole or shared GPUs, on one node.
        gpu_milli: share of each of them, 1..1000; below 1000 only when ``gpus`` is 1, 0 when it is 0.
        models: GPU models it may run on; empty: any.
        gpu_mib: MiB on each GPU; 0: the same share of the memory as ``gpu_milli``.
        extended: what it requests of extended resources.
        app: its label ``app``; empty: none.
        max_per_node: at most so many pods of its app on one node; 0: no limit.
        arrival, departure: when it came and left, in seconds; inf: it never left.
    """

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    models: tuple[str, ...]
    gpu_mib: int = 0
    extended: Amounts = ()
    app: str = ""
    max_per_node: int = 0
    arrival: float = 0.0
    departure: float = math.inf

    @property
    def kind(self) -> TracePod:
        """All of it that decides where it may go, as a pod: its name and its times do not."""
        return replace(self, name="", arrival=0.0, departure=math.inf)


@dataclass(frozen=True, slots=True)
class Trace:
    """A cluster and the pods once sent to it.

    Attributes:
        name: that of its folder.
        nodes, pods: in the order of their files.
        is_recorded: its pods have arrival times.
        readings: where its files say what cannot be, in which sense they were taken.
    """

    name: str
    nodes: tuple[TraceNode, ...]
    pods: tuple[TracePod, ...]
    is_recorded: bool = False
    readings: tuple[str, ...] = ()

    @property
    def capacity(self) -> int:
        """Milli-GPU of all nodes."""
        return WHOLE * sum(node.gpus for node in self.nodes)

    @property
    def has_gpus(self) -> bool:
        """Whether GPUs are requested. If not, those of its nodes do not matter."""
        return any(pod.gpus for pod in self.pods)


@dataclass(frozen=True, slots=True)
class Workload:
    """Which pods arrive when, and for how long; N nodes, A arrivals.

    Attributes:
        order: [N] ``order[i]`` is the index of the node that is i-th in the fixed order of this
            seed; ties go to the first.
        pod: [A] index into the trace's pods.
        at: [A] time of arrival, ascending; pods that come together share it.
        lifetime: [A] time it runs once placed; inf: it never leaves.
        unit_seconds: how long one unit of these times is: backoff of the queue is in seconds.
    """

    order: Ints
    pod: Ints
    at: Floats
    lifetime: Floats
    unit_seconds: float = LIFETIME_SECONDS


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How one run decides.

    Attributes:
        mode: one of ``words.MODES``.
        learn: the pods from which the mode learns.
        queue: a pod that does not fit waits; else it is lost.
        seed: for modes that draw lots.
        measure_frag: measure the fragments of the cluster after every arrival.
    """

    mode: str
    learn: Learning
    queue: bool
    seed: int
    measure_frag: bool


@dataclass(frozen=True, slots=True)
class Samples:
    """Looks at the cluster at S instants, as far apart in time as each other, the last after the last arrival.

    Attributes:
        at: [S] when, in the times of the workload.
        after: [S] index of the last arrival before it.
        stranded: [S, R] stranded, by the resources of a ``demand.Demand``.
    """

    at: Floats
    after: Ints
    stranded: Floats


@dataclass(frozen=True, slots=True)
class Series:
    """What happened, N nodes and A arrivals.

    Attributes:
        asked: [A] of the resource that load is of (milli-GPU in a trace with GPUs): all that has arrived,
            this arrival included.
        allocated: [A] of that resource, right after this arrival was decided.
        frag: [A] fragment amount of the cluster in milli-GPU after it; nan when not measured.
        placed_at: [A] time of placement; nan: never.
        node: [A] index of the node; -1: never placed.
        cpu_used: [N] 1/1000 core in use at the end.
        memory_used: [N] MiB in use at the end.
        gpu_used: milli in use on each GPU of each node at the end.
        occupied: [A] nodes with anything on them.
        seconds: wall time of the run.
        samples: None if nothing was measured.
    """

    asked: Ints
    allocated: Ints
    frag: Floats
    placed_at: Floats
    node: Ints
    cpu_used: Ints
    memory_used: Ints
    gpu_used: tuple[tuple[int, ...], ...]
    occupied: Ints
    seconds: float
    samples: Samples | None = None


def ignore(_part: float) -> None:
    """For callers that do not show progress."""
