"""What comes between taking the lease and the first decision, when the lease lapses meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from scheduler.kube.bind.fence import Target
from scheduler.kube.lead import leading
from scheduler.kube.lead.holding import Held
from scheduler.kube.lead.leading import Leading


class Lease:
    """Held as a test says; ``n_lost``: how often it was noticed that it was lost."""

    identity, is_shared = "me", False
    held = Held()
    n_lost = 0

    def lose(self) -> None:
        self.n_lost += 1

    def get_present_term(self) -> int:
        return self.held.term if self.held.until else 0


class Heads:
    """Two pods without a node; those that ask devices are named."""

    def __init__(self, *devices: str) -> None:
        self.devices = devices
        self.n_asked = 0

    async def list_unbound(self) -> list[Target]:
        return [Target("default", name, name, "1") for name in ("a", "b")]

    async def list_newer(self) -> list[Target]:
        self.n_asked += 1
        return []

    def keep_newer(self, pods: list[Target]) -> list[Target]:
        return pods

    def has_changed(self, _: Target) -> bool:
        return False

    is_changed_placed_or_gone = has_changed

    def requests_devices(self, pod: Target) -> bool:
        return pod.uid in self.devices


class Fence:
    """Fences one pod and gets no further, except in the last sweep."""

    def __init__(self) -> None:
        self.found: list[set[str]] = []

    async def sweep_pods(
        self, pods: list[Target], fenced: set[str], _: Callable[[Target], bool]
    ) -> int:
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
    heads: Any = Heads("a", "b")
    fence: Any = Fence()
    made = Leading(lease, fence, heads, [], on_leading=lambda: None, on_lost=lambda: None)
    running = asyncio.create_task(made.run())
    for n_sweeps, (term, reign) in enumerate(((1, 1), (2, 1), (3, 2)), start=1):
        lease.held = Held(1.0, term, reign)
        async with asyncio.timeout(5.0):
            while len(fence.found) < n_sweeps:
                await asyncio.sleep(0.001)
    await _until(made.is_settled)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert fence.found == [set(), {"a"}, set()]
    assert made.fenced_reign == 2


@pytest.mark.parametrize(
    ("is_clean", "term_of_lists", "n_asked"),
    [(True, 1, 0), (True, 0, 1), (False, 1, 1)],
    ids=["nothing was on its way", "the lists had begun before", "a leader has died"],
)
async def test_what_is_listed_in_a_clean_term_is_not_asked_for_again(
    is_clean: bool, term_of_lists: int, n_asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was bound before the lease was taken is in a list that began after it."""
    monkeypatch.setattr(leading, "_TURN_SECONDS", 0.001)
    lease, fence, heads = Lease(), SlowFence(), Heads()
    parts: dict[str, Any] = {"lease": lease, "fence": fence, "heads": heads}
    made = Leading(**parts, streams=[], on_leading=lambda: None, on_lost=lease.lose)
    if not term_of_lists:
        made.note_lists_begin()
    lease.held = Held(1.0, 1, 1, is_clean)
    if term_of_lists:
        made.note_lists_begin()
    running = asyncio.create_task(made.run())
    await _until(made.is_settled)
    assert heads.n_asked == n_asked
    # What others have bound while the lease had lapsed is in no list.
    lease.held = Held(0.0, 1, 1, is_clean)
    await _until(lambda: lease.n_lost == 1)
    lease.held = Held(1.0, 2, 1, is_clean)
    await _until(made.is_settled)
    assert heads.n_asked == n_asked + 1
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


class SlowFence:
    """Each sweep takes until it is told to end."""

    def __init__(self) -> None:
        self.swept: list[tuple[list[str], bool]] = []
        self.may_end = asyncio.Event()

    async def sweep_pods(
        self,
        pods: list[Target],
        fenced: set[str],
        _: Callable[[Target], bool],
        *,
        is_beside_binds: bool = False,
    ) -> int:
        self.swept.append(([pod.uid for pod in pods], is_beside_binds))
        if is_beside_binds:
            await self.may_end.wait()
        fenced.update(pod.uid for pod in pods)
        return 0


@pytest.fixture
async def led(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Lease, SlowFence, Leading]]:
    """Two pods, of which one asks devices, and a lease that somebody else held before."""
    monkeypatch.setattr(leading, "_TURN_SECONDS", 0.001)
    lease, fence = Lease(), SlowFence()
    heads: Any = Heads("a")
    parts: dict[str, Any] = {"lease": lease, "fence": fence, "heads": heads}
    made = Leading(**parts, streams=[], on_leading=lambda: None, on_lost=lease.lose)
    running = asyncio.create_task(made.run())
    yield lease, fence, made
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_only_pods_that_ask_devices_are_fenced_before_the_first_decision(
    led: tuple[Lease, SlowFence, Leading],
) -> None:
    lease, fence, made = led
    lease.held = Held(1.0, 1, 1)
    await _until(lambda: made.is_settled() and len(fence.swept) == 2)
    assert fence.swept == [(["a"], False), (["b"], True)]
    # Given back now, the lease is not clean for the next one.
    assert made.fenced_reign == 0
    fence.may_end.set()
    await _until(lambda: made.fenced_reign == 1)


async def test_what_was_left_when_a_term_ended_is_fenced_in_the_next_of_the_reign(
    led: tuple[Lease, SlowFence, Leading],
) -> None:
    lease, fence, made = led
    lease.held = Held(1.0, 1, 1)
    await _until(lambda: len(fence.swept) == 2)
    lease.held = Held(0.0, 1, 1)
    await _until(lambda: lease.n_lost == 1)
    lease.held = Held(1.0, 2, 1)
    fence.may_end.set()
    await _until(lambda: made.fenced_reign == 1)
    assert fence.swept[2:] == [(["a"], False), (["b"], True)]


async def test_after_a_clean_hand_over_no_pod_is_touched(
    led: tuple[Lease, SlowFence, Leading],
) -> None:
    lease, fence, made = led
    lease.held = Held(1.0, 1, 1, is_clean=True)
    await _until(made.is_settled)
    assert (fence.swept, made.fenced_reign) == ([], 1)


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(5.0):
        while not is_so():
            await asyncio.sleep(0.001)
