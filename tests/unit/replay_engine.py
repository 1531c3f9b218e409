"""Engines for tests of what surrounds one: the simplest that fills a cluster, and two that fail."""

import heapq
import os
import time

import numpy as np

from scheduler.errors import BadInput
from scheduler.replay.experiment import (
    WHOLE,
    RunOptions,
    Series,
    Tell,
    Trace,
    TraceNode,
    TracePod,
    Workload,
    ignore_progress,
)


def first_fit(
    trace: Trace, workload: Workload, options: RunOptions, _tell: Tell = ignore_progress
) -> Series:
    """First node in the seed's order; lowest GPUs; models and memory not looked at; no queue."""
    cpu = [node.cpu_milli for node in trace.nodes]
    used = [[0] * node.gpus for node in trace.nodes]
    n = len(workload.pod)
    asked, allocated, occupied = (np.zeros(n, dtype=np.int64) for _ in range(3))
    placed, node_of = np.full(n, np.nan), np.full(n, -1)
    leaving: list[tuple[float, int, int, list[int]]] = []
    pods_on = np.zeros(len(cpu), dtype=np.int64)
    total_asked = total = 0
    for i, which in enumerate(workload.pod):
        pod, now = trace.pods[which], workload.at[i]
        while leaving and leaving[0][0] <= now:
            _, gone, node, cards = heapq.heappop(leaving)
            cpu[node] += trace.pods[workload.pod[gone]].cpu_milli
            pods_on[node] -= 1
            for card in cards:
                used[node][card] -= trace.pods[workload.pod[gone]].gpu_milli
                total -= trace.pods[workload.pod[gone]].gpu_milli
        total_asked += pod.gpus * pod.gpu_milli
        order = workload.order if options.mode != "random" else workload.order[::-1]
        for node in order:
            cards = [c for c, u in enumerate(used[node]) if u + pod.gpu_milli <= WHOLE][: pod.gpus]
            if cpu[node] >= pod.cpu_milli and len(cards) == pod.gpus:
                cpu[node] -= pod.cpu_milli
                pods_on[node] += 1
                for card in cards:
                    used[node][card] += pod.gpu_milli
                total += pod.gpus * pod.gpu_milli
                placed[i], node_of[i] = now, node
                if np.isfinite(workload.lifetime[i]):
                    heapq.heappush(leaving, (now + workload.lifetime[i], i, int(node), cards))
                break
        asked[i], allocated[i], occupied[i] = total_asked, total, (pods_on > 0).sum()
    measured = (trace.capacity - allocated) * np.float64(0.5)
    frag = measured if options.measure_frag else np.full(n, np.nan)
    cpu_used = np.array([node.cpu_milli for node in trace.nodes]) - np.array(cpu)
    gpu_used = tuple(map(tuple, used))
    return Series(
        asked, allocated, frag, placed, node_of, cpu_used, np.zeros_like(cpu_used), gpu_used,
        occupied, 0.0,
    )  # fmt: skip


def fails(
    trace: Trace, workload: Workload, options: RunOptions, tell: Tell = ignore_progress
) -> Series:
    if options.seed == 2:
        raise ZeroDivisionError("seed two is unlucky")
    return first_fit(trace, workload, options, tell)


def refuses(
    _trace: Trace, _workload: Workload, options: RunOptions, _tell: Tell = ignore_progress
) -> Series:
    raise BadInput("mode", f"{options.mode} is not built in")


def ends(
    trace: Trace, workload: Workload, options: RunOptions, tell: Tell = ignore_progress
) -> Series:
    if options.seed == 2:
        os._exit(7)
    return first_fit(trace, workload, options, tell)


def slow(
    trace: Trace, workload: Workload, options: RunOptions, tell: Tell = ignore_progress
) -> Series:
    """Tells that it is half done, and takes long enough for that to be seen."""
    series = first_fit(trace, workload, options)
    tell(0.5)
    time.sleep(0.5)
    return series


def small_trace() -> Trace:
    """4 nodes of 8, 4, 2 and 0 GPUs: 14,000 milli; pods of every size."""
    nodes = tuple(
        TraceNode(f"n{i}", 32_000, 65_536, gpus, model)
        for i, (gpus, model) in enumerate([(8, "A"), (4, "A"), (2, "B"), (0, "")])
    )
    shapes = [(0, 0), (1, 300), (1, 500), (1, 1000), (2, 1000), (4, 1000), (8, 1000), (1, 250)]
    pods = tuple(
        TracePod(f"p{i}", 500 + 250 * i, 1024, gpus, milli, ())
        for i, (gpus, milli) in enumerate(shapes)
    )
    return Trace("small", nodes, pods)
