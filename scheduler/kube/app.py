"""The operator: kopf hosts the process, its start-up and clean-up handlers start and stop the rest."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from typing import Any

import kopf
import structlog

from scheduler.api.events import Heard
from scheduler.engine.engine import Engine
from scheduler.engine.warm import warm
from scheduler.errors import BadInput
from scheduler.kube import rights
from scheduler.kube.bind.binder import Binder, Permit
from scheduler.kube.bind.binding import Binding
from scheduler.kube.bind.fence import Fence
from scheduler.kube.bind.node_lock import NodeLock
from scheduler.kube.client import Access, ApiClient
from scheduler.kube.inbox import Inbox
from scheduler.kube.lead.heads import Heads
from scheduler.kube.lead.leading import Leading
from scheduler.kube.lead.lease import AlwaysLeader, Holder, Lease
from scheduler.kube.lead.lifeline import Lifeline, NotesAcross
from scheduler.kube.lead.memory import DemandNotes
from scheduler.kube.loop import Loop
from scheduler.kube.options import Options
from scheduler.kube.report.health import Health
from scheduler.kube.report.metrics import Metrics
from scheduler.kube.report.policy_status import PolicyStatus
from scheduler.kube.report.probes import Probes
from scheduler.kube.report.recording import Recorder, Recording
from scheduler.kube.report.reporter import Reporter
from scheduler.kube.rights import Rights
from scheduler.kube.watch import sources
from scheduler.kube.watch.rare import Rare
from scheduler.kube.watch.sources import Source, Way
from scheduler.kube.watch.streams import Stream
from scheduler.state import checks

_VERIFY_SECONDS = 600.0
_DRAIN_SECONDS, _REPORT_SECONDS = 10.0, 2.0
_METRICS_SECONDS = 5.0
_log = structlog.get_logger("evenkeel")


@dataclass(slots=True, repr=False, eq=False)
class Operator:
    """One running scheduler."""

    options: Options
    health: Health = field(init=False)
    engine: Engine = field(init=False)
    inbox: Inbox = field(init=False)
    loop: Loop = field(init=False)
    _recorder: Recorder | None = field(init=False)
    _api: ApiClient = field(init=False)
    _lease: Lease | AlwaysLeader = field(init=False)
    _reporter: Reporter = field(init=False)
    _binder: Binder = field(init=False)
    _schedulers: tuple[str, ...] = field(init=False)
    _sources: tuple[Source[Any], ...] = field(init=False)
    _rare: Rare = field(init=False)
    _streams: list[Stream[Any]] = field(init=False)
    _leading: Leading = field(init=False)
    _fence: Fence = field(init=False)
    _rights: Rights = field(init=False)
    _main: asyncio.AbstractEventLoop = field(init=False)
    _lifeline: Lifeline = field(init=False)
    _side_api: ApiClient = field(init=False)
    _metrics: Metrics = field(init=False)
    _policy_status: PolicyStatus = field(init=False)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _reporting: asyncio.Task[None] | None = None
    _is_frozen: bool = False
    _stopping: bool = False
    _stop_flag: asyncio.Event = field(default_factory=asyncio.Event)
    _failure: BaseException | None = None

    def __post_init__(self) -> None:
        config = self.options.config
        self._schedulers = (config.scheduler_name,)
        self._sources = sources.table(self._schedulers, config.pod_limits)
        self._rare = Rare(self._sources, self._hear)

    async def run(self, stop: asyncio.Event | None = None) -> None:
        """Run until SIGTERM or until ``stop`` is set.

        Raises:
            BadInput: it cannot listen where it was told to.
            Exception: what ended a part of the scheduler; the process should end and start anew.
        """
        self._stop_flag = stop or asyncio.Event()
        registry = kopf.OperatorRegistry()
        kopf.on.startup(registry=registry)(self._start)
        kopf.on.cleanup(registry=registry)(self._stop)
        kopf.on.login(registry=registry)(self._login)
        self._rare.register(registry)
        settings = kopf.OperatorSettings()
        settings.posting.enabled = False
        try:
            await kopf.operator(
                registry=registry,
                settings=settings,
                clusterwide=True,
                standalone=True,
                stop_flag=self._stop_flag,
            )
        except Exception:
            # Of a start that failed kopf says only that it did.
            if self._failure is None:
                raise
        if self._failure is not None:
            raise self._failure

    def is_deciding(self) -> bool:
        """Whether this replica leads and has seen all that its predecessor did."""
        return self._leading.is_settled() and not self._stopping

    # kopf's handlers.

    async def _start(self, **_: Any) -> None:
        try:
            await self._start_parts()
        except Exception as error:
            # kopf would try again for ever; a port that is taken, say, will not become free.
            self._failure = error
            self._stop_flag.set()
            raise kopf.PermanentError(str(error)) from error

    async def _start_parts(self) -> None:
        options = self.options
        if not options.access.verify:
            _log.warning("the API server's certificate is not verified: anyone between can read the token")  # fmt: skip
        self._main = asyncio.get_running_loop()
        self._lifeline = Lifeline()
        self._side_api = await self._lifeline.call(_client(options.access))
        self._make_parts(ApiClient(options.access), self._side_api)
        probes = Probes(
            lambda: self.loop.turned_at, self._lease, self._fence, self._streams, self._rights
        )
        self.health = Health(alive=probes.ill, ready=probes.not_ready, metrics=self._metrics_across)
        try:
            await self._lifeline.call(self.health.start(options.host, options.port))
        except OSError as error:
            await self._let_go()
            where = f"--host {options.host} --port {options.port}"
            raise BadInput(where, f"cannot listen for probes: {error.strerror}") from error
        for work in (self._rights.run(), probes.tell()):
            self._keep(self._lifeline.call(work))
        warm(options.config)
        await self._rare.read(self._api)
        self._keep(self._rare.follow(self._api))
        self._keep(self._lifeline.call(self._lease.run()))
        self._run_parts()
        _log.info("started", identity=options.identity, port=self.health.port)

    async def _stop(self, **_: Any) -> None:
        """Finish binds in flight, give the lease back, then let go of everything."""
        self._stopping = True
        # kopf waits five seconds for its own watcher of this flag unless someone sets it.
        self._stop_flag.set()
        await self._binder.drain(_DRAIN_SECONDS)
        await self._end([task for task in self._tasks if task is not self._reporting])
        # With a bind still on its way the next leader has to fence before it decides.
        settled = 0 if self._binder.backlog else self._leading.fenced_reign
        await self._lifeline.call(self._lease.release(settled_reign=settled))
        # What is left to say can be said while the next one leads.
        self.loop.finish()
        if self._recorder is not None:
            self._recorder.close()
        await self._reporter.drain(_REPORT_SECONDS)
        await self._end(self._tasks)
        await self._let_go()
        _log.info("stopped")

    async def _let_go(self) -> None:
        await self._lifeline.call(self.health.stop())
        await self._lifeline.call(self._side_api.close())
        await self._lifeline.stop()
        await self._api.close()

    def _login(self, **_: Any) -> kopf.ConnectionInfo:
        access = self.options.access
        return kopf.ConnectionInfo(
            server=access.url,
            ca_path=access.ca_file,
            insecure=not access.verify,
            token=access.bearer(),
            certificate_path=access.cert_file,
            private_key_path=access.key_file,
        )

    def _hear(self, event: Heard) -> None:
        # kopf has to know whom to tell before there is an inbox.
        self.inbox.put(event)

    # Parts.

    def _make_parts(self, api: ApiClient, side_api: ApiClient) -> None:
        """All parts, wired; none runs yet. ``side_api`` is the lifeline's."""
        options = self.options
        self._api = api
        self._recorder = self._make_recorder()
        self.engine = self._recorder.engine if self._recorder else Engine(options.config)
        self.inbox = Inbox(self.engine)
        needed = rights.needed(
            sources.reads(self._sources), options.lease_namespace, options.lease_name
        )
        self._rights = Rights(side_api, needed)
        self._metrics = Metrics(options.config.scheduler_name)
        self._reporter = Reporter(
            self._api,
            controller=options.config.scheduler_name,
            instance=options.identity,
            is_binding=lambda: self._binder.n_queued > 0,
            version_of=self.engine.version_of,
        )
        self._policy_status = PolicyStatus(self._api, is_leading=self.is_deciding)
        self._lease = (
            Lease(
                side_api,
                namespace=options.lease_namespace,
                name=options.lease_name,
                identity=options.identity,
                notes=NotesAcross(
                    DemandNotes(self.engine, self.inbox.put),
                    asyncio.get_running_loop(),
                ),
                seconds=options.lease_seconds,
                clock=self._clock(),
            )
            if options.lease_namespace
            else AlwaysLeader()
        )
        fence = self._fence = Fence(self._api, identity=options.identity)
        self._binder = Binder(
            Binding(self._api, fence, self.engine.version_of),
            [
                NodeLock(
                    self._api,
                    schedulers=self._schedulers,
                    timeout_seconds=options.config.lock_timeout_seconds,
                )
            ],
            Permit(self._lease.present_term, self.engine.objection, self._reporter.quiet),
            self.inbox.put,
            in_flight=options.config.binds_in_flight,
            allocate_timeout=options.config.lock_timeout_seconds,
        )
        self.loop = Loop(
            self.inbox,
            self._binder,
            is_leading=self.is_deciding,
            reporter=self._reporter,
            metrics=self._metrics,
            policy_status=self._policy_status,
            recorder=self._recorder,
        )
        raw = [source for source in self._sources if source.way == Way.RAW]
        self._streams = [Stream(source, self._api, self.inbox.put) for source in raw]
        self._leading = Leading(
            self._lease,
            fence,
            Heads(self._api, self._schedulers, self.engine),
            self._streams,
            on_leading=self._begins,
            on_lost=lambda: self._binder.give_back("no longer the leader"),
        )

    def _make_recorder(self) -> Recorder | None:
        options = self.options
        if options.record is None:
            return None
        recording = Recording(options.record, options.record_bytes)
        return Recorder(options.config, metadata.version("evenkeel-scheduler"), recording)

    @staticmethod
    def _clock() -> Callable[[], float]:
        # Not the loop's, which stands still while it is busy; and one that goes on while a machine sleeps.
        number = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
        return partial(time.clock_gettime, number)

    def _run_parts(self) -> None:
        self._reporting = self._keep(self._reporter.run())
        for work in (
            self._binder.run(),
            *(stream.run() for stream in self._streams),
            self.loop.run(),
            self._leading.run(),
            self._verify(),
            self._policy_status.run(self.loop.count_governed),
        ):
            self._keep(work)

    def _keep(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Let a part work until the stop; what ends one ends all."""
        task = asyncio.ensure_future(work)
        task.add_done_callback(self._ended)
        self._tasks.append(task)
        return task

    @staticmethod
    async def _end(tasks: list[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_DRAIN_SECONDS)

    def _begins(self) -> None:
        """What there is to do before the first decision of a term."""
        if not self._is_frozen:
            self._freeze()
            self._is_frozen = True
        self.loop.mistakes.tell_all()
        self.inbox.wake.set()

    @staticmethod
    def _freeze() -> None:
        """What start-up made stays for good; the collector need not look at it again."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)

    async def _verify(self) -> None:
        """Now and then recount every total, and compare the columns with a fresh list."""
        while True:
            await asyncio.sleep(_VERIFY_SECONDS)
            for _ in checks.verify_by_node(self.engine.cluster):
                await asyncio.sleep(0)
            await asyncio.gather(*(stream.relist() for stream in self._streams))

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None and not self._stopping:
            # A part that died leaves a scheduler that only seems to work: end the process, and let
            # the next one rebuild everything from a list.
            _log.critical("a part of the scheduler died", exc_info=error)
            self._failure = error
            self._stop_flag.set()

    # Probes.

    def _metrics_text(self) -> bytes:
        metrics, now = self._metrics, asyncio.get_running_loop().time()
        for stream in self._streams:
            metrics.stream_age.labels(stream.name).set(stream.age(now))
            metrics.relists.labels(stream.name).set(stream.relists)
            trouble = stream.trouble
            metrics.streams_refused.labels(stream.name).set(bool(trouble and trouble.is_refused))
        metrics.leader.set(self.is_deciding())
        for holder in Holder:
            metrics.lease_holder.labels(holder).set(holder == self._lease.holder())
        metrics.missing_rights.clear()
        for right in self._rights.missing:
            metrics.missing_rights.labels(right).set(1)
        metrics.unfenced.set(self._fence.n_left)
        metrics.reports_dropped.set(self._reporter.dropped)
        metrics.read(self.engine)
        metrics.reports_waiting.set(self._reporter.waiting)
        for seconds in self._binder.durations:
            metrics.bind_seconds.observe(seconds)
        self._binder.durations.clear()
        return metrics.text()

    async def _metrics_across(self) -> bytes:
        """Made where everything else changes, asked for by the lifeline."""

        async def text() -> bytes:
            return self._metrics_text()

        made = asyncio.run_coroutine_threadsafe(text(), self._main)
        async with asyncio.timeout(_METRICS_SECONDS):
            return await asyncio.wrap_future(made)


async def _client(access: Access) -> ApiClient:
    """A client of the loop that this runs in: all rights are asked for at once, and nothing waits."""
    return ApiClient(access, connections=32)
