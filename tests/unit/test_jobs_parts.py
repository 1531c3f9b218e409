"""What is read of jobs of each kind: their parts, and how far they are."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.api import names
from scheduler.api.jobs import batch, table
from scheduler.api.jobs.parts import JobEnd, JobState
from scheduler.errors import BadInput

Json = dict[str, Any]


def _read(kind: str, job: Json) -> list[tuple[str, int, str]]:
    """The name, the pods and the place of each part."""
    row = table.BY_NAME[kind]
    return [(one.name, one.n_pods, "/".join(map(str, one.place))) for one in row.list_parts(job)]


def _read_state(kind: str, job: Json) -> JobState:
    return table.BY_NAME[kind].read_state(job)


def _make_template(image: str = "work") -> Json:
    return {"spec": {"containers": [{"name": "main", "image": image}]}}


@pytest.mark.parametrize(
    ("spec", "n"),
    [
        ({}, 1),
        ({"parallelism": 3}, 3),
        ({"parallelism": 3, "completions": 2}, 2),
        ({"parallelism": 3, "completions": 9}, 3),
        ({"parallelism": 0}, 0),
    ],
)
def test_a_job_has_as_many_pods_as_run_at_once(spec: Json, n: int) -> None:
    assert _read("Job", {"spec": spec}) == [("main", n, "spec/template")]


def test_labels_that_the_jobs_controller_writes_are_not_those_of_its_workload() -> None:
    labels = {
        "controller-uid": "x", "job-name": "train", "batch.kubernetes.io/controller-uid": "x",
        "batch.kubernetes.io/job-name": "train", "mine": "1",
    }  # fmt: skip
    job = {"spec": {"template": {"metadata": {"labels": labels}}}}
    (part,) = batch.list_parts(job)
    assert part.template["metadata"]["labels"] == {
        "batch.kubernetes.io/job-name": "train",
        "mine": "1",
    }
    # The job is as it was.
    assert len(labels) == 5


@pytest.mark.parametrize(("text", "least"), [("2", 2), ("", None), ("two", None), ("-1", None)])
def test_fewer_pods_may_be_enough_for_a_job(text: str, least: int | None) -> None:
    job = {"metadata": {"annotations": {names.KUEUE_LEAST: text}}, "spec": {"parallelism": 4}}
    assert batch.list_parts(job)[0].least == least


@pytest.mark.parametrize(
    ("texts", "most", "n"),
    [
        (["1,3-5"], 10, 4),
        (["1,3-5", "4-6"], 10, 5),
        (["8-12"], 10, 2),
        (["", ""], 10, 0),
        (["x,5-3,-1,2"], 10, 1),
        (["0-9"], 0, 0),
    ],
)
def test_indexes_are_counted_once(texts: list[str], most: int, n: int) -> None:
    assert batch.count_indexes(texts, most) == n


@pytest.mark.parametrize(
    ("spec", "status", "ended"),
    [
        ({"parallelism": 3, "completions": 3}, {"succeeded": 1}, 1),
        ({"parallelism": 3, "completions": 9}, {"succeeded": 4}, 0),
        ({"parallelism": 3, "completions": 9}, {"succeeded": 7}, 1),
        ({"parallelism": 1, "completions": 1}, {"succeeded": 1}, 0),
        ({"parallelism": 3}, {}, 0),
        (
            {"parallelism": 3, "completions": 4, "completionMode": "Indexed"},
            {"succeeded": 1, "completedIndexes": "0", "failedIndexes": "1-2"},
            2,
        ),
    ],
)
def test_pods_end_for_good_once_no_other_takes_their_place(
    spec: Json, status: Json, ended: int
) -> None:
    found = _read_state("Job", {"spec": spec, "status": status})
    assert found.ended == ((("main", ended),) if ended else ())


def test_a_job_is_ready_and_ends_as_its_status_says() -> None:
    spec = {"parallelism": 3, "completions": 3}
    status: Json = {"active": 2, "ready": 1, "succeeded": 1}
    assert _read_state("Job", {"spec": spec, "status": status}) == JobState(
        is_active=True, is_ready=False, ended=(("main", 1),)
    )
    status["uncountedTerminatedPods"] = {"succeeded": ["x"]}
    assert _read_state("Job", {"spec": spec, "status": status}).is_ready
    for kind, has_succeeded in (("Complete", True), ("Failed", False)):
        status["conditions"] = [
            {"type": "Suspended", "status": "True"},
            {"type": kind, "status": "True", "message": "so"},
        ]
        found = _read_state("Job", {"spec": spec, "status": status})
        assert found.end == JobEnd(has_succeeded, "so")
    status["conditions"][1]["status"] = "False"
    assert _read_state("Job", {"spec": spec, "status": status}).end is None


def test_a_job_set_has_a_part_for_each_replicated_job() -> None:
    def make(name: str, replicas: int, **spec: int) -> Json:
        template = {"spec": {"template": _make_template(), **spec}}
        return {"name": name, "replicas": replicas, "template": template}

    jobs = [make("Leader", 1), make("workers", 2, parallelism=4, completions=3)]
    job: Json = {"spec": {"replicatedJobs": jobs}}
    assert _read("JobSet", job) == [
        ("leader", 1, "spec/replicatedJobs/0/template/spec/template"),
        ("workers", 6, "spec/replicatedJobs/1/template/spec/template"),
    ]
    statuses = [
        {"name": "Leader", "ready": 1, "active": 1},
        {"name": "workers", "ready": 1, "succeeded": 1},
    ]
    job["status"] = {"replicatedJobsStatus": statuses}
    assert _read_state("JobSet", job) == JobState(
        is_active=True, is_ready=True, ended=(("workers", 3),)
    )


def test_jobs_of_kubeflow_have_a_part_for_each_kind_of_replicas() -> None:
    specs = {"Worker": {"replicas": 3}, "Launcher": {}, "Other": {"replicas": 9}}
    assert _read("MPIJob", {"spec": {"mpiReplicaSpecs": specs}}) == [
        ("launcher", 1, "spec/mpiReplicaSpecs/Launcher/template"),
        ("worker", 3, "spec/mpiReplicaSpecs/Worker/template"),
        # Whatever may become pods has quota.
        ("other", 9, "spec/mpiReplicaSpecs/Other/template"),
    ]
    specs = {"Worker": {"replicas": 3}, "Master": {"replicas": 1}}
    job: Json = {"spec": {"pytorchReplicaSpecs": specs}}
    assert [one[:2] for one in _read("PyTorchJob", job)] == [("master", 1), ("worker", 3)]
    job["status"] = {
        "replicaStatuses": {"Worker": {"active": 1}},
        "conditions": [{"type": "Running", "status": "True"}],
    }
    assert _read_state("PyTorchJob", job) == JobState(is_active=True, is_ready=True)


@pytest.mark.parametrize(
    ("kind", "key", "order"),
    [
        ("TFJob", "tfReplicaSpecs", ["chief", "master", "ps", "worker", "evaluator"]),
        ("XGBoostJob", "xgbReplicaSpecs", ["master", "worker"]),
        ("PaddleJob", "paddleReplicaSpecs", ["master", "worker"]),
        ("JAXJob", "jaxReplicaSpecs", ["worker"]),
    ],
)
def test_the_kinds_of_replicas_of_each_training_job_are_in_kueues_order(
    kind: str, key: str, order: list[str]
) -> None:
    """The first one with a class gives the job its priority, and Workloads of Kueue have this order."""
    written = {"Worker": "worker", "PS": "ps", "Master": "MASTER", "Evaluator": "Evaluator", "Chief": "Chief"}  # fmt: skip
    names = [one for one in written.values() if one.lower() in order]
    job: Json = {"spec": {key: {name: {"replicas": 2} for name in reversed(names)}}}
    # Operators take a kind in any spelling, and the template is where the user has it.
    assert _read(kind, job) == [
        (name, 2, f"spec/{key}/{next(one for one in names if one.lower() == name)}/template")
        for name in order
    ]


def test_ray_adds_containers_and_pods_of_its_own() -> None:
    cluster: Json = {
        "headGroupSpec": {"template": _make_template("ray")},
        "workerGroupSpecs": [
            {"groupName": "Small", "template": _make_template()},
            {"groupName": "tpu", "replicas": 2, "numOfHosts": 4, "template": _make_template()},
        ],
        "enableInTreeAutoscaling": True,
    }
    found = [("head", 1), ("small", 1), ("tpu", 8)]
    assert [one[:2] for one in _read("RayCluster", {"spec": cluster})] == found
    service = {"spec": {"rayClusterConfig": cluster}}
    assert [one[:2] for one in _read("RayService", service)] == found
    job: Json = {"spec": {"rayClusterSpec": cluster, "submissionMode": "K8sJobMode"}}
    assert _read("RayJob", job)[-1] == ("submitter", 1, "spec/submitterPodTemplate")
    head, *_, submitter = table.BY_NAME["RayJob"].list_parts(job)
    names_of = [one["name"] for one in head.template["spec"]["containers"]]
    assert names_of == ["main", "autoscaler"]
    (container,) = submitter.template["spec"]["containers"]
    assert (container["image"], container["resources"]["requests"]["cpu"]) == ("ray", "500m")
    job["spec"]["submissionMode"] = "SidecarMode"
    head, *_ = table.BY_NAME["RayJob"].list_parts(job)
    assert len(head.template["spec"]["containers"]) == 3
    assert len(cluster["headGroupSpec"]["template"]["spec"]["containers"]) == 1


@pytest.mark.parametrize("is_ready", [True, False])
def test_a_ray_service_is_ready_and_never_ends(is_ready: bool) -> None:
    condition = {"type": "Ready", "status": str(is_ready)}
    found = _read_state("RayService", {"spec": {}, "status": {"conditions": [condition]}})
    assert found == JobState(is_active=is_ready, is_ready=is_ready)


@pytest.mark.parametrize(
    ("deployed", "wanted"),
    [
        ("", JobState()),
        ("Suspended", JobState()),
        ("Running", JobState(is_active=True)),
        ("ValidationFailed", JobState(is_active=True, is_on_hold=True)),
        ("Complete", JobState(is_active=True, end=JobEnd(True, "so"))),
        ("Failed", JobState(is_active=True, end=JobEnd(True, "so"))),
    ],
)
def test_a_ray_job_is_as_far_as_its_deployment(deployed: str, wanted: JobState) -> None:
    status = {"jobDeploymentStatus": deployed, "jobStatus": "SUCCEEDED", "message": "so"}
    assert _read_state("RayJob", {"spec": {}, "status": status}) == wanted


@pytest.mark.parametrize(
    ("kind", "job", "place"),
    [
        ("Job", {"spec": {"parallelism": -1}}, "spec.parallelism"),
        ("Job", {"spec": "no"}, "spec"),
        ("JobSet", {"spec": {"replicatedJobs": {}}}, "spec.replicatedJobs"),
        (
            "JobSet",
            {"spec": {"replicatedJobs": [{"replicas": "2"}]}},
            "spec.replicatedJobs[0].replicas",
        ),
        (
            "RayJob",
            {"spec": {"rayClusterSpec": {"workerGroupSpecs": [1]}}},
            "spec.rayClusterSpec.workerGroupSpecs[0]",
        ),
        ("MPIJob", {"spec": {"mpiReplicaSpecs": {"Worker": 1}}}, "spec.mpiReplicaSpecs.Worker"),
    ],
)
def test_what_cannot_be_is_named(kind: str, job: Json, place: str) -> None:
    with pytest.raises(BadInput) as error:
        _read(kind, job)
    assert error.value.field == place
