"""The webhook for pods with devices, installed by the chart and called by a real API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
import yaml

from scheduler.api import kinds, names
from scheduler.embedded.agents import nodes
from tests.controlplane import plane, processes
from tests.operator import installed, servers
from tests.operator.manifests import container, pod
from tests.operator.process import Operator
from tests.operator.world import PODS, Refused, World

Json = dict[str, Any]
_VALUES = (
    "deviceWebhook.enabled=true", "deviceWebhook.takeOver={hami-scheduler}", "deviceWebhook.nvidia.runtimeClassName=nvidia",
)  # fmt: skip
_NAME = "evenkeel-webhook"
_HOOKS = kinds.MUTATING_WEBHOOKS.find_path(f"{_NAME}-devices")
_SERVICES = f"/api/v1/namespaces/{installed.NAMESPACE}/services"
_SECRET = f"/api/v1/namespaces/{installed.NAMESPACE}/secrets/{_NAME}"
_CONFIG = f"/api/v1/namespaces/{installed.NAMESPACE}/configmaps/evenkeel-config"
_NAMESPACES = "/api/v1/namespaces"
_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
_MEM, _GPU, _CORES, _PERCENT = names.GPU_MEMORY, names.GPU, names.GPU_CORES, names.GPU_MEMORY_PERCENT  # fmt: skip
_PRIVILEGED = {"privileged": True}
_DEFAULT, _HAMI, _OTHER = names.DEFAULT_SCHEDULER, "hami-scheduler", "other"


def _install(cp: plane.ControlPlane) -> None:
    values = [f"--set={one}" for one in _VALUES]
    installed.helm(cp, "install", "evenkeel", installed.CHART, "--create-namespace", *values)
    installed.wait_for_crd(cp)


@pytest.fixture(scope="module")
def server(helm: None) -> Iterator[servers.Server]:  # noqa: ARG001 - builds it
    with servers.real(install=_install) as running:
        yield running


async def start(world: World) -> Operator:
    """Start a replica, and lead the API server to it: there is no network of Services here."""
    with suppress(Refused):
        await world.call("DELETE", f"{_SERVICES}/{_NAME}")
    spec = {"type": "ExternalName", "externalName": "localhost"}
    await world.call("POST", _SERVICES, {"metadata": {"name": _NAME}, "spec": spec})
    (port,) = processes.free_ports(1)
    found = await world.call("GET", _CONFIG)
    config = yaml.safe_load(found["data"]["config.yaml"])
    config["deviceWebhook"]["port"] = port
    path = world.server.folder / "device-webhook.yaml"
    path.write_text(yaml.safe_dump(config))
    operator = await world.start_operator(args=("--config", str(path)))
    hooks = await world.call("GET", _HOOKS)
    for one in hooks["webhooks"]:
        one["clientConfig"]["service"]["port"] = port
    await world.call("PUT", _HOOKS, hooks)
    await world.wait_until(partial(_is_called, world))
    return operator


async def _is_called(world: World) -> bool:
    """Whether the API server knows the webhook, and is answered."""
    with suppress(Refused):
        made = await create(world, pod("probe", limits={_MEM: 1}), dry=True)
        return _GPU in made["spec"]["containers"][0]["resources"]["limits"]
    return False


async def create(world: World, made: Json, *, dry: bool = False, namespace: str = "default") -> Json:  # fmt: skip
    """Create a pod, or ask what it would become."""
    path = PODS.replace("default", namespace)
    made["metadata"]["namespace"] = namespace
    return await world.call("POST", path, made, **({"dryRun": "All"} if dry else {}))


async def _is_refused(world: World, made: Json, *words: str) -> None:
    with pytest.raises(Refused) as refused:
        await create(world, made)
    for word in words:
        assert word in str(refused.value)


def _read(made: Json) -> tuple[str, list[Json]]:
    """The scheduler of a pod, and the limits of its containers, which are requested as well."""
    resources = [one["resources"] for one in made["spec"]["containers"]]
    for one in resources:
        limits = one.get("limits", {})
        assert limits == {key: one["requests"][key] for key in limits}
    return made["spec"]["schedulerName"], [one.get("limits", {}) for one in resources]


async def test_the_webhook(world: World) -> None:
    overhead = {"podFixed": {"cpu": "10m"}}
    await world.call("POST", _CLASSES, {"metadata": {"name": "nvidia"}, "handler": "nvidia", "overhead": overhead})  # fmt: skip
    await world.create(nodes.make_gpu_node("n-shared", cards=2))
    operator = await start(world)
    await world.leads(operator)
    await _its_certificate_is_in_the_secret_and_trusted(world)
    async with world.agents():
        await _pods_with_devices_get_what_they_lack(world)
        await _pods_of_other_schedulers(world)
        await _shares_are_written_as_what_the_cluster_has(world)
    await _what_may_not_be_is_refused(world)
    await _what_is_excluded_stays_as_it_is(world)
    await world.measured(operator, _counts_reviews)
    assert operator.stop().code == 0
    await _a_dead_webhook_blocks_only_pods_with_devices(world)


async def _its_certificate_is_in_the_secret_and_trusted(world: World) -> None:
    data = (await world.call("GET", _SECRET))["data"]
    found = await world.call("GET", _HOOKS)
    assert len(found["webhooks"]) == 2
    assert {one["clientConfig"]["caBundle"] for one in found["webhooks"]} == {data["ca.crt"]}


async def _pods_with_devices_get_what_they_lack(world: World) -> None:
    part = await create(world, pod("part", limits={_MEM: 4000}, schedulerName=_DEFAULT))
    assert _read(part) == (names.SCHEDULER, [{_MEM: "4k", _GPU: "1"}])
    # Kubernetes' own plugins see what the webhook has written.
    assert part["spec"]["runtimeClassName"] == "nvidia"
    assert part["spec"]["overhead"] == {"cpu": "10m"}
    assert await world.bound("part") == ["n-shared"]
    card = await create(world, pod("card", limits={_GPU: 1}))
    assert _read(card) == (names.SCHEDULER, [{_GPU: "1", _CORES: "100"}])
    assert await world.bound("card") == ["n-shared"]
    first = container("first", limits={_PERCENT: 50})
    two = await create(world, pod("two", containers=[container("plain")], initContainers=[first]), dry=True)  # fmt: skip
    (init,) = two["spec"]["initContainers"]
    assert init["resources"]["limits"] == {_PERCENT: "50", _GPU: "1"}


async def _shares_are_written_as_what_the_cluster_has(world: World) -> None:
    neutral = await create(world, pod("neutral", limits={names.SHARE_MEMORY: "2Gi"}, schedulerName=_DEFAULT))  # fmt: skip
    assert _read(neutral) == (names.SCHEDULER, [{_GPU: "1", _MEM: "2048"}])
    half = await create(world, pod("half", annotations={names.KAI_FRACTION: "0.5"}))
    assert _read(half) == (names.SCHEDULER, [{_GPU: "1", _PERCENT: "50"}])
    await world.bound("neutral", "half")
    much = pod("much", limits={names.SHARE_MEMORY: "2Ti"})
    await _is_refused(world, much, "403", "no share on any node suffices")


async def _pods_of_other_schedulers(world: World) -> None:
    taken = await create(world, pod("taken", limits={_MEM: 1}, schedulerName=_HAMI))
    assert _read(taken) == (names.SCHEDULER, [{_MEM: "1", _GPU: "1"}])
    plain = await create(world, pod("plain", schedulerName=_HAMI))
    assert plain["spec"]["schedulerName"] == names.SCHEDULER
    await world.bound("taken", "plain")
    other = await create(world, pod("other", limits={_MEM: 1}, schedulerName=_OTHER))
    assert _read(other) == (_OTHER, [{_MEM: "1"}])
    default = await create(world, pod("default", schedulerName=_DEFAULT))
    assert default["spec"]["schedulerName"] == _DEFAULT


async def _what_may_not_be_is_refused(world: World) -> None:
    bad = container("bad", limits={_GPU: 1}, securityContext=_PRIVILEGED)
    await _is_refused(world, pod("bad", containers=[bad]), "403", "container bad is privileged")
    beside = [container("a", limits={_MEM: 1}), container("b", securityContext=_PRIVILEGED)]
    await _is_refused(world, pod("bad", containers=beside), "container b is privileged")
    await _is_refused(world, pod("bad", limits={_GPU: 1}, nodeName="n-shared"), "node assigned")
    await _is_refused(world, pod("bad", limits={_PERCENT: 101}), "500", _PERCENT, "within 0..100")
    harmless = container("good", securityContext=_PRIVILEGED)
    await create(world, pod("good", containers=[harmless], nodeName="n-shared"), dry=True)


async def _what_is_excluded_stays_as_it_is(world: World) -> None:
    ignore = {"hami.io/webhook": "ignore"}
    await world.call("POST", _NAMESPACES, {"metadata": {"name": "ignored", "labels": ignore}})
    account = {"metadata": {"name": "default"}}
    for namespace in ("ignored", "kube-system", installed.NAMESPACE):
        with suppress(Refused):
            await world.call("POST", f"{_NAMESPACES}/{namespace}/serviceaccounts", account)
        made = pod("x", limits={_MEM: 1}, schedulerName=_DEFAULT)
        found = await create(world, made, dry=True, namespace=namespace)
        assert _read(found) == (_DEFAULT, [{_MEM: "1"}])
    labelled = pod("x", limits={_MEM: 1}, labels=ignore, schedulerName=_DEFAULT)
    assert _read(await create(world, labelled, dry=True)) == (_DEFAULT, [{_MEM: "1"}])


def _counts_reviews(found: dict[str, float]) -> bool:
    n = {
        result: found[f'evenkeel_webhook_requests_total{{result="{result}",webhook="mutate-device-pods"}}']
        for result in ("allowed", "changed", "refused", "failed")
    }  # fmt: skip
    return n["changed"] > 0 and n["refused"] >= 4 and not n["failed"]


async def _a_dead_webhook_blocks_only_pods_with_devices(world: World) -> None:
    await _is_refused(world, pod("late", limits={_MEM: 1}), "failed calling webhook")
    await _is_refused(world, pod("late", limits={_GPU: 1}, schedulerName=_HAMI), "failed calling webhook")  # fmt: skip
    first = container("first", limits={_MEM: 1})
    await _is_refused(world, pod("late", initContainers=[first]), "failed calling webhook")
    for i, scheduler in enumerate((_DEFAULT, names.SCHEDULER, _OTHER)):
        await create(world, pod(f"free-{i}", requests={"cpu": "1"}, schedulerName=scheduler))
    # It cannot be taken over now, but it is let in.
    kept = await create(world, pod("kept", schedulerName=_HAMI))
    assert kept["spec"]["schedulerName"] == _HAMI
    other = await create(world, pod("other-2", limits={_MEM: 1}, schedulerName=_OTHER))
    assert json.dumps(other["spec"]["containers"][0]["resources"]["limits"]) == '{"' + _MEM + '": "1"}'  # fmt: skip
