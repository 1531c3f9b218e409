"""A Job of a topology: it has its domains written, and its lost pods get nodes near the others when nodes fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from scheduler.api import names
from scheduler.embedded.agents import nodes
from tests.operator import installed, servers, tenants
from tests.operator.kueue_jobs import JOBS, find_workload, make_job, wait_until_placed
from tests.operator.world import Refused, World

Json = dict[str, Any]
_CONFIG = Path(installed.QUEUES) / "config.yaml"
_CONTROLLERS = ("job-controller", "garbage-collector-controller")


@pytest.fixture(scope="module")
def server(kueue_crds: list[Json], peers: None) -> Iterator[servers.Server]:  # noqa: ARG001 - builds them
    """An API server with Kueue's kinds, Kubernetes' Job controller, and Evenkeel in the place of Kueue."""
    with servers.with_queues(kueue_crds, controllers=_CONTROLLERS) as running:
        yield running


async def test_a_job_of_a_topology_has_its_domains_written(world: World) -> None:
    """Kueue's own schema takes them, and Kueue finds them if it takes over again."""
    await tenants.prepare(world)
    levels = [{"nodeLabel": "rack"}, {"nodeLabel": names.HOSTNAME}]
    await tenants.create(
        world, f"{tenants.API}/topologies", "Topology", "racks", {"levels": levels}
    )
    flavor = {"nodeLabels": {"pool": "racks"}, "topologyName": "racks"}
    await tenants.create(world, f"{tenants.API}/resourceflavors", "ResourceFlavor", "racks", flavor)
    quota = {"name": "cpu", "nominalQuota": "40"}
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "racks", "resources": [quota]}]}
    await tenants.make_queue(world, "racks", "racks", resourceGroups=[group])
    for i in range(4):
        await _make_rack_node(world, f"t{i}", f"r{i // 2}")
    operator = await world.start_operator(args=("--config", str(_CONFIG)))
    await world.leads(operator)
    job = make_job("ring", "racks", n=3, cpu=2, suspend=True)
    job["spec"]["template"]["metadata"] = {
        "annotations": {"kueue.x-k8s.io/podset-required-topology": "rack"}
    }
    await world.call("POST", JOBS, job)
    pods = await wait_until_placed(world, "ring", 3)
    domains = await _read_domains(world)
    # The pods are where it says.
    assert domains == Counter(pod["spec"]["nodeName"] for pod in pods)
    assert set(domains) in ({"t0", "t1"}, {"t2", "t3"})
    await _a_lost_pod_gets_another_node_of_its_rack(world, domains)
    await _without_one_the_job_starts_elsewhere(world)
    assert operator.stop().code == 0


async def _read_domains(world: World) -> dict[str, int]:
    """The nodes that the workload says, and how many pods are on each."""
    workload = await find_workload(world, "ring")
    (assigned,) = workload["status"]["admission"]["podSetAssignments"]
    (one,) = assigned["topologyAssignment"]["slices"]
    (values,) = one["valuesPerLevel"]
    assert assigned["topologyAssignment"]["levels"] == [names.HOSTNAME]
    counts = one["podCounts"]["individual"]
    found = values["individual"]
    ends = found.get("prefix", ""), found.get("suffix", "")
    return dict(zip((one.join(ends) for one in found["roots"]), counts, strict=True))


async def _make_rack_node(world: World, name: str, rack: str) -> None:
    node = nodes.make_plain_node(name, cpu="4")
    node["metadata"].setdefault("labels", {}).update({"pool": "racks", "rack": rack})
    await world.create(node)


async def _lose_node(world: World, name: str) -> None:
    """A node is gone, and its pods with it, which nothing here deletes by itself."""
    await world.call("DELETE", f"/api/v1/nodes/{name}")
    for one in await world.pods():
        if one["spec"].get("nodeName") == name:
            path = f"/api/v1/namespaces/default/pods/{one['metadata']['name']}"
            # Its job may have been stopped by now.
            with suppress(Refused):
                await world.call("DELETE", path, {"gracePeriodSeconds": 0})


async def _a_lost_pod_gets_another_node_of_its_rack(world: World, domains: dict[str, int]) -> None:
    rack = f"r{int(min(domains)[1:]) // 2}"
    await _make_rack_node(world, "t4", rack)
    full, half = sorted(domains, key=lambda name: -domains[name])
    await _lose_node(world, half)

    async def read() -> dict[str, int]:
        pods = await world.pods()
        return dict(Counter(pod["spec"].get("nodeName", "") for pod in pods))

    await world.wait_until(read, lambda found: found == {full: 2, "t4": 1})
    await world.wait_until(partial(_read_domains, world), lambda found: found == {full: 2, "t4": 1})


async def _without_one_the_job_starts_elsewhere(world: World) -> None:
    workload = (await find_workload(world, "ring"))["metadata"]["name"]
    await _lose_node(world, "t4")
    await world.wait_until(partial(world.events, "EvictedDueToNodeFailures", workload))
    pods = await wait_until_placed(world, "ring", 3)
    assert {pod["spec"]["nodeName"] for pod in pods} in ({"t0", "t1"}, {"t2", "t3"})
