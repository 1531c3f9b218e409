"""Workloads in ``evenkeel simulate``: the pods that each controller would make, and never one twice."""

import json
import re
from collections import Counter
from typing import Any

import msgspec
import pytest

from scheduler.api import steering
from scheduler.simulate import InputProblem, schedule
from scheduler.simulate.reading import inventory as inventories
from scheduler.simulate.reading.inventory import Inventory
from scheduler.simulate.workloads.make import make_pods
from tests import make
from tests.unit.test_simulate_what_if import node

Json = dict[str, Any]
APP = {"app": "web"}
LETTERS = "[bcdfghjklmnpqrstvwxz2456789]"
VERSIONS = {"Job": "batch/v1", "CronJob": "batch/v1", "ReplicationController": "v1"}


def template(**spec: Any) -> Json:
    containers = {"containers": [make.container(cpu=1)]}
    return {"metadata": {"labels": APP, "annotations": {"a": "b"}}, "spec": containers | spec}


def workload(kind: str, name: str = "web", *, meta: Json | None = None, **spec: Any) -> Json:
    body = {"selector": {"matchLabels": APP}, "template": template()} | spec
    version = VERSIONS.get(kind, "apps/v1")
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name} | (meta or {}), "spec": body}  # fmt: skip


def owner(kind: str, name: str) -> Json:
    ref = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "1", "controller": True}
    return {"ownerReferences": [ref]}


def there(name: str, kind: str, of: str, *, phase: str = "Running", **meta: Any) -> Json:
    """A pod in a dump."""
    pod = make.pod(name=name, node="a", cpu=1, phase=phase, labels=meta.pop("labels", APP))
    body = make.raw(pod) | {"apiVersion": "v1", "kind": "Pod"}
    body["metadata"] |= owner(kind, of) | {"uid": f"uid-{name}", "creationTimestamp": "2026-01-01T00:00:00Z"} | meta  # fmt: skip
    return body


def made(*objects: Json) -> tuple[Inventory, dict[str, Json]]:
    """What is made of objects: the inventory, and the new pods by name, as JSON."""
    inventory = inventories.read_inventory(objects)
    uids = make_pods(inventory).made
    pods = {p.metadata.name: msgspec.to_builtins(p) for p in inventory.pods if p.metadata.uid in uids}  # fmt: skip
    assert len(pods) == len(uids)
    return inventory, pods


def test_a_kind_that_is_written_in_a_template_means_nothing() -> None:
    """The API server drops it."""
    _, pods = made(workload("Job", template=template() | {"kind": "PodTemplate"}))
    assert len(pods) == 1


def test_a_deployment_makes_a_replica_set_and_its_pods() -> None:
    inventory, pods = made(workload("Deployment", replicas=3))
    (group,) = inventory.peers
    hashed = group.metadata.name.removeprefix("web-")
    assert re.fullmatch(LETTERS + "{10}", hashed)
    assert isinstance(group, steering.ReplicaSet)
    assert group.selector is not None
    assert group.selector.match_labels == APP | {"pod-template-hash": hashed}
    assert len(pods) == 3
    for name, pod in pods.items():
        assert re.fullmatch(f"web-{hashed}-{LETTERS}{{5}}", name)
        meta = pod["metadata"]
        assert meta["labels"] == APP | {"pod-template-hash": hashed}
        assert meta["annotations"] == {"a": "b"}
        ref = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"web-{hashed}", "controller": True}  # fmt: skip
        assert meta["ownerReferences"] == [ref]
    again = made(workload("Deployment", replicas=3))[1]
    assert again.keys() == pods.keys()
    other = made(workload("Deployment", template=template(nodeSelector={"a": "b"})))[1]
    assert not other.keys() & pods.keys()


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "Job"])  # fmt: skip
def test_the_default_is_one_pod_and_of_size_0_it_makes_none(kind: str) -> None:
    selector: Json = APP if kind == "ReplicationController" else {"matchLabels": APP}
    assert len(made(workload(kind, selector=selector))[1]) == 1
    none: Json = {"parallelism" if kind == "Job" else "replicas": 0}
    assert not made(workload(kind, selector=selector, **none))[1]


