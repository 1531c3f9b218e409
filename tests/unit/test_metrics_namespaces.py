"""Who has GPUs and who waits for some, by namespace."""

from typing import Any

import pytest

from scheduler.api import names
from scheduler.engine.questions.waiting import NamespaceWait
from scheduler.kube.report.metrics import namespaces
from tests import make
from tests.unit.metrics_replica import Replica, of


def _pod(name: str, namespace: str, **gpu: Any) -> Any:
    limits = {names.GPU: 1, **gpu}
    containers = [make.container(limits=limits)]
    return make.pod(name=name, namespace=namespace, uid=name, containers=containers)


async def test_pods_that_wait_are_told_by_namespace_with_the_oldest_wait() -> None:
    replica = Replica()
    replica.see(make.hami_node(name="g", cards=2))
    assert of(await replica.scrape(), "evenkeel_oldest_wait_seconds") == 0
    huge = {names.GPU_MEMORY: 999_999}
    replica.see(_pod("a", "team-a", **huge))
    replica.decide()
    replica.now += 30.0
    replica.see(_pod("b", "team-b", **huge), _pod("c", "team-b", **huge))
    replica.decide()
    found = await replica.scrape()
    assert of(found, "evenkeel_namespace_pending_pods", namespace="team-a") == 1
    assert of(found, "evenkeel_namespace_pending_pods", namespace="team-b") == 2
    waits = [
        of(found, "evenkeel_namespace_oldest_wait_seconds", namespace=one)
        for one in ("team-a", "team-b")
    ]
    # The scrape has the loop's clock and the replica one of its own.
    assert waits[0] - waits[1] == pytest.approx(30.0)
    assert of(found, "evenkeel_oldest_wait_seconds") == waits[0]


async def test_gpus_that_are_allocated_are_told_by_namespace() -> None:
    replica = Replica()
    replica.see(make.hami_node(name="g", cards=4))
    share = {names.GPU_MEMORY: 1000, names.GPU_CORES: 25}
    replica.see(
        _pod("a", "team-a", **share), _pod("b", "team-a", **share), _pod("c", "team-b"),
        _pod("e", "team-c", **{names.GPU_MEMORY_PERCENT: 25}),
        _pod("d", "team-b", **{names.GPU_MEMORY: 999_999}),
    )  # fmt: skip
    replica.decide()
    await replica.measure()
    found = await replica.scrape()
    assert of(found, "evenkeel_namespace_gpus_allocated", namespace="team-a") == 0.5
    assert of(found, "evenkeel_namespace_gpus_allocated", namespace="team-b") == 1
    # Without a limit on compute it is taken to use as much of it as of the memory.
    assert of(found, "evenkeel_namespace_gpus_allocated", namespace="team-c") == pytest.approx(0.25)
    assert of(found, "evenkeel_gpus", part="used") == pytest.approx(1.75)


async def test_models_of_a_nodes_cards_are_counted_also_without_series_of_cards() -> None:
    replica = Replica(per_card=False)
    two, one = make.cards(count=2), make.cards(count=1)
    # One model, whichever way each card has it.
    odd = [
        {**one[0], "id": f"GPU-odd-{i}", "index": 2 + i, "type": model}
        for i, model in enumerate(("NVIDIA-A10", "NVIDIA-NVIDIA A10"))
    ]
    replica.see(
        make.hami_node(name="mixed", cards=[*two, *odd]),
        make.node(name="plain", allocatable={"cpu": "8", "pods": "10", names.GPU: "4"}),
    )
    found = await replica.scrape()
    name = "evenkeel_node_gpu_models"
    assert of(found, name, node="mixed", model="Tesla-T4") == 2
    assert of(found, name, node="mixed", model="A10") == 2
    assert of(found, name, node="plain", model="") == 4


def test_namespaces_beyond_the_most_are_told_together() -> None:
    waiting = {f"n{i:04}": NamespaceWait(1, float(i)) for i in range(1500)}
    oldest, pending, waits = namespaces.collect_waiting(waiting, 2000.0)
    assert [one.value for one in oldest.samples] == [2000.0]
    assert len(pending.samples) == len(waits.samples) == 1001
    last = [
        (one.labels["namespace"], one.value) for one in (pending.samples[-1], waits.samples[-1])
    ]
    assert last == [("other", 500), ("other", 1000.0)]
