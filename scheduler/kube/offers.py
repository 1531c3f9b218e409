"""Writes on nodes what their cards have together of memory and cores, as resources: then autoscalers see fractions of cards.

An autoscaler compares what a pod requests with what nodes offer, and no device plugin offers parts of cards. The kubelet keeps
resources of a node that it does not know, and counts them when it admits a pod. So what is written never becomes less
while pods with cards are on the node: a card may leave its plugin's register, and pods that hold it still count for the kubelet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

import structlog

from scheduler.api import kinds, wire
from scheduler.api.door import events
from scheduler.api.door.events import Event
from scheduler.engine.engine import Engine
from scheduler.engine.questions.nodes import KnownNode, KnownNodes, OfferedParts
from scheduler.errors import ApiError
from scheduler.kube import answers, client
from scheduler.kube.client import ApiClient

# What was not written is tried again after so long; the time doubles as long as nothing is written at all.
_AGAIN_SECONDS, _AGAIN_SECONDS_MAX = 30.0, 300.0
_NEVER = float("inf")
# So often a figure is written again that somebody else has replaced; what was seen before the last write counts as well.
_REPLACED_MAX = 5
_log = structlog.get_logger("evenkeel.offers")


class PartOffers:
    """Keeps what nodes offer of parts of cards, as long as this replica leads.

    Args:
        api: the API server.
        engine: knows the nodes and their cards.
        is_leading: whether this replica may write.
    """

    def __init__(self, api: ApiClient, engine: Engine, is_leading: Callable[[], bool]) -> None:
        self._api, self._engine, self._is_leading = api, engine, is_leading
        # The nodes that are to be looked at, in the order in which they were seen.
        self._changed: dict[str, None] = {}
        # Those that are not looked at before a time has passed, as the API server did not take what was written.
        self._put_off: dict[str, None] = {}
        # By node and resource: what was written, and how often that was found replaced.
        self._written: dict[str, dict[str, tuple[int, int]]] = {}
        self._n_written = 0
        self._wake = asyncio.Event()

    def hear(self, event: Event) -> None:
        """Hear an event after the engine has."""
        match event:
            case events.Seen(wire.Node() as node):
                self._note_changed(node.metadata.name)
            case events.Gone(kinds.NODES.name, name):
                self._changed.pop(name, None)
                self._put_off.pop(name, None)
                self._written.pop(name, None)

    def begin_term(self) -> None:
        """For a new leader: look at all nodes."""
        self._put_off.clear()
        for name in self._engine.ask(KnownNodes()):
            self._note_changed(name)

    def _note_changed(self, node: str) -> None:
        self._changed[node] = None
        self._wake.set()

    async def run(self) -> None:
        """Write what has changed, until cancelled."""
        wait, due, n_written = 0.0, _NEVER, 0
        while True:
            is_due = await self._wait_until(due)
            if is_due:
                self._changed |= self._put_off
                self._put_off.clear()
            if failed := await self._write_changed():
                _log_failures(failed)
            if not self._put_off:
                wait, due = 0.0, _NEVER
            elif is_due or due == _NEVER:
                wait = _lengthen(wait if self._n_written == n_written else 0.0)
                due, n_written = asyncio.get_running_loop().time() + wait, self._n_written

    async def _wait_until(self, due: float) -> bool:
        """Wait for a change, or until a time of the loop; return whether it is past that time."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(None if due == _NEVER else due):
                await self._wake.wait()
        self._wake.clear()
        return asyncio.get_running_loop().time() >= due

    async def _write_changed(self) -> dict[str, ApiError]:
        """Write what has changed, and put off the nodes that the API server does not take; return why it does not."""
        failed: dict[str, ApiError] = {}
        while self._changed:
            node = next(iter(self._changed))
            del self._changed[node]
            if node not in self._put_off and (error := await self._write_offer(node)) is not None:
                failed[node], self._put_off[node] = error, None
            # Most nodes have what they should have, and nothing is waited for.
            await asyncio.sleep(0)
        return failed

    async def _write_offer(self, node: str) -> ApiError | None:
        """Write what a node offers if it is not there; return the error if the API server did not take it."""
        wanted = self._find_missing(node) if self._is_leading() else {}
        if not wanted:
            return None
        texts = {resource: str(amount) for resource, amount in wanted.items()}
        # The kubelet derives the second from the first when it next looks.
        body = {"status": {"capacity": texts, "allocatable": texts}}
        path = f"{kinds.NODES.find_path(node)}/status"
        try:
            await self._api.send("PATCH", path, body, content_type=client.MERGE_PATCH)
        except ApiError as error:
            self._written.pop(node, None)
            return None if answers.is_not_found(error) else error
        self._n_written += 1
        return None

    def _find_missing(self, node: str) -> Mapping[str, int]:
        """Find what is to be written on a node."""
        facts = self._engine.ask(KnownNode(node))
        if facts is None:
            return {}
        there, offered = dict(facts.allocatable), self._engine.ask(OfferedParts(node))
        return {
            resource: amount
            for resource, amount in offered.amounts.items()
            if amount != there.get(resource, 0)
            and not (offered.is_occupied and amount < there.get(resource, 0))
            and self._may_write(node, resource, amount, there.get(resource, 0))
        }

    def _may_write(self, node: str, resource: str, amount: int, there: int) -> bool:
        """Whether a figure may be written; not if a plugin that offers the resource itself replaces it each time."""
        written = self._written.setdefault(node, {})
        before, n = written.get(resource, (amount, 0))
        # The kubelet sets what it does not know to 0 when it is made anew.
        n = n + 1 if resource in written and before == amount and there else 0
        written[resource] = amount, n
        if n == _REPLACED_MAX:
            _log.warning("somebody else writes what the cards of a node offer; it is left as it is", node=node, resource=resource, there=there, wanted=amount)  # fmt: skip
        return n < _REPLACED_MAX


def _lengthen(wait: float) -> float:
    return min(2 * wait, _AGAIN_SECONDS_MAX) if wait else _AGAIN_SECONDS


def _log_failures(failed: Mapping[str, ApiError]) -> None:
    """Log one line for each cause, not one for each node."""
    causes: dict[tuple[int, str], list[str]] = {}
    for node, error in failed.items():
        causes.setdefault((error.status, error.reason), []).append(node)
    for some in causes.values():
        _log.warning("what the cards of nodes offer was not written", nodes=len(some), first=some[0], error=str(failed[some[0]]))  # fmt: skip
