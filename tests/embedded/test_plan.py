"""``evenkeel plan defrag`` of a running cluster: it only reads, and moves pods when it is told to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from typer.testing import CliRunner, Result

from scheduler import cli
from scheduler.embedded import cluster as embedded
from scheduler.embedded.agents import fleet as agents
from scheduler.embedded.agents import nodes
from scheduler.embedded.agents.workloads import controllers
from tests.embedded.conftest import Api, listen
from tests.prose import unwrapped

Json = dict[str, Any]


class World:
    """Two nodes with a Deployment each, and who binds pods: by the name of their Deployment."""

    def __init__(self, cluster: embedded.Cluster, api: Api, folder: Path) -> None:
        self.cluster, self._api, self._folder = cluster, api, folder
        self.target = {"small": "a", "large": "b"}

    async def bind_all(self) -> None:
        while True:
            for one in (await self._api.get(self._api.pods))["items"]:
                if not one["spec"].get("nodeName"):
                    name = one["metadata"]["name"]
                    if node := self.target[name.partition("-")[0]]:
                        await self._api.bind(name, node)
            await asyncio.sleep(0.05)

    async def list_nodes(self) -> dict[str, str]:
        """The node of each Deployment's pod that stays."""
        pods = (await self._api.get(self._api.pods))["items"]
        return {
            one["metadata"]["name"].partition("-")[0]: one["spec"].get("nodeName", "")
            for one in pods
            if "deletionTimestamp" not in one["metadata"]
            and one["status"].get("phase") == "Running"
        }

    async def settle(self, **wanted: str) -> None:
        while await self.list_nodes() != wanted:
            await asyncio.sleep(0.05)

    async def plan(self, *arguments: str) -> Result:
        kubeconfig = self.cluster.write_kubeconfig(self._folder / "kubeconfig")
        config = self._folder / "config.yaml"
        config.write_text("placement: {scoring: {mode: most-allocated}}\n", encoding="utf-8")
        command = ["plan", "defrag", "--kubeconfig", str(kubeconfig), "--config", str(config)]
        return await asyncio.to_thread(CliRunner().invoke, cli.app, [*command, *arguments])


@asynccontextmanager
async def start(folder: Path) -> AsyncIterator[World]:
    def deployment(name: str, cpu: str) -> Json:
        labels = {"app": name}
        container = {"name": "c", "image": "i:1", "resources": {"requests": {"cpu": cpu}}}
        spec = {"schedulerName": "evenkeel", "containers": [container]}
        template = {"metadata": {"labels": labels}, "spec": spec}
        return {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
        }  # fmt: skip

    async with embedded.start() as cluster, aiohttp.ClientSession() as session:
        api = Api(cluster.url, session)
        api.namespace = "default"
        world = World(cluster, api, folder)
        cluster.add(*(nodes.make_plain_node(name, cpu="4") for name in "ab"))
        async with agents.run(cluster.url), controllers.run(cluster.url):
            cluster.add(deployment("small", "1"), deployment("large", "2"))
            binder = asyncio.create_task(world.bind_all())
            await world.settle(small="a", large="b")
            # A pod has to run for a second.
            await asyncio.sleep(2.1)
            yield world
            binder.cancel()


async def test_without_apply_a_cluster_is_only_read(tmp_path: Path) -> None:
    async with start(tmp_path) as world:
        requests = listen(world.cluster)
        found = await world.plan("--min-run", "1s")
        young = await world.plan()
        # Controllers and agents write, but nobody evicts.
        assert not [path for _, path in requests if path.endswith("/eviction")]
    assert found.exit_code == 0, found.output
    assert "1 move in 1 bundle: it frees 1 node" in found.stdout
    assert "a -> b" in found.stdout
    assert "(2 pods that have not run for the minimum)" in unwrapped(young.stdout)


async def test_a_pod_is_evicted_and_its_successor_is_awaited(tmp_path: Path) -> None:
    async with start(tmp_path) as world:
        world.target["small"] = "b"
        done = await world.plan("--min-run", "1s", "--apply")
        assert done.exit_code == 0, done.output
        await world.settle(small="b", large="b")
    assert done.exit_code == 0, done.output
    (line,) = [one for one in done.stdout.splitlines() if "its successor" in one]
    assert line.endswith("is on b, as planned")


async def test_a_pod_that_cannot_go_last_is_evicted_first_and_that_is_said(tmp_path: Path) -> None:
    """The embedded API server has no autoscalers."""
    async with start(tmp_path) as world:
        world.target["small"] = "b"
        done = await world.plan("--min-run", "1s", "--apply", "--surge")
    assert done.exit_code == 0, done.output
    (line,) = [one for one in done.stdout.splitlines() if "its successor" in one]
    assert "(the pod went first: horizontalpodautoscalers cannot be listed: 404" in line
    assert line.endswith(", as planned")


async def test_a_successor_that_goes_elsewhere_is_named_and_the_plan_made_anew(
    tmp_path: Path,
) -> None:
    async with start(tmp_path) as world:
        done = await world.plan("--min-run", "1h", "--apply")
        assert "Nothing to move" in done.stdout
        # It comes back to its node; by then it is too young to be moved again.
        done = await world.plan("--min-run", "1s", "--apply", "--moves", "1")
    assert done.exit_code == 1, done.output
    assert "is on a, but not as planned" in done.stdout


async def test_a_successor_without_a_node_ends_the_moves(tmp_path: Path) -> None:
    async with start(tmp_path) as world:
        world.target["small"] = ""
        done = await world.plan("--min-run", "1s", "--apply", "--wait", "1s")
    assert done.exit_code == 1
    assert "no successor had a node after 1 s; no more pods are moved" in done.stdout


def test_a_successor_comes_first_only_where_pods_are_moved() -> None:
    done = CliRunner().invoke(cli.app, ["plan", "defrag", "--surge", "-f", "-"], input="")
    assert done.exit_code == 2
    assert "--surge: needs --apply" in done.stderr


@pytest.mark.parametrize("arguments", [("-f", "-"), ("-o", "json")])
def test_apply_needs_a_cluster_and_prints_lines(arguments: tuple[str, ...]) -> None:
    done = CliRunner().invoke(cli.app, ["plan", "defrag", "--apply", *arguments], input="")
    assert done.exit_code == 2
    assert "--apply: " in done.stderr
