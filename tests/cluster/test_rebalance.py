"""`evenkeel rebalance` as the manifests install it, with Kubernetes' own controllers of Deployments, and a scheduler."""

import asyncio
import json
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from scheduler.embedded.agents import nodes
from tests.controlplane import plane
from tests.operator import installed, servers
from tests.operator.world import PODS, Refused, World, enter

Json = dict[str, Any]
_POLICIES = "/apis/scheduling.evenkeel.dev/v1alpha1/rebalancepolicies"
_DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
_BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
_LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{installed.NAMESPACE}/leases/evenkeel-rebalance"
_CONTROLLERS = (
    "deployment-controller",
    "replicaset-controller",
    "disruption-controller",
    "garbage-collector-controller",
)
# Pods are packed, so that what is moved stays where it went.
_CONFIG = "placement: {scoring: {mode: most-allocated}}\n"


@pytest.fixture(scope="module")
def server(peers: None) -> Iterator[servers.Server]:  # noqa: ARG001 - builds them
    with servers.real(install=installed.with_rebalance) as running:
        assert running.plane is not None
        running.plane.start_controller_manager(_CONTROLLERS)
        yield running


@pytest.fixture
async def world(server: servers.Server) -> AsyncIterator[World]:
    async with enter(server) as made:
        yield made


def _make_policy(name: str, **spec: Any) -> Json:
    return {
        "apiVersion": "scheduling.evenkeel.dev/v1alpha1",
        "kind": "RebalancePolicy",
        "metadata": {"name": name},
        "spec": {"every": "1m", "minRun": "1s", **spec},
    }


def _make_deployment(name: str, mib: int) -> Json:
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": str(mib), "nvidia.com/gpucores": "10"}
    labels = {"app": name}
    container = {"name": "main", "image": "work", "resources": {"limits": limits}}
    spec = {
        "schedulerName": "evenkeel",
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
    }
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


async def _find_seats(world: World) -> dict[str, str]:
    """Find the node of each Deployment's pod that is ready."""
    return {
        one["metadata"]["labels"]["app"]: one["spec"]["nodeName"]
        for one in await world.listed(PODS)
        if one["status"].get("phase") == "Running" and "deletionTimestamp" not in one["metadata"]
    }


async def _have_seats(world: World, **wanted: str) -> None:
    await world.wait_until(lambda: _find_seats(world), lambda found: found == wanted, 60.0)


async def _find_status(world: World, name: str) -> Json:
    found = await world.call("GET", f"{_POLICIES}/{name}")
    status: Json = found.get("status") or {}
    return status


def _find_reason(status: Json) -> str:
    return next((str(one["reason"]) for one in status.get("conditions", ())), "")


async def _has_reason(world: World, name: str, reason: str) -> Json:
    found: Json = await world.wait_until(
        lambda: _find_status(world, name), lambda status: _find_reason(status) == reason, 90.0
    )
    return found


@asynccontextmanager
async def _scatter(world: World) -> AsyncIterator[None]:
    """Run a scheduler and agents; two Deployments have a share each, on a node each."""
    config = world.server.folder / "rebalance.yaml"
    config.write_text(_CONFIG, encoding="utf-8")
    await world.create(nodes.make_gpu_node("a"))
    async with world.agents():
        operator = await world.start_operator(args=("--config", str(config)))
        await world.leads(operator)
        await world.call("POST", _DEPLOYMENTS, _make_deployment("small", 1000))
        await _have_seats(world, small="a")
        await world.call("PATCH", "/api/v1/nodes/a", {"spec": {"unschedulable": True}})
        await world.create(nodes.make_gpu_node("b"))
        await world.call("POST", _DEPLOYMENTS, _make_deployment("large", 4000))
        await _have_seats(world, small="a", large="b")
        await world.call("PATCH", "/api/v1/nodes/a", {"spec": {"unschedulable": None}})
        try:
            yield
        finally:
            for path in (_DEPLOYMENTS, _POLICIES, _BUDGETS):
                for one in await world.listed(path):
                    await world.delete(f"{path}/{one['metadata']['name']}")
            await world.wait_until(lambda: world.listed(PODS), lambda found: not found, 60.0)


class Rebalance:
    """`evenkeel rebalance` with the rights of the manifests, and no others."""

    def __init__(self, server: servers.Server, name: str) -> None:
        assert isinstance(server.plane, plane.ControlPlane)
        self._plane, self._name = server.plane, name
        token = installed.token(self._plane, "evenkeel-rebalance")
        config = server.folder / "rebalance.yaml"
        config.write_text(_CONFIG, encoding="utf-8")
        self._plane.spawn(
            name,
            [
                sys.executable, "-m", "scheduler", "rebalance", "--port", "0",
                "--kubeconfig", str(self._plane.kubeconfig(token=token)),
                "--config", str(config), "--lease-namespace", installed.NAMESPACE,
            ],
        )  # fmt: skip

    @property
    def log(self) -> str:
        return self._plane.logs(self._name)

    def find_port(self) -> int:
        """Find the port of its probes; 0 as long as it does not listen."""
        lines = [json.loads(one) for one in self.log.splitlines() if one.startswith("{")]
        return next((one["port"] for one in lines if one.get("event") == "started"), 0)

    def read(self, path: str) -> tuple[int, str]:
        """What a probe or the metrics answer."""
        url = f"http://127.0.0.1:{self.find_port()}{path}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    async def stop(self) -> None:
        """End it as Kubernetes does; it gives its lease back."""
        process = self._plane._nursery.children[self._name]
        process.popen.terminate()
        assert await asyncio.to_thread(process.popen.wait, 20) == 0
        assert '"event": "stopped"' in self.log
        assert "403 Forbidden" not in self.log
        assert "critical" not in self.log


