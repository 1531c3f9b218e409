"""Measures used and stranded capacity from time to time, with the audit's own measure.

The main loop measures one typical pod after another, so that other tasks get their turn in between; and so seldom that it
takes no more than a hundredth of the loop's time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

import numpy as np
import structlog
from prometheus_client import Metric

from scheduler.engine.engine import Engine
from scheduler.engine.questions import measures
from scheduler.engine.questions.claims import CountedClaims
from scheduler.engine.questions.contract import Steps
from scheduler.engine.questions.measures import StrandedFigures
from scheduler.kube.report.metrics import catalogue, claims, namespaces, text
from scheduler.measure import figures as m
from scheduler.measure.claimed import ClaimFigures
from scheduler.measure.figures import Figures

T = TypeVar("T")
_SECONDS = 10.0
_LOOK_SECONDS = 1.0
_SHARE = 0.01
_GIB = 2.0**30
_log = structlog.get_logger("evenkeel.metrics")
# The metric of each dimension of the figures, and the factor to the metric's unit.
_METRICS = (
    (catalogue.CPU_CORES, 1.0),
    (catalogue.MEMORY_BYTES, _GIB),
    (catalogue.GPUS, 1.0),
    (catalogue.GPU_MEMORY_BYTES, _GIB),
)


class _Measured(NamedTuple):
    found: StrandedFigures
    claimed: ClaimFigures
    at: float


class Stranded:
    """Measures as long as this replica decides.

    Args:
        engine: knows the nodes that are measured.
        is_deciding: whether this replica leads.
        per_node: whether there are figures for each node.
    """

    def __init__(self, engine: Engine, is_deciding: Callable[[], bool], *, per_node: bool) -> None:
        self._engine, self._is_deciding, self._per_node = engine, is_deciding, per_node
        self._last: _Measured | None = None

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            rest = _LOOK_SECONDS
            if self._is_deciding():
                rest = max(_SECONDS, await self._try_to_measure() / _SHARE)
            else:
                self._last = None
            await asyncio.sleep(rest)

    async def _try_to_measure(self) -> float:
        try:
            return await self._measure()
        except Exception:  # noqa: BLE001 - whatever it is, pods are placed without it
            _log.exception("stranded capacity cannot be measured")
            self._last = None
            return 0.0

    async def _measure(self) -> float:
        """Measure once; return the seconds of the loop that it took."""
        found, spent = await _take(self._engine.ask(measures.Stranded()))
        claimed, more = await _take(self._engine.ask(CountedClaims()))
        self._last = _Measured(found, claimed, time.time())
        return spent + more

    def collect(self) -> Iterator[Metric]:
        """Yield the last measures; none on a replica that does not decide."""
        if self._last is None or not self._is_deciding():
            return
        (figures, gpus), claimed, at = self._last
        amounts = figures.amounts.sum(axis=2).tolist()
        for (metric, unit), dimension in zip(_METRICS, range(len(m.DIMENSIONS)), strict=True):
            yield metric.make_metric(
                ((part,), amounts[i][dimension] * unit) for i, part in enumerate(m.FIGURES)
            )
        yield namespaces.make_allocated(gpus)
        yield from claims.collect(claimed)
        yield catalogue.MEASURED.make_single(at)

    def get_node_figures(self) -> Figures | None:
        """Return the last figures of every node, if there are to be any; None on a replica that does not decide."""
        last = self._last if self._per_node and self._is_deciding() else None
        return last.found.figures if last is not None else None


async def _take(steps: Steps[T]) -> tuple[T, float]:
    """Take an answer step by step; return it with the seconds of the loop that it took."""
    spent = 0.0
    while True:
        began = time.perf_counter()
        try:
            next(steps)
        except StopIteration as end:
            return end.value, spent + time.perf_counter() - began
        spent += time.perf_counter() - began
        await asyncio.sleep(0)


def write_lines(figures: Figures) -> bytes:
    """Write lines with how much of its GPUs is stranded, for every node that has any."""
    rows = np.flatnonzero(figures.amounts[m.CAPACITY, m.GPU] > 0)
    labels = [f'{{node="{figures.names[i]}"}}' for i in rows.tolist()]
    return text.write_gauge(
        catalogue.NODE_STRANDED, labels, figures.amounts[m.STRANDED, m.GPU, rows]
    )
