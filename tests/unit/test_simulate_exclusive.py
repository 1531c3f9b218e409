"""Exclusive topology in `simulate`: pods have the terms that the webhooks of JobSet and LeaderWorkerSet write."""

from collections import defaultdict
from hashlib import sha1
from typing import Any

import pytest

from scheduler.api import wire
from scheduler.simulate.run import schedule
from scheduler.simulate.workloads.exclusive import Parts
from tests.unit.test_simulate_owners import ONE, TEMPLATE, Json, owner, read
from tests.unit.test_simulate_what_if import node

RACK = "topology.kubernetes.io/rack"
JOBSET = "alpha.jobset.sigs.k8s.io/exclusive-topology"
BY_SELECTOR = "alpha.jobset.sigs.k8s.io/node-selector"
LWS, PARTS = (f"leaderworkerset.sigs.k8s.io/{one}exclusive-topology" for one in ("", "subgroup-"))
# Five nodes a rack, and each has room for two pods: no rack is too small, and pods alone would not keep apart.
NODES = [node(f"n{i}", pods=2, labels={RACK: f"r{i // 5}"}) for i in range(20)]


def annotate(body: Json, **notes: str) -> Json:
    return body | {"metadata": body["metadata"] | {"annotations": notes}}


def job_set(notes: dict[str, str], inner: dict[str, str] | None = None, **template: Any) -> Json:
    spec = {"parallelism": 2, "completions": 2, **ONE} | template
    job = {"metadata": {"annotations": inner or {}}, "spec": spec}
    jobs = [{"name": "w", "replicas": 3, "template": job}]
    body = owner("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": jobs})
    return annotate(body, **notes)