def test_a_replica_set_by_itself_makes_its_pods() -> None:
    for kind in ("ReplicaSet", "ReplicationController"):
        selector = APP if kind == "ReplicationController" else {"matchLabels": APP}
        _, pods = made(workload(kind, replicas=2, selector=selector))
        assert len(pods) == 2
        for name, pod in pods.items():
            assert re.fullmatch(f"web-{LETTERS}{{5}}", name)
            assert pod["metadata"]["labels"] == APP
            assert pod["metadata"]["ownerReferences"][0]["kind"] == kind


def test_a_long_name_is_cut_before_the_letters_as_the_api_server_does() -> None:
    (name,) = made(workload("ReplicaSet", "w" * 70))[1]
    assert re.fullmatch(f"w{{58}}{LETTERS}{{5}}", name)


def test_a_stateful_set_numbers_its_pods_and_gives_each_its_claims() -> None:
    claims = [{"metadata": {"name": "data"}}, {"metadata": {"name": "log"}}]
    _, pods = made(
        workload(
            "StatefulSet", "db", replicas=2, ordinals={"start": 5}, volumeClaimTemplates=claims
        )
    )
    assert list(pods) == ["db-5", "db-6"]
    assert pods["db-6"]["metadata"]["labels"] == APP | {
        "statefulset.kubernetes.io/pod-name": "db-6",
        "apps.kubernetes.io/pod-index": "6",
    }
    volumes = [one["persistentVolumeClaim"] for one in pods["db-6"]["spec"]["volumes"]]
    assert volumes == [{"claimName": "data-db-6"}, {"claimName": "log-db-6"}]
    found = schedule([node("a"), workload("StatefulSet", "db", volumeClaimTemplates=claims)])
    text = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"
    assert found["pods"][0]["message"] == text
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    of_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast", "annotations": default},
        "provisioner": "csi.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    found = schedule([node("a"), of_class, workload("StatefulSet", "db", volumeClaimTemplates=claims)])  # fmt: skip
    assert found["pods"][0]["node"] == "a"
    assert not found["mistakes"]


def test_a_stateful_set_fills_only_the_numbers_that_have_no_pod() -> None:
    present = [there("db-0", "StatefulSet", "db"), there("db-2", "StatefulSet", "db")]
    assert list(made(workload("StatefulSet", "db", replicas=4), *present)[1]) == ["db-1", "db-3"]


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ({"parallelism": 4}, 4),
        ({"parallelism": 4, "completions": 3}, 3),
        ({"parallelism": 2, "completions": 9}, 2),
        ({"completions": 9}, 1),
        ({"suspend": True}, 0),
        ({"parallelism": None}, 1),
    ],
)
def test_a_job_makes_what_it_runs_at_once(spec: Json, count: int) -> None:
    _, pods = made(workload("Job", **spec))
    assert len(pods) == count
    for name, pod in pods.items():
        assert re.fullmatch(f"web-{LETTERS}{{5}}", name)
        assert pod["metadata"]["labels"] == APP | {
            "batch.kubernetes.io/job-name": "web",
            "job-name": "web",
        }


def test_an_indexed_job_gives_the_indexes_that_are_left() -> None:
    key = "batch.kubernetes.io/job-completion-index"
    job = workload("Job", completionMode="Indexed", parallelism=3, completions=7)
    job["status"] = {"completedIndexes": "0-1,3", "succeeded": 3}
    running = there("web-2-abcde", "Job", "web", annotations={key: "2"})
    _, pods = made(job, running)
    assert [pod["metadata"]["annotations"][key] for pod in pods.values()] == ["4", "5"]
    assert [pod["metadata"]["labels"][key] for pod in pods.values()] == ["4", "5"]
    assert all(re.fullmatch(f"web-[45]-{LETTERS}{{5}}", name) for name in pods)


