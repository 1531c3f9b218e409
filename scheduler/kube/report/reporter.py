"""Events and conditions: what people and autoscalers read of a pod or a node.

A text is said once, not every cycle. Why a pod waits has figures in it that differ after almost every bind: new
reasons are said at once, new figures only when the pod has been told nothing else for a minute, and to few pods
a second. One node that comes or goes can give all that wait new reasons: then so many pods a second are told them.
How what is said gets to the API server is told in ``outbox``.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from scheduler.api import kinds
from scheduler.api.kinds import Kind
from scheduler.api.limits import shorten
from scheduler.kube import client, pod_status, wall_clock
from scheduler.kube.client import ApiClient
from scheduler.kube.report.outbox import Lane, Outbox, Report
from scheduler.state.nodes import NodeFacts
from scheduler.state.pods import PodRecord
from scheduler.telling.departures import Departure
from scheduler.telling.sayings import NOTE_MAX, Saying

_CONDITION = "condition"
# How long a text stands while only its figures change, and how many such texts are said at once, each second.
_STANDS_SECONDS, _LATER_SECONDS, _LATER_MOST = 60.0, 1.0, 10
# To how many pods that have been told something new reasons are said each second.
_ANEW_MOST = 100


@dataclass(slots=True)
class _Said:
    """What was said last of an object.

    Attributes:
        about: what it was about, apart from its figures.
        at: when, in seconds of the loop.
        later: what to say once the text has stood for long enough, if it differs in figures only, or once it is the
            pod's turn.
    """

    text: str
    about: Hashable
    at: float
    later: Callable[[], None] | None = None


class Reporter:
    """Says what is new, through an outbox.

    Args:
        api: the API server.
        controller, instance: who says it; of a pod of ours, its own scheduler name does.
        is_binding: whether binds wait to be written.
        version_of: the last known resourceVersion of a pod, empty when it is not known.
        still_waits: whether a pod still waits for a change, and nobody else decides for it.
    """

    def __init__(
        self,
        api: ApiClient,
        *,
        controller: str,
        instance: str,
        is_binding: Callable[[], bool],
        version_of: Callable[[str], str],
        still_waits: Callable[[str], bool],
    ) -> None:
        self._controller, self._instance = controller, instance
        self._version_of, self._still_waits = version_of, still_waits
        self._outbox = Outbox(api, is_binding=is_binding)
        self._serial = itertools.count(int(wall_clock.now().timestamp() * 1e6))
        self._said: dict[str, _Said] = {}
        # When to look whether new figures are to be said of a pod; each is in it once at most.
        self._later: list[tuple[float, str]] = []
        self._queued: set[str] = set()
        # Pods that have new reasons, and how many of these may be said before the next look.
        self._anew: dict[str, None] = {}
        self._anew_left = _ANEW_MOST

    @property
    def dropped(self) -> int:
        """Reports given up."""
        return self._outbox.dropped

    @property
    def waiting(self) -> int:
        """Reports not written yet."""
        return len(self._outbox)

    def scheduled(self, pod: PodRecord, note: str) -> None:
        """The pod is bound."""
        self._said.pop(pod.uid, None)
        self._pod_event(pod, "Normal", "Scheduled", "Binding", note)

    def departed(self, pod: PodRecord, words: Departure, note: str) -> None:
        """The pod is sent away, and this is noted."""
        self._pod_event(pod, "Normal", words.event, words.action, note)

    def unschedulable(self, pod: PodRecord, saying: Saying) -> None:
        """The pod stays pending; event and condition, when the text is new."""
        said = self._said.get(pod.uid)
        if said is None:
            self._say_why(pod, saying)
            return
        if said.text == saying.message:
            said.later = None
            return
        said.later = partial(self._say_why, pod, saying)
        if said.about == saying.about:
            # Also when the text has stood for long: one change can give all that wait new figures at once.
            self._anew.pop(pod.uid, None)
            self._look_later(pod.uid, said)
        elif self._anew_left and not self._anew:
            self._anew_left -= 1
            said.later()
        else:
            self._anew[pod.uid] = None

    def _look_later(self, uid: str, said: _Said) -> None:
        """When the text has stood for long enough."""
        if uid not in self._queued:
            self._queued.add(uid)
            heapq.heappush(self._later, (said.at + _STANDS_SECONDS, uid))

    def _say_why(self, pod: PodRecord, saying: Saying) -> None:
        now = asyncio.get_running_loop().time()
        self._said[pod.uid] = _Said(saying.message, saying.about, now)
        self._pod_event(pod, "Warning", "FailedScheduling", "Scheduling", saying.note)
        condition = {
            "type": "PodScheduled",
            "observedGeneration": pod.generation,
            "status": "False",
            "reason": saying.reason,
            "message": saying.message,
            "lastProbeTime": None,
            "lastTransitionTime": _now(micro=False),
        }
        self._outbox.put(
            Report(
                (pod.uid, _CONDITION),
                Lane.CONDITION,
                "PATCH",
                f"{pod_status.path(pod)}/status",
                partial(self._condition_body, pod.uid, condition),
                client.STRATEGIC_PATCH,
                given_up=partial(self._unsay, pod.uid, saying.message),
            )
        )

    def _condition_body(self, uid: str, condition: dict[str, Any]) -> bytes:
        """With the pod's version: a condition that is delivered late must not land behind a binding."""
        metadata = {"uid": uid}
        if version := self._version_of(uid):
            metadata["resourceVersion"] = version
        return msgspec.json.encode({"metadata": metadata, "status": {"conditions": [condition]}})

    def forget(self, uid: str) -> None:
        """The object is gone: its last text need not be remembered."""
        self._said.pop(uid, None)
        self._outbox.forget((uid, _CONDITION))

    async def quiet(self, uid: str) -> None:
        """Wait until nothing is being written on the pod, and let nothing that waits be written.

        A condition that lands behind the pod's binding would say "unschedulable" of a pod that runs,
        and autoscalers would add a node for it.
        """
        self._said.pop(uid, None)
        await self._outbox.quiet((uid, _CONDITION))

    def malformed_pod(self, pod: PodRecord, node: NodeFacts | None, problem: str) -> None:
        """What a bound pod holds cannot be read; said once for each text, on the pod and on its node."""
        if not self._is_new(pod.uid, problem):
            return
        self._pod_event(pod, "Warning", "MalformedPod", "Scheduling", problem, said=problem)
        if node is not None:
            self.on_node(node, "MalformedPod", f"pod {pod.key}: {problem}", about=pod.uid)

    def malformed_node(self, node: NodeFacts) -> None:
        """A node's annotations or status cannot be read; said once for each text."""
        problem = str(node.problem)
        if self._is_new(node.uid, problem):
            note = f"left out by {self._controller}: {problem}"
            self.on_node(node, "MalformedNode", note, said=problem)

    def on_node(
        self, node: NodeFacts, reason: str, note: str, *, about: str = "", said: str = ""
    ) -> None:
        """A warning on a node's own page; one waits for each of ``about``."""
        regarding = {**_kind(kinds.NODES), "name": node.name, "uid": node.uid}
        self._event(
            self._controller, regarding, ("Warning", reason, "Scheduling", note), about, said
        )

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._outbox.run())
            group.create_task(self._say_later())

    async def _say_later(self) -> None:
        while True:
            await asyncio.sleep(_LATER_SECONDS)
            self.catch_up()

    def catch_up(self) -> None:
        """Say new reasons of the pods that have had them for longest, and new figures of texts that stood for longest."""
        self._anew_left = _ANEW_MOST
        while self._anew_left and self._anew:
            uid = next(iter(self._anew))
            del self._anew[uid]
            self._anew_left -= self._catches_up(uid)
        now, left = asyncio.get_running_loop().time(), _LATER_MOST
        while left and self._later and self._later[0][0] <= now:
            _, uid = heapq.heappop(self._later)
            self._queued.discard(uid)
            said = self._said.get(uid)
            if said is not None and said.later is not None and now < said.at + _STANDS_SECONDS:
                self._look_later(uid, said)
            elif uid not in self._anew:
                left -= self._catches_up(uid)

    def _catches_up(self, uid: str) -> bool:
        """Say what is to be said of a pod, if it still waits; whether it was."""
        said = self._said.get(uid)
        if said is None or said.later is None or not self._still_waits(uid):
            return False
        said.later()
        return True

    async def drain(self, seconds: float) -> None:
        """Wait until all is written, or the time is up."""
        await self._outbox.drain(seconds)

    def _pod_event(
        self, pod: PodRecord, kind: str, reason: str, action: str, note: str, *, said: str = ""
    ) -> None:
        regarding = {
            **_kind(kinds.PODS),
            "namespace": pod.namespace,
            "name": pod.name,
            "uid": pod.uid,
        }
        self._event(
            pod.profile or self._controller, regarding, (kind, reason, action, note), "", said
        )

    def _event(
        self,
        controller: str,
        regarding: dict[str, str],
        words: tuple[str, str, str, str],
        about: str,
        said: str,
    ) -> None:
        """``words``: type, reason, action and note; ``about`` tells events of one reason apart."""
        kind, reason, action, note = words
        name, namespace = regarding["name"], regarding.get("namespace", "default")
        note = shorten(note, NOTE_MAX)
        body: dict[str, Any] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            # A pod's name may be as long as an event's, and the serial needs room.
            "metadata": {
                "name": f"{name[:230].rstrip('-.')}.{next(self._serial):x}",
                "namespace": namespace,
            },
            "eventTime": _now(micro=True),
            "reportingController": controller,
            "reportingInstance": self._instance,
            "action": action,
            "reason": reason,
            "regarding": regarding,
            "note": note,
            "type": kind,
        }
        uid = regarding["uid"]
        is_why = reason == "FailedScheduling"
        self._outbox.put(
            Report(
                (uid, "why" if is_why else f"{reason} {about}"),
                Lane.WHY if is_why else Lane.NEWS,
                "POST",
                kinds.EVENTS.find_list_path(namespace),
                partial(msgspec.json.encode, body),
                given_up=partial(self._unsay, uid, said) if said else lambda: None,
            )
        )

    def _is_new(self, uid: str, text: str) -> bool:
        """Whether a text was not the last that was said of an object; from now on it was."""
        said = self._said.get(uid)
        if said is not None and said.text == text:
            return False
        self._said[uid] = _Said(text, text, asyncio.get_running_loop().time())
        return True

    def _unsay(self, uid: str, text: str) -> None:
        """What was given up may be said again."""
        said = self._said.get(uid)
        if said is not None and said.text == text:
            del self._said[uid]


def _now(*, micro: bool) -> str:
    said = wall_clock.now().isoformat(timespec="microseconds" if micro else "seconds")
    return f"{said.removesuffix('+00:00')}Z"


def _kind(kind: Kind) -> dict[str, str]:
    return {"apiVersion": kind.api_version, "kind": kind.name}
