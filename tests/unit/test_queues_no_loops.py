"""Evictions end, and who was evicted does not evict back: random trees, weights, histories and workloads."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scheduler.tenancy import rounds
from scheduler.tenancy.tenants import Tenants
from tests.differential.queues import ours, worlds

# Rounds of evictions after one change: those evicted stop, and all others are tried.
_ROUNDS = 60


@given(st.integers(0, 10**9), st.booleans())
def test_evictions_end_and_nobody_evicts_back(seed: int, is_fair: bool) -> None:
    world = worlds.build(seed, is_fair=is_fair)
    playing = ours.Play(world, _ROUNDS)
    for number, step in enumerate(world.steps):
        outcome = playing.take(number, step)
        assert not outcome.is_endless
        pairs = {(one.workload, one.preemptor) for one in outcome.evictions if one.preemptor}
        assert not pairs & {(asker, victim) for victim, asker in pairs}
        _all_have_what_they_can_have(playing.tenants, float(worlds.time_of(number + 1, 0)))


def _all_have_what_they_can_have(tenants: Tenants, now: float) -> None:
    """Even if all who wait are tried again, nobody gets quota, and nobody has to go."""
    for line in tenants.lines.values():
        line.retry_all()
    found = list(rounds.run_rounds(tenants, now))
    assert not any(one.admitted or one.preempted for one in found)
