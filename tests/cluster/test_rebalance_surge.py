"""A policy whose pods go when their successors are ready, with the rights of `manifests/rebalance-surge`."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.cluster import test_rebalance as of_rebalance
from tests.operator import installed, servers
from tests.operator.world import PODS, World, enter

Json = dict[str, Any]
_DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/small"
_SCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
_ONLY_SMALL = {"matchLabels": {"app": "small"}}


@pytest.fixture(scope="module")
def server(peers: None) -> Iterator[servers.Server]:  # noqa: ARG001 - builds them
    with servers.real(install=installed.with_surge) as running:
        assert running.plane is not None
        running.plane.start_controller_manager(of_rebalance._CONTROLLERS)
        yield running


@pytest.fixture
async def world(server: servers.Server) -> AsyncIterator[World]:
    async with enter(server) as made:
        yield made


def _count_ready(changes: list[Json], there: list[Json]) -> list[int]:
    """Count the pods of the small Deployment that are ready and do not end, after each change."""
    states = {one["metadata"]["uid"]: one for one in there}
    counts = []
    for change in changes:
        found = change["object"]
        states[found["metadata"]["uid"]] = found
        counts.append(
            sum(
                one["metadata"]["labels"]["app"] == "small"
                and "deletionTimestamp" not in one["metadata"]
                and any(of["type"] == "Ready" and of["status"] == "True" for of in one["status"].get("conditions", ()))
                for one in states.values()
            )
        )  # fmt: skip
    return counts


async def test_the_only_pod_of_a_workload_moves_without_a_gap(world: World) -> None:
    async with of_rebalance._scatter(world), of_rebalance._run(world, "surge"):
        there = await world.listed(PODS)
        async with world.recorded(PODS) as changes:
            policy = of_rebalance._make_policy("nights", surge=True, podSelector=_ONLY_SMALL)
            await world.call("POST", of_rebalance._POLICIES, policy)
            await of_rebalance._have_seats(world, small="b", large="b")
            status = await world.wait_until(
                lambda: of_rebalance._find_status(world, "nights"),
                lambda found: [one["outcome"] for one in found.get("moves", ())] == ["AsPlanned"],
                60.0,
            )
        assert min(_count_ready(changes, there)) == 1
        (move,) = status["moves"]
        (event,) = await world.wait_until(lambda: world.events("Moved", move["name"]))
        assert "(which was ready before the pod went)" in event["note"]
        deployment = await world.call("GET", _DEPLOYMENT)
        assert deployment["spec"]["replicas"] == 1
        assert not await world.listed(PODS, labelSelector="evenkeel.dev/surge")


async def test_a_plan_that_is_carried_out_leaves_no_gap_either(world: World) -> None:
    async with of_rebalance._scatter(world):
        # A pod has to run for a second.
        await asyncio.sleep(2.0)
        plane, folder = world.server.plane, world.server.folder
        assert plane is not None
        done = await asyncio.to_thread(
            subprocess.run,
            [
                sys.executable, "-m", "scheduler", "plan", "defrag", "--apply", "--surge", "--min-run", "1s",
                "--kubeconfig", str(plane.kubeconfig()), "--config", str(folder / "rebalance.yaml"),
            ],
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        assert "is on b (which was ready before the pod went), as planned" in done.stdout
        await of_rebalance._have_seats(world, small="b", large="b")


async def test_a_pod_is_evicted_whose_workload_is_scaled_by_itself(world: World) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "small"}
    scaler = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "small"}, "spec": {"maxReplicas": 3, "scaleTargetRef": target}}  # fmt: skip
    async with of_rebalance._scatter(world), of_rebalance._run(world, "scaled"):
        await world.call("POST", _SCALERS, scaler)
        try:
            policy = of_rebalance._make_policy("nights", surge=True, podSelector=_ONLY_SMALL)
            await world.call("POST", of_rebalance._POLICIES, policy)
            await of_rebalance._have_seats(world, small="b", large="b")
            events = await world.wait_until(lambda: world.events("Moved", "nights"))
        finally:
            await world.delete(f"{_SCALERS}/small")
        said = "the pod went first: Deployment small is scaled by HorizontalPodAutoscaler small"
        assert said in events[0]["note"]
