"""Admission checks: what becomes of workloads by their states, and when the checks of a queue change.

Source of cases: Kueue's ``syncAdmissionCheckConditions`` and its tests, in our own words.
"""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.api.door.workload_decisions import (
    Admit,
    Deactivate,
    EvictWorkload,
    Requeue,
    SyncChecks,
)
from scheduler.kube.queues import writer
from tests.model.queue_shell import QueueShell
from tests.oracles.kueue import cases
from tests.unit.test_queue_lifecycles import QUEUE, make, put


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is reported later."""
    for name in ("_BEHIND_SECONDS", "_FIRST_SECONDS", "_POLL_SECONDS"):
        monkeypatch.setattr(writer, name, 0.001)


def require(shell: QueueShell, *names: str, on: dict[str, list[str]] | None = None) -> None:
    """Let the queue have admission checks; ``on``: for which flavors only."""
    for name in names:
        spec = {"controllerName": "ours"}
        active = {"conditions": [{"type": "Active", "status": "True"}]}
        shell.put({"kind": "AdmissionCheck", "metadata": {"name": name}, "spec": spec, "status": active})  # fmt: skip
    body = cases.make_queue("q", QUEUE)
    rules = [{"name": name, "onFlavors": (on or {}).get(name, [])} for name in names]
    body["spec"]["admissionChecksStrategy"] = {"admissionChecks": rules}
    shell.put(body)


def make_checks(**states: str) -> list[dict[str, Any]]:
    since = "2027-01-15T08:00:00Z"
    return [
        {"name": name, "state": state, "message": "no money", "lastTransitionTime": since}
        for name, state in states.items()
    ]


def list_states(shell: QueueShell, name: str = "w") -> dict[str, str]:
    checks = shell.get(name)["status"].get("admissionChecks") or ()
    return {one["name"]: one["state"] for one in checks}


async def test_a_new_check_is_pending_and_one_that_the_queue_has_no_longer_is_dropped() -> None:
    shell = make("w")
    require(shell, "budget", "other")
    await shell.settle()
    assert list_states(shell) == {"budget": "Pending", "other": "Pending"}
    shell.patch("w", status={"admissionChecks": make_checks(budget="Ready", other="Pending")})
    assert await shell.settle() == []
    require(shell, "budget", "late")
    (decision,) = await shell.settle()
    assert decision == SyncChecks("team/w", "uid-w", ("budget", "late"), has_quota=True)
    assert list_states(shell) == {"budget": "Ready", "late": "Pending"}
    # What is kept is as it was.
    assert shell.get("w")["status"]["admissionChecks"][0] == make_checks(budget="Ready")[0]
    assert await shell.settle() == []
    require(shell)
    await shell.settle()
    assert list_states(shell) == {}
    assert "admission" in shell.get("w")["status"]


async def test_a_workload_that_runs_stays_admitted_until_a_new_check_fails() -> None:
    shell = make("w")
    await shell.settle()
    assert shell.list_conditions("w")["Admitted"] == ("True", "Admitted")
    require(shell, "budget")
    await shell.settle()
    assert list_states(shell) == {"budget": "Pending"}
    assert shell.list_conditions("w")["Admitted"] == ("True", "Admitted")
    shell.patch("w", status={"admissionChecks": make_checks(budget="Retry")})
    (decision,) = await shell.settle()
    assert isinstance(decision, EvictWorkload)
    assert shell.list_conditions("w")["Evicted"] == ("True", "AdmissionCheck")


@pytest.mark.parametrize("state", ["Retry", "Rejected"])
async def test_a_check_that_the_queue_has_no_longer_ends_nothing(state: str) -> None:
    shell = make("w")
    await shell.settle()
    shell.patch("w", status={"admissionChecks": make_checks(gone=state)})
    decisions = await shell.settle()
    assert [type(one) for one in decisions] == [SyncChecks]
    assert list_states(shell) == {}


async def test_a_check_of_some_flavors_is_for_those_who_have_them() -> None:
    shell = make("w")
    require(shell, "here", "there", on={"here": ["plain"], "there": ["other"]})
    await shell.settle()
    assert list_states(shell) == {"here": "Pending"}
    require(shell, "here", "there", on={"here": ["other"], "there": ["plain"]})
    await shell.settle()
    assert list_states(shell) == {"there": "Pending"}


async def test_one_that_waits_is_no_longer_held_by_a_check_that_its_queue_dropped() -> None:
    shell = make()
    require(shell, "budget")
    put(shell, "w")
    shell.patch("w", status={"admissionChecks": make_checks(budget="Rejected")})
    assert not [one for one in await shell.settle() if isinstance(one, Admit | SyncChecks)]
    require(shell)
    decisions = await shell.settle()
    assert [type(one) for one in decisions if isinstance(one, Admit | SyncChecks)] == [
        SyncChecks,
        Admit,
    ]
    assert shell.list_conditions("w")["Admitted"] == ("True", "Admitted")


async def test_the_checks_of_another_flavor_go_with_the_next_quota() -> None:
    """It was evicted, and the check of its first flavor is still listed."""
    shell = make("w")
    require(shell, "here", "there", on={"here": ["plain"], "there": ["other"]})
    body: dict[str, Any] = cases.make_workload("team/v", {"in": "q", "asks": {"cpu": 1}})
    shell.put(body)
    shell.patch("v", status={"admissionChecks": make_checks(there="Pending")})
    decisions = await shell.settle()
    assert list_states(shell, "v") == {"here": "Pending"}
    assert not [one for one in decisions if isinstance(one, SyncChecks | Deactivate | Requeue)]


async def test_a_workload_that_a_check_rejects_is_deactivated_for_good() -> None:
    shell = make("w")
    require(shell, "budget", "other")
    await shell.settle()
    shell.patch("w", status={"admissionChecks": make_checks(budget="Rejected", other="Ready")})
    target, decision = await shell.settle(1)
    assert isinstance(target, Deactivate)
    assert isinstance(decision, EvictWorkload)
    found = shell.get("w")
    assert found["spec"]["active"] is False
    reason, why = "DeactivatedDueToAdmissionCheck", 'AdmissionCheck in Rejected state: "budget" (no money)'  # fmt: skip
    assert shell.list_conditions("w")["Evicted"] == ("True", reason)
    assert shell.said[-2:] == [
        ("w", "AdmissionCheckRejected", f"Deactivated due to {why}"),
        ("w", f"EvictedDueTo{reason}", f"The workload is deactivated due to {why}"),
    ]
    # All checks are to be passed anew, if a person ever wants that.
    assert {one["state"] for one in found["status"]["admissionChecks"]} == {"Pending"}
    shell.end_job("w")
    await shell.settle()
    assert shell.list_conditions("w")["Requeued"] == ("False", reason)
    shell.patch("w", spec={"active": True})
    decisions = await shell.settle(1)
    assert [type(one) for one in decisions] == [Requeue, Admit]
    assert shell.list_conditions("w")["Requeued"] == ("True", "Reactivated")


async def test_a_check_says_when_it_wants_to_be_tried_again() -> None:
    shell = make("w")
    require(shell, "budget")
    await shell.settle()
    (check,) = make_checks(budget="Retry")
    shell.patch("w", status={"admissionChecks": [check | {"requeueAfterSeconds": 90}]})
    await shell.settle()
    status = shell.get("w")["status"]
    assert status["requeueState"] == {"requeueAt": "2027-01-15T08:01:30Z"}
    (checked,) = status["admissionChecks"]
    assert (checked["state"], checked["retryCount"]) == ("Pending", 1)
    shell.end_job("w")
    await shell.settle(89)
    assert "admission" not in shell.get("w")["status"]
    await shell.settle(1)
    assert shell.list_conditions("w")["Requeued"] == ("True", "BackoffFinished")
    assert "admission" in shell.get("w")["status"]
