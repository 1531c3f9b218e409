"""Runs a recorded trace whose pods wait in KAI's queues: there are no workloads, and pods may be evicted.

A pod that is evicted waits again, and runs from the beginning once it gets a place.
"""

from __future__ import annotations

from scheduler.api import names, wire
from scheduler.api.door import events
from scheduler.api.times import write_time
from scheduler.engine.allowance import Unlimited
from scheduler.replay.experiment import RunOptions, Trace, Workload
from scheduler.replay.policies import Policy
from scheduler.replay.stopping import StoppingReplay

_UNLIMITED = Unlimited()


class KaiReplay(StoppingReplay):
    """One run with KAI's queues."""

    def __init__(
        self, trace: Trace, workload: Workload, options: RunOptions, policy: Policy
    ) -> None:
        super().__init__(trace, workload, options)
        self._n_waiting = 0
        for found in policy.objects:
            self.engine.handle(events.Seen(found), 0.0)

    def _has_waiting(self) -> bool:
        return self._n_waiting > 0

    def _arrive(self, i: int, which: int, at: float) -> None:
        self._n_waiting += 1
        super()._arrive(i, which, at)

    def _make_pod(self, i: int, which: int) -> wire.Pod:
        pod = super()._make_pod(i, which)
        # The older one is first in its queue.
        pod.metadata.creation_timestamp = write_time(self._seconds[i])
        if queue := self._trace.pods[which].queue:
            pod.metadata.labels = {**(pod.metadata.labels or {}), names.KAI_QUEUE: queue}
        return pod

    def _decide(self, at: float) -> None:
        """Decide until nothing more happens at this time: who is evicted is gone, and waits again."""
        self._now = at
        is_over = False
        while not is_over:
            outcome = self.engine.decide(at, _UNLIMITED)
            binds = outcome.binds
            for bind in binds:
                self._confirm_bind(bind, at)
                self._start_pod(bind, at)
            self._n_waiting -= len(binds)
            gone = [int(uid) for evict in outcome.evicts for uid in evict.victims]
            for i in gone:
                self.engine.handle(events.Gone("Pod", str(i)), at)
                self._note_stopped(i, at)
            for i in gone:
                pod = self._make_pod(i, int(self._workload.pod[i]))
                self.engine.handle(events.Seen(pod), at)
            self._n_waiting += len(gone)
            is_over = not binds and not gone and not self.engine.is_deciding
