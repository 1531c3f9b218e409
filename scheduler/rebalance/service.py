"""The process that moves pods: its parts from the start to the end."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial

import structlog

from scheduler import ending
from scheduler.api import kinds, names
from scheduler.api.rebalancing.policy import REBALANCE_POLICIES, Rebalancing
from scheduler.api.steering import RebalancePolicy
from scheduler.errors import ApiError, BadInput
from scheduler.kube import wall_clock
from scheduler.kube.client import ApiClient
from scheduler.kube.evict import moves
from scheduler.kube.evict.surge import leftovers
from scheduler.kube.lead.always import AlwaysLeader
from scheduler.kube.lead.lease import Lease, Place
from scheduler.kube.options import Options
from scheduler.kube.report.health import Health
from scheduler.kube.report.metrics.rebalancing import RebalanceMetrics
from scheduler.kube.report.reporter import Reporter
from scheduler.kube.rights import Right, Rights
from scheduler.kube.tasks import Tasks
from scheduler.kube.watch.streams import Stream
from scheduler.plan.making import PlanAnswer
from scheduler.rebalance.budgets import Outcome
from scheduler.rebalance.controller import Controller, Ties
from scheduler.rebalance.known import Policies, make_source
from scheduler.rebalance.planning import Planner
from scheduler.rebalance.statuses import Statuses
from scheduler.state.pods import PodRecord

_REPORT_SECONDS = 2.0
# By what has become of a move: the type of the event, and its reason.
EVENTS = {
    Outcome.AS_PLANNED: ("Normal", "Moved"),
    Outcome.ELSEWHERE: ("Normal", "MovedElsewhere"),
    Outcome.UNFINISHED: ("Warning", "MoveUnfinished"),
    Outcome.TAKEN_BACK: ("Warning", "MoveTakenBack"),
    Outcome.REFUSED: ("Warning", "NotMoved"),
}
_log = structlog.get_logger("evenkeel.rebalance")


class _NoNotes:
    """Nothing is handed on with the lease."""

    def write_annotations(self) -> dict[str, str]:
        """Return no annotations."""
        return {}

    def read_annotations(self, annotations: dict[str, str]) -> None:
        """Take nothing over."""


def list_needed(lease_namespace: str) -> list[Right]:
    """List the rights without which no pod is moved; what a plan reads beside these is read if it may be."""
    policies, pods = REBALANCE_POLICIES, kinds.PODS
    rights = [
        *(Right(verb, policies.group, policies.plural) for verb in ("get", "list", "watch")),
        Right("patch", policies.group, policies.plural, "status"),
        *(Right("list", kind.group, kind.plural) for kind in (pods, kinds.NODES, kinds.NAMESPACES)),
        Right("list", kinds.BUDGETS.group, kinds.BUDGETS.plural),
        Right("create", pods.group, pods.plural, "eviction"),
        Right("create", kinds.EVENTS.group, kinds.EVENTS.plural),
    ]
    if lease_namespace:
        leases = kinds.LEASES.group, kinds.LEASES.plural, "", lease_namespace
        rights += [
            Right(verb, *leases, names.REBALANCE_LEASE) for verb in ("get", "update", "watch")
        ]
        rights.append(Right("create", *leases))
    return rights


@dataclass(slots=True, repr=False, eq=False)
class Service:
    """One process that moves pods."""

    options: Options
    _api: ApiClient = field(init=False)
    _lease: Lease | AlwaysLeader = field(init=False)
    _stream: Stream[RebalancePolicy] = field(init=False)
    _rights: Rights = field(init=False)
    _reporter: Reporter = field(init=False)
    _policies: Policies = field(init=False)
    _metrics: RebalanceMetrics = field(init=False)
    _stop: asyncio.Event = field(default_factory=asyncio.Event)
    _failure: BaseException | None = None

    async def run(self) -> None:
        """Run until SIGTERM.

        Raises:
            BadInput: it cannot listen at the given address.
            Exception: what ended a part; the process should end and start anew.
        """
        for number in ending.SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self._stop.set)
        async with AsyncExitStack() as stack:
            self._api = ApiClient(self.options.access)
            stack.push_async_callback(self._api.close)
            self._make_parts()
            health = await self._answer_probes()
            stack.push_async_callback(health.stop)
            tasks = Tasks(self._fail)
            for work in (
                self._stream.run(),
                self._rights.run(),
                self._reporter.run(),
                self._make_controller().run(),
                *([self._lease.run()] if isinstance(self._lease, Lease) else []),
            ):
                tasks.start(work)
            _log.info("started", identity=self.options.identity, port=health.port)
            await self._stop.wait()
            await self._reporter.drain(_REPORT_SECONDS)
            await tasks.end()
            await self._lease.release(settled_reign=self._lease.held.reign)
        _log.info("stopped")
        if self._failure is not None:
            raise self._failure

    def _make_parts(self) -> None:
        options, api = self.options, self._api
        self._policies = Policies()
        self._metrics = RebalanceMetrics(
            lambda: (one.metadata.name for one in self._policies.list_policies())
        )
        self._stream = Stream(make_source(), api, self._policies.put)
        self._rights = Rights(api, list_needed(options.lease_namespace))
        self._lease = (
            Lease(
                api,
                Place(options.lease_namespace, names.REBALANCE_LEASE),
                identity=options.identity,
                notes=_NoNotes(),
                seconds=options.lease_times,
            )
            if options.lease_namespace
            else AlwaysLeader()
        )
        self._reporter = Reporter(
            api,
            controller=names.REBALANCE_LEASE,
            instance=options.identity,
            has_urgent=lambda: False,
            get_version=lambda _: "",
            is_still_waiting=lambda _: False,
        )

    def _make_controller(self) -> Controller:
        options = self.options
        ties = Ties(
            Planner(options.access, options.config).plan,
            self._mend_moves,
            partial(moves.move_pod, self._api),
            self._is_leading,
            self._report_move,
            self._report_mistake,
            self._note_plan,
        )
        return Controller(self._policies, Statuses(self._api), ties)

    def _is_leading(self) -> bool:
        leads = self._lease.get_present_term() != 0 and not self._stop.is_set()
        self._metrics.note_leading(is_leading=leads)
        return leads

    async def _mend_moves(self) -> None:
        try:
            for text in await leftovers.mend_moves(self._api):
                _log.warning("a move was not ended", what=text)
        except ApiError as error:
            # Other pods may be moved all the same.
            _log.warning("what is left of moves is not put right", error=str(error))

    def _report_move(
        self, policy: RebalancePolicy, pod: PodRecord, outcome: Outcome, message: str
    ) -> None:
        name = policy.metadata.name
        self._metrics.note_move(name, outcome)
        kind, reason = EVENTS[outcome]
        note = f"by RebalancePolicy {name}: {message}"
        self._reporter.report_on_pod(pod, kind, reason, note)
        self._reporter.report_on_object(
            REBALANCE_POLICIES, policy.metadata, (kind, reason, f"pod {pod.key}: {message}")
        )

    def _report_mistake(self, policy: RebalancePolicy, problem: str) -> None:
        _log.warning("a policy cannot be read", policy=policy.metadata.name, problem=problem)
        words = "Warning", "InvalidRebalancePolicy", problem
        self._reporter.report_on_object(REBALANCE_POLICIES, policy.metadata, words)

    def _note_plan(self, policy: Rebalancing, made: PlanAnswer) -> None:
        n_moves = sum(map(len, made.plan.bundles))
        at = wall_clock.now().timestamp()
        self._metrics.note_plan(policy.name, n_moves, made.plan.movable, at)
        for text in made.complaints:
            _log.info("a plan leaves something out", policy=policy.name, what=text)

    async def _answer_probes(self) -> Health:
        options = self.options
        health = Health(
            alive=list, ready=self._list_reasons_not_ready, metrics=self._metrics.make_text
        )
        try:
            await health.start(options.host, options.port)
        except OSError as error:
            where = f"--host {options.host} --port {options.port}"
            raise BadInput(where, f"cannot listen for probes: {error.strerror}") from error
        return health

    def _list_reasons_not_ready(self) -> list[str]:
        missing = [f"the right is missing: {right}" for right in self._rights.missing]
        unread = [] if self._stream.is_listed else ["RebalancePolicies are not listed yet"]
        return [*missing, *unread]

    def _fail(self, error: BaseException) -> None:
        _log.critical("a part failed", exc_info=error)
        self._failure = error
        self._stop.set()
