"""A device plugin that answers nobody must not be what everybody waits for."""

from typing import Any

import pytest

from tests import slices
from tests.virtual import climate
from tests.virtual.conftest import Make
from tests.virtual.network import Faults
from tests.virtual.world import World

SILENT = climate.quiet(replicas=1, nodes=2, plugin=(0.0, 0.0), lock_timeout_seconds=300.0)

NO_ANSWER = Faults(refused=1.0, refusals=(500,))


def nodes_of(world: World) -> list[str]:
    found = [pod["spec"].get("nodeName") for pod in world.server.of_kind("pods")]
    return sorted(node for node in found if node)


def condition(pod: dict[str, Any]) -> str:
    found = [one for one in pod["status"].get("conditions") or () if one["type"] == "PodScheduled"]
    return str(found[0]["message"]) if found else ""


@pytest.mark.parametrize("seed", slices.pick_part(range(8)))
def test_those_who_wait_for_it_go_elsewhere_and_nobody_follows(make_world: Make, seed: int) -> None:
    world = make_world(seed, SILENT)
    world.run(5.0)
    world.create("no-cores", count=4)
    world.run(35.0)
    assert nodes_of(world) == ["node-0", "node-1"]
    # Both plugins are silent by now: the others wait, and read why.
    world.run(30.0)
    assert nodes_of(world) == ["node-0", "node-1"]
    waiting = [pod for pod in world.server.of_kind("pods") if not pod["spec"].get("nodeName")]
    assert len(waiting) == 2
    assert all("CardCordoned" in condition(pod) for pod in waiting)


@pytest.mark.parametrize("seed", slices.pick_part(range(8)))
def test_when_it_answers_again_its_node_takes_pods_again(make_world: Make, seed: int) -> None:
    world = make_world(seed, SILENT)
    world.run(5.0)
    world.create("no-cores", count=4)
    world.run(65.0)
    world.plugins_answer()
    world.settle()
    assert len(nodes_of(world)) == 4


@pytest.mark.parametrize("seed", slices.pick_part(range(8)))
def test_an_api_server_that_was_away_leaves_no_node_closed(make_world: Make, seed: int) -> None:
    """What held the turn was a bind in doubt: the plugin was never asked, and is not silent."""
    world = make_world(seed, climate.quiet(replicas=1, nodes=1, lock_timeout_seconds=300.0))
    world.run(5.0)
    world.network.special = lambda *request: NO_ANSWER if request[2].endswith("/binding") else None
    world.create("no-cores", count=3)
    world.run(2.0)
    world.network.faults = NO_ANSWER
    world.run(40.0)
    assert nodes_of(world) == []
    world.network.faults = Faults()
    world.network.special = lambda *_: None
    world.run(20.0)
    assert nodes_of(world) == ["node-0"] * 3
