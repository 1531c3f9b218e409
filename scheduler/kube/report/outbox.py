"""Reports, which are events and conditions: written after what is urgent, and tried until they are written.

There is one report of a kind for each object: a newer one replaces one that still waits, so no pod has more than a
few. The oldest are written first, in three lanes that take turns: conditions, on which autoscalers depend; news, such
as that a pod was bound; and why pods wait, of which there can be as many as there are pods. The first and the last lane
share a bounded part of the API server's time: other requests matter more, and each such write comes back as a change of
a pod. A write that fails is tried again until it is an hour old.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

import structlog

from scheduler.errors import ApiError
from scheduler.kube import answers, client
from scheduler.kube.client import ApiClient

_WORKERS = 4
# Binds, quota and starts of jobs go first: while some wait, one worker is enough, unless this many reports wait too. After
# each write it rests for as long as the write took, but no longer than this.
_CROWDED = 10_000
_REST_MOST_SECONDS = 0.1
_YIELD_SECONDS = 0.02
_QUIET_POLL_SECONDS = 0.005
# A write that is answered sooner than this costs the API server little; only the number of workers bounds such
# writes. The time beyond this that slower writes of the bounded lanes take is bounded: so much in each second, and
# so much at once. A pod of a megabyte keeps the API server busy for a tenth of a second.
_QUICK_SECONDS = 0.025
_SHARE, _BURST = 0.5, 0.5
# The most seconds that are owed: else reports would stop for minutes if every answer takes many seconds.
_DEBT = 5.0
_POLL_SECONDS = 0.01
_BACKOFF_MOST_SECONDS = 30.0
_GIVE_UP_SECONDS = 3600.0
# How often a report is sent that the API server finds wrong: a proxy before it may have answered.
_WRONG_MAX = 8
# The most reports of why pods wait. Beyond that, the oldest are given up: a later one is as good.
_WHY_MAX = 50_000
_log = structlog.get_logger("evenkeel.reporter")

Key = tuple[str, str]


class Lane(IntEnum):
    """The lanes of reports, in the order in which they take turns."""

    CONDITION = 0
    NEWS = 1
    WHY = 2


@dataclass(slots=True, eq=False)
class Report:
    """One write.

    Attributes:
        key: uid of the object and what the report is about; a newer report of the same key replaces this one.
        make_body: makes the body, right before it is sent.
        on_given_up: called once if the report is given up.
        since: the loop time at which the report was put.
        attempts, n_wrong: how often it was not written, and how often the API server found it wrong.
    """

    key: Key
    lane: Lane
    method: str
    path: str
    make_body: Callable[[], bytes]
    content_type: str = client.JSON
    on_given_up: Callable[[], None] = lambda: None
    since: float = 0.0
    attempts: int = 0
    n_wrong: int = 0


class Outbox:
    """Writes reports in the background.

    Args:
        api: the API server.
        has_urgent: whether something waits that is to be written before reports.

    Attributes:
        n_dropped: number of reports that were given up.
    """

    def __init__(self, api: ApiClient, *, has_urgent: Callable[[], bool]) -> None:
        self._api, self._has_urgent = api, has_urgent
        self._lanes: dict[Lane, OrderedDict[Key, Report]] = {lane: OrderedDict() for lane in Lane}
        # Reports that failed, by when they are tried again; they are stale once another report of their key waits.
        self._later: list[tuple[float, int, Report]] = []
        self._failed: dict[Key, Report] = {}
        self._serial = itertools.count()
        self._turns = itertools.cycle(Lane)
        self._writing: set[Key] = set()
        # Keys that were forgotten while their report was being written: if that fails, it is not written again.
        self._forgotten: set[Key] = set()
        self._working = 0
        # Seconds that requests of the bounded lanes may still take; below 0 after one that took long.
        self._allowance, self._refilled_at = _BURST, 0.0
        self._wake = asyncio.Event()
        self.n_dropped = 0

    def __len__(self) -> int:
        return sum(map(len, self._lanes.values())) + len(self._failed)

    def put(self, report: Report) -> None:
        """Write a report when its turn comes; it replaces one of the same key that still waits."""
        report.since = asyncio.get_running_loop().time()
        self._failed.pop(report.key, None)
        lane = self._lanes[report.lane]
        if report.lane == Lane.NEWS:
            # Why a pod waited is written before the news that the pod waits no more.
            why = self._lanes[Lane.WHY].pop((report.key[0], "why"), None)
            if why is not None:
                why.lane = Lane.NEWS
                lane[why.key] = why
        # An older one keeps its place: the oldest are written first.
        lane[report.key] = report
        if len(self._lanes[Lane.WHY]) > _WHY_MAX:
            self._give_up_report(self._lanes[Lane.WHY].popitem(last=False)[1])
        self._wake.set()

    def forget_key(self, key: Key) -> None:
        """Write no report of a key that still waits."""
        self._failed.pop(key, None)
        if key in self._writing:
            self._forgotten.add(key)
        for lane in self._lanes.values():
            lane.pop(key, None)

    async def quiet_key(self, key: Key) -> None:
        """Forget a key, and wait until no report of this key is being written."""
        self.forget_key(key)
        while key in self._writing:
            await asyncio.sleep(_QUIET_POLL_SECONDS)

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(_WORKERS):
                group.create_task(self._work(is_yielding=number > 0))

    async def drain(self, seconds: float) -> None:
        """Wait until all is written, or the time is up."""
        deadline = asyncio.get_running_loop().time() + seconds
        while (len(self) or self._working) and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.01)

    async def _work(self, *, is_yielding: bool) -> None:
        while True:
            is_urgent = self._has_urgent() and len(self) < _CROWDED
            if is_urgent and is_yielding:
                await asyncio.sleep(_YIELD_SECONDS)
                continue
            report = self._take_next()
            if report is None:
                await self._wait_for_work()
                continue
            began = asyncio.get_running_loop().time()
            self._working += 1
            self._writing.add(report.key)
            try:
                await self._write_report(report)
            finally:
                self._writing.discard(report.key)
                self._forgotten.discard(report.key)
                self._working -= 1
            if is_urgent:
                took = asyncio.get_running_loop().time() - began
                await asyncio.sleep(min(took, _REST_MOST_SECONDS))

    def _take_next(self) -> Report | None:
        """Take the oldest report of the lane whose turn it is, if the bound allows it; None if there is none."""
        now = asyncio.get_running_loop().time()
        while self._later and self._later[0][0] <= now:
            _, _, report = heapq.heappop(self._later)
            if self._failed.get(report.key) is report:
                del self._failed[report.key]
                self._lanes[report.lane].setdefault(report.key, report)
        self._allowance = min(_BURST, self._allowance + (now - self._refilled_at) * _SHARE)
        self._refilled_at = now
        for lane in itertools.islice(self._turns, len(Lane)):
            if lane != Lane.NEWS and self._allowance <= 0.0:
                continue
            for key, report in self._lanes[lane].items():
                # Reports about one object land in their order.
                if key not in self._writing:
                    del self._lanes[lane][key]
                    return report
        return None

    async def _wait_for_work(self) -> None:
        """Wait until there may be something to write."""
        self._wake.clear()
        waits = [1.0]
        if any(self._lanes.values()):
            waits.append(_POLL_SECONDS)
        if self._later:
            waits.append(max(0.0, self._later[0][0] - asyncio.get_running_loop().time()))
        alarm = asyncio.get_running_loop().call_later(min(waits), self._wake.set)
        try:
            await self._wake.wait()
        finally:
            alarm.cancel()

    async def _write_report(self, report: Report) -> None:
        began = asyncio.get_running_loop().time()
        try:
            await self._api.request(
                report.method,
                report.path,
                body=report.make_body(),
                content_type=report.content_type,
            )
        except ApiError as error:
            self._note_failure(report, error)
        finally:
            if report.lane != Lane.NEWS:
                took = asyncio.get_running_loop().time() - began
                self._allowance = max(-_DEBT, self._allowance - max(0.0, took - _QUICK_SECONDS))

    def _note_failure(self, report: Report, error: ApiError) -> None:
        # The object is going, or an earlier try took effect and its answer was lost.
        is_over = "being terminated" in error.message or answers.is_there_already(error)
        if is_over or report.key in self._forgotten:
            return
        now = asyncio.get_running_loop().time()
        # An API server that has just started refuses all until it has read its roles; a conflict says that the object
        # has changed, and the watch will deliver the change.
        may_pass = answers.is_transient(error) or answers.is_forbidden(error)
        may_pass = may_pass or answers.is_conflict(error)
        report.n_wrong += not may_pass
        may_retry = may_pass or report.n_wrong < _WRONG_MAX
        if not may_retry and answers.is_not_found(error):
            # Its object is gone, or its namespace.
            return
        if not may_retry or now - report.since >= _GIVE_UP_SECONDS:
            _log.warning("report not written", path=report.path, error=str(error))
            self._give_up_report(report)
            return
        if any(report.key in lane for lane in self._lanes.values()):
            # A newer report has taken its place.
            return
        wait = client.get_backoff(report.attempts, first=0.5, most=_BACKOFF_MOST_SECONDS)
        report.attempts += 1
        self._failed[report.key] = report
        heapq.heappush(self._later, (now + wait, next(self._serial), report))

    def _give_up_report(self, report: Report) -> None:
        self.n_dropped += 1
        report.on_given_up()
