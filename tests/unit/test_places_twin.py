"""Nodes that are judged as a whole, against their twin: what is learnt, every score, and where pods go."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from scheduler.api import names
from scheduler.cycle.schedule import Cycle
from scheduler.schema import columns as c
from scheduler.shapes.boards import Boards
from tests import slices
from tests.oracles import places as twin
from tests.oracles.places import PODS
from tests.unit import places_worlds
from tests.unit.places_worlds import Asked, World

SEEDS = st.integers(0, 2**32 - 1)
many = settings(
    max_examples=slices.count_examples(150), deadline=None, suppress_health_check=list(HealthCheck)
)
# What the order of float sums may change, in parts and in units.
RELATIVE, UNITS = 1e-7, Fraction(1, 10**6)
OBJECTIVES = {"": c.NO_OBJECTIVE, "spread": c.SPREAD_NODES, "pack": c.PACK_NODES}


def near(a: float | Fraction, b: float | Fraction) -> bool:
    return abs(float(a) - float(b)) <= RELATIVE * max(1e-6, abs(float(a)), abs(float(b)))


def agrees(
    part: int, ask: c.Ask, node: twin.Node, pod: Asked, places: twin.Places, objective: str
) -> bool:
    """Whether a part is that of the twin's loss, next to a step of either of the two."""
    cost = twin.lost(node, pod, places, packs=objective == "pack")
    points, second = divmod(part, ask.prefers.mode.unit)
    off = UNITS + abs(cost) / 10**9
    wanted = {twin.points(one, places.weights.step) for one in (cost - off, cost, cost + off)}
    apart = second - twin.second(node, places, objective, ask.prefers.mode.unit)
    is_second = -1 - UNITS <= apart <= UNITS
    return (
        points % ask.prefers.mode.weight == 0
        and points // ask.prefers.mode.weight in wanted
        and is_second
    )


def scored(world: World, cycle: Cycle, pod: Asked, objective: str, *, cold: bool) -> None:
    """Score all nodes for a pod, compare, and place it."""
    notes = {names.OBJECTIVE: objective}
    record = world.see(pod, annotations=notes)
    asks = pod | {PODS: 1}
    key = cycle._make_key(record)
    assert key is not None
    boards = Boards(world.cluster, cycle.learner) if cold else cycle.boards
    shape = boards.get_shape(key)
    boards.refresh(shape)
    assert shape.ask.prefers.mode.objective == OBJECTIVES[objective]
    tables = places_worlds.told(world.cluster, cycle.learner.tables.places)
    parts = {}
    for name, node in world.nodes.items():
        part = int(shape.board.part[world.cluster.nodes.find_row(name)])
        assert (part >= 0) == node.holds(asks), (node, pod)
        if part >= 0:
            assert agrees(part, shape.ask, node, asks, tables, objective), (node, pod, part)
            parts[name] = part
    outcome = cycle.schedule([record], explain=False)
    assert cycle.boards.has(key) != cold
    if not parts:
        assert not outcome.binds
        return
    (bind,) = outcome.binds
    assert bind.node == min(parts, key=lambda name: (-parts[name], name))
    world.nodes[bind.node] = world.nodes[bind.node].with_pod(asks)


@many
@given(seed=SEEDS, objective=st.sampled_from(["spread", "pack"]), cold=st.booleans())
def test_pods_go_where_the_twin_loses_least(seed: int, objective: str, *, cold: bool) -> None:
    world, rng = places_worlds.world(seed)
    cycle = places_worlds.cycle_of(world.cluster)
    for i in range(4):
        # Words of its own make a pod one of a kind that comes for the first time.
        scored(world, cycle, places_worlds.pod(rng, again=i % 2 == 0), objective, cold=cold)
        if rng.random() < 0.2:
            cycle.learn(anew=True)


