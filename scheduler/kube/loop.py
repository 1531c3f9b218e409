"""The loop: events into the engine, decisions out to the binder, words to the reporter. It decides nothing.

It is the only task that hands events in and takes decisions; others only ask.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
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
from scheduler.kube.evict.evictor import Evictor
from scheduler.kube.inbox import Inbox
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
    """Who carries decisions out."""

    binder: Binder
    evictor: Evictor


class _Decided(NamedTuple):
    """A pod whose bind is under way, as it was decided, and by whose wish in words: policies may be others by then."""

    pod: PodRecord
    how: str


class Loop:
    """Turns until cancelled.

    Attributes:
        turned_at: loop time of the last turn, for the liveness probe.
        mistakes: tells people of malformed objects.
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
        self._binder, self._evictor = hands
        self._is_leading = is_leading
        self._reporter, self._tally, self._policy_status = reporter, tally, policy_status
        self._recorder = recorder
        # By uid, until it is known what became of the bind; the pod may be gone or finished before.
        self._decided: dict[str, _Decided] = {}
        self.mistakes = Mistakes(inbox.engine, reporter, is_leading)
        self.turned_at = 0.0

    async def run(self) -> None:
        """Turn until cancelled."""
        clock = asyncio.get_running_loop().time
        while True:
            self.turned_at = clock()
            await self._sleep()
            self.turn()
            await asyncio.sleep(0)

    def turn(self) -> None:
        """Hand in the events, as far as a slice of time goes, and take the decisions."""
        self._hand_in()
        self._decide()
        if self._recorder is not None:
            self._recorder.keep_up(asyncio.get_running_loop().time())

    def finish(self) -> None:
        """After the last turn: tell what became of the last binds."""
        for event in self._inbox.rest():
            if isinstance(event, events.BindDone | events.BindFailed):
                self._handle(event)

    async def count_governed(self) -> Mapping[str, int]:
        """Pods of ours by the policy that governs them; others get their turn meanwhile."""
        steps = self._engine.ask(GovernedPods())
        while True:
            try:
                next(steps)
            except StopIteration as end:
                counts: Mapping[str, int] = end.value
                return counts
            await asyncio.sleep(0)

    async def _sleep(self) -> None:
        """Until there is something to do."""
        if len(self._inbox) or self._engine.is_compiling:
            return
        now = asyncio.get_running_loop().time()
        # Only a leader has dates to keep. For others they would be in the past, and the loop would spin.
        wait = _IDLE_SECONDS
        if self._is_leading() and self._room():
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

    def _room(self) -> int:
        """For how many pods to decide: decisions far ahead of the binder would be older than they need be."""
        config = self._engine.config
        room = 4 * config.binds_in_flight - self._binder.n_queued
        return max(room, config.slice_pods) if room > 0 else 0

    # Events.

    def _hand_in(self) -> None:
        clock = asyncio.get_running_loop().time
        until = clock() + slices.SECONDS
        while clock() < until:
            event = self._inbox.next()
            if event is None:
                return
            self._handle(event)

    def _handle(self, event: Event) -> None:
        for note in self._engine.handle(event, asyncio.get_running_loop().time()):
            self._tell(note)
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
                self._binder.node_gone(name)
            case events.Gone(kind, key):
                self._binder.see_object(kind, *kinds.split_key(key))
            case events.ListEnds(kinds.PODS.name, scheduler) if scheduler:
                self._binder.reconcile(self._engine.ask(KnownPods()))
            case events.ListEnds(kinds.NODES.name):
                self._binder.reconcile_nodes(self._engine.ask(KnownNodes()))

    # Decisions.

    def _decide(self) -> None:
        clock = asyncio.get_running_loop().time
        # A list not yet handed in may hold pods on the very cards about to be allocated.
        may_decide = self._is_leading() and not self._inbox.lists_waiting
        allowance = Slice(clock, self._room() if may_decide else 0)
        outcome = self._engine.decide(clock(), allowance)
        seconds = time.perf_counter() - allowance.decided_from if allowance.decided_from else 0.0
        self._tally.decided(outcome, seconds)
        self._carry_out(outcome)

    def _carry_out(self, outcome: Outcome) -> None:
        for note in outcome.notes:
            self._tell(note)
        for hold in outcome.explained:
            self._reporter.unschedulable(
                self._engine.ask(NamedPod(hold.uid)), sayings.say_why(hold)
            )
        for plan in outcome.plans:
            pods = {bind.uid: self._engine.ask(NamedPod(bind.uid)) for bind in plan.binds}
            for uid, pod in pods.items():
                # What was said of the pod no longer holds, and must not land behind its binding.
                self._reporter.forget(uid)
                self._decided[uid] = _Decided(pod, self._engine.ask(HowPlaced(uid)))
            self._binder.submit(plan.binds, pods)
        for evict in outcome.evicts:
            words = departures.describe_departure(evict, self._name_scheduler(evict))
            victims = [self._engine.ask(NamedPod(uid)) for uid in evict.victims]
            self._evictor.evict(victims, words)
        for nominate in outcome.nominates:
            self._evictor.nominate(self._engine.ask(NamedPod(nominate.uid)), nominate.node)
        for hold in outcome.holds:
            self._reporter.unschedulable(
                self._engine.ask(NamedPod(hold.uid)), sayings.say_why(hold)
            )

    def _name_scheduler(self, evict: Evict) -> str:
        """Return the name by which pods are sent away: that of the pod that needs the room, if there is one."""
        if not evict.makes_room_for:
            return self._engine.config.scheduler_name
        return self._engine.ask(NamedPod(evict.makes_room_for)).profile

    # Words.

    def _tell(self, note: Note) -> None:
        match note:
            case notes.PodBound(uid):
                self._tally.left(uid)
                self.mistakes.check_bound(self._engine.ask(NamedPod(uid)))
            case notes.Left(uid):
                self._tally.left(uid)
                self._reporter.forget(uid)
                self._binder.cancel(uid)
            case notes.NodeRead(name):
                facts = self._engine.ask(KnownNode(name))
                if facts is not None:
                    self.mistakes.check_node(facts)
            case notes.Scheduled(uid):
                self._scheduled(uid)
            case notes.Retried(uid, message):
                self._retried(uid, message)
            case notes.PolicyJudged(name, generation, problem, remark):
                self._policy_status.judged(name, Verdict(generation, problem, remark))
            case notes.PolicyLeft(name):
                self._policy_status.gone(name)
            case notes.PluginFellSilent(node, waits_for):
                self._plugin_fell_silent(node, waits_for)

    def _scheduled(self, uid: str) -> None:
        decided = self._decided.pop(uid, None)
        how = decided.how if decided is not None else ""
        self._reporter.scheduled(
            self._engine.ask(NamedPod(uid)), self._engine.ask(PlacedNote(uid, how))
        )

    def _end_bind(self, event: events.BindDone | events.BindFailed) -> None:
        """Say that a pod was bound which was finished or gone before that was known; its cards are no longer known."""
        decided = self._decided.pop(event.uid, None)
        if decided is not None and isinstance(event, events.BindDone):
            pod, how = decided
            text = placements.write_assigned(pod, pod.node)
            self._reporter.scheduled(pod, f"{text}; {how}" if how else text)

    def _retried(self, uid: str, message: str) -> None:
        # A replica that leads no more says nothing: the next leader may have bound the pod already.
        if self._is_leading():
            self._reporter.unschedulable(
                self._engine.ask(NamedPod(uid)),
                sayings.say_plain(f"binding failed, trying again: {message}", sayings.ERROR),
            )

    def _plugin_fell_silent(self, node: str, waits_for: str) -> None:
        facts, pod = self._engine.ask(KnownNode(node)), self._engine.ask(KnownPod(waits_for))
        if facts is not None:
            whom = f"pod {pod.key}" if pod else "a pod of another scheduler"
            note = f"its device plugin has not served {whom}: no GPU of the node is allocated until the plugin answers"
            self._reporter.on_node(facts, "DevicePluginSilent", note)
