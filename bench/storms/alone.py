"""The operator's engine in a storm, turned as its loop turns it, in the time of the clock: slices of 10 ms."""

from __future__ import annotations

import gc
import itertools
import sys
import time
from typing import Any

import msgspec

from bench.floors import Floor
from bench.storms import weather
from scheduler.api import wire
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine.engine import Engine
from scheduler.kernels import compiling
from scheduler.kube import heap
from scheduler.kube.slices import Slice
from tests.controlplane.objects import Manifest

FLOORS = (*weather.FLOORS, Floor("*.busy", at_most=0.5))


def run(quick: bool) -> list[dict[str, Any]]:
    """Like and different pods, at each size."""
    compiling.compile_kernels(lambda _: None)
    found = []
    for n_nodes in (1_000,) if quick else (1_000, 5_000):
        for alike in (True, False):
            found.append(_storm(n_nodes, alike=alike, seconds=10.0 if quick else 30.0))
            print(f"bench: {found[-1]}", file=sys.stderr, flush=True)
            gc.unfreeze()
            gc.collect()
    return found


def _storm(n_nodes: int, *, alike: bool, seconds: float) -> dict[str, Any]:
    storm = Storm(n_nodes)
    began = time.thread_time()
    for i in range(weather.WAITING):
        storm.see(weather.waiting(i, alike=alike))
    storm.turn_until_quiet()
    parking = time.thread_time() - began
    heap.freeze()
    row = {
        "size": f"{n_nodes} nodes, {weather.WAITING} pods wait, {'alike' if alike else 'all different'}",
        "park_us_a_pod": round(parking / weather.WAITING * 1e6, 1),
    }
    return row | storm.blow(seconds)


class Storm:
    """An engine with nodes, in the time of the clock."""

    def __init__(self, n_nodes: int) -> None:
        self.engine = Engine(Config())
        self._nodes = [weather.node(i) for i in range(n_nodes)]
        self._came: dict[str, tuple[wire.Pod, float]] = {}
        self._waits: list[float] = []
        for node in self._nodes:
            self._see_node(node)

    def _see_node(self, node: Manifest) -> None:
        self.engine.handle(events.Seen(msgspec.convert(node, wire.Node)), time.monotonic())

    def see(self, manifest: Manifest) -> None:
        """A pod comes."""
        pod, now = msgspec.convert(manifest, wire.Pod), time.monotonic()
        pod.metadata.uid = pod.metadata.name
        self._came[pod.metadata.uid] = pod, now
        self.engine.handle(events.Seen(pod), now)

    def change(self, patch: weather.Patch) -> None:
        """Something happens to a node."""
        node = self._nodes[patch.node] = _merged(self._nodes[patch.node], patch.body)
        self._see_node(node)

    def turn(self) -> None:
        """As the loop does; a bind is answered at once."""
        clock = time.monotonic
        outcome = self.engine.decide(clock(), Slice(clock, 500))
        for bind in outcome.binds:
            pod, at = self._came.pop(bind.uid)
            self._waits.append(clock() - at)
            pod.spec.node_name = bind.node
            self.engine.handle(events.BindDone(bind.uid), clock())
            self.engine.handle(events.Seen(pod), clock())

    def turn_until_quiet(self) -> None:
        """Until there is nothing to do."""
        while (
            self.engine.find_due(time.monotonic()) <= time.monotonic() or self.engine.is_compiling
        ):
            self.turn()

    def blow(self, seconds: float) -> dict[str, Any]:
        """What became of the pods that fit."""
        n_waiting, began, busy = len(self._came), time.monotonic(), time.thread_time()
        changes, numbers = weather.changes(len(self._nodes)), itertools.count()
        change_at = fit_at = began
        while (now := time.monotonic()) < began + seconds:
            while change_at <= now:
                self.change(next(changes))
                change_at += 1 / weather.CHANGES
            while fit_at <= now:
                self.see(weather.fitting(next(numbers)))
                fit_at += 1 / weather.FITTING
            self.turn()
            rest = min(change_at, fit_at, self.engine.find_due(now)) - time.monotonic()
            if rest > 0:
                time.sleep(rest)
        share = round((time.thread_time() - busy) / seconds, 3)
        return weather.figures(self._waits, len(self._came) - n_waiting) | {"busy": share}


def _merged(old: Any, patch: Any) -> Any:
    """A merge patch, as far as it adds or replaces."""
    if not isinstance(patch, dict) or not isinstance(old, dict):
        return patch
    return old | {key: _merged(old.get(key), value) for key, value in patch.items()}
