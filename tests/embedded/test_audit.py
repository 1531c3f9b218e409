"""``evenkeel audit`` of a running cluster: the same figures as from files, and it only reads."""

import asyncio
import json
from pathlib import Path
from typing import Any

from aiohttp import web
from typer.testing import CliRunner, Result

from scheduler import cli
from scheduler.embedded import cluster as embedded
from scheduler.embedded.agents import nodes
from scheduler.embedded.api.server import Serve
from scheduler.embedded.store.statuses import ApiError
from scheduler.kube.client import Access
from scheduler.kube.watch import listing
from tests.embedded.conftest import listen, pod
from tests.prose import unwrapped

Json = dict[str, Any]


async def audit(cluster: embedded.Cluster, folder: Path) -> Result:
    kubeconfig = cluster.write_kubeconfig(folder / "kubeconfig")
    command = ["audit", "--kubeconfig", str(kubeconfig), "-o", "json"]
    return await asyncio.to_thread(CliRunner().invoke, cli.app, command)


def fill(cluster: embedded.Cluster) -> None:
    cluster.add(nodes.make_gpu_node("g1", cards=2), nodes.make_gpu_node("g2", cards=2))
    daemon = pod("agent", nodeName="g1")
    daemon["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "1"}
    ]
    cluster.add(daemon, pod("bound", nodeName="g2"), pod("waits"))


async def test_a_running_cluster_is_audited_and_nothing_in_it_changes(tmp_path: Path) -> None:
    async with embedded.start() as cluster:
        fill(cluster)
        asked = listen(cluster)
        result = await audit(cluster, tmp_path)
    assert result.exit_code == 0, result.output
    found: Json = json.loads(result.stdout)
    assert {node["name"] for node in found["nodes"]} == {"g1", "g2"}
    assert found["about"]["source"] == cluster.url
    assert found["total"]["capacity"]["gpuCompute"] == 4
    assert [one["pod"] for one in found["waiting"]] == ["default/waits"]
    assert (found["replay"]["moved"], found["replay"]["stayed"]) == (1, 1)
    of_claims = ("resourceslices", "deviceclasses", "devicetaintrules", "resourceclaims")
    assert asked == [
        ("GET", "/api/v1/nodes"),
        ("GET", "/api/v1/pods"),
        *(("GET", f"/apis/resource.k8s.io/v1/{one}") for one in of_claims),
    ]
    assert found["devices"]["unlisted"] == []


async def test_lists_come_in_pages() -> None:
    async with embedded.start() as cluster:
        cluster.add(nodes.make_gpu_node("g1", cards=1), *(pod(f"p{i}") for i in range(1203)))
        found_nodes, pods = await listing.read_nodes_and_pods(Access(url=cluster.url))
    assert [node.metadata.name for node in found_nodes] == ["g1"]
    assert len({pod.metadata.name for pod in pods}) == 1203


async def test_a_list_that_expires_halfway_is_read_again() -> None:
    refused: list[str] = []

    async def around(request: web.BaseRequest, serve: Serve) -> web.StreamResponse:
        if "continue" in request.query and not refused:
            refused.append(request.path)
            raise ApiError(410, "Expired", "compacted")
        return await serve(request)

    async with embedded.start() as cluster:
        cluster.add(*(pod(f"p{i}") for i in range(501)))
        cluster.server.around = around
        _, pods = await listing.read_nodes_and_pods(Access(url=cluster.url))
    assert refused == ["/api/v1/pods"]
    assert len(pods) == 501


async def test_a_cluster_that_refuses_ends_it_with_the_reason(tmp_path: Path) -> None:
    async def around(request: web.BaseRequest, serve: Serve) -> web.StreamResponse:
        if request.path.endswith("/pods"):
            raise ApiError(403, "Forbidden", "pods is forbidden")
        return await serve(request)

    async with embedded.start() as cluster:
        cluster.server.around = around
        result = await audit(cluster, tmp_path)
    assert result.exit_code == 2
    assert "403 Forbidden: pods is forbidden" in unwrapped(result.stderr)
    assert not result.stdout


async def test_without_the_right_to_list_claims_their_devices_are_left_out(tmp_path: Path) -> None:
    async def around(request: web.BaseRequest, serve: Serve) -> web.StreamResponse:
        if request.path.endswith("/resourceslices"):
            raise ApiError(403, "Forbidden", "resourceslices is forbidden")
        if request.path.endswith("/devicetaintrules"):
            raise ApiError(404, "NotFound", "it is not served")
        return await serve(request)

    async with embedded.start() as cluster:
        fill(cluster)
        cluster.server.around = around
        result = await audit(cluster, tmp_path)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["devices"]["unlisted"] == ["ResourceSlice: 403 Forbidden"]
