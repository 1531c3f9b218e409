"""Jobs that say that they change their size while they run, of a kind for which that is not supported.

They are refused while they wait, and left alone while they run.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest

from scheduler.api import kueue, names
from scheduler.api.groups import objects
from scheduler.kube.jobs import known
from scheduler.kube.jobs.deciding import find_deed
from scheduler.kube.jobs.deeds import DropWorkload, MakeWorkload, Refusal, WriteWorkload
from scheduler.simulate import schedule
from tests.unit.small_jobs import Small, make_running_job
from tests.unit.test_simulate_queued import JOB_SET, make_object, make_world

Json = dict[str, Any]
_ELASTIC = {names.KUEUE_ELASTIC: "true"}


def make_small(*, is_elastic: bool = True, has_gate: bool = True) -> Small:
    """A job that waits, of a kind like a Job that has no slices of workloads."""
    small = Small()
    small.row = dataclasses.replace(small.row, has_slices=False)
    assert small.job is not None
    small.job["spec"]["suspend"] = True
    small.job["metadata"]["annotations"] = dict(_ELASTIC) if is_elastic else {}
    if has_gate:
        gates = [{"name": names.KUEUE_ELASTIC}]
        small.job["spec"]["template"]["spec"]["schedulingGates"] = gates
    return small


def make_running(*, has_gate: bool = True) -> Small:
    """A job that Kueue has started: its workload is admitted."""
    small = make_small(is_elastic=False, has_gate=has_gate)
    small.settle()
    small.admit()
    small.settle()
    small.run_pods()
    assert small.job is not None
    small.job["metadata"]["annotations"] = dict(_ELASTIC)
    small.workloads[0]["metadata"]["annotations"] |= _ELASTIC
    assert not small.is_suspended
    assert small.settle() == []
    return small


def test_one_that_waits_is_told_that_it_never_starts() -> None:
    small = make_small()
    (deed,) = small.settle()
    assert isinstance(deed, MakeWorkload)
    assert deed.words is not None
    assert deed.words[:2] == ("Warning", "NotSupported")
    assert names.KUEUE_ELASTIC in deed.words[2]
    assert small.workloads[0]["metadata"]["annotations"][names.KUEUE_ELASTIC] == "true"


def test_quota_that_it_has_been_given_is_free_again() -> None:
    small = make_small(is_elastic=False)
    small.settle()
    small.admit()
    assert small.job is not None
    small.job["metadata"]["annotations"] = dict(_ELASTIC)
    small.settle()
    assert small.is_suspended
    assert "admission" not in small.workloads[0]["status"]
    (reserved,) = (one for one in small.workloads[0]["status"]["conditions"] if one["type"] == "QuotaReserved")  # fmt: skip
    assert (reserved["status"], reserved["reason"]) == ("False", "NotSupported")


def test_without_the_annotation_it_is_as_any_other() -> None:
    small = make_small()
    small.settle()
    assert small.job is not None
    small.job["metadata"]["annotations"] = {}
    job = known.read_job("Job", msgspec.convert(small.job, objects.Job))
    owned = [known.read_workload(msgspec.convert(one, kueue.Workload)) for one in small.workloads]
    # Annotations change without a new generation of the job.
    assert known.needs_look(job, owned, is_known_to_fit=True, watches_pods=False)
    (deed,) = small.settle()
    assert isinstance(deed, WriteWorkload)
    assert names.KUEUE_ELASTIC not in small.workloads[0]["metadata"]["annotations"]
    small.admit()
    small.settle()
    assert not small.is_suspended


@pytest.mark.parametrize("n", [2, 5])
def test_one_that_runs_stays_as_large_as_it_is(n: int) -> None:
    """Pods beyond those with quota have a gate, which stays."""
    small = make_running()
    assert small.job is not None
    small.job["spec"] |= {"parallelism": n, "completions": n}
    with pytest.raises(Refusal, match="pods of before") as caught:
        small.settle()
    assert caught.value.reason == "NotSupported"
    assert not small.is_suspended
    assert small.is_true("Admitted")


def test_one_whose_pods_have_no_gate_stops_as_any_other_that_changes() -> None:
    small = make_running(has_gate=False)
    assert small.job is not None
    small.job["spec"] |= {"parallelism": 5, "completions": 5}
    small.settle_with_pods()
    assert small.is_suspended
    assert "admission" not in small.workloads[0].get("status", {})


def test_one_that_changes_otherwise_stops() -> None:
    small = make_running()
    assert small.job is not None
    small.job["spec"]["template"]["spec"]["containers"][0]["image"] = "b"
    small.settle_with_pods()
    assert small.is_suspended


def test_of_the_slices_that_kueue_has_made_the_one_with_quota_stays() -> None:
    small = make_running()
    assert small.job is not None
    (held,) = small.workloads
    small.job["spec"] |= {"parallelism": 5, "completions": 5}
    over = {"conditions": [{"type": "Finished", "status": "True"}]}
    spec = held["spec"] | {"podSets": [held["spec"]["podSets"][0] | {"count": 5}]}
    old = held | {"metadata": held["metadata"] | {"name": "old", "uid": "o"}, "status": over}
    new = held | {"metadata": held["metadata"] | {"name": "new", "uid": "n"}, "spec": spec}
    del new["status"]
    small.workloads = [old, new, held]
    for _ in range(2):
        deed = find_deed(small.make_scene())
        assert isinstance(deed, DropWorkload)
        small.carry_out(deed)
    assert small.workloads == [held]
    with pytest.raises(Refusal):
        small.settle()


def test_it_waits_in_a_simulation_for_a_reason_of_its_own() -> None:
    elastic, other = make_object("JobSet", "j", JOB_SET), make_object("JobSet", "k", JOB_SET)
    elastic["metadata"]["annotations"] = dict(_ELASTIC)
    found = schedule([*make_world(9), elastic, other], strict=True)
    states = {one["job"]["name"]: (one["state"], one["reason"]) for one in found["workloads"]}
    assert states["k"][0] == "admitted"
    assert states["j"][1] == "NotSupported"


def test_a_job_that_becomes_elastic_while_it_runs_is_stopped_like_any_other_that_grows() -> None:
    """Nobody but Kueue has let the pods of a slice run, and its user may take the gates from them."""
    small = make_running_job({"name": names.KUEUE_ELASTIC})
    assert small.job is not None
    small.job["metadata"]["annotations"] = {names.KUEUE_ELASTIC: "true"}
    small.job["spec"]["parallelism"] = small.job["spec"]["completions"] = 500
    small.settle_with_pods()
    assert small.is_suspended
