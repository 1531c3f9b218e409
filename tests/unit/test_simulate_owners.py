"""The pods that controllers of distributed jobs would make: their names, labels and owners, and which exist already."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from scheduler import cli
from scheduler.api import wire
from scheduler.api.groups.readers.owners import ROW, find_owner
from scheduler.api.groups.settings import GroupSettings
from scheduler.config import Config
from scheduler.documents import writing
from scheduler.simulate.changes.what_if import Changes
from scheduler.simulate.reading.inventory import Inventory
from scheduler.simulate.run import schedule
from scheduler.simulate.situation import prepare
from tests.unit.group_objects import damage
from tests.unit.test_simulate_what_if import node, pod

Json = dict[str, Any]
TEMPLATE: Json = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c"}]}}
ONE: Json = {"template": TEMPLATE}


def owner(api: str, kind: str, spec: Json, **more: Any) -> Json:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "o", "namespace": "default"}, "spec": spec} | more  # fmt: skip


def job_set(**more: Any) -> Json:
    jobs = [
        {"name": "lead", "template": {"spec": ONE}},
        {"name": "work", "replicas": 2, "template": {"spec": {"parallelism": 2, "completions": 2, **ONE}}},
    ]  # fmt: skip
    return owner("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": jobs, **more})


def leader_worker_set(**more: Any) -> Json:
    pair = {"size": 2, "workerTemplate": TEMPLATE}
    spec = {"replicas": 2, "leaderWorkerTemplate": pair, **more}
    return owner("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec)


def mpi_job(version: str = "v2beta1", **run: Any) -> Json:
    roles = {"Launcher": ONE, "Worker": {"replicas": 2, **ONE}}
    return owner(f"kubeflow.org/{version}", "MPIJob", {"mpiReplicaSpecs": roles, "runPolicy": run})


def pytorch_job(**run: Any) -> Json:
    roles = {"Master": ONE, "Worker": {"replicas": 2, **ONE}}
    return owner("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": roles, "runPolicy": run})


def cluster_spec() -> Json:
    small = {"groupName": "small", "replicas": 3, "maxReplicas": 2, **ONE}
    multi = {"groupName": "multi", "replicas": 1, "numOfHosts": 2, **ONE}
    return {"headGroupSpec": ONE, "workerGroupSpecs": [small, multi]}


def ray_cluster(**more: Any) -> Json:
    return owner("ray.io/v1", "RayCluster", cluster_spec() | more)


def ray_job(**more: Any) -> Json:
    return owner("ray.io/v1", "RayJob", {"rayClusterSpec": cluster_spec(), **more})


def ray_service(**more: Any) -> Json:
    return owner("ray.io/v1", "RayService", {"rayClusterConfig": cluster_spec(), **more})


def read(*objects: Json) -> Inventory:
    return prepare(list(objects), Changes(), strict=True).inventory


def find_above(one: wire.Pod) -> wire.Owner:
    """The controller that a pod names."""
    (above,) = one.metadata.owner_references or []
    assert above.controller
    return above


def list_made(body: Json) -> list[tuple[str, str, str, int]]:
    """Of each pod that is made: how its name begins, its owner, and its part and rank in its group."""
    rows = []
    for one in read(body).pods:
        found = find_owner(one)
        assert found is not None
        made_of_it = "RayCluster" if body["kind"].startswith("Ray") else body["kind"]
        assert found.kind == made_of_it
        assert (one.metadata.labels or {})["app"] == "x"
        above = find_above(one)
        rows.append((one.metadata.name, f"{above.kind} {above.name}", found.part, found.index))
    return rows


def test_pods_of_a_job_set_are_those_of_its_jobs() -> None:
    made = list_made(job_set())
    assert [(name[:-6], *rest) for name, *rest in made] == [
        ("o-lead-0-0", "Job o-lead-0", "lead", 0),
        ("o-work-0-0", "Job o-work-0", "work", 0),
        ("o-work-0-1", "Job o-work-0", "work", 1),
        ("o-work-1-0", "Job o-work-1", "work", ROW),
        ("o-work-1-1", "Job o-work-1", "work", ROW + 1),
    ]


def test_a_replica_is_a_leader_and_its_numbered_workers() -> None:
    assert list_made(leader_worker_set()) == [
        ("o-0", "StatefulSet o", "leader", 0),
        ("o-0-1", "StatefulSet o-0", "workers", 1),
        ("o-1", "StatefulSet o", "leader", 0),
        ("o-1-1", "StatefulSet o-1", "workers", 1),
    ]
    keys = [
        found.group.name for one in read(leader_worker_set()).pods if (found := find_owner(one))
    ]
    assert keys == ["o/0", "o/0", "o/1", "o/1"]


def test_pods_of_kubeflow_are_numbered_by_role() -> None:
    assert list_made(pytorch_job()) == [
        ("o-master-0", "PyTorchJob o", "master", 0),
        ("o-worker-0", "PyTorchJob o", "worker", 0),
        ("o-worker-1", "PyTorchJob o", "worker", 1),
    ]
    for kind, key in (("TFJob", "tf"), ("XGBoostJob", "xgb"), ("PaddleJob", "paddle")):
        roles = {"Master": ONE, "Worker": {"replicas": 2, **ONE}}
        body = owner("kubeflow.org/v1", kind, {f"{key}ReplicaSpecs": roles})
        # Each operator's pods are known by its name among their labels.
        assert list_made(body) == [
            ("o-master-0", f"{kind} o", "master", 0),
            ("o-worker-0", f"{kind} o", "worker", 0),
            ("o-worker-1", f"{kind} o", "worker", 1),
        ]
    jax = owner("kubeflow.org/v1", "JAXJob", {"jaxReplicaSpecs": {"Worker": ONE}})
    assert list_made(jax) == [("o-worker-0", "JAXJob o", "worker", 0)]
    workers = [("o-worker-0", "MPIJob o", "worker", 0), ("o-worker-1", "MPIJob o", "worker", 1)]
    launcher, *rest = list_made(mpi_job())
    assert launcher[0].startswith("o-launcher-")
    assert launcher[1:] == ("Job o-launcher", "launcher", -1)
    assert rest == workers
    assert list_made(mpi_job("v1")) == [("o-launcher", "MPIJob o", "launcher", -1), *workers]


@pytest.mark.parametrize(
    "body", [ray_cluster(), ray_job(), ray_service()], ids=lambda body: body["kind"]
)
def test_a_ray_cluster_has_a_head_and_groups_of_workers_within_their_bounds(body: Json) -> None:
    made = list_made(body)
    name = made[0][1].removeprefix("RayCluster ")
    assert (name == "o") == (body["kind"] == "RayCluster")
    assert {above for _, above, *_ in made} == {f"RayCluster {name}"}
    assert [(one[:-6], *rest) for one, _, *rest in made] == [
        (f"{name}-head", "headgroup", -1),
        (f"{name}-small-worker", "small", -1),
        (f"{name}-small-worker", "small", -1),
        (f"{name}-multi-worker", "multi", 0),
        (f"{name}-multi-worker", "multi", 1),
    ]


ALL = [job_set(), leader_worker_set(), mpi_job(), mpi_job("v1"), pytorch_job(), ray_cluster()]


@pytest.mark.parametrize("body", ALL, ids=lambda body: f"{body['kind']} {body['apiVersion']}")
def test_pods_that_exist_are_not_made_again(body: Json) -> None:
    made = read(body).pods
    kept = made[1:]
    running = [make_running(one) for one in kept]
    found = read(body, node("a"), *running).pods
    new = [one for one in found if not one.spec.node_name]
    assert [find_owner(one) for one in new] == [find_owner(made[0])]
    assert not [one for one in read(body, *running, make_running(made[0])).pods if not one.spec.node_name]  # fmt: skip


def make_running(one: wire.Pod) -> Json:
    body = pod(one.metadata.name, node="a", labels=one.metadata.labels, annotations=one.metadata.annotations)  # fmt: skip
    above = find_above(one)
    ref = {"apiVersion": above.api_version, "kind": above.kind, "name": above.name, "controller": True}  # fmt: skip
    body["metadata"]["ownerReferences"] = [ref]
    return body


def test_the_jobs_of_a_job_set_that_exist_make_their_own_pods() -> None:
    spec = {"parallelism": 2, "completions": 2, **ONE}
    job = owner("batch/v1", "Job", spec)
    ref = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "o", "controller": True}  # fmt: skip
    job["metadata"] = {"name": "o-work-1", "namespace": "default", "ownerReferences": [ref]}
    owners = [(one.metadata.owner_references or [])[0].name for one in read(job_set(), job).pods]
    assert sorted(owners) == ["o-lead-0", "o-work-0", "o-work-0", "o-work-1", "o-work-1"]
    # The StatefulSets of a LeaderWorkerSet do not write the index of a worker: its pods are made without them.
    ref = ref | {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"}
    leaders = owner("apps/v1", "StatefulSet", {"replicas": 2, **ONE})
    leaders["metadata"] |= {"ownerReferences": [ref]}
    assert len(read(leader_worker_set(), leaders).pods) == 4


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (job_set(suspend=True), "suspended"),
        (job_set() | {"status": {"conditions": [{"type": "Completed", "status": "True"}]}}, "finished"),
        (pytorch_job(suspend=True), "suspended"),
        (mpi_job(suspend=True), "suspended"),
        (mpi_job() | {"status": {"conditions": [{"type": "Succeeded", "status": "True"}]}}, "finished"),
        (ray_cluster(suspend=True), "suspended"),
        (ray_job(suspend=True), "suspended"),
        (ray_job() | {"status": {"jobStatus": "SUCCEEDED"}}, "finished"),
        (owner("trainer.kubeflow.org/v1alpha1", "TrainJob", {"suspend": True}), "suspended"),
    ],
    ids=lambda value: value if isinstance(value, str) else value["kind"],
)  # fmt: skip
def test_what_is_suspended_or_finished_makes_no_pods(body: Json, why: str) -> None:
    found = schedule([node("a"), body])
    assert found["pods"] == []
    assert found[why] == {body["kind"]: ["default/o"]}


def test_kinds_that_make_pods_are_not_named_as_unknown() -> None:
    found = schedule([node("a", pods=999), *ALL, ray_job(), ray_service()])
    assert found["unknownWorkloads"] == []
    assert found["warnings"] == []
    assert {one["owner"]["kind"] for one in found["pods"]} == {
        "JobSet", "LeaderWorkerSet", "MPIJob", "PyTorchJob", "RayCluster", "RayJob",
        "RayService",
    }  # fmt: skip


def test_a_train_job_needs_its_job_set() -> None:
    train = owner("trainer.kubeflow.org/v1alpha1", "TrainJob", {"trainer": {"numNodes": 2}})
    found = schedule([node("a"), train])
    assert found["pods"] == []
    (warning,) = found["warnings"]
    assert warning == (
        "TrainJob default/o: its pods are those of the JobSet that its runtime describes, and that JobSet is not among "
        "the objects, so no pod is made for it; add the JobSet"
    )
    found = schedule([node("a"), train, job_set()])
    assert (len(found["pods"]), found["warnings"]) == (5, [])


def test_a_ray_service_makes_no_second_cluster() -> None:
    active = {"activeServiceStatus": {"rayClusterName": "o"}}
    service = ray_service() | {"status": active}
    assert len(read(ray_cluster(), service).pods) == len(read(ray_cluster()).pods)


def test_a_ray_job_makes_no_second_cluster() -> None:
    job = ray_job() | {"status": {"rayClusterName": "o"}}
    assert len(read(job, ray_cluster()).pods) == 5
    assert read(ray_job(clusterSelector={"ray.io/cluster": "other"})).pods == []


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (job_set(), "spec.replicatedJobs[1].template.spec.template.spec.containers[0].resources.requests[cpu]"),
        (pytorch_job(), "spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].resources.requests[cpu]"),
        (ray_cluster(), "spec.workerGroupSpecs[0].template.spec.containers[0].resources.requests[cpu]"),
        (ray_job(), "spec.rayClusterSpec.workerGroupSpecs[0].template.spec.containers[0].resources.requests[cpu]"),
        (leader_worker_set(), "spec.leaderWorkerTemplate.workerTemplate.spec.containers[0].resources.requests[cpu]"),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)  # fmt: skip
def test_a_mistake_is_named_with_the_template_that_has_it(body: Json, path: str) -> None:
    wrong = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "x"}}}]}}
    names = (
        path.split(".spec.containers", maxsplit=1)[0].replace("[", ".").replace("]", "").split(".")
    )
    changed = put(body, names, wrong)
    found = schedule([node("a"), changed])
    assert [(one["object"], one["field"]) for one in found["mistakes"]] == [
        (f"{body['kind']} default/o", path)
    ]


@pytest.mark.parametrize(
    "body",
    [
        leader_worker_set(replicas=200_000),
        owner("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": {"Worker": {"replicas": 200_001, **ONE}}}),
        ray_cluster(workerGroupSpecs=[{"groupName": "g", "replicas": 2**31 - 1, "numOfHosts": 9, **ONE}]),
        owner("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": [{"name": "w", "replicas": 9, "template": {"spec": {"parallelism": 200_000, "completions": 200_000, **ONE}}}]}),
    ],
    ids=lambda body: body["kind"],
)  # fmt: skip
def test_a_workload_of_too_many_pods_is_a_mistake(body: Json) -> None:
    (mistake,) = schedule([body])["mistakes"]
    assert "200000" in mistake["problem"]


@given(st.data())
def test_whatever_is_written_nothing_fails(data: st.DataObject) -> None:
    job = owner("batch/v1", "Job", ONE)
    body = data.draw(st.sampled_from([*ALL, ray_job(), job]))
    status = {"conditions": [{"type": "Failed", "status": "False"}], "rayClusterName": "x", "jobStatus": "y"}  # fmt: skip
    damaged = body | {"spec": data.draw(damage(body["spec"])), "status": data.draw(damage(status))}
    found = schedule([node("a"), damaged])
    assert len(found["mistakes"]) < 10
    assert all(len(one["problem"]) < 3000 for one in found["mistakes"])


def put(body: Any, path: list[str], value: Any) -> Any:
    """A copy of a body in which a value is put at a path."""
    if not path:
        return value
    first, *rest = path
    if isinstance(body, list):
        at = int(first)
        return [put(one, rest, value) if i == at else one for i, one in enumerate(body)]
    return body | {first: put(body[first], rest, value)}


def test_a_leader_worker_set_can_be_scaled() -> None:
    changes = Changes(scale=("lws/o=3",))
    found = schedule([node("a"), leader_worker_set()], changes=changes)
    assert len(found["pods"]) == 6
    running = [make_running(one) for one in read(leader_worker_set()).pods]
    changes = Changes(scale=("lws/o=1",))
    found = schedule([node("a"), leader_worker_set(), *running], changes=changes)
    assert [one["name"] for one in found["removed"]] == ["o-1", "o-1-1"]


@pytest.mark.parametrize("body", ALL, ids=lambda body: f"{body['kind']} {body['apiVersion']}")
def test_beside_a_baseline_only_missing_pods_are_placed(body: Json, tmp_path: Path) -> None:
    running = [make_running(one) for one in read(body).pods[1:]]
    baseline, own = tmp_path / "baseline.yaml", tmp_path / "own.yaml"
    baseline.write_text(writing.dump_all([node("a"), body, *running]), encoding="utf-8")
    own.write_text(writing.dump_all([body]), encoding="utf-8")
    arguments = ["simulate", "--baseline", str(baseline), "-f", str(own), "-o", "json"]
    done = CliRunner().invoke(cli.app, arguments)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (len(found["pods"]), found["removed"], found["mistakes"]) == (1, [], [])
    if body["kind"] in {"PyTorchJob", "RayCluster"}:
        assert any("its templates are not compared" in text for text in found["warnings"])


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ((), "No node has the label block."),
        (("block",), "No node has the labels block and clique."),
        (("block", "clique"), "No block has places for all its pods in slices of 2 that share a clique."),
    ],
)  # fmt: skip
def test_a_group_in_slices_is_told_why_no_domain_takes_it(
    labels: tuple[str, ...], text: str
) -> None:
    notes = {
        "evenkeel.dev/gang": "all",
        "kueue.x-k8s.io/podset-required-topology": "block",
        "kueue.x-k8s.io/podset-slice-required-topology": "clique",
        "kueue.x-k8s.io/podset-slice-size": "2",
    }
    template = TEMPLATE | {"metadata": {"labels": {"app": "x"}, "annotations": notes}}
    job = owner("batch/v1", "Job", {"parallelism": 4, "completions": 4, "template": template})
    nodes = [node(f"n{i}", pods=1, labels=dict.fromkeys(labels, f"d{i}")) for i in range(4)]
    config = Config(groups=GroupSettings(topology=("block", "clique")))
    found = schedule([*nodes, job], config=config)
    assert {one["node"] for one in found["pods"]} == {None}
    assert found["groups"][0]["message"].endswith(text)
