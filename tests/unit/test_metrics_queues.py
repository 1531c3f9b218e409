"""Metrics of Kueue's queues: what happens to workloads, and how queues are, in Kueue's names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from prometheus_client import Metric

from scheduler.api import names
from scheduler.api.door import events
from scheduler.engine.questions.queues import (
    KnownQueues,
    QueueFigures,
    QueueStanding,
    QuotaUse,
    StatusesOfQueues,
)
from scheduler.kube.queues import writer
from scheduler.kube.report.metrics.queues import QueueCounts, collect_locals, collect_standings
from tests.make import node as make_node
from tests.model.queue_shell import QueueShell
from tests.oracles.kueue import cases

QUEUE: dict[str, Any] = {
    "quotas": [{"plain": {"cpu": 4}}],
    "cohort": "all",
    "within": "LowerPriority",
}
_ACTIVE = {"type": "Active", "status": "True", "reason": "Active", "message": ""}
CHECK: dict[str, Any] = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "AdmissionCheck",
    "metadata": {"name": "c"},
    "spec": {"controllerName": "example.com/budget"},
    "status": {"conditions": [_ACTIVE | {"lastTransitionTime": "2026-01-01T00:00:00Z"}]},
}
Found = dict[tuple[str, tuple[str, ...]], float]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is reported later."""
    for name in ("_BEHIND_SECONDS", "_FIRST_SECONDS", "_POLL_SECONDS"):
        monkeypatch.setattr(writer, name, 0.001)


def make(**more: Any) -> QueueShell:
    shell = QueueShell()
    for body in cases.make_objects({"queues": {"q": QUEUE | more}}):
        if body["kind"] != "Namespace":
            shell.put(body)
    shell.put(cases.make_local_queue("team/q", "q"))
    return shell


def put(shell: QueueShell, name: str, cpu: int, priority: int = 0, namespace: str = "team") -> None:
    asked = {"in": "q", "asks": {"cpu": cpu}, "priority": priority}
    shell.put(cases.make_workload(f"{namespace}/{name}", asked))


def put_ours(shell: QueueShell, name: str, cpu: int) -> None:
    """Make a workload whose pod is placed by Evenkeel: it takes quota only with a place."""
    made = cases.make_workload(f"team/{name}", {"in": "q", "asks": {"cpu": cpu}})
    for one in made["spec"]["podSets"]:
        one["template"]["spec"]["schedulerName"] = names.SCHEDULER
    shell.put(made)


def read(metrics: Any) -> Found:
    """Read samples by name and label values, without buckets."""
    found: list[Metric] = [*metrics]
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for metric in found
        for sample in metric.samples
        if not sample.name.endswith("_bucket")
    }


def read_figures(shell: QueueShell) -> Sequence[QueueFigures]:
    """Read the figures of statuses, in all their steps."""
    steps = shell.engine.ask(StatusesOfQueues())
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return tuple(end.value)


async def test_what_happens_to_workloads_is_counted_once_each() -> None:
    shell = make()
    put(shell, "low", 3)
    shell.now += 7
    await shell.settle()
    found = read(shell.counts.collect())
    assert found["kueue_quota_reserved_workloads_total", ("q",)] == 1
    assert found["kueue_quota_reserved_wait_time_seconds_sum", ("q",)] == 7
    assert found["kueue_admitted_workloads_total", ("q",)] == 1
    assert found["kueue_admission_wait_time_seconds_sum", ("q",)] == 7
    assert not [name for name, _ in found if "evicted" in name or "checks" in name]
    put(shell, "high", 2, priority=5)
    await shell.settle(1)
    found = read(shell.counts.collect())
    assert found["kueue_evicted_workloads_total", ("q", "Preempted", "")] == 1
    assert found["kueue_preempted_workloads_total", ("q", "InClusterQueue")] == 1
    assert found["kueue_admitted_workloads_total", ("q",)] == 1
    shell.end_job("low")
    await shell.settle(4)
    found = read(shell.counts.collect())
    assert found["kueue_quota_reserved_workloads_total", ("q",)] == 2
    assert found["kueue_quota_reserved_wait_time_seconds_sum", ("q",)] == 7 + 5


