"""Owners of pods as groups: what a Job, a JobSet and so on say of the group, its parts and their minima."""

from typing import Any

import msgspec
import pytest
from hypothesis import given

from scheduler.api import steering, wire
from scheduler.api.door import events
from scheduler.api.groups import objects, table
from scheduler.api.groups.definitions import Constraint, GroupKey, Part, Progress, Rule, Slice
from scheduler.engine import log
from tests.unit import group_objects as group

Json = dict[str, Any]
GANG, TOGETHER = "evenkeel.dev/gang", "kueue.x-k8s.io/podset-group-name"
REQUIRED = "kueue.x-k8s.io/podset-required-topology"
RACK = Constraint(Rule.KUEUE, required="rack")
KEY = GroupKey("Job.batch", "ns", "g")


def template(notes: group.Texts | None = None, deadline: int | None = None) -> Json:
    spec: Json = {} if deadline is None else {"activeDeadlineSeconds": deadline}
    return {"metadata": {"annotations": dict(notes or {})}, "spec": spec}


def job(parallelism: int = 1, pods: Json | None = None, **more: Any) -> Json:
    return {"parallelism": parallelism, "template": pods or template(), **more}


JOB_SET: Json = {
    "replicatedJobs": [
        {"name": "driver", "template": {"spec": job(1)}},
        {"name": "workers", "replicas": 2, "template": {"spec": job(4)}},
    ]
}
LEADER_WORKER_SET: Json = {
    "leaderWorkerTemplate": {"size": 4, "leaderTemplate": template(), "workerTemplate": template()}
}
MPI: Json = {
    "mpiReplicaSpecs": {
        "Worker": {"replicas": 4, "template": template()},
        "Launcher": {"template": template()},
    }
}
PYTORCH: Json = {
    "pytorchReplicaSpecs": {"Worker": {"replicas": 3}, "Master": {"replicas": 1}},
    "runPolicy": {"activeDeadlineSeconds": 60, "schedulingPolicy": {"minAvailable": 2}},
}
RAY: Json = {
    "headGroupSpec": {"template": template()},
    "workerGroupSpecs": [
        {"groupName": "big", "replicas": 2, "numOfHosts": 4, "template": template()},
        {"groupName": "off", "replicas": 3, "suspend": True},
        {"groupName": "few", "replicas": 9, "minReplicas": 1, "maxReplicas": 3},
    ],
}
SPECS: list[tuple[type[objects.Raw], Json]] = [
    (objects.Job, job(4, template({REQUIRED: "rack"}), completions=8)),
    (objects.JobSet, JOB_SET),
    (objects.LeaderWorkerSet, LEADER_WORKER_SET),
    (objects.MPIJob, MPI),
    (objects.PyTorchJob, PYTORCH),
    (objects.RayCluster, RAY),
    (objects.TrainJob, {}),
    (objects.RayJob, {}),
    (objects.RayService, {}),
]


def read_parts(found: table.GroupSource) -> dict[str, tuple[int, int]]:
    """The parts of a group with their minima and totals."""
    return {one.name: (one.minimum, one.total) for one in group.read(found).root.parts}


def stateful(notes: group.Texts | None = None, policy: str = "Parallel") -> steering.StatefulSet:
    meta = wire.Meta(
        name="g", namespace="ns", uid="uid", generation=7, annotations=dict(notes or {})
    )
    spec = steering.StatefulSetSpec(replicas=3, pod_management_policy=policy)
    return steering.StatefulSet(metadata=meta, spec=spec)


@pytest.mark.parametrize("text", ["yes", "0", "", "9" * 5000])
def test_anything_but_all_or_a_number_is_a_problem(text: str) -> None:
    found = group.make_object(objects.Job, job(), annotations={GANG: text})
    assert 'is neither "all" nor a number of pods from 1' in group.find_mistake(found)


def test_an_owner_may_ask_for_its_pods() -> None:
    found = group.make_object(objects.Job, job(), annotations={GANG: "all"})
    assert table.is_gang_asked(found)
    assert not table.is_gang_asked(group.make_object(objects.Job, job()))
    assert table.is_gang_asked(stateful({GANG: "2"}))


