"""Pods of owners: how a pod says that it belongs to a Job, a JobSet and so on, and who asks for a group of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.api import names, wire
from scheduler.api.groups import table
from scheduler.api.groups.definitions import Constraint, GroupKey, Rule
from scheduler.api.groups.readers import owners
from scheduler.api.groups.readers.owners import ROW, OwnerPart
from tests.unit import group_objects as group

GANG = "evenkeel.dev/gang"
TRAINING = "training.kubeflow.org/"
KEY = GroupKey("Job.batch", "ns", "g")


@pytest.mark.parametrize(
    ("pod", "owner"),
    [
        (
            group.make_pod({names.JOB_INDEX: "3"}, owner="batch/v1 Job train"),
            OwnerPart("Job", GroupKey("Job.batch", "ns", "train"), "", 3),
        ),
        (
            group.make_pod({names.SET_INDEX: "2"}, owner="apps/v1 StatefulSet db"),
            OwnerPart("StatefulSet", GroupKey("StatefulSet.apps", "ns", "db"), "", 2),
        ),
        (
            group.make_pod(
                {
                    "jobset.sigs.k8s.io/jobset-name": "set",
                    "jobset.sigs.k8s.io/replicatedjob-name": "workers",
                    "jobset.sigs.k8s.io/job-index": "1",
                },
                {names.JOB_INDEX: "2"},
                owner="batch/v1 Job set-workers-1",
            ),
            OwnerPart(
                "JobSet", GroupKey("JobSet.jobset.x-k8s.io", "ns", "set"), "workers", ROW + 2
            ),
        ),
        (
            group.make_pod(
                {
                    "leaderworkerset.sigs.k8s.io/name": "llm",
                    "leaderworkerset.sigs.k8s.io/group-index": "1",
                    "leaderworkerset.sigs.k8s.io/worker-index": "3",
                },
                owner="apps/v1 StatefulSet llm-1",
            ),
            OwnerPart(
                "LeaderWorkerSet",
                GroupKey("LeaderWorkerSet.leaderworkerset.x-k8s.io", "ns", "llm/1"),
                "workers",
                3,
            ),
        ),
        (
            group.make_pod(
                {
                    f"{TRAINING}job-name": "mpi",
                    f"{TRAINING}operator-name": "mpi-operator",
                    f"{TRAINING}job-role": "launcher",
                },
                owner="batch/v1 Job mpi-launcher",
            ),
            OwnerPart("MPIJob", GroupKey("MPIJob.kubeflow.org", "ns", "mpi"), "launcher", -1),
        ),
        (
            group.make_pod(
                {
                    f"{TRAINING}job-name": "torch",
                    f"{TRAINING}operator-name": "pytorchjob-controller",
                    f"{TRAINING}replica-type": "worker",
                    f"{TRAINING}replica-index": "1",
                },
                owner="kubeflow.org/v1 PyTorchJob torch",
            ),
            OwnerPart(
                "PyTorchJob", GroupKey("PyTorchJob.kubeflow.org", "ns", "torch"), "worker", 1
            ),
        ),
        (
            group.make_pod(
                {
                    "ray.io/cluster": "ray",
                    "ray.io/group": "big",
                    "ray.io/worker-group-replica-index": "1",
                    "ray.io/replica-host-index": "2",
                }
            ),
            OwnerPart("RayCluster", GroupKey("RayCluster.ray.io", "ns", "ray"), "big", ROW + 2),
        ),
        (group.make_pod(owner="apps/v1 ReplicaSet web"), None),
        (group.make_pod(owner="example.com/v1 Job other"), None),
        (group.make_pod({"": "x"}, owner="apps/v1 ReplicaSet web"), None),
        (group.make_pod({"leaderworkerset.sigs.k8s.io/name": "llm"}), None),
        (group.make_pod({f"{TRAINING}job-name": "tf", f"{TRAINING}operator-name": "tf"}), None),
    ],
)
def test_a_pod_says_what_it_is_of_its_owner(pod: wire.Pod, owner: OwnerPart | None) -> None:
    assert owners.find_owner(pod) == owner
    member = table.read_membership(pod, table.OWNER_KINDS)
    assert (member is None) == (owner is None)
    if member is not None and owner is not None:
        assert (member.group, member.part, member.index) == (owner.group, owner.part, owner.index)


def test_the_leader_of_a_replica_is_a_part_of_its_own() -> None:
    labels = {
        "leaderworkerset.sigs.k8s.io/name": "llm",
        "leaderworkerset.sigs.k8s.io/group-index": "0",
        "leaderworkerset.sigs.k8s.io/worker-index": "0",
    }
    owner = owners.find_owner(group.make_pod(labels))
    assert owner is not None
    assert owner.part == "leader"


def test_an_owners_pods_are_a_group_only_if_somebody_asks() -> None:
    pod = group.make_pod(owner="batch/v1 Job g")
    assert table.read_membership(pod) is None
    assert table.read_membership(pod, {"JobSet"}) is None
    assert group.read_member(pod, "Job").group == KEY
    asked = group.make_pod(annotations={GANG: "all"}, owner="batch/v1 Job g")
    assert group.read_member(asked).group == KEY


def test_a_pod_joins_the_group_that_its_owner_asks_for() -> None:
    notes = {"kai.scheduler/topology-required-placement": "rack"}
    pod = group.make_pod({names.JOB_INDEX: "3"}, notes, owner="batch/v1 Job g")
    owner = owners.find_owner(pod)
    assert owner is not None
    member = table.read_part(pod, owner)
    assert (member.group, member.index, member.problem) == (KEY, 3, None)
    assert member.constraint == Constraint(Rule.KAI, required="rack")
    pod.metadata.annotations = {"kueue.x-k8s.io/pod-index-offset": "4"}
    assert table.read_part(pod, owner).problem is not None


@pytest.mark.parametrize("text", ["yes", "0", "-1", "", "All", "1.5", "9" * 5000])
def test_anything_but_all_or_a_number_is_a_problem(text: str) -> None:
    said = 'is neither "all" nor a number of pods from 1'
    assert said in group.find_problem(
        group.make_pod(annotations={GANG: text}, owner="batch/v1 Job g")
    )


def test_a_pod_without_a_known_owner_cannot_ask() -> None:
    pod = group.make_pod(annotations={GANG: "all"}, owner="apps/v1 ReplicaSet web")
    assert "has no owner of which a group could be; known are JobSet," in group.find_problem(pod)


LABELS = [
    "jobset.sigs.k8s.io/jobset-name", "jobset.sigs.k8s.io/job-index",
    "leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/group-index",
    f"{TRAINING}job-name", f"{TRAINING}operator-name", f"{TRAINING}replica-index",
    "ray.io/cluster", "ray.io/replica-host-index", names.JOB_INDEX, names.SET_INDEX, "",
]  # fmt: skip
ODD = st.sampled_from(["", "0", "-1", "x", "²", "9" * 5000, "\ud800", "mpi-operator", "a/b"])


@given(st.dictionaries(st.sampled_from(LABELS), ODD), ODD)
def test_any_labels_give_a_membership_or_a_mistake(labels: dict[str, str], text: str) -> None:
    for owner in ("", "batch/v1 Job g", "apps/v1 StatefulSet g"):
        group.check_odd_pod(group.make_pod(labels, owner=owner), *table.OWNER_KINDS)
        group.check_odd_pod(group.make_pod(labels, {GANG: text}, owner=owner))
