"""Evenkeel in the place of KAI-Scheduler: a cluster as KAI leaves it goes on, and KAI could go on behind Evenkeel."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from scheduler.api import kinds, names
from scheduler.api.groups import objects
from scheduler.embedded.agents import nodes
from tests.docs import blocks
from tests.operator import installed, kai_shapes, servers
from tests.operator.crds import make_crd
from tests.operator.manifests import container, pod
from tests.operator.world import PODS, World

Json = dict[str, Any]
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_QUEUES = kinds.KAI_QUEUES.path
_GROUP_KIND = kinds.BY_NAME[str(objects.KaiPodGroup.__struct_config__.tag)]
_GROUPS = _GROUP_KIND.find_list_path("default")
# The first pod of KAI's scheduler.
_KAI = "kai-scheduler-default-0"
_PAGE = blocks.ROOT / "docs" / "migrate.md"
_RESERVATIONS = "kai-resource-reservation"
# The fields of a Queue's status that KAI's own type has.
_STATUS = {"conditions", "childQueues", "allocated", "allocatedNonPreemptible", "requested"}


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    """An API server with KAI's kinds, and Evenkeel installed for its queues."""
    with servers.real(install=installed.with_kai_queues) as running:
        assert running.plane is not None
        for crd in (kai_shapes.QUEUES_CRD, make_crd(_GROUP_KIND)):
            assert running.plane.request("POST", _CRDS, crd).status < 400
        names_ = [kai_shapes.QUEUES_CRD["metadata"]["name"], f"podgroups.{_GROUP_KIND.group}"]
        for name in names_:
            running.plane.kubectl("wait", "--for=jsonpath={.status.conditions}", f"crd/{name}")
            running.plane.kubectl("wait", "--for=condition=Established", f"crd/{name}")
        yield running


async def test_a_cluster_as_kai_leaves_it_goes_on_and_so_could_kai(
    world: World, tmp_path: Path
) -> None:
    await _leave_cluster(world)
    before = {one["metadata"]["name"]: one for one in await world.pods()}
    args = ("--config", str(_write_config(tmp_path)))
    operator = await world.start_operator(args=args)
    await world.leads(operator)
    # As long as KAI's scheduler runs, it decides.
    await world.refused("waits-0", f"KAI's pod {_KAI} in namespace {names.KAI_NAMESPACE} runs")
    assert await world.bound("in-no-queue") == ["g0"]
    assert [one for one in await world.listed(_QUEUES) if one.get("status")] == []
    await world.measured(operator, lambda found: found["evenkeel_kai_queues_held"] == 1)
    await world.delete(f"/api/v1/namespaces/{names.KAI_NAMESPACE}/pods/{_KAI}")
    del before[_KAI]
    # One card is free: the card that the two shares are on is none.
    assert await world.bound("waits-0") == ["g0"]
    await world.measured(operator, lambda found: found["evenkeel_kai_queues_held"] == 0)
    await world.refused("pg-waits-1", "Insufficient nvidia.com/gpu")
    await world.refused("pg-too-much", "OverLimit: queue speech is limited to 2 of gpu")
    await _becomes(world, "speech", allocated="2", requested="3")
    # Two halves of a card, and the card of a pod that has just been placed.
    await _becomes(world, "vision", allocated="2", requested="3500m")
    await world.refused("pg-half", "metadata.annotations[gpu-fraction]")
    after = {one["metadata"]["name"]: one for one in await world.pods()}
    assert after.keys() == before.keys()
    for name in ("train-0", "train-1", "share-0", "share-1", "reservation"):
        assert after[name] == before[name], name
    # A pod that has ended makes room for the next one, as before.
    await world.delete(f"{PODS}/train-1")
    await world.delete(f"{PODS}/train-0")
    assert await world.bound("waits-1", "too-much") == ["g0", "g0"]
    assert operator.stop().code == 0
    await _check_what_is_written(world)


def test_what_queues_have_used_may_be_written_on_them(server: servers.Server) -> None:
    """The operator writes it every five minutes."""
    assert server.plane is not None
    account = f"system:serviceaccount:{installed.NAMESPACE}:evenkeel"
    asked = "auth", "can-i", "patch", f"queues.{kinds.KAI_QUEUES.group}", f"--as={account}"
    assert server.plane.kubectl(*asked).strip() == "yes"


