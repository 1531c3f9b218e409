"""``evenkeel explain`` of a running cluster: it only reads, and judges what is there."""

import asyncio
import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from scheduler import cli
from scheduler.embedded import cluster as embedded
from scheduler.embedded.agents import nodes
from tests.embedded.conftest import listen, pod
from tests.prose import unwrapped

Json = dict[str, Any]


async def explain(cluster: embedded.Cluster, folder: Path, *arguments: str) -> Result:
    kubeconfig = cluster.write_kubeconfig(folder / "kubeconfig")
    command = ["explain", *arguments, "--kubeconfig", str(kubeconfig), "-o", "json"]
    return await asyncio.to_thread(CliRunner().invoke, cli.app, command)


async def test_pods_and_nodes_of_a_cluster_are_explained_and_nothing_is_written(
    tmp_path: Path,
) -> None:
    async with embedded.start() as cluster:
        cluster.add(nodes.make_gpu_node("g1", cards=2), nodes.make_gpu_node("g2", cards=2))
        cluster.add(
            pod("bound", nodeName="g2"),
            pod("waits", schedulerName="evenkeel", nodeSelector={"no": "where"}),
        )
        cluster.add(pod("other", schedulerName="default-scheduler"))
        asked = listen(cluster)
        waits = await explain(cluster, tmp_path, "pod", "default/waits")
        bound = await explain(cluster, tmp_path, "pod", "default/bound")
        other = await explain(cluster, tmp_path, "pod", "default/other")
        node = await explain(cluster, tmp_path, "node", "g2")
        nobody = await explain(cluster, tmp_path, "pod", "default/wait")
    for result in (waits, bound, other, node):
        assert result.exit_code == 0, result.output
    told: Json = json.loads(waits.stdout)
    assert (told["state"], told["queue"]["of"]) == ("waits", 1)
    assert told["advice"][0]["steps"][0] == {"do": "drop", "field": "spec.nodeSelector", "value": "no=where"}  # fmt: skip
    assert json.loads(bound.stdout)["node"] == "g2"
    # It is another scheduler's: it stands in no queue of ours, and waits for no node of ours.
    told = json.loads(other.stdout)
    assert (told["state"], told["queue"], told["scheduler"]) == ("fits", None, "default-scheduler")
    assert 'It names scheduler "default-scheduler"' in told["remarks"][0]
    on_node: Json = json.loads(node.stdout)
    assert [one["name"] for one in on_node["pods"]] == ["bound"]
    assert [one["names"] for one in on_node["waiting"]["groups"]] == [["default/waits"]]
    assert nobody.exit_code == 2
    assert "similar: default/waits" in unwrapped(nobody.stderr)
    assert {method for method, _ in asked} == {"GET"}
