"""An API server that is up and yet does not serve: what must go on all the same, and who is told."""

import pytest

from tests import slices
from tests.model.server import Json, Refused
from tests.virtual import climate
from tests.virtual.conftest import Make
from tests.virtual.world import World

SEEDS = slices.pick_part(range(8))
TROUBLE = 'failed calling webhook "pods.example.com": connection refused'


@pytest.mark.parametrize("seed", SEEDS)
def test_bindings_that_a_webhook_refuses_for_ever_hold_up_no_others(
    make_world: Make, seed: int
) -> None:
    """Else one team's broken webhook would keep everyone's pods pending, and nobody would know why."""
    world = make_world(seed, climate.quiet(replicas=1))

    def webhook_is_down(method: str, path: str) -> None:
        if method == "POST" and "/bad-" in path and path.endswith("/binding"):
            raise Refused(500, "InternalError", TROUBLE)

    world.server.admit = webhook_is_down
    world.run(5.0)
    world.create("bad", count=40, cpu="10m")
    world.run(2.0)
    world.create("good", count=3, cpu="10m")
    world.run(5.0)
    assert world.n_bound == 3, world.report(["the others wait"])
    world.run(40.0)
    untold = [pod["metadata"]["name"] for pod in waiting(world) if TROUBLE not in told(pod)]
    assert not untold, world.report(untold)
    assert len(waiting(world)) == 40
    world.server.admit = lambda _method, _path: None
    world.settle()
    assert world.n_bound == 43


def waiting(world: World) -> list[Json]:
    """Pods without a node."""
    return [pod for pod in world.server.of_kind("pods") if not pod["spec"].get("nodeName")]


def told(pod: Json) -> str:
    """Why it is not scheduled, by its condition."""
    conditions = pod["status"].get("conditions") or ()
    return "".join(one.get("message", "") for one in conditions if one["type"] == "PodScheduled")
