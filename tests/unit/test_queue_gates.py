"""Workloads that are not tried before somebody has agreed, and those for which nobody may be evicted."""

from __future__ import annotations

from scheduler.api import names
from scheduler.api.door.workload_decisions import Admit, Preempt, Queued
from scheduler.engine.questions.queues import WhyNoQuota
from tests.model.queue_shell import QueueShell
from tests.oracles.kueue import cases
from tests.unit.test_queue_lifecycles import QUEUE, make, put


def gate(shell: QueueShell, name: str, text: str | None) -> None:
    shell.patch(name, metadata={"annotations": {names.KUEUE_GATED: text}})


async def test_a_workload_is_tried_once_all_have_agreed() -> None:
    shell = make()
    body = cases.make_workload("team/w", {"in": "q", "asks": {"cpu": 1}})
    body["metadata"]["annotations"] = {names.KUEUE_GATED: "a.io/one,a.io/two"}
    shell.put(body)
    said = "Admission is gated by: a.io/one,a.io/two"
    assert await shell.settle() == [Queued("team/w", "uid-w", "AdmissionGated", said)]
    assert "admission" not in shell.get("w")["status"]
    gate(shell, "w", "a.io/two")
    said = "Admission is gated by: a.io/two"
    assert await shell.settle() == [Queued("team/w", "uid-w", "AdmissionGated", said)]
    gate(shell, "w", None)
    (decision,) = await shell.settle()
    assert isinstance(decision, Admit)
    # One that has quota keeps it, whatever is written then.
    gate(shell, "w", "a.io/late")
    assert await shell.settle() == []
    assert "admission" in shell.get("w")["status"]


async def test_so_many_who_have_to_agree_are_named_as_a_message_can_show() -> None:
    shell = make()
    body = cases.make_workload("team/w", {"in": "q", "asks": {"cpu": 1}})
    wide = ",".join(f"a.io/{i}" for i in range(5000))
    body["metadata"]["annotations"] = {names.KUEUE_GATED: wide}
    shell.put(body)
    (decision,) = await shell.settle()
    assert isinstance(decision, Queued)
    assert decision.message.startswith("Admission is gated by: a.io/0,a.io/1,")
    assert len(decision.message) < 1024
    found = shell.engine.ask(WhyNoQuota("team/w"))
    assert found is not None
    assert (found.verdict, found.message) == ("aside", decision.message)
    gate(shell, "w", None)
    (admitted,) = await shell.settle()
    assert isinstance(admitted, Admit)


async def test_one_that_all_have_agreed_to_says_so_while_it_waits_with_others() -> None:
    shell = make("first", "second", cpu=3)
    await shell.settle()
    body = cases.make_workload("team/w", {"in": "q", "asks": {"cpu": 3}})
    body["metadata"]["annotations"] = {names.KUEUE_GATED: "a.io/one"}
    shell.put(body)
    await shell.settle()
    gate(shell, "w", None)
    said = "AdmissionGatedBy cleared, waiting for quota reservation"
    assert await shell.settle() == [Queued("team/w", "uid-w", "PendingEvaluation", said)]


async def test_what_has_to_be_mended_comes_before_those_who_have_to_agree() -> None:
    shell = make()
    body = cases.make_workload("team/w", {"in": "nowhere", "asks": {"cpu": 1}})
    body["metadata"]["annotations"] = {names.KUEUE_GATED: "a.io/one"}
    shell.put(body)
    said = "LocalQueue nowhere doesn't exist"
    assert await shell.settle() == [Queued("team/w", "uid-w", "Misconfigured", said)]


async def test_nobody_is_evicted_for_a_workload_while_one_of_its_gates_is_closed() -> None:
    shell = make()
    shell.put(cases.make_queue("q", {**QUEUE, "within": "LowerPriority"}))
    put(shell, "low", 4)
    await shell.settle()
    put(shell, "high", 4, priority=5, preemptionGates=[{"name": "a"}, {"name": "b"}])
    said = "Workload requires preemption, but it's gated"
    assert await shell.settle() == [Queued("team/high", "uid-high", "AdmissionGated", said)]
    found = shell.engine.ask(WhyNoQuota("team/high"))
    assert found is not None
    assert (found.verdict, found.reason, found.message) == ("waits", "AdmissionGated", said)
    since = {"lastTransitionTime": "2027-01-15T08:00:00Z"}
    states = [
        {"name": "a", "position": "Open", **since},
        {"name": "b", "position": "Closed", **since},
    ]
    shell.patch("high", status={"preemptionGates": states})
    assert await shell.settle() == []
    # One that is like it, but has no gate, is tried all the same.
    put(shell, "other", 5, priority=5)
    (decision,) = await shell.settle()
    assert isinstance(decision, Queued)
    states[1]["position"] = "Open"
    shell.patch("high", status={"preemptionGates": states})
    made = await shell.settle()
    assert [type(one) for one in made] == [Preempt, Queued]
    assert shell.list_conditions("low")["Preempted"] == ("True", "InClusterQueue")