def leader_worker_set(notes: dict[str, str], size: int = 4, **more: Any) -> Json:
    pair = {"size": size, "workerTemplate": TEMPLATE, **more}
    body = owner("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {"replicas": 2, "leaderWorkerTemplate": pair})  # fmt: skip
    return annotate(body, **notes)


def find_racks(*objects: Json, by: str) -> dict[str, set[str]]:
    """The racks of pods by the value of one of their labels."""
    racks = {one["metadata"]["name"]: one["metadata"]["labels"][RACK] for one in NODES}
    found: dict[str, set[str]] = defaultdict(set)
    labels = {one.metadata.name: one.metadata.labels or {} for one in read(*objects).pods}
    for pod in schedule([*NODES, *objects])["pods"]:
        assert pod["node"], pod["message"]
        found[labels[pod["name"]][by]].add(racks[pod["node"]])
    return dict(found)


def check_alone(found: dict[str, set[str]], n: int) -> None:
    assert [len(racks) for racks in found.values()] == [1] * n
    assert len(set.union(*found.values())) == n


@pytest.mark.parametrize("gang", [{}, {"evenkeel.dev/gang": "all"}], ids=["pods", "gang"])
def test_each_job_replica_and_subgroup_has_a_rack_of_its_own(gang: dict[str, str]) -> None:
    jobs = find_racks(job_set({JOBSET: RACK, **gang}), by="jobset.sigs.k8s.io/job-key")
    check_alone(jobs, 3)
    replicas = leader_worker_set({LWS: RACK, **gang})
    check_alone(find_racks(replicas, by="leaderworkerset.sigs.k8s.io/group-key"), 2)
    parts = leader_worker_set({PARTS: RACK, **gang}, subGroupPolicy={"subGroupSize": 2})
    check_alone(find_racks(parts, by="leaderworkerset.sigs.k8s.io/subgroup-key"), 4)


def test_without_a_domain_for_its_leader_no_pod_follows() -> None:
    full = schedule([*NODES[:10], job_set({JOBSET: RACK})])["pods"]
    assert [one["node"] is not None for one in full] == [True, True, True, True, False, False]
    # A label that no node has: the leaders wait, and so does who would follow them.
    lost = schedule([*NODES, leader_worker_set({LWS: "no-such-label"})])["pods"]
    assert {one["node"] for one in lost} == {None}


def list_terms(pod: wire.Pod, *, apart: bool) -> list[Json]:
    affinity = pod.spec.affinity or wire.Affinity()
    rules = affinity.pod_anti_affinity if apart else affinity.pod_affinity
    terms = (rules and rules.required_during_scheduling_ignored_during_execution) or []
    return [
        {
            "key": term.topology_key,
            "all": term.namespace_selector is not None,
            "rules": [
                (one.key, one.operator, *(one.values or ()))
                for one in (term.label_selector and term.label_selector.match_expressions) or ()
            ],
        }
        for term in terms
    ]


def test_the_leader_of_a_job_has_the_terms_of_the_webhook() -> None:
    leader, follower, *_ = read(job_set({JOBSET: RACK})).pods
    name, key = "jobset.sigs.k8s.io/job-key", sha1(b"default/o-w-0", usedforsecurity=False).hexdigest()  # fmt: skip
    priority = "jobset.sigs.k8s.io/priority"
    assert list_terms(leader, apart=False) == [{"key": RACK, "all": True, "rules": [(name, "In", key)]}]  # fmt: skip
    others = [(name, "Exists"), (name, "NotIn", key), (priority, "In", "0")]
    assert list_terms(leader, apart=True) == [{"key": RACK, "all": True, "rules": others}]
    assert (leader.metadata.labels or {})[priority] == "0"
    first = ("batch.kubernetes.io/job-completion-index", "In", "0")
    assert list_terms(follower, apart=False) == [{"key": RACK, "all": False, "rules": [(name, "In", key), first]}]  # fmt: skip
    assert list_terms(follower, apart=True) == []


def test_a_template_of_a_job_set_may_name_another_level() -> None:
    leader, *_ = read(job_set({JOBSET: RACK}, {JOBSET: "block"})).pods
    assert [one["key"] for one in list_terms(leader, apart=True)] == ["block"]


def test_with_a_node_selector_a_job_goes_to_its_labelled_nodes() -> None:
    for body in (job_set({JOBSET: RACK, BY_SELECTOR: "true"}), job_set({}, {JOBSET: RACK, BY_SELECTOR: ""})):  # fmt: skip
        first = read(body).pods[0].spec
        assert first.node_selector == {"alpha.jobset.sigs.k8s.io/namespaced-job": "default_o-w-0"}
        taints = [(one.key, one.operator, one.effect) for one in first.tolerations or ()]
        assert taints == [("alpha.jobset.sigs.k8s.io/no-schedule", "Exists", "NoSchedule")]
        assert first.affinity is None
    # Without an exclusive topology the annotation means nothing.
    assert read(job_set({BY_SELECTOR: "true"})).pods[0].spec.node_selector is None


def test_a_level_is_written_once_on_a_leader_that_has_two_reasons() -> None:
    body = leader_worker_set({LWS: RACK, PARTS: RACK}, subGroupPolicy={"subGroupSize": 2})
    leader, worker, *_ = read(body).pods
    assert len(list_terms(leader, apart=False)) == len(list_terms(leader, apart=True)) == 1
    assert len(list_terms(worker, apart=False)) == 2


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (Parts(4, 2, without_leader=False), [0, 0, 1, 1]),
        (Parts(5, 2, without_leader=False), [0, 0, 0, 1, 1]),
        (Parts(5, 2, without_leader=True), [None, 0, 0, 1, 1]),
        (Parts(3, 1, without_leader=False), [0, 1, 2]),
    ],
)
def test_subgroups_are_numbered_as_by_the_webhook(parts: Parts, expected: list[int | None]) -> None:
    assert [parts.find_part(i) for i in range(parts.size)] == expected
    body = leader_worker_set({}, parts.size, subGroupPolicy={
        "subGroupSize": parts.part_size, **({"subGroupPolicyType": "LeaderExcluded"} if parts.without_leader else {}),
    })  # fmt: skip
    labels = [pod.metadata.labels or {} for pod in read(body).pods[: parts.size]]
    written = [one.get("leaderworkerset.sigs.k8s.io/subgroup-index") for one in labels]
    assert written == [None if part is None else str(part) for part in expected]


def test_subgroups_without_a_size_are_a_mistake_only_if_it_is_no_number() -> None:
    assert schedule([leader_worker_set({}, subGroupPolicy={})])["mistakes"] == []
    (mistake,) = schedule([leader_worker_set({}, subGroupPolicy={"subGroupSize": 9})])["mistakes"]
    assert mistake["field"] == "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize"
    assert mistake["problem"] == "9 is not an integer within 1..4"


def test_parts_in_several_domains_are_in_no_domain_together() -> None:
    notes = {PARTS: RACK, "evenkeel.dev/gang": "all"}
    found = schedule([*NODES, leader_worker_set(notes, subGroupPolicy={"subGroupSize": 2})])
    assert [one["domain"] for one in found["groups"]] == [None, None]
