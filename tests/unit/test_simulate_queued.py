"""Jobs and pods with a queue in a simulation: the Workloads are those of the operator, and quota decides who starts."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from scheduler.api import kueue, names
from scheduler.api.jobs import table
from scheduler.kube.jobs import deciding, pod_deciding
from scheduler.kube.jobs.deeds import MakeWorkload
from scheduler.kube.jobs.pod_scene import PodScene
from scheduler.kube.jobs.scene import Scene
from scheduler.simulate import InputProblem, schedule
from scheduler.simulate.changes.what_if import Changes
from scheduler.simulate.situation import prepare
from tests.unit.test_queues_places import make_flavor, make_node, make_queue, make_workload

Json = dict[str, Any]
QUEUE = {names.KUEUE_QUEUE: "a"}
NODES = [make_node("n0", "r0"), make_node("n1", "r1"), make_node("other", "r2", 8, "cpu")]
TEAM = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}


def make_world(gpus: int, **more: Any) -> list[Json]:
    """Two nodes with four GPUs of a flavor, another node, and a queue with so many GPUs."""
    return [*NODES, TEAM, make_flavor("gpus", "gpu"), *make_queue("a", {"gpus": gpus}, **more)]


def make_template(gpus: int = 1, **spec: Any) -> Json:
    limits = {"nvidia.com/gpu": f"{gpus}"}
    return {"spec": {"containers": [{"name": "main", "resources": {"limits": limits}}], **spec}}


def make_object(kind: str, name: str, spec: Json, labels: Json | None = None) -> Json:
    found = table.BY_NAME[kind].kind
    meta = {"name": name, "namespace": "team", "labels": QUEUE | (labels or {})}
    return {"apiVersion": found.api_version, "kind": found.kind, "metadata": meta, "spec": spec}


def make_job(name: str, n_pods: int, gpus: int = 1, **more: Any) -> Json:
    spec = {"parallelism": n_pods, "completions": n_pods, "template": make_template(gpus)}
    labels = {names.KUEUE_CLASS: more["cls"]} if "cls" in more else {}
    made = make_object("Job", name, spec | {"suspend": more.get("suspend", True)}, labels)
    made["metadata"]["annotations"] = more.get("annotations", {})
    return made


def make_pod(name: str, gpus: int = 1, *, group: str = "", total: int = 0, **spec: Any) -> Json:
    labels, texts = dict(QUEUE), {}
    if group:
        labels[names.KUEUE_GROUP], texts = group, {names.KUEUE_TOTAL: f"{total}"}
    meta = {"name": name, "namespace": "team", "labels": labels, "annotations": texts}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, **make_template(gpus, **spec)}


def find_nodes(found: Json) -> dict[str, list[str | None]]:
    """The nodes of the pods of each owner, or of each pod without one."""
    nodes: dict[str, list[str | None]] = {}
    for pod in found["pods"]:
        name = pod["owner"]["name"] if pod["owner"] else pod["name"]
        nodes.setdefault(name, []).append(pod["node"])
    return {name: sorted(those, key=str) for name, those in nodes.items()}


def find_states(found: Json) -> dict[str, str]:
    return {one["job"]["name"]: one["state"] for one in found["workloads"]}


JOB_SET: Json = {
    "suspend": True,
    "replicatedJobs": [
        {"name": "lead", "template": {"spec": {"template": make_template()}}},
        {
            "name": "work", "replicas": 2,
            "template": {"spec": {"parallelism": 1, "completions": 1, "template": make_template()}},
        },
    ],
}  # fmt: skip
RAY: Json = {
    "headGroupSpec": {"template": make_template()},
    "workerGroupSpecs": [{"groupName": "w", "replicas": 2, "template": make_template()}],
}
JOBS: dict[str, Json] = {
    "Job": {"suspend": True, "parallelism": 3, "completions": 3, "template": make_template()},
    "JobSet": JOB_SET,
    "MPIJob": {
        "runPolicy": {"suspend": True},
        "mpiReplicaSpecs": {
            "Launcher": {"replicas": 1, "template": make_template()},
            "Worker": {"replicas": 2, "template": make_template()},
        },
    },
    "PyTorchJob": {
        "runPolicy": {"suspend": True},
        "pytorchReplicaSpecs": {
            "Master": {"replicas": 1, "template": make_template()},
            "Worker": {"replicas": 2, "template": make_template()},
        },
    },
    "RayCluster": {"suspend": True, **RAY},
    "RayJob": {"suspend": True, "rayClusterSpec": RAY},
    "RayService": {"rayClusterConfig": {"suspend": True, **RAY}},
}  # fmt: skip


def list_made(*objects: Json) -> list[kueue.Workload]:
    inventory = prepare(objects, Changes(), strict=True).inventory
    return [one for one in inventory.queueing if isinstance(one, kueue.Workload)]


@pytest.mark.parametrize("kind", JOBS)
def test_a_job_gets_the_workload_that_the_operator_makes(kind: str) -> None:
    job = make_object(kind, "j", JOBS[kind])
    (made,) = list_made(*make_world(9), job)
    deed = deciding.find_deed(Scene(row=table.BY_NAME[kind], job=copy.deepcopy(job)))
    assert isinstance(deed, MakeWorkload)
    wanted = msgspec.convert(deed.body, kueue.Workload)
    assert made.spec.pod_sets == wanted.spec.pod_sets
    assert made.spec.queue_name == wanted.spec.queue_name == "a"
    assert made.metadata.name == wanted.metadata.name
    assert made.metadata.owner_references == wanted.metadata.owner_references


@pytest.mark.parametrize("kind", JOBS)
@pytest.mark.parametrize("is_suspended", [True, False])
def test_a_job_with_quota_starts_and_one_without_waits(kind: str, is_suspended: bool) -> None:
    job = make_object(kind, "j", copy.deepcopy(JOBS[kind]))
    *under, key = table.BY_NAME[kind].suspend
    place: Any = job
    for step in under:
        place = place[step]
    place[key] = is_suspended
    found = schedule([*make_world(3), job], strict=True)
    assert find_states(found) == {"j": "admitted"}
    (nodes,) = find_nodes(found).values()
    assert len(nodes) == 3
    assert set(nodes) <= {"n0", "n1"}
    found = schedule([*make_world(2), job], strict=True)
    assert find_states(found) == {"j": "waits"}
    (nodes,) = find_nodes(found).values()
    assert nodes == [None] * 3
    assert {pod["message"].partition(":")[0] for pod in found["pods"]} == {
        "held by quota of queue a (ExceedsMaxQuota)"
    }


def test_a_trainer_job_gets_quota_for_the_pods_of_its_job_set() -> None:
    job = make_object("TrainJob", "t", {"suspend": True})
    made = make_object("JobSet", "t", JOB_SET)
    owner = {"apiVersion": job["apiVersion"], "kind": "TrainJob", "name": "t", "controller": True}
    made["metadata"] |= {"labels": {}, "ownerReferences": [owner]}
    found = schedule([*make_world(3), job, made], strict=True)
    assert [one["job"] for one in found["workloads"]] == [{"kind": "TrainJob", "name": "t"}]
    assert find_states(found) == {"t": "admitted"}
    assert sum(pod["node"] in {"n0", "n1"} for pod in found["pods"]) == 3


def test_without_a_queue_of_the_cluster_everything_is_as_it_was() -> None:
    found = schedule([*NODES, make_job("s", 1), make_job("r", 1, suspend=False), make_pod("p")])
    assert found["suspended"] == {"Job": ["team/s"]}
    assert not found["workloads"]
    assert all(nodes != [None] for nodes in find_nodes(found).values())


def test_pods_by_themselves_and_groups_have_workloads_like_the_operators() -> None:
    gate = [{"name": names.KUEUE_GATE}]
    group = [
        make_pod(f"m{i}", i % 2 + 1, group="g", total=3, schedulingGates=gate) for i in range(3)
    ]
    pods = [make_pod("p"), *group, make_pod("lone", group="h", total=2)]
    found = schedule([*make_world(5), *pods], strict=True)
    assert find_states(found) == {"p": "admitted", "g": "admitted"}
    nodes = find_nodes(found)
    assert {*nodes["m0"], *nodes["m1"], *nodes["m2"]} <= {"n0", "n1"}
    assert nodes["lone"] == [None]
    made = {one.metadata.name: one for one in list_made(*make_world(5), *pods)}
    deed = pod_deciding.find_deed(PodScene(namespace="team", group="g", pods=_add_defaults(group)))
    assert isinstance(deed, MakeWorkload)
    wanted = msgspec.convert(deed.body, kueue.Workload)
    assert sorted(one.count for one in made["g"].spec.pod_sets or ()) == [1, 2]
    assert [one.count for one in made["g"].spec.pod_sets or ()] == [
        one.count for one in wanted.spec.pod_sets or ()
    ]


def _add_defaults(pods: list[Json]) -> list[Json]:
    """Pods as an API server has them."""
    found = copy.deepcopy(pods)
    for pod in found:
        pod["metadata"]["uid"] = pod["metadata"]["name"]
        for one in pod["spec"]["containers"]:
            one["resources"]["requests"] = one["resources"]["limits"]
    return found


def test_pods_of_a_deployment_wait_one_by_one() -> None:
    template = make_template(3) | {"metadata": {"labels": QUEUE | {"app": "web"}}}
    web = {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "team"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }  # fmt: skip
    found = schedule([*make_world(7), web], strict=True)
    assert sorted(one["state"] for one in found["workloads"]) == ["admitted", "admitted", "waits"]
    assert sum(pod["node"] is not None for pod in found["pods"]) == 2


def test_the_next_run_of_a_cron_job_waits_too() -> None:
    job = make_job("x", 2)
    template = {"metadata": {"labels": QUEUE}, "spec": job["spec"]}
    cron = {
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly", "namespace": "team"},
        "spec": {"schedule": "@daily", "jobTemplate": template},
    }  # fmt: skip
    found = schedule([*make_world(1), cron], strict=True)
    assert find_states(found) == {"nightly-next": "waits"}
    assert find_nodes(found) == {"nightly": [None, None]}
    found = schedule([*make_world(2), cron], strict=True)
    assert find_states(found) == {"nightly-next": "admitted"}
    assert None not in find_nodes(found)["nightly"]


def test_a_job_may_start_with_fewer_pods() -> None:
    texts = {names.KUEUE_LEAST: "2"}
    found = schedule([*make_world(3), make_job("j", 5, annotations=texts)], strict=True)
    (row,) = found["workloads"]
    assert row["podSets"][0]["count"] == 3
    nodes = find_nodes(found)["j"]
    assert len(nodes) == 3
    assert None not in nodes


def test_who_has_to_give_quota_back_waits_again() -> None:
    """The job that comes first starts, is evicted for the more important one, and its pods wait."""
    important = {
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass",
        "metadata": {"name": "high"}, "value": 10,
    }  # fmt: skip
    holds = make_workload("old", "a", 3, 1)
    assigned = {
        "name": "main", "count": 3, "flavors": {"nvidia.com/gpu": "gpus"},
        "resourceUsage": {"nvidia.com/gpu": "3"},
    }  # fmt: skip
    conditions = [
        {"type": kind, "status": "True", "reason": kind} for kind in ("QuotaReserved", "Admitted")
    ]
    holds["status"] = {
        "admission": {"clusterQueue": "a", "podSetAssignments": [assigned]}, "conditions": conditions,
    }  # fmt: skip
    jobs = [make_job("low", 1), make_job("high", 3, cls="high")]
    found = schedule([*make_world(3), important, holds, *jobs], strict=True)
    assert {one["name"].rpartition("-")[0] or one["name"]: one["state"] for one in found["workloads"]} == {
        "job-high": "admitted", "job-low": "waits", "old": "waits",
    }  # fmt: skip
    assert find_nodes(found)["low"] == [None]
    assert None not in find_nodes(found)["high"]


def test_a_job_that_was_started_and_is_evicted_waits_again() -> None:
    """A job borrows what the other team only wants in the next round."""
    speech = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "speech"}}
    queue, local = make_queue("b", {"gpus": 4})
    local["metadata"]["namespace"] = "speech"
    theirs = [make_job("tiny", 1), make_job("mid", 1), make_job("big", 2)]
    for job in theirs:
        job["metadata"] |= {"namespace": "speech", "labels": {names.KUEUE_QUEUE: "b"}}
    jobs = [make_job("first", 4), make_job("second", 2), *theirs]
    found = schedule([*make_world(4), speech, queue, local, *jobs], strict=True)
    states, nodes = find_states(found), find_nodes(found)
    assert {states[one["metadata"]["name"]] for one in theirs} == {"admitted"}
    (evicted,) = [one for one in found["workloads"] if one["preempted"]]
    assert states[evicted["job"]["name"]] == "waits"
    assert sorted(states.values()).count("waits") == 1
    for name, state in states.items():
        assert (None in nodes[name]) == (state == "waits"), name
    assert len(found["pods"]) == 10


def test_a_moment_is_simulated_so_that_nobody_reaches_the_end_of_his_run_time() -> None:
    short = make_job("short", 3)
    short["metadata"]["labels"][names.KUEUE_RUN_TIME] = "60"
    short["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    found = schedule([*make_world(3), short, make_job("next", 3)], strict=True)
    assert find_states(found) == {"short": "admitted", "next": "waits"}
    assert find_nodes(found)["next"] == [None] * 3


def test_a_class_that_is_not_there_is_a_mistake_of_the_job() -> None:
    job = make_job("j", 1, cls="urgent")
    found = schedule([*make_world(3), job])
    (mistake,) = found["mistakes"]
    assert mistake == {
        "object": "Job team/j",
        "field": "metadata.labels[kueue.x-k8s.io/priority-class]",
        "problem": 'WorkloadPriorityClass "urgent" not found',
    }
    assert not found["workloads"]
    # In a cluster the job stays suspended.
    (pod,) = found["pods"]
    assert pod["node"] is None
    assert pod["message"] == (
        "its job gets no Workload: Job team/j: metadata.labels[kueue.x-k8s.io/priority-class]: "
        'WorkloadPriorityClass "urgent" not found'
    )
    assert found["summary"]["pending"] == 1
    with pytest.raises(InputProblem, match="urgent"):
        schedule([*make_world(3), job], strict=True)


def test_pods_of_a_group_with_a_mistake_say_so() -> None:
    pods = [make_pod(f"p{i}", group="crew", total=2 + i) for i in range(2)]
    found = schedule([*make_world(3), *pods])
    assert find_nodes(found) == {"p0": [None], "p1": [None]}
    assert all("it gets no Workload: " in one["message"] for one in found["pods"])


def test_without_nodes_only_quota_is_decided() -> None:
    world = [one for one in make_world(3) if one["kind"] != "Node"]
    found = schedule([*world, make_job("j", 2), make_job("k", 2)])
    assert find_states(found) == {"j": "admitted", "k": "waits"}


def test_jobs_wait_for_a_place_for_all_their_pods() -> None:
    """There is quota for twelve GPUs, and eight are there."""
    found = schedule([*make_world(12), make_job("large", 3, 3), make_job("small", 3, 1)])
    assert find_states(found) == {"large": "waits", "small": "admitted"}
    assert "TopologyPlacementFailed" in found["pods"][-1]["message"]