def test_a_job_that_is_done_or_winds_down_makes_no_more() -> None:
    done = workload("Job", completions=3, parallelism=3)
    done["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
    assert not made(done)[1]
    ran = [there(f"w{i}", "Job", "web", phase="Succeeded") for i in range(2)]
    assert len(made(workload("Job", completions=3, parallelism=3), *ran)[1]) == 1
    assert not made(workload("Job", parallelism=3), *ran)[1]


def test_a_cron_job_makes_one_run_unless_one_is_under_way_or_it_is_suspended() -> None:
    cron = workload("CronJob", "tick", jobTemplate={"spec": {"parallelism": 2, "template": template()}})  # fmt: skip
    inventory, pods = made(cron)
    assert all(re.fullmatch(f"tick-next-{LETTERS}{{5}}", name) for name in pods)
    assert len(pods) == 2
    (ref, _) = (pod["metadata"]["ownerReferences"][0] for pod in pods.values())
    assert (ref["kind"], ref["name"]) == ("Job", "tick-next")
    assert inventory.templates[f"default/{next(iter(pods))}"] == "spec.jobTemplate.spec.template."
    job = workload("Job", "tick-1", meta=owner("CronJob", "tick"))
    assert {name[:7] for name in made(cron, job)[1]} == {"tick-1-"}
    cron["spec"]["suspend"] = True
    found = schedule([cron, workload("Job", suspend=True), node("a")])
    assert found["pods"] == []
    assert found["suspended"] == {"CronJob": ["default/tick"], "Job": ["default/web"]}


def test_jobs_that_have_finished_are_counted_and_named() -> None:
    def job(name: str, status: Json, **spec: Any) -> Json:
        return workload("Job", name, **spec) | {"status": status}

    over = {"conditions": [{"type": "Failed", "status": "True"}]}
    found = schedule([
        node("a"), job("over", over), job("done", {"succeeded": 2}, completions=2), job("over-too", over, suspend=True),
        job("half", {"succeeded": 1}, completions=2), job("queue", {"succeeded": 1}),
        job("last", {"succeeded": 1}), there("last-1", "Job", "last"),
    ])  # fmt: skip
    assert found["finished"] == {"Job": [f"default/{name}" for name in ("done", "over", "over-too", "queue")]}  # fmt: skip
    assert found["suspended"] == {}
    assert [pod["owner"]["name"] for pod in found["pods"]] == ["half"]


def test_a_daemon_set_makes_a_pod_for_each_node_that_suits_it() -> None:
    nodes = [
        node("a", labels={"gpu": "on"}),
        node("cordoned", labels={"gpu": "on"}, unschedulable=True),
        node("ill", labels={"gpu": "on"}, taints=[("node.kubernetes.io/disk-pressure", "", "NoSchedule")]),
        node("tainted", labels={"gpu": "on"}, taints=[("team", "x", "NoSchedule")]),
        node("other"),
    ]  # fmt: skip
    words = {"nodeSelector": {"gpu": "on"}, "affinity": {"podAntiAffinity": {}}}
    daemons = workload("DaemonSet", "agent", template=template(**words))
    _, pods = made(*nodes, daemons)
    fields = [
        pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
            "nodeSelectorTerms"
        ][0]["matchFields"][0]["values"][0]
        for pod in pods.values()
    ]
    assert fields == ["a", "cordoned", "ill"]
    placed = schedule([*nodes, daemons, there("agent-x", "DaemonSet", "agent")])["pods"]
    assert {pod["node"] for pod in placed} == {"cordoned", "ill"}
    host = workload("DaemonSet", "net", template=template(hostNetwork=True))
    down = node("down", taints=[("node.kubernetes.io/network-unavailable", "", "NoSchedule")])
    assert len(made(down, host)[1]) == 1
    assert not made(down, daemons)[1]


def test_a_dump_of_a_live_cluster_makes_no_pod_twice() -> None:
    """As kubectl prints them: Deployment, its old and its new ReplicaSet, their pods, a rollout half done."""
    new = workload("ReplicaSet", "web-55", replicas=2, meta=owner("Deployment", "web"))
    new["spec"]["template"]["metadata"]["labels"] = APP | {"pod-template-hash": "55"}
    old = workload("ReplicaSet", "web-44", replicas=0, meta=owner("Deployment", "web"))
    old["spec"]["template"] = template(nodeSelector={"old": "yes"})
    labels = APP | {"pod-template-hash": "55"}
    pods = [there(f"web-55-{i}", "ReplicaSet", "web-55", labels=labels) for i in range(3)]
    whole = [node("a"), workload("Deployment", replicas=3), new, old, *pods]
    assert not made(*whole)[1]
    # Of one that is missing, the ReplicaSet is the present one; the dead and the dying are missing.
    for gone in (
        pods[:2],
        [*pods[:2], pods[2] | {"status": {"phase": "Failed"}}],
        [*pods[:2], pods[2] | {"metadata": pods[2]["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:00Z"}}],
    ):  # fmt: skip
        inventory, missing = made(*whole[:4], *gone)
        ((name, pod),) = missing.items()
        assert name.startswith("web-55-")
        assert pod["metadata"]["labels"]["pod-template-hash"] == "55"
        assert len(inventory.peers) == 2
    # kubectl get nodes,pods,deployments: the Deployment's name is in that of its ReplicaSet.
    assert not made(node("a"), workload("Deployment", replicas=3), *pods)[1]
    found = schedule([node("a"), workload("Deployment", replicas=4), *pods])
    assert [pod["owner"] for pod in found["pods"]] == [{"kind": "Deployment", "name": "web"}]


