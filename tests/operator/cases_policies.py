"""BalancePolicies: in force without a restart for pods not yet placed, and with an honest status."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from scheduler.embedded.agents import nodes
from tests.operator import audit
from tests.operator.manifests import pod, policy, vgpu
from tests.operator.world import PODS, POLICIES, Refused, World

Json = dict[str, Any]
# As the operator's record has it.
_PACK_IS_GONE = '"type":"Gone","kind":"BalancePolicy","key":"pack"'


async def _status(world: World, name: str, **wanted: Any) -> Json:
    """Wait until the status of a policy has these fields; return it with its Ready condition."""

    async def read() -> Json:
        found = await world.call("GET", f"{POLICIES}/{name}")
        status: Json = found.get("status") or {}
        ready = [c for c in status.get("conditions", ()) if c["type"] == "Ready"]
        return {**status, "ready": ready[0] if ready else {}}

    return await world.wait_until(
        read, lambda s: s["ready"] and all(s.get(k) == v for k, v in wanted.items())
    )


async def _spread_of(world: World, *names: str) -> int:
    """On how many nodes these pods are."""
    return len(set(await world.bound(*names)))


async def in_force(world: World, *names: str) -> None:
    """Wait until policies have a status for what they say now."""
    for name in names:
        generation = (await world.call("GET", f"{POLICIES}/{name}"))["metadata"]["generation"]
        await _status(world, name, observedGeneration=generation)


async def _three_with_one_pod(world: World) -> None:
    """Three nodes, one of them with a pod, so that packing and spreading differ."""
    await world.create(*(nodes.make_plain_node(f"n{i}", cpu="8", memory="8Gi") for i in range(3)))
    await world.create(pod("first", requests={"cpu": "2", "memory": "2Gi"}))
    await world.bound("first")


def _pair(stem: str, **more: Any) -> list[Json]:
    """Two pods of an eighth of a node: by default much smaller ones may share what is in use already."""
    return [pod(f"{stem}{i}", requests={"cpu": "1", "memory": "1Gi"}, **more) for i in range(2)]


async def a_policy_takes_effect_without_a_restart_and_ends_with_its_deletion(world: World) -> None:
    await _three_with_one_pod(world)
    await world.create(*_pair("before"))
    assert not await _by_policy(world, "before0")
    await world.create(policy("pack", scoring={"mode": "most-allocated"}))
    await in_force(world, "pack")
    await world.create(*_pair("during"))
    assert await _spread_of(world, "during0", "during1", "first") == 1
    assert await _by_policy(world, "during0")
    await world.call(
        "PATCH", f"{POLICIES}/pack", {"spec": {"scoring": {"mode": "least-allocated"}}}
    )
    await in_force(world, "pack")
    await world.create(*_pair("changed"))
    assert await _spread_of(world, "changed0", "changed1", "first") == 3
    await world.call("PATCH", f"{POLICIES}/pack", {"spec": {"scoring": {"mode": "most-allocated"}}})
    await in_force(world, "pack")
    assert world.operator is not None
    heard = world.operator.heard
    before = heard(_PACK_IS_GONE)
    await world.delete(f"{POLICIES}/pack")
    await world.wait_until(
        lambda: asyncio.to_thread(heard, _PACK_IS_GONE), lambda lines: lines > before
    )
    await world.create(*_pair("after"))
    # Where they go depends on the demand that the operator has seen before.
    assert not await _by_policy(world, "after0")


async def _by_policy(world: World, name: str) -> bool:
    """Whether the event about a bound pod names the policy ``pack``."""
    (event,) = await world.wait_until(lambda: world.events("Scheduled", name))
    return "policy pack" in event["note"]


async def the_highest_priority_governs_and_ties_go_by_name(world: World) -> None:
    await _three_with_one_pod(world)
    await world.create(
        policy("b-spread", nodePolicy="spread"),
        policy("c-pack", nodePolicy="binpack"),
        policy("a-else", nodePolicy="binpack", podSelector={"matchLabels": {"no": "body"}}),
    )
    await in_force(world, "a-else", "b-spread", "c-pack")
    await world.create(*_pair("tie", labels={"x": "1"}))
    await world.bound("tie0", "tie1")
    await _status(world, "b-spread", governedPods=3)
    await _status(world, "c-pack", governedPods=0)
    await world.call("PATCH", f"{POLICIES}/c-pack", {"spec": {"priority": 1}})
    await _status(world, "c-pack", governedPods=3)
    await _status(world, "b-spread", governedPods=0)
    await world.delete(f"{POLICIES}/c-pack")
    await _status(world, "b-spread", governedPods=3)


async def selectors_choose_pods_and_namespaces(world: World) -> None:
    for name in ("team-red", "team-blue"):
        with suppress(Refused):  # namespaces are left standing, there is nobody to finish them
            await world.create(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            )
    colour: dict[str, Any] = {"metadata": {"labels": {"colour": None}}}
    await world.call("PATCH", "/api/v1/namespaces/team-red", colour)
    await world.create(nodes.make_plain_node("n0"))
    red = [{"key": "colour", "operator": "In", "values": ["red"]}]
    await world.create(
        policy(
            "red", nodePolicy="binpack", priority=2, namespaceSelector={"matchExpressions": red}
        ),
        policy(
            "web", nodePolicy="binpack", priority=1, podSelector={"matchLabels": {"app": "web"}}
        ),
        policy(
            "blue-by-name",
            nodePolicy="spread",
            namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "team-blue"}},
        ),
    )
    await in_force(world, "red", "web", "blue-by-name")
    await world.create(
        pod("p1", namespace="team-red", labels={"app": "web"}),
        pod("p2", namespace="team-red"),
        pod("p3", namespace="team-blue", labels={"app": "web"}),
        pod("p4", namespace="team-blue"),
        pod("p5", labels={"app": "db"}),
    )
    await world.bound("p1", "p2", "p3", "p4", "p5")
    await _status(world, "red", governedPods=0)
    await _status(world, "web", governedPods=2)
    await _status(world, "blue-by-name", governedPods=1)
    colour["metadata"]["labels"]["colour"] = "red"
    await world.call("PATCH", "/api/v1/namespaces/team-red", colour)
    await _status(world, "red", governedPods=2)
    await _status(world, "web", governedPods=1)


async def the_status_says_what_was_seen_and_how_many_are_governed(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"), policy("p", nodePolicy="spread"))
    first = await _status(world, "p", observedGeneration=1, governedPods=0)
    assert (first["ready"]["status"], first["ready"]["observedGeneration"]) == ("True", 1)
    assert first["ready"]["reason"]
    assert first["ready"]["message"]
    await world.create(pod("one"), pod("two", nodeSelector={"no": "where"}))
    await _status(world, "p", governedPods=2)
    await world.call("PATCH", f"{POLICIES}/p", {"spec": {"nodePolicy": "binpack"}})
    second = await _status(world, "p", observedGeneration=2, governedPods=2)
    assert second["ready"]["lastTransitionTime"] == first["ready"]["lastTransitionTime"]
    await world.delete(f"{PODS}/one")
    await _status(world, "p", governedPods=1)


async def the_status_says_which_part_is_in_force(world: World) -> None:
    """Of a mode and a node policy in one policy the node policy decides, and the mode not at all."""
    both = policy("p", nodePolicy="spread", scoring={"mode": "gpu-packing"}, gpuPolicy="binpack")
    await world.create(nodes.make_gpu_node("g0"), nodes.make_gpu_node("g1"))
    await world.create(both)
    found = (await _status(world, "p", observedGeneration=1))["ready"]
    assert found["status"] == "True"
    assert found["message"] == (
        "the policy applies to pods that are not placed yet; nodePolicy spread scores the nodes, so this "
        "has no effect: mode gpu-packing; cards are chosen by gpuPolicy binpack"
    )
    # What it says is what happens.
    async with world.agents():
        await world.create(vgpu("a0", mem=100), vgpu("a1", mem=100))
        apart = await world.running("a0", "a1")
    assert len({one["spec"]["nodeName"] for one in apart}) == 2
    await world.call("PATCH", f"{POLICIES}/p", {"spec": {"nodePolicy": None}})
    found = (await _status(world, "p", observedGeneration=2))["ready"]
    assert found["message"] == "the policy applies to pods that are not placed yet"


async def pods_own_annotations_stand_above_a_policy(world: World) -> None:
    await world.create(nodes.make_gpu_node("g0"), nodes.make_gpu_node("g1"))
    await world.create(policy("pack", nodePolicy="binpack", gpuPolicy="binpack"))
    await in_force(world, "pack")
    spread = {"hami.io/node-scheduler-policy": "spread", "hami.io/gpu-scheduler-policy": "spread"}
    async with world.agents():
        await world.create(vgpu("a0", mem=100), vgpu("a1", mem=100))
        packed = await world.running("a0", "a1")
        assert len({audit.devices(p)[0][0][0] for p in packed}) == 1
        await world.create(vgpu("b0", mem=100, annotations=spread))
        (apart,) = await world.running("b0")
    assert apart["spec"]["nodeName"] != packed[0]["spec"]["nodeName"]


async def a_policy_for_cards_takes_effect(world: World) -> None:
    await world.create(nodes.make_gpu_node("g0"))
    async with world.agents():
        for word, n_cards in (("binpack", 1), ("spread", 3)):
            await world.create(policy(word, gpuPolicy=word, priority=n_cards))
            await in_force(world, word)
            names = [f"{word}{i}" for i in range(3)]
            await world.create(*(vgpu(name, mem=101) for name in names))
            used = {audit.devices(one)[0][0][0] for one in await world.running(*names)}
            assert len(used) == n_cards


ALL = (
    a_policy_takes_effect_without_a_restart_and_ends_with_its_deletion,
    the_highest_priority_governs_and_ties_go_by_name,
    selectors_choose_pods_and_namespaces,
    the_status_says_what_was_seen_and_how_many_are_governed,
    the_status_says_which_part_is_in_force,
    pods_own_annotations_stand_above_a_policy,
    a_policy_for_cards_takes_effect,
)
