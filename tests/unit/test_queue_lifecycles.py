"""What becomes of workloads by themselves: too late, too long, refused, deactivated, and put back into their queues."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.api.door import events
from scheduler.api.door.workload_decisions import (
    Admit,
    Deactivate,
    EvictWorkload,
    Queued,
    Requeue,
    Unreserve,
)
from scheduler.engine.questions.queues import IsObjectInUse
from scheduler.kube.queues import writer
from tests.model.queue_shell import QueueShell
from tests.oracles.kueue import cases

QUEUE: dict[str, Any] = {"quotas": [{"plain": {"cpu": 4}}]}
READY = {"timeout": "5m", "recoveryTimeout": "3m"}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is reported later."""
    for name in ("_BEHIND_SECONDS", "_FIRST_SECONDS", "_POLL_SECONDS"):
        monkeypatch.setattr(writer, name, 0.001)


def make(*names: str, cpu: int = 1, ready: Any = None, **more: Any) -> QueueShell:
    """Make a queue of four cores with some workloads."""
    shell = QueueShell(**({} if ready is None else {"waitForPodsReady": ready}))
    fields: dict[str, Any] = {"queues": {"q": QUEUE}}
    for body in cases.make_objects(fields):
        if body["kind"] != "Namespace":
            shell.put(body)
    shell.put(cases.make_local_queue("team/q", "q"))
    for name in names:
        put(shell, name, cpu, **more)
    return shell


def put(shell: QueueShell, name: str, cpu: int = 1, **more: Any) -> None:
    body = cases.make_workload(f"team/{name}", {"in": "q", "asks": {"cpu": cpu}})
    body["spec"] |= more
    shell.put(body)


def stop(shell: QueueShell, policy: str) -> None:
    shell.put(cases.make_queue("q", {**QUEUE, "stop": policy}))


async def test_pods_that_are_not_ready_in_time_cost_the_quota_and_the_place() -> None:
    shell = make("w", ready=READY)
    await shell.settle()
    shell.set_condition("w", "PodsReady", "False", "WaitForStart")
    assert await shell.settle(299) == []
    (decision,) = await shell.settle(1)
    assert isinstance(decision, EvictWorkload)
    status = shell.get("w")["status"]
    assert shell.list_conditions("w")["Evicted"] == ("True", "PodsReadyTimeout")
    evictions = [{"reason": "PodsReadyTimeout", "underlyingCause": "WaitForStart", "count": 1}]
    assert status["schedulingStats"] == {"evictions": evictions}
    assert status["requeueState"] == {"count": 1, "requeueAt": "2027-01-15T08:06:00Z"}
    said = "Exceeded the PodsReady timeout team/w"
    assert shell.said[-1] == ("w", "EvictedDueToPodsReadyTimeout", said)
    # The quota stays until the job has stopped.
    assert "admission" in status
    shell.end_job("w")
    assert await shell.settle(59) == []
    assert shell.list_conditions("w")["Requeued"] == ("False", "PodsReadyTimeout")
    back, again = await shell.settle(1)
    assert isinstance(back, Requeue)
    assert isinstance(again, Admit)
    assert shell.list_conditions("w")["Requeued"] == ("True", "BackoffFinished")
    assert shell.list_conditions("w")["Evicted"] == ("False", "QuotaReserved")
    assert shell.get("w")["status"]["requeueState"] == {"count": 1}


async def test_each_wait_is_twice_as_long_until_the_last_one() -> None:
    strategy = {"backoffBaseSeconds": 10, "backoffMaxSeconds": 25, "backoffLimitCount": 3}
    shell = make("w", ready={**READY, "requeuingStrategy": strategy})
    waits = []
    await shell.settle()
    for _ in range(3):
        at = shell.now + 300
        await shell.settle(300)
        shell.end_job("w")
        for _ in range(40):
            await shell.settle(1)
            if "admission" in shell.get("w")["status"]:
                break
        waits.append(shell.now - at)
    assert waits == [10, 20, 25]
    # A fourth time is too often.
    target, decision = await shell.settle(300)
    assert isinstance(target, Deactivate)
    assert isinstance(decision, EvictWorkload)
    found = shell.get("w")
    assert found["spec"]["active"] is False
    reason = "DeactivatedDueToRequeuingLimitExceeded"
    assert shell.list_conditions("w")["Evicted"] == ("True", reason)
    assert "DeactivationTarget" not in shell.list_conditions("w")
    assert "requeueState" not in found["status"]
    message = (
        "The workload is deactivated due to exceeding the maximum number of re-queuing retries"
    )
    assert shell.said[-1] == ("w", f"EvictedDueTo{reason}", message)
    assert found["status"]["schedulingStats"]["evictions"] == [
        {"reason": "PodsReadyTimeout", "underlyingCause": "WaitForStart", "count": 3},
        {"reason": "Deactivated", "underlyingCause": "RequeuingLimitExceeded", "count": 1},
    ]