@pytest.mark.parametrize(
    ("spec", "status", "size"),
    [
        (job(8), None, 8),
        ({}, None, 1),
        (job(8, completions=5), None, 5),
        (job(4, completions=9), {"succeeded": 3}, 4),
        (job(4, completions=9), {"succeeded": 7}, 2),
        (job(4, completions=9), {"succeeded": 9}, 0),
        (job(0), None, 0),
    ],
)
def test_a_job_is_as_large_as_it_runs_pods_at_once(spec: Json, status: Any, size: int) -> None:
    definition = group.read(group.make_object(objects.Job, spec, status=status))
    assert definition.key == KEY
    assert definition.root == Part("", size, size)


def test_the_annotation_says_the_minimum() -> None:
    found = group.make_object(objects.Job, job(8), annotations={GANG: "3"})
    assert group.read(found).root == Part("", 3, 8)
    found = group.make_object(objects.Job, job(8, template({GANG: "3"})))
    assert group.read(found).root == Part("", 3, 8)


def test_a_minimum_that_there_cannot_be_is_named() -> None:
    found = group.make_object(objects.Job, job(2), annotations={GANG: "3"})
    assert "3 pods are to have a node at once, but there are only 2" in group.find_mistake(found)
    done = group.make_object(
        objects.Job, job(4, completions=4), status={"succeeded": 3}, annotations={GANG: "3"}
    )
    assert group.read(done).root == Part("", 1, 1)


def test_two_minima_that_differ_are_named() -> None:
    found = group.make_object(objects.Job, job(8, template({GANG: "3"})), annotations={GANG: "all"})
    assert "'3' is not 'all', which stands elsewhere" in group.find_mistake(found)


def test_a_job_ends_by_the_first_of_what_is_said() -> None:
    spec = job(2, template(deadline=50), activeDeadlineSeconds=90)
    assert group.read(group.make_object(objects.Job, spec)).run_seconds == 50
    notes = {"evenkeel.dev/run-time": "20s"}
    found = group.make_object(objects.Job, spec, annotations=notes)
    assert group.read(found).run_seconds == 20
    labels = {"kueue.x-k8s.io/max-exec-time-seconds": "10"}
    assert group.read(group.make_object(objects.Job, spec, labels=labels)).run_seconds == 10
    assert group.read(group.make_object(objects.Job, job())).run_seconds is None


@pytest.mark.parametrize("text", ["", "soon", "-5", "0", "1h30", "1d", "9" * 20, "99999999h"])
def test_a_run_time_that_is_none_is_named(text: str) -> None:
    found = group.make_object(objects.Job, job(), annotations={"evenkeel.dev/run-time": text})
    assert "is not a duration: write seconds (5400) or" in group.find_mistake(found)


def test_a_job_set_is_one_group_with_a_part_for_each_of_its_jobs() -> None:
    found = group.make_object(objects.JobSet, JOB_SET)
    assert group.read(found).key == GroupKey("JobSet.jobset.x-k8s.io", "ns", "g")
    assert group.read(found).root.minimum == 2
    assert read_parts(found) == {"driver": (1, 1), "workers": (8, 8)}


@pytest.mark.parametrize(
    ("spec", "status", "notes", "spare", "succeeded"),
    [
        # Five others follow the first that succeed.
        (job(4, completions=9), {}, {}, 5, 0),
        (job(4, completions=9), {"succeeded": 3}, {}, 5, 3),
        # Two of the four are left, and that is the minimum already.
        (job(4, completions=9), {"succeeded": 7}, {}, 7, 7),
        (job(4, completions=4), {"succeeded": 3}, {GANG: "3"}, 2, 3),
        (job(4), {"succeeded": 1}, {}, 0, 1),
    ],
)
def test_a_job_counts_what_has_succeeded(
    spec: Json, status: Json, notes: dict[str, str], spare: int, succeeded: int
) -> None:
    found = group.make_object(objects.Job, spec, status=status, annotations=notes)
    assert group.read(found).progress == (Progress("", spare, succeeded),)


