"""Segments of owners: pods in a row of ranks that go to a domain of their own; and pods that are made late."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.api import names
from scheduler.api.door import events
from scheduler.api.groups import objects
from scheduler.api.groups.definitions import Constraint, Part, Rule, Take
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.state.groups import parts
from tests import make
from tests.unit import group_objects as group

Json = dict[str, Any]
KAI = "kai.scheduler/"
LWS = "leaderworkerset.sigs.k8s.io/"
JOBSET = "alpha.jobset.sigs.k8s.io/"
SEGMENTS = {f"{KAI}segment-size": "2", f"{KAI}segment-topology-required-placement": "rack"}
OWN = {f"{KAI}topology": "t", f"{KAI}topology-required-placement": "zone"}
RACK = Constraint(Rule.KAI, topology="t", required="rack")
ALONE = {f"{LWS}subgroup-exclusive-topology": "rack"}


def pytorch(workers: int, notes: Json, **spec: Any) -> Json:
    template = {"metadata": {"annotations": notes}}
    replicas = {"Master": {"replicas": 1}, "Worker": {"replicas": workers, "template": template}}
    return {"pytorchReplicaSpecs": replicas, **spec}


def pair(size: int, policy: Json | None = None, notes: Json | None = None) -> Json:
    workers = {"metadata": {"annotations": notes or {}}}
    policies = {} if policy is None else {"subGroupPolicy": policy}
    return {
        "leaderWorkerTemplate": {
            "size": size,
            "workerTemplate": workers,
            "leaderTemplate": {},
            **policies,
        }
    }


def list_takes(root: Part) -> list[tuple[str, int, tuple[Take, ...]]]:
    return [(one.name, one.minimum, one.takes) for one in root.list_leaves()]


def test_the_workers_of_a_pytorch_job_are_cut_into_segments() -> None:
    found = group.make_object(objects.PyTorchJob, pytorch(5, SEGMENTS), annotations=OWN)
    root = group.read(found).root
    assert root.constraint == Constraint(Rule.KAI, topology="t", required="zone")
    master, workers = root.parts
    assert (master.name, workers.name, workers.minimum) == ("master", "worker", 3)
    assert list_takes(workers) == [
        ("worker-0", 2, (Take("worker", 0, 2),)),
        ("worker-1", 2, (Take("worker", 2, 4),)),
        ("worker-2", 1, (Take("worker", 4, 5),)),
    ]
    assert {one.constraint for one in workers.parts} == {RACK}


def test_a_size_without_a_level_cuts_nothing() -> None:
    notes = {f"{KAI}segment-size": "2"}
    root = group.read(group.make_object(objects.PyTorchJob, pytorch(4, notes))).root
    assert [one.name for one in root.list_leaves()] == ["master", "worker"]


def test_segments_within_the_elastic_minimum_must_be_placed() -> None:
    spec = pytorch(6, SEGMENTS, elasticPolicy={"minReplicas": 4, "maxReplicas": 9})
    root = group.read(group.make_object(objects.PyTorchJob, spec)).root
    assert [one.minimum for one in root.list_leaves()] == [1, 2, 1, 0]


def count_looks(n_segments: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Count how often a group of one pod with so many segments is searched for its parts."""
    looks: list[None] = []

    def look(self: parts.Parts, leaves: Any) -> None:
        looks.append(None)
        make_parts(self, leaves)

    make_parts = parts.Parts.__init__
    monkeypatch.setattr(parts.Parts, "__init__", look)
    labels = {
        names.TRAINING_NAME: "g",
        names.TRAINING_OPERATOR: "pytorchjob-controller",
        names.TRAINING_PART: "worker",
        names.TRAINING_INDEX: "0",
    }
    notes = {names.GANG: "1"}
    engine = Engine(Config())
    spec = pytorch(2 * n_segments, SEGMENTS)
    found = group.make_object(objects.PyTorchJob, spec, annotations=notes)
    pod = make.pod(name="w", namespace="ns", labels=labels, annotations=notes)
    for one in (make.node(name="n", cpu=1), found, pod):
        engine.handle(events.Seen(one), 0)
    assert len(engine.decide(0, Unlimited()).binds) == 0
    monkeypatch.undo()
    return len(looks)


