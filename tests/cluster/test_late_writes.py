"""On a real API server: a bind that a proxy holds until its card is given away lands, and is refused."""

import asyncio
import json

from scheduler.embedded.agents import nodes
from tests.operator import audit, proxy
from tests.operator.manifests import vgpu
from tests.operator.process import Operator
from tests.operator.world import PODS, World

_PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"


async def test_a_bind_that_lands_after_its_card_was_given_away_is_refused(world: World) -> None:
    """Without the fence both pods would run on a card that has room for one."""
    high = {"metadata": {"name": "high"}, "value": 1000}
    await world.call("POST", _PRIORITIES, high)
    await world.create(nodes.make_gpu_node("g0", cards=1))
    async with proxy.before(world.server) as between, world.agents():
        between.holds = lambda method, path: (method, path) == ("POST", f"{PODS}/a/binding")
        first = Operator(between.server, name="first")
        world.operators.append(first)
        await asyncio.to_thread(first.wait_ready)
        await world.leads(first)
        second = await world.start_operator(name="second")
        await world.create(vgpu("a", mem=15_000))
        await world.wait_until(between.is_holding)
        first.kill()
        await world.create(vgpu("b", mem=15_000, priorityClassName="high"))
        await world.bound("b", seconds=60.0)
        answers = await between.let_go()
        assert list(second.said("fenced the pods that previous leaders may have been binding"))
        assert [status for status, _ in answers] == [409] * len(answers)
        assert "Precondition failed: ResourceVersion" in json.loads(answers[0][1])["message"]
        await world.running("b")
        await world.refused("a", "0/1 nodes are available")
    assert "nodeName" not in (await world.pod("a"))["spec"]
    assert audit.problems(await world.nodes(), await world.pods()) == []
