"""Pods of higher priority take the place of others, which are told so and given their time."""

from typing import Any

from scheduler.embedded.agents import nodes
from tests.operator.manifests import pod
from tests.operator.world import PODS, World

Json = dict[str, Any]
_HOLD = "example.com/hold"
_BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


async def create_classes(world: World) -> None:
    """Three classes of priority: low, mid and high."""
    for name, value in (("low", 1), ("mid", 500), ("high", 1000)):
        body = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        await world.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)


def _of(name: str, priority: str, cpu: str, **spec: Any) -> Json:
    return pod(name, requests={"cpu": cpu}, priorityClassName=priority, **spec)


async def _is_going(world: World, name: str) -> Json:
    """Wait until a pod is being deleted; the pod."""
    return await world.wait_until(
        lambda: world.pod(name), lambda found: "deletionTimestamp" in found["metadata"]
    )


async def _end(world: World, name: str) -> None:
    """As a kubelet that is done with a pod, and whoever holds it."""
    await world.delete(f"{PODS}/{name}")
    await world.call("PATCH", f"{PODS}/{name}", {"metadata": {"finalizers": None}})


async def _full_of_one_that_is_held(world: World) -> None:
    """A node on which a pod takes all, that goes no sooner than ``_end`` says."""
    await create_classes(world)
    await world.create(nodes.make_plain_node("n0", cpu="4"))
    held = _of("low", "low", "4")
    held["metadata"]["finalizers"] = [_HOLD]
    await world.create(held)
    await world.bound("low")


def _condition(found: Json, kind: str) -> Json:
    conditions = found["status"].get("conditions", [])
    return next((one for one in conditions if one["type"] == kind), {})


async def a_pod_waits_for_those_that_make_room_and_takes_their_place(world: World) -> None:
    await _full_of_one_that_is_held(world)
    (high,) = await world.create(_of("high", "high", "3"))
    low = await _is_going(world, "low")
    said = _condition(low, "DisruptionTarget")
    assert (said["status"], said["reason"]) == ("True", "PreemptionByScheduler")
    assert said["message"] == "evenkeel: preempting to accommodate a higher priority pod"
    # Of the spec that was decided about; the deletion counts as a change.
    assert said["observedGeneration"] == low["metadata"]["generation"] - 1 == 1
    (event,) = await world.wait_until(lambda: world.events("Preempted", "low"))
    assert (event["type"], event["action"]) == ("Normal", "Preempting")
    assert event["note"] == f"Preempted by pod {high['metadata']['uid']} on node n0"
    await world.refused(
        "high",
        "0/1 nodes are available: 1 Insufficient cpu. preemption: found a potential placement "
        "for pod on node n0, preempting 1 victims",
    )
    await world.wait_until(
        lambda: world.pod("high"), lambda one: one["status"].get("nominatedNodeName") == "n0"
    )
    # What is promised is not given away meanwhile, and nobody is told to go twice.
    await world.create(_of("small", "low", "2"))
    await world.refused("small", "1 Insufficient cpu")
    assert len(await world.events("Preempted", "low")) == 1
    await _end(world, "low")
    assert await world.bound("high") == ["n0"]
    await world.refused("small", "1 Insufficient cpu")


async def a_pod_goes_elsewhere_when_there_is_room_sooner(world: World) -> None:
    await _full_of_one_that_is_held(world)
    await world.create(_of("high", "high", "3"))
    await _is_going(world, "low")
    await world.create(nodes.make_plain_node("n1", cpu="4"))
    assert await world.bound("high") == ["n1"]
    await _end(world, "low")
    # What was promised is free again.
    await world.create(_of("next", "low", "4"))
    assert await world.bound("next") == ["n0"]


async def a_pod_whose_policy_is_never_evicts_nobody(world: World) -> None:
    await create_classes(world)
    await world.create(nodes.make_plain_node("n0", cpu="4"), _of("low", "low", "4"))
    await world.bound("low")
    polite = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "polite"},
        "value": 1000,
        "preemptionPolicy": "Never",
    }
    await world.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", polite)
    await world.create(_of("high", "polite", "3"))
    await world.refused("high", "preemption: not eligible due to preemptionPolicy=Never.")
    assert "deletionTimestamp" not in (await world.pod("low"))["metadata"]


async def a_budget_spares_pods_where_others_can_go(world: World) -> None:
    await create_classes(world)
    await world.create(nodes.make_plain_node("n0", cpu="4"), nodes.make_plain_node("n1", cpu="4"))
    spared = _of("spared", "low", "4")
    spared["metadata"]["labels"] = {"app": "db"}
    await world.create(spared)
    (where,) = await world.bound("spared")
    other = _of("other", "mid", "4")
    other["metadata"]["finalizers"] = [_HOLD]
    await world.create(other)
    await world.bound("other")
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "db"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "db"}}},
    }
    await world.call("POST", _BUDGETS, budget)
    await world.create(_of("high", "high", "4"))
    await _is_going(world, "other")
    await _end(world, "other")
    assert await world.bound("high") != [where]
    assert "deletionTimestamp" not in (await world.pod("spared"))["metadata"]
    await world.call("DELETE", f"{_BUDGETS}/db")


ALL = [
    a_pod_waits_for_those_that_make_room_and_takes_their_place,
    a_pod_goes_elsewhere_when_there_is_room_sooner,
    a_pod_whose_policy_is_never_evicts_nobody,
    a_budget_spares_pods_where_others_can_go,
]
