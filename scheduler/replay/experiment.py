"""What a replay is given and what it answers: the words between readers, engine and reports.

GPU amounts are milli-GPU: 1000 is one whole GPU. A node of the trace is known by its index in
``Trace.nodes``, a pod by its index in ``Trace.pods``; an arrival is one visit of such a pod.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduler.replay.words import Learning

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Hears how much of a run is done, 0..1.
Tell = Callable[[float], None]

WHOLE = 1000  # milli of one GPU


@dataclass(frozen=True, slots=True)
class TraceNode:
    """A node: CPU in 1/1000 core, host memory in MiB, whole GPUs, their model."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    model: str


@dataclass(frozen=True, slots=True)
class TracePod:
    """What a pod asks for.

    Attributes:
        name: its name, unique in the trace.
        cpu_milli: CPU in 1/1000 core.
        memory_mib: host memory in MiB, may be 0.
        gpus: whole or shared GPUs, on one node.
        gpu_milli: share of each of them, 1..1000; below 1000 only when ``gpus`` is 1, 0 when it is 0.
        models: GPU models it may run on; empty: any.
        gpu_mib: MiB on each GPU; 0: the same share of the memory as ``gpu_milli``.
    """

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    models: tuple[str, ...]
    gpu_mib: int = 0


@dataclass(frozen=True, slots=True)
class Trace:
    """A cluster and the pods once sent to it."""

    name: str
    nodes: tuple[TraceNode, ...]
    pods: tuple[TracePod, ...]

    @property
    def capacity(self) -> int:
        """Milli-GPU of all nodes."""
        return WHOLE * sum(node.gpus for node in self.nodes)


@dataclass(frozen=True, slots=True)
class Workload:
    """Who arrives when, and for how long; N nodes, A arrivals.

    Attributes:
        order: [N] ``order[i]`` is the index of the node that is i-th in the fixed order of this
            seed; ties go to the first.
        pod: [A] index into the trace's pods.
        at: [A] time of arrival, ascending; pods that come together share it.
        lifetime: [A] time it runs once placed; inf: it never leaves.
    """

    order: Ints
    pod: Ints
    at: Floats
    lifetime: Floats


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How one run decides.

    Attributes:
        mode: one of ``words.MODES``.
        learn: whom the mode learns from.
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
class Series:
    """What happened, N nodes and A arrivals.

    Attributes:
        asked: [A] milli-GPU that have arrived, this arrival included.
        allocated: [A] milli-GPU allocated right after this arrival was decided.
        frag: [A] fragment amount of the cluster in milli-GPU after it; nan when not measured.
        placed_at: [A] time of placement; nan: never.
        node: [A] index of the node; -1: never placed.
        cpu_used: [N] 1/1000 core in use at the end.
        memory_used: [N] MiB in use at the end.
        gpu_used: milli in use on each GPU of each node at the end.
        occupied: [A] nodes with anything on them.
        seconds: wall time of the run.
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


def ignore(_part: float) -> None:
    """For whom it is of no interest how far a run has come."""
