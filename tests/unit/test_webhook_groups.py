"""What the webhook refuses of groups of pod sets: each is a leader and its workers."""

from __future__ import annotations

from typing import Any

from scheduler.api import kinds, names
from tests.unit.test_webhook_defaults import make
from tests.unit.webhook_reviews import QUEUE, find_objection

Json = dict[str, Any]


def test_a_group_of_two_pod_sets_of_which_none_has_one_pod_is_refused() -> None:
    texts = {names.KUEUE_REQUIRED: "rack", names.KUEUE_TOGETHER: "both"}
    template = {"metadata": {"annotations": texts}, "spec": {}}

    def make_set(n_leaders: int) -> Json:
        jobs = [
            {"name": name, "replicas": 1, "template": {"spec": {"parallelism": n, "template": template}}}
            for name, n in (("leader", n_leaders), ("workers", 4))
        ]  # fmt: skip
        return make(QUEUE, suspend=True, replicatedJobs=jobs)

    found = find_objection(kinds.JOB_SETS, make_set(2))
    assert "pod set leader: metadata.annotations[kueue.x-k8s.io/podset-group-name]" in found
    assert "is the group of 2 and 4 pods; one of its pod sets has 1 pod" in found
    assert not find_objection(kinds.JOB_SETS, make_set(1))
    # One that was let in before may lose what it has, and go.
    old, new = make_set(2), make_set(2)
    old["metadata"]["finalizers"] = ["x"]
    assert not find_objection(kinds.JOB_SETS, new, old)
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    old["metadata"] |= going
    smaller = make_set(3)
    smaller["metadata"] |= going
    assert not find_objection(kinds.JOB_SETS, smaller, old)
