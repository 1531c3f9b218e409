"""From taking the lease to the first decision: know all bound pods, and make sure that no earlier leader binds more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import structlog

from scheduler.api import kinds
from scheduler.kube.bind.fence import Fence, Target
from scheduler.kube.lead.always import AlwaysLeader
from scheduler.kube.lead.heads import Heads
from scheduler.kube.lead.holding import Held
from scheduler.kube.lead.lease import Lease
from scheduler.kube.watch.streams import Stream

_TURN_SECONDS = 0.02
# A watch is a moment behind. So often the versions are listed, and so often each list is compared with what is known,
# before the pods are listed as a whole.
_LOOKS, _CHECKS, _CHECK_SECONDS = 3, 20, 0.05
# kube-scheduler gives its lease back with binds on their way. What it sent ends with its connections.
_PEER_SECONDS = 1.0
_log = structlog.get_logger("evenkeel")


class Leading:
    """Begins to decide when this replica holds the lease, and stops when the lease is lost.

    A bind that an earlier leader has sent must not land later, on cards that are allocated to others meanwhile. So
    every pod without a node is fenced: pods that request devices before the first decision, the others beside the
    decisions. Pods that come later did not exist while those leaders could still send. No fence is needed if the lease
    had no holder before, if it was given back with nothing on its way, or if the earlier leader was this process
    itself, which follows to the end what it has sent. After the fence, all that earlier leaders have bound is at the
    API server, and nothing is allocated before it is known here. That includes what other schedulers have bound.

    Another scheduler that shares the lease sends binds that no touch makes impossible. This replica waits for them:
    such a scheduler ends with its term; if it did not give the lease back itself, it has stopped some seconds before.

    Args:
        lease: says whether this process may act.
        fence: makes binds of earlier leaders impossible.
        heads: lists which pods the API server has.
        streams: all streams.
        on_leading: called before the first decision of a term.
        on_lost: called when a term has ended.
    """

    def __init__(
        self,
        lease: Lease | AlwaysLeader,
        fence: Fence,
        heads: Heads,
        streams: list[Stream[Any]],
        *,
        on_leading: Callable[[], None],
        on_lost: Callable[[], None],
    ) -> None:
        self._lease, self._fence, self._heads = lease, fence, heads
        self._streams = streams
        self._on_leading, self._on_lost = on_leading, on_lost
        self._settled_term = 0
        # The term that had begun when the streams began to list; 0 when none had.
        self._listed_term = 0
        # The reign in which nothing that earlier leaders have sent can land any more.
        self.fenced_reign = 0
        # Pods that were fenced in a reign whose fence is not complete yet, by their uids.
        self._fenced: tuple[int, set[str]] = 0, set()
        # Pods to be fenced beside the decisions, and the task that fences them.
        self._unfenced: list[Target] = []
        self._fencing: asyncio.Task[None] | None = None

    def is_settled(self) -> bool:
        """Whether this process may decide right now."""
        return bool(self._settled_term) and self._settled_term == self._lease.get_present_term()

    def is_listed_in_term(self) -> bool:
        """Whether the term lasted already when the streams began to list."""
        return self._settled_term == self._listed_term

    def note_lists_begin(self) -> None:
        """Note that the streams begin to list. If a term lasts already, their lists have all binds of earlier leaders."""
        self._listed_term = self._lease.get_present_term()

    async def run(self) -> None:
        """Follow the lease until cancelled."""
        try:
            while True:
                await self._follow_lease()
                await asyncio.sleep(_TURN_SECONDS)
        finally:
            await self._end_fencing()

    async def _follow_lease(self) -> None:
        held = self._lease.held
        is_held = self._lease.get_present_term() == held.term
        if is_held and self._settled_term != held.term:
            await self._end_fencing()
            await self._take_over(held)
        elif not is_held and self._settled_term:
            self._settled_term = 0
            await self._end_fencing()
            self._on_lost()
            _log.warning("no longer leading", identity=self._lease.identity)
        elif self._fencing is not None and self._fencing.done():
            self._fencing.result()

    async def _end_fencing(self) -> None:
        if self._fencing is not None:
            self._fencing.cancel()
            await asyncio.gather(self._fencing, return_exceptions=True)
            self._fencing = None

    async def _take_over(self, held: Held) -> None:
        """Get ready to decide, as long as the term lasts."""
        taking = asyncio.ensure_future(self._catch_up(held))
        try:
            while not taking.done():
                await asyncio.wait({taking}, timeout=_TURN_SECONDS)
                if self._lease.get_present_term() != held.term:
                    return
            taking.result()
        finally:
            taking.cancel()
            await asyncio.gather(taking, return_exceptions=True)
        self._settled_term = held.term
        _log.info("leading", identity=self._lease.identity)
        self._on_leading()
        if self._unfenced:
            self._fencing = asyncio.create_task(self._fence_rest(held))

    async def _catch_up(self, held: Held) -> None:
        while not all(stream.is_listed for stream in self._streams):
            await asyncio.sleep(_TURN_SECONDS)
        if self.fenced_reign != held.reign:
            await self._fence_first(held)
        if held.is_clean and held.term == self._listed_term:
            return
        for _ in range(_LOOKS):
            # Listed anew each time: pods that were behind may be gone meanwhile.
            if await self._wait_until_known(await self._heads.list_newer()):
                return
        _log.warning("the watches of pods lag behind; pods are listed again")
        streams = [stream for stream in self._streams if stream.source.kind == kinds.PODS]
        await asyncio.gather(*(stream.relist() for stream in streams))

    async def _fence_first(self, held: Held) -> None:
        """Fence the pods whose late binds would go unnoticed, and leave the rest to ``_fence_rest``."""
        if self._fenced[0] != held.reign:
            self._fenced = held.reign, set()
        self._unfenced = []
        if not held.is_clean:
            if self._lease.is_shared:
                await asyncio.sleep(_PEER_SECONDS)
            pods = await self._heads.list_unbound()
            first = [pod for pod in pods if self._heads.requests_devices(pod)]
            await self._fence.sweep_pods(first, self._fenced[1], self._heads.has_changed)
            is_done = {pod.uid for pod in first} | self._fenced[1]
            self._unfenced = [pod for pod in pods if pod.uid not in is_done]
        if not self._unfenced:
            self.fenced_reign = held.reign

    async def _fence_rest(self, held: Held) -> None:
        """Fence the rest, while pods are bound."""
        pods, self._unfenced = self._unfenced, []
        is_known = self._heads.is_changed_placed_or_gone
        await self._fence.sweep_pods(pods, self._fenced[1], is_known, is_beside_binds=True)
        self.fenced_reign = held.reign

    async def _wait_until_known(self, pods: list[Target]) -> bool:
        """Wait for a moment until pods are known here; return whether they are."""
        for _ in range(_CHECKS):
            pods = self._heads.keep_newer(pods)
            if not pods:
                break
            await asyncio.sleep(_CHECK_SECONDS)
        return not pods
