"""Jobs that change their size while they run: which slice of their workloads stands for them, and what becomes of the others."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
import pytest

from scheduler.api import kueue, names
from scheduler.api.groups import objects
from scheduler.errors import BadInput
from scheduler.kube.jobs import known
from scheduler.kube.jobs.deeds import MakeWorkload, WriteJob, WriteWorkload
from tests.unit.small_jobs import Small

Json = dict[str, Any]


def make_small(n: int = 3) -> Small:
    """A job that waits, and changes its size while it runs."""
    small = Small()
    assert small.job is not None
    small.job["spec"] |= {"suspend": True, "parallelism": n, "completions": n}
    small.job["metadata"]["annotations"] = {names.KUEUE_ELASTIC: "true"}
    small.settle()
    return small


def make_running() -> Small:
    """Such a job that runs with quota for three pods."""
    small = make_small()
    small.admit()
    small.settle()
    small.run_pods()
    assert not small.is_suspended
    assert small.settle() == []
    return small


def resize(small: Small, n: int) -> None:
    """As its user: let a job have another number of pods."""
    assert small.job is not None
    small.job["spec"] |= {"parallelism": n, "completions": n}
    small.job["metadata"]["generation"] += 1


def count_pods(workload: Json) -> int:
    (pod_set,) = workload["spec"]["podSets"]
    return int(pod_set["count"])


def read_texts(workload: Json) -> Json:
    return dict(workload["metadata"]["annotations"])


def find_end(workload: Json) -> str:
    """The reason for which a workload is finished; empty if it is not."""
    found = workload.get("status", {}).get("conditions", ())
    return next((one["reason"] for one in found if one["type"] == "Finished"), "")


def test_its_first_workload_begins_a_chain() -> None:
    small = make_small()
    (first,) = small.workloads
    name = first["metadata"]["name"]
    texts = read_texts(first)
    assert texts[names.KUEUE_ELASTIC] == "true"
    assert texts[names.KUEUE_CHAIN] == name
    assert names.KUEUE_REPLACES not in texts
    assert small.is_suspended


def test_it_starts_with_a_gate_and_the_name_of_its_chain_on_its_pods() -> None:
    small = make_running()
    assert small.job is not None
    template = small.job["spec"]["template"]
    assert template["spec"]["schedulingGates"] == [{"name": names.KUEUE_ELASTIC}]
    name = small.workloads[0]["metadata"]["name"]
    assert template["metadata"]["annotations"][names.KUEUE_CHAIN] == name


def test_while_it_waits_its_workload_follows_its_size() -> None:
    small = make_small()
    for n in (5, 2):
        resize(small, n)
        small.settle()
        assert [count_pods(one) for one in small.workloads] == [n]


def test_one_that_grows_gets_another_slice_and_runs_on() -> None:
    small = make_running()
    resize(small, 5)
    (deed,) = small.settle()
    assert isinstance(deed, MakeWorkload)
    first, second = small.workloads
    assert [count_pods(one) for one in small.workloads] == [3, 5]
    key = f"n/{first['metadata']['name']}"
    texts = read_texts(second)
    assert texts[names.KUEUE_REPLACES] == key
    assert texts[names.KUEUE_CHAIN] == first["metadata"]["name"]
    assert texts[names.KUEUE_ELASTIC] == "true"
    # What the start has put into the template is not what the workload asks for.
    assert second["spec"]["podSets"][0]["template"] == first["spec"]["podSets"][0]["template"]
    assert not small.is_suspended
    assert small.is_true("Admitted")


def test_the_slice_that_waits_follows_the_size() -> None:
    small = make_running()
    resize(small, 5)
    small.settle()
    for n in (7, 4):
        resize(small, n)
        (deed,) = small.settle()
        assert isinstance(deed, WriteWorkload)
        assert [count_pods(one) for one in small.workloads] == [3, n]


@pytest.mark.parametrize("n", [3, 2])
def test_one_that_is_as_small_as_before_waits_for_nothing(n: int) -> None:
    """In a strict queue the slice that waits may never have its turn: what the job gives back is free at once."""
    small = make_running()
    resize(small, 5)
    small.settle()
    resize(small, n)
    small.settle()
    assert [count_pods(one) for one in small.workloads] == [n, 5]
    assert [find_end(one) for one in small.workloads] == ["", "OutOfSync"]
    assert not small.is_suspended


def test_one_that_its_user_stops_while_a_slice_waits_does_not_keep_its_quota() -> None:
    small = make_running()
    resize(small, 5)
    small.settle()
    assert small.job is not None
    small.job["spec"]["suspend"] = True
    small.settle_with_pods()
    living = [one for one in small.workloads if not find_end(one)]
    assert [count_pods(one) for one in living] == [5]
    assert "admission" not in living[0].get("status", {})
    assert small.is_suspended


def test_pods_that_have_ended_count_for_both_slices() -> None:
    small = make_running()
    assert small.job is not None
    small.job["status"]["succeeded"] = 2
    small.job["spec"]["completions"] = 3
    small.settle()
    resize(small, 5)
    small.settle()
    ended = [one["status"].get("reclaimablePods") for one in small.workloads]
    assert ended[0]
    assert ended[1]


def test_a_past_slice_fits_no_job() -> None:
    """Who may write Workloads could finish that of a job which is no slice, and have its quota."""
    small = Small()
    assert small.job is not None
    small.job["spec"]["suspend"] = True
    small.settle()
    small.admit()
    small.settle()
    small.run_pods()
    end = {"type": "Finished", "status": "True", "reason": "WorkloadSliceReplaced"}
    small.workloads[0]["status"]["conditions"].append(end)
    small.settle_with_pods()
    assert small.is_suspended


def test_the_new_slice_stands_for_it_once_it_has_quota() -> None:
    small = make_running()
    resize(small, 5)
    small.settle()
    small.admit(5, at=1)
    # The scheduler finishes the one whose quota it has given to another one.
    assert small.settle() == []
    end = {"type": "Finished", "status": "True", "reason": "WorkloadSliceReplaced"}
    small.workloads[0]["status"]["conditions"].append(end)
    small.settle()
    assert not small.workloads[0]["metadata"]["finalizers"]
    assert find_end(small.workloads[1]) == ""
    assert not small.is_suspended
    # And the next one after it.
    resize(small, 6)
    small.settle()
    third = small.workloads[2]
    assert read_texts(third)[names.KUEUE_REPLACES] == f"n/{small.workloads[1]['metadata']['name']}"
    assert read_texts(third)[names.KUEUE_CHAIN] == small.workloads[0]["metadata"]["name"]


def test_what_checks_add_to_a_later_slice_does_not_stop_it() -> None:
    """The templates of a running job cannot get it; its new pods do when they lose their gate."""
    small = make_running()
    resize(small, 5)
    small.settle()
    small.admit(5, at=1)
    update = {"name": "main", "tolerations": [{"key": "spot", "operator": "Exists"}]}
    status = small.workloads[1]["status"]
    status["admissionChecks"] = [{"name": "c", "state": "Ready", "podSetUpdates": [update]}]
    for one in status["conditions"]:
        if one["type"] == "Admitted":
            one["status"] = "False"
    assert small.settle() == []
    assert not small.is_suspended


def test_one_that_shrinks_keeps_its_workload_with_fewer_pods() -> None:
    small = make_running()
    resize(small, 2)
    (deed,) = small.settle()
    assert isinstance(deed, WriteWorkload)
    assert [count_pods(one) for one in small.workloads] == [2]
    assert not small.is_suspended
    # What has shrunk needs quota again to grow.
    resize(small, 3)
    small.settle()
    assert [count_pods(one) for one in small.workloads] == [2, 3]


def test_one_that_ends_leaves_no_slice_with_quota() -> None:
    small = make_running()
    resize(small, 5)
    small.settle()
    assert small.job is not None
    small.job["status"]["conditions"] = [{"type": "Complete", "status": "True", "message": "done"}]
    small.settle()
    assert [find_end(one) for one in small.workloads] == ["Succeeded", "Succeeded"]
    assert not any(one["metadata"]["finalizers"] for one in small.workloads)


def test_one_that_is_evicted_stops_before_its_next_slice_counts() -> None:
    small = make_running()
    resize(small, 5)
    small.settle()
    small.evict()
    done = small.settle_with_pods()
    assert any(isinstance(one, WriteJob) for one in done)
    assert small.is_suspended
    assert find_end(small.workloads[0]) == "WorkloadSliceReplaced"
    assert find_end(small.workloads[1]) == ""
    assert small.job is not None
    template = small.job["spec"]["template"]
    assert names.KUEUE_POD_SET not in template.get("metadata", {}).get("labels", {})
    small.admit(5, at=1)
    small.settle()
    assert not small.is_suspended
    assert small.job["spec"]["parallelism"] == 5


def test_evicted_alone_it_waits_with_the_workload_that_it_has() -> None:
    small = make_running()
    small.evict()
    small.settle_with_pods()
    assert small.is_suspended
    (first,) = small.workloads
    assert find_end(first) == ""
    assert "admission" not in first["status"]


def test_a_slice_that_somebody_deletes_while_it_waits_is_made_anew() -> None:
    small = make_running()
    resize(small, 5)
    small.settle()
    small.workloads[1]["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
    small.settle()
    assert [count_pods(one) for one in small.workloads] == [3, 5]
    assert "deletionTimestamp" not in small.workloads[1]["metadata"]
    assert not small.is_suspended


def test_one_without_gates_stops_when_it_grows() -> None:
    """Its new pods run at once, and have no quota."""
    small = make_running()
    assert small.job is not None
    del small.job["spec"]["template"]["spec"]["schedulingGates"]
    resize(small, 2)
    small.settle()
    assert not small.is_suspended
    resize(small, 5)
    small.settle_with_pods()
    assert small.is_suspended
    assert [count_pods(one) for one in small.workloads] == [5]
    assert not any("admission" in one.get("status", {}) for one in small.workloads)


def test_of_two_slices_that_would_replace_the_same_one_goes() -> None:
    """Two leaders in a row may have made one each."""
    small = make_running()
    resize(small, 5)
    small.settle()
    first, second = small.workloads
    meta = second["metadata"] | {"name": "other", "uid": "other"}
    small.workloads.append(second | {"metadata": meta})
    small.settle()
    ends = [find_end(one) for one in small.workloads]
    assert ends[0] == ""
    assert sorted(ends[1:]) == ["", "OutOfSync"]
    del first


def test_one_that_changes_otherwise_stops() -> None:
    small = make_running()
    assert small.job is not None
    small.job["spec"]["template"]["spec"]["containers"][0]["image"] = "b"
    small.settle_with_pods()
    assert small.is_suspended
    assert not any("admission" in one.get("status", {}) for one in small.workloads)


def test_a_job_that_had_quota_as_one_of_one_size_keeps_that_size() -> None:
    """It has no gates; growing, it stops and waits again, then as one with slices."""
    small = Small()
    assert small.job is not None
    small.job["spec"]["suspend"] = True
    small.settle()
    small.admit()
    small.settle()
    small.run_pods()
    small.job["metadata"]["annotations"] = {names.KUEUE_ELASTIC: "true"}
    assert small.settle() == []
    resize(small, 500)
    small.settle_with_pods()
    assert small.is_suspended
    assert [count_pods(one) for one in small.workloads] == [500]
    assert not any("admission" in one.get("status", {}) for one in small.workloads)
    small.settle()
    assert read_texts(small.workloads[0])[names.KUEUE_ELASTIC] == "true"


def test_without_its_annotation_it_is_as_any_other() -> None:
    small = make_small()
    assert small.job is not None
    small.job["metadata"]["annotations"] = {}
    job = known.read_job("Job", msgspec.convert(small.job, objects.Job))
    owned = [known.read_workload(msgspec.convert(one, kueue.Workload)) for one in small.workloads]
    # Annotations change without a new generation of the job.
    assert known.needs_look(job, owned, is_known_to_fit=True, watches_pods=False)
    (deed,) = small.settle()
    assert isinstance(deed, WriteWorkload)
    assert names.KUEUE_ELASTIC not in small.workloads[0]["metadata"]["annotations"]


@pytest.mark.parametrize("reason", ["WorkloadSliceReplaced", "OutOfSync", "Succeeded"])
def test_a_past_slice_is_none_of_its_business(reason: str) -> None:
    small = make_running()
    (one,) = small.workloads
    over = {"type": "Finished", "status": "True", "reason": reason}
    one["status"]["conditions"].append(over)
    one["metadata"]["finalizers"] = []
    found = known.read_workload(msgspec.convert(one, kueue.Workload))
    assert found.is_past == (reason != "Succeeded")


def test_a_job_that_runs_and_says_what_cannot_be_read_stops_and_gives_its_quota_back() -> None:
    """Else it would keep its quota, and whoever waits for it would wait for ever."""
    small = make_running()
    assert small.job is not None
    text = {names.KUEUE_UNCONSTRAINED: "perhaps"}
    small.job["spec"]["template"].setdefault("metadata", {})["annotations"] = text
    with suppress(BadInput):
        # No other Workload can be made of it.
        small.settle_with_pods()
    assert small.is_suspended
    assert not any((one.get("status") or {}).get("admission") for one in small.workloads)
