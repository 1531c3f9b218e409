"""An engine with queues of tenants, and whoever carries its decisions out at once: there is no API server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from scheduler.api import kueue
from scheduler.api.door import events
from scheduler.api.door.workload_decisions import Admit, EvictWorkload, Preempt, QuotaDecision
from scheduler.api.kinds import BY_KIND
from scheduler.api.queues.admissions import write_admission
from scheduler.api.queues.settings import QueueSettings
from scheduler.api.times import write_time
from scheduler.config import Config
from scheduler.engine.allowance import Allowance, Unlimited
from scheduler.engine.engine import Engine
from scheduler.kube.slices import Slice
from tests.differential.queues.quotas import NAMESPACE

Json = dict[str, Any]

# When the clock of a bench starts.
NOW = 1_800_000_000.0


def make_slice() -> Slice:
    """Make what the operator allows in one turn of its loop."""
    return Slice(time.perf_counter, Config().slice_pods)


class QueueCluster:
    """An engine that knows some objects, the workloads among them, and which of these run.

    Attributes:
        workloads: those that wait or run, as they are written now.
        running: those that have quota.
    """

    def __init__(self, objects: Iterable[Json]) -> None:
        self.engine = Engine(Config(queues=QueueSettings(kueue=True)))
        self.workloads: dict[str, kueue.Workload] = {}
        self.running: dict[str, None] = {}
        namespace = {"kind": "Namespace", "metadata": {"name": NAMESPACE}}
        for body in (namespace, *objects):
            self.add(read_object(body), NOW)

    def add(self, found: Any, now: float) -> None:
        """Let the engine see a new object."""
        if isinstance(found, kueue.Workload):
            self.workloads[f"{found.metadata.namespace}/{found.metadata.name}"] = found
        self.engine.handle(events.Seen(found), now)

    def decide_piece(
        self, now: float, make_allowance: Callable[[], Allowance]
    ) -> list[QuotaDecision]:
        """Let the engine decide until it hands decisions out; ``make_allowance`` makes one for each call."""
        outcome = self.engine.decide(now, make_allowance())
        while self.engine.is_deciding:
            outcome = self.engine.decide(now, make_allowance())
        return list(outcome.quotas)

    def decide(
        self, now: float = NOW, make_allowance: Callable[[], Allowance] = Unlimited
    ) -> list[QuotaDecision]:
        """Let the engine decide, and do what it says; return its decisions."""
        quotas = self.decide_piece(now, make_allowance)
        for one in quotas:
            if isinstance(one, Admit):
                self.running[one.key] = None
                self._write(one.key, now, write_admission(one), "QuotaReserved", "Admitted")
            elif isinstance(one, Preempt | EvictWorkload):
                self.running.pop(one.key, None)
                self._write(one.key, now, None, "Evicted")
        return quotas

    def _write(self, key: str, now: float, admission: kueue.Admission | None, *kinds: str) -> None:
        conditions = [
            kueue.TimedCondition(
                type=kind, status="True", reason=kind, last_transition_time=write_time(now)
            )
            for kind in kinds
        ]
        status = kueue.WorkloadStatus(admission=admission, conditions=conditions)
        found = msgspec.structs.replace(self.workloads[key], status=status)
        self.workloads[key] = found
        self.engine.handle(events.Seen(found), now)

    def end(self, key: str, now: float = NOW) -> None:
        """Let a workload that runs end."""
        self.running.pop(key)
        del self.workloads[key]
        self.engine.handle(events.Gone("Workload", key), now)


def read_object(body: Json) -> Any:
    """Read an object of any kind that the engine knows."""
    (kind,) = (one for one in BY_KIND[body["kind"]] if one.group in body.get("apiVersion", ""))
    return msgspec.convert({**body, "kind": kind.name}, kind.shape)
