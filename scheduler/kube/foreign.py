"""What another scheduler does with the devices of nodes of ours: it is charged as always, and reported.

During a migration each node belongs to one scheduler. If the other one allocates devices of a node of ours all the same,
both may allocate the same devices before they hear of each other. So an event on the node, a line in the log and a
metric say that it happened. A pod is noticed while its plugin still has to serve it: pods that ran on the node
before it was ours do not matter.

A lock of the other scheduler is noticed by its pod, which is read once for each lock that this process has not written:
no stream has the unbound pods of other schedulers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import NamedTuple

import structlog

from scheduler.api import kinds, wire
from scheduler.api.door import events
from scheduler.api.door.events import Event
from scheduler.api.limits import shorten
from scheduler.engine.engine import Engine
from scheduler.engine.questions.nodes import CardDrivers, KnownNode
from scheduler.engine.questions.pods import KnownPod
from scheduler.errors import ApiError
from scheduler.kube.bind.holders import has_answer, list_locks
from scheduler.kube.bind.node_lock import read_locked_pod
from scheduler.kube.client import ApiClient
from scheduler.kube.report.metrics.counting import ALLOCATION, LOCK
from scheduler.kube.report.reporter import Reporter

# One event for each node in so many seconds, however much is allocated there.
_QUIET_SECONDS = 600.0
# An event quotes at most so many characters of a name.
_NAME_MAX = 120
_log = structlog.get_logger("evenkeel.foreign")


class ForeignTies(NamedTuple):
    """What the watch for foreign writes needs of the other parts.

    Attributes:
        has_written: whether this process has written a lock, by node, key and text.
        count_write: counts a write of a kind.
    """

    engine: Engine
    reporter: Reporter
    is_leading: Callable[[], bool]
    has_written: Callable[[str, str, str], bool]
    count_write: Callable[[str], None]


class _Unserved(NamedTuple):
    """A pod on a node of which the plugin has not served it yet."""

    node: str
    key: str
    scheduler: str


class ForeignWrites:
    """Notices what other schedulers allocate on nodes of ours, as long as this replica leads.

    Args:
        api: the API server.
        ties: what it needs of the other parts.
        schedulers: the scheduler names of this process.
    """

    def __init__(self, api: ApiClient, ties: ForeignTies, schedulers: Collection[str]) -> None:
        self._api, self._ties, self._schedulers = api, ties, frozenset(schedulers)
        # By uid, the pods of other schedulers whose plugins still have to serve them, and those of them that were reported.
        self._unserved: dict[str, _Unserved] = {}
        self._reported: set[str] = set()
        # By node and key: the lock that another process has written; those that are to be looked into, and those that
        # could not be read yet: they are tried again when their node is seen next.
        self._locks: dict[tuple[str, str], str] = {}
        self._to_read: set[tuple[str, str]] = set()
        self._put_off: set[tuple[str, str]] = set()
        self._wake = asyncio.Event()
        # By node: the loop time of the last event.
        self._reported_at: dict[str, float] = {}

    def hear(self, event: Event) -> None:
        """Hear an event after the engine has."""
        match event:
            case events.Seen(wire.Pod() as pod):
                self._see_pod(pod)
            case events.Seen(wire.Node() as node):
                self._see_node(node)
            case events.Gone(kinds.PODS.name, uid):
                self._forget_pod(uid)
            case events.Gone(kinds.NODES.name, name):
                self._reported_at.pop(name, None)
                for place in [one for one in self._locks if one[0] == name]:
                    self._forget_lock(place)

    def begin_term(self) -> None:
        """For a new leader: report what was there before, as it may not have been reported."""
        for uid in self._unserved:
            self._consider(uid)
        self._to_read |= self._locks.keys()
        self._wake.set()

    async def run(self) -> None:
        """Look into locks, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._to_read:
                place = self._to_read.pop()
                if not await self._read_lock(place) and place in self._locks:
                    self._put_off.add(place)

    def _see_pod(self, pod: wire.Pod) -> None:
        uid, ask = pod.metadata.uid, self._ties.engine.ask
        known = ask(KnownPod(uid))
        if known is None or known.ours or not (known.node and known.claim):
            return
        if has_answer(pod, ask(CardDrivers())):
            self._forget_pod(uid)
        else:
            self._unserved[uid] = _Unserved(known.node, known.key, pod.spec.scheduler_name or "")
            self._consider(uid)

    def _consider(self, uid: str) -> None:
        """Report a pod that is not served yet, if its node is ours, once."""
        pod = self._unserved[uid]
        if uid not in self._reported and self._is_ours(pod.node):
            self._reported.add(uid)
            self._report(pod.node, ALLOCATION, pod.key, pod.scheduler)

    def _forget_pod(self, uid: str) -> None:
        self._unserved.pop(uid, None)
        self._reported.discard(uid)

    def _see_node(self, node: wire.Node) -> None:
        name, notes = node.metadata.name, node.metadata.annotations or {}
        for key in list_locks(self._ties.engine.ask(CardDrivers())):
            text, place = notes.get(key, ""), (name, key)
            if not text or self._ties.has_written(name, key, text):
                self._forget_lock(place)
            elif text != self._locks.get(place) or (place in self._put_off and self._is_ours(name)):
                self._locks[place] = text
                self._put_off.discard(place)
                self._to_read.add(place)
                self._wake.set()

    def _forget_lock(self, place: tuple[str, str]) -> None:
        self._locks.pop(place, None)
        self._to_read.discard(place)
        self._put_off.discard(place)

    def _is_ours(self, node: str) -> bool:
        """Whether a node is ours and this replica is the one that says what happens there."""
        facts = self._ties.engine.ask(KnownNode(node))
        return facts is not None and not facts.foreign and self._ties.is_leading()

    async def _read_lock(self, place: tuple[str, str]) -> bool:
        """Find out whose pod a lock names, and report it if it is another scheduler's; return whether that is known."""
        node, text = place[0], self._locks[place]
        if not self._is_ours(node):
            return False
        try:
            found = await read_locked_pod(self._api, text)
        except ApiError as error:
            _log.warning("the pod of a lock was not read", node=node, lock=text, error=str(error))
            return False
        by = found.spec.scheduler_name or "" if found is not None else ""
        if by and by not in self._schedulers and self._is_ours(node):
            self._report(node, LOCK, text, by)
        return True

    def _report(self, node: str, kind: str, what: str, by: str) -> None:
        """Count what another scheduler did on a node of ours, and report it, unless something was reported there a short time ago."""
        self._ties.count_write(kind)
        facts = self._ties.engine.ask(KnownNode(node))
        now = asyncio.get_running_loop().time()
        if facts is None or now - self._reported_at.get(node, -_QUIET_SECONDS) < _QUIET_SECONDS:
            return
        self._reported_at[node] = now
        did = "has locked the node for" if kind == LOCK else "allocates devices here to"
        _log.warning(
            "another scheduler is at work on a node of ours", node=node, by=by, **{kind: what}
        )
        note = (
            f"scheduler {shorten(by, _NAME_MAX)} {did} {shorten(what, _NAME_MAX)}, and the settings do not give "
            "the node to it: both may allocate the same devices; keep the pods of one of them off the node"
        )
        self._ties.reporter.report_on_node(facts, "ForeignAllocation", note)
