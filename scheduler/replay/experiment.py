"""The input and the result of a replay: the types that readers, engine and reports share.

GPU amounts are milli-GPU: 1000 is one whole GPU. Extended resources are (name, whole number), by name. A node of the
trace is known by its index in ``Trace.nodes``, a pod by its index in ``Trace.pods``; an arrival is one visit of a pod.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from scheduler.replay.policies import Policy
from scheduler.replay.words import Learning, Waiting

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Takes the progress of a run, 0..1.
Tell = Callable[[float], None]

WHOLE = 1000  # milli of one GPU
# The length of the mean lifetime, in experiments that have it as their unit of time.
LIFETIME_SECONDS = 3600.0

Amounts = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class TraceNode:
    """A node: CPU in 1/1000 core, host memory in MiB, whole GPUs, their model, extended resources.

    ``mig`` is what its GPUs are cut into, a name of ``devices/mig_models.py``; empty for GPUs that are not cut.
    """

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    model: str
    extended: Amounts = ()
    mig: str = ""


@dataclass(frozen=True, slots=True)
class TracePod:
    """What a pod requests.

    Attributes:
        name: its name, unique in the trace.
        cpu_milli: CPU in 1/1000 core.
        memory_mib: host memory in MiB, may be 0.
        gpus: whole or shared GPUs, on one node.
        gpu_milli: the share of each GPU, 1..1000; below 1000 only when ``gpus`` is 1, and 0 when ``gpus`` is 0.
        models: GPU models it may run on; empty: any.
        gpu_mib: MiB of memory on each GPU; 0: the same share of the memory as ``gpu_milli``.
        extended: the extended resources that it requests.
        app: the value of its label ``app``; empty: none.
        max_per_node: at most so many pods of its app on one node; 0: no limit.
        arrival, departure: when it came and left, in seconds; inf: it never left.
        group: the name of the group whose pods are placed at once; empty: it is placed by itself.
        run_time: for how many seconds it says that it runs; inf: it says nothing.
        queue: the queue of its team; empty: it needs no quota.
        by_memory: it requests its GPU by ``gpu_mib`` alone, as pods for MIG instances do.
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
    group: str = ""
    run_time: float = math.inf
    queue: str = ""
    by_memory: bool = False

    @property
    def kind(self) -> TracePod:
        """The pod without its name, group, queue and times: everything that decides where it may go by itself."""
        return replace(
            self, name="", arrival=0.0, departure=math.inf, group="", run_time=math.inf, queue=""
        )


@dataclass(frozen=True, slots=True)
class Trace:
    """A cluster and the pods once sent to it.

    Attributes:
        name: the name of its folder.
        nodes, pods: in the order of their files.
        is_recorded: its pods have arrival times.
        readings: how contradictory lines of its files were read.
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
    def has_groups(self) -> bool:
        """Whether any pod is placed together with others."""
        return any(pod.group for pod in self.pods)

    @property
    def teams(self) -> tuple[str, ...]:
        """The queues that pods name, sorted."""
        return tuple(sorted({pod.queue for pod in self.pods} - {""}))

    @property
    def has_gpus(self) -> bool:
        """Whether pods request GPUs. If not, the GPUs of the nodes do not matter."""
        return any(pod.gpus for pod in self.pods)


@dataclass(frozen=True, slots=True)
class Workload:
    """Which pods arrive when, and how long they run; N nodes, A arrivals.

    Attributes:
        order: [N] ``order[i]`` is the index of the node that is i-th in the fixed order of this
            seed; ties go to the first node.
        pod: [A] the index of the pod in the trace.
        at: [A] the time of the arrival, ascending; pods that come together have the same time.
        lifetime: [A] how long the pod runs once placed; inf: it never leaves.
        unit_seconds: the length of one unit of these times; it is needed because backoff of the queue is in seconds.
        is_recorded: every pod of the trace comes once; else pods are drawn, and no groups of them.
    """

    order: Ints
    pod: Ints
    at: Floats
    lifetime: Floats
    unit_seconds: float = LIFETIME_SECONDS
    is_recorded: bool = False


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How one run decides.

    Attributes:
        mode: one of ``words.MODES``.
        learn: the pods from which the mode learns.
        queue: a pod that does not fit waits; else it is lost.
        seed: the seed for modes that draw lots.
        measure_frag: measure the fragments of the cluster after every arrival.
        waiting: in which order pods that wait are tried.
        policy: how the queues of the trace's teams share the cluster; None: pods need no quota.
        defrag: how many running pods each plan moves at most; 0: none is ever moved.
    """

    mode: str
    learn: Learning
    queue: bool
    seed: int
    measure_frag: bool
    waiting: Waiting = "backfill"
    policy: Policy | None = None
    defrag: int = 0


@dataclass(frozen=True, slots=True)
class Stays:
    """The stays of pods on nodes; a pod that is evicted has several.

    Attributes:
        arrival: [S] the index of the arrival.
        node: [S] the index of the node.
        start, end: [S] from when to when, in the unit of the workload; inf: it never left.
        is_lost: [S] whether it was evicted, so that what it did was in vain.
    """

    arrival: Ints
    node: Ints
    start: Floats
    end: Floats
    is_lost: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Samples:
    """Looks at the cluster at S moments in equal distances of time, the last after the last arrival.

    Attributes:
        at: [S] the time of each look, in the unit of the workload.
        after: [S] the index of the last arrival before the look.
        stranded: [S, R] the stranded amounts, by the resources of a ``demand.Demand``.
    """

    at: Floats
    after: Ints
    stranded: Floats


@dataclass(frozen=True, slots=True)
class Moved:
    """What came of plans of moves.

    Attributes:
        moves: how many pods were moved.
        missed: how many of them went elsewhere than planned, or had to wait.
        cards: how many cards were whole after a move and not before.
        let_in: how many waiting pods got a node when a pod had left.
    """

    moves: int
    missed: int
    cards: int
    let_in: int


@dataclass(frozen=True, slots=True)
class Series:
    """The history of a run; N nodes, A arrivals.

    Attributes:
        asked: [A] what was requested of the load's resource (milli-GPU in a trace with GPUs) up to and with this
            arrival.
        allocated: [A] what is allocated of this resource right after the decision about this arrival.
        frag: [A] the fragment amount of the cluster in milli-GPU after the arrival; nan when not measured.
        placed_at: [A] the time of placement, the last one of a pod that was evicted; nan: it has no place.
        node: [A] the index of the node; -1: it has no place.
        cpu_used: [N] 1/1000 core in use at the end.
        memory_used: [N] MiB in use at the end.
        gpu_used: milli in use on each GPU of each node at the end.
        occupied: [A] the number of nodes with any pod.
        seconds: the wall time of the run.
        samples: what was stranded; None if that was not measured.
        stays: every stay on a node, where pods may be evicted; None: each pod stays until it ends.
        moved: what came of moves; None: no pod is moved.
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
    stays: Stays | None = None
    moved: Moved | None = None


def ignore_progress(_part: float) -> None:
    """Ignore the progress, for callers that do not show it."""
