"""What people get wrong: told on the object at fault, once, while everything else goes on."""

from __future__ import annotations

import asyncio

from scheduler.embedded.agents import cards, nodes
from tests.operator import audit
from tests.operator.foreign import bind_for_another
from tests.operator.manifests import container, pod, vgpu
from tests.operator.world import NODES, PODS, World

_LIMITS = "spec.containers[0].resources.limits"


def _on(key: str) -> str:
    return f"metadata.annotations[{key}]"


# Annotations, limits, and what the event must say.
_WRONG: dict[str, tuple[dict[str, str], dict[str, str | int], tuple[str, ...]]] = {
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
        {"nvidia.com/gpucores": 30},
        (f"{_LIMITS}[nvidia.com/gpucores]", "nvidia.com/gpu: 1"),
    ),
    "percent": (
        {},
        {"nvidia.com/gpu": 1, "nvidia.com/gpumem-percentage": 120},
        (f"{_LIMITS}[nvidia.com/gpumem-percentage]", "0..100"),
    ),
}


async def a_pod_with_a_mistake_is_told_the_field_and_what_is_allowed(world: World) -> None:
    await world.create(nodes.make_gpu_node("g0"))
    default: dict[str, str | int] = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 100}
    for name, (steering, limits, _) in _WRONG.items():
        await world.create(pod(name, annotations=steering, limits=limits or default))
    await world.create(vgpu("right", mem=100))
    assert await world.bound("right") == ["g0"]
    for name, (_, _, words) in _WRONG.items():
        note = (await world.refused(name))["note"]
        assert [word for word in words if word not in note] == [], note
    for kind in ("plain", "gpu"):
        await world.create(
            nodes.make_plain_node(kind) if kind == "plain" else nodes.make_gpu_node("g1")
        )
    await world.settle()
    for name in _WRONG:
        assert "nodeName" not in (await world.pod(name))["spec"]
        assert len(await world.events("FailedScheduling", name)) == 1, name


async def a_mended_pod_is_bound(world: World) -> None:
    await world.create(nodes.make_gpu_node("g0"))
    key = "hami.io/gpu-scheduler-policy"
    await world.create(vgpu("p", annotations={key: "mutx"}))
    await world.refused("p", "mutx")
    await world.annotate(f"{PODS}/p", {key: "mutex"})
    assert await world.bound("p") == ["g0"]


async def figures_that_decide_nothing_are_no_mistake(world: World) -> None:
    await world.create(nodes.make_gpu_node("g0"))
    many: dict[str, str | int] = {
        "nvidia.com/gpu": 1,
        "nvidia.com/gpumem": "16384",
        "nvidia.com/gpucores": 10,
    }
    zero = {"nvidia.com/gpu": 0, "nvidia.com/gpumem": 0}
    await world.create(pod("zero", limits=zero), pod("more-than-a-card", limits=many))
    await world.create(pod("sidecar", containers=[container("web"), container("b", limits=zero)]))
    await world.bound("zero", "sidecar")
    await world.refused("more-than-a-card", "CardInsufficientMemory on 4 GPUs:")


async def a_malformed_node_is_told_once_and_left_out_until_mended(world: World) -> None:
    good, bad = nodes.make_gpu_node("good", cards=1), nodes.make_gpu_node("bad", cards=1)
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
    await world.create(nodes.make_gpu_node("g0", cards=1), vgpu("before", mem=100))
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


async def a_node_nested_without_end_is_told_and_the_rest_goes_on(world: World) -> None:
    """A hundred thousand brackets fit into an annotation and into no parser's stack."""
    deep = nodes.make_gpu_node("deep")
    right = deep["metadata"]["annotations"][cards.REGISTER]
    nested = "[" * 100_000 + "]" * 100_000
    deep["metadata"]["annotations"][cards.REGISTER] = f'[{{"id":"GPU-1","more":{nested}}}]'
    await world.create(deep, nodes.make_gpu_node("good"))
    (event,) = await world.wait_until(lambda: world.events("MalformedNode", "deep"))
    assert _on(cards.REGISTER) in event["note"]
    await world.create(vgpu("p"))
    assert await world.bound("p") == ["good"]
    await world.annotate(f"{NODES}/deep", {cards.REGISTER: right})