def test_a_workload_of_another_group_or_namespace_is_another() -> None:
    pods = [there(f"w{i}", "ReplicaSet", "web") for i in range(2)]
    elsewhere = workload("ReplicaSet", replicas=2, meta={"namespace": "other"})
    assert len(made(elsewhere, *pods)[1]) == 2
    assert not made(workload("ReplicaSet", replicas=2), *pods)[1]


def test_replicas_are_spread_with_those_that_run_as_their_replica_set_selects_them() -> None:
    # By room alone every pod would go to a; two of the set's run there.
    nodes = [node("a", cpu=64, memory="64Gi"), node("b", cpu=8, memory="8Gi")]
    running = [there(f"r{i}", "ReplicaSet", "web") for i in range(2)]
    found = schedule([*nodes, workload("ReplicaSet", replicas=4), *running])
    assert Counter(pod["node"] for pod in found["pods"] if pod["name"] not in {"r0", "r1"}) == {"b": 2}  # fmt: skip
    others = [there(f"r{i}", "ReplicaSet", "other", labels={"app": "other"}) for i in range(2)]
    found = schedule([*nodes, workload("ReplicaSet", replicas=2), *others])
    assert Counter(pod["node"] for pod in found["pods"]) == {"a": 1, "b": 1}


def test_new_pods_wait_behind_those_that_are_in_the_cluster() -> None:
    old = there("old", "Job", "gone") | {"status": {"phase": "Pending"}}
    del old["spec"]["nodeName"]
    found = schedule([node("a", cpu=1), workload("ReplicaSet"), old])
    assert next(pod["name"] for pod in found["pods"]) == "old"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (workload("Deployment", replicas=10_000_000), "Deployment web: spec.replicas: 10000000 is not an integer within 0..200000"),
        (workload("Deployment", replicas=-1), "Deployment web: spec.replicas: -1 is not an integer within 0..200000"),
        (workload("StatefulSet", replicas="two"), "StatefulSet web: spec.replicas: 'two' is not an integer within 0..200000"),
        (workload("StatefulSet", ordinals={"start": -1}), "StatefulSet web: spec.ordinals.start: -1 is not"),
        (workload("Job", parallelism=True), "Job web: spec.parallelism: True is not an integer"),
        (workload("Job", completionMode="Some"), "Job web: spec.completionMode: 'Some' is not one of NonIndexed, Indexed"),
        (workload("Job", completionMode="Indexed"), "Job web: spec.completions: must be set where completionMode is Indexed"),
        (workload("Job", template=None), "Job web: spec.template.spec.containers: at least one container is needed"),
        (workload("Job", template=5), "Job web: spec.template: must be an object"),
        (workload("ReplicaSet", template=template(tolerations=5)), "ReplicaSet web: spec.template.spec.tolerations: must be a list, is a whole number"),
        (workload("DaemonSet", template={"spec": {"containers": []}}), "DaemonSet web: spec.template.spec.containers: at least one"),
        (workload("CronJob", jobTemplate={"spec": {"parallelism": -1}}), "CronJob web: spec.jobTemplate.spec.parallelism: -1 is not"),
        (workload("CronJob", jobTemplate={"spec": {"template": {"spec": {"containers": 5}}}}), "CronJob web: spec.jobTemplate.spec.template.spec.containers: must be a list"),
        (workload("Deployment", ""), "Deployment (no name): metadata.name: is missing"),
        (workload("Deployment", selector={"matchLabels": {"a b": "c"}}), "Deployment web: spec.selector.matchLabels: 'a b' is not"),
        (workload("Deployment") | {"spec": 5}, "Deployment web: spec: must be an object"),
    ],
)  # fmt: skip
def test_an_absurd_workload_is_named_with_its_field(body: Json, said: str) -> None:
    with pytest.raises(InputProblem) as caught:
        schedule([node("a"), body], strict=True)
    assert str(caught.value).startswith(said)
    fine = workload("Deployment", "fine")
    found = schedule([node("a"), body, fine])
    assert [pod["node"] for pod in found["pods"]] == ["a"]
    (mistake,) = found["mistakes"]
    assert f"{mistake['object']}: {mistake['field']}: {mistake['problem']}".startswith(said)


