"""What the metrics say at the moment they are asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from scheduler.engine.engine import Engine
from scheduler.kube.bind.binder import Binder
from scheduler.kube.lead.lease import Holder
from scheduler.kube.report.metrics import Metrics
from scheduler.kube.report.probes import Signs
from scheduler.kube.report.reporter import Reporter

_SECONDS = 5.0


class Exposition:
    """Reads the parts of one replica into its metrics.

    Args:
        metrics: theirs.
        signs: what the probes look at too.
        engine: what is known and waits.
        binder: what was bound.
        reporter: what is told.
        is_deciding: whether this replica leads.
    """

    def __init__(
        self,
        metrics: Metrics,
        signs: Signs,
        *,
        engine: Engine,
        binder: Binder,
        reporter: Reporter,
        is_deciding: Callable[[], bool],
    ) -> None:
        self._metrics, self._signs = metrics, signs
        self._engine, self._binder, self._reporter = engine, binder, reporter
        self._is_deciding = is_deciding
        self._main = asyncio.get_running_loop()

    async def across(self) -> bytes:
        """The text, for another thread: it is made where everything else changes.

        Raises:
            TimeoutError: the loop there is busy.
        """

        async def made() -> bytes:
            return self.text()

        making = asyncio.run_coroutine_threadsafe(made(), self._main)
        async with asyncio.timeout(_SECONDS):
            return await asyncio.wrap_future(making)

    def text(self) -> bytes:
        """The exposition format."""
        metrics, signs = self._metrics, self._signs
        self._read_streams()
        metrics.leader.set(self._is_deciding())
        for holder in Holder:
            metrics.lease_holder.labels(holder).set(holder == signs.lease.holder())
        metrics.missing_rights.clear()
        for right in signs.rights.missing:
            metrics.missing_rights.labels(right).set(1)
        metrics.unfenced.set(signs.fence.n_left)
        metrics.reports_dropped.set(self._reporter.dropped)
        metrics.reports_waiting.set(self._reporter.waiting)
        metrics.read(self._engine)
        for seconds in self._binder.durations:
            metrics.bind_seconds.observe(seconds)
        self._binder.durations.clear()
        return metrics.text()

    def _read_streams(self) -> None:
        metrics, now = self._metrics, self._main.time()
        for stream in self._signs.streams:
            metrics.stream_age.labels(stream.name).set(stream.age(now))
            metrics.relists.labels(stream.name).set(stream.relists)
            trouble = stream.trouble
            metrics.streams_refused.labels(stream.name).set(bool(trouble and trouble.is_refused))
