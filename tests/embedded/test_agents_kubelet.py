"""What a scheduler can see of a kubelet."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from scheduler.embedded.agents import fleet as agents
from scheduler.embedded.agents import nodes
from scheduler.embedded.agents.kubelet import RUN_SECONDS, Pace
from scheduler.embedded.cluster import Cluster
from tests.embedded.conftest import Api


@pytest.fixture
async def node(api: Api, unique: Callable[[str], str]) -> str:
    """The name of a plain node."""
    name = unique("plain")
    await api.cluster_wide("/api/v1/nodes", nodes.make_plain_node(name))
    return name


@pytest.fixture(autouse=True)
async def running(api: Api, node: str) -> AsyncIterator[agents.Agents]:
    """Agents for that node."""
    async with agents.run(api.url, nodes={node}, token=api.token, ssl=api.context) as found:
        yield found


async def status(api: Api, name: str = "p") -> Any:
    return (await api.get(f"{api.pods}/{name}")).body.get("status", {})


async def test_a_bound_pod_runs(api: Api, node: str, eventually: Any) -> None:
    await api.pod(initContainers=[{"name": "i", "image": "i:1"}])
    await api.bind("p", node)
    found = await eventually(lambda: status(api), lambda one: one["phase"] == "Running")
    conditions = {one["type"]: one["status"] for one in found["conditions"]}
    assert conditions == dict.fromkeys(
        ("PodScheduled", "PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"),
        "True",
    )
    assert found["podIP"] == found["podIPs"][0]["ip"]
    assert found["startTime"]
    (container,) = found["containerStatuses"]
    assert container["ready"]
    assert "running" in container["state"]
    assert found["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


async def test_a_pod_runs_as_long_as_its_annotation_says(
    api: Api, node: str, eventually: Any
) -> None:
    body = {
        "metadata": {"name": "p", "annotations": {RUN_SECONDS: "0.1"}},
        "spec": {"containers": [{"name": "c", "image": "i:1"}], "restartPolicy": "Never"},
    }
    await api.made(api.pods, body)
    await api.bind("p", node)
    found = await eventually(lambda: status(api), lambda one: one["phase"] == "Succeeded")
    assert found["containerStatuses"][0]["state"]["terminated"]["reason"] == "Completed"
    conditions = {one["type"]: one["status"] for one in found["conditions"]}
    assert conditions["Ready"] == "False"
    assert conditions["PodScheduled"] == "True"


async def test_a_deleted_pod_goes_after_its_containers(
    api: Api, running: agents.Agents, node: str, eventually: Any
) -> None:
    running.pace.stop_seconds = 3.0
    await api.pod()
    await api.bind("p", node)
    await eventually(lambda: status(api), lambda one: one["phase"] == "Running")
    await api.delete(f"{api.pods}/p")
    still = await api.get(f"{api.pods}/p")
    assert still["metadata"]["deletionGracePeriodSeconds"] == 30
    await eventually(lambda: api.get(f"{api.pods}/p"), lambda reply: reply.code == 404)


async def test_a_pod_that_never_started_can_be_deleted(
    api: Api, running: agents.Agents, node: str, eventually: Any
) -> None:
    running.pace.start_seconds = 60
    await api.pod()
    await api.bind("p", node)
    await api.delete(f"{api.pods}/p")
    await eventually(lambda: api.get(f"{api.pods}/p"), lambda reply: reply.code == 404)


async def test_a_pod_on_another_node_is_left_alone(api: Api, node: str, eventually: Any) -> None:
    await api.pod("a")
    await api.pod("b")
    await api.bind("a", "some-other-node")
    await api.bind("b", node)
    await eventually(lambda: status(api, "b"), lambda one: one["phase"] == "Running")
    assert (await status(api, "a"))["phase"] == "Pending"


async def test_a_node_that_says_nothing_becomes_ready(
    api: Api, unique: Callable[[str], str], eventually: Any
) -> None:
    name = unique("bare")
    await api.cluster_wide("/api/v1/nodes", {"metadata": {"name": name}})

    def ready(reply: Any) -> bool:
        found = reply["status"].get("conditions", ())
        return [(one["type"], one["status"]) for one in found] == [("Ready", "True")]

    async with agents.run(api.url, nodes={name}, token=api.token, ssl=api.context):
        await eventually(lambda: api.get(f"/api/v1/nodes/{name}"), ready)


async def test_a_pod_bound_before_the_agents_came_runs_too(
    api: Api, unique: Callable[[str], str], eventually: Any
) -> None:
    name = unique("late")
    await api.pod()
    await api.bind("p", name)
    async with agents.run(api.url, nodes={name}, token=api.token, ssl=api.context):
        await api.cluster_wide("/api/v1/nodes", nodes.make_plain_node(name))
        await eventually(lambda: status(api), lambda one: one["phase"] == "Running")


async def test_agents_survive_lost_watches_and_lost_history(
    api: Api, cluster: Cluster, eventually: Any
) -> None:
    await api.cluster_wide("/api/v1/nodes", nodes.make_plain_node("n1"))
    async with agents.run(api.url, pace=Pace(start_seconds=0.01)):
        await api.pod("a")
        await api.bind("a", "n1")
        await eventually(lambda: status(api, "a"), lambda one: one["phase"] == "Running")
        cluster.store.drop_watches()
        cluster.store.compact()
        await api.pod("b")
        await api.bind("b", "n1")
        await eventually(lambda: status(api, "b"), lambda one: one["phase"] == "Running")
