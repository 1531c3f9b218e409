"""KAI's queues over time, from the input of KAI's own time-based fair-share simulator.

``python -m bench.kai_over_time FILE`` reads the YAML that KAI's ``cmd/time-based-fairshare-simulator`` takes, lets
Evenkeel's engine play it, and prints what each queue holds and what its fair share is, cycle by cycle: CSV with KAI's columns,
or with ``--output json`` one object with the means beside. ``-`` reads standard input.

What differs from KAI's simulator: a cycle is ten minutes of a virtual clock, in which Evenkeel looks at least once at who
could go, and ``HalfLifePeriod`` is counted in cycles; there is no window (``WindowSize`` is not used),
only the half-life; without ``HalfLifePeriod`` what was used does not count; a job that is evicted comes again, and so many jobs
of a queue are there at any time, so a queue never runs out of them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from scheduler.api import kinds, names
from scheduler.api.door import events
from scheduler.api.queues import configuration
from scheduler.api.queues.kai import CARD
from scheduler.api.times import write_time
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine

Json = Mapping[str, Any]

_NOW = 1_800_000_000.0
_FREE = {"quota": -1, "limit": -1}
_UNLIMITED = Unlimited()
# Pods that make room go at once, so few decisions follow from one.
_DECISIONS_MOST = 100
_CYCLES = 100
_CYCLE_SECONDS = 600


class Point(NamedTuple):
    """What a queue holds in a cycle, and its fair share, in GPUs."""

    allocated: float
    fair: float


def play(given: Json) -> list[dict[str, Point]]:
    """Play what a file of KAI's simulator says; return the points of all queues, cycle by cycle."""
    return list(_Play(given).play(int(_read(given, "Cycles", _CYCLES))))


class _Play:
    """An engine with KAI's queues, and whoever carries its decisions out at once."""

    def __init__(self, given: Json) -> None:
        settings: dict[str, Any] = {"kValue": float(_read(given, "KValue", 1))}
        half_life = float(_read(given, "HalfLifePeriod", 0))
        if half_life:
            settings |= {"usage": True, "usageHalfLifeTime": f"{half_life * _CYCLE_SECONDS:.0f}s"}
        self.engine = Engine(Config(queues=configuration.read_settings({"kai": settings})))
        self._now = _NOW
        self._number = itertools.count()
        # By uid: the job of a pod, by its queue and number.
        self._pods: dict[str, dict[str, Any]] = {}
        for body in (*_make_nodes(given["Nodes"]), *map(_make_queue, given["Queues"])):
            self._see(body)
        for queue, jobs in given["Jobs"].items():
            for _ in range(jobs["NumJobs"]):
                self._add_job(queue, jobs["NumPods"], jobs["GPUs"])

    def _see(self, body: Json) -> None:
        group = body.get("apiVersion", "v1").rpartition("/")[0]
        kind = next(one for one in kinds.BY_KIND[body["kind"]] if one.group == group)
        found = msgspec.convert({**body, "kind": kind.name}, kind.shape)
        self.engine.handle(events.Seen(found), self._now)

    def _add_job(self, queue: str, n_pods: int, gpus: int) -> None:
        """Add the pods of a job; as in KAI's simulator one pod of it is enough."""
        for _ in range(n_pods):
            self._add_pod(queue, gpus)

    def _add_pod(self, queue: str, gpus: int) -> None:
        uid = f"{queue}-{next(self._number):06}"
        resources = {"requests": {names.GPU: gpus}, "limits": {names.GPU: gpus}}
        self._pods[uid] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": uid,
                "namespace": "default",
                "uid": uid,
                "labels": {names.KAI_QUEUE: queue},
                "creationTimestamp": write_time(self._now),
            },
            "spec": {
                "schedulerName": names.SCHEDULER,
                "containers": [{"name": "main", "resources": resources}],
            },
        }
        self._see(self._pods[uid])

    def play(self, n_cycles: int) -> Iterator[dict[str, Point]]:
        for _ in range(n_cycles):
            self._now += _CYCLE_SECONDS
            self._decide()
            yield self._read_points()

    def _decide(self) -> None:
        """Decide until nothing more happens in this cycle."""
        for _ in range(_DECISIONS_MOST):
            outcome = self.engine.decide(self._now, _UNLIMITED)
            for bind in outcome.binds:
                self.engine.handle(events.BindDone(bind.uid), self._now)
                pod = self._pods[bind.uid]
                pod["spec"]["nodeName"] = bind.node
                pod["status"] = {"phase": "Running", "startTime": write_time(self._now)}
                self._see(pod)
            gone = [uid for evict in outcome.evicts for uid in evict.victims]
            for uid in gone:
                pod = self._pods.pop(uid)
                self.engine.handle(events.Gone("Pod", uid), self._now)
                gpus = pod["spec"]["containers"][0]["resources"]["requests"][names.GPU]
                self._add_pod(pod["metadata"]["labels"][names.KAI_QUEUE], gpus)
            if not gone and not outcome.binds:
                return
        raise RuntimeError("pods make room for each other without end")

    def _read_points(self) -> dict[str, Point]:
        accounts = self.engine._kai.accounts
        accounts.settle()
        accounts.tree.settle()
        return {
            name: Point(one.figures.allocated[-1] / CARD, one.fair[-1] / CARD)
            for name, one in sorted(accounts.tree.queues.items())
        }


