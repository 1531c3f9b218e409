"""``evenkeel simulate`` of a running cluster: what it lists is where pods go, and it only reads."""

import asyncio
import json
from pathlib import Path
from typing import Any

from aiohttp import web
from typer.testing import CliRunner, Result

from scheduler import cli
from scheduler.documents import writing
from scheduler.embedded import cluster as embedded
from scheduler.embedded.agents import nodes
from scheduler.embedded.api.server import Serve
from scheduler.embedded.store.statuses import ApiError
from scheduler.kube.client import Access
from scheduler.kube.watch import snapshot
from tests.embedded.conftest import listen, pod
from tests.operator import manifests
from tests.prose import unwrapped

Json = dict[str, Any]


async def simulate(cluster: embedded.Cluster, folder: Path, *arguments: str) -> Result:
    kubeconfig = cluster.write_kubeconfig(folder / "kubeconfig")
    command = ["simulate", "--kubeconfig", str(kubeconfig), "-o", "json", *arguments]
    return await asyncio.to_thread(CliRunner().invoke, cli.app, command)


def job(folder: Path, **more: Any) -> str:
    """A file of a Job that asks two whole cards."""
    asks = manifests.pod("x", limits={"nvidia.com/gpu": 2})
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "mine"}, "spec": {"template": {"spec": asks["spec"]}} | more}  # fmt: skip
    path = folder / "job.yaml"
    path.write_text(writing.dump(body))
    return str(path)


def fill(cluster: embedded.Cluster) -> None:
    cluster.add(nodes.make_gpu_node("g1", cards=2), nodes.make_gpu_node("g2", cards=2))
    cluster.add(pod("bound", nodeName="g2"), pod("waits", nodeSelector={"no": "where"}))


async def test_my_job_beside_what_a_cluster_has_and_with_a_node_gone(tmp_path: Path) -> None:
    async with embedded.start() as cluster:
        fill(cluster)
        asked = listen(cluster)
        options = "-f", job(tmp_path), "--fail-if-pending"
        result = await simulate(cluster, tmp_path, *options, "--without-node", "g2")
        both = await simulate(cluster, tmp_path, *options, "--without-node", "g2", "--cordon", "g1")
        alone = await simulate(cluster, tmp_path, "--fail-if-pending")
    assert result.exit_code == 0, result.output
    found: Json = json.loads(result.stdout)
    told = {one["name"]: (one["node"], one["displacedFrom"], one["file"]) for one in found["pods"]}
    mine = next(name for name in told if name.startswith("mine-"))
    assert told.pop(mine) == ("g1", None, str(tmp_path / "job.yaml"))
    assert told == {
        "bound": ("g1", "g2", "the cluster"),
        "waits": (None, None, "the cluster"),
    }
    # What waited there before is no answer to what was asked; where nothing else is asked, it is.
    assert (both.exit_code, alone.exit_code) == (1, 1)
    assert {method for method, _ in asked} == {"GET"}
    assert {"/api/v1/nodes", "/api/v1/pods", "/api/v1/namespaces"} <= {path for _, path in asked}


async def test_a_file_stands_in_the_place_of_what_the_cluster_has(tmp_path: Path) -> None:
    async with embedded.start() as cluster:
        fill(cluster)
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod("x")["spec"]}}  # fmt: skip
        web_app = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec | {"replicas": 1}}  # fmt: skip
        cluster.add(web_app)
        path = tmp_path / "web.yaml"
        path.write_text(writing.dump(web_app | {"spec": spec | {"replicas": 3}}))
        result = await simulate(cluster, tmp_path, "-f", str(path))
        plain = await simulate(cluster, tmp_path, "--scale", "deploy/web=2")
    found: Json = json.loads(result.stdout)
    made = [one for one in found["pods"] if one["owner"]]
    assert [(one["owner"]["name"], one["file"]) for one in made] == [("web", str(path))] * 3
    (warning,) = (one for one in found["warnings"] if "is in the baseline" in one)
    assert warning.endswith("only missing pods are placed (Deployment default/web)")
    assert len([one for one in json.loads(plain.stdout)["pods"] if one["owner"]]) == 2


async def test_what_may_not_be_listed_is_said_and_only_nodes_and_pods_are_needed(
    tmp_path: Path,
) -> None:
    refused = "balancepolicies"

    async def around(request: web.BaseRequest, serve: Serve) -> web.StreamResponse:
        if request.path.endswith(f"/{refused}"):
            raise ApiError(403, "Forbidden", f"{refused} is forbidden")
        return await serve(request)

    async with embedded.start() as cluster:
        fill(cluster)
        cluster.server.around = around
        result = await simulate(cluster, tmp_path)
        refused = "pods"
        without = await simulate(cluster, tmp_path)
    assert result.exit_code == 0, result.output
    (warning,) = json.loads(result.stdout)["warnings"]
    assert warning.startswith("objects of kind BalancePolicy cannot be listed (403 Forbidden)")
    assert without.exit_code == 2
    assert "403 Forbidden: pods is forbidden" in unwrapped(without.stderr)
    assert not without.stdout