def test_a_job_of_which_nothing_has_succeeded_has_made_no_progress() -> None:
    assert group.read(group.make_object(objects.Job, job(4, completions=4))).progress == ()


def test_a_job_set_counts_jobs_each_with_all_its_pods() -> None:
    jobs = [{"name": "w", "replicas": 3, "template": {"spec": job(2, completions=5)}}]
    status = {"replicatedJobsStatus": [{"name": "w", "succeeded": 2}]}
    found = group.make_object(objects.JobSet, {"replicatedJobs": jobs}, status=status)
    assert read_parts(found) == {"w": (6, 6)}
    assert group.read(found).progress == (Progress("w", 9, 10),)


def test_a_smaller_minimum_is_taken_from_the_parts_in_their_order() -> None:
    found = group.make_object(objects.JobSet, JOB_SET, annotations={GANG: "5"})
    assert read_parts(found) == {"driver": (1, 1), "workers": (4, 8)}


def test_jobs_that_start_when_others_run_have_no_minimum() -> None:
    spec = JOB_SET | {"startupPolicy": {"startupPolicyOrder": "InOrder"}}
    found = group.make_object(objects.JobSet, spec)
    assert read_parts(found) == {"driver": (1, 1), "workers": (0, 8)}
    first, second = JOB_SET["replicatedJobs"]
    spec = {"replicatedJobs": [first | {"dependsOn": [{"name": "workers"}]}, second]}
    found = group.make_object(objects.JobSet, spec)
    assert read_parts(found) == {"driver": (0, 1), "workers": (8, 8)}


def share_a_rack(*sizes: int, levels: tuple[str, ...] = ("rack", "rack")) -> objects.JobSet:
    jobs = [
        {
            "name": f"j{i}",
            "template": {"spec": job(n, template({REQUIRED: level, TOGETHER: "both"}))},
        }
        for i, (n, level) in enumerate(zip(sizes, levels, strict=True))
    ]
    free = {"name": "free", "template": {"spec": job(2)}}
    return group.make_object(objects.JobSet, {"replicatedJobs": [*jobs, free]})


def test_two_templates_may_share_a_domain() -> None:
    name = f"{TOGETHER}=both"
    both = Part(name, 2, constraint=RACK, parts=(Part("j0", 1, 1), Part("j1", 4, 4)))
    assert group.read(share_a_rack(1, 4)).root == Part("", 2, parts=(both, Part("free", 2, 2)))


def test_templates_that_cannot_share_a_domain_are_named() -> None:
    assert "one of them makes one pod" in group.find_mistake(share_a_rack(2, 4))
    assert "exactly two templates" in group.find_mistake(share_a_rack(1, levels=("rack",)))
    differ = share_a_rack(1, 4, levels=("rack", "block"))
    assert "both templates must name the same level" in group.find_mistake(differ)


def test_a_leader_worker_set_is_a_group_for_each_replica() -> None:
    found = group.make_object(objects.LeaderWorkerSet, LEADER_WORKER_SET)
    key = GroupKey("LeaderWorkerSet.leaderworkerset.x-k8s.io", "ns", "g/3")
    assert table.find_object(key) == table.find_group(found)
    definition = table.read_definition(found, key)
    assert definition.key == key
    assert definition.root == Part("", 2, parts=(Part("leader", 1, 1), Part("workers", 3, 3)))


def test_a_leader_like_its_workers_shares_their_domain() -> None:
    notes = {"kueue.x-k8s.io/podset-slice-required-topology": "host", "kueue.x-k8s.io/podset-slice-size": "2"}  # fmt: skip
    pair = {"size": 4, "workerTemplate": template(notes)}
    root = group.read(
        group.make_object(objects.LeaderWorkerSet, {"leaderWorkerTemplate": pair})
    ).root
    assert root.constraint == Constraint(Rule.KUEUE, slices=(Slice("host", 2),))
    assert root.parts == (Part("leader", 1, 1), Part("workers", 3, 3))
    pair["leaderTemplate"] = template({REQUIRED: "rack"})
    root = group.read(
        group.make_object(objects.LeaderWorkerSet, {"leaderWorkerTemplate": pair})
    ).root
    assert root.constraint is None
    assert root.parts[0] == Part("leader", 1, 1, RACK)