async def test_pods_that_come_back_in_time_cost_nothing() -> None:
    shell = make("w", ready=READY)
    await shell.settle()
    shell.set_condition("w", "PodsReady", "True", "Started")
    assert await shell.settle(1000) == []
    shell.set_condition("w", "PodsReady", "False", "WaitForRecovery")
    assert await shell.settle(179) == []
    shell.set_condition("w", "PodsReady", "True", "Recovered")
    assert await shell.settle(1000) == []
    shell.set_condition("w", "PodsReady", "False", "WaitForRecovery")
    await shell.settle()
    (decision,) = await shell.settle(180)
    assert isinstance(decision, EvictWorkload)
    assert decision.cause == "WaitForRecovery"


@pytest.mark.parametrize("ready", [None, {"enable": False}, {"recoveryTimeout": "0s"}])
async def test_pods_may_take_as_long_as_they_need_where_no_time_is_set(ready: Any) -> None:
    shell = make("w", ready=ready)
    await shell.settle()
    shell.set_condition("w", "PodsReady", "False", "WaitForRecovery")
    assert await shell.settle(1e6) == []


async def test_admission_waits_until_the_pods_of_all_others_are_ready() -> None:
    shell = make("a", "b", "c", ready={**READY, "blockAdmission": True})
    decisions = await shell.settle()
    assert [one.key for one in decisions if isinstance(one, Admit)] == ["team/a"]
    waits = {one.key: (one.reason, one.message) for one in decisions if isinstance(one, Queued)}
    said = "waiting for all admitted workloads to be in PodsReady condition"
    assert waits == {"team/b": ("WaitingForPodsReady", said)}
    shell.set_condition("a", "PodsReady", "True", "Started")
    decisions = await shell.settle(1)
    assert [one.key for one in decisions if isinstance(one, Admit)] == ["team/b"]
    # One that has ended is waited for no longer.
    shell.set_condition("b", "Finished", "True", "Succeeded")
    decisions = await shell.settle(1)
    assert [one.key for one in decisions if isinstance(one, Admit)] == ["team/c"]


async def test_a_workload_runs_no_longer_than_it_may_in_all() -> None:
    shell = make("w", cpu=3, maximumExecutionTimeSeconds=100)
    await shell.settle()
    # After 60 seconds its queue is stopped for a while.
    await shell.settle(60)
    stop(shell, "HoldAndDrain")
    await shell.settle()
    shell.end_job("w")
    await shell.settle()
    assert shell.get("w")["status"]["accumulatedPastExecutionTimeSeconds"] == 60
    stop(shell, "None")
    await shell.settle(500)
    assert shell.list_conditions("w")["Requeued"] == ("True", "ClusterQueueRestarted")
    assert shell.list_conditions("w")["Admitted"] == ("True", "Admitted")
    assert await shell.settle(39) == []
    target, decision = await shell.settle(1)
    assert isinstance(target, Deactivate)
    assert isinstance(decision, EvictWorkload)
    reason = "DeactivatedDueToMaximumExecutionTimeExceeded"
    assert shell.list_conditions("w")["Evicted"] == ("True", reason)
    found = shell.get("w")
    assert found["spec"]["active"] is False
    assert "accumulatedPastExecutionTimeSeconds" not in found["status"]
    assert shell.said[-2:] == [
        ("w", "MaximumExecutionTimeExceeded", "The maximum execution time (100s) exceeded"),
        (
            "w",
            f"EvictedDueTo{reason}",
            "The workload is deactivated due to exceeding the maximum execution time",
        ),
    ]


async def test_what_waits_and_is_deactivated_says_so_and_comes_back() -> None:
    shell = make("a", "b", cpu=4)
    await shell.settle()
    shell.patch("b", spec={"active": False})
    n_said = len(shell.said)
    await shell.settle()
    assert shell.list_conditions("b")["Evicted"] == ("True", "Deactivated")
    assert shell.said[n_said:] == []
    shell.patch("b", spec={"active": True})
    shell.set_condition("a", "Finished", "True", "Succeeded")
    decisions = await shell.settle()
    assert [one.key for one in decisions if isinstance(one, Admit)] == ["team/b"]