async def _leave_cluster(world: World) -> None:
    """A cluster as KAI leaves it: queues, a gang that runs, two shares of a card, and pods that wait."""
    await world.create(nodes.make_plain_node("g0", resources={"nvidia.com/gpu": "4"}))
    for namespace, account in ((_RESERVATIONS, "default"), (names.KAI_NAMESPACE, "scheduler")):
        await world.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        await world.call("POST", path, {"metadata": {"name": account}})
    of_kai: Json = {"namespace": names.KAI_NAMESPACE, "schedulerName": "default-scheduler"}
    await world.create(pod(_KAI, serviceAccountName="scheduler", nodeName="g0", **of_kai))
    await world.create(pod("in-no-queue", requests={"cpu": "1"}))
    await _make_queue(world, "research", gpu=4)
    await _make_queue(world, "speech", "research", gpu=2, limit=2)
    await _make_queue(world, "vision", "research", gpu=2)
    await _make_group(world, "pg-train", "speech", 2)
    for i in range(2):
        await world.create(_left(f"train-{i}", "speech", "pg-train", gpu=1, node="g0"))
    # Two pods share a card that the pod of KAI's binder has requested.
    labels = {"app": _RESERVATIONS, "runai-gpu-group": "c0ffee"}
    reservation = pod(
        "reservation",
        namespace=_RESERVATIONS,
        limits={"nvidia.com/gpu": 1},
        labels=labels,
        nodeName="g0",
        schedulerName="default-scheduler",
    )
    await world.create(reservation)
    for i in range(2):
        await _make_group(world, f"pg-share-{i}", "vision", 1)
        share = _left(f"share-{i}", "vision", f"pg-share-{i}", node="g0")
        share["metadata"]["labels"]["runai-gpu-group"] = "c0ffee"
        share["metadata"]["annotations"] |= {
            "gpu-fraction": "0.5",
            "received-resource-type": "Fraction",
        }
        await world.create(share)
    await _make_group(world, "pg-half", "vision", 1)
    half = _left("half", "vision", "pg-half")
    half["metadata"]["annotations"]["gpu-fraction"] = "0.5"
    await world.create(half)
    for name, queue in (("waits-0", "vision"), ("waits-1", "vision"), ("too-much", "speech")):
        await _make_group(world, f"pg-{name}", queue, 1)
        await world.create(_left(name, queue, f"pg-{name}", gpu=1))


def _left(name: str, queue: str, group: str, *, gpu: int = 0, node: str = "") -> Json:
    """A pod as KAI's pod grouper and its binder leave it."""
    made = pod(
        name,
        labels={names.KAI_QUEUE: queue},
        annotations={names.KAI_GROUP: group},
        schedulerName="kai-scheduler",
        containers=[
            container(requests={"cpu": "1"}, limits={"nvidia.com/gpu": gpu} if gpu else {})
        ],
    )
    if node:
        made["spec"]["nodeName"] = node
        made["metadata"]["annotations"]["received-resource-type"] = "Regular"
    return made


async def _make_queue(
    world: World, name: str, parent: str = "", *, gpu: float, limit: float = -1
) -> None:
    free = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    cards = {"quota": gpu, "limit": limit, "overQuotaWeight": 1}
    spec: Json = {"resources": {"cpu": free, "memory": free, "gpu": cards}}
    if parent:
        spec["parentQueue"] = parent
    body = {"apiVersion": kinds.KAI_QUEUES.api_version, "kind": "Queue"}
    await world.call("POST", _QUEUES, {**body, "metadata": {"name": name}, "spec": spec})


async def _make_group(world: World, name: str, queue: str, least: int) -> None:
    spec = {"minMember": least, "queue": queue, "priorityClassName": "train"}
    body = {"apiVersion": _GROUP_KIND.api_version, "kind": "PodGroup"}
    await world.call("POST", _GROUPS, {**body, "metadata": {"name": name}, "spec": spec})


def _write_config(folder: Path) -> Path:
    """Write the configuration that the page shows."""
    found = [
        one
        for one in blocks.of(_PAGE)
        if one.language == "yaml" and "schedulerName: kai-scheduler" in one.text
    ]
    assert len(found) == 1
    path = folder / "config.yaml"
    path.write_text(found[0].text, encoding="utf-8")
    return path


async def _becomes(world: World, queue: str, *, allocated: str, requested: str) -> None:
    async def read() -> tuple[str | None, str | None]:
        status = (await world.call("GET", f"{_QUEUES}/{queue}")).get("status") or {}
        cards = [status.get(key, {}).get(names.GPU) for key in ("allocated", "requested")]
        return cards[0], cards[1]

    await world.wait_until(read, partial(_is_same, (allocated, requested)))


def _is_same(wanted: tuple[str, str], found: tuple[str | None, str | None]) -> bool:
    return wanted == found


async def _check_what_is_written(world: World) -> None:
    """Nothing stands on an object that KAI would trip over: only what KAI writes itself."""
    for one in await world.listed(_QUEUES):
        assert one["status"].keys() <= _STATUS
        assert not one["metadata"].get("annotations")
        assert not one["metadata"].get("finalizers")
    for one in await world.listed(_GROUPS):
        assert (one.get("status") or {}).keys() <= {"schedulingConditions"}
        assert not one["metadata"].get("annotations")
        assert not one["metadata"].get("labels")
    for name in ("waits-0", "waits-1", "too-much"):
        meta = (await world.pod(name))["metadata"]
        assert meta["annotations"] == {names.KAI_GROUP: f"pg-{name}"}
        assert meta["labels"].keys() == {names.KAI_QUEUE}
