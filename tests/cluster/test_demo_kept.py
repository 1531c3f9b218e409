"""The kept demo with a real kubectl: what it prints is to be typed, and works."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator

import pytest

from scheduler.embedded.agents import cards
from tests.cluster.conftest import build_in_sight
from tests.controlplane import build
from tests.operator import kept_demo

Type = Callable[..., str]

STATEFUL_SET = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: c, image: db:1}]
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: sums}
spec:
  parallelism: 2
  completions: 3
  template:
    metadata: {annotations: {evenkeel.dev/run-seconds: "0.1"}}
    spec:
      restartPolicy: Never
      containers:
      - name: c
        image: sums:1
        resources: {limits: {nvidia.com/gpu: "1", nvidia.com/gpumem: "1000"}}
"""
POLICY = """
apiVersion: scheduling.evenkeel.dev/v1alpha1
kind: BalancePolicy
metadata: {name: odd}
spec: {priority: 1}
"""
_DAEMONS = (
    "kubectl create deployment d --image=i --dry-run=client -o yaml"
    " | sed s/Deployment/DaemonSet/ | kubectl apply --validate=false -f -"
)


PLAIN_NODE = """
apiVersion: v1
kind: Node
metadata: {name: own-plain, labels: {kubernetes.io/hostname: own-plain}}
"""


class TypedError(AssertionError):
    """A command ended with an error; the text is what it printed."""


@pytest.fixture(scope="module")
def demo(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[kept_demo.KeptDemo]:
    build_in_sight(request, "kubectl")
    with kept_demo.start(tmp_path_factory.mktemp("demo")) as running:
        running.until_ready()
        yield running


@pytest.fixture(scope="module")
def type_(demo: kept_demo.KeptDemo, tmp_path_factory: pytest.TempPathFactory) -> Type:
    """Type a line into a shell that has kubectl and the kubeconfig that was printed."""
    folder = build.ensure("kubectl")["kubectl"].parent
    (export,) = re.findall(r"^  (export KUBECONFIG=.*)$", demo.printed, re.MULTILINE)
    environment = {
        **os.environ,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "HOME": str(tmp_path_factory.mktemp("home")),
    }

    def run(line: str, text: str = "") -> str:
        done = subprocess.run(
            ["sh", "-c", f"{export}; {line}"],
            input=text,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=90,
        )
        if done.returncode:
            raise TypedError(done.stdout)
        return done.stdout

    return run


def test_every_printed_command_works_as_typed(demo: kept_demo.KeptDemo, type_: Type) -> None:
    lines = re.findall(r"^  (kubectl .*)$", demo.printed, re.MULTILINE)
    printed = {line: type_(line) for line in lines}
    assert len(printed) >= 8
    rows = printed["kubectl get pods -o wide"].splitlines()
    assert [row.split()[:3] for row in rows[1:]] == [
        [f"claims-spread-spread-{number}", "1/1", "Running"] for number in range(1, 5)
    ]
    assert {row.split()[6] for row in rows[1:]} == {"node-c", "node-d"}
    assert printed["kubectl get nodes"].count(" Ready ") == 4
    described = printed["kubectl describe pod claims-spread-spread-1"]
    assert re.search(r"Normal +Scheduled .* evenkeel +Successfully assigned", described)
    assert printed["kubectl get events"].count("Scheduled") >= 16
    assert "successfully rolled out" in printed["kubectl rollout status deployment web"]


def test_a_deployment_is_created_scaled_changed_and_deleted(type_: Type) -> None:
    assert type_("kubectl create deployment site --image=nginx:1 --replicas=2") == (
        "deployment.apps/site created\n"
    )
    met = "deployment.apps/site condition met\n"
    assert type_("kubectl wait deploy/site --for=condition=Available --timeout=60s") == met
    assert type_("kubectl scale deploy/site --replicas=4") == "deployment.apps/site scaled\n"
    wait = "kubectl wait deploy/site --timeout=60s --for=jsonpath='{.status.readyReplicas}'="
    assert type_(f"{wait}4") == met
    row = type_("kubectl get deploy site --no-headers").split()
    assert row[:4] == ["site", "4/4", "4", "4"]
    type_("kubectl scale deploy/site --replicas=1 && kubectl set image deploy/site nginx=nginx:2")
    assert "successfully rolled out" in type_("kubectl rollout status deploy/site --timeout=60s")
    images = "kubectl get pods -l app=site -o jsonpath='{.items[*].spec.containers[0].image}'"
    assert type_(images) == "nginx:2"
    type_("kubectl delete deploy site")
    type_("kubectl wait pod -l app=site --for=delete --timeout=60s")
    assert "No resources found" in type_("kubectl get rs,pods -l app=site")


def test_a_stateful_set_is_applied_and_rolled_out(type_: Type) -> None:
    assert type_("kubectl apply -f -", STATEFUL_SET) == "statefulset.apps/db created\n"
    assert type_("kubectl apply -f -", STATEFUL_SET) == "statefulset.apps/db unchanged\n"
    done = type_("kubectl rollout status sts/db --timeout=60s")
    assert "rolling update complete 2 pods" in done or "roll out complete" in done
    names = "kubectl get pods -l app=db -o jsonpath='{.items[*].metadata.name}'"
    assert type_(names) == "db-0 db-1"
    type_("kubectl delete sts db")
    type_("kubectl wait pod -l app=db --for=delete --timeout=60s")


def test_a_job_on_gpus_completes(type_: Type) -> None:
    type_("kubectl apply -f -", JOB)
    assert "condition met" in type_("kubectl wait job/sums --for=condition=Complete --timeout=60s")
    row = type_("kubectl get job sums --no-headers").split()
    assert row[:3] == ["sums", "Complete", "3/3"]
    assert "3 Succeeded" in type_("kubectl describe job sums")
    assert type_("kubectl create job once --image=busybox -- true") == "job.batch/once created\n"
    type_("kubectl delete job sums once")
    type_("kubectl wait pod -l job-name --for=delete --timeout=60s")


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("kubectl create cronjob c --image=i --schedule='* * * * *'", "runs a CronJob"),
        (_DAEMONS, "runs a DaemonSet"),
        ("kubectl create service clusterip s --tcp=80", "--dry-run=client -o yaml | kubectl apply"),
    ],
)
def test_what_does_not_work_is_refused_in_words(type_: Type, line: str, text: str) -> None:
    with pytest.raises(TypedError, match=re.escape(text)):
        type_(line)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("kubectl logs {pod}", 'pod "{pod}" has no logs'),
        ("kubectl logs -f {pod}", 'pod "{pod}" has no logs'),
        ("kubectl exec {pod} -- true", 'pod "{pod}" cannot run a command'),
        ("kubectl attach {pod}", 'pod "{pod}" has no process to attach to'),
        ("kubectl port-forward {pod} 8080:80", 'pod "{pod}" has no port to forward to'),
        ("kubectl debug {pod} --image=busybox", 'pod "{pod}" cannot be debugged'),
    ],
)
def test_what_needs_a_container_is_refused_in_one_sentence(
    type_: Type, line: str, text: str
) -> None:
    pod = "claims-spread-spread-1"
    with pytest.raises(TypedError) as refused:
        type_(line.format(pod=pod))
    why = "this cluster simulates its nodes, so no container runs"
    assert f"{text.format(pod=pod)}: {why}" in str(refused.value)


