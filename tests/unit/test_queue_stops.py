"""Who was stopped gives quota back: by its queue, its local queue, a check or itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from scheduler.api import kueue
from scheduler.api.door import events
from scheduler.api.door.workload_decisions import EvictWorkload, Queued
from scheduler.api.queues.settings import QueueSettings
from scheduler.api.queues.workloads import Shapes
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.tenancy.tenants import Tenants
from tests.make import namespace as make_namespace
from tests.model.tenants import make_tenants, put_object
from tests.oracles.kueue import cases

AT = 1_800_000_000.0
NOW = "2027-01-15T08:00:00Z"
QUEUE: dict[str, Any] = {"quotas": [{"plain": {"cpu": 4}}]}
RUNS = {
    "in": "q",
    "asks": {"cpu": 1},
    "has": {"main": {"cpu": "plain"}},
    "conditions": {"Admitted": ["True", "Admitted", 0]},
}


def make() -> Tenants:
    fields = {
        "queues": {"q": QUEUE},
        "workloads": {"team/runs": RUNS, "team/waits": {"in": "q", "asks": {"cpu": 4}}},
    }
    tenants = make_tenants(cases.make_objects(fields), {}, NOW)
    tenants.make_ready(AT)
    assert not list(tenants.stops.take(AT))
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
    found = list(tenants.stops.take(AT))
    return [(one.key, one.reason) for one in found if isinstance(one, EvictWorkload)]


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
    body = cases.make_queue("q", QUEUE)
    rules = [{"name": name} for name, _ in fields.get("checks", ())]
    body["spec"]["admissionChecksStrategy"] = {"admissionChecks": rules}
    put_object(tenants, Shapes(), body, AT)
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


CHECKED: dict[str, Any] = {**QUEUE, "stop": "None"}


def make_checked_queue() -> dict[str, Any]:
    body = cases.make_queue("q", CHECKED)
    body["spec"]["admissionChecksStrategy"] = {"admissionChecks": [{"name": "budget"}]}
    return body


@pytest.mark.parametrize(
    ("checks", "reason", "words"),
    [
        ([], "AdmissionCheckNotFound", "references missing AdmissionCheck(s): budget"),
        (
            [{"spec": {"controllerName": "kueue.x-k8s.io/multikueue"}}],
            "NotSupported",
            "AdmissionCheck budget of the controller kueue.x-k8s.io/multikueue is not supported",
        ),
        (
            [{"status": {"conditions": [{"type": "Active", "status": "False"}]}}],
            "AdmissionCheckInactive",
            "references inactive AdmissionCheck(s): budget",
        ),
        ([{"spec": {"controllerName": "ours"}}], "", ""),
        # What is no check is one that says nothing.
        ([{"spec": 7, "status": {"conditions": {"type": "Active"}}}], "", ""),
    ],
)
def test_a_queue_admits_nobody_while_a_check_of_it_cannot_be_passed(
    checks: list[dict[str, Any]], reason: str, words: str
) -> None:
    tenants = make()
    put_object(tenants, Shapes(), make_checked_queue(), AT)
    for body in checks:
        check = {"kind": "AdmissionCheck", "metadata": {"name": "budget"}, **body}
        put_object(tenants, Shapes(), check, AT)
    tenants.make_ready(AT)
    found = tenants.directory.list_inactive_reasons("q")
    assert found == ([(reason, words)] if reason else [])
    aside = {work.key: work.message for work in tenants.unplaced.take_aside()}
    assert aside == ({"team/waits": "ClusterQueue q is inactive"} if reason else {})


def test_a_workload_that_may_not_be_tried_is_told_why_once() -> None:
    engine = Engine(Config(queues=QueueSettings(kueue=True)))
    engine.handle(events.Seen(make_namespace("team")), AT)
    body = cases.make_workload("team/lost", {"in": "nowhere", "asks": {"cpu": 1}, "uid": "u"})
    found = msgspec.convert({**body, "kind": "Workload"}, kueue.Workload)
    engine.handle(events.Seen(found), AT)
    assert engine.find_due(AT) <= AT
    told = Queued("team/lost", "u", "Misconfigured", "LocalQueue nowhere doesn't exist")
    assert engine.decide(AT, Unlimited()).quotas == [told]
    assert engine.find_due(AT) > AT
    assert engine.decide(AT, Unlimited()).quotas == []
