"""The loop: it hands events to the engine, decisions to the binder and words to the reporter. It decides nothing.

It is the only task that hands events in and takes decisions; other tasks only put questions to the engine.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from scheduler.api import kinds, wire
from scheduler.api.door import events, notes
from scheduler.api.door.decisions import Evict, Outcome
from scheduler.api.door.events import Event
from scheduler.api.door.notes import Note
from scheduler.engine.questions.nodes import KnownNode, KnownNodes
from scheduler.engine.questions.pods import (
    GovernedPods,
    HowPlaced,
    KnownPod,
    KnownPods,
    NamedPod,
    PlacedNote,
)
from scheduler.kube import slices
from scheduler.kube.bind.binder import Binder
from scheduler.kube.bind.left_locks import LeftLocks
from scheduler.kube.claim_freer import ClaimFreer
from scheduler.kube.device_maps import DeviceMapHands
from scheduler.kube.evict.evictor import Evictor
from scheduler.kube.foreign import ForeignWrites
from scheduler.kube.inbox import Inbox
from scheduler.kube.jobs.hands import JobHands
from scheduler.kube.offers import PartOffers
from scheduler.kube.queues.hands import QueueHands
from scheduler.kube.queues.kai import KaiHands
from scheduler.kube.report.groups import GroupReports
from scheduler.kube.report.metrics.tally import Tally
from scheduler.kube.report.mistakes import Mistakes
from scheduler.kube.report.policy_status import PolicyStatus, Verdict
from scheduler.kube.report.recording import Recorder
from scheduler.kube.report.reporter import Reporter
from scheduler.kube.slices import Slice
from scheduler.state.pods import PodRecord
from scheduler.telling import departures, placements, sayings

_IDLE_SECONDS = 1.0


class Hands(NamedTuple):
    """The parts that carry decisions out, or what follows from events; None where nothing like that is managed or read."""

    binder: Binder
    evictor: Evictor
    left_locks: LeftLocks
    claims: ClaimFreer
    queues: QueueHands | None = None
    jobs: JobHands | None = None
    kai: KaiHands | None = None
    device_maps: DeviceMapHands | None = None
    foreign: ForeignWrites | None = None
    offers: PartOffers | None = None


class _Decided(NamedTuple):
    """A pod whose bind is under way, and in words what chose its placement.

    Both are as of the decision: the pod may be gone when the bind is done, and policies may have changed.
    """

    pod: PodRecord
    how: str


class Loop:
    """Turns until cancelled.

    Attributes:
        turned_at: the loop time of the last turn, for the liveness probe.
        mistakes: reports malformed objects.
    """

    def __init__(
        self,
        inbox: Inbox,
        hands: Hands,
        *,
        is_leading: Callable[[], bool],
        reporter: Reporter,
        tally: Tally,
        policy_status: PolicyStatus,
        recorder: Recorder | None = None,
    ) -> None:
        self._engine, self._inbox = inbox.engine, inbox
        (
            self._binder,
            self._evictor,
            self._left_locks,
            self._claims,
            self._queues,
            self._jobs,
            self._kai,
            self._device_maps,
            self._foreign,
            self._offers,
        ) = hands
        self._is_leading = is_leading
        self._reporter, self._tally, self._policy_status = reporter, tally, policy_status
        self._recorder = recorder
        # By uid, until it is known what became of the bind; the pod may be gone or finished before.
        self._decided: dict[str, _Decided] = {}
        # How long the decision under way has taken so far.
        self._seconds = 0.0
        # What is left to be carried out of the last decisions.
        self._rest: Iterator[None] | None = None
        self._groups = GroupReports(inbox.engine, reporter, is_leading)
        self.mistakes = Mistakes(inbox.engine, reporter, is_leading)
        self.turned_at = 0.0

    async def run(self) -> None:
        """Turn until cancelled."""
        clock = asyncio.get_running_loop().time
        while True:
            self.turned_at = clock()
            await self._wait_for_work()
            self.turn()
            await asyncio.sleep(0)

    def turn(self) -> None:
        """Hand in events for a slice of time, and take decisions.

        Events wait while a decision is under way that has paused, and until the last one has been carried out.
        """
        if self._rest is None:
            if not self._engine.is_deciding:
                self._hand_in_events()
            self._decide()
        if self._rest is not None:
            self._carry_on(self._rest)
        if self._recorder is not None and not self._is_busy():
            self._recorder.keep_up(self._tally.clock())

    def _is_busy(self) -> bool:
        """Whether a decision is under way, or is being carried out."""
        return self._engine.is_deciding or self._rest is not None

    def finish(self) -> None:
        """After the last turn: carry out the last decisions, and report what became of the last binds."""
        for _ in self._rest or ():
            pass
        for event in self._inbox.list_rest():
            if isinstance(event, events.BindDone | events.BindFailed):
                self._handle_event(event)

    async def count_governed(self) -> Mapping[str, int]:
        """Count our pods by the policy that governs them; other tasks get their turn meanwhile."""
        steps = self._engine.ask(GovernedPods())
        while True:
            try:
                next(steps)
            except StopIteration as end:
                counts: Mapping[str, int] = end.value
                return counts
            await asyncio.sleep(0)

    async def _wait_for_work(self) -> None:
        """Wait until there is something to do."""
        if len(self._inbox) or self._engine.is_compiling or self._is_busy():
            return
        now = self._tally.clock()
        # Only a leader has due dates. For others the dates would be in the past, and the loop would spin.
        wait = _IDLE_SECONDS
        if self._is_leading() and self._find_room():
            wait = min(wait, self._engine.find_due(now) - now)
        if wait <= 0:
            return
        if self._recorder is not None:
            self._recorder.flush()
        wake = self._inbox.wake
        wake.clear()
        # Not wait_for: in Python 3.11 it swallows a cancellation that meets the event, and a stop
        # would wait for this task for ever.
        alarm = asyncio.get_running_loop().call_later(wait, wake.set)
        try:
            await wake.wait()
        finally:
            alarm.cancel()

    def _find_room(self) -> int:
        """Return for how many pods to decide: decisions far ahead of the binder would be older than necessary."""
        config = self._engine.config
        room = 4 * config.binds_in_flight - self._binder.n_queued
        return max(room, config.slice_pods) if room > 0 else 0

    # Events in.

    def _hand_in_events(self) -> None:
        clock = asyncio.get_running_loop().time
        until = clock() + slices.SECONDS
        while clock() < until:
            event = self._inbox.take_next()
            if event is None:
                return
            self._handle_event(event)

    def _handle_event(self, event: Event) -> None:
        noted = self._engine.handle(event, self._tally.clock())
        for note in noted:
            self._act_on_note(note)
        if self._queues is not None:
            self._queues.hear(event, noted)
        if self._jobs is not None:
            self._jobs.hear(event)
        if self._kai is not None:
            self._kai.hear(event, noted)
        if self._device_maps is not None:
            self._device_maps.hear(noted)
        self._left_locks.hear(event)
        if self._foreign is not None:
            self._foreign.hear(event)
        if self._offers is not None:
            self._offers.hear(event)
        self._tell_binder(event)

    def _tell_binder(self, event: Event) -> None:
        match event:
            case events.BindDone() | events.BindFailed():
                self._end_bind(event)
            case events.Seen(wire.Pod() as pod):
                self._binder.see_pod(pod)
            case events.Seen(wire.Node() as node):
                self._binder.see_node(node)
            case events.Seen(found):
                meta = found.metadata
                self._binder.see_object(kinds.read_kind_name(found), meta.namespace, meta.name)
            case events.Gone(kinds.NODES.name, name):
                self._binder.note_node_gone(name)
            case events.Gone(kind, key):
                self._binder.see_object(kind, *kinds.split_key(key))
            case events.ListEnds(kinds.PODS.name, scheduler) if scheduler:
                self._binder.reconcile_pods(self._engine.ask(KnownPods()))
            case events.ListEnds(kinds.NODES.name):
                self._binder.reconcile_nodes(self._engine.ask(KnownNodes()))

    # Decisions out.

    def _decide(self) -> None:
        clock = asyncio.get_running_loop().time
        # A list not yet handed in may hold pods on the very cards about to be allocated.
        may_decide = self._is_leading() and not self._inbox.lists_waiting
        if self._device_maps is not None:
            may_decide = may_decide and self._device_maps.is_read
        allowance = Slice(clock, self._find_room() if may_decide else 0)
        began = time.perf_counter() if self._engine.is_deciding else 0.0
        outcome = self._engine.decide(self._tally.clock(), allowance)
        began = began or allowance.decided_from
        self._seconds += time.perf_counter() - began if began else 0.0
        if self._engine.is_deciding:
            return
        self._tally.note_outcome(outcome, self._seconds)
        self._seconds = 0.0
        self._rest = self._carry_out(outcome)

    def _carry_on(self, rest: Iterator[None]) -> None:
        """Go on with carrying out what was decided, for a slice of time."""
        clock = asyncio.get_running_loop().time
        until = clock() + slices.SECONDS
        for _ in rest:
            if clock() >= until:
                return
        self._rest = None

    def _carry_out(self, outcome: Outcome) -> Iterator[None]:
        """Carry out what was decided, piece by piece."""
        for note in outcome.notes:
            self._act_on_note(note)
        for hold in outcome.explained:
            self._reporter.report_unschedulable(
                self._engine.ask(NamedPod(hold.uid)), sayings.say_why(hold)
            )
        if self._queues is not None:
            yield from self._queues.carry_out(outcome.quotas)
        yield from self._carry_out_binds(outcome)
        for evict in outcome.evicts:
            words = departures.describe_departure(evict, self._name_scheduler(evict))
            victims = [self._engine.ask(NamedPod(uid)) for uid in evict.victims]
            self._evictor.evict(victims, words)
            yield
        for nominate in outcome.nominates:
            self._evictor.nominate(self._engine.ask(NamedPod(nominate.uid)), nominate.node)
            yield
        for free in outcome.frees:
            self._claims.free(free)
        for plan in outcome.plans:
            if plan.group is not None:
                yield from self._groups.report_plan(plan)
            elif plan.hold is not None:
                pod = self._engine.ask(NamedPod(plan.hold.uid))
                self._reporter.report_unschedulable(pod, sayings.say_why(plan.hold))
                yield

    def _carry_out_binds(self, outcome: Outcome) -> Iterator[None]:
        for plan in outcome.plans:
            pods = {bind.uid: self._engine.ask(NamedPod(bind.uid)) for bind in plan.binds}
            for uid, pod in pods.items():
                # What was reported about the pod no longer holds, and must not land after its binding.
                self._reporter.forget_object(uid)
                self._groups.forget_pod(uid)
                self._decided[uid] = _Decided(pod, self._engine.ask(HowPlaced(uid)))
            self._binder.submit_binds(plan.binds, pods)
            yield
        if outcome.binds and not self._is_leading():
            # The lease was lost while the decision was under way.
            self._binder.give_back_waiting("no longer the leader")

    def _name_scheduler(self, evict: Evict) -> str:
        """Return the scheduler name for an eviction: that of the pod that needs the room, if there is one."""
        if not evict.makes_room_for:
            return self._engine.config.scheduler_name
        return self._engine.ask(NamedPod(evict.makes_room_for)).profile

    # Words out.

    def _act_on_note(self, note: Note) -> None:
        match note:
            case notes.PodBound(uid):
                self._tally.note_left(uid)
                self.mistakes.check_bound(self._engine.ask(NamedPod(uid)))
            case notes.Left(uid):
                self._tally.note_left(uid)
                self._reporter.forget_object(uid)
                self._groups.forget_pod(uid)
                self._binder.note_pod_gone(uid)
            case notes.GroupHeld() | notes.HeldByQueue():
                self._groups.report_held(note)
            case notes.NodeRead(name):
                facts = self._engine.ask(KnownNode(name))
                if facts is not None:
                    self.mistakes.check_node(facts)
            case notes.Scheduled(uid):
                self._report_scheduled(uid)
            case notes.Retried(uid, message):
                self._report_retried(uid, message)
            case notes.PolicyJudged() | notes.PolicyLeft():
                self._note_policy(note)
            case notes.PluginFellSilent(node, waits_for):
                self._report_silent_plugin(node, waits_for)

    def _note_policy(self, note: notes.PolicyJudged | notes.PolicyLeft) -> None:
        if isinstance(note, notes.PolicyLeft):
            self._policy_status.forget_policy(note.name)
        else:
            verdict = Verdict(note.generation, note.problem, note.remark)
            self._policy_status.note_verdict(note.name, verdict)

    def _report_scheduled(self, uid: str) -> None:
        decided = self._decided.pop(uid, None)
        how = decided.how if decided is not None else ""
        self._reporter.report_scheduled(
            self._engine.ask(NamedPod(uid)), self._engine.ask(PlacedNote(uid, how))
        )

    def _end_bind(self, event: events.BindDone | events.BindFailed) -> None:
        """Report the bind of a pod that was finished or gone before the bind was known; its cards are no longer known."""
        decided = self._decided.pop(event.uid, None)
        if decided is not None and isinstance(event, events.BindDone):
            pod, how = decided
            text = placements.write_assigned(pod, pod.node)
            self._reporter.report_scheduled(pod, f"{text}; {how}" if how else text)

    def _report_retried(self, uid: str, message: str) -> None:
        # A replica that no longer leads reports nothing: the next leader may have bound the pod already.
        if self._is_leading():
            self._reporter.report_unschedulable(
                self._engine.ask(NamedPod(uid)),
                sayings.say_plain(f"binding failed, trying again: {message}", sayings.ERROR),
            )

    def _report_silent_plugin(self, node: str, waits_for: str) -> None:
        facts, pod = self._engine.ask(KnownNode(node)), self._engine.ask(KnownPod(waits_for))
        if facts is not None:
            whom = f"pod {pod.key}" if pod else "a pod of another scheduler"
            note = f"its device plugin has not served {whom}: no GPU of the node is allocated until the plugin answers"
            self._reporter.report_on_node(facts, "DevicePluginSilent", note)
