"""Workloads that have lost their job: they are finished, and nothing keeps them from going."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.api import names
from scheduler.kube.jobs.deeds import DropWorkload, WriteWorkload
from scheduler.kube.jobs.orphans import find_deed

Json = dict[str, Any]
_HAD_JOB = {"labels": {names.KUEUE_JOB_UID: "u"}}
_HELD = {"finalizers": [names.KUEUE_IN_USE]}
_GOES = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
_OWNED = {"ownerReferences": [{"kind": "Other", "name": "o", "uid": "o"}]}
_OVER: Json = {"conditions": [{"type": "Finished", "status": "True"}]}


def decide(meta: Json, status: Json | None = None) -> Any:
    return find_deed({"metadata": {"name": "w", **meta}, "status": status or {}}, 1e9)


def test_one_that_has_lost_its_job_is_finished() -> None:
    deed = decide(_HAD_JOB | _HELD)
    assert isinstance(deed, WriteWorkload)
    (finished,) = deed.patch["status"]["conditions"]
    assert (finished["type"], finished["status"]) == ("Finished", "True")
    assert finished["reason"] == "OwnerNotFound"
    assert finished["message"] == "The workload's owner no longer exists"


@pytest.mark.parametrize(
    ("meta", "status"),
    [(_HAD_JOB | _HELD, _OVER), (_HELD | _GOES, {}), (_HAD_JOB | _HELD | _GOES, {})],
)
def test_nothing_keeps_one_from_going_that_is_over_or_goes(meta: Json, status: Json) -> None:
    deed = decide(meta, status)
    assert isinstance(deed, DropWorkload)
    assert deed.may_stay


@pytest.mark.parametrize(
    ("meta", "status"),
    [
        ({}, {}),
        (_HELD, {}),
        (_GOES, {}),
        (_HAD_JOB, _OVER),
        (_HAD_JOB | _HELD | _OWNED, {}),
        (_HELD | _GOES | _OWNED, {}),
    ],
)
def test_others_are_left_alone(meta: Json, status: Json) -> None:
    """One that was made by itself has no job; that of another kind of owner is the affair of this one's controller."""
    assert decide(meta, status) is None