def test_workers_that_come_after_the_leader_are_no_group() -> None:
    spec = LEADER_WORKER_SET | {"startupPolicy": "LeaderReady"}
    assert "write LeaderCreated" in group.find_mistake(
        group.make_object(objects.LeaderWorkerSet, spec)
    )


def test_a_launcher_comes_before_its_workers() -> None:
    assert read_parts(group.make_object(objects.MPIJob, MPI)) == {
        "launcher": (1, 1),
        "worker": (4, 4),
    }
    late = group.make_object(
        objects.MPIJob, MPI | {"launcherCreationPolicy": "WaitForWorkersReady"}
    )
    assert read_parts(late) == {"launcher": (0, 1), "worker": (4, 4)}


def test_a_policy_for_scheduling_is_read_where_no_annotation_says_more() -> None:
    found = group.make_object(objects.PyTorchJob, PYTORCH)
    assert read_parts(found) == {"master": (1, 1), "worker": (1, 3)}
    assert group.read(found).run_seconds == 60
    found = group.make_object(objects.PyTorchJob, PYTORCH, annotations={GANG: "all"})
    assert read_parts(found) == {"master": (1, 1), "worker": (3, 3)}


def test_a_ray_cluster_counts_hosts() -> None:
    parts = {"headgroup": (1, 1), "big": (8, 8), "off": (0, 0), "few": (3, 3)}
    assert read_parts(group.make_object(objects.RayCluster, RAY)) == parts


def test_a_train_job_and_a_ray_job_speak_of_another_object() -> None:
    train = group.make_object(objects.TrainJob, {}, annotations={GANG: "5"})
    assert table.find_group(train) == GroupKey("JobSet.jobset.x-k8s.io", "ns", "g")
    assert group.find_mistake(train) == "the JobSet that is made of it says what the group is"
    job_set = group.make_object(objects.JobSet, JOB_SET)
    asked = table.read_definition(job_set, asker=train)
    assert [one.minimum for one in asked.root.parts] == [1, 4]
    ray = group.make_object(objects.RayJob, {}, status={"rayClusterName": "g-x"})
    assert table.find_group(ray) == GroupKey("RayCluster.ray.io", "ns", "g-x")
    assert table.find_group(group.make_object(objects.RayJob, {}, status=[])) is None
    spec = {"clusterSelector": {"ray.io/cluster": "g-x"}}
    there = group.make_object(objects.RayJob, spec, status={"rayClusterName": "g-x"})
    assert table.find_group(there) is None
    assert "the RayCluster that is made of it" in group.find_mistake(ray)
    active = {"activeServiceStatus": {"rayClusterName": "g-x"}}
    serves = group.make_object(objects.RayService, {}, status=active)
    assert table.find_group(serves) == GroupKey("RayCluster.ray.io", "ns", "g-x")
    assert "the RayCluster that is made of it" in group.find_mistake(serves)
    odd: list[Any] = [{}, [], {"activeServiceStatus": [1]}, {"activeServiceStatus": {"rayClusterName": 1}}]  # fmt: skip
    for status in odd:
        assert table.find_group(group.make_object(objects.RayService, {}, status=status)) is None


def test_a_stateful_set_is_a_group_if_it_makes_its_pods_at_once() -> None:
    assert table.read_definition(stateful()).root == Part("", 3, 3)
    assert table.read_definition(stateful({GANG: "2"})).root == Part("", 2, 3)
    problem = table.read_definition(stateful(policy="OrderedReady")).problem
    assert problem is not None
    assert problem.field == "spec.podManagementPolicy"
    assert "write Parallel" in problem.text


def test_kais_annotations_of_an_owner_are_about_the_whole_group() -> None:
    notes = {"kai.scheduler/topology": "net", "kai.scheduler/topology-required-placement": "rack"}
    found = group.make_object(objects.JobSet, JOB_SET, annotations=notes)
    assert group.read(found).root.constraint == Constraint(
        Rule.KAI, topology="net", required="rack"
    )
    spec = job(2, template({REQUIRED: "rack"}))
    both = group.make_object(objects.Job, spec, annotations=notes)
    assert "a template has Kueue's annotations about places" in group.find_mistake(both)
    spec = job(2, template({REQUIRED: "rack"} | notes))
    assert "may not stand beside Kueue's" in group.find_mistake(
        group.make_object(objects.Job, spec)
    )