async def test_budgets_of_a_cluster_say_who_makes_room_and_their_absence_is_said(
    tmp_path: Path,
) -> None:
    is_refused = False

    async def around(request: web.BaseRequest, serve: Serve) -> web.StreamResponse:
        if is_refused and request.path.endswith("/poddisruptionbudgets"):
            raise ApiError(403, "Forbidden", "no")
        return await serve(request)

    def fits_one(name: str, **spec: Any) -> Json:
        body = pod(name, **spec)
        body["metadata"]["labels"] = {"app": name}
        body["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "2"}}
        return body

    async with embedded.start() as cluster:
        cluster.add(nodes.make_gpu_node("g1", cards=2), nodes.make_gpu_node("g2", cards=2))
        for value in (1, 2, 9):
            what = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
            cluster.add(what | {"metadata": {"name": f"p{value}"}, "value": value})
        # Without a budget the node of the pod of the lowest priority is taken.
        cluster.add(
            fits_one("guarded", nodeName="g1", priorityClassName="p1"),
            fits_one("free", nodeName="g2", priorityClassName="p2"),
            fits_one("high", schedulerName="evenkeel", priorityClassName="p9"),
        )
        cluster.add(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "b", "namespace": "default"},
                "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}},
                "status": {"disruptionsAllowed": 0},
            }
        )
        cluster.server.around = around
        kubeconfig = str(cluster.write_kubeconfig(tmp_path / "kubeconfig"))
        command = ["explain", "pod", "high", "--kubeconfig", kubeconfig]
        told = await simulate(cluster, tmp_path)
        known = await asyncio.to_thread(CliRunner().invoke, cli.app, command)
        is_refused = True
        untold = await simulate(cluster, tmp_path)
        explained = await asyncio.to_thread(CliRunner().invoke, cli.app, command)

    def victims(result: Result) -> list[str]:
        (high,) = (one for one in json.loads(result.stdout)["pods"] if one["name"] == "high")
        return [one["name"] for one in high["victims"]]

    assert (victims(told), json.loads(told.stdout)["warnings"]) == (["free"], [])
    said = "objects of kind PodDisruptionBudget cannot be listed (403 Forbidden): "
    (warning,) = json.loads(untold.stdout)["warnings"]
    assert victims(untold) == ["guarded"]
    assert warning.startswith(said)
    assert "preempts pod default/free on g2" in unwrapped(known.stdout)
    assert not known.stderr
    assert "preempts pod default/guarded on g1" in unwrapped(explained.stdout)
    assert f"warning: {said}" in unwrapped(explained.stderr)


async def test_a_kind_that_is_not_served_is_said_unless_it_comes_with_evenkeel(
    tmp_path: Path,
) -> None:
    """An old API server serves no ``policy/v1``; that Evenkeel is not installed is no news."""
    missing = "/poddisruptionbudgets"

    async def around(request: web.BaseRequest, serve: Serve) -> web.StreamResponse:
        if request.path.endswith(missing):
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        return await serve(request)

    async with embedded.start() as cluster:
        fill(cluster)
        cluster.server.around = around
        result = await simulate(cluster, tmp_path)
    assert result.exit_code == 0, result.output
    (warning,) = json.loads(result.stdout)["warnings"]
    assert warning == (
        "objects of kind PodDisruptionBudget cannot be listed (404 NotFound): "
        "victims of preemption are chosen without regard to budgets"
    )


async def test_a_config_map_of_hami_that_is_not_there_is_said(tmp_path: Path) -> None:
    """Every command that reads a cluster goes on without it, as the operator does."""
    config = tmp_path / "config.yaml"
    config.write_text("hamiConfigMap: kube-system/hami-scheduler-device\n")
    async with embedded.start() as cluster:
        fill(cluster)
        result = await simulate(cluster, tmp_path, "--config", str(config))
    assert result.exit_code == 0, result.output
    (warning,) = json.loads(result.stdout)["warnings"]
    assert warning.startswith("ConfigMap kube-system/hami-scheduler-device cannot be read (404")


async def test_a_snapshot_has_what_there_is() -> None:
    async with embedded.start() as cluster:
        fill(cluster)
        found = await snapshot.read_snapshot(Access(url=cluster.url))
    assert not found.unlisted
    kinds = {one["kind"] for one in found.objects}
    assert {"Node", "Pod", "Namespace"} <= kinds
    assert all("managedFields" not in one["metadata"] for one in found.objects)
