"""The operator: the process around the parts of a scheduler, from its start to its end."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from importlib import metadata

import structlog

from scheduler import ending
from scheduler.errors import BadInput
from scheduler.kernels import compiling
from scheduler.kube import heap, hosting
from scheduler.kube.client import Access, ApiClient
from scheduler.kube.loop_thread import LoopThread
from scheduler.kube.options import Options
from scheduler.kube.parts import Parts
from scheduler.kube.report.health import Health
from scheduler.kube.report.recording import Recorder, Recording
from scheduler.kube.running import RunningParts

_log = structlog.get_logger("evenkeel")


@dataclass(slots=True, repr=False, eq=False)
class Operator:
    """One scheduler in a process of its own."""

    options: Options
    _parts: Parts = field(init=False)
    _running: RunningParts = field(init=False)
    # What has to be closed in the end, the last first.
    _open: AsyncExitStack = field(default_factory=AsyncExitStack)
    _stop_flag: asyncio.Event = field(default_factory=asyncio.Event)
    _failure: BaseException | None = None

    async def run(self) -> None:
        """Run until SIGTERM.

        Raises:
            BadInput: it cannot listen at the given address.
            Exception: what ended a part of the scheduler; the process should end and start anew.
        """
        try:
            await hosting.host(
                self.options.access,
                lambda: self._parts.rare,
                start=self.start,
                wait_for_lists=self._wait_for_lists,
                read_again=self._read_rare,
                stop=self._stop,
                stop_flag=self._stop_flag,
            )
        except Exception:
            # What a part died of comes first: whatever fails after it may follow from it.
            if self._failure is None:
                raise
        if self._failure is not None:
            raise self._failure

    async def start(self) -> None:
        """Start the scheduler; if that fails or is cancelled, leave nothing open."""
        try:
            health = await self._get_ready()
        except BaseException as error:
            await self._open.aclose()
            if isinstance(error, asyncio.CancelledError) and self._failure is None:
                # The stop came before there was anything to finish.
                _log.info("stopped before it had started")
            raise
        self._running.run_rest()
        _log.info("started", identity=self.options.identity, port=health.port)

    async def _get_ready(self) -> Health:
        """Make all parts, answer probes, and learn what is needed before the first pod."""
        options = self.options
        if not options.access.verify:
            _log.warning("the API server's certificate is not verified: anyone on the network path can read the token")  # fmt: skip
        api = ApiClient(options.access)
        self._open.push_async_callback(api.close)
        lifeline = LoopThread("lifeline")
        self._open.push_async_callback(lifeline.stop)
        side_api = await lifeline.call(_make_client(options.access))
        self._open.push_async_callback(lambda: lifeline.call(side_api.close()))
        recorder = _make_recorder(options)
        if recorder is not None:
            # After a start that has failed, too: the log has the event by which it failed.
            self._open.callback(recorder.close)
        self._parts = Parts(options, api, side_api, recorder=recorder)
        self._running = RunningParts(self._parts, lifeline, self._fail)
        health = await self._answer_probes(lifeline)
        self._open.push_async_callback(self._running.abandon)
        self._running.watch_health()
        _log.info(
            "getting kernels ready",
            note="takes a moment, or about one minute when the cache is empty",
        )
        # From now on the time of a leader that has died runs out.
        await lifeline.call(self._parts.lease.observe_holder())
        if compiling.has_uncached():
            with ending.end_at_signals():
                compiling.compile_kernels(lambda _: None)
        _log.info("listing", server=options.access.url)
        # Who cannot read policies and namespaces leaves the lease to others.
        await self._running.read_rare()
        await self._running.take_lease()
        self._running.read_streams()
        for _ in compiling.load_kernels():
            # Lists come meanwhile, and the engine learns what they say.
            await asyncio.sleep(0)
        heap.trim()
        return health

    async def _answer_probes(self, lifeline: LoopThread) -> Health:
        options, probes = self.options, self._parts.probes
        health = Health(
            alive=probes.list_reasons_to_end,
            ready=probes.list_reasons_not_ready,
            metrics=self._parts.exposition.make_text,
        )
        self._open.push_async_callback(lambda: lifeline.call(health.stop()))
        try:
            await lifeline.call(health.start(options.host, options.port))
        except OSError as error:
            where = f"--host {options.host} --port {options.port}"
            raise BadInput(where, f"cannot listen for probes: {error.strerror}") from error
        except UnicodeError as error:  # before a name server gets the name
            problem = "is not a host name: write parts of 1 to 63 letters, digits or -, with dots between them"
            raise BadInput("--host", f"{options.host} {problem}") from error
        _log.info("answering probes", port=health.port)
        return health

    async def _wait_for_lists(self) -> None:
        await self._running.wait_for_lists()

    async def _read_rare(self) -> None:
        await self._running.read_rare()

    def _fail(self, error: BaseException) -> None:
        self._failure = error
        self._stop_flag.set()

    async def _stop(self) -> None:
        """Stop the scheduler, then close everything."""
        await self._running.stop()
        await self._open.aclose()
        _log.info("stopped")


async def _make_client(access: Access) -> ApiClient:
    """Make a client in the running loop, with a connection for each request: all rights are checked at once."""
    return ApiClient(access, connections=32)


def _make_recorder(options: Options) -> Recorder | None:
    if options.record is None:
        return None
    recording = Recording(options.record, options.record_bytes)
    return Recorder(options.config, metadata.version("evenkeel-scheduler"), recording)
