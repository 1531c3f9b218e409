"""The operator: all parts of a scheduler on a real cluster, how they are wired, and their start and stop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from typing import Any

import structlog

from scheduler.api.door.events import Heard
from scheduler.engine.engine import Engine
from scheduler.engine.questions.waiting import IsParked
from scheduler.errors import BadInput
from scheduler.kernels import compiling
from scheduler.kube import heap, hosting, rights
from scheduler.kube.bind.binder import Binder, Permit, Writes
from scheduler.kube.bind.binding import Binding
from scheduler.kube.bind.fence import Fence
from scheduler.kube.bind.node_lock import NodeLock
from scheduler.kube.bind.volumes import VolumeClaims
from scheduler.kube.client import Access, ApiClient
from scheduler.kube.evict.evictor import Evictor, Leave
from scheduler.kube.inbox import Inbox
from scheduler.kube.lead.heads import Heads
from scheduler.kube.lead.leading import Leading
from scheduler.kube.lead.lease import AlwaysLeader, Lease, Place
from scheduler.kube.lead.lifeline import NotesAcross
from scheduler.kube.lead.memory import DemandNotes
from scheduler.kube.lead.taking import wait_for_first_try
from scheduler.kube.lookups import Lookups
from scheduler.kube.loop import Hands, Loop
from scheduler.kube.loop_thread import LoopThread
from scheduler.kube.options import Options
from scheduler.kube.parts import Parts
from scheduler.kube.report.health import Health
from scheduler.kube.report.metrics.counting import Metrics
from scheduler.kube.report.metrics.exposition import Exposition
from scheduler.kube.report.metrics.reading import Sources
from scheduler.kube.report.metrics.stranded import Stranded
from scheduler.kube.report.metrics.tally import Tally
from scheduler.kube.report.policy_status import PolicyStatus
from scheduler.kube.report.probes import Probes, Signs
from scheduler.kube.report.recording import Recorder, Recording
from scheduler.kube.report.reporter import Reporter
from scheduler.kube.rights import Rights
from scheduler.kube.watch import sources
from scheduler.kube.watch.rare import Rare
from scheduler.kube.watch.sources import Source
from scheduler.kube.watch.streams import Stream
from scheduler.kube.watch.verify import verify

_DRAIN_SECONDS, _REPORT_SECONDS = 10.0, 2.0
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
    # What has to be closed in the end, the last first.
    _open: AsyncExitStack = field(default_factory=AsyncExitStack)
    _lifeline: LoopThread = field(init=False)
    _schedulers: tuple[str, ...] = field(init=False)
    _sources: tuple[Source[Any], ...] = field(init=False)
    _rare: Rare = field(init=False)
    _streams: list[Stream[Any]] = field(init=False)
    _lookups: Lookups = field(init=False)
    _lease: Lease | AlwaysLeader = field(init=False)
    _leading: Leading = field(init=False)
    _reporter: Reporter = field(init=False)
    _policy_status: PolicyStatus = field(init=False)
    _binder: Binder = field(init=False)
    _evictor: Evictor = field(init=False)
    _signs: Signs = field(init=False)
    _metrics: Metrics = field(init=False)
    _tally: Tally = field(init=False)
    _stranded: Stranded = field(init=False)
    _parts: Parts = field(init=False)
    _reporting: asyncio.Task[None] | None = None
    _is_frozen: bool = False
    _stopping: bool = False
    _stop_flag: asyncio.Event = field(default_factory=asyncio.Event)
    _failure: BaseException | None = None

    def __post_init__(self) -> None:
        config = self.options.config
        self._schedulers = config.scheduler_names
        self._sources = sources.table(self._schedulers, config.pod_limits)
        self._rare = Rare(self._sources, self._hear)
        self._parts = Parts(self._part_died)

    async def run(self, stop: asyncio.Event | None = None) -> None:
        """Run until SIGTERM or until ``stop`` is set.

        Raises:
            BadInput: it cannot listen where it was told to.
            Exception: what ended a part of the scheduler; the process should end and start anew.
        """
        self._stop_flag = stop or asyncio.Event()
        try:
            await hosting.host(
                self.options.access,
                self._rare,
                start=self._start,
                again=self._read_rare,
                stop=self._stop,
                stop_flag=self._stop_flag,
            )
        except Exception:
            # What a part died of comes first: whatever fails after it may follow from it.
            if self._failure is None:
                raise
        if self._failure is not None:
            raise self._failure

    def is_deciding(self) -> bool:
        """Whether this replica leads and has seen all that its predecessor did."""
        return self._leading.is_settled() and not self._stopping

    # Start and stop.

    async def _start(self) -> None:
        try:
            await self._get_ready()
        except BaseException as error:
            await self._parts.end()
            await self._open.aclose()
            if isinstance(error, asyncio.CancelledError):
                # Told to stop before there was anything to finish.
                _log.info("stopped before it had started")
            raise
        self._run_parts()
        _log.info("started", identity=self.options.identity, port=self.health.port)

    async def _get_ready(self) -> None:
        """Make all parts, answer probes, and learn what is needed before the first pod."""
        options = self.options
        if not options.access.verify:
            _log.warning("the API server's certificate is not verified: anyone on the network path can read the token")  # fmt: skip
        api = ApiClient(options.access)
        self._open.push_async_callback(api.close)
        self._lifeline = LoopThread("lifeline")
        self._open.push_async_callback(self._lifeline.stop)
        side_api = await self._lifeline.call(_client(options.access))
        self._open.push_async_callback(self._there, side_api.close)
        self._make_parts(api, side_api)
        probes = Probes(lambda: self.loop.turned_at, self._signs)
        exposition = self._make_exposition()
        self.health = Health(alive=probes.ill, ready=probes.not_ready, metrics=exposition.across)
        self._open.push_async_callback(self._there, self.health.stop)
        try:
            await self._lifeline.call(self.health.start(options.host, options.port))
        except OSError as error:
            where = f"--host {options.host} --port {options.port}"
            raise BadInput(where, f"cannot listen for probes: {error.strerror}") from error
        except UnicodeError as error:  # before anybody is asked for its address
            problem = "is not a host name: write parts of 1 to 63 letters, digits or -, with dots between them"
            raise BadInput("--host", f"{options.host} {problem}") from error
        _log.info("answering probes", port=self.health.port)
        for work in (self._signs.rights.run(), probes.tell()):
            self._parts.keep(self._lifeline.call(work))
        _log.info(
            "getting kernels ready",
            note="takes a second, or about one minute when the cache is empty",
        )
        # From now on the time of a leader that has died runs out.
        await self._lifeline.call(self._lease.look())
        if compiling.list_missing():
            with hosting.ends_at_once():
                compiling.compile_kernels(lambda _: None)
        _log.info("listing", server=options.access.url)
        # Who cannot read what every decision needs leaves the lease to others.
        await self._read_rare()
        await self._run_lease()
        self._read_streams()
        for _ in compiling.load_kernels():
            # Lists come meanwhile, and the engine learns what they say.
            await asyncio.sleep(0)
        compiling.free_bitcode()
        heap.trim()

    async def _read_rare(self) -> None:
        await self._rare.read(self._api)

    async def _give_back_unused(self) -> None:
        """Give back a lease that was taken in a start that has failed: nothing was sent in its term."""
        held = self._lease.held
        settled = held.reign if held.is_clean else 0
        await self._lifeline.call(self._lease.release(settled_reign=settled))

    async def _stop(self) -> None:
        """Finish binds in flight, give the lease back, then let go of everything."""
        self._stopping = True
        await self._binder.drain(_DRAIN_SECONDS)
        await self._parts.end(but=self._reporting)
        # With a bind still on its way the next leader has to fence before it decides.
        settled = 0 if self._binder.backlog else self._leading.fenced_reign
        await self._lifeline.call(self._lease.release(settled_reign=settled))
        # What is left to report can be reported while the next one leads.
        self.loop.finish()
        if self._recorder is not None:
            self._recorder.close()
        await self._reporter.drain(_REPORT_SECONDS)
        await self._parts.end()
        await self._open.aclose()
        _log.info("stopped")

    async def _there(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Let the lifeline do something."""
        await self._lifeline.call(work())

    def _part_died(self, error: BaseException) -> None:
        if not self._stopping:
            # A part that died leaves a scheduler that only seems to work: end the process, and let
            # the next one rebuild everything from a list.
            _log.critical("a part of the scheduler failed", exc_info=error)
            self._failure = error
            self._stop_flag.set()

    # Parts.

    def _make_parts(self, api: ApiClient, side_api: ApiClient) -> None:
        """All parts, wired; none runs yet. ``side_api`` is the lifeline's."""
        config = self.options.config
        self._api = api
        self._recorder = self._make_recorder()
        self.engine = self._recorder.engine if self._recorder else Engine(config)
        self.inbox = Inbox(self.engine)
        self._lookups = Lookups(self.engine, config)
        self._metrics = Metrics(config)
        clock = asyncio.get_running_loop().time
        self._tally = Tally(self._metrics, self.engine, self.inbox.put, clock)
        self._stranded = Stranded(self.engine, self.is_deciding, per_node=config.metrics.per_node)
        self._reporter = Reporter(
            api,
            controller=config.scheduler_name,
            instance=self.options.identity,
            is_binding=lambda: self._binder.n_queued > 0,
            version_of=self._lookups.get_version,
            still_waits=lambda uid: self.is_deciding() and self.engine.ask(IsParked(uid)),
        )
        self._policy_status = PolicyStatus(api, is_leading=self.is_deciding)
        self._lease = self._make_lease(side_api)
        fence = Fence(api, identity=self.options.identity)
        self._binder = self._make_binder(fence)
        self._evictor = Evictor(
            api,
            Leave(self._lease.present_term, self._binder.withdraw),
            self.inbox.put,
            self._reporter.departed,
        )
        self.loop = Loop(
            self.inbox,
            Hands(self._binder, self._evictor),
            is_leading=self.is_deciding,
            reporter=self._reporter,
            tally=self._tally,
            policy_status=self._policy_status,
            recorder=self._recorder,
        )
        raw = [source for source in self._sources if not source.kind.is_rare]
        self._streams = [Stream(source, api, self.inbox.put) for source in raw]
        self._leading = Leading(
            self._lease,
            fence,
            Heads(api, self._schedulers, self.engine),
            self._streams,
            on_leading=self._begins,
            on_lost=lambda: self._binder.give_back("no longer the leader"),
        )
        rights = self._make_rights(side_api)
        self._signs = Signs(self._lease, fence, self._streams, rights, self._rare.troubles)

    def _make_exposition(self) -> Exposition:
        sources = Sources(
            self._signs,
            self.engine,
            self._reporter,
            self._tally,
            self.is_deciding,
            metadata.version("evenkeel-scheduler"),
        )
        return Exposition(self._metrics, sources, self._stranded, self.options.config.metrics)

    def _make_recorder(self) -> Recorder | None:
        options = self.options
        if options.record is None:
            return None
        recording = Recording(options.record, options.record_bytes)
        return Recorder(options.config, metadata.version("evenkeel-scheduler"), recording)

    def _make_rights(self, side_api: ApiClient) -> Rights:
        options = self.options
        return Rights(side_api, rights.needed(options.lease_namespace, options.lease_name))

    def _make_lease(self, side_api: ApiClient) -> Lease | AlwaysLeader:
        options = self.options
        if not options.lease_namespace:
            return AlwaysLeader()
        notes = DemandNotes(self.engine, self.inbox.put, self.is_deciding)
        return Lease(
            side_api,
            Place(options.lease_namespace, options.lease_name, options.shares_lease),
            identity=options.identity,
            notes=NotesAcross(notes, asyncio.get_running_loop()),
            seconds=options.lease_times,
            clock=self._clock(),
        )

    def _make_binder(self, fence: Fence) -> Binder:
        config = self.options.config
        seconds = config.lock_timeout_seconds
        return Binder(
            Writes(
                Binding(self._api, fence, self._lookups.get_version),
                (
                    VolumeClaims(self._api, self._lookups.make_volume_lookups()),
                    NodeLock(self._api, schedulers=self._schedulers, timeout_seconds=seconds),
                ),
            ),
            Permit(self._lease.present_term, self._lookups.find_objection, self._reporter.quiet),
            self._tally.report,
            in_flight=config.binds_in_flight,
            allocate_timeout=seconds,
        )

    @staticmethod
    def _clock() -> Callable[[], float]:
        # Not the loop's clock, which stands still while the loop is busy, but one that goes on while a
        # machine sleeps.
        number = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
        return partial(time.clock_gettime, number)

    async def _run_lease(self) -> None:
        """Begin to try to take the lease, and wait a moment for the first try.

        A process that takes the lease before it lists the pods need not ask afterwards which binds it has not heard of.
        """
        self._parts.keep(self._lifeline.call(self._lease.run()))
        self._open.push_async_callback(self._give_back_unused)
        await wait_for_first_try(self._lease)

    def _read_streams(self) -> None:
        """Begin to list, and then to watch, what there can be many of, and to hand it to the engine."""
        self._parts.keep(self.loop.run())
        self._leading.lists_begin()
        for stream in self._streams:
            self._parts.keep(stream.run())

    def _run_parts(self) -> None:
        self._reporting = self._parts.keep(self._reporter.run())
        for work in (
            self._rare.follow(self._api),
            self._binder.run(),
            self._evictor.run(),
            self._leading.run(),
            verify(self.engine, self._streams, self._rare, self._api),
            self._policy_status.run(self.loop.count_governed),
            self._stranded.run(),
            heap.trim_forever(),
        ):
            self._parts.keep(work)

    def _hear(self, event: Heard) -> None:
        # kopf has to know whom to tell before there is an inbox.
        self.inbox.put(event)

    def _begins(self) -> None:
        """What there is to do before the first decision of a term."""
        if not self._is_frozen:
            self._freeze()
            self._is_frozen = True
        self.loop.mistakes.tell_all()
        self.inbox.wake.set()

    @staticmethod
    def _freeze() -> None:
        heap.freeze()


async def _client(access: Access) -> ApiClient:
    """A client of the loop that this runs in: all rights are asked for at once, and nothing waits."""
    return ApiClient(access, connections=32)
