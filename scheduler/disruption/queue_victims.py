"""Who may go for pods of KAI's queues, in the order in which they go: lines of their own beside ``protectors``.

In these queues a pod takes the place of pods of its own queue that have a lower priority, or of pods of other queues that
hold more than belongs to them, whatever their priority.

Source: KAI-Scheduler (2026-03), ``actions/preempt``, ``actions/reclaim``, ``actions/utils/job_order_by_queue.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from scheduler.api.queues.kai import NOTHING, Vector, add
from scheduler.api.queues.settings import KaiSettings
from scheduler.disruption.group_units import Unit
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.groups.running import goes_pod_by_pod
from scheduler.state.pods import Life, PodRecord
from scheduler.tenancy.kai.accounts import Accounts
from scheduler.tenancy.kai.ordering import comes_before, pick
from scheduler.tenancy.kai.rules import (
    Taker,
    find_preempt_seconds,
    find_reclaim_seconds,
    has_too_much,
)
from scheduler.tenancy.kai.terms import Terms
from scheduler.tenancy.kai.tree import Queue
from scheduler.tenancy.kai.turns import ABOVE, JUST


class Action(StrEnum):
    """Whose place is taken."""

    RECLAIM = "of pods of other queues"
    PREEMPT = "of pods of lower priority in the queue"


@dataclass(slots=True)
class _Job:
    """A pod or group that may go, in parts.

    Attributes:
        units: what goes next, the first one first.
        last_at: the place of its minimum among them; behind their end if only extra pods may go.
        place: its place in the order in which jobs of a queue go, the highest first.
    """

    terms: Terms
    units: list[Unit]
    last_at: int
    place: tuple[str, str]
    at: int = 0

    @property
    def rank(self) -> tuple[int, int, tuple[str, str]]:
        """How early it goes: the highest first."""
        return -self.terms.priority, ABOVE if self.at < self.last_at else JUST, self.place


class QueueVictims:
    """Lists who may go."""

    def __init__(self, cluster: Cluster, accounts: Accounts, settings: KaiSettings) -> None:
        self._cluster, self._accounts, self._settings = cluster, accounts, settings

    def list_units(
        self, taker: Taker, terms: Terms, action: Action
    ) -> tuple[list[Unit], float | None]:
        """List who may go for a pod, in order.

        Returns:
            The units, and the time at which more of them may go as they have run for long enough; None for never.
        """
        jobs: dict[str, list[_Job]] = {}
        until: float | None = None
        for queue in self._list_queues(taker, action):
            name = queue.name
            members = {
                uid: one
                for uid, one in self._accounts.list_holders(name)
                if one.is_preemptible
                and (action == Action.RECLAIM or one.priority < terms.priority)
            }
            seconds = self._find_seconds(queue, taker, action)
            for job in self._list_jobs(members):
                ends = self._find_end(job, seconds)
                if ends is not None:
                    until = ends if until is None else min(until, ends)
                    job.units = job.units[: job.last_at]
                if job.units:
                    jobs.setdefault(name, []).append(job)
        return list(_order(jobs, self._accounts)), until

    def _list_queues(self, taker: Taker, action: Action) -> list[Queue]:
        """List the queues whose pods may go: those that hold more than is theirs, or that of the taker."""
        if action == Action.PREEMPT:
            return [taker.queue]
        tree = self._accounts.tree
        return [
            queue
            for queue in tree.queues.values()
            if queue is not taker.queue
            and not tree.find_problem(queue.name)
            and has_too_much(taker, queue)
        ]

    def _find_seconds(self, queue: Queue, taker: Taker, action: Action) -> float:
        if action == Action.PREEMPT:
            return find_preempt_seconds(queue)
        return find_reclaim_seconds(queue, taker.queue, by_common=self._settings.by_common)

    def _find_end(self, job: _Job, seconds: float) -> float | None:
        """Find until when a job is protected, as it has not run for so many seconds; None if it is not."""
        if not seconds:
            return None
        starts = self._cluster.ledger.pods.columns.start
        began: list[float] = []
        for pod in (pod for unit in job.units for pod in unit.pods):
            start = int(starts[pod.row])
            if start != c.NOT_STARTED:
                began.append(start)
            elif pod.life == Life.ASSUMED:
                began.append(self._cluster.now)
        ends = min(began) + seconds if began else 0.0
        return ends if ends > self._cluster.now else None

    def _list_jobs(self, members: Mapping[str, Terms]) -> Iterator[_Job]:
        groups, pods = self._cluster.groups, self._cluster.pods
        seen = set()
        for uid, terms in members.items():
            pod, key = pods[uid], groups.find_group(uid)
            root = None if key is None else groups.find_root(key)
            split = None if root is None else groups.kept.find_split(root, groups)
            if root is None or split is None or goes_pod_by_pod(groups.find_definition(root)):
                if self._may_go(pod):
                    yield _Job(terms, [Unit((pod,))], 0, (pod.created, pod.key))
                continue
            if root in seen:
                continue
            seen.add(root)
            extras = [Unit((one,), root, is_extra=True) for one in reversed(split.extras) if self._may_go(one)]  # fmt: skip
            core = [one for one in split.core if one.uid in members]
            is_whole = len(core) == len(split.core) and all(map(self._may_go, core))
            units = [*extras, *([Unit(split.core, root)] if core and is_whole else ())]
            oldest = min((one.created for one in (*split.core, *split.extras)), default="")
            yield _Job(terms, units, len(extras), (oldest, str(root)))

    def _may_go(self, pod: PodRecord) -> bool:
        nominations = self._cluster.nominations
        is_going = pod.deleting or pod.uid in nominations.going
        return not is_going and not nominations.is_refused(pod.uid, self._cluster.now)


def _order(jobs: Mapping[str, list[_Job]], accounts: Accounts) -> Iterator[Unit]:
    """Yield the units of jobs, by queue: of the queues the one that comes last first, level by level."""
    gone: dict[str, Vector] = {}
    left = {name: list(some) for name, some in jobs.items()}

    def comes_last(one: tuple[Queue, Vector], other: tuple[Queue, Vector]) -> bool:
        victims = other[1], one[1]
        return comes_before(other[0], one[0], (NOTHING, NOTHING), accounts.total, victims)

    while left:
        next_of = {name: max(some, key=lambda one: one.rank) for name, some in left.items()}
        heads = {
            name: add(gone.get(name, NOTHING), _sum_held(job.units[job.at :], accounts))
            for name, job in next_of.items()
        }
        name = pick(accounts.tree.queues, heads, comes_last)
        if name is None:
            return
        job = next_of[name]
        unit = job.units[job.at]
        job.at += 1
        gone[name] = add(gone.get(name, NOTHING), _sum_held([unit], accounts))
        if job.at == len(job.units):
            left[name].remove(job)
            if not left[name]:
                del left[name]
        yield unit


def _sum_held(units: Sequence[Unit], accounts: Accounts) -> Vector:
    total = NOTHING
    for pod in (pod for unit in units for pod in unit.pods):
        total = add(total, accounts.find_held(pod.uid))
    return total


def sum_by_queue(units: Sequence[Unit], accounts: Accounts) -> dict[str, list[Vector]]:
    """Sum up what units hold, by the queue of their pods."""
    found: dict[str, list[Vector]] = {}
    for unit in units:
        queue = accounts.find_terms(unit.pods[0]).queue
        found.setdefault(queue, []).append(_sum_held([unit], accounts))
    return found


# Whether it is fair that units go.
Allows = Callable[[Sequence[Unit]], bool]
