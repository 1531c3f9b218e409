"""Whoever loses his place to a more important workload in a decision looks for another one at once, by others' leave if need be."""

from __future__ import annotations

from scheduler.api.door.workload_decisions import Preempt
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.simulate.changes.what_if import Changes
from scheduler.simulate.situation import make_engine, prepare
from tests.unit.test_queues_places import (
    RACKS,
    make_flavor,
    make_node,
    make_queue,
    make_running,
    make_workload,
)


def test_a_place_that_is_promised_to_another_one_is_made_elsewhere() -> None:
    """Kueue, scheduler_tas_test.go: "capacity reserved by preempting workload does not allow to schedule last workload".

    The card that is free would do for the last workload. The one before it is promised this card, and those of two others.
    """
    queues = [one for name in "abc" for one in make_queue(name, {"gpus": 4})]
    borrowers = [
        *make_running("on-n0", "a", "n0", "gpus", 1, gpus=3, priority=2),
        *make_running("on-n1", "a", "n1", "gpus", 0, gpus=2, priority=2),
        *make_running("small-0", "a", "n1", "gpus", 2, gpus=1, priority=1),
        *make_running("small-1", "a", "n1", "gpus", 3, gpus=1, priority=1),
    ]
    waiting = [
        make_workload("first", "b", 1, 3, priority=3),
        make_workload("last", "c", 1, 1, priority=1),
    ]
    nodes = [make_node("n0", "r0", 3), make_node("n1", "r1", 5)]
    world = [*nodes, RACKS, make_flavor("gpus", "gpu", "racks"), *queues, *borrowers, *waiting]
    inventory = prepare(world, Changes(), strict=True).inventory
    engine = make_engine(inventory, Config(), only_ours=False)
    found = [one for one in engine.decide(1e9, Unlimited()).quotas if isinstance(one, Preempt)]
    assert {(one.key, one.by) for one in found} == {
        ("team/small-0", "team/first"),
        ("team/small-1", "team/first"),
        ("team/on-n0", "team/last"),
    }
