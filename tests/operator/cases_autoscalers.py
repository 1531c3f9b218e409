"""Autoscalers add nodes for the pods that a node could help, and for no others."""

from scheduler.embedded.agents import nodes
from tests.operator.manifests import pod, vgpu
from tests.operator.world import Json, World
from tests.oracles import autoscalers


async def _told(world: World, name: str) -> Json:
    """A pod, once it has been told why it waits, or where it is."""

    def is_told(found: Json) -> bool:
        return any(one["type"] == "PodScheduled" for one in found["status"].get("conditions", ()))

    async def read() -> Json:
        return await world.pod(name)

    return await world.wait_until(read, is_told)


async def nodes_are_added_for_pods_that_a_node_could_help(world: World) -> None:
    await world.create(nodes.make_plain_node("n0", cpu="1"), nodes.make_gpu_node("g0"))
    helped = {
        "large": pod("large", requests={"cpu": "99"}),
        "elsewhere": pod("elsewhere", nodeSelector={"zone": "a"}),
        "cards": vgpu("cards", mem=90_000_000),
    }
    await world.create(*helped.values())
    for name in helped:
        found = await _told(world, name)
        assert autoscalers.cluster_autoscaler(found) == "unschedulable", found["status"]
        assert autoscalers.karpenter(found), found["status"]
        # A pod that has one counts as placed there, and gets no node.
        assert "nominatedNodeName" not in found["status"]


async def no_node_is_added_for_pods_that_no_node_could_help(world: World) -> None:
    await world.create(nodes.make_plain_node("n0", cpu="1"))
    mistake = {"scheduling.evenkeel.dev/mode": "kel"}
    claims = [{"name": "model", "resourceClaimName": "model"}]
    not_helped = {
        "gated": pod("gated", schedulingGates=[{"name": "example.com/quota"}]),
        "mistaken": pod("mistaken", annotations=mistake),
        "claims": pod("claims", resourceClaims=claims),
        "placed": pod("placed", requests={"cpu": "1"}),
    }
    await world.create(*not_helped.values())
    for name in not_helped:
        found = await _told(world, name)
        assert autoscalers.cluster_autoscaler(found) in {"ignored", "scheduled"}, found["status"]
        assert not autoscalers.karpenter(found), found["status"]


ALL = (
    nodes_are_added_for_pods_that_a_node_could_help,
    no_node_is_added_for_pods_that_no_node_could_help,
)
