"""What of a pod's placement the kernels are told: the mode, its objective, and what stands in their place."""

from typing import Any

import pytest

from scheduler.api.placement import Mode, Placement
from scheduler.config import Config
from scheduler.kernels.modes import aware, score
from scheduler.schema import columns as c
from tests import make

CPU: dict[str, Any] = {"cpu": 1}
CARD: dict[str, Any] = {"gpu": 1}
KEEL, FGD = aware.KEEL, aware.FGD


@pytest.mark.parametrize(
    ("placement", "asks", "wanted"),
    [
        (Placement(), CPU, (KEEL, c.SPREAD_NODES)),
        (Placement(), CARD, (KEEL, c.NO_OBJECTIVE)),
        (Placement(objective="spread"), CARD, (KEEL, c.SPREAD_NODES)),
        (Placement(objective="pack"), CARD, (KEEL, c.PACK_NODES)),
        (Placement(objective="pack"), CPU, (KEEL, c.PACK_NODES)),
        (Placement(mode=Mode.FGD), CPU, (FGD, c.NO_OBJECTIVE)),
        (Placement(mode=Mode.LEAST_ALLOCATED), CPU, (-1, c.NO_OBJECTIVE)),
        (Placement(objective="pack", node_policy="spread"), CPU, (-1, c.NO_OBJECTIVE)),
    ],
)
def test_keel_has_the_objective_that_is_said_and_pods_without_devices_spread(
    placement: Placement, asks: dict[str, Any], wanted: tuple[int, int]
) -> None:
    cluster = make.cluster(nodes=[make.hami_node(name="a")])
    cycle = make.cycle(cluster=cluster, config=Config(placement=placement))
    record = cluster.see_pod(make.pod(**asks))
    assert record is not None
    shape = cycle.get_shape(record)
    assert shape is not None
    cycle.boards.refresh(shape)
    term = shape.ask.prefers.mode
    assert (term.aware, term.objective) == wanted
    assert (term.blind == score.NODE_SPREAD) == bool(placement.node_policy)
