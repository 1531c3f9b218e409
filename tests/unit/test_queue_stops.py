"""Who was stopped gives quota back: by its queue, its local queue, a check or itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scheduler.api.queues.workloads import Shapes
from scheduler.tenancy.tenants import Tenants
from tests.model.tenants import make_tenants, put_object
from tests.oracles.kueue import cases

AT = 1_800_000_000.0
NOW = "2027-01-15T08:00:00Z"
QUEUE: dict[str, Any] = {"quotas": [{"plain": {"cpu": 4}}]}
RUNS = {"in": "q", "asks": {"cpu": 1}, "has": {"main": {"cpu": "plain"}}}


def make() -> Tenants:
    fields = {
        "queues": {"q": QUEUE},
        "workloads": {"team/runs": RUNS, "team/waits": {"in": "q", "asks": {"cpu": 4}}},
    }
    tenants = make_tenants(cases.make_objects(fields), {}, NOW)
    tenants.make_ready(AT)
    assert not list(tenants.stops.take())
    return tenants


def stop_queue(tenants: Tenants, policy: str) -> None:
    put_object(tenants, Shapes(), cases.make_queue("q", {**QUEUE, "stop": policy}), AT)


def stop_local_queue(tenants: Tenants, policy: str) -> None:
    body = cases.make_local_queue("team/q", "q")
    body["spec"]["stopPolicy"] = policy
    put_object(tenants, Shapes(), body, AT)


def change(tenants: Tenants, **fields: Any) -> None:
    tenants.put_workload(replace(tenants.works["team/runs"].defined, **fields), AT)


def take(tenants: Tenants) -> list[tuple[str, str]]:
    tenants.make_ready(AT)
    return [(one.work.key, one.reason) for one in tenants.stops.take()]


def test_a_queue_that_is_drained_gets_its_quota_back() -> None:
    tenants = make()
    stop_queue(tenants, "Hold")
    assert take(tenants) == []
    stop_queue(tenants, "HoldAndDrain")
    assert tenants.has_due
    assert take(tenants) == [("team/runs", "ClusterQueueStopped")]
    # It is asked once.
    assert take(tenants) == []


def test_a_local_queue_that_is_drained_gets_its_quota_back() -> None:
    tenants = make()
    stop_local_queue(tenants, "HoldAndDrain")
    assert take(tenants) == [("team/runs", "LocalQueueStopped")]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"is_active": False}, "Deactivated"),
        ({"checks": (("one", "Ready"), ("two", "Retry"))}, "AdmissionCheck"),
    ],
)
def test_a_workload_that_may_not_go_on_gives_its_quota_back(
    fields: dict[str, Any], reason: str
) -> None:
    tenants = make()
    change(tenants, **fields)
    assert take(tenants) == [("team/runs", reason)]


def test_who_could_not_be_asked_is_asked_again() -> None:
    tenants = make()
    change(tenants, is_active=False)
    assert take(tenants) == [("team/runs", "Deactivated")]
    tenants.undo_preempt("team/runs")
    assert take(tenants) == [("team/runs", "Deactivated")]


def test_who_may_go_on_after_all_is_not_asked() -> None:
    tenants = make()
    stop_queue(tenants, "HoldAndDrain")
    tenants.make_ready(AT)
    stop_queue(tenants, "None")
    assert take(tenants) == []
