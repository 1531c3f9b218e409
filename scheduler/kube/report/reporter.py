"""Events and conditions: what people and autoscalers read of a pod or a node.

A text is said once, not every cycle; how it gets to the API server is told in ``outbox``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from scheduler.api.limits import shortened
from scheduler.kube import client, wall_clock
from scheduler.kube.client import ApiClient
from scheduler.kube.report.outbox import Lane, Outbox, Report
from scheduler.state.nodes import NodeFacts
from scheduler.state.pods import PodRecord

# The API's own bound on an event's note, and ours on a condition's message, which is part of the pod.
_NOTE_MAX, _MESSAGE_MAX = 1024, 8192
_CONDITION = "condition"


class Reporter:
    """Says what is new, through an outbox.

    Args:
        api: the API server.
        controller, instance: who says it; of a pod of ours, its own scheduler name does.
        is_binding: whether binds wait to be written.
        version_of: the last known resourceVersion of a pod, empty when it is not known.
    """

    def __init__(
        self,
        api: ApiClient,
        *,
        controller: str,
        instance: str,
        is_binding: Callable[[], bool],
        version_of: Callable[[str], str],
    ) -> None:
        self._controller, self._instance = controller, instance
        self._version_of = version_of
        self._outbox = Outbox(api, is_binding=is_binding)
        self._serial = itertools.count(int(wall_clock.now().timestamp() * 1e6))
        self._said: dict[str, str] = {}

    @property
    def dropped(self) -> int:
        """Reports given up."""
        return self._outbox.dropped

    @property
    def waiting(self) -> int:
        """Reports not written yet."""
        return len(self._outbox)

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
            "message": shortened(message, _MESSAGE_MAX),
            "lastProbeTime": None,
            "lastTransitionTime": _now(micro=False),
        }
        self._outbox.put(
            Report(
                (pod.uid, _CONDITION),
                Lane.CONDITION,
                "PATCH",
                f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status",
                partial(self._condition_body, pod.uid, condition),
                client.STRATEGIC_PATCH,
                given_up=partial(self._unsay, pod.uid, message),
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
        if self._said.get(pod.uid) == problem:
            return
        self._said[pod.uid] = problem
        self._pod_event(pod, "Warning", "MalformedPod", "Scheduling", problem, said=problem)
        if node is not None:
            self.on_node(node, "MalformedPod", f"pod {pod.key}: {problem}", about=pod.uid)

    def malformed_node(self, node: NodeFacts) -> None:
        """A node's annotations or status cannot be read; said once for each text."""
        problem = str(node.problem)
        if self._said.get(node.uid) != problem:
            self._said[node.uid] = problem
            note = f"left out by {self._controller}: {problem}"
            self.on_node(node, "MalformedNode", note, said=problem)

    def on_node(
        self, node: NodeFacts, reason: str, note: str, *, about: str = "", said: str = ""
    ) -> None:
        """A warning on a node's own page; one waits for each of ``about``."""
        regarding = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}
        self._event(
            self._controller, regarding, ("Warning", reason, "Scheduling", note), about, said
        )

    async def run(self) -> None:
        """Work until cancelled."""
        await self._outbox.run()

    async def drain(self, seconds: float) -> None:
        """Wait until all is written, or the time is up."""
        await self._outbox.drain(seconds)

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
        note = shortened(note, _NOTE_MAX)
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
                f"/apis/events.k8s.io/v1/namespaces/{namespace}/events",
                partial(msgspec.json.encode, body),
                given_up=partial(self._unsay, uid, said) if said else lambda: None,
            )
        )

    def _unsay(self, uid: str, text: str) -> None:
        """What was given up may be said again."""
        if self._said.get(uid) == text:
            del self._said[uid]


def _now(*, micro: bool) -> str:
    shape = "%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ"
    return wall_clock.now().strftime(shape)