def test_kais_annotations_of_a_template_lie_within_those_of_the_owner() -> None:
    notes = {"kai.scheduler/topology-required-placement": "zone"}
    head = {"template": template({"kai.scheduler/topology-preferred-placement": "rack"})}
    spec = RAY | {"headGroupSpec": head}
    root = group.read(group.make_object(objects.RayCluster, spec, annotations=notes)).root
    assert root.constraint == Constraint(Rule.KAI, required="zone")
    assert root.parts[0].constraint == Constraint(Rule.KAI, preferred=("rack",))


@pytest.mark.parametrize(
    ("shape", "spec", "problem"),
    [
        (objects.Job, {"parallelism": -1}, "spec.parallelism: -1 is not an integer within 0.."),
        (objects.Job, {"parallelism": "2"}, "spec.parallelism: '2' is not"),
        (objects.Job, {"template": {"metadata": {"annotations": {GANG: 3}}}}, f"spec.template.metadata.annotations[{GANG}]: 3 is not a text"),
        (objects.JobSet, {"replicatedJobs": [{"name": "a"}] * 2}, "there is another part 'a'"),
        (objects.JobSet, {"replicatedJobs": [{"name": "a"}] * 65}, "has 65 items; at most 64"),
        (objects.JobSet, {"replicatedJobs": [{"name": "a", "replicas": 2**20, "template": {"spec": job(2**20)}}]}, "makes 1099511627776 pods"),
        (objects.MPIJob, {"mpiReplicaSpecs": []}, "spec.mpiReplicaSpecs: must be an object"),
        (objects.PyTorchJob, PYTORCH | {"runPolicy": {"activeDeadlineSeconds": 0}}, "spec.runPolicy.activeDeadlineSeconds: 0 is not"),
        (objects.RayCluster, {"workerGroupSpecs": [{}]}, "workerGroupSpecs[0].groupName: None is not"),
        (objects.LeaderWorkerSet, {"leaderWorkerTemplate": {"size": 0}}, "size: 0 is not an integer within 1.."),
    ],
)  # fmt: skip
def test_a_mistake_is_named(shape: type[objects.Raw], spec: Json, problem: str) -> None:
    found: Any = group.make_object(shape, spec)
    assert problem in group.find_mistake(found)


@pytest.mark.parametrize(("shape", "spec"), SPECS, ids=lambda one: getattr(one, "__name__", ""))
def test_any_spec_gives_a_definition_or_a_mistake(shape: type[objects.Raw], spec: Json) -> None:
    @given(group.damage(spec), group.JSON)
    def check(spec: Any, status: Any) -> None:
        found: Any = group.make_object(shape, spec, status=status)
        group.check_odd(found)

    check()


@pytest.mark.parametrize("kind", [objects.Job, objects.JobSet, objects.RayJob])
def test_what_may_be_secret_is_neither_kept_nor_recorded(kind: type[objects.Raw]) -> None:
    """A log of the engine has all that it keeps of an object, and goes into bug reports."""
    secret = [
        {"name": "main", "env": [{"name": "PASSWORD", "value": "secret"}], "args": ["secret"]}
    ]
    pods = {"metadata": {"annotations": {GANG: "all"}}, "spec": {"containers": secret}}
    body = {
        "kind": kind.__name__,
        "metadata": {"name": "g", "namespace": "ns"},
        "spec": {"parallelism": 3, "template": pods, "runtimeEnvYAML": "secret"},
    }
    found = msgspec.convert(body, kind)
    assert found.spec["parallelism"] == 3
    assert found.spec["template"]["metadata"] == pods["metadata"]
    seen: Any = events.Seen(found)  # type: ignore[arg-type]
    assert b"secret" not in log.encode(log.Happened(0.0, log.drop_secrets(seen)))
