"""A scheduler that does not think: it carries out decisions that are known to be right, as fast as it can.

The limit that any scheduler on this API server could reach from Python: Evenkeel's own connections, as many requests
in flight as it has, an event per pod behind the binds, no choice. What a decision needs first it does and
waits for: it has the victim go, or the claim provisioned at the node. A row's decisions are right whatever was
done before (``bench.rows.table``), so it needs to know of pods no more than their names: from one list, or, where
pods arrive while others are bound, from a watch on metadata.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncIterator

from bench.beside import caller
from bench.beside.caller import PODS, Caller
from bench.beside.provisioner import SELECTED
from bench.rows.row import Decision

IN_FLIGHT, REPORTERS = 32, 4
# Where a decision waits for others before its bind, so many are under way.
_WAITING = 8 * IN_FLIGHT
_CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
_EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"

Item = tuple[str, str, Decision]


class Awaited:
    """What has been heard of by its name, and who waits for it."""

    def __init__(self) -> None:
        self._of: dict[str, asyncio.Event] = {}

    def heard(self, name: str) -> None:
        """It is so."""
        self._of.setdefault(name, asyncio.Event()).set()

    async def wait(self, name: str) -> None:
        """Return once it is so."""
        await self._of.setdefault(name, asyncio.Event()).wait()


class NullScheduler:
    """Binds all pods of a row."""

    def __init__(self, api: Caller) -> None:
        self._api = api
        self._todo: asyncio.Queue[Item] = asyncio.Queue()
        self._done: asyncio.Queue[Item] = asyncio.Queue()
        self._gone, self._bound = Awaited(), Awaited()

    async def run(self) -> None:
        """Work until cancelled."""
        beside = self._api.row.beside
        waits = "kubelet" in beside or "provisioner" in beside
        async with asyncio.TaskGroup() as group:
            if "kubelet" in beside:
                group.create_task(self._hear_gone())
            if "provisioner" in beside:
                group.create_task(self._hear_claims())
            for _ in range(_WAITING if waits else IN_FLIGHT):
                group.create_task(self._bind())
            for _ in range(REPORTERS):
                group.create_task(self._report())
            group.create_task(self._hear_pods())

    async def _hear_pods(self) -> None:
        api = self._api
        async for name, uid in _waiting(api):
            number = int(name.rpartition("-")[2])
            self._todo.put_nowait((name, uid, api.row.decide(number, api.size)))

    async def _hear_gone(self) -> None:
        async for change in self._api.changes(PODS, fieldSelector="spec.nodeName!="):
            if change.type == "DELETED":
                self._gone.heard(change.object["metadata"]["name"])

    async def _hear_claims(self) -> None:
        async for change in self._api.changes(_CLAIMS, whole=True):
            if change.object["spec"].get("volumeName"):
                self._bound.heard(change.object["metadata"]["name"])

    async def _bind(self) -> None:
        api = self._api
        while True:
            item = await self._todo.get()
            name, uid, decision = item
            if decision.victim:
                await _evict(api, name, decision)
                await self._gone.wait(decision.victim)
            if decision.claim:
                chosen = {"metadata": {"annotations": {SELECTED: decision.node}}}
                await api.call("PATCH", f"{_CLAIMS}/{decision.claim}", chosen)
                await self._bound.wait(decision.claim)
            body = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": name, "uid": uid},
                "target": {"apiVersion": "v1", "kind": "Node", "name": decision.node},
            }
            await api.call("POST", f"{PODS}/{name}/binding", body)
            self._done.put_nowait(item)

    async def _report(self) -> None:
        api = self._api
        while True:
            name, uid, decision = await self._done.get()
            await api.call("POST", _EVENTS, _event(api.scheduler, name, uid, decision.node))


async def _waiting(api: Caller) -> AsyncIterator[tuple[str, str]]:
    """Names and uids of the pods to bind."""
    selector = f"spec.schedulerName={api.scheduler},spec.nodeName="
    found, version = await api.names(PODS, fieldSelector=selector)
    for name in sorted(found):
        yield name, found[name]
    if api.row.arrive:
        async for change in api.changes(PODS, version, fieldSelector=selector):
            if change.type == "ADDED":
                yield change.object["metadata"]["name"], change.object["metadata"]["uid"]


async def _evict(api: Caller, name: str, decision: Decision) -> None:
    """What a preemption writes: the nomination, why the victim goes, and its end."""
    nomination = {"status": {"nominatedNodeName": decision.node}}
    await api.call("PATCH", f"{PODS}/{name}/status", nomination)
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": f"{api.scheduler}: preempting to accommodate a higher priority pod",
        "lastTransitionTime": now,
    }
    victim = f"{PODS}/{decision.victim}"
    await api.call("PATCH", f"{victim}/status", {"status": {"conditions": [condition]}})
    await api.call("DELETE", victim, {"kind": "DeleteOptions", "apiVersion": "v1"})


def _event(scheduler: str, name: str, uid: str, node: str) -> dict[str, object]:
    now = dt.datetime.now(dt.UTC)
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.{now.timestamp()}", "namespace": "default"},
        "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": scheduler,
        "reportingInstance": "null",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {
            "apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": name, "uid": uid
        },
        "note": f"Successfully assigned default/{name} to {node}",
        "type": "Normal",
    }  # fmt: skip


if __name__ == "__main__":
    caller.main(lambda api: NullScheduler(api).run())
