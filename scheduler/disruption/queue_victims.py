"""Who may go for pods of KAI's queues, in the order in which they go: lines of their own beside ``protectors``.

In these queues a pod takes the place of pods of its own queue that have a lower priority, or of pods of other queues that
hold more than belongs to them, whatever their priority.

Source: KAI-Scheduler (2026-03), ``actions/preempt``, ``actions/reclaim``, ``actions/utils/job_order_by_queue.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import NamedTuple

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


class _Job(NamedTuple):
    """A pod or group that may go, in parts.

    Attributes:
        extras: its extra pods, the one that goes first first.
        core: the rest, which goes as a whole; None if that may not go.
        place: its place among jobs of one priority, the highest goes first.
        began: since when it runs; None if that is not known.
    """

    terms: Terms
    extras: tuple[Unit, ...]
    core: Unit | None
    place: tuple[str, str]
    began: float | None

    def find_rank(self, at: int) -> tuple[int, int, tuple[str, str]]:
        """Find how early it goes, of which so many extra pods are gone: the lowest first."""
        return self.terms.priority, JUST if at >= len(self.extras) else -ABOVE, self.place


class _Line:
    """The jobs of one queue, in the order in which they go."""

    def __init__(self, jobs: Sequence[_Job], takes: Callable[[_Job], int]) -> None:
        """``takes`` says how many parts of a job may go."""
        self._jobs, self._takes = jobs, takes
        self._next = 0
        # Jobs of which parts are gone, and how many.
        self._begun: list[tuple[_Job, int]] = []

    def find_head(self) -> tuple[_Job, int] | None:
        """Find the job that goes next, and how many parts of it are gone; None if none is left."""
        while self._next < len(self._jobs) and not self._takes(self._jobs[self._next]):
            self._next += 1
        heads = [*self._begun]
        if self._next < len(self._jobs):
            heads.append((self._jobs[self._next], 0))
        return min(heads, key=_reverse_age, default=None)

    def pop(self, job: _Job, at: int) -> Unit:
        """Take the next part of a job, which is at the head."""
        if at:
            self._begun.remove((job, at))
        else:
            self._next += 1
        if at + 1 < self._takes(job):
            self._begun.append((job, at + 1))
        return _list_parts(job)[at]


class QueueVictims:
    """Lists who may go."""

    def __init__(self, cluster: Cluster, accounts: Accounts, settings: KaiSettings) -> None:
        self._cluster, self._accounts, self._settings = cluster, accounts, settings
        # By queue: its jobs in the order in which they go.
        self._jobs: dict[str, list[_Job]] = {}

    def begin(self) -> None:
        """Begin to look for several pods; until the next time no pod comes to a node and none leaves one."""
        self._jobs.clear()

    def note_sent_away(self, uids: Iterable[str]) -> None:
        """List the jobs of those queues anew of whose groups pods were sent away: other pods of these may still go."""
        groups = self._cluster.groups
        for uid in uids:
            key = groups.find_group(uid)
            root = None if key is None else groups.find_root(key)
            if root is not None and not goes_pod_by_pod(groups.find_definition(root)):
                self._jobs.pop(self._accounts.find_terms(self._cluster.pods[uid]).queue, None)

    def list_units(self, taker: Taker, terms: Terms, action: Action, ends: list[float]) -> Iterator[Unit]:  # fmt: skip
        """Yield who may go for a pod, in order.

        ``ends`` takes the times at which more of them may go, as they have run for long enough then.
        """
        lines: dict[str, _Line] = {}
        for queue in self._list_queues(taker, action):
            most = terms.priority if action == Action.PREEMPT else None
            seconds = self._find_seconds(queue, taker, action)
            takes = partial(self._count_parts, seconds=seconds, most=most, ends=ends)
            lines[queue.name] = _Line(self._list_jobs(queue.name), takes)
        return _order(lines, self._accounts)

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

    def _count_parts(
        self, job: _Job, *, seconds: float, most: int | None, ends: list[float]
    ) -> int:
        """Count the parts of a job that may go: none if it is as important, only extra pods if it has not run for long."""
        if most is not None and job.terms.priority >= most:
            return 0
        if self._cluster.nominations.going and not self._is_there(job):
            return 0
        n = len(job.extras)
        until = (job.began or 0.0) + seconds if seconds and job.began is not None else 0.0
        if until > self._cluster.now:
            ends.append(until)
            return n
        return n + (job.core is not None)

    def _list_jobs(self, queue: str) -> list[_Job]:
        if (known := self._jobs.get(queue)) is None:
            jobs = self._make_jobs(queue)
            # The youngest of one rank goes first.
            known = sorted(jobs, key=lambda job: job.place, reverse=True)
            known.sort(key=lambda job: job.find_rank(0)[:2])
            self._jobs[queue] = known
        return known

    def _is_there(self, job: _Job) -> bool:
        """Whether no pod of a job has been sent away since the jobs were listed."""
        going = self._cluster.nominations.going
        return not any(pod.uid in going for unit in _list_parts(job) for pod in unit.pods)

    def _make_jobs(self, queue: str) -> Iterator[_Job]:
        groups, pods = self._cluster.groups, self._cluster.pods
        seen = set()
        members = {
            uid: one for uid, one in self._accounts.list_holders(queue) if one.is_preemptible
        }
        for uid, terms in members.items():
            pod, key = pods[uid], groups.find_group(uid)
            root = None if key is None else groups.find_root(key)
            if root is not None and root in seen:
                continue
            split = None if root is None else groups.kept.find_split(root, groups)
            if root is None or split is None or goes_pod_by_pod(groups.find_definition(root)):
                if self._may_go(pod):
                    yield _Job(terms, (), Unit((pod,)), (pod.created, pod.key), self._find_start([pod]))  # fmt: skip
                continue
            seen.add(root)
            extras = tuple(Unit((one,), root, is_extra=True) for one in reversed(split.extras) if self._may_go(one))  # fmt: skip
            is_whole = all(one.uid in members and self._may_go(one) for one in split.core)
            core = Unit(split.core, root) if split.core and is_whole else None
            all_of_it = [*split.core, *split.extras]
            oldest = min(one.created for one in all_of_it)
            yield _Job(terms, extras, core, (oldest, str(root)), self._find_start(all_of_it))

    def _find_start(self, pods: Sequence[PodRecord]) -> float | None:
        """Find since when the first of some pods runs."""
        starts = self._cluster.ledger.pods.columns.start
        began: list[float] = []
        for pod in pods:
            start = int(starts[pod.row])
            if start != c.NOT_STARTED:
                began.append(start)
            elif pod.life == Life.ASSUMED:
                began.append(self._cluster.now)
        return min(began, default=None)

    def _may_go(self, pod: PodRecord) -> bool:
        nominations = self._cluster.nominations
        is_going = pod.deleting or pod.uid in nominations.going
        return not is_going and not nominations.is_refused(pod.uid, self._cluster.now)


def _reverse_age(head: tuple[_Job, int]) -> tuple[int, int, _Reversed]:
    job, at = head
    priority, fill, place = job.find_rank(at)
    return priority, fill, _Reversed(place)


class _Reversed:
    """Compares the other way round."""

    def __init__(self, place: tuple[str, str]) -> None:
        self._place = place

    def __lt__(self, other: _Reversed) -> bool:
        return other._place < self._place


def _list_parts(job: _Job) -> tuple[Unit, ...]:
    return job.extras if job.core is None else (*job.extras, job.core)


def _order(lines: Mapping[str, _Line], accounts: Accounts) -> Iterator[Unit]:
    """Yield the parts of jobs, by queue: of the queues the one that comes last first, level by level."""
    gone: dict[str, Vector] = {}

    def comes_last(one: tuple[Queue, Vector], other: tuple[Queue, Vector]) -> bool:
        victims = other[1], one[1]
        return comes_before(other[0], one[0], (NOTHING, NOTHING), accounts.total, victims)

    def find_gone(name: str, job: _Job, at: int) -> Vector:
        return add(gone.get(name, NOTHING), _sum_held(_list_parts(job)[at:], accounts))

    next_of = {name: head for name, line in lines.items() if (head := line.find_head())}
    heads = {name: find_gone(name, *head) for name, head in next_of.items()}
    while (name := pick(accounts.tree.queues, heads, comes_last)) is not None:
        unit = lines[name].pop(*next_of[name])
        gone[name] = add(gone.get(name, NOTHING), _sum_held([unit], accounts))
        following = lines[name].find_head()
        if following is None:
            del heads[name], next_of[name]
        else:
            next_of[name], heads[name] = following, find_gone(name, *following)
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
