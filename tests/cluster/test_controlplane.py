"""The control plane of the tests is a real one, and does what Evenkeel builds upon."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane import access, build, objects, plane, processes


@pytest.fixture
def node(control_plane: plane.ControlPlane) -> Iterator[str]:
    name = "controlplane-test"
    manifest = objects.node(name, extended={"nvidia.com/gpu": 8})
    asyncio.run(objects.create_many(control_plane, [manifest]))
    yield name
    control_plane.request("DELETE", f"/api/v1/nodes/{name}")


def create(cp: access.Access, pod: dict[str, Any]) -> str:
    (uid,) = asyncio.run(objects.create_many(cp, [pod]))
    return uid


def bind(
    cp: access.Access, pod: dict[str, Any], node: str, uid: str, **metadata: Any
) -> access.Answer:
    manifest = objects.binding(pod, node, uid)
    manifest["metadata"] |= metadata
    return cp.request("POST", objects.collection(manifest), manifest)


def read(cp: access.Access, pod: dict[str, Any]) -> dict[str, Any]:
    path = f"{objects.collection(pod)}/{pod['metadata']['name']}"
    answer = cp.request("GET", path)
    assert answer.status == 200, answer.body
    return dict(answer.body)


def eventually(is_so: Callable[[], bool], seconds: float = 60) -> bool:
    gives_up_at = time.monotonic() + seconds
    while not (result := is_so()) and time.monotonic() < gives_up_at:
        time.sleep(0.1)
    return result


def test_kubectl_speaks_to_a_server_of_its_own_version(kubectl: Callable[..., str]) -> None:
    version = json.loads(kubectl("version", "-o", "json"))
    assert version["clientVersion"]["gitVersion"] == version["serverVersion"]["gitVersion"]
    if not os.environ.get("KUBEBUILDER_ASSETS"):
        assert version["serverVersion"]["gitVersion"] == build.kubernetes_version()


def test_many_nodes_keep_status_and_get_no_taint(
    control_plane: plane.ControlPlane, kubectl: Callable[..., str]
) -> None:
    """With kube-apiserver's usual admission every fake node would repel every pod."""
    label = {"test": "many"}
    nodes = [objects.node(f"many-{i}", cpu=64, labels=label) for i in range(2_500)]
    uids = asyncio.run(objects.create_many(control_plane, nodes))
    selectors = {"labelSelector": "test=many"}
    listed = asyncio.run(objects.list_all(control_plane, "/api/v1/nodes", **selectors))
    shown = kubectl("get", "node", "many-7", "--no-headers")
    asyncio.run(objects.delete_all(control_plane, "/api/v1/nodes", **selectors))

    assert sorted(uids) == sorted(node["metadata"]["uid"] for node in listed)
    assert {node["status"]["allocatable"]["cpu"] for node in listed} == {"64"}
    assert not [node for node in listed if node["spec"].get("taints")]
    assert shown.split()[:2] == ["many-7", "Ready"]


def test_pods_are_created_with_the_status_they_are_given(
    control_plane: plane.ControlPlane, namespace: str, node: str
) -> None:
    pod = objects.pod("running", namespace, nodeName=node) | {"status": {"phase": "Running"}}
    create(control_plane, pod)
    assert read(control_plane, pod)["status"]["phase"] == "Running"


def test_a_user_without_a_role_is_refused(
    control_plane: plane.ControlPlane, kubectl: Callable[..., str]
) -> None:
    """Else the manifests' role could miss a verb, and no test here would notice."""
    token = control_plane.tokens["stranger"]
    assert control_plane.request("GET", "/api/v1/secrets", token=token).status == 403
    assert plane.USERS["stranger"].name in kubectl("auth", "whoami", token=token)


def test_a_binding_with_another_uid_is_refused(
    control_plane: plane.ControlPlane, namespace: str, node: str
) -> None:
    """A pod that was deleted and made anew under its name must not get the old one's node."""
    pod = objects.pod("recreated", namespace)
    create(control_plane, pod)
    refused = bind(control_plane, pod, node, "00000000-0000-0000-0000-000000000000")
    assert refused.status == 409
    assert "nodeName" not in read(control_plane, pod)["spec"]


def test_a_binding_merges_its_annotations_and_labels_into_the_pod(
    control_plane: plane.ControlPlane, namespace: str, node: str
) -> None:
    """Evenkeel writes the cards and the node of a pod in this one call."""
    pod = objects.pod(
        "merged", namespace, annotations={"kept": "a", "changed": "a"}, labels={"kept": "l"}
    )
    uid = create(control_plane, pod)
    metadata = {"annotations": {"changed": "b", "new": "b"}, "labels": {"new": "l"}}
    assert bind(control_plane, pod, node, uid, **metadata).status == 201
    bound = read(control_plane, pod)
    assert bound["spec"]["nodeName"] == node
    assert bound["metadata"]["annotations"] == {"kept": "a", "changed": "b", "new": "b"}
    assert bound["metadata"]["labels"] == {"kept": "l", "new": "l"}


