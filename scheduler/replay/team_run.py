"""Runs a recorded trace whose pods wait in the queues of teams: they get quota and a place at once, and may be evicted.

A pod that is evicted waits again, and runs from the beginning once it gets a place.
"""

from __future__ import annotations

from scheduler.api import wire
from scheduler.api.door import events
from scheduler.api.door.workload_decisions import Queued
from scheduler.engine.allowance import Unlimited
from scheduler.replay import objects
from scheduler.replay.experiment import (
    RunOptions,
    Series,
    Tell,
    Trace,
    Workload,
    ignore_progress,
)
from scheduler.replay.kai_run import KaiReplay
from scheduler.replay.policies import Policy
from scheduler.replay.stopping import StoppingReplay
from scheduler.replay.works import Works

_UNLIMITED = Unlimited()


def run_teams(
    trace: Trace, workload: Workload, options: RunOptions, tell: Tell = ignore_progress
) -> Series:
    """Play a recorded workload whose pods share the cluster by ``options.policy``; ``tell`` gets the progress.

    Raises:
        ValueError: there is no policy.
    """
    if options.policy is None:
        raise ValueError("a run with teams needs a policy")
    kind = KaiReplay if options.policy.kai else _TeamReplay
    return kind(trace, workload, options, options.policy).play(tell)


class _TeamReplay(StoppingReplay):
    """One run with queues."""

    def __init__(
        self, trace: Trace, workload: Workload, options: RunOptions, policy: Policy
    ) -> None:
        super().__init__(trace, workload, options)
        which = workload.pod.tolist()
        pods, specs = [trace.pods[one] for one in which], [self._specs[one] for one in which]
        totals = objects.find_totals(trace, [spec for spec, _ in specs])
        self._works = Works(self.engine, policy, pods, specs, totals)
        self._works.refuse_inactive()

    def _has_waiting(self) -> bool:
        return self._works.has_waiting or super()._has_waiting()

    def _arrive(self, i: int, which: int, at: float) -> None:
        if not self._trace.pods[which].queue:
            super()._arrive(i, which, at)
        elif self._works.add(i, at):
            self._decide(at)

    def _make_pod(self, i: int, which: int) -> wire.Pod:
        pod = super()._make_pod(i, which)
        if self._works.is_member(i):
            pod.metadata.annotations = {**(pod.metadata.annotations or {}), **self._works.annotate(i)}  # fmt: skip
            pod.metadata.labels = {**(pod.metadata.labels or {}), **self._works.label(i)}
        return pod

    def _decide(self, at: float) -> None:
        """Decide until nothing more happens at this time: pods of workloads that get quota come into being at once."""
        self._now = at
        is_over = False
        while not is_over:
            outcome = self.engine.decide(at, _UNLIMITED)
            binds = outcome.binds
            for bind in binds:
                self._confirm_bind(bind, at)
                if self._has_groups and not self._works.is_member(int(bind.uid)):
                    self._start_pod(bind, at)
            turns = self._works.carry_out(outcome.quotas, at)
            for i in turns.stopped:
                self._note_stopped(i, at)
            for i in turns.started:
                pod = self._make_pod(i, int(self._workload.pod[i]))
                self.engine.handle(events.Seen(pod), at)
            decided = [one for one in outcome.quotas if not isinstance(one, Queued)]
            is_over = not binds and not decided and not self.engine.is_deciding

    def _leave(self, at: float) -> None:
        i = self._leaving[0][1]
        is_left = self._ends.get(i) == at
        super()._leave(at)
        if is_left and self._works.is_member(i):
            self._works.end(i, at)
