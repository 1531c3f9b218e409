"""What comes between taking the lease and the first decision: to know all that was bound, and to bind alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from scheduler.api import wire
from scheduler.kube import fence
from scheduler.kube.fence import Fence, Target
from scheduler.kube.lease import AlwaysLeader, Held, Lease
from scheduler.kube.streams import Stream

_TURN_SECONDS = 0.1
# So often it is looked whether the lease is known before the streams begin all the same: two seconds.
_LOOKS = 100
_log = structlog.get_logger("evenkeel")


class Leading:
    """Takes over when the lease is held, and lets go when it is lost.

    What a leader of before has bound counts, so pods are listed anew. What it has sent and has not landed
    must not land later, on cards that are given away meanwhile, so every pod of that list without a node
    is fenced; pods that come later were not there when that leader could still send. No fence is needed
    when the lease was given back with nothing on its way, nor when this process itself was the leader of
    before: what it has sent it follows to its end.

    Args:
        lease: whether this process may act.
        fence: makes the binds of before impossible.
        pods: the streams of pods; the first is that of ours.
        nodes: the stream of nodes.
        on_leading: called before the first decision of a term.
        on_lost: called when a term has ended.
    """

    def __init__(
        self,
        lease: Lease | AlwaysLeader,
        fence: Fence,
        pods: list[Stream[wire.Pod]],
        nodes: Stream[wire.Node],
        *,
        on_leading: Callable[[], None],
        on_lost: Callable[[], None],
    ) -> None:
        self._lease, self._fence, self._pods, self._nodes = lease, fence, pods, nodes
        self._on_leading, self._on_lost = on_leading, on_lost
        self._settled_term = 0
        self._fenced_reign = 0
        self._wants_list = False
        self._unbound: list[Target] = []
        # Set when the streams of pods may begin. Who takes the lease at once lists once: what was asked
        # before the list begins needs no second one, and a list can be hundreds of megabytes.
        self.looked = asyncio.Event()

    def is_settled(self) -> bool:
        """Whether this process may decide right now."""
        return bool(self._settled_term) and self._settled_term == self._lease.present_term()

    def is_fenced(self) -> bool:
        """Whether nothing that leaders of before have sent can land any more."""
        return self._fenced_reign == self._lease.held.reign

    def saw_list(self, pods: list[wire.Pod]) -> None:
        """All pods of ours, as just listed."""
        if self._wants_list:
            self._unbound = fence.targets(pods)

    async def run(self) -> None:
        """Follow the lease until cancelled."""
        for _ in range(_LOOKS):
            if self._lease.is_known():
                break
            await asyncio.sleep(_TURN_SECONDS / 5)
        while True:
            held = self._lease.held
            is_held = self._lease.present_term() == held.term
            if is_held and self._settled_term != held.term:
                await self._take_over(held)
            elif not is_held and self._settled_term:
                self._settled_term = 0
                self._on_lost()
                _log.warning("no longer leading", identity=self._lease.identity)
            if not self._lease.present_term():
                self.looked.set()
            await asyncio.sleep(_TURN_SECONDS)

    async def _take_over(self, held: Held) -> None:
        """Get ready to decide, as long as the term lasts."""
        taking = asyncio.ensure_future(self._catch_up(held))
        try:
            while not taking.done():
                await asyncio.wait({taking}, timeout=_TURN_SECONDS)
                if self._lease.present_term() != held.term:
                    return
            taking.result()
        finally:
            taking.cancel()
            await asyncio.gather(taking, return_exceptions=True)
        self._settled_term = held.term
        _log.info("leading", identity=self._lease.identity)
        self._on_leading()

    async def _catch_up(self, held: Held) -> None:
        needs_fence = self._fenced_reign != held.reign and not held.is_clean
        self._wants_list = needs_fence
        listing = [asyncio.ensure_future(stream.relist()) for stream in self._pods]
        await asyncio.sleep(0)
        self.looked.set()
        await asyncio.gather(*listing)
        self._wants_list = False
        if needs_fence:
            unbound, self._unbound = self._unbound, []
            if await self._fence.sweep(unbound):
                # A watch may take long to tell of what landed between the list and the fence.
                await self._pods[0].relist()
        self._fenced_reign = held.reign
        while not self._nodes.is_listed:
            await asyncio.sleep(_TURN_SECONDS / 2)
