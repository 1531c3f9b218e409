"""Events and conditions: what people and autoscalers read, written behind the binds.

A bounded queue: when the API server is slow, binds go first and the oldest reports are dropped (and
counted), because a late event helps nobody. A text is written once, not every cycle.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import structlog

from scheduler.errors import ApiError
from scheduler.kube import client, wall_clock
from scheduler.kube.client import ApiClient
from scheduler.state.pods import PodRecord

_NOTE_MAX = 1024
_YIELD_SECONDS = 0.02
_QUIET_POLL_SECONDS = 0.005
# About half a minute: an API server that restarts must not cost anyone the reason why a pod waits.
_ATTEMPTS = 8
_FORBIDDEN, _NOT_FOUND = 403, 404
_log = structlog.get_logger("evenkeel.reporter")


@dataclass(frozen=True, slots=True)
class _Report:
    method: str
    path: str
    body: bytes
    content_type: str = client.JSON
    uid: str = ""
    text: str = ""
    # Not written any more once something newer is said of the object: conditions are, events are not.
    expires: bool = False


class Reporter:
    """Writes events and conditions in the background.

    Attributes:
        dropped: reports given up because the queue was full.
    """

    def __init__(
        self,
        api: ApiClient,
        *,
        controller: str,
        instance: str,
        is_binding: Callable[[], bool],
        capacity: int = 20_000,
        workers: int = 4,
    ) -> None:
        self._api = api
        self._controller, self._instance = controller, instance
        self._queue: deque[_Report] = deque()
        self._is_binding = is_binding
        self._capacity, self._workers = capacity, workers
        self._wake = asyncio.Event()
        self._serial = itertools.count(int(wall_clock.now().timestamp() * 1e6))
        self._said: dict[str, str] = {}
        self._writing: set[str] = set()
        self._working = 0
        self.dropped = 0

    def scheduled(self, pod: PodRecord, node: str) -> None:
        """The pod is bound."""
        self._said.pop(pod.uid, None)
        self._pod_event(
            pod, "Normal", "Scheduled", "Binding", f"Successfully assigned {pod.key} to {node}"
        )

    def unschedulable(self, pod: PodRecord, message: str, *, reason: str = "Unschedulable") -> None:
        """The pod stays pending; event and condition, when the text is new."""
        if self._said.get(pod.uid) == message:
            return
        self._said[pod.uid] = message
        self._pod_event(pod, "Warning", "FailedScheduling", "Scheduling", message)
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
            "lastProbeTime": None,
            "lastTransitionTime": _now(micro=False),
        }
        self._put(
            _Report(
                "PATCH",
                f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status",
                msgspec.json.encode(
                    {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}
                ),
                client.STRATEGIC_PATCH,
                pod.uid,
                message,
                expires=True,
            )
        )

    def forget(self, uid: str) -> None:
        """The object is gone: its last text need not be remembered."""
        self._said.pop(uid, None)

    async def quiet(self, uid: str) -> None:
        """Wait until nothing is being written on the pod, and let nothing that waits be written.

        A condition that lands behind the pod's binding would say "unschedulable" of a pod that runs,
        and autoscalers would add a node for it.
        """
        self.forget(uid)
        while uid in self._writing:
            await asyncio.sleep(_QUIET_POLL_SECONDS)

    def malformed_pod(self, pod: PodRecord, problem: str) -> None:
        """What a bound pod holds cannot be read; said once for each text."""
        if self._said.get(pod.uid) != problem:
            self._said[pod.uid] = problem
            self._pod_event(pod, "Warning", "MalformedPod", "Scheduling", problem, said=problem)

    def malformed_node(self, name: str, uid: str, problem: str) -> None:
        """A node's annotations or status cannot be read; said once for each text."""
        if self._said.get(uid) == problem:
            return
        self._said[uid] = problem
        regarding = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
        note = f"left out by {self._controller}: {problem}"
        self._event(
            "default", name, regarding, "Warning", "MalformedNode", "Scheduling", note, said=problem
        )

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._work(yields=number > 0))

    async def drain(self, seconds: float) -> None:
        """Wait until all is written, or the time is up."""
        deadline = asyncio.get_running_loop().time() + seconds
        while (self._queue or self._working) and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.01)

    def _pod_event(
        self, pod: PodRecord, kind: str, reason: str, action: str, note: str, *, said: str = ""
    ) -> None:
        regarding = {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": pod.namespace,
            "name": pod.name,
            "uid": pod.uid,
        }
        self._event(pod.namespace, pod.name, regarding, kind, reason, action, note, said=said)

    def _event(
        self,
        namespace: str,
        name: str,
        regarding: dict[str, str],
        kind: str,
        reason: str,
        action: str,
        note: str,
        *,
        said: str = "",
    ) -> None:
        if len(note.encode()) > _NOTE_MAX:
            note = note.encode()[: _NOTE_MAX - 4].decode(errors="ignore") + " ..."
        body: dict[str, Any] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            # A pod's name may be as long as an event's, and the serial needs room.
            "metadata": {
                "name": f"{name[:230].rstrip('-.')}.{next(self._serial):x}",
                "namespace": namespace,
            },
            "eventTime": _now(micro=True),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": action,
            "reason": reason,
            "regarding": regarding,
            "note": note,
            "type": kind,
        }
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        uid = regarding["uid"] if said else ""
        self._put(_Report("POST", path, msgspec.json.encode(body), uid=uid, text=said))

    def _drop(self, report: _Report) -> None:
        """Give a report up; what it said may be said again."""
        self.dropped += 1
        if self._said.get(report.uid) == report.text:
            del self._said[report.uid]

    def _put(self, report: _Report) -> None:
        if len(self._queue) >= self._capacity:
            self._drop(self._queue.popleft())
        self._queue.append(report)
        self._wake.set()

    async def _work(self, *, yields: bool) -> None:
        while True:
            if not self._queue:
                self._wake.clear()
                await self._wake.wait()
                continue
            # While binds wait, one worker is enough, unless reports would be dropped.
            if yields and self._is_binding() and len(self._queue) < self._capacity // 2:
                await asyncio.sleep(_YIELD_SECONDS)
                continue
            report = self._queue.popleft()
            self._working += 1
            try:
                await self._write(report)
            finally:
                self._working -= 1

    async def _write(self, report: _Report) -> None:
        for attempt in range(_ATTEMPTS):
            while report.expires and report.uid in self._writing:
                # Conditions of one pod land in the order in which they were said.
                await asyncio.sleep(_QUIET_POLL_SECONDS)
            if report.expires and self._said.get(report.uid) != report.text:
                # The pod was placed, or told something newer, while this waited.
                return
            try:
                await self._send(report)
            except ApiError as error:
                # An API server that has just started refuses everyone until it has read its roles.
                retry = client.is_transient(error) or error.status == _FORBIDDEN
                if retry and attempt + 1 < _ATTEMPTS:
                    await asyncio.sleep(client.backoff(attempt, first=0.5))
                    continue
                if error.status != _NOT_FOUND:
                    self._drop(report)
                    _log.warning("report not written", path=report.path, error=str(error))
            return

    async def _send(self, report: _Report) -> None:
        if report.expires:
            self._writing.add(report.uid)
        try:
            await self._api.request(
                report.method, report.path, body=report.body, content_type=report.content_type
            )
        finally:
            if report.expires:
                self._writing.discard(report.uid)


def _now(*, micro: bool) -> str:
    shape = "%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ"
    return wall_clock.now().strftime(shape)
