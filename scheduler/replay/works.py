"""The workloads of a trace: which pods form one, what becomes of it, and when its pods come into being.

A pod with a queue, or a group of such pods, is one workload of Kueue's. Its pods exist from when it gets quota until they
end, or until it is evicted; then it waits again, and its pods run from the beginning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from scheduler.api import kai, kinds, kueue, names, wire
from scheduler.api.door import events
from scheduler.api.door.workload_decisions import Admit, EvictWorkload, Preempt, QuotaDecision
from scheduler.api.queues.admissions import write_admission
from scheduler.api.queues.words import ADMITTED, EVICTED, PREEMPTED, QUOTA_RESERVED
from scheduler.api.times import write_time
from scheduler.engine.engine import Engine
from scheduler.engine.questions.queues import KnownQueues
from scheduler.errors import BadInput
from scheduler.replay.experiment import TracePod
from scheduler.replay.policies import NAMESPACE, Policy

# The digits of a number in a name: what comes in the same second has its turn by name.
_DIGITS = 9
# The flavor of resources that a queue does not mention.
_REST = "replay-rest"
_STOPPED = "Stopped"


@dataclass(slots=True)
class _Work:
    """A workload.

    Attributes:
        found: its object, as the engine has seen it last.
        sets: the arrivals of each pod set, by the set's name.
        left: the arrivals whose pods have not ended.
        is_started: whether these pods exist.
    """

    found: kueue.Workload
    sets: Mapping[str, Sequence[int]]
    left: set[int]
    is_started: bool = False


@dataclass(frozen=True, slots=True)
class Turns:
    """What decisions about quota come to: arrivals whose pods come into being, and such whose pods are gone."""

    started: list[int] = field(default_factory=list)
    stopped: list[int] = field(default_factory=list)


class Works:
    """The workloads of one run."""

    def __init__(
        self,
        engine: Engine,
        policy: Policy,
        pods: Sequence[TracePod],
        specs: Sequence[tuple[wire.PodSpec, dict[str, str]]],
        totals: Mapping[str, str | int],
    ) -> None:
        """Let the engine see the queues of a policy.

        Args:
            engine: the engine of the run.
            policy: the queues, and which rules share among them.
            pods: [A] the pod of each arrival.
            specs: [A] its spec and annotations.
            totals: what all nodes have of each resource that pods request, in whole units or with the unit of cpu and
                memory; a queue that does not cover a resource may use all of it.
        """
        self._engine, self._pods, self._specs = engine, pods, specs
        self._sizes = Counter(pod.group for pod in pods if pod.queue and pod.group)
        self._forming: dict[str, list[int]] = {}
        self._works: dict[str, _Work] = {}
        self._key_of: dict[int, str] = {}
        self._set_of: dict[int, str] = {}
        self._n_waiting = 0
        self._see(kueue.ResourceFlavor(metadata=wire.GuardedMeta(name=_REST, uid=_REST), spec={}))
        for found in policy.objects:
            if isinstance(found, kueue.ClusterQueue):
                self._see(cover_rest(found, totals))
            elif not isinstance(found, kai.Queue):
                self._see(found)

    def refuse_inactive(self) -> None:
        """Refuse a policy with a queue that admits nothing, unless it says so itself by its ``stopPolicy``.

        Raises:
            BadInput: names the queue, and says why.
        """
        for one in self._engine.ask(KnownQueues()):
            for reason, message in one.inactive:
                if reason != _STOPPED:
                    raise BadInput(f"--queues: ClusterQueue {one.name}", f"{reason}: {message}")

    def _see(self, found: kueue.QueueObject, at: float = 0.0) -> None:
        self._engine.handle(events.Seen(found), at)

    def add(self, i: int, at: float) -> bool:
        """Let an arrival wait; a group is a workload once all its pods have come. Return whether it is one now."""
        pod = self._pods[i]
        members = [i]
        if pod.group:
            members = self._forming.setdefault(pod.group, [])
            members.append(i)
            if len(members) < self._sizes[pod.group]:
                return False
        found = self._make_workload(members, at)
        self._n_waiting += 1
        self._see(found.found, at)
        return True

    def _make_workload(self, members: Sequence[int], at: float) -> _Work:
        first = self._pods[members[0]]
        name = f"{members[0]:0{_DIGITS}}"
        sets: dict[str, list[int]] = {}
        number: dict[TracePod, str] = {}
        for i in members:
            sets.setdefault(number.setdefault(self._pods[i].kind, f"set-{len(number)}"), []).append(i)  # fmt: skip
        pod_sets = [
            kueue.PodSet(name=one, count=len(some), template=self._make_template(some[0]))
            for one, some in sets.items()
        ]
        meta = wire.GuardedMeta(
            name=name, namespace=NAMESPACE, uid=name, creation_timestamp=write_time(at)
        )
        spec = kueue.WorkloadSpec(pod_sets=pod_sets, queue_name=first.queue, priority=0)
        work = _Work(kueue.Workload(metadata=meta, spec=spec), sets, set(members))
        key = f"{NAMESPACE}/{name}"
        self._works[key] = work
        self._key_of |= dict.fromkeys(members, key)
        for one, some in sets.items():
            self._set_of |= dict.fromkeys(some, one)
        return work

    def _make_template(self, i: int) -> kueue.PodTemplate:
        spec, annotations = self._specs[i]
        return kueue.PodTemplate(metadata=wire.Meta(annotations=dict(annotations)), spec=spec)

    @property
    def has_waiting(self) -> bool:
        """Whether any workload has no quota."""
        return self._n_waiting > 0

    def is_member(self, i: int) -> bool:
        """Whether an arrival is part of a workload."""
        return i in self._key_of

    def annotate(self, i: int) -> dict[str, str]:
        """Annotate the pod of an arrival with its workload."""
        return {names.KUEUE_WORKLOAD: self._key_of[i].partition("/")[2]}

    def label(self, i: int) -> dict[str, str]:
        """Label the pod of an arrival with its pod set."""
        return {names.KUEUE_POD_SET: self._set_of[i]}

    def carry_out(self, decisions: Iterable[QuotaDecision], at: float) -> Turns:
        """Do to workloads what their controllers would do."""
        turns = Turns()
        for one in decisions:
            if isinstance(one, Admit):
                work = self._works[one.key]
                conditions = (QUOTA_RESERVED, QUOTA_RESERVED), (ADMITTED, ADMITTED)
                self._write_status(work, at, conditions, write_admission(one))
                work.is_started = True
                turns.started.extend(sorted(work.left))
                self._n_waiting -= 1
            elif isinstance(one, Preempt | EvictWorkload):
                turns.stopped.extend(self._evict(one, at))
        return turns

    def _evict(self, one: Preempt | EvictWorkload, at: float) -> Iterator[int]:
        """Stop a workload: its pods are gone, and it waits again."""
        work = self._works[one.key]
        for i in sorted(work.left) if work.is_started else ():
            self._engine.handle(events.Gone(kinds.PODS.name, f"{i}"), at)
            yield i
        work.is_started = False
        self._n_waiting += 1
        is_preempted = isinstance(one, Preempt)
        conditions = [(EVICTED, PREEMPTED if is_preempted else one.reason)]
        if is_preempted:
            conditions.append((PREEMPTED, one.reason))
        self._write_status(work, at, conditions)

    def _write_status(
        self,
        work: _Work,
        at: float,
        conditions: Iterable[tuple[str, str]],
        admission: kueue.Admission | None = None,
    ) -> None:
        written = [
            kueue.TimedCondition(
                type=kind, status="True", reason=reason, last_transition_time=write_time(at)
            )
            for kind, reason in conditions
        ]
        status = kueue.WorkloadStatus(
            admission=admission, conditions=written, reclaimable_pods=_list_ended(work)
        )
        work.found = msgspec.structs.replace(work.found, status=status)
        self._see(work.found, at)

    def end(self, i: int, at: float) -> None:
        """Let the pod of an arrival end: its quota is free, and with the last one the workload is gone."""
        key = self._key_of[i]
        work = self._works[key]
        work.left.discard(i)
        if not work.left:
            del self._works[key]
            self._engine.handle(events.Gone(kinds.WORKLOADS.name, key), at)
            return
        status = msgspec.structs.replace(work.found.status, reclaimable_pods=_list_ended(work))
        work.found = msgspec.structs.replace(work.found, status=status)
        self._see(work.found, at)


def _list_ended(work: _Work) -> list[kueue.ReclaimablePods]:
    """List how many pods of each pod set have ended: they need no quota any more, and do not come again."""
    return [
        kueue.ReclaimablePods(name=name, count=n)
        for name, some in work.sets.items()
        if (n := sum(i not in work.left for i in some))
    ]


def cover_rest(queue: kueue.ClusterQueue, totals: Mapping[str, str | int]) -> kueue.ClusterQueue:
    """Cover the resources that a queue does not mention: it may use all that there is of them, on any nodes."""
    groups = list(queue.spec["resourceGroups"])
    covered = {name for one in groups for name in one["coveredResources"]}
    rest = [
        {"name": name, "nominalQuota": amount}
        for name, amount in totals.items()
        if name not in covered
    ]
    if rest:
        flavor = {"name": _REST, "resources": rest}
        groups.append({"coveredResources": [one["name"] for one in rest], "flavors": [flavor]})
    return msgspec.structs.replace(queue, spec={**queue.spec, "resourceGroups": groups})
