"""All parts of a scheduler on a real cluster, and how they are wired; none of them runs yet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import metadata

from scheduler.api.selectors import NOTHING
from scheduler.devices.admission.steps import ClusterFacts
from scheduler.devices.table import find_foreign
from scheduler.engine.engine import Engine
from scheduler.engine.questions.waiting import IsParked
from scheduler.kube import rights, wall_clock
from scheduler.kube.bind.binder import Binder, BindWriters, Permit
from scheduler.kube.bind.binding import Binding
from scheduler.kube.bind.claims import ResourceClaims
from scheduler.kube.bind.fence import Fence
from scheduler.kube.bind.left_locks import LeftLocks
from scheduler.kube.bind.node_lock import NodeLock
from scheduler.kube.bind.unserved import UnservedPods
from scheduler.kube.bind.volumes import VolumeClaims
from scheduler.kube.claim_freer import ClaimFreer
from scheduler.kube.client import ApiClient
from scheduler.kube.device_maps import DeviceMapHands
from scheduler.kube.evict.evictor import Evictor, EvictPermit
from scheduler.kube.foreign import ForeignTies, ForeignWrites
from scheduler.kube.inbox import Inbox
from scheduler.kube.jobs.hands import JobHands
from scheduler.kube.jobs.ties import JobTies
from scheduler.kube.lead.always import AlwaysLeader
from scheduler.kube.lead.heads import Heads
from scheduler.kube.lead.leading import Leading
from scheduler.kube.lead.lease import Lease, Place
from scheduler.kube.lead.lifeline import NotesAcross
from scheduler.kube.lead.memory import DemandNotes
from scheduler.kube.lead.role import RoleLabel
from scheduler.kube.lookups import Lookups
from scheduler.kube.loop import Hands, Loop
from scheduler.kube.offers import PartOffers
from scheduler.kube.options import Options
from scheduler.kube.queues import kai
from scheduler.kube.queues.hands import QueueHands, Ties
from scheduler.kube.queues.kai import KaiHands
from scheduler.kube.report.metrics.counting import Metrics
from scheduler.kube.report.metrics.exposition import Exposition
from scheduler.kube.report.metrics.queues import QueueSources
from scheduler.kube.report.metrics.reading import Sources
from scheduler.kube.report.metrics.stranded import Stranded
from scheduler.kube.report.metrics.tally import Tally
from scheduler.kube.report.policy_status import PolicyStatus
from scheduler.kube.report.probes import Probes, Signs
from scheduler.kube.report.recording import Recorder
from scheduler.kube.report.reporter import Reporter
from scheduler.kube.rights import Rights
from scheduler.kube.watch import sources
from scheduler.kube.watch.rare import Rare
from scheduler.kube.watch.streams import Stream
from scheduler.kube.webhook.devices import DeviceAdmission
from scheduler.kube.webhook.known import Known
from scheduler.kube.webhook.webhook import Answers, Webhook

# Not the loop's clock, which stands still while the loop is busy, but one that goes on while a machine sleeps.
_boot_time = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Parts:
    """All parts of one scheduler, wired.

    Args:
        options: how the scheduler runs.
        api: the API server.
        side_api: the API server, for the lifeline.
        recorder: an engine with a log, and its files; None makes an engine without.
        lease_clock: the clock of the lease.

    Attributes:
        is_started: whether the start is over.
        is_stopping: whether the stop has begun; nothing is decided any more then.
    """

    def __init__(
        self,
        options: Options,
        api: ApiClient,
        side_api: ApiClient,
        *,
        recorder: Recorder | None,
        lease_clock: Callable[[], float] = _boot_time,
    ) -> None:
        config = options.config
        self.options, self.api, self.recorder = options, api, recorder
        self.is_started = self.is_stopping = False
        self.engine = recorder.engine if recorder else Engine(config)
        self.inbox = Inbox(self.engine)
        has_queues, has_kai = config.queues.kueue, config.queues.kai is not None
        table = sources.make_table(
            config.scheduler_names,
            config.pod_limits,
            with_queues=has_queues,
            with_kai=has_kai,
            config_maps=config.config_maps,
        )
        self.rare = Rare(table, self.inbox.put)
        self._lookups = Lookups(self.engine, config)
        metrics = Metrics(config)
        clock = wall_clock.make_steady_clock()
        self._tally = Tally(metrics, self.engine, self.inbox.put, clock)
        self.stranded = Stranded(self.engine, self.is_deciding, per_node=config.metrics.per_node)
        self.reporter = Reporter(
            api,
            controller=config.scheduler_name,
            instance=options.identity,
            has_urgent=self._has_urgent_writes,
            get_version=self._lookups.get_version,
            is_still_waiting=lambda uid: self.is_deciding() and self.engine.ask(IsParked(uid)),
        )
        self.policy_status = PolicyStatus(api, is_leading=self.is_deciding)
        self.lease = self._make_lease(side_api, lease_clock)
        fence = Fence(api, identity=options.identity)
        node_lock = NodeLock(
            api, schedulers=config.scheduler_names, timeout_seconds=config.lock_timeout_seconds
        )
        self.binder = self._make_binder(fence, node_lock)
        self.left_locks = LeftLocks(api, self.engine, self.is_deciding)
        self.foreign = self._make_foreign(node_lock) if find_foreign(config) != NOTHING else None
        self.offers = (
            PartOffers(api, self.engine, self.is_deciding) if config.publish_parts else None
        )
        self.evictor = Evictor(
            api,
            EvictPermit(self.lease.get_present_term, self.binder.withdraw_bind),
            self.inbox.put,
            self.reporter.report_departure,
        )
        raw = [source for source in table if not source.kind.is_rare]
        self.streams = [Stream(source, api, self.inbox.put) for source in raw]
        self.queues = self._make_queues(clock) if has_queues else None
        self.jobs = self._make_jobs(self.queues, clock) if self.queues is not None else None
        self._admission = self._make_admission()
        self.webhook = self._make_webhook()
        self.device_maps = DeviceMapHands(
            self.reporter,
            self.streams,
            self._admission.follow if self._admission is not None else lambda _: None,
            self.is_deciding,
        )
        self.kai = self._make_kai(clock) if has_kai else None
        self.loop = Loop(
            self.inbox,
            Hands(
                self.binder,
                self.evictor,
                self.left_locks,
                ClaimFreer(self.api),
                self.queues,
                self.jobs,
                self.kai,
                self.device_maps,
                self.foreign,
                self.offers,
            ),
            is_leading=self.is_deciding,
            reporter=self.reporter,
            tally=self._tally,
            policy_status=self.policy_status,
            recorder=recorder,
        )
        self.leading = Leading(
            self.lease,
            fence,
            Heads(api, config.scheduler_names, self.engine),
            self.streams,
            on_leading=self._begin_term,
            on_lost=self._end_term,
        )
        self.role_label = self._make_role_label()
        needed = rights.list_needed(
            options.lease_namespace,
            options.lease_name,
            kueue_namespace=config.queues.kueue_namespace if has_queues else "",
            with_kai=has_kai,
            webhook=config.webhook,
            config_maps=config.config_maps,
            publishes_parts=config.publish_parts,
        )
        self.rights = Rights(side_api, needed)
        signs = Signs(
            self.lease, fence, self.streams, self.rights, self.rare.troubles, self.webhook
        )
        self.probes = Probes(lambda: self.is_started, lambda: self.loop.turned_at, signs)
        self.exposition = self._make_exposition(metrics, signs)

    def is_deciding(self) -> bool:
        """Whether this replica leads and has seen all that its predecessor did."""
        return self.leading.is_settled() and not self.is_stopping

    def _has_urgent_writes(self) -> bool:
        """Whether binds, decisions about quota, or jobs wait, which matter more than what is said about them."""
        if self.binder.n_queued:
            return True
        if self.is_stopping:
            # No more jobs are started, and what is to be said has to be said soon.
            return False
        n_open = self.queues.n_open if self.queues is not None else 0
        return n_open > 0 or (self.jobs is not None and self.jobs.n_waiting > 0)

    def _make_lease(self, side_api: ApiClient, clock: Callable[[], float]) -> Lease | AlwaysLeader:
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
            clock=clock,
        )

    def _make_foreign(self, node_lock: NodeLock) -> ForeignWrites:
        ties = ForeignTies(
            self.engine,
            self.reporter,
            self.is_deciding,
            node_lock.has_written,
            self._tally.note_foreign,
        )
        return ForeignWrites(self.api, ties, self.options.config.scheduler_names)

    def _make_binder(self, fence: Fence, node_lock: NodeLock) -> Binder:
        config = self.options.config
        return Binder(
            BindWriters(
                Binding(self.api, fence, self._lookups.get_version, self._lookups.get_drivers),
                (
                    VolumeClaims(self.api, self._lookups.make_volume_lookups()),
                    ResourceClaims(self.api, self._lookups.make_claim_lookups(), time.time),
                    UnservedPods(self.api),
                    node_lock,
                ),
            ),
            Permit(
                self.lease.get_present_term,
                self._lookups.find_objection,
                self.reporter.quiet_pod,
                self._lookups.get_drivers,
                self._lookups.find_place,
            ),
            self._tally.note_report,
            in_flight=config.binds_in_flight,
        )

    def _make_queues(self, clock: Callable[[], float]) -> QueueHands:
        ties = Ties(
            self.engine,
            self.inbox.put,
            self.reporter,
            self.lease.get_present_term,
            clock,
            self.rare.troubles,
        )
        return QueueHands(self.api, ties, self.streams)

    def _make_kai(self, clock: Callable[[], float]) -> KaiHands:
        ties = kai.Ties(
            self.engine,
            self.reporter,
            self.inbox.put,
            self.is_deciding,
            clock,
            self.rare.troubles,
        )
        return KaiHands(self.api, ties)

    def _make_jobs(self, queues: QueueHands, clock: Callable[[], float]) -> JobHands:
        ties = JobTies(
            self.reporter,
            queues.may_write,
            queues.find_workloads,
            clock,
            self.options.config.scheduler_names,
            watches_pods=self.options.config.queues.ready is not None,
        )
        return JobHands(self.api, ties)

    def _make_admission(self) -> DeviceAdmission | None:
        config = self.options.config
        if config.device_webhook is None:
            return None
        settings = config.device_webhook.admission
        settings = replace(settings, scheduler_names=config.scheduler_names)
        lookups = self._lookups
        return DeviceAdmission(
            settings, ClusterFacts(lookups.find_quota_excess, lookups.list_backends)
        )

    def _make_webhook(self) -> Webhook | None:
        options, config = self.options, self.options.config
        served = config.webhook
        if served is None:
            return None
        answers = Answers()
        if served.for_queues and self.jobs is not None:
            known = Known(self.jobs.is_managed, self.jobs.has_default_queue)
            answers = answers._replace(of_queues=known)
        answers = answers._replace(of_devices=self._admission)
        return Webhook(served, options.access, options.host, answers)

    def _make_role_label(self) -> RoleLabel | None:
        key, pod = self.options.config.role_label, self.options.pod
        return RoleLabel(self.api, key, pod, self.is_deciding) if key and pod else None

    def _make_exposition(self, metrics: Metrics, signs: Signs) -> Exposition:
        read = Sources(
            signs,
            self.engine,
            self.reporter,
            self._tally,
            self.is_deciding,
            metadata.version("evenkeel-scheduler"),
            self._make_queue_sources(),
            self.webhook.counts if self.webhook is not None else None,
            lambda: self.kai.guard.holder if self.kai is not None else "",
        )
        return Exposition(metrics, read, self.stranded, self.options.config.metrics)

    def _begin_term(self) -> None:
        """Do what comes before the first decision of a term."""
        self.loop.mistakes.report_all()
        self.device_maps.report_all()
        self.left_locks.begin_term()
        if self.foreign is not None:
            self.foreign.begin_term()
        if self.offers is not None:
            self.offers.begin_term()
        if self.queues is not None:
            self.queues.begin_term(is_listed=self.leading.is_listed_in_term())
        if self.kai is not None:
            self.kai.begin_term()
        self.inbox.wake.set()

    def _end_term(self) -> None:
        """Do what comes after a term that has ended."""
        self.binder.give_back_waiting("no longer the leader")
        if self.queues is not None:
            self.queues.end_term()

    def _make_queue_sources(self) -> QueueSources | None:
        queues = self.queues
        if queues is None:
            return None
        return QueueSources(queues.counts, lambda: queues.guard.holder, queues.list_figures)
