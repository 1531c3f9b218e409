"""What a placement loses term by term: the terms are the whole, and the whole is what the node scored by."""

import random

import pytest

from scheduler.cycle.schedule import Cycle
from scheduler.kernels.modes import keel, places
from scheduler.schema.places import STEP
from scheduler.shapes.boards import Shape
from scheduler.state.pods import PodRecord
from scheduler.telling.advice import losses
from scheduler.telling.advice.asking import Asking
from tests import make
from tests.oracles import places as twin
from tests.unit import places_worlds, twin_worlds
from tests.unit.test_keel_twin import KEEL

OBJECTIVES = ("spread", "pack")


def scored(cycle: Cycle, record: PodRecord) -> Shape:
    shape = cycle.get_shape(record)
    assert shape is not None
    cycle.boards.refresh(shape)
    return shape


@pytest.mark.parametrize("seed", range(25))
def test_on_nodes_without_devices_they_are_the_twins(seed: int) -> None:
    world, rng = places_worlds.world(seed)
    cycle, objective = places_worlds.cycle_of(world.cluster), rng.choice(OBJECTIVES)
    pod = places_worlds.pod(rng, again=True)
    notes = {"scheduling.evenkeel.dev/objective": objective}
    shape = scored(cycle, world.see(pod, annotations=notes))
    tables = places_worlds.told(world.cluster, cycle.learner.tables.places)
    for name, node in world.nodes.items():
        row = world.cluster.nodes.find_row(name)
        if shape.board.part[row] < 0:
            continue
        loss = losses.measure_loss(Asking(world.cluster, cycle), shape, row)
        assert loss is not None
        assert loss.unit == losses.MILLI_NODE
        expected = float(twin.lost(node, pod | {twin.PODS: 1}, tables, packs=objective == "pack"))
        assert loss.total == pytest.approx(expected, rel=1e-7, abs=1e-5)
        assert sum(loss.terms.values()) == pytest.approx(loss.total, rel=1e-7, abs=1e-4)
        step = cycle.learner.tables.places.weights[STEP]
        points = (
            shape.board.part[row] // shape.ask.prefers.mode.unit // shape.ask.prefers.mode.weight
        )
        assert abs(places.score_loss(loss.total, step) - points) <= 10
        listed = [one.lost for one in loss.places]
        assert listed == sorted(listed, reverse=True)
        assert sum(listed) <= loss.terms.get(losses.PLACES, 0.0) + 1e-4


@pytest.mark.parametrize("seed", range(12))
def test_on_nodes_with_devices_they_are_what_the_node_scored_by(seed: int) -> None:
    rng = random.Random(seed)
    made = twin_worlds.world(rng, KEEL, 12, load=30, past=100, churn=True)
    cycle, cluster = twin_worlds.cycle_of(made), made.cluster
    assert not cycle.learner.get_tables(0).single.resources.size
    seen = 0
    for i in range(6):
        record = cluster.pods[made.see(twin_worlds.drawn(rng, KEEL, f"new-{i}"))]
        shape = scored(cycle, record)
        nodes = cluster.nodes.columns
        for row in (nodes.has_gpu & (shape.board.part >= 0)).nonzero()[0].tolist():
            loss = losses.measure_loss(Asking(cluster, cycle), shape, row)
            assert loss is not None
            assert loss.unit == losses.MILLI_GPU
            assert sum(loss.terms.values()) == pytest.approx(loss.total, rel=1e-7, abs=1e-4)
            points = (
                shape.board.part[row]
                // shape.ask.prefers.mode.unit
                // shape.ask.prefers.mode.weight
            )
            assert abs(keel.score_loss(loss.total) - points) <= keel.STEP_POINTS
            seen += len(loss.terms) > 1
    assert seen


def test_on_bundles_they_are_of_the_bundle() -> None:
    nodes = [make.hami_node(name=f"n{i:02}", cards=1, cpu=8 + i) for i in range(12)]
    cluster = make.cluster(nodes=nodes)
    cycle = places_worlds.cycle_of(cluster)
    record = cluster.see_pod(make.pod(cpu=3, gpu=1, gpumem=3000))
    assert record is not None
    shape = scored(cycle, record)
    loss = losses.measure_loss(Asking(cluster, cycle), shape, cluster.nodes.find_row("n03"))
    assert loss is not None
    assert loss.unit == losses.MILLI_NODE
    assert {"unevenness", "fullness"} <= loss.terms.keys()
    assert sum(loss.terms.values()) == pytest.approx(loss.total)
    assert "GPU memory MiB" in loss.places[0].requests


def test_other_modes_lose_nothing_that_could_be_told() -> None:
    cluster = make.cluster(nodes=[make.node(name="a")])
    cycle = places_worlds.cycle_of(cluster)
    notes = {"scheduling.evenkeel.dev/mode": "most-allocated"}
    record = cluster.see_pod(make.pod(annotations=notes))
    assert record is not None
    assert losses.measure_loss(Asking(cluster, cycle), scored(cycle, record), 0) is None