def test_all_workloads_together_have_a_bound() -> None:
    crowd = [workload("Job", f"j{i}", parallelism=150_000) for i in range(2)]
    crowd[1]["spec"]["parallelism"] = 60_000
    inventory = inventories.read_inventory(crowd, strict=False)
    assert len(make_pods(inventory).made) == 150_000
    (problem,) = inventory.mistakes.values()
    assert str(problem) == (
        "Job j1: spec: makes 60000 pods, and other objects make 150000: at most 200000 are "
        "allowed in all"
    )


def test_a_mistake_in_a_template_is_one_and_names_the_workload() -> None:
    wrong = {"containers": [make.container(gpumem=100)]}
    body = workload("Deployment", replicas=3, template=template(**wrong))
    found = schedule([node("a"), body])
    assert [pod["node"] for pod in found["pods"]] == [None] * 3
    (mistake,) = found["mistakes"]
    assert mistake["object"] == "Deployment web"
    assert mistake["field"].startswith("spec.template.spec.containers[0]")


def test_a_workload_that_is_given_twice_makes_its_pods_once() -> None:
    found = schedule([node("a"), workload("Deployment"), workload("Deployment")])
    assert len(found["pods"]) == 1
    assert found["mistakes"][0]["problem"] == "the object is given twice"


def test_what_makes_pods_in_an_unknown_way_is_named() -> None:
    inner = {"template": {"spec": {"containers": [{"name": "c"}]}}}
    kinds = {
        "LeaderWorkerSet": {"leaderWorkerTemplate": {"workerTemplate": inner["template"]}},
        "JobSet": {"replicatedJobs": [{"template": {"spec": inner}}]},
        "RayCluster": {"headGroupSpec": inner, "workerGroupSpecs": [inner]},
        "PyTorchJob": {"pytorchReplicaSpecs": {"Master": inner}},
        "Service": inner,
    }
    bodies = [{"apiVersion": "x.io/v1", "kind": kind, "spec": spec} for kind, spec in kinds.items()]
    quiet = [{"apiVersion": "x.io/v1", "kind": "Queue", "spec": {"containers": "none"}}]
    found = schedule([node("a"), *bodies, *bodies, *quiet])
    assert {one["kind"]: one["count"] for one in found["unknownWorkloads"]} == dict.fromkeys(
        kinds, 2
    )
    assert found["passedOver"] == {"Queue": 1}
    assert len(found["warnings"]) == len(kinds)


def test_the_input_stays_as_it_is() -> None:
    objects = [
        node("a"),
        workload("Deployment"),
        workload("StatefulSet", "db"),
        workload("Job", "j"),
    ]
    before = json.dumps(objects)
    assert schedule(objects) == schedule(objects)
    assert json.dumps(objects) == before


@pytest.mark.parametrize("text", ["9" * 5000, "0-" + "9" * 5000, ",".join(["0-199999"] * 999), "3-1", "5,2", "a"])  # fmt: skip
def test_indexes_that_nobody_can_read_are_a_mistake_of_their_job_alone(text: str) -> None:
    odd = workload("Job", "odd", completions=5, completionMode="Indexed")
    odd["status"] = {"completedIndexes": text}
    found = schedule([node("a"), odd, workload("Job", "good")])
    assert [row["owner"]["name"] for row in found["pods"]] == ["good"]
    (mistake,) = found["mistakes"]
    assert (mistake["object"], mistake["field"]) == ("Job odd", "status.completedIndexes")
    assert "is not like 0-2,5, in rising order" in mistake["problem"]
    assert len(mistake["problem"]) < 300