def _read(given: Json, name: str, default: float) -> float:
    found = given.get(name)
    return default if found is None else float(found)


def _make_nodes(given: Sequence[Json]) -> Iterator[Json]:
    numbers = itertools.count()
    for one in given:
        for _ in range(one["Count"]):
            name = f"node-{next(numbers)}"
            amounts = {"cpu": "1000", "memory": "1000Gi", "pods": "1000", names.GPU: one["GPUs"]}
            yield {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {names.HOSTNAME: name}},
                "status": {"allocatable": amounts},
            }


def _make_queue(given: Json) -> Json:
    gpu = {
        "quota": _read(given, "DeservedGPUs", 0),
        "limit": -1,
        "overQuotaWeight": _read(given, "Weight", 1),
    }
    spec: dict[str, Any] = {
        "resources": {"gpu": gpu, "cpu": _FREE, "memory": _FREE},
        "priority": int(_read(given, "Priority", 100)),
    }
    if given.get("Parent"):
        spec["parentQueue"] = given["Parent"]
    meta = {"name": given["Name"], "uid": given["Name"], "creationTimestamp": write_time(_NOW)}
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": meta, "spec": spec}


def write_csv(points: Sequence[Mapping[str, Point]]) -> str:
    """Write the points as KAI's simulator does."""
    lines = [
        f"{i},{name},{one.allocated:f},{one.fair:f}"
        for i, found in enumerate(points)
        for name, one in found.items()
    ]
    return "\n".join(["Time,QueueID,Allocation,FairShare", *lines])


def sum_up(points: Sequence[Mapping[str, Point]]) -> dict[str, Any]:
    """Return what each queue had in each cycle, and the mean of it over the second half of all cycles."""
    late = points[len(points) // 2 :]
    return {
        name: {
            "mean_allocated": round(sum(found[name].allocated for found in late) / len(late), 3),
            "mean_fair": round(sum(found[name].fair for found in late) / len(late), 3),
            "allocated": [found[name].allocated for found in points],
            "fair": [found[name].fair for found in points],
        }
        for name in points[0]
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.kai_over_time")
    parser.add_argument("file", help="the YAML of a simulation; - reads standard input")
    parser.add_argument("--output", choices=("csv", "json"), default="csv")
    given = parser.parse_args()
    text = sys.stdin.read() if given.file == "-" else Path(given.file).read_text(encoding="utf-8")
    points = play(yaml.safe_load(text))
    print(write_csv(points) if given.output == "csv" else json.dumps(sum_up(points), indent=2))


if __name__ == "__main__":
    main()
