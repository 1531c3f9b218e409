"""Which jobs and pods are the affair of a job with a queue that has made them, also by way of others."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from scheduler.api import kinds, names
from scheduler.api.kind import Kind
from scheduler.kube.jobs.job_looks import JobLooks
from scheduler.kube.jobs.ties import JobTies


def _make_looks() -> JobLooks:
    nothing: Any = None
    ties = JobTies(nothing, lambda: False, lambda: kinds.WORKLOADS, lambda: 0.0, (), False)
    return JobLooks(nothing, ties, {}, nothing)


def _show(looks: JobLooks, kind: Kind, name: str, maker: Kind | None = None, *, queue: bool = False) -> None:  # fmt: skip
    meta: dict[str, Any] = {"name": name, "namespace": "team", "uid": name}
    if queue:
        meta["labels"] = {names.KUEUE_QUEUE: "q"}
    if maker is not None:
        owner = {
            "apiVersion": maker.api_version,
            "kind": maker.kind,
            "name": f"of-{name}",
            "uid": "u",
        }
        meta["ownerReferences"] = [{**owner, "controller": True}]
    found = msgspec.convert({"metadata": meta, "spec": {}, "status": {}}, kind.shape)
    looks.see_job(kind.name, found)


@pytest.mark.parametrize("has_queue", [True, False])
def test_what_a_job_with_a_queue_has_made_is_its_affair_whoever_is_between(has_queue: bool) -> None:
    looks = _make_looks()
    # A TrainJob makes a JobSet of its name, which makes a Job, which makes pods.
    _show(looks, kinds.JOBS, "x", kinds.JOB_SETS)
    _show(looks, kinds.JOB_SETS, "of-x", kinds.TRAIN_JOBS)
    _show(looks, kinds.TRAIN_JOBS, "of-of-x", queue=has_queue)
    keys = [(kinds.JOBS.name, "team", "x"), (kinds.JOB_SETS.name, "team", "of-x")]
    assert [looks.is_managed(key) for key in keys] == [has_queue, has_queue]
    looks.drop_job((kinds.TRAIN_JOBS.name, "team", "of-of-x"))
    assert not any(looks.is_managed(key) for key in keys)
    assert not looks.is_managed(None)


def test_jobs_that_say_they_have_made_each_other_have_an_end() -> None:
    """Users write owners."""
    looks = _make_looks()
    for name in ("of-a", "a"):
        _show(looks, kinds.JOBS, name, kinds.JOBS)
    looks._makers[kinds.JOBS.name, "team", "of-a"] = (kinds.JOBS.name, "team", "a")
    assert not looks.is_managed((kinds.JOBS.name, "team", "a"))