@asynccontextmanager
async def _run(world: World, name: str) -> AsyncIterator[Rebalance]:
    running = Rebalance(world.server, name)

    async def find_port() -> int:
        return running.find_port()

    await world.wait_until(find_port, bool, 120.0)
    yield running
    await running.stop()


async def test_pods_are_moved_as_policies_say(world: World) -> None:
    async with _scatter(world), _run(world, "rebalance") as process:
        # At first it only plans.
        await world.call("POST", _POLICIES, _make_policy("nights", dryRun=True))
        status = await _has_reason(world, "nights", "DryRun")
        assert status["plan"]["moves"] == 1
        (step,) = status["plan"]["steps"]
        assert step.startswith("default/small-")
        assert ": a card " in step
        assert " -> b card " in step
        assert await _find_seats(world) == {"small": "a", "large": "b"}
        assert status["movesLastHour"] == 0

        # A pod that a budget keeps is not moved.
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "small"},
            "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "small"}}},
        }
        await world.call("POST", _BUDGETS, budget)
        await world.call("PATCH", f"{_POLICIES}/nights", {"spec": {"dryRun": False, "podSelector": {"matchLabels": {"app": "small"}}}})  # fmt: skip
        status = await _has_reason(world, "nights", "InForce")
        assert "1 pod that a PodDisruptionBudget keeps" in status["conditions"][0]["message"]
        assert "1 pod that the policy does not select" in status["conditions"][0]["message"]
        await world.delete(f"{_BUDGETS}/small")

        # A changed policy is looked at at once.
        await world.call("PATCH", f"{_POLICIES}/nights", {"spec": {"budgets": {"movesPerHour": 1}}})
        await _have_seats(world, small="b", large="b")
        status = await _has_reason(world, "nights", "BudgetSpent")
        (move,) = status["moves"]
        assert (move["from"], move["to"], move["outcome"]) == ("a", "b", "AsPlanned")
        assert status["movesLastHour"] == 1
        assert await world.wait_until(lambda: world.events("Moved", move["name"]))
        assert await world.wait_until(lambda: world.events("Moved", "nights"))
        lease = await world.call("GET", _LEASE)
        assert lease["spec"]["holderIdentity"]
        assert process.read("/readyz") == (200, "ok\n")
        metrics = process.read("/metrics")[1]
        assert 'evenkeel_rebalance_moves_total{outcome="AsPlanned",policy="nights"} 1.0' in metrics
        assert "evenkeel_rebalance_leading 1.0" in metrics
    assert not (await world.call("GET", _LEASE))["spec"].get("holderIdentity")


async def test_hours_and_mistakes_are_said_and_others_go_on(world: World) -> None:
    async with _scatter(world), _run(world, "again"):
        window = {"days": ["Mon"], "begin": "00:00", "end": "00:01"}
        closed = [{**window, "days": [day]} for day in ("Mon", "Thu")]
        await world.call("POST", _POLICIES, _make_policy("bad", hours={"timeZone": "Europe/Bern"}))
        await world.call("POST", _POLICIES, _make_policy("later", hours={"windows": closed}))
        await world.call("POST", _POLICIES, _make_policy("now", when="PodsWait"))
        status = await _has_reason(world, "bad", "Invalid")
        said = "spec.hours.timeZone: 'Europe/Bern' is not a time zone"
        assert status["conditions"][0]["message"].startswith(said)
        assert await world.wait_until(lambda: world.events("InvalidRebalancePolicy", "bad"))
        status = await _has_reason(world, "later", "OutsideHours")
        assert status["nextPlanAt"].endswith("T00:00:00Z")
        # Nobody waits, so nobody is moved.
        status = await _has_reason(world, "now", "InForce")
        assert status["plan"]["moves"] == 0
        assert await _find_seats(world) == {"small": "a", "large": "b"}


_WRONG: list[tuple[Json, str]] = [
    ({"when": "Sometimes"}, "spec.when"),
    ({"surge": "yes"}, "spec.surge"),
    ({"every": "soon"}, "spec.every"),
    ({"budgets": {"movesPerHour": 0}}, "spec.budgets.movesPerHour"),
    ({"hours": {"windows": [{"begin": "24:00", "end": "06:00"}]}}, "spec.hours.windows[0].begin"),
    ({"hours": {"windows": [{"begin": "22:00"}]}}, "spec.hours.windows[0].end"),
    ({"hours": {"windows": [{"begin": "22:00", "end": "06:00", "days": ["Monday"]}]}}, "spec.hours.windows[0].days[0]"),
    ({"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}, "spec.namespaceSelector"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "field"), _WRONG, ids=[field for _, field in _WRONG])
async def test_the_api_server_refuses_a_mistake(spec: Json, field: str, world: World) -> None:
    with pytest.raises(Refused, match="422") as refused:
        await world.call("POST", _POLICIES, _make_policy("wrong", **spec))
    assert field in str(refused.value)