def test_a_bound_pod_is_not_bound_again(
    control_plane: plane.ControlPlane, namespace: str, node: str
) -> None:
    pod = objects.pod("twice", namespace)
    uid = create(control_plane, pod)
    assert bind(control_plane, pod, node, uid).status == 201
    again = bind(control_plane, pod, node, uid, annotations={"late": "yes"})
    assert again.status == 409
    assert "late" not in read(control_plane, pod)["metadata"].get("annotations", {})


def test_a_killed_api_server_comes_back_with_its_data(
    control_plane: plane.ControlPlane, namespace: str, kubectl: Callable[..., str]
) -> None:
    pod = objects.pod("survivor", namespace)
    uid = create(control_plane, pod)
    control_plane.stop_apiserver()
    with pytest.raises(ConnectionRefusedError):
        control_plane.request("GET", "/readyz")
    control_plane.start_apiserver()
    assert read(control_plane, pod)["metadata"]["uid"] == uid
    assert "survivor" in kubectl("get", "pods", "-n", namespace)


@pytest.mark.usefixtures("node", "peers")
def test_the_real_scheduler_controllers_and_kubelet_can_join(
    control_plane: plane.ControlPlane, namespace: str, kubectl: Callable[..., str]
) -> None:
    """The peer that Evenkeel is measured against, and what makes a Deployment's pods run."""
    started = ("kube-scheduler", "kube-controller-manager", "kwok")
    control_plane.start_scheduler(config={"parallelism": 2})
    control_plane.start_controller_manager(["deployment-controller", "replicaset-controller"])
    control_plane.start_kwok()
    try:
        kubectl("create", "deployment", "app", "--image=none", "--replicas=3", "-n", namespace)
        ready = ("get", "deployment", "app", "-n", namespace, "-o=jsonpath={.status.readyReplicas}")
        assert eventually(lambda: kubectl(*ready) == "3"), control_plane.logs("kube-scheduler")
        assert all(control_plane.rss(name) > 10 << 20 for name in started)
    finally:
        for name in started:
            control_plane.kill(name)


def test_a_failed_start_shows_what_was_logged() -> None:
    with pytest.raises(plane.StartError, match=r"ended with code 1(.|\n)*--no-such-flag"):
        plane.start(extra_apiserver_flags=["--no-such-flag"])


def test_children_die_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    """Else an interrupted test run would leave an API server behind, and then another one."""
    folder = tmp_path / "plane"
    folder.mkdir()
    script = (
        "import pathlib, sys, time\n"
        "from tests.controlplane import processes\n"
        "nursery = processes.Nursery(pathlib.Path(sys.argv[1]))\n"
        "print(nursery.spawn('child', ['sleep', '600']).popen.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    command = [sys.executable, "-c", script, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        child = int(parent.stdout.readline())
        os.kill(child, 0)  # it is there
        parent.send_signal(signal.SIGKILL)
    assert eventually(lambda: not is_alive(child), seconds=10)
    assert eventually(lambda: not folder.exists(), seconds=10)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"  # dead, and only waiting for init to notice


def test_free_ports_differ() -> None:
    assert len(set(processes.free_ports(20))) == 20


def test_ready_made_programs_are_used_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = tmp_path / "etcd"
    ready.touch(mode=0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    assert build.ensure("etcd") == {"etcd": ready}


@pytest.mark.parametrize(
    ("go", "complaint"),
    [
        (None, "there is no Go on the PATH"),
        ("echo go version go1.22.3 linux/amd64", "this Go is too old"),
        ("echo cannot load module >&2; exit 1", "cannot load module"),
    ],
)
def test_without_a_good_go_the_message_says_both_ways_out(
    go: str | None, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if go:
        (tmp_path / "go").write_text(f"#!/bin/sh\n{go}\n")
        (tmp_path / "go").chmod(0o755)
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("EVENKEEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(build.BuildError, match=complaint) as raised:
        build.ensure("etcd", "kubectl")
    assert all(
        word in str(raised.value) for word in ("etcd, kubectl", "Go 1.26", "KUBEBUILDER_ASSETS")
    )


def test_an_object_is_put_into_the_store_with_the_time_that_it_says(
    control_plane: plane.ControlPlane,
) -> None:
    """The API server would choose the time and the uid itself, and etcd keeps what it is given."""
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "clocks.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Clock", "plural": "clocks"},
            "scope": "Cluster",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
        },
    }
    path, key = "/apis/example.com/v1/clocks", "/registry/example.com/clocks/"
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert control_plane.request("POST", crds, crd).status == 201
    assert eventually(lambda: control_plane.request("GET", path).status == 200)
    said = {"name": "old", "uid": "1-2", "creationTimestamp": "2001-02-03T04:05:06Z"}
    one = {"apiVersion": "example.com/v1", "kind": "Clock", "metadata": said}
    control_plane.put_into_store(f"{key}old", one)
    found = control_plane.request("GET", f"{path}/old").body["metadata"]
    assert {name: found[name] for name in said} == said
    control_plane.empty_store(key)
    assert eventually(lambda: not control_plane.request("GET", path).body["items"])
    control_plane.request("DELETE", f"{crds}/clocks.example.com")
