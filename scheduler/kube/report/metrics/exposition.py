"""The text that Prometheus reads, in the format that it requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from itertools import chain
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Metric, PlatformCollector, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from scheduler.api.metrics_settings import MetricsConfig
from scheduler.engine.questions.measures import (
    DeviceColumns,
    Devices,
    HoldColumns,
    Holds,
    Instances,
    PartColumns,
)
from scheduler.engine.questions.space_quotas import SpaceQuotaStates
from scheduler.kube.report.metrics import reading, stranded
from scheduler.kube.report.metrics.counting import Metrics
from scheduler.kube.report.metrics.devices import Lines
from scheduler.kube.report.metrics.hami import HamiLines
from scheduler.kube.report.metrics.reading import Sources
from scheduler.kube.report.metrics.stranded import Stranded
from scheduler.measure.figures import Figures

_SECONDS = 5.0


class _Read(NamedTuple):
    """What the main loop has handed over; it does not change any more."""

    families: list[Metric]
    copies: DeviceColumns | None
    holds: HoldColumns | None
    parts: PartColumns | None
    stranded: Figures | None


class _Families(Collector):
    """Families that are already made, and those of the process."""

    def __init__(self, families: Iterable[Metric], process: CollectorRegistry) -> None:
        self._families, self._process = families, process

    def collect(self) -> Iterable[Metric]:
        yield from self._families
        yield from self._process.collect()


class Exposition:
    """Joins all metrics of one replica.

    Args:
        metrics: counters and histograms.
        sources: the parts from which present figures are read.
        measured: the capacity that is used, and the free capacity that no pod can use.
        config: whether there are lines for each node, and for each card, and under which names.
    """

    def __init__(
        self, metrics: Metrics, sources: Sources, measured: Stranded, config: MetricsConfig
    ) -> None:
        self._metrics, self._sources, self._measured = metrics, sources, measured
        self._lines = Lines(per_node=config.per_node, per_card=config.per_card)
        self._hami = HamiLines(config)
        self._process = CollectorRegistry()
        ProcessCollector(registry=self._process)
        PlatformCollector(registry=self._process)
        self._main = asyncio.get_running_loop()

    async def make_text(self, accept: str) -> tuple[str, AsyncIterator[bytes]]:
        """Return the content type and the parts of the text, for a caller in another thread.

        Figures are read on the main loop, which also changes them; the text is made in a third thread, so that neither
        the main loop nor the caller's loop stands still meanwhile.

        Raises:
            TimeoutError: the main loop is busy.
        """

        async def read() -> _Read:
            return self._read_all()

        reading_it = asyncio.run_coroutine_threadsafe(read(), self._main)
        async with asyncio.timeout(_SECONDS):
            found = await asyncio.wrap_future(reading_it)
        encoder, content_type = choose_encoder(accept)
        return content_type, self._write_parts(found, encoder)

    def _read_all(self) -> _Read:
        families = [
            *self._metrics.collect(),
            *reading.collect(self._sources, self._main.time()),
            *self._measured.collect(),
            *self._hami.collect(self._sources.version),
        ]
        # Only the replica that decides has them, as with the measures: else sums would count everything twice.
        engine, is_deciding = self._sources.engine, self._sources.is_deciding()
        has_lines = is_deciding and (self._lines.is_asked or self._hami.is_asked)
        copies = engine.ask(Devices()) if has_lines else None
        holds = engine.ask(Holds()) if is_deciding and self._hami.has_pods else None
        parts: PartColumns | None = None
        if is_deciding and self._hami.is_asked:
            parts = engine.ask(Instances())
            families += self._hami.collect_quotas(engine.ask(SpaceQuotaStates()))
        return _Read(families, copies, holds, parts, self._measured.get_node_figures())

    async def _write_parts(
        self, found: _Read, encoder: Callable[[Collector], bytes]
    ) -> AsyncIterator[bytes]:
        if found.copies is not None:
            # They come first: one of the formats has a last line of its own.
            lines = chain(
                self._lines.write_parts(found.copies) if self._lines.is_asked else (),
                self._hami.write_parts(found.copies, found.holds, found.parts)
                if self._hami.is_asked
                else (),
            )
            while (part := await asyncio.to_thread(next, lines, None)) is not None:
                yield part
        if found.stranded is not None:
            yield await asyncio.to_thread(stranded.write_lines, found.stranded)
        yield await asyncio.to_thread(encoder, _Families(found.families, self._process))
