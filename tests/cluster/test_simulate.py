"""``evenkeel simulate`` of a real API server: workloads as it stores them, and what kubectl prints of them."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from scheduler import cli
from scheduler.api import kinds
from scheduler.documents import writing
from scheduler.embedded.agents import nodes
from tests.controlplane import objects
from tests.controlplane.plane import ControlPlane
from tests.operator import manifests

Json = dict[str, Any]
NODES, PODS = "/api/v1/nodes", "/api/v1/namespaces/{}/pods"
APP = {"app": "simulated"}
# The API server is shared: pods that other tests left waiting would fill these nodes up in what is simulated.
_ONLY = {"key": "app", "value": "simulated", "effect": "NoSchedule"}
_TOLERATED: Json = {"tolerations": [{"key": "app", "operator": "Exists"}]}
# kubectl refuses the whole command if the API server does not serve one of the kinds.
KINDS = ",".join(kind.plural for kind in kinds.TABLE if not kind.absent)


@pytest.fixture
def two_nodes(control_plane: ControlPlane) -> Iterator[list[str]]:
    names = ["simulated-1", "simulated-2"]
    bodies = [nodes.make_gpu_node(name, cards=2) for name in names]
    for body in bodies:
        body["metadata"]["labels"] |= APP
        body["spec"]["taints"] = [_ONLY]
    asyncio.run(objects.create_many(control_plane, bodies))
    yield names
    for name in names:
        control_plane.request("DELETE", f"{NODES}/{name}")


def workload(kind: str, name: str, **more: Any) -> Json:
    spec = manifests.vgpu("x", mem=1000)["spec"] | {"nodeSelector": APP} | _TOLERATED
    template = {"metadata": {"labels": APP}, "spec": spec}
    group = "batch" if kind == "Job" else "apps"
    selector = {} if kind == "Job" else {"selector": {"matchLabels": APP}}
    if kind == "Job":
        spec["restartPolicy"] = "Never"
    body = {"template": template, **selector, **more}
    return {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": name}, "spec": body}


def test_workloads_of_a_real_cluster_are_placed_live_and_from_a_dump_alike(
    control_plane: ControlPlane, namespace: str, two_nodes: list[str], tmp_path: Path
) -> None:
    for kind, more in (
        ("Deployment", {"replicas": 2}),
        ("StatefulSet", {"replicas": 2, "serviceName": "x"}),
        ("DaemonSet", {}),
        ("Job", {"parallelism": 2, "completions": 2, "completionMode": "Indexed"}),
    ):
        body = workload(kind, kind.lower(), **more)
        group = body["apiVersion"]
        path = f"/apis/{group}/namespaces/{namespace}/{kind.lower()}s"
        made = control_plane.request("POST", path, body)
        assert made.status == 201, made.body
    bound = manifests.vgpu("bound", namespace=namespace, nodeName=two_nodes[0], **_TOLERATED)
    made = control_plane.request("POST", PODS.format(namespace), bound)
    assert made.status == 201, made.body

    access = ["--kubeconfig", str(control_plane.kubeconfig())]
    live = simulate(*access, "--without-node", two_nodes[0], namespace=namespace)
    owners = [one["owner"]["kind"] for one in live if one["owner"]]
    # The DaemonSet has one node left; of the pods that nothing made, there is the displaced one.
    assert sorted(owners) == ["DaemonSet", *["Deployment"] * 2, *["Job"] * 2, *["StatefulSet"] * 2]
    assert {one["node"] for one in live} == {two_nodes[1]}, [one["message"] for one in live]
    assert [one["name"] for one in live if one["displacedFrom"]] == ["bound"]

    dump = tmp_path / "cluster.yaml"
    dump.write_text(writing.dump(listed(control_plane)))
    again = simulate("-f", str(dump), "--without-node", two_nodes[0], namespace=namespace)
    assert {one["name"]: one["node"] for one in again} == {one["name"]: one["node"] for one in live}


def listed(control_plane: ControlPlane) -> Json:
    """What ``kubectl get KINDS -A -o yaml`` prints."""
    body: Json = json.loads(control_plane.kubectl("get", KINDS, "-A", "-o", "json"))
    return body


def simulate(*arguments: str, namespace: str) -> list[Json]:
    result = CliRunner().invoke(cli.app, ["simulate", *arguments, "-o", "json"])
    assert result.exit_code in {0, 3}, result.output
    pods: list[Json] = json.loads(result.stdout)["pods"]
    return [one for one in pods if one["namespace"] == namespace]
