"""A watch that hands every state to the ledger, and keeps what else is known of pods, nodes and locks."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from scheduler.embedded.agents.apiclient import Client
from tests.soak.holdings import is_over, list_locks
from tests.soak.ledger import Ledger

Json = dict[str, Any]


class Watch:
    """What the API server has said so far.

    Args:
        since: by node, when its agent began; see ``agents``.

    Attributes:
        counts: how many pods came, ran, ended, and so on.
        longest_lock: how long a lock was held at most while the agent of its node lived throughout, and by whom.
        refused: pods that an agent refused although it had been there when they were bound.
    """

    def __init__(self, client: Client, ledger: Ledger, since: Mapping[str, float]) -> None:
        self.ledger, self.counts = ledger, Counter[str]()
        self.pods: dict[str, Json] = {}
        self.nodes: dict[str, Json] = {}
        self.changed_at = time.monotonic()
        self.longest_lock = (0.0, "")
        self.refused: list[str] = []
        self._client, self._since = client, since
        self._locks: dict[tuple[str, str], tuple[str, float]] = {}
        self._bound_at: dict[str, float] = {}
        self._said: dict[str, set[str]] = {}

    async def follow(self) -> None:
        """Follow nodes and pods for ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow_nodes())
            group.create_task(self._follow_pods())

    async def _follow_nodes(self) -> None:
        async for kind, node in self._client.follow("/api/v1/nodes"):
            name, now = node["metadata"]["name"], time.monotonic()
            if kind == "DELETED":
                self.nodes.pop(name, None)
                self.ledger.drop_node(name, now)
                self._see_locks(name, {}, now)
                continue
            self.nodes[name] = node
            self.ledger.see_node(node, now)
            self._see_locks(name, list_locks(node), now)

    def _see_locks(self, node: str, locks: Mapping[str, str], now: float) -> None:
        for (of, key), (text, since) in list(self._locks.items()):
            if of == node and locks.get(key) != text:
                del self._locks[of, key]
                begun = self._since.get(node)
                if begun is not None and begun < since and now - since > self.longest_lock[0]:
                    self.longest_lock = now - since, f"{node}: {text}"
        for key, text in locks.items():
            if (node, key) not in self._locks:
                self._locks[node, key] = text, now
                self.counts["locks"] += 1

    async def _follow_pods(self) -> None:
        async for kind, pod in self._client.follow("/api/v1/namespaces/default/pods"):
            uid, now = pod["metadata"]["uid"], time.monotonic()
            self.changed_at = now
            if kind == "DELETED":
                self.pods.pop(uid, None)
                self._bound_at.pop(uid, None)
                self._said.pop(uid, None)
                self.ledger.drop_pod(pod)
                continue
            self.pods[uid] = pod
            self.ledger.see_pod(pod, now)
            self._count(pod, now)

    def _count(self, pod: Json, now: float) -> None:
        uid, status = pod["metadata"]["uid"], pod.get("status") or {}
        said = self._said.setdefault(uid, set())
        told = {"created", str(status.get("phase", "")).lower()} - {"", "pending"}
        told |= {"bound"} if pod["spec"].get("nodeName") else set()
        for condition in status.get("conditions") or ():
            if condition["type"] == "DisruptionTarget" and condition["status"] == "True":
                told.add(f"evicted: {condition['reason']}")
        self.counts.update(told - said)
        if "bound" in told - said:
            self._bound_at[uid] = now
        if "failed" in told - said:
            self._judge_refusal(pod)
        said |= told

    def _judge_refusal(self, pod: Json) -> None:
        """A plugin that died in the midst may refuse what it finds half done; a plugin that lives has no reason to."""
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
        begun = self._since.get(node)
        bound = self._bound_at.get(uid)
        text = f"{pod['metadata']['name']} on {node}: {pod['status'].get('message')}"
        if begun is None or bound is None or begun > bound:
            self.counts["refused by a new agent"] += 1
        else:
            self.refused.append(text)

    def list_waiting(self) -> list[Json]:
        """Pods of ours that have no node."""
        return [
            pod
            for pod in self.pods.values()
            if not pod["spec"].get("nodeName")
            and pod["spec"]["schedulerName"] == "evenkeel"
            and "deletionTimestamp" not in pod["metadata"]
            and not is_over(pod)
        ]

    def list_starting(self) -> list[Json]:
        """Pods that are on a node and neither run nor have ended."""
        return [
            pod
            for pod in self.pods.values()
            if pod["spec"].get("nodeName")
            and (pod.get("status") or {}).get("phase") == "Pending"
            and "deletionTimestamp" not in pod["metadata"]
        ]

    def list_locked(self) -> dict[str, dict[str, str]]:
        """Locks by node."""
        found = {name: list_locks(node) for name, node in self.nodes.items()}
        return {name: locks for name, locks in found.items() if locks}
