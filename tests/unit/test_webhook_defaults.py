"""What the webhook adds to jobs, pods and what serves, for each kind."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.api import kinds, names
from scheduler.api.jobs import plain_pods, table
from scheduler.api.jobs.table import JobKind
from scheduler.api.kind import Kind
from tests.unit.webhook_reviews import (
    MANAGED,
    QUEUE,
    WITH_DEFAULT,
    default,
    find_patch,
)

Json = dict[str, Any]
_GATE = {"name": names.KUEUE_GATE}
_TABLE = [pytest.param(one, id=one.kind.kind) for one in table.TABLE]


def make(labels: Json | None = None, owner: tuple[Kind, str] | None = None, **spec: Any) -> Json:
    meta: Json = {"name": "x"}
    if labels is not None:
        meta["labels"] = labels
    if owner is not None:
        kind, name = owner
        meta["ownerReferences"] = [
            {"apiVersion": kind.api_version, "kind": kind.kind, "name": name, "uid": "u", "controller": True}
        ]  # fmt: skip
    return {"metadata": meta, "spec": spec}


def make_pod(labels: Json | None = None, texts: Json | None = None, **more: Any) -> Json:
    made = make(labels, containers=[{"name": "c", "resources": {"requests": {"cpu": "1"}}}], **more)
    if texts is not None:
        made["metadata"]["annotations"] = texts
    return made


@pytest.mark.parametrize("row", _TABLE)
def test_a_job_with_a_queue_is_created_suspended(row: JobKind) -> None:
    made: Any = default(row.kind, make(QUEUE))
    for step in row.suspend:
        made = made[step]
    assert made is True


@pytest.mark.parametrize("row", _TABLE)
def test_a_job_gets_nothing_without_a_queue_or_if_another_one_with_a_queue_has_made_it(
    row: JobKind,
) -> None:
    assert find_patch(row.kind, make()) == []
    assert find_patch(row.kind, make(QUEUE, (kinds.JOB_SETS, MANAGED))) == []
    assert find_patch(row.kind, make(QUEUE), make(QUEUE)) == []


def test_a_suspended_job_stays_as_it_is() -> None:
    assert find_patch(kinds.JOBS, make(QUEUE, suspend=True)) == []
    assert find_patch(kinds.JOBS, make(QUEUE, suspend=False)) == [
        {"op": "add", "path": "/spec/suspend", "value": True}
    ]


def test_a_job_that_runs_in_a_cluster_that_is_there_needs_no_quota() -> None:
    assert find_patch(kinds.RAY_JOBS, make(QUEUE, clusterSelector={"ray.io/cluster": "c"})) == []


def test_a_job_of_a_job_without_a_queue_waits_by_itself() -> None:
    made = default(kinds.JOBS, make(QUEUE, (kinds.JOB_SETS, "other")))
    assert made["spec"]["suspend"] is True


@pytest.mark.parametrize(
    "kind",
    [kinds.JOBS, kinds.PODS, kinds.DEPLOYMENTS, kinds.STATEFUL_SETS],
    ids=lambda one: one.kind,
)
def test_the_default_queue_of_a_namespace(kind: Kind) -> None:
    found = make_pod(template={"spec": {}})
    made = default(kind, found, namespace=WITH_DEFAULT)
    assert made["metadata"]["labels"][names.KUEUE_QUEUE] == names.KUEUE_DEFAULT_QUEUE
    assert find_patch(kind, found) == []
    named = default(kind, make_pod(QUEUE, template={"spec": {}}), namespace=WITH_DEFAULT)
    assert named["metadata"]["labels"][names.KUEUE_QUEUE] == "q"


def test_the_default_queue_is_not_for_what_a_controller_has_made() -> None:
    sets = Kind(name="ReplicaSet", group="apps", plural="replicasets")
    for kind, owner in ((kinds.PODS, sets), (kinds.STATEFUL_SETS, kinds.LEADER_WORKER_SETS)):
        found = make(owner=(owner, "x"), template={"spec": {}})
        assert find_patch(kind, found, namespace=WITH_DEFAULT) == []
    assert find_patch(kinds.JOBS, make(owner=(kinds.JOB_SETS, "x")), namespace=WITH_DEFAULT) == []
    crons = Kind(name="CronJob", group="batch", plural="cronjobs")
    made = default(kinds.JOBS, make(owner=(crons, "x")), namespace=WITH_DEFAULT)
    assert (made["metadata"]["labels"], made["spec"]["suspend"]) == (
        {names.KUEUE_QUEUE: names.KUEUE_DEFAULT_QUEUE},
        True,
    )


def test_a_pod_with_a_queue_waits_by_a_gate() -> None:
    found = make_pod(QUEUE)
    made = default(kinds.PODS, found)
    assert made["spec"]["schedulingGates"] == [_GATE]
    assert made["metadata"]["labels"] == {**QUEUE, names.KUEUE_MANAGED: "true"}
    assert made["metadata"]["annotations"] == {
        names.KUEUE_ROLE: plain_pods.make_role(found["spec"])
    }
    assert "finalizers" not in made["metadata"]
    # The API server may call again.
    assert find_patch(kinds.PODS, made) == []


def test_a_pod_gets_nothing_if_it_has_no_queue_or_is_there_already() -> None:
    assert find_patch(kinds.PODS, make_pod()) == []
    assert find_patch(kinds.PODS, make_pod(QUEUE), make_pod(QUEUE)) == []
    found = make(QUEUE, (kinds.JOBS, MANAGED), containers=[])
    assert find_patch(kinds.PODS, found) == []


def test_a_pod_keeps_its_other_gates_and_cannot_choose_its_role() -> None:
    found = make_pod(QUEUE, {names.KUEUE_ROLE: "cheap"}, schedulingGates=[{"name": "mine"}])
    made = default(kinds.PODS, found)
    assert made["spec"]["schedulingGates"] == [{"name": "mine"}, _GATE]
    assert made["metadata"]["annotations"][names.KUEUE_ROLE] != "cheap"


def test_a_pod_of_a_group_that_ends_is_kept() -> None:
    labels = {**QUEUE, names.KUEUE_GROUP: "crew"}
    made = default(kinds.PODS, make_pod(labels, {names.KUEUE_TOTAL: "2"}))
    assert made["metadata"]["finalizers"] == [names.KUEUE_MANAGED]
    serves = {names.KUEUE_TOTAL: "2", names.KUEUE_SERVES: "true"}
    assert "finalizers" not in default(kinds.PODS, make_pod(labels, serves))["metadata"]


def test_a_deployment_gives_its_pods_its_queue_and_class() -> None:
    labels = {**QUEUE, names.KUEUE_CLASS: "urgent"}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {}}
    made = default(kinds.DEPLOYMENTS, make(labels, template=template))
    assert made["spec"]["template"] == {
        "metadata": {"labels": {"app": "web", **labels}},
        "spec": {},
    }
    # A change reaches the template, too.
    moved = {**made, "metadata": {"name": "x", "labels": {**labels, names.KUEUE_QUEUE: "r"}}}
    again = default(kinds.DEPLOYMENTS, moved, made)
    assert again["spec"]["template"]["metadata"]["labels"][names.KUEUE_QUEUE] == "r"


def test_the_pods_of_a_stateful_set_are_one_group() -> None:
    spec: Json = {"replicas": 3, "ordinals": {"start": 2}, "template": {"spec": {}}}
    meta = default(kinds.STATEFUL_SETS, make(QUEUE, **spec))["spec"]["template"]["metadata"]
    group = meta["labels"][names.KUEUE_GROUP]
    assert group.startswith("statefulset-x-")
    assert meta["labels"] == {**QUEUE, names.KUEUE_GROUP: group}
    assert meta["annotations"] == {
        names.KUEUE_PARENT: "statefulset",
        names.KUEUE_SERVES: "true",
        names.KUEUE_FAST: "true",
        names.KUEUE_TOTAL: "3",
        names.KUEUE_INDEX_LABEL: names.SET_INDEX,
        names.KUEUE_INDEX_OFFSET: "2",
    }


def test_the_pods_of_a_set_say_who_has_to_agree() -> None:
    found = make(QUEUE, replicas=1, template={"spec": {}})
    found["metadata"]["annotations"] = {names.KUEUE_GATED: "a.io/one"}
    for kind in (kinds.STATEFUL_SETS, kinds.DEPLOYMENTS):
        meta = default(kind, found)["spec"]["template"]["metadata"]
        assert meta["annotations"][names.KUEUE_GATED] == "a.io/one"


def test_the_group_of_a_stateful_set_follows_its_replicas() -> None:
    none = default(kinds.STATEFUL_SETS, make(QUEUE, replicas=0, template={"spec": {}}))
    grown = {**none, "spec": {**none["spec"], "replicas": 5}}
    meta = default(kinds.STATEFUL_SETS, grown, none)["spec"]["template"]["metadata"]
    assert meta["annotations"][names.KUEUE_TOTAL] == "5"


def test_the_pods_of_each_replica_of_a_leader_worker_set_are_one_group() -> None:
    pair = {"size": 3, "workerTemplate": {"spec": {}}, "leaderTemplate": {"spec": {}}}
    made = default(kinds.LEADER_WORKER_SETS, make(QUEUE, leaderWorkerTemplate=pair))
    found = made["spec"]["leaderWorkerTemplate"]
    assert found["workerTemplate"] == found["leaderTemplate"]
    texts = found["workerTemplate"]["metadata"]["annotations"]
    groups = []
    for replica in ("0", "0", "1"):
        labels = {**QUEUE, names.LWS_NAME: "x", names.LWS_GROUP: replica}
        one = default(kinds.PODS, make_pod(labels, {**texts, names.LWS_SIZE: "3"}))
        assert one["metadata"]["annotations"][names.KUEUE_TOTAL] == "3"
        groups.append(one["metadata"]["labels"][names.KUEUE_GROUP])
    assert groups[0] == groups[1] != groups[2]


def test_a_pod_of_a_leader_worker_set_may_get_the_labels_of_its_controller_later() -> None:
    texts = {names.KUEUE_PARENT: "leaderworkerset.x-k8s.io/leaderworkerset", names.LWS_SIZE: "3"}
    labels = {**QUEUE, names.LWS_NAME: "x"}
    first = default(kinds.PODS, make_pod(labels, texts))
    assert names.KUEUE_GROUP not in first["metadata"]["labels"]
    first["metadata"]["labels"][names.LWS_GROUP] = "0"
    assert default(kinds.PODS, first)["metadata"]["labels"][names.KUEUE_GROUP]


def test_what_has_no_queue_and_what_is_no_job_gets_nothing() -> None:
    for kind in (kinds.DEPLOYMENTS, kinds.STATEFUL_SETS, kinds.LEADER_WORKER_SETS):
        assert find_patch(kind, make(template={"spec": {}})) == []
    assert find_patch(kinds.SERVICES, make(QUEUE)) == []
