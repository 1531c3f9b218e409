"""What comes between taking the lease and the first decision, when the lease lapses meanwhile."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from scheduler.kube.bind.fence import Target
from scheduler.kube.lead import leading
from scheduler.kube.lead.holding import Held
from scheduler.kube.lead.leading import Leading


class Lease:
    """Held as a test says."""

    identity, is_shared = "me", False
    held = Held()

    def present_term(self) -> int:
        return self.held.term if self.held.until else 0


class Heads:
    """Two pods without a node."""

    async def unbound(self) -> list[Target]:
        return [Target("default", name, name, "1") for name in ("a", "b")]

    async def unheard(self) -> list[Target]:
        return []

    def still_unheard(self, pods: list[Target]) -> list[Target]:
        return pods

    def has_changed(self, _: Target) -> bool:
        return False


class Fence:
    """Fences one pod and gets no further, except in the last sweep."""

    def __init__(self) -> None:
        self.found: list[set[str]] = []

    async def sweep(self, pods: list[Target], fenced: set[str], _: Callable[[Target], bool]) -> int:
        self.found.append(set(fenced))
        fenced.add(pods[0].uid)
        if len(self.found) < 3:
            await asyncio.Event().wait()
        return 0


async def test_pods_are_fenced_once_in_a_reign_whatever_terms_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only in another reign may somebody else have led, and have sent binds, meanwhile."""
    monkeypatch.setattr(leading, "_TURN_SECONDS", 0.001)
    lease: Any = Lease()
    heads: Any = Heads()
    fence: Any = Fence()
    made = Leading(lease, fence, heads, [], on_leading=lambda: None, on_lost=lambda: None)
    running = asyncio.create_task(made.run())
    for n_sweeps, (term, reign) in enumerate(((1, 1), (2, 1), (3, 2)), start=1):
        lease.held = Held(1.0, term, reign)
        async with asyncio.timeout(5.0):
            while len(fence.found) < n_sweeps:
                await asyncio.sleep(0.001)
    async with asyncio.timeout(5.0):
        while not made.is_settled():
            await asyncio.sleep(0.001)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert fence.found == [set(), {"a"}, set()]
    assert made.fenced_reign == 2
