"""The life of an engine with queues, to which random things happen, and the log of it."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from scheduler.api import kueue
from scheduler.api.door import events
from scheduler.api.door.workload_decisions import (
    Admit,
    Deactivate,
    EvictWorkload,
    Queued,
    QuotaDecision,
)
from scheduler.api.kinds import BY_KIND
from scheduler.api.queues import configuration
from scheduler.api.queues.admissions import write_admission
from scheduler.api.times import write_time
from scheduler.config import Config
from scheduler.engine.allowance import Allowance, SpentAllowance, Unlimited, Work
from scheduler.engine.recorded import Recorded
from tests.oracles.kueue import cases

MANY = 2**62

COHORTS = {"all": {"quotas": [{"fast": {"cpu": 4}}]}, "left": {"parent": "all", "weight": 2}}
QUEUES: dict[str, Any] = {
    "a": {
        "cohort": "left",
        "reclaim": "Any",
        "within": "LowerPriority",
        "quotas": [{"fast": {"cpu": "10 borrow 10"}, "slow": {"cpu": 5}}],
    },
    "b": {
        "cohort": "left",
        "reclaim": "LowerPriority",
        "within": "LowerOrNewerEqualPriority",
        "quotas": [{"fast": {"cpu": "6 lend 3"}}],
        "counts_usage": True,
    },
    "c": {"cohort": "all", "strict": True, "reclaim": "Any", "quotas": [{"slow": {"cpu": 8}}]},
}


def allow_rounds(n: int) -> SpentAllowance:
    """Allow so many rounds of queues, and all other work."""
    return SpentAllowance(MANY, (MANY,) * Work.ROUND + (n,))


class QueueStory:
    """An engine to which random things happen, and the files of its log.

    Attributes:
        outcomes: all decisions about workloads.
        blocks: whether nobody gets quota while the pods of another workload are not ready.
        n_left: how often work was left for a later call.
    """

    def __init__(self, seed: int, *, in_pieces: bool = False) -> None:
        """``in_pieces``: most calls of ``decide`` are for a few rounds, and may pause."""
        self.rng = random.Random(seed)
        self._in_pieces, self.n_left = in_pieces, 0
        self.blocks = seed == 5
        self.files: list[list[bytes]] = [[]]
        fair: dict[str, Any] = {"fairSharing": {}} if seed % 2 else {}
        # Nobody writes that pods are ready, so whoever runs for longer is evicted, and in the end deactivated.
        ready = {
            "timeout": "30m",
            "blockAdmission": self.blocks,
            "requeuingStrategy": {"backoffLimitCount": 2},
        }
        settings = configuration.read_settings({"kueue": True, "waitForPodsReady": ready, **fair})
        self.engine = Recorded(Config(queues=settings), "test", self._write)
        self.now, self._n = 1_800_000_000.0, 0
        self.outcomes: list[Any] = []
        self._workloads: dict[str, kueue.Workload] = {}
        for body in cases.make_objects({"cohorts": COHORTS, "queues": QUEUES}):
            self._see(body)
        for name in QUEUES:
            self._see(cases.make_local_queue(f"team/{name}", name))

    def _write(self, line: bytes) -> None:
        self.files[-1].append(line)

    def _see(self, body: dict[str, Any]) -> Any:
        kind = next(one for one in BY_KIND[body["kind"]] if one.group in body["apiVersion"])
        found = msgspec.convert({**body, "kind": kind.name}, kind.shape)
        self.engine.handle(events.Seen(found), self.now)
        return found

    def happen(self) -> None:
        """One thing or another, and then a decision that may fail to be written."""
        self.now += self.rng.expovariate(1 / 200)
        what = self.rng.randrange(6)
        if what < 3:
            self._come()
        elif what == 3 and self._workloads:
            key = self.rng.choice(sorted(self._workloads))
            del self._workloads[key]
            self.engine.handle(events.Gone("Workload", key), self.now)
        elif what == 4:
            self._change_queue()
        self._decide(self._draw_allowance() if self._in_pieces else Unlimited())

    def settle(self, most: int) -> int:
        """Decide with one round a call until nobody may get quota; return how many calls that took, at most ``most``."""
        for n in range(most):
            if not self.engine.is_deciding and self.engine.find_due(self.now) > self.now:
                return n
            self._decide(allow_rounds(1))
        return most

    def _draw_allowance(self) -> SpentAllowance:
        spent = [MANY] * Work.ROUND + [self.rng.randrange(3)]
        if self.rng.random() < 0.5:
            spent.append(self.rng.randrange(4))
        return SpentAllowance(MANY, tuple(spent))

    def _decide(self, allowance: Allowance) -> None:
        outcome = self.engine.decide(self.now, allowance)
        self.n_left += self.engine.is_deciding or bool(self.engine._queues.tenants.due_queues)
        self.outcomes += outcome.quotas
        for one in outcome.quotas:
            self._carry_out(one)

    def _come(self) -> None:
        self._n += 1
        workload = cases.make_workload(
            f"team/w{self._n}",
            {
                "in": self.rng.choice(sorted(QUEUES)),
                "asks": {"cpu": self.rng.choice([1, 2, 5])},
                "priority": self.rng.randrange(3),
                "uid": f"u{self._n}",
            },
        )
        workload["metadata"]["creationTimestamp"] = write_time(self.now)
        self._workloads[f"team/w{self._n}"] = self._see(workload)

    def _change_queue(self) -> None:
        name = self.rng.choice(sorted(QUEUES))
        changed = {**QUEUES[name], "weight": self.rng.choice([0, 1, 2])}
        if self.rng.random() < 0.2:
            changed["stop"] = self.rng.choice(["Hold", "HoldAndDrain"])
        self._see(cases.make_queue(name, changed))

    def _carry_out(self, decision: QuotaDecision) -> None:
        """Do what the operator would do; now and then it fails, and now and then it is not done yet."""
        luck = self.rng.random()
        is_gone = decision.key not in self._workloads
        if isinstance(decision, Queued) or is_gone or luck < 0.2:
            return
        if luck < 0.3:
            failed = (
                events.AdmitFailed(decision.key, "no")
                if isinstance(decision, Admit)
                else events.PreemptFailed(decision.key, "no")
            )
            self.engine.handle(failed, self.now)
            return
        found = self._workloads[decision.key]
        admission = write_admission(decision) if isinstance(decision, Admit) else None
        kinds = ["QuotaReserved", "Admitted"] if admission else ["Evicted"]
        if isinstance(decision, Deactivate):
            spec = msgspec.structs.replace(found.spec, active=False)
            found = msgspec.structs.replace(found, spec=spec)
        conditions = [
            kueue.TimedCondition(
                type=kind, status="True", reason=kind, last_transition_time=write_time(self.now)
            )
            for kind in kinds
        ]
        state = found.status.requeue_state
        if isinstance(decision, EvictWorkload) and decision.requeue_at:
            state = kueue.RequeueState(
                count=decision.n_requeued, requeue_at=write_time(decision.requeue_at)
            )
        status = kueue.WorkloadStatus(
            admission=admission, conditions=conditions, requeue_state=state
        )
        found = msgspec.structs.replace(found, status=status)
        self._workloads[decision.key] = found
        self.engine.handle(events.Seen(found), self.now)
