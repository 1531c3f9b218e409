"""``evenkeel audit`` of a real API server: it tells what it lists there."""

import asyncio
import json
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from scheduler import cli
from scheduler.embedded.agents import nodes
from tests.controlplane import objects
from tests.controlplane.plane import ControlPlane
from tests.operator import manifests

NODES, PODS = "/api/v1/nodes", "/api/v1/namespaces/{}/pods"


@pytest.fixture
def two_nodes(control_plane: ControlPlane) -> Iterator[list[str]]:
    names = ["audited-1", "audited-2"]
    bodies = [nodes.make_gpu_node(name, cards=2) for name in names]
    asyncio.run(objects.create_many(control_plane, bodies))
    yield names
    for name in names:
        control_plane.request("DELETE", f"{NODES}/{name}")


def test_a_real_cluster_is_audited(
    control_plane: ControlPlane, namespace: str, two_nodes: list[str]
) -> None:
    bound = manifests.pod(
        "bound", requests={"cpu": "30"}, namespace=namespace, nodeName="audited-1"
    )
    waits = manifests.vgpu("waits", namespace=namespace)
    for body in (bound, waits):
        made = control_plane.request("POST", PODS.format(namespace), body)
        assert made.status == 201, made.body
    command = ["audit", "--kubeconfig", str(control_plane.kubeconfig()), "-o", "json"]
    result = CliRunner().invoke(cli.app, command)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    told = {node["name"]: node for node in found["nodes"]}
    assert set(two_nodes) <= told.keys()
    assert told["audited-1"]["used"]["cpu"] == 30
    assert told["audited-2"]["used"]["cpu"] == 0
    assert told["audited-1"]["capacity"]["gpuCompute"] == 2
    assert f"{namespace}/waits" in [one["pod"] for one in found["waiting"]]
