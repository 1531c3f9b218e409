"""A simulation that would decide the same without end is ended, and says so."""

from typing import Any

import pytest

from scheduler.api.door.decisions import Bind, Outcome, Plan
from scheduler.engine.engine import Engine
from scheduler.simulate import schedule, stalling

Json = dict[str, Any]
POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "large", "namespace": "default"},
    "spec": {
        "schedulerName": "evenkeel",
        "containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}],
    },
}
NODE: Json = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "9"}},
}


def test_a_simulation_without_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "find_due", lambda _, now: now)
    result = schedule([NODE, POD])
    assert stalling.WARNING in result["warnings"]
    assert result["summary"]["pending"] == 1


def test_a_simulation_with_an_end_says_nothing_of_it() -> None:
    assert stalling.WARNING not in schedule([NODE, POD])["warnings"]


def test_a_pod_that_is_decided_about_without_end_stalls_it() -> None:
    stalls = stalling.Stalling()
    held, bound = Outcome(plans=[Plan("a")]), Outcome(plans=[Plan("b", (Bind("b", "n"),))])
    for _ in range(2):
        for _ in range(stalling.TRIES_MAX):
            stalls.note(held)
        assert not stalls.is_endless
        stalls.note(bound)
    for _ in range(stalling.TRIES_MAX + 1):
        stalls.note(held)
    assert stalls.is_endless