def test_nodes_that_the_user_applies_run_pods(type_: Type) -> None:
    """One with the register of HAMi's plugin, and one that says nothing of itself."""
    node = json.loads(type_("kubectl get node node-a -o json"))
    register = node["metadata"]["annotations"][cards.REGISTER].replace("GPU-", "GPU-own-")
    labels = {"kubernetes.io/hostname": "own-gpu"}
    meta = {"name": "own-gpu", "labels": labels, "annotations": {cards.REGISTER: register}}
    own = {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": node["status"]}
    type_("kubectl apply -f -", json.dumps(own))
    type_("kubectl apply -f -", PLAIN_NODE)
    for node, limits in (("own-gpu", {"nvidia.com/gpu": "1"}), ("own-plain", {"cpu": "1"})):
        container = {"name": "c", "image": "i", "resources": {"limits": limits}}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"on-{node}"},
            "spec": {
                "nodeSelector": {"kubernetes.io/hostname": node},
                "containers": [container],
            },
        }
        type_("kubectl apply -f -", json.dumps(pod))
        type_(f"kubectl wait pod/on-{node} --for=condition=Ready --timeout=60s")
    type_("kubectl delete pod on-own-gpu on-own-plain && kubectl delete node own-gpu own-plain")


def test_rules_that_the_server_does_not_evaluate_are_judged_by_the_operator(type_: Type) -> None:
    printed = type_("kubectl apply -f -", POLICY)
    assert "Warning: the rules in CEL of BalancePolicy.scheduling.evenkeel.dev" in printed
    assert "balancepolicy.scheduling.evenkeel.dev/odd created" in printed
    type_("kubectl wait bp/odd --for=condition=Ready=False --timeout=60s")
    said = type_("kubectl get bp odd -o jsonpath='{.status.conditions[0].message}'")
    assert said == "spec: must set at least one of scoring, nodePolicy and gpuPolicy"
    type_("kubectl delete bp odd")


def test_a_number_out_of_all_bounds_is_described(type_: Type) -> None:
    """The last of these tests: its pods take the nodes for a while."""
    type_("kubectl create deployment crowd --image=nginx")
    type_("kubectl scale deploy/crowd --replicas=1000000000")
    text = "kubectl wait deploy/crowd --for=condition=ReplicaFailure --timeout=60s"
    assert "condition met" in type_(text)
    text = "requests 1000000000 pods; this cluster makes at most 500"
    assert text in type_("kubectl describe deploy crowd")
    type_("kubectl delete deploy crowd")