async def _warnings(world: World, name: str) -> list[dict[str, str]]:
    """What a bound pod is told; oddly placed news of how it was scheduled would count too."""
    found = await world.listed("/apis/events.k8s.io/v1/namespaces/default/events")
    return [e for e in found if e["regarding"]["name"] == name and e["type"] == "Warning"]


async def cards_of_a_pod_that_nobody_can_read_stay_taken(world: World) -> None:
    """An annotation edited by hand must not give a card that is in use to a second pod."""
    await world.create(nodes.make_gpu_node("g0", cards=1))
    async with world.agents():
        await world.settle()
        await world.create(vgpu("edited", mem=10_000))
        (edited,) = await world.running("edited")
        right = edited["metadata"]["annotations"][audit.ALLOCATED]
        await world.annotate(f"{PODS}/edited", {audit.ALLOCATED: "GPU-1,NVIDIA,lots:;"})
        await world.create(vgpu("big", mem=10_000))
        await world.refused("big", "0/1 nodes are available")
        (event,) = await world.wait_until(lambda: _warnings(world, "edited"))
        assert _on(audit.ALLOCATED) in event["note"]
        for i in range(3):
            await world.annotate(f"{PODS}/edited", {"beat": str(i)})
        await world.settle()
        assert len(await _warnings(world, "edited")) == 1
        await world.annotate(f"{PODS}/edited", {audit.ALLOCATED: right})
        await world.create(vgpu("small", mem=5000))
        await world.running("small")
    assert "nodeName" not in (await world.pod("big"))["spec"]


async def a_foreign_pod_that_nobody_can_read_is_charged_what_it_asks(world: World) -> None:
    """Nobody can say which card the pod holds: the first is charged, and the rest of its node is given away."""
    await world.create(nodes.make_gpu_node("g0", cards=2))
    await bind_for_another(world, "foreign", "g0", devices="a wish")
    (event,) = await world.wait_until(lambda: _warnings(world, "foreign"))
    assert _on(audit.ALLOCATED) in event["note"]
    assert "first cards of node g0" in event["note"]
    whole = {"nvidia.com/gpu": 1}
    await world.create(pod("second-card", limits=whole))
    await world.bound("second-card")
    await world.create(pod("first-card", limits=whole))
    await world.refused("first-card", "0/1 nodes are available")
    await world.settle()
    assert len(await _warnings(world, "foreign")) == 1
    # As it stands nobody could say that all is well.
    await world.delete(f"{PODS}/foreign")


async def a_node_whose_register_goes_is_no_plain_gpu_node(world: World) -> None:
    """Its nvidia.com/gpu counts shares: taken for whole cards, running pods would lose theirs."""
    node = nodes.make_gpu_node("g0", cards=2)
    right = node["metadata"]["annotations"][cards.REGISTER]
    await world.create(node)
    async with world.agents():
        await world.create(vgpu("before", mem=100))
        await world.running("before")
    # The label comes in the same write, so whoever sees one has seen the other.
    gone = {"annotations": {cards.REGISTER: None}, "labels": {"register": "gone"}}
    await world.call("PATCH", f"{NODES}/g0", {"metadata": gone})
    await world.create(pod("witness", nodeSelector={"register": "gone"}))
    await world.bound("witness")
    await world.create(pod("whole", limits={"nvidia.com/gpu": 1}), vgpu("share", mem=100))
    await asyncio.gather(*(world.refused(name, "0/1 nodes") for name in ("whole", "share")))
    await world.settle()
    await world.annotate(f"{NODES}/g0", {cards.REGISTER: right})
    async with world.agents():
        await world.running("whole", "share")


ALL = (
    a_pod_with_a_mistake_is_told_the_field_and_what_is_allowed,
    a_mended_pod_is_bound,
    figures_that_decide_nothing_are_no_mistake,
    a_malformed_node_is_told_once_and_left_out_until_mended,
    a_node_that_becomes_malformed_gets_no_new_pods,
    a_node_nested_without_end_is_told_and_the_rest_goes_on,
    cards_of_a_pod_that_nobody_can_read_stay_taken,
    a_foreign_pod_that_nobody_can_read_is_charged_what_it_asks,
    a_node_whose_register_goes_is_no_plain_gpu_node,
)
