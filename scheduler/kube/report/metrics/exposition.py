"""The text that Prometheus reads, in the format that it asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Metric, PlatformCollector, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from scheduler.config import MetricsConfig
from scheduler.kube.report.metrics import devices, reading
from scheduler.kube.report.metrics.counting import Metrics
from scheduler.kube.report.metrics.devices import Copies, Lines
from scheduler.kube.report.metrics.reading import Sources
from scheduler.kube.report.metrics.stranded import Stranded

_SECONDS = 5.0


class _Read(NamedTuple):
    """What the main loop has handed over; nothing in it changes any more."""

    families: list[Metric]
    copies: Copies | None


class _Families(Collector):
    """Families that are made already, and those of the process."""

    def __init__(self, families: Iterable[Metric], process: CollectorRegistry) -> None:
        self._families, self._process = families, process

    def collect(self) -> Iterable[Metric]:
        yield from self._families
        yield from self._process.collect()


class Exposition:
    """Joins all metrics of one replica.

    Args:
        metrics: what has happened.
        sources: what is read.
        stranded: what was measured.
        config: how much is told of nodes and cards.
    """

    def __init__(
        self, metrics: Metrics, sources: Sources, stranded: Stranded, config: MetricsConfig
    ) -> None:
        self._metrics, self._sources, self._stranded = metrics, sources, stranded
        self._lines = Lines(per_node=config.per_node, per_card=config.per_card)
        self._process = CollectorRegistry()
        ProcessCollector(registry=self._process)
        PlatformCollector(registry=self._process)
        self._main = asyncio.get_running_loop()

    async def across(self, accept: str) -> tuple[bytes, str]:
        """The text and its content type, for another thread.

        What is read is read on the main loop, where everything else changes; the text is made in a third thread, so
        that neither the main loop nor the caller's stands still meanwhile.

        Raises:
            TimeoutError: the main loop is busy.
        """

        async def read() -> _Read:
            return self._read()

        reading_it = asyncio.run_coroutine_threadsafe(read(), self._main)
        async with asyncio.timeout(_SECONDS):
            found = await asyncio.wrap_future(reading_it)
        return await asyncio.to_thread(self._text, found, accept)

    def _read(self) -> _Read:
        families = [
            *self._metrics.collect(),
            *reading.collect(self._sources, self._main.time()),
            *self._stranded.collect(),
        ]
        # As with the measures: once, by the replica that decides, or sums would count everything twice.
        tells = self._lines.is_asked and self._sources.is_deciding()
        return _Read(families, devices.copied(self._sources.engine.cluster) if tells else None)

    def _text(self, found: _Read, accept: str) -> tuple[bytes, str]:
        encoder, content_type = choose_encoder(accept)
        rest = encoder(_Families(found.families, self._process))
        if found.copies is None:
            return rest, content_type
        # In front: the other format ends with a line of its own.
        return self._lines.text(found.copies).encode() + rest, content_type
