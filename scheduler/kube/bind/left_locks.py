"""Removes the locks of nodes that name pods which are gone: who wrote them has ended before the pods did.

A process that goes on removes the lock of a pod that goes before it was served. After a process that ended, the next pod of
the node takes the lock over; where none comes, the lock would stay, and who looks at the node takes it for a plugin at work. So
a new leader looks at all locks that it finds, once it knows all nodes and pods. Where the pod is still there, it looks again
when the pod goes.

A lock goes only if the API server does not know its pod any more. Its removal carries the version of the node at which it was
read before the pod was, so a lock that is written meanwhile, for whichever pod, stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from scheduler.api import kinds, wire
from scheduler.api.door import events
from scheduler.api.door.events import Event
from scheduler.engine.engine import Engine
from scheduler.engine.questions.nodes import CardDrivers, KnownNode
from scheduler.errors import ApiError
from scheduler.kube import answers, client
from scheduler.kube.bind.holders import list_locks
from scheduler.kube.bind.node_lock import names_pod, read_locked_pod
from scheduler.kube.client import ApiClient

# A node and the key of a lock.
_Place = tuple[str, str]
_AGAIN_SECONDS = 10.0
_log = structlog.get_logger("evenkeel.locks")


class LeftLocks:
    """Looks at the locks that are there when a term begins.

    Args:
        api: the API server.
        engine: knows which nodes are ours.
        is_leading: whether this replica may write.
    """

    def __init__(self, api: ApiClient, engine: Engine, is_leading: Callable[[], bool]) -> None:
        self._api, self._engine, self._is_leading = api, engine, is_leading
        # The locks as the nodes were seen last, by node and key.
        self._locks: dict[_Place, str] = {}
        # Of them those that are to be looked at, and by uid of a pod those that name it and that were there before.
        self._left: dict[_Place, str] = {}
        self._holding: dict[str, tuple[_Place, str]] = {}
        self._wake = asyncio.Event()

    def hear(self, event: Event) -> None:
        """Hear an event after the engine has."""
        match event:
            case events.Seen(wire.Node() as node):
                self._see_node(node)
            case events.Gone(kinds.NODES.name, name):
                for place in [one for one in self._locks if one[0] == name]:
                    del self._locks[place]
            case events.Gone(kinds.PODS.name, uid) if uid in self._holding:
                place, text = self._holding.pop(uid)
                self._left[place] = text
                self._wake.set()

    def begin_term(self) -> None:
        """For a new leader: look at the locks."""
        self._left = dict(self._locks)
        self._holding.clear()
        self._wake.set()

    async def run(self) -> None:
        """Remove locks of pods that are gone, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._left and self._is_leading():
                for place, text in list(self._left.items()):
                    is_there = self._locks.get(place) == text
                    is_settled = not is_there or await self._is_settled(place, text)
                    # Meanwhile another pod that held it may have gone.
                    if is_settled and self._left.get(place) == text:
                        del self._left[place]
                if self._left:
                    await asyncio.sleep(_AGAIN_SECONDS)

    def _see_node(self, node: wire.Node) -> None:
        name, notes = node.metadata.name, node.metadata.annotations or {}
        for key in list_locks(self._engine.ask(CardDrivers())):
            if text := notes.get(key, ""):
                self._locks[name, key] = text
            else:
                self._locks.pop((name, key), None)

    async def _is_settled(self, place: _Place, text: str) -> bool:
        """Remove a lock if its pod is gone; return False if the API server did not say so, or did not let it."""
        try:
            if names_pod(text):
                await self._remove_if_left(place, text)
        except ApiError as error:
            if answers.is_not_found(error):
                return True
            if not answers.is_conflict(error):
                _log.warning(
                    "a lock was not looked into", node=place[0], lock=text, error=str(error)
                )
            return False
        return True

    async def _remove_if_left(self, place: _Place, text: str) -> None:
        node, key = place
        path = kinds.NODES.find_path(node)
        meta = (await self._api.get(path))["metadata"]
        is_there = (meta.get("annotations") or {}).get(key) == text
        if not is_there:
            return
        if (holder := await read_locked_pod(self._api, text)) is not None:
            self._holding[holder.metadata.uid] = place, text
            return
        if not (self._is_ours(node) and self._is_leading()):
            return
        body = {
            "metadata": {
                "uid": meta["uid"],
                "resourceVersion": meta["resourceVersion"],
                "annotations": {key: None},
            }
        }
        await self._api.send("PATCH", path, body, content_type=client.MERGE_PATCH)
        _log.info("removed a lock of a pod that is gone", node=node, lock=text)

    def _is_ours(self, node: str) -> bool:
        """Whether this scheduler allocates the devices of a node."""
        facts = self._engine.ask(KnownNode(node))
        return facts is not None and not facts.foreign
