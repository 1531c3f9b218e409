"""A storm: 20,000 pods that fit nowhere, and 100 changes of nodes a second. How long do pods wait that do fit?

The operator's engine, turned as its loop turns it, in the time of the clock: slices of 10 ms, events as they come.
Of the changes a quarter each are heartbeats, annotations, labels and allocatable CPU; none of them helps anybody.
The pods that wait are alike, or no two of them are, and then a quarter each wants too much CPU, a label, a
toleration, or a neighbour that is not there. Pods that fit come five a second, no two alike.
"""

from __future__ import annotations

import gc
import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.floors import Floor
from scheduler.api import wire
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.devices import objects
from scheduler.engine.engine import Engine
from scheduler.kube import heap
from scheduler.kube.slices import Slice

FLOORS = (
    Floor("*.p99_seconds", at_most=1.0),
    Floor("*.never_bound", at_most=0),
    Floor("*.busy", at_most=0.5),
)
_WAITING, _CHANGES, _FITTING = 20_000, 100.0, 5.0
_NODE_CPU, _CLOSED = 16, 10
_TAINT = wire.Taint(key="closed", effect="NoSchedule")


def run(quick: bool) -> list[dict[str, Any]]:
    """Like and different pods, at each size."""
    found = []
    for n_nodes in (1_000,) if quick else (1_000, 5_000):
        for alike in (True, False):
            found.append(_storm(n_nodes, alike=alike, seconds=10.0 if quick else 30.0))
            print(f"bench: {found[-1]}", file=sys.stderr, flush=True)
            gc.unfreeze()
            gc.collect()
    return found


def _storm(n_nodes: int, *, alike: bool, seconds: float) -> dict[str, Any]:
    before = _rss()
    storm = _Storm(n_nodes)
    nodes_mib = _rss()
    began = time.thread_time()
    for i in range(_WAITING):
        storm.see(_waiting(0 if alike else i, f"waits-{i}"))
    storm.turn_until_quiet()
    parking = time.thread_time() - began
    heap.freeze()
    row = {
        "size": f"{n_nodes} nodes, {_WAITING} pods wait, {'alike' if alike else 'all different'}",
        "park_us_a_pod": round(parking / _WAITING * 1e6, 1),
        "bytes_a_pod": round((_rss() - nodes_mib) * 2**20 / _WAITING),
        "nodes_mib": nodes_mib - before,
    }
    return row | storm.blow(seconds)


class _Storm:
    def __init__(self, n_nodes: int) -> None:
        self.engine = Engine(Config())
        self.n_nodes = n_nodes
        self._came: dict[str, tuple[wire.Pod, float]] = {}
        self._waits: list[float] = []
        for i in range(n_nodes):
            self.engine.handle(events.NodeSeen(_node(i)), time.monotonic())

    def see(self, pod: wire.Pod) -> None:
        self.engine.handle(events.PodSeen(pod), time.monotonic())

    def turn(self) -> None:
        """As the loop does; a bind is answered at once."""
        clock = time.monotonic
        outcome = self.engine.decide(clock(), Slice(clock, 500))
        for bind in outcome.binds:
            pod, at = self._came.pop(bind.uid)
            self._waits.append(clock() - at)
            pod.spec.node_name = bind.node
            self.engine.handle(events.BindDone(bind.uid), clock())
            self.engine.handle(events.PodSeen(pod), clock())

    def turn_until_quiet(self) -> None:
        while self.engine.due(time.monotonic()) <= time.monotonic() or self.engine.is_compiling:
            self.turn()

    def blow(self, seconds: float) -> dict[str, Any]:
        """What became of the pods that fit."""
        began, busy = time.monotonic(), time.thread_time()
        changes, numbers = self._changes(), itertools.count()
        change_at = fit_at = began
        while (now := time.monotonic()) < began + seconds:
            while change_at <= now:
                self.engine.handle(next(changes), now)
                change_at += 1 / _CHANGES
            while fit_at <= now:
                pod = _fitting(next(numbers))
                self._came[pod.metadata.uid] = pod, now
                self.see(pod)
                fit_at += 1 / _FITTING
            self.turn()
            rest = min(change_at, fit_at, self.engine.due(now)) - time.monotonic()
            if rest > 0:
                time.sleep(rest)
        waits = sorted(self._waits)
        return {
            "fitting": len(waits) + len(self._came),
            "never_bound": len(self._came),
            "p50_seconds": round(waits[len(waits) // 2], 4),
            "p99_seconds": round(waits[int(len(waits) * 0.99)], 4),
            "longest_seconds": round(waits[-1], 4),
            "busy": round((time.thread_time() - busy) / seconds, 3),
        }

    def _changes(self) -> Iterator[events.Event]:
        for n in itertools.count():
            node = _node(n // 4 % self.n_nodes)
            kind = n % 4
            if kind == 1:
                node.metadata.annotations = {"storm": str(n)}
            elif kind == 2:
                node.metadata.labels = {**(node.metadata.labels or {}), "storm": str(n)}
            elif kind == 3:
                node.status.allocatable = {**(node.status.allocatable or {}), "cpu": _NODE_CPU + 1}
            yield events.NodeSeen(node)


def _node(i: int) -> wire.Node:
    node = objects.node(f"node-{i:05}", {"cpu": _NODE_CPU, "memory": "64Gi", "pods": 110}, [])
    node.metadata.labels = {"kubernetes.io/hostname": node.metadata.name, "zone": f"z{i % 3}"}
    if i % _CLOSED == 0:
        node.metadata.labels["pool"] = "closed"
        node.spec.taints = [_TAINT]
    return node


def _pod(name: str, asked: wire.Quantities, **spec: Any) -> wire.Pod:
    container = wire.Container("main", wire.Resources(requests=asked))
    return wire.Pod(
        wire.Meta(name=name, namespace="default", uid=name),
        wire.PodSpec(scheduler_name=Config().scheduler_name, containers=[container], **spec),
    )


def _fitting(i: int) -> wire.Pod:
    return _pod(f"fits-{i}", {"cpu": f"{10 + i % 900}m", "memory": f"{1 + i}Mi"})


def _waiting(i: int, name: str) -> wire.Pod:
    # Less than a node has: each waits for one thing.
    asked: wire.Quantities = {"cpu": f"{100 + i // 4}m"}
    match i % 4:
        case 0:
            return _pod(name, {"cpu": f"{1_000 * _NODE_CPU * 2 + i}m"})
        case 1:
            return _pod(name, asked, node_selector={"rack": f"r{i}"})
        case 2:
            return _pod(name, asked, node_selector={"pool": "closed"})
        case _:
            term = wire.PodTerm(
                label_selector=wire.LabelSelector({"app": f"a{i}"}), topology_key="zone"
            )
            near = wire.PodAffinity([term])
            return _pod(name, asked, affinity=wire.Affinity(pod_affinity=near))


def _rss() -> int:
    """MiB of this process by now."""
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (line,) = (line for line in status if line.startswith("VmRSS:"))
    return int(line.split()[1]) // 1024
