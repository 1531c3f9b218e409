"""The soak of ``make soak-cluster``, for less than a minute and on half of its nodes: everything in it still works."""

from __future__ import annotations

import pytest

from tests.soak.run import Plan, soak


@pytest.mark.usefixtures("peers")
async def test_random_things_on_a_real_control_plane_lose_nothing() -> None:
    plan = Plan(30.0, seed=1, size=1, pods_most=150, trouble_seconds=1.0, kill_seconds=10.0)
    figures, wrongs = await soak(plan)
    assert wrongs == []
    assert figures["nodes"] > 40
    assert figures["pods"]["running"] > 20
    assert figures["replicas"]
    assert len(figures["troubles"]) > 5