def test_a_group_is_searched_for_its_parts_as_often_however_many_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A tenant writes how many there are."""
    few, many = (count_looks(n, monkeypatch) for n in (2, 64))
    assert 0 < few == many


@pytest.mark.parametrize(
    ("run", "least"),
    [({}, [1, 2]), ({"runPolicy": {"schedulingPolicy": {"minAvailable": 2}}}, [1, 1])],
)
def test_the_elastic_minimum_of_a_pytorch_job_counts_unless_another_is_given(
    run: Json, least: list[int]
) -> None:
    spec = pytorch(5, {}, elasticPolicy={"minReplicas": 3}, **run)
    root = group.read(group.make_object(objects.PyTorchJob, spec)).root
    assert [one.minimum for one in root.list_leaves()] == least


@pytest.mark.parametrize(
    ("size", "policy", "expected"),
    [
        # As LeaderWorkerSet numbers subgroups: a leader that is one too many is in the first one.
        (5, {"subGroupSize": 2}, [("segment-0", 3, (Take("leader", 0, 1), Take("workers", 1, 3))), ("segment-1", 2, (Take("workers", 3, 5),))]),
        (4, {"subGroupSize": 2}, [("segment-0", 2, (Take("leader", 0, 1), Take("workers", 1, 2))), ("segment-1", 2, (Take("workers", 2, 4),))]),
        (5, {"subGroupSize": 2, "subGroupPolicyType": "LeaderExcluded"}, [("leader", 1, ()), ("segment-0", 2, (Take("workers", 1, 3),)), ("segment-1", 2, (Take("workers", 3, 5),))]),
        (2, {"subGroupSize": 1}, [("segment-0", 1, (Take("leader", 0, 1),)), ("segment-1", 1, (Take("workers", 1, 2),))]),
    ],
)  # fmt: skip
def test_the_subgroups_of_a_leader_worker_set_have_a_domain_each(
    size: int, policy: Json, expected: list[Any]
) -> None:
    found = group.make_object(objects.LeaderWorkerSet, pair(size, policy), annotations=ALONE)
    root = group.read(found).root
    assert list_takes(root) == expected
    constraints = {one.constraint for one in root.parts if one.takes}
    assert constraints == {Constraint(Rule.KEEL, required="rack")}


@pytest.mark.parametrize("on_owner", [True, False])
def test_kais_annotations_cut_a_leader_worker_set(on_owner: bool) -> None:
    level = {f"{KAI}segment-topology-preferred-placement": "rack"}
    size = {f"{KAI}segment-size": "3"}
    spec = pair(6, None, level | ({} if on_owner else size))
    own = {f"{KAI}topology": "t"} | (size if on_owner else {})
    root = group.read(group.make_object(objects.LeaderWorkerSet, spec, annotations=own)).root
    assert [one.minimum for one in root.parts] == [3, 3]
    assert root.parts[0].constraint == Constraint(Rule.KAI, topology="t", preferred=("rack",))


def test_the_workers_of_an_exclusive_leader_worker_set_are_made_when_the_leader_has_a_node() -> (
    None
):
    own = {f"{LWS}exclusive-topology": "rack", "evenkeel.dev/gang": "all"}
    root = group.read(group.make_object(objects.LeaderWorkerSet, pair(4), annotations=own)).root
    assert [(one.name, one.minimum) for one in root.parts] == [("leader", 1), ("workers", 0)]


@pytest.mark.parametrize(
    ("own", "inner", "least"),
    [
        ({}, {}, 8),
        ({f"{JOBSET}exclusive-topology": "rack"}, {}, 2),
        ({}, {f"{JOBSET}exclusive-topology": "rack"}, 2),
        ({f"{JOBSET}exclusive-topology": "rack", f"{JOBSET}node-selector": "true"}, {}, 8),
    ],
)
def test_of_each_exclusive_job_of_a_job_set_one_pod_is_made_first(
    own: Json, inner: Json, least: int
) -> None:
    template = {"metadata": {"annotations": inner}, "spec": {"parallelism": 4}}
    spec = {"replicatedJobs": [{"name": "w", "replicas": 2, "template": template}]}
    root = group.read(group.make_object(objects.JobSet, spec, annotations=own)).root
    assert [one.minimum for one in root.parts] == [least]


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (group.make_object(objects.PyTorchJob, pytorch(4, SEGMENTS | {f"{KAI}segment-size": "0"})), "'0' is not an integer within 1.."),
        (group.make_object(objects.PyTorchJob, {"pytorchReplicaSpecs": pytorch(4, SEGMENTS)["pytorchReplicaSpecs"] | {"Worker-1": {}}}), "has the name of another part"),
        (group.make_object(objects.PyTorchJob, pytorch(2**30, SEGMENTS)), "more than 1024 segments"),
        (group.make_object(objects.PyTorchJob, pytorch(4, {}, elasticPolicy={"minReplicas": 0})), "spec.elasticPolicy.minReplicas"),
        (group.make_object(objects.LeaderWorkerSet, pair(4, {"subGroupSize": 5}), annotations=ALONE), "5 is more than the 4 pods of a replica"),
        (group.make_object(objects.LeaderWorkerSet, pair(6, {"subGroupSize": 2, "subGroupPolicyType": "LeaderExcluded"}), annotations=ALONE), "2 does not divide the 5 workers"),
        (group.make_object(objects.LeaderWorkerSet, pair(4, {"subGroupSize": 2}, SEGMENTS), annotations=ALONE), "may not stand beside KAI's segments"),
        (group.make_object(objects.LeaderWorkerSet, pair(4, {"subGroupSize": 2}, {"kueue.x-k8s.io/podset-required-topology": "rack"}), annotations=ALONE), "segments cannot go elsewhere"),
        (group.make_object(objects.LeaderWorkerSet, pair(4, {"subGroupSize": 2}), annotations={f"{LWS}subgroup-exclusive-topology": "x" * 254}), "subgroup-exclusive-topology]"),
        (group.make_object(objects.LeaderWorkerSet, pair(2**31 - 1, {"subGroupSize": 1}), annotations=ALONE), "more than 1024 segments"),
    ],
)  # fmt: skip
def test_a_mistake_is_named(found: Any, problem: str) -> None:
    assert problem in group.find_mistake(found)


ODD = st.sampled_from(["", "0", "1", "2", "9" * 30, "-1", "rack", "x" * 300, "[]"])


@given(
    st.dictionaries(st.sampled_from([*SEGMENTS, f"{KAI}topology"]), ODD),
    st.dictionaries(st.sampled_from([*ALONE, f"{KAI}segment-size", f"{LWS}exclusive-topology", f"{JOBSET}exclusive-topology"]), ODD),
    group.damage({"subGroupSize": 2, "subGroupPolicyType": "LeaderExcluded"}),
    st.integers(-1, 2**33),
)  # fmt: skip
def test_any_object_gives_a_definition_or_a_mistake(
    notes: Json, own: Json, policy: Any, n: int
) -> None:
    group.check_odd(group.make_object(objects.PyTorchJob, pytorch(n, notes), annotations=own))
    spec = pair(n, policy, notes)
    group.check_odd(group.make_object(objects.LeaderWorkerSet, spec, annotations=own))