async def test_the_time_for_checks_is_counted_apart() -> None:
    shell = make()
    queue = cases.make_queue("q", QUEUE)
    queue["spec"]["admissionChecksStrategy"] = {"admissionChecks": [{"name": "c"}]}
    shell.put(queue)
    shell.put(CHECK)
    put(shell, "w", 1)
    await shell.settle(2)
    found = read(shell.counts.collect())
    assert found["kueue_quota_reserved_workloads_total", ("q",)] == 1
    assert not [name for name, _ in found if "admitted" in name]
    await shell.let_run("w", 9)
    found = read(shell.counts.collect())
    assert found["kueue_admitted_workloads_total", ("q",)] == 1
    assert found["kueue_admission_wait_time_seconds_sum", ("q",)] == 11
    assert found["kueue_admission_checks_wait_time_seconds_sum", ("q",)] == 9


async def test_a_scrape_says_how_queues_are() -> None:
    shell = make()
    put(shell, "w", 3)
    await shell.settle()
    put(shell, "big", 5)
    await shell.settle()
    put(shell, "next", 1)
    found = read(collect_standings(shell.engine.ask(KnownQueues())))
    assert found["kueue_pending_workloads", ("q", "active")] == 1
    assert found["kueue_pending_workloads", ("q", "inadmissible")] == 1
    assert found["kueue_reserving_active_workloads", ("q",)] == 1
    assert found["kueue_admitted_active_workloads", ("q",)] == 1
    assert found["kueue_cluster_queue_status", ("q", "active")] == 1
    assert found["kueue_cluster_queue_status", ("q", "pending")] == 0
    # Cores, not thousandths of them.
    where = ("all", "q", "plain", "cpu")
    assert found["kueue_cluster_queue_nominal_quota", where] == 4
    assert found["kueue_cluster_queue_resource_reservation", where] == 3
    assert found["kueue_cluster_queue_resource_usage", where] == 3
    assert found["kueue_cluster_queue_borrowing_limit", where] == math.inf
    assert found["kueue_cluster_queue_lending_limit", where] == math.inf
    assert found["evenkeel_cluster_queue_borrowed", where] == 0
    assert found["kueue_cluster_queue_weighted_share", ("q", "all")] == 0
    assert found["kueue_cohort_weighted_share", ("all",)] == 0


async def test_what_waits_for_a_check_has_quota_and_uses_nothing() -> None:
    shell = make(quotas=[{"plain": {"cpu": "4 borrow 2 lend 1"}}])
    put(shell, "runs", 1)
    await shell.settle()
    queue = cases.make_queue("q", QUEUE | {"quotas": [{"plain": {"cpu": "4 borrow 2 lend 1"}}]})
    queue["spec"]["admissionChecksStrategy"] = {"admissionChecks": [{"name": "c"}]}
    shell.put(queue)
    shell.put(CHECK)
    put(shell, "checked", 2)
    await shell.settle()
    found = read(collect_standings(shell.engine.ask(KnownQueues())))
    where = ("all", "q", "plain", "cpu")
    assert found["kueue_cluster_queue_resource_reservation", where] == 3
    assert found["kueue_cluster_queue_resource_usage", where] == 1
    assert found["kueue_cluster_queue_borrowing_limit", where] == 2
    assert found["kueue_cluster_queue_lending_limit", where] == 1
    found = read(collect_locals(read_figures(shell)))
    assert found["kueue_local_queue_resource_reservation", ("q", "team", "plain", "cpu")] == 3
    assert found["kueue_local_queue_resource_usage", ("q", "team", "plain", "cpu")] == 1
    assert found["kueue_local_queue_reserving_active_workloads", ("q", "team")] == 2
    assert found["kueue_local_queue_admitted_active_workloads", ("q", "team")] == 1


