"""Nodes, what happens to them, pods that fit nowhere, and pods that fit.

Of the changes a quarter each are heartbeats, annotations, labels and allocatable CPU; none of them helps anybody.
The pods that wait are alike, or no two of them are, and then a quarter each wants too much CPU, a label, a
toleration, or a neighbour that is not there. Pods that fit come five a second, no two alike.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

from bench.floors import Floor
from tests.controlplane import objects
from tests.controlplane.objects import Manifest

WAITING, CHANGES, FITTING = 20_000, 100.0, 5.0
FLOORS = (
    Floor("*.p99_seconds", at_most=1.0),
    Floor("*.never_bound", at_most=0),
)
_NODE_CPU, _CLOSED = 16, 10
_TAINT = {"key": "closed", "effect": "NoSchedule"}
# A heartbeat a quarter of all changes: the time that is said does not matter.
_HEARTBEAT = "2026-01-01T00:{:02}:{:02}Z"


class Patch(NamedTuple):
    """A merge patch of a node; ``of_status``: it is written to the node's status."""

    node: int
    body: dict[str, Any]
    of_status: bool


def node(i: int) -> Manifest:
    """One in ten is closed to pods that do not tolerate it."""
    closed = i % _CLOSED == 0
    labels = {"zone": f"z{i % 3}"} | ({"pool": "closed"} if closed else {})
    taints = [_TAINT] if closed else []
    return objects.node(f"node-{i:05}", cpu=_NODE_CPU, memory="64Gi", labels=labels, taints=taints)


def changes(n_nodes: int) -> Iterator[Patch]:
    """What happens, node by node, without end."""
    for n in itertools.count():
        i, turn = n // 4 % n_nodes, n // 4 // n_nodes
        match n % 4:
            case 0:
                ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
                ready["lastHeartbeatTime"] = _HEARTBEAT.format(n // 60 % 60, n % 60)
                yield Patch(i, {"status": {"conditions": [ready]}}, of_status=True)
            case 1:
                yield Patch(i, {"metadata": {"annotations": {"storm": str(n)}}}, of_status=False)
            case 2:
                yield Patch(i, {"metadata": {"labels": {"storm": str(n)}}}, of_status=False)
            case _:
                cpu = str(_NODE_CPU + 1 - turn % 2)
                yield Patch(i, {"status": {"allocatable": {"cpu": cpu}}}, of_status=True)


def waiting(i: int, *, alike: bool) -> Manifest:
    """A pod that fits nowhere."""
    name = f"waits-{i:05}"
    if alike:
        i = 0
    # Less than a node has: each waits for one thing.
    asked = {"cpu": f"{100 + i // 4}m"}
    match i % 4:
        case 0:
            return objects.pod(name, requests={"cpu": f"{1_000 * _NODE_CPU * 2 + i}m"})
        case 1:
            return objects.pod(name, requests=asked, nodeSelector={"rack": f"r{i}"})
        case 2:
            return objects.pod(name, requests=asked, nodeSelector={"pool": "closed"})
        case _:
            term = {"labelSelector": {"matchLabels": {"app": f"a{i}"}}, "topologyKey": "zone"}
            near = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            return objects.pod(name, requests=asked, affinity={"podAffinity": near})


def fitting(i: int) -> Manifest:
    """A pod that does."""
    asked = {"cpu": f"{10 + i % 900}m", "memory": f"{1 + i}Mi"}
    return objects.pod(f"fits-{i:05}", labels={"fits": "yes"}, requests=asked)


def figures(waits: list[float], never_bound: int) -> dict[str, Any]:
    """What became of the pods that fit, by the seconds that each waited."""
    waits = sorted(waits)
    return {
        "fitting": len(waits) + never_bound,
        "never_bound": never_bound,
        "p50_seconds": round(waits[len(waits) // 2], 4),
        "p99_seconds": round(waits[int(len(waits) * 0.99)], 4),
        "longest_seconds": round(waits[-1], 4),
    }
