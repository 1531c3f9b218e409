"""What people get wrong: told on the object at fault, once, while everything else goes on."""

from __future__ import annotations

import asyncio

from scheduler.embedded import cards, nodes
from tests.operator.world import NODES, PODS, World, container, pod, vgpu

_LIMITS = "spec.containers[0].resources.limits"


def _on(key: str) -> str:
    return f"metadata.annotations[{key}]"


# Annotations, limits, and what the event must say.
_WRONG = {
    "gpu-policy": (
        {"hami.io/gpu-scheduler-policy": "mutx"},
        {},
        (_on("hami.io/gpu-scheduler-policy"), "mutx", "binpack", "spread", "mutex", "numa"),
    ),
    "node-policy": (
        {"hami.io/node-scheduler-policy": "Spread"},
        {},
        (_on("hami.io/node-scheduler-policy"), "Spread", "binpack, spread"),
    ),
    "weights": (
        {"hami.io/device-scoring-weights": "slot=1,core=1"},
        {},
        (_on("hami.io/device-scoring-weights"), "slot=1,core=1", "memory"),
    ),
    "mode": (
        {"scheduling.evenkeel.dev/mode": "least"},
        {},
        (_on("scheduling.evenkeel.dev/mode"), "least-allocated", "lambda-g"),
    ),
    "gibibytes": (
        {},
        {"nvidia.com/gpu": 1, "nvidia.com/gpumem": "16Gi"},
        (f"{_LIMITS}[nvidia.com/gpumem]", "MiB", "16384"),
    ),
    "no-gpu": (
        {},
        {"nvidia.com/gpumem": 7500},
        (f"{_LIMITS}[nvidia.com/gpumem]", "nvidia.com/gpu: 1"),
    ),
    "cores": (
        {},
        {"nvidia.com/gpu": 1, "nvidia.com/gpucores": 101},
        (f"{_LIMITS}[nvidia.com/gpucores]", "0..100"),
    ),
    "percent": (
        {},
        {"nvidia.com/gpu": 1, "nvidia.com/gpumem-percentage": 120},
        (f"{_LIMITS}[nvidia.com/gpumem-percentage]", "0..100"),
    ),
}


async def a_pod_with_a_mistake_is_told_the_field_and_what_is_allowed(world: World) -> None:
    await world.create(nodes.gpu_node("g0"))
    default = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 100}
    for name, (steering, limits, _) in _WRONG.items():
        await world.create(pod(name, annotations=steering, limits=limits or default))
    await world.create(vgpu("right", mem=100))
    assert await world.bound("right") == ["g0"]
    for name, (_, _, words) in _WRONG.items():
        note = (await world.refused(name))["note"]
        assert [word for word in words if word not in note] == [], note
    for kind in ("plain", "gpu"):
        await world.create(nodes.plain_node(kind) if kind == "plain" else nodes.gpu_node("g1"))
    await world.settle()
    for name in _WRONG:
        assert "nodeName" not in (await world.pod(name))["spec"]
        assert len(await world.events("FailedScheduling", name)) == 1, name


async def a_mended_pod_is_bound(world: World) -> None:
    await world.create(nodes.gpu_node("g0"))
    key = "hami.io/gpu-scheduler-policy"
    await world.create(vgpu("p", annotations={key: "mutx"}))
    await world.refused("p", "mutx")
    await world.annotate(f"{PODS}/p", {key: "mutex"})
    assert await world.bound("p") == ["g0"]


async def figures_that_decide_nothing_are_no_mistake(world: World) -> None:
    await world.create(nodes.gpu_node("g0"))
    many = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": "16384", "nvidia.com/gpucores": 10}
    zero = {"nvidia.com/gpu": 0, "nvidia.com/gpumem": 0}
    await world.create(pod("zero", limits=zero), pod("more-than-a-card", limits=many))
    await world.create(pod("sidecar", containers=[container("web"), container("b", limits=zero)]))
    await world.bound("zero", "sidecar")
    await world.refused("more-than-a-card", "4/4 CardInsufficientMemory")


async def a_malformed_node_is_told_once_and_left_out_until_mended(world: World) -> None:
    good, bad = nodes.gpu_node("good", cards=1), nodes.gpu_node("bad", cards=1)
    right = bad["metadata"]["annotations"][cards.REGISTER]
    bad["metadata"]["annotations"][cards.REGISTER] = '[{"id":"GPU-1","devmem":"lots"}]'
    await world.create(bad, good)
    (event,) = await world.wait_until(lambda: world.events("MalformedNode", "bad"))
    assert event["regarding"]["kind"] == "Node"
    assert event["type"] == "Warning"
    assert _on(cards.REGISTER) in event["note"]
    await world.create(vgpu("one", mem=15_001), vgpu("two", mem=15_001))
    placed = await world.wait_until(
        world.pods, lambda pods: sum("nodeName" in p["spec"] for p in pods) == 1
    )
    assert {p["spec"].get("nodeName", "good") for p in placed} == {"good"}
    (waiting,) = (p["metadata"]["name"] for p in placed if "nodeName" not in p["spec"])
    await world.refused(waiting, "1 node(s) had malformed annotations or quantities")
    for i in range(3):
        await world.annotate(f"{NODES}/bad", {"beat": str(i)})
    await world.settle()
    assert len(await world.events("MalformedNode", "bad")) == 1
    await world.annotate(f"{NODES}/bad", {cards.REGISTER: right})
    assert await world.bound(waiting) == ["bad"]


async def a_node_that_becomes_malformed_gets_no_new_pods(world: World) -> None:
    await world.create(nodes.gpu_node("g0", cards=1), vgpu("before", mem=100))
    async with world.agents():
        await world.running("before")
    (right,) = (n["metadata"]["annotations"][cards.REGISTER] for n in await world.nodes())
    await world.annotate(f"{NODES}/g0", {cards.REGISTER: "GPU-1,10:"})
    await world.wait_until(lambda: world.events("MalformedNode", "g0"))
    await world.create(vgpu("after", mem=15_299), vgpu("small", mem=200))
    await asyncio.gather(world.refused("after"), world.refused("small"))
    await world.annotate(f"{NODES}/g0", {cards.REGISTER: right})
    # What was there before still counts: only the small one fits.
    await world.bound("small")
    await world.settle()
    assert "nodeName" not in (await world.pod("after"))["spec"]
    # The same mistake a second time is news again.
    await world.annotate(f"{NODES}/g0", {cards.REGISTER: "GPU-1,10:"})
    await world.wait_until(
        lambda: world.events("MalformedNode", "g0"), lambda found: len(found) == 2
    )
    await world.annotate(f"{NODES}/g0", {cards.REGISTER: right})


ALL = (
    a_pod_with_a_mistake_is_told_the_field_and_what_is_allowed,
    a_mended_pod_is_bound,
    figures_that_decide_nothing_are_no_mistake,
    a_malformed_node_is_told_once_and_left_out_until_mended,
    a_node_that_becomes_malformed_gets_no_new_pods,
)