async def test_a_local_queue_says_who_waits_for_a_change() -> None:
    shell = make()
    shell.put(cases.make_local_queue("other/q", "nowhere"))
    put(shell, "big", 5)
    await shell.settle()
    put(shell, "next", 1)
    found = read(collect_locals(read_figures(shell)))
    assert found["kueue_local_queue_pending_workloads", ("q", "team", "active")] == 1
    assert found["kueue_local_queue_pending_workloads", ("q", "team", "inadmissible")] == 1
    assert found["kueue_local_queue_status", ("q", "team", "True")] == 1
    # Of a queue that leads nowhere nothing is tried.
    put(shell, "nowhere", 1, namespace="other")
    found = read(collect_locals(read_figures(shell)))
    assert found["kueue_local_queue_pending_workloads", ("q", "other", "inadmissible")] == 1
    assert found["kueue_local_queue_pending_workloads", ("q", "other", "active")] == 0
    assert found["kueue_local_queue_status", ("q", "team", "False")] == 0
    assert found["kueue_local_queue_status", ("q", "other", "True")] == 0
    assert found["kueue_local_queue_status", ("q", "other", "False")] == 1


async def test_who_has_quota_and_no_place_is_counted() -> None:
    """Of those who wait for a place, and not of those who wait for quota; alike ones count each."""
    shell = make()
    shell.engine.handle(events.Seen(make_node(cpu=3)), shell.now)
    put_ours(shell, "runs", 2)
    await shell.settle()
    for name, cpu in (("a", 2), ("b", 2), ("quota", 3)):
        put_ours(shell, name, cpu)
        shell.now += 1
    await shell.settle()
    found = read(collect_standings(shell.engine.ask(KnownQueues())))
    assert found["kueue_admitted_active_workloads", ("q",)] == 1
    assert found["kueue_pending_workloads", ("q", "inadmissible")] == 3
    assert found["evenkeel_cluster_queue_placeless_workloads", ("q",)] == 2
    # The quota that was there for them goes to one that fits: they wait for quota now.
    shell.now += 1
    put_ours(shell, "small", 1)
    await shell.settle()
    found = read(collect_standings(shell.engine.ask(KnownQueues())))
    assert found["kueue_admitted_active_workloads", ("q",)] == 2
    assert found["evenkeel_cluster_queue_placeless_workloads", ("q",)] == 0


def test_counters_of_a_queue_are_there_before_anything_happens() -> None:
    """Prometheus sees no rise in a series that begins at 1."""
    counts = QueueCounts()
    counts.begin(["q"])
    before = read(counts.collect())
    assert before["kueue_quota_reserved_workloads_total", ("q",)] == 0
    assert before["kueue_admitted_workloads_total", ("q",)] == 0
    assert before["kueue_evicted_workloads_total", ("q", "Preempted", "")] == 0
    counts.count_evicted("q", "Preempted")
    counts.begin(["q"])
    assert read(counts.collect())["kueue_evicted_workloads_total", ("q", "Preempted", "")] == 1


def test_who_borrows_without_a_weight_has_no_share_and_who_admits_nobody_is_pending() -> None:
    use = QuotaUse("plain", "memory", 2048, 4096, 2048, 0, 0)
    one = QueueStanding(
        "q",
        False,
        "all",
        0.0,
        math.inf,
        "memory",
        0,
        0,
        0,
        1,
        0,
        (use,),
        (("Stopped", "is stopped"),),
    )
    found = read(collect_standings([one]))
    assert math.isnan(found["kueue_cluster_queue_weighted_share", ("q", "all")])
    assert found["kueue_cluster_queue_status", ("q", "pending")] == 1
    assert found["kueue_cluster_queue_status", ("q", "active")] == 0
    assert found["evenkeel_cluster_queue_borrowed", ("all", "q", "plain", "memory")] == 2048
