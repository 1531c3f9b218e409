"""Kueue and Evenkeel decide alike about queues, on random worlds."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from tests.controlplane import build
from tests.differential.queues import known, oracle, ours, run

# `make differential ARGS="kueue"` asks more of them, of other seeds, and each one twice.
WORLDS = 15
# As many worlds differ at most because a rule is newer than the Kueue that is asked; about one in ten does.
NEWER = 4
# In as many worlds at most somebody spares those to whom it has given way; in about one in thirty it does.
SPARED = 2


@pytest.mark.parametrize("is_fair", [False, True], ids=["by the tree", "by shares"])
def test_what_kueue_decides_evenkeel_decides(is_fair: bool) -> None:
    """The same workloads are admitted in the same flavors, the same are evicted for the same ones, round by round."""
    build.ensure("etcd", "kube-apiserver", "kueue")
    plan = run.Plan(1, range(WORLDS), is_fair, times=1)

    async def ask() -> run.Tally:
        async with AsyncExitStack() as stack:
            kueues = [await stack.enter_async_context(oracle.start()) for _ in range(2)]
            return await run.run(kueues, plan, ours.run, lambda *_: None)

    tally = asyncio.run(ask())
    print(tally.report())
    assert not tally.failed, [(one.name, one.found) for one in tally.failed]
    assert not tally.lost
    assert tally.worlds == WORLDS
    assert min(tally.became["admitted"], tally.became["pending"]) > 10 * WORLDS
    assert sum(n for what, n in tally.became.items() if what.startswith("evicted")) > WORLDS
    assert sum(tally.known[title] for title in (known.NEWER, known.CIRCLE)) <= NEWER
    assert tally.known[known.SPARED] <= SPARED