@many
@example(seed=781)  # two pods are worth the same but for the last bit
@given(seed=SEEDS)
def test_what_is_learnt_is_what_the_twin_learns(seed: int) -> None:
    world, _ = places_worlds.world(seed)
    cycle = places_worlds.cycle_of(world.cluster)
    expected, shapes = world.learnt()
    plain, departures = cycle.learner._plain, world.cluster.demand.plain.departures
    known = plain._learnt
    assert known is not None
    found, wanted = places_worlds.told(world.cluster, known.places), expected.places
    assert found.price.keys() == wanted.price.keys()
    for r, price in wanted.price.items():
        assert near(found.price[r], price), (r, price)
        assert near(found.level[r], wanted.level[r])
        values = wanted.value.get(r, [])
        assert all(map(near, found.value[r], values)), (r, values, found.value[r])
        # The longest table says how long all are.
        assert set(found.value[r][len(values) :]) <= set(found.value[r][-1:])
        assert not values or near(found.cell[r], wanted.cell[r])
    assert near(known.mean, expected.mean)
    judged = twin.scarcity(expected, list(world.nodes.values()), departures)
    new = twin.new_sizes(list(world.nodes.values()), shapes, wanted.price)
    assert plain._scarcity is not None
    assert abs(plain._scarcity.mix - judged.mix) <= 0.025 + RELATIVE
    assert abs(plain._scarcity.packs - judged.packs) <= 0.025 + RELATIVE
    rounded = twin.Scarcity((), plain._scarcity.mix, plain._scarcity.packs)
    weights = twin.weights(rounded, departures, new)
    now = places_worlds.told(world.cluster, plain.places)
    for name, weight in vars(weights).items():
        assert near(getattr(now.weights, name), weight), name
    compare_typical(known.val.tolist(), found, plain._scarcity.scarce, expected, judged)
    scarce = zip(found.typical, plain._scarcity.scarce, strict=True)
    wanted_now = [
        (one.asks, one.worth * Fraction(part)) for one, part in scarce if part and one.worth
    ]
    assert [one.asks for one in now.typical] == [asks for asks, _ in wanted_now]
    assert all(
        near(one.worth, worth) for one, (_, worth) in zip(now.typical, wanted_now, strict=True)
    )


def compare_typical(
    val: list[float],
    found: twin.Places,
    scarce: Sequence[float],
    expected: twin.Learnt,
    judged: twin.Scarcity,
) -> None:
    """Typical pods one by one; which of those comes first that have as much at stake is left open."""
    rows = zip(expected.places.typical, expected.val, judged.scarce, strict=True)
    left = list(rows)
    assert len(found.typical) == len(left)
    for one, part, value in zip(found.typical, scarce, val, strict=True):
        alike = [row for row in left if is_like(one, row[0]) and near(value, row[1])]
        assert alike, (one, left)
        row = alike[0]
        assert abs(part - row[2]) <= 0.0251
        left.remove(row)


def is_like(one: twin.Typical, other: twin.Typical) -> bool:
    if one.asks.keys() != other.asks.keys() or not near(one.worth, other.worth):
        return False
    return all(near(amount, other.asks[r]) for r, amount in one.asks.items())


@many
@given(seed=SEEDS)
def test_the_bound_of_a_node_is_never_below_what_it_holds(seed: int) -> None:
    world, _ = places_worlds.world(seed)
    places = places_worlds.cycle_of(world.cluster).learner.tables.places
    tables = places_worlds.told(world.cluster, places)
    for node in world.nodes.values():
        held = float(twin.held(node, tables))
        at = [
            places.most[b, min(places.most.shape[1] - 1, int(node.free(r) * places.wide[b]) + 1)]
            for b, r in enumerate(tables.price)
        ]
        assert min(at) >= held * (1 - 1e-9) - 1e-6


def test_places_are_the_same_whatever_order_pods_came_in() -> None:
    world, rng = places_worlds.world(5)
    counts = list(world.cluster.demand.plain.list_counts().items())
    found = []
    for _ in range(5):
        rng.shuffle(counts)
        cycle = Cycle(world.cluster, places_worlds.cycle_of(world.cluster)._policies, dict(counts))
        cycle.learn()
        found.append(cycle.learner.tables.places)
    for other in found[1:]:
        assert all(map(np.array_equal, found[0].list_values(), other.list_values()))
