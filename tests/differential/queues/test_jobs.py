"""A job lets go of its quota as Kueue's own jobs do."""

from __future__ import annotations

from typing import Any

from tests.differential.queues import jobs
from tests.differential.queues.outcomes import Eviction, Fate, PodSet

Json = dict[str, Any]
THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-01T00:10:00Z"
MESSAGE = "Preempted to accommodate a workload (UID: 1-2, JobUID: UNKNOWN) due to prioritization"


def workload(*conditions: tuple[str, str, str, str], admission: Json | None = None) -> Json:
    found = [
        {"type": kind, "status": status, "reason": reason, "message": text, "lastTransitionTime": THEN}
        for kind, status, reason, text in conditions
    ]  # fmt: skip
    status: Json = {"conditions": found}
    if admission is not None:
        status["admission"] = admission
    return {"metadata": {"name": "a"}, "status": status}


ADMITTED = (
    ("QuotaReserved", "True", "QuotaReserved", ""),
    ("Admitted", "True", "Admitted", ""),
)
EVICTED = ("Evicted", "True", "Preempted", MESSAGE)
PREEMPTED = ("Preempted", "True", "InClusterQueue", MESSAGE)


def test_who_is_evicted_lets_go_and_waits_again() -> None:
    before = workload(*ADMITTED, EVICTED, PREEMPTED, admission={"clusterQueue": "queue-0"})
    assert jobs.must_let_go(before)
    after = jobs.let_go(before, NOW)
    assert after["status"]["admission"] is None
    for kind, status, at in (
        ("Requeued", "True", NOW),
        ("QuotaReserved", "False", NOW),
        ("Admitted", "False", NOW),
        ("Evicted", "True", THEN),
    ):
        found = jobs.find_condition(after, kind)
        assert (found["status"], found["lastTransitionTime"]) == (status, at), kind
    assert jobs.find_condition(after, "QuotaReserved")["message"] == MESSAGE
    assert not jobs.must_let_go(after)


def test_who_is_not_preempted_waits_until_kueue_says_so() -> None:
    before = workload(*ADMITTED, ("Evicted", "True", "ClusterQueueStopped", "it is stopped"))
    after = jobs.let_go(before, NOW)
    assert jobs.find_condition(after, "Requeued")["status"] == "False"


def test_an_eviction_names_who_came_instead() -> None:
    found = jobs.read_eviction(workload(EVICTED, PREEMPTED), 2, {"1-2": "b"})
    assert found == Eviction(2, "a", "Preempted", "InClusterQueue", "b")
    stopped = workload(("Evicted", "True", "Deactivated", "it is not active"), PREEMPTED)
    assert jobs.read_eviction(stopped, 0, {}) == Eviction(0, "a", "Deactivated")


def test_a_fate_is_read_from_the_status() -> None:
    assert jobs.read_fate({"metadata": {"name": "a"}}) == Fate("pending")
    waits = workload(("QuotaReserved", "False", "Pending", "1 more needed"))
    assert jobs.read_fate(waits) == Fate("pending", reason="Pending", message="1 more needed")
    one = {"name": "set-0", "count": 2, "flavors": {"cpu": "flavor-0"}}
    admission = {"clusterQueue": "queue-0", "podSetAssignments": [one]}
    runs = workload(*ADMITTED, admission=admission)
    pod_sets = [PodSet("set-0", 2, {"cpu": "flavor-0"})]
    assert jobs.read_fate(runs) == Fate("admitted", "queue-0", pod_sets)
    assert jobs.read_fate(runs | jobs.finish(runs, NOW)) == Fate("finished")
