"""Evicts pods, and writes the nominations of pods for which others go.

The last victim goes after all others: when it goes, the pod that waits may be tried again, and no other pod should
still have to go for it. Those that the API server refused to let go before are tried first, one by one. A victim whose
bind has not begun is taken back without a request to the API server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

import structlog

from scheduler.api.door.events import EvictDone, EvictFailed
from scheduler.errors import ApiError
from scheduler.kube import answers, pod_status
from scheduler.kube.client import ApiClient
from scheduler.kube.evict import requests
from scheduler.state.pods import PodRecord
from scheduler.telling.departures import Departure

_log = structlog.get_logger("evenkeel.evictor")
# The most evictions at once, victims of one of them at once, and nominations at once.
_WORKERS, _AT_ONCE, _WRITERS = 16, 8, 8
# So many refused victims are remembered.
_REFUSED_MAX = 10_000
_SPARED = "another pod that was to go with it stays"


class EvictPermit(NamedTuple):
    """What the evictor calls right before a write.

    Attributes:
        get_term: gives the present term of leadership, 0 when this replica does not lead.
        withdraw_bind: takes a bind back that has not begun; returns whether there was one.
    """

    get_term: Callable[[], int]
    withdraw_bind: Callable[[str, str], bool]


class Eviction(NamedTuple):
    """Pods that are evicted together, the words for it, and the term in which it was decided.

    ``stopped`` is set when one of them stays: then those are spared that have not been evicted yet.
    """

    victims: tuple[PodRecord, ...]
    words: Departure
    term: int
    stopped: asyncio.Event


class Nomination(NamedTuple):
    """A pod, the node to which it is nominated, if any, and the term in which it was decided."""

    pod: PodRecord
    node: str
    term: int


class Evictor:
    """Carries evictions and nominations out; reports what becomes of each victim.

    Args:
        api: the API server.
        permit: what the evictor calls right before a write.
        report: takes EvictDone and EvictFailed.
        report_departure: writes for people that a pod was evicted; takes the pod, the words and a note.
    """

    def __init__(
        self,
        api: ApiClient,
        permit: EvictPermit,
        report: Callable[[EvictDone | EvictFailed], None],
        report_departure: Callable[[PodRecord, Departure, str], None],
    ) -> None:
        self._api, self._permit, self._report = api, permit, report
        self._report_departure = report_departure
        self._evictions: asyncio.Queue[Eviction] = asyncio.Queue()
        # A pod's nominations are written by one writer, in their order.
        self._nominations: list[asyncio.Queue[Nomination]] = [
            asyncio.Queue() for _ in range(_WRITERS)
        ]
        # Victims whose eviction is under way, for any pod: none is evicted twice.
        self._going: set[str] = set()
        # Victims that the API server did not let go the last time; some may be gone.
        self._refused: dict[str, None] = {}

    def evict(self, victims: Sequence[PodRecord], words: Departure) -> None:
        """Queue an eviction. Victims that are being deleted, or evicted for another pod, are left alone."""
        fresh = tuple(one for one in victims if not one.deleting and one.uid not in self._going)
        self._going.update(one.uid for one in fresh)
        if fresh:
            self._evictions.put_nowait(
                Eviction(fresh, words, self._permit.get_term(), asyncio.Event())
            )

    def nominate(self, pod: PodRecord, node: str) -> None:
        """Queue a nomination; an empty node withdraws one."""
        writer = sum(pod.uid.encode()) % _WRITERS
        self._nominations[writer].put_nowait(Nomination(pod, node, self._permit.get_term()))

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for jobs in self._nominations:
                group.create_task(self._nominate_all(jobs))
            for _ in range(_WORKERS):
                group.create_task(self._evict_all())

    async def _evict_all(self) -> None:
        while True:
            job = await self._evictions.get()
            refused = [one for one in job.victims if one.uid in self._refused]
            *first, last = (*refused, *(one for one in job.victims if one.uid not in self._refused))
            gate = asyncio.Semaphore(1 if refused else _AT_ONCE)
            are_going = await asyncio.gather(*(self._evict_victim(job, one, gate) for one in first))
            if all(are_going):
                await self._evict_victim(job, last, gate)
            else:
                # The pod is to be tried again soon, and may not need this one to go.
                self._end_victim(last, _SPARED)

    async def _evict_victim(
        self, job: Eviction, victim: PodRecord, gate: asyncio.Semaphore
    ) -> bool:
        """Evict a victim; return whether it goes."""
        words = job.words
        if self._permit.withdraw_bind(victim.uid, words.why):
            self._report_departure(victim, words, f"{words.note} (in kube-scheduler memory).")
            self._end_victim(victim, "")
            return True
        async with gate:
            try:
                if job.stopped.is_set():
                    self._end_victim(victim, _SPARED)
                    return False
                end = requests.evict_pod if words.is_asked else requests.delete_pod
                for write in (requests.write_condition, end):
                    if not self._may_write(job.term):
                        self._end_victim(victim, "no longer the leader")
                        return False
                    await write(self._api, victim, words)
            except ApiError as error:
                # A conflict may be about another pod of the same name, or about words that were written at the same
                # time: the engine tries again, and the watch reports a pod that is gone by itself.
                if not answers.is_not_found(error):
                    _log.warning("a pod was not evicted", pod=victim.key, error=str(error))
                    job.stopped.set()
                    is_refused = words.is_asked and answers.is_eviction_refused(error)
                    if is_refused:
                        self._note_refused(victim.uid)
                    self._end_victim(victim, str(error), is_refused=is_refused)
                    return False
                # It is gone by itself.
                self._end_victim(victim, "")
                return True
        self._refused.pop(victim.uid, None)
        self._report_departure(victim, words, words.note)
        self._end_victim(victim, "")
        return True

    def _note_refused(self, uid: str) -> None:
        self._refused[uid] = None
        if len(self._refused) > _REFUSED_MAX:
            del self._refused[next(iter(self._refused))]

    def _end_victim(self, victim: PodRecord, trouble: str, *, is_refused: bool = False) -> None:
        self._going.discard(victim.uid)
        uid = victim.uid
        self._report(EvictFailed(uid, trouble, is_refused) if trouble else EvictDone(uid))

    async def _nominate_all(self, jobs: asyncio.Queue[Nomination]) -> None:
        while True:
            job = await jobs.get()
            if not self._may_write(job.term):
                continue
            try:
                await pod_status.write_nomination(self._api, job.pod, job.node)
            except ApiError as error:
                # A pod whose victims have gone is bound at once, perhaps before its nomination is written.
                if not (
                    answers.is_not_found(error)
                    or answers.is_conflict(error)
                    or answers.is_bound_already(error)
                ):
                    _log.warning("a nomination was not written", pod=job.pod.key, error=str(error))

    def _may_write(self, term: int) -> bool:
        return term != 0 and term == self._permit.get_term()
