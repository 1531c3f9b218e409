"""Who waits is woken by what helps, and by nothing else."""

import random
from typing import Any

import pytest

from scheduler.api import wire
from tests import make, slices
from tests.model import peer_objects as objects
from tests.model.waiting_worlds import Waiting


@pytest.mark.parametrize("seed", range(slices.count_examples(60)))
def test_no_pod_that_fits_stays_parked_whatever_happens(seed: int) -> None:
    """As if everybody were woken every time: after each event, who still waits fits nowhere."""
    world = Waiting(random.Random(seed), explains=seed % 2 == 0)
    waited = 0
    for _ in range(40):
        world.now += 0.5
        happened = [world.something_happens() for _ in range(world.rng.choice([1, 1, 2]))]
        world.settle()
        parked = world.parked()
        waited += len(parked)
        forgotten = [pod.name for pod in parked if world.engine._cycle.could_place(pod)]
        assert not forgotten, happened
    assert waited


def a_crowd(*pods: wire.Pod, nodes: list[wire.Node]) -> Waiting:
    """A world of these nodes, in which these pods wait."""
    world = Waiting(random.Random(0), n_nodes=0)
    for node in nodes:
        world.see_node(node)
    for pod in pods:
        world.see_waiting(pod)
    world.settle()
    assert len(world.parked()) == len(pods)
    world.looks = 0
    return world


def near(app: str) -> dict[str, Any]:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": objects.affinity("podAffinity", term)}


FULL: dict[str, Any] = {
    "name": "n",
    "cpu": 2,
    "labels": {"zone": "a"},
    "taints": [("k", "", "NoSchedule")],
}
CLOSED = make.node(**FULL)
TOLERANT: dict[str, Any] = {"tolerations": [{"operator": "Exists"}]}


def all_sorts(n: int) -> list[wire.Pod]:
    """Pods that wait for different things, no two alike."""
    return [
        *(make.pod(name=f"cpu-{i}", cpu=f"{3000 + i}m", **TOLERANT) for i in range(n)),
        *(
            make.pod(name=f"label-{i}", node_selector={"rack": f"r{i}"}, **TOLERANT)
            for i in range(n)
        ),
        *(make.pod(name=f"taint-{i}", cpu=f"{1 + i}m") for i in range(n)),
        *(make.pod(name=f"near-{i}", spec=near(f"a{i}"), **TOLERANT) for i in range(n)),
    ]


@pytest.mark.parametrize(
    "changed",
    [
        {"annotations": {"storm": "1"}},
        {"labels": {"zone": "a", "storm": "1"}},
        {"labels": {"zone": "a", "rack": "none"}},
        {"cpu": 1},
        {"cpu": "2999m"},
        {"memory": "64Gi"},
        {"pods": 200},
        {"allocatable": {"example.com/x": 5}},
    ],
)
def test_what_helps_nobody_costs_no_look_at_those_who_wait(changed: dict[str, Any]) -> None:
    world = a_crowd(*all_sorts(20), nodes=[CLOSED])
    world.see_node(make.node(**FULL | changed))
    world.settle()
    assert world.looks == 0
    assert len(world.parked()) == 80


@pytest.mark.parametrize(
    ("changed", "looks", "woken"),
    [
        # By amount: those that are between what was free and what is.
        ({"cpu": "3004m"}, 5, 1),
        ({"labels": {"zone": "a", "rack": "r7"}}, 1, 1),
        # A label that domains are made of: all that look at it.
        ({"labels": {"zone": "b"}}, 20, 0),
        ({"taints": []}, 20, 20),
    ],
)
def test_a_change_is_looked_at_only_for_those_it_can_help(
    changed: dict[str, Any], looks: int, woken: int
) -> None:
    world = a_crowd(*all_sorts(20), nodes=[CLOSED])
    world.see_node(make.node(**FULL | changed))
    world.settle()
    assert looks <= world.looks <= looks + woken
    assert len(world.parked()) == 80 - woken


def test_more_of_what_was_enough_before_helps_nobody() -> None:
    """A pod that is short of CPU on one node, and refused for a taint on another that has exactly what it asks."""
    small = make.node(name="small", cpu=1)
    world = a_crowd(make.pod(cpu="2"), nodes=[CLOSED, small])
    world.see_node(make.node(**FULL | {"cpu": 3}))
    world.settle()
    assert world.looks == 0
    world.see_node(make.node(name="small", cpu="1999m"))
    world.settle()
    assert world.looks == 0
    world.see_node(make.node(name="small", cpu=2))
    world.settle()
    assert not world.parked()


def test_a_pod_that_comes_is_looked_at_only_for_those_who_look_for_it() -> None:
    world = a_crowd(*all_sorts(20), nodes=[CLOSED])
    world.see_running(make.pod(name="other", node="n", labels={"app": "a3"}, scheduler_name="x"))
    world.settle()
    assert world.looks == 1
    assert {pod.name for pod in world.parked()} == {p.metadata.name for p in all_sorts(20)} - {
        "near-3"
    }


def test_of_thousands_that_waited_for_five_minutes_a_few_are_tried_again_at_a_time() -> None:
    world = a_crowd(*(make.pod(name=f"p{i}", cpu=9) for i in range(250)), nodes=[CLOSED])
    pending = world.engine._pending
    for second, left in enumerate((150, 50, 0)):
        pending.retry_longest_parked(300.0 + second)
        assert len(pending.parked) == left