@pytest.mark.parametrize(
    ("which", "policy", "reason", "message"),
    [
        ("cluster", "Hold", "Suspended", "ClusterQueue q is stopped"),
        ("local", "HoldAndDrain", "Suspended", "LocalQueue q is stopped"),
        ("cluster", "", "Misconfigured", "ClusterQueue q is terminating or missing"),
        ("local", "", "Misconfigured", "LocalQueue q is terminating or missing"),
    ],
)
async def test_what_was_not_let_start_gives_its_quota_back_at_once(
    which: str, policy: str, reason: str, message: str
) -> None:
    """Its job has never started, so nothing has to stop; an empty policy: the queue is being deleted."""
    shell = make("w")
    await shell.settle()
    shell.set_condition("w", "Admitted", "False", "UnsatisfiedAdmissionChecks")
    await shell.settle()
    body = cases.make_queue("q", QUEUE) if which == "cluster" else cases.make_local_queue("team/q", "q")  # fmt: skip
    body["spec"]["stopPolicy"] = policy or "None"
    if not policy:
        body["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    shell.put(body)
    (decision, *_) = await shell.settle()
    assert isinstance(decision, Unreserve)
    status = shell.get("w")["status"]
    assert "admission" not in status
    (reserved,) = [one for one in status["conditions"] if one["type"] == "QuotaReserved"]
    assert (reserved["status"], reserved["reason"], reserved["message"]) == (
        "False",
        reason,
        message,
    )
    assert "Evicted" not in shell.list_conditions("w")


async def test_a_queue_that_is_being_deleted_lets_nobody_in_and_sends_nobody_away() -> None:
    shell = make("runs", cpu=3)
    await shell.settle()
    body = cases.make_queue("q", QUEUE)
    body["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    shell.put(body)
    put(shell, "late")
    decisions = await shell.settle(10)
    assert not any(isinstance(one, Admit | EvictWorkload) for one in decisions)
    assert "admission" in shell.get("runs")["status"]


async def test_a_local_queue_that_is_opened_again_takes_its_workloads_back() -> None:
    shell = make("w")
    await shell.settle()
    body = cases.make_local_queue("team/q", "q")
    body["spec"]["stopPolicy"] = "HoldAndDrain"
    shell.put(body)
    await shell.settle()
    assert shell.list_conditions("w")["Evicted"] == ("True", "LocalQueueStopped")
    shell.end_job("w")
    await shell.settle(100)
    assert "admission" not in shell.get("w")["status"]
    shell.put(cases.make_local_queue("team/q", "q"))
    await shell.settle()
    assert shell.list_conditions("w")["Requeued"] == ("True", "LocalQueueRestarted")
    assert "admission" in shell.get("w")["status"]


async def test_a_step_is_written_although_others_write_meanwhile() -> None:
    shell = make("w", maximumExecutionTimeSeconds=5)
    await shell.settle()
    shell.n_refused = 3
    await shell.settle(5)
    assert shell.get("w")["spec"]["active"] is False
    assert shell.list_conditions("w")["Evicted"][0] == "True"


async def test_a_new_process_goes_on_where_the_old_one_ended() -> None:
    """Between the two writes that deactivate a workload, and while another one waits for its time."""
    shell = make("half", "late", ready=READY, cpu=1)
    await shell.settle()
    shell.set_condition("half", "DeactivationTarget", "True", "RequeuingLimitExceeded")
    shell.patch("late", status={"requeueState": {"count": 3}})
    again = make(ready=READY)
    again.now = shell.now
    for name in ("half", "late"):
        body = shell.get(name)
        again.put(body)
    await again.settle(1)
    assert again.get("half")["spec"]["active"] is False
    reason = "DeactivatedDueToRequeuingLimitExceeded"
    assert again.list_conditions("half")["Evicted"] == ("True", reason)
    await again.settle(299)
    # The fourth wait: 60 seconds, doubled three times.
    state = again.get("late")["status"]["requeueState"]
    assert state == {"count": 4, "requeueAt": "2027-01-15T08:13:00Z"}


async def test_a_deleted_queue_is_in_use_until_its_workloads_have_ended() -> None:
    shell = make("w")
    await shell.settle()
    question = IsObjectInUse("ClusterQueue", "q")
    assert shell.engine.ask(question)
    shell.set_condition("w", "Finished", "True", "Succeeded")
    await shell.settle()
    assert not shell.engine.ask(question)


def put_class(shell: QueueShell, value: int) -> None:
    kind = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass"}
    shell.put({**kind, "metadata": {"name": "high"}, "value": value})


async def test_workloads_follow_their_class_and_keep_its_value_when_it_is_gone() -> None:
    ref = {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}
    of_pods = {**ref, "group": "scheduling.k8s.io", "kind": "PriorityClass"}
    shell = make("runs", cpu=4, priorityClassRef=ref, priority=1)
    await shell.settle()
    put(shell, "waits", 4, priorityClassRef=ref, priority=1)
    put(shell, "other", 4, priorityClassRef=of_pods, priority=1)
    await shell.settle()
    put_class(shell, 7)
    await shell.settle()

    def list_priorities() -> list[int]:
        return [shell.get(name)["spec"]["priority"] for name in ("runs", "waits", "other")]

    assert list_priorities() == [7, 7, 1]
    # Nobody has to give quota back for that.
    assert "admission" in shell.get("runs")["status"]
    assert not shell.engine._queues.tenants.works["team/runs"].is_going
    put_class(shell, 9)
    shell.n_refused = 1
    await shell.settle()
    assert list_priorities() == [9, 9, 1]
    shell.engine.handle(events.Gone("WorkloadPriorityClass", "high"), shell.now)
    shell.patch("waits", spec={"priority": 3})
    assert [one.key for one in await shell.settle() if not isinstance(one, Queued)] == []
    assert list_priorities() == [9, 3, 1]
