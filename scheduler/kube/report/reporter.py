"""Events and conditions: what people and autoscalers read about a pod or a node.

A text is written once, not in every cycle. The text that says why a pod waits has figures that differ after almost
every bind. New reasons are written at once; new figures are written only when nothing else was written about the pod
for a minute, and for few pods a second. One node that comes or goes can give all waiting pods new reasons: then the
reasons are written for a bounded number of pods a second. ``outbox`` sends the texts to the API server.
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

from scheduler.api import kinds, wire
from scheduler.api.kind import Kind
from scheduler.api.limits import shorten
from scheduler.engine.questions.waiting import GroupFacts
from scheduler.kube import client, pod_status, wall_clock
from scheduler.kube.client import ApiClient
from scheduler.kube.report.outbox import Lane, Outbox, Report
from scheduler.state.nodes import NodeFacts
from scheduler.state.pods import PodRecord
from scheduler.telling.departures import Departure
from scheduler.telling.sayings import NOTE_MAX, Saying

_CONDITION, _WHY = "condition", "why"
# How long a text stands while only its figures change, how often such texts are looked at, and how many of them are
# written each time.
_STANDS_SECONDS, _LATER_SECONDS, _LATER_MOST = 60.0, 1.0, 10
# For how many pods with an older text new reasons are written each second.
_ANEW_MOST = 100


@dataclass(slots=True)
class _LastText:
    """The text that was written last about an object.

    Attributes:
        text: the text.
        about: what the text is about, apart from its figures.
        at: when it was written, by the loop's time.
        later: writes a newer text: if only its figures are new, once the present text has stood for long enough; else
            once it is the pod's turn.
    """

    text: str
    about: Hashable
    at: float
    later: Callable[[], None] | None = None


class Reporter:
    """Writes what is new, through an outbox.

    Args:
        api: the API server.
        controller, instance: the author of events; for a pod of ours, the controller is the pod's scheduler name.
        has_urgent: whether something waits that is to be written before reports.
        get_version: gives the last known resourceVersion of a pod, empty if it is not known.
        is_still_waiting: whether a pod still waits for a change, and this replica decides for it.
    """

    def __init__(
        self,
        api: ApiClient,
        *,
        controller: str,
        instance: str,
        has_urgent: Callable[[], bool],
        get_version: Callable[[str], str],
        is_still_waiting: Callable[[str], bool],
    ) -> None:
        self._controller, self._instance = controller, instance
        self._get_version, self._is_still_waiting = get_version, is_still_waiting
        self._outbox = Outbox(api, has_urgent=has_urgent)
        self._serial = itertools.count(int(wall_clock.now().timestamp() * 1e6))
        self._last_texts: dict[str, _LastText] = {}
        # When to look whether new figures are to be written for a pod; each pod is in it at most once.
        self._later: list[tuple[float, str]] = []
        self._queued: set[str] = set()
        # Pods that have new reasons, and how many of them may be written before the next look.
        self._anew: dict[str, None] = {}
        self._anew_left = _ANEW_MOST

    @property
    def n_dropped(self) -> int:
        """Number of reports that were given up."""
        return self._outbox.n_dropped

    @property
    def n_waiting(self) -> int:
        """Number of reports that are not written yet."""
        return len(self._outbox)

    def report_scheduled(self, pod: PodRecord, note: str) -> None:
        """Report that a pod is bound."""
        self._last_texts.pop(pod.uid, None)
        self._put_pod_event(pod, "Normal", "Scheduled", "Binding", note)

    def report_departure(self, pod: PodRecord, words: Departure, note: str) -> None:
        """Report that a pod is evicted, with a note."""
        self._put_pod_event(pod, "Normal", words.event, words.action, note)

    def report_on_pod(self, pod: PodRecord, kind: str, reason: str, note: str) -> None:
        """Report an event on a pod: its type, its reason and its note."""
        self._put_pod_event(pod, kind, reason, reason, note)

    def report_unschedulable(
        self, pod: PodRecord, saying: Saying, *, with_event: bool = True
    ) -> None:
        """Report why a pod stays pending, by an event and a condition, if the text is new."""
        last = self._last_texts.get(pod.uid)
        report = partial(self._report_why, pod, saying, with_event=with_event)
        if last is None:
            report()
            return
        if last.text == saying.message:
            last.later = None
            return
        last.later = report
        if last.about == saying.about:
            # Even if the text has stood for long: one change can give all waiting pods new figures at once.
            self._anew.pop(pod.uid, None)
            self._look_again_later(pod.uid, last)
        elif self._anew_left and not self._anew:
            self._anew_left -= 1
            last.later()
        else:
            self._anew[pod.uid] = None

    def _look_again_later(self, uid: str, last: _LastText) -> None:
        """Look at the pod again when its text has stood for long enough."""
        if uid not in self._queued:
            self._queued.add(uid)
            heapq.heappush(self._later, (last.at + _STANDS_SECONDS, uid))

    def report_waiting(self, pod: PodRecord, saying: Saying) -> None:
        """Report by an event alone what the group of a pod waits for, if the text is new."""
        if self._note_text(pod.uid, saying.message):
            self._put_pod_event(pod, "Warning", "FailedScheduling", "Scheduling", saying.note)

    def report_on_group(self, group: GroupFacts, saying: Saying, controller: str) -> None:
        """Report on the object of a group why it waits, if the text is new, apart from its figures."""
        last = self._last_texts.get(group.uid)
        if last is None or last.about != saying.about:
            now = asyncio.get_running_loop().time()
            self._last_texts[group.uid] = _LastText(saying.message, saying.about, now)
            kind = kinds.BY_NAME[group.kind]
            regarding = {**_name_kind(kind), "name": group.name, "uid": group.uid}
            regarding["namespace"] = group.namespace
            words = "Warning", "FailedScheduling", "Scheduling", saying.note
            self._put_event(controller or self._controller, regarding, words, "", "")

    def report_group_condition(self, group: GroupFacts, condition: dict[str, Any]) -> None:
        """Report a condition of the object of a group."""
        made = {**condition, "lastTransitionTime": _now(micro=False)}
        self._patch_group(group, {"conditions": [made]}, client.STRATEGIC_PATCH)

    def report_group_status(self, group: GroupFacts, status: dict[str, Any]) -> None:
        """Merge into the status of the object of a group; lists are replaced."""
        self._patch_group(group, status, client.MERGE_PATCH)

    def _patch_group(self, group: GroupFacts, status: dict[str, Any], patch: str) -> None:
        path = kinds.BY_NAME[group.kind].find_path(group.name, group.namespace)
        body = {"metadata": {"uid": group.uid}, "status": status}
        self._outbox.put(
            Report(
                (group.uid, _CONDITION),
                Lane.CONDITION,
                "PATCH",
                f"{path}/status",
                partial(msgspec.json.encode, body),
                patch,
            )
        )

    def _report_why(self, pod: PodRecord, saying: Saying, *, with_event: bool) -> None:
        now = asyncio.get_running_loop().time()
        self._last_texts[pod.uid] = _LastText(saying.message, saying.about, now)
        if with_event:
            self._put_pod_event(pod, "Warning", "FailedScheduling", "Scheduling", saying.note)
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
                f"{pod_status.get_path(pod)}/status",
                partial(self._make_condition_body, pod.uid, condition),
                client.STRATEGIC_PATCH,
                on_given_up=partial(self._forget_text, pod.uid, saying.message),
            )
        )

    def _make_condition_body(self, uid: str, condition: dict[str, Any]) -> bytes:
        """Return a body with the pod's version: a condition that is delivered late must not land after a binding."""
        metadata = {"uid": uid}
        if version := self._get_version(uid):
            metadata["resourceVersion"] = version
        return msgspec.json.encode({"metadata": metadata, "status": {"conditions": [condition]}})

    def forget_text(self, uid: str) -> None:
        """Forget which text was reported last about an object; what is to be written is written."""
        self._last_texts.pop(uid, None)

    def forget_object(self, uid: str) -> None:
        """Forget an object that is gone, or whose text no longer holds."""
        self._last_texts.pop(uid, None)
        self._outbox.forget_key((uid, _CONDITION))

    async def quiet_pod(self, uid: str) -> None:
        """Wait until nothing is being written on a pod, and drop what waits to be written.

        A condition that lands after the pod's binding would call a pod unschedulable that runs, and
        autoscalers would add a node for it.
        """
        self._last_texts.pop(uid, None)
        await self._outbox.quiet_key((uid, _CONDITION))

    def report_malformed_pod(self, pod: PodRecord, node: NodeFacts | None, problem: str) -> None:
        """Report a problem with the cards that a bound pod holds; once for each text, on the pod and on its node."""
        if not self._note_text(pod.uid, problem):
            return
        self._put_pod_event(pod, "Warning", "MalformedPod", "Scheduling", problem, text=problem)
        if node is not None:
            self.report_on_node(node, "MalformedPod", f"pod {pod.key}: {problem}", about=pod.uid)

    def report_malformed_node(self, node: NodeFacts) -> None:
        """Report that a node's annotations or status cannot be read; once for each text."""
        problem = str(node.problem)
        if self._note_text(node.uid, problem):
            note = f"left out by {self._controller}: {problem}"
            self.report_on_node(node, "MalformedNode", note, text=problem)

    def report_on_node(
        self, node: NodeFacts, reason: str, note: str, *, about: str = "", text: str = ""
    ) -> None:
        """Report a warning on a node; at most one waits for each of ``about``."""
        regarding = {**_name_kind(kinds.NODES), "name": node.name, "uid": node.uid}
        self._put_event(
            self._controller, regarding, ("Warning", reason, "Scheduling", note), about, text
        )

    def report_on_object(
        self, kind: Kind, meta: wire.Meta, words: tuple[str, str, str], *, is_why: bool = False
    ) -> None:
        """Report an event on an object of queues: its type, its reason and its note; ``is_why``: why something waits."""
        regarding = {**_name_kind(kind), "name": meta.name, "uid": meta.uid}
        if meta.namespace:
            regarding["namespace"] = meta.namespace
        kind_of_event, reason, note = words
        said = kind_of_event, reason, reason, note
        self._put_event(self._controller, regarding, said, _WHY if is_why else "", "")

    def report_status(self, uid: str, path: str, make_body: Callable[[], bytes]) -> None:
        """Merge into the status of an object; what is put later for the object replaces it."""
        self._outbox.put(
            Report(
                (uid, _CONDITION),
                Lane.CONDITION,
                "PATCH",
                f"{path}/status",
                make_body,
                client.MERGE_PATCH,
            )
        )

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._outbox.run())
            group.create_task(self._catch_up_forever())

    async def _catch_up_forever(self) -> None:
        while True:
            await asyncio.sleep(_LATER_SECONDS)
            self.catch_up()

    def catch_up(self) -> None:
        """Write new reasons that have waited longest, and new figures in place of the oldest texts."""
        self._anew_left = _ANEW_MOST
        while self._anew_left and self._anew:
            uid = next(iter(self._anew))
            del self._anew[uid]
            self._anew_left -= self._report_pod_later(uid)
        now, left = asyncio.get_running_loop().time(), _LATER_MOST
        while left and self._later and self._later[0][0] <= now:
            _, uid = heapq.heappop(self._later)
            self._queued.discard(uid)
            last = self._last_texts.get(uid)
            if last is not None and last.later is not None and now < last.at + _STANDS_SECONDS:
                self._look_again_later(uid, last)
            elif uid not in self._anew:
                left -= self._report_pod_later(uid)

    def _report_pod_later(self, uid: str) -> bool:
        """Write the newer text about a pod, if the pod still waits; return whether it was written."""
        last = self._last_texts.get(uid)
        if last is None or last.later is None or not self._is_still_waiting(uid):
            return False
        last.later()
        return True

    async def drain(self, seconds: float) -> None:
        """Wait until all is written, or the time is up."""
        await self._outbox.drain(seconds)

    def _put_pod_event(
        self, pod: PodRecord, kind: str, reason: str, action: str, note: str, *, text: str = ""
    ) -> None:
        regarding = {
            **_name_kind(kinds.PODS),
            "namespace": pod.namespace,
            "name": pod.name,
            "uid": pod.uid,
        }
        self._put_event(
            pod.profile or self._controller, regarding, (kind, reason, action, note), "", text
        )

    def _put_event(
        self,
        controller: str,
        regarding: dict[str, str],
        words: tuple[str, str, str, str],
        about: str,
        text: str,
    ) -> None:
        """Put an event. ``words`` are type, reason, action and note; ``about`` distinguishes events of one reason."""
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
        is_why = reason == "FailedScheduling" or about == _WHY
        self._outbox.put(
            Report(
                (uid, _WHY if is_why else f"{reason} {about}"),
                Lane.WHY if is_why else Lane.NEWS,
                "POST",
                kinds.EVENTS.find_list_path(namespace),
                partial(msgspec.json.encode, body),
                on_given_up=partial(self._forget_text, uid, text) if text else lambda: None,
            )
        )

    def _note_text(self, uid: str, text: str) -> bool:
        """Note the last text about an object; return whether it is a new one."""
        last = self._last_texts.get(uid)
        if last is not None and last.text == text:
            return False
        self._last_texts[uid] = _LastText(text, text, asyncio.get_running_loop().time())
        return True

    def _forget_text(self, uid: str, text: str) -> None:
        """Forget a text that was given up: it may be written again."""
        last = self._last_texts.get(uid)
        if last is not None and last.text == text:
            del self._last_texts[uid]


def _now(*, micro: bool) -> str:
    text = wall_clock.now().isoformat(timespec="microseconds" if micro else "seconds")
    return f"{text.removesuffix('+00:00')}Z"


def _name_kind(kind: Kind) -> dict[str, str]:
    return {"apiVersion": kind.api_version, "kind": kind.kind}
