"""A resource that a queue has no quota of keeps a workload from it, unless it is set that it needs none."""

from __future__ import annotations

import pytest

from scheduler.api.door.workload_decisions import Admit, Queued
from tests.model.queue_shell import QueueShell
from tests.oracles.kueue import cases


@pytest.mark.parametrize("ignores", [False, True])
async def test_resources_without_quota_need_none_only_if_that_is_set(ignores: bool) -> None:
    """Source: Kueue's ``flavorassigner.go``, where ``IgnoreUndeclaredResources`` is asked."""
    word = "IgnoreUndeclared" if ignores else "BlockUndeclared"
    shell = QueueShell(resources={"quotaCheckStrategy": word})
    for body in cases.make_objects({"queues": {"q": {"quotas": [{"plain": {"cpu": 4}}]}}}):
        if body["kind"] != "Namespace":
            shell.put(body)
    shell.put(cases.make_local_queue("team/q", "q"))
    for name, asks in (("w", {"cpu": 3, "example.com/nic": 2}), ("free", {"example.com/nic": 9})):
        shell.put(cases.make_workload(f"team/{name}", {"in": "q", "asks": asks}))
    made = await shell.settle()
    if not ignores:
        assert all(isinstance(one, Queued) for one in made)
        assert {one.reason for one in made if isinstance(one, Queued)} == {"NoMatchingFlavor"}
        return
    found = {one.key: one.sets[0] for one in made if isinstance(one, Admit)}
    assert dict(found["team/w"].flavors) == {"cpu": "plain"}
    assert found["team/free"].flavors == ()
    # What is declared counts as before.
    shell.put(cases.make_workload("team/more", {"in": "q", "asks": {"cpu": 2}}))
    (queued,) = await shell.settle()
    assert isinstance(queued, Queued)
    assert queued.reason == "WaitingForQuota"
