"""What a scheduler could have known when it decided, from the log of its engine, by rules written down a second time.

The log has what was heard and what was decided in the order in which it happened. Nothing of the engine is imported
here; what fits is judged as ``audit`` does.
"""

from __future__ import annotations

import copy
import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from tests.operator import audit

Json = dict[str, Any]


class Known(NamedTuple):
    """What a log says.

    Attributes:
        wrongs: what was over-allocated by a bind, as far as was known at that moment.
        binds: the uids of the pods that were bound, in order.
        heard_between: pods of others that were heard of after the first bind and before the last.
    """

    wrongs: list[str]
    binds: list[str]
    heard_between: int


def replayed(lines: Iterable[bytes]) -> Known:
    """Go through a log."""
    world = _World()
    for line in lines:
        one = json.loads(line)
        if one["type"] == "event":
            world.hear(one["event"])
        elif one["type"] == "decide":
            for bind in one.get("binds", ()):
                world.bind(bind)
    return Known(world.wrongs, world.binds, world.heard_before_last_bind)


class _World:
    def __init__(self) -> None:
        self.nodes: dict[str, Json] = {}
        self.waiting: dict[str, Json] = {}
        self.placed: dict[str, dict[str, Json]] = defaultdict(dict)
        self.where: dict[str, str] = {}
        self.wrongs: list[str] = []
        self.binds: list[str] = []
        self.heard = self.heard_before_last_bind = 0

    def hear(self, event: Json) -> None:
        match event["type"]:
            case "Seen" if event["found"]["kind"] == "Node":
                self.nodes[event["found"]["metadata"]["name"]] = event["found"]
            case "Gone" if event["kind"] == "Node":
                self.nodes.pop(event["key"], None)
            case "Seen" if event["found"]["kind"] == "Pod":
                self._see(event["found"])
            case "Gone" if event["kind"] == "Pod":
                self._forget(event["key"])
            case "BindFailed":
                pod = self._forget(event["uid"])
                if pod is not None and not event.get("gone"):
                    self.waiting[event["uid"]] = pod

    def bind(self, bind: Json) -> None:
        self.heard_before_last_bind = self.heard
        self.binds.append(bind["uid"])
        pod = copy.deepcopy(self.waiting.pop(bind["uid"]))
        of_hami: list[Any] = next(
            (slots for driver, slots, *_ in bind["devices"] if driver == "HAMi"), []
        )
        slots = [":".join(f"{card},NVIDIA,{mib},{cores}" for card, mib, cores, *_ in slot) for slot in of_hami]  # fmt: skip
        text = "".join(f"{slot};" for slot in slots)
        annotations = dict.fromkeys(audit.WITH_NODE, "")
        annotations |= {audit.ALLOCATED: text, "hami.io/vgpu-node": bind["node"]}
        pod["metadata"]["annotations"] = annotations
        pod["spec"]["nodeName"] = bind["node"]
        before = self._problems(bind["node"])
        self._place(pod)
        self.wrongs += sorted(self._problems(bind["node"]) - before)

    def _see(self, pod: Json) -> None:
        pod.setdefault("status", {})
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName")
        if not node:
            # What was decided of it counts, whatever is still heard of it as it was.
            if uid not in self.where:
                self.waiting[uid] = pod
            return
        if uid not in self.where and self.binds:
            self.heard += 1
        self._forget(uid)
        self._place(pod)

    def _place(self, pod: Json) -> None:
        uid, node = pod["metadata"]["uid"], pod["spec"]["nodeName"]
        # Not what the test is about, and what a bind is not known to have done yet.
        pod["status"]["conditions"] = [{"type": "PodScheduled", "status": "True"}]
        self.placed[node][uid] = pod
        self.where[uid] = node

    def _forget(self, uid: str) -> Json | None:
        self.waiting.pop(uid, None)
        return self.placed[self.where.pop(uid)].pop(uid) if uid in self.where else None

    def _problems(self, node: str) -> set[str]:
        return set(audit.problems([self.nodes[node]], list(self.placed[node].values())))
