"""Scores that look at cards, against their twins: nodes, points and cards in random clusters."""

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import pytest

from scheduler.api import names
from scheduler.api.cards import list_uses
from scheduler.api.door.decisions import Bind
from scheduler.cycle.schedule import Cycle
from tests import slices
from tests.model.clusters import HEALTHY, Kit
from tests.oracles import demand, fleet, keel, published
from tests.unit import twin_worlds
from tests.unit.test_demand_twin import WHOLE, asking, one_node
from tests.unit.twin_worlds import World

pytestmark = pytest.mark.many

PUBLISHED = tuple(mode for mode in twin_worlds.MODES if mode not in {"keel", "fgd"})
ANY = Kit(even=False)
# What is left out here is tried in test_twin_corners.py.
KEEL = Kit()
WITHOUT_WHOLE = {name: weight for name, weight in HEALTHY.items() if name != "whole"}
FGD = Kit(taints=0, families=WITHOUT_WHOLE, even=False)


class Judge:
    """What the twins say of one world."""

    def __init__(self, world: World, cycle: Cycle) -> None:
        self.world, self.weight = world, 5
        nodes = list(world.nodes.values())
        known, _ = twin_worlds.counts(world)
        self.tables = twin_worlds.tables(world, cycle.learner.tables)
        self.typical = demand.fgd_typical(known, demand.mean_card(nodes))
        self.most = published.largest(nodes)

    def choices(
        self, mode: str, node: fleet.Node, pod: fleet.Pod
    ) -> list[tuple[float, fleet.Charge]]:
        """Costs (keel) or scores of all choices of cards, the best first."""
        if mode == "keel":
            return keel.judged(node, pod, self.tables)
        return list(published.scored(mode, node, pod, self.most, self.typical))

    def agrees(self, mode: str, best: float, points: int) -> bool:
        """Whether the scheduler's points, by their weight, are those of a cost or a score."""
        if mode != "keel":
            return points == int(best) * 1000 * self.weight
        off = abs(points - keel.points(best) * self.weight)
        return off <= (keel.POINTS_A_STEP * self.weight if keel.is_at_a_step(best) else 0)


def chosen(bind: Bind) -> fleet.Charge:
    """What a pod was given, by card."""
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for use in list_uses(bind.devices):
        held = found[use.uuid]
        held[:] = held[0] + 1, held[1] + use.mem_mib, held[2] + use.cores
    return {uuid: (held[0], held[1], held[2]) for uuid, held in found.items()}


def first_of_the_best(world: World, pod: fleet.Pod, parts: Mapping[str, int]) -> str:
    """The highest part, ties to the first name; pods without GPU keep off GPUs while they can."""

    def order(name: str) -> tuple[bool, int, str]:
        return pod.gpu is None and world.nodes[name].has_gpu, -parts[name], name

    return min(parts, key=order)


def try_one(world: World, cycle: Cycle, judge: Judge, pod: fleet.Pod, mode: str) -> Bind | None:
    """Score and place one pod, and compare all of it."""
    uid = world.see(pod, mode)
    record = world.cluster.pods[uid]
    shape = cycle.get_shape(record)
    assert shape is not None
    cycle.boards.refresh(shape)
    parts = {}
    for name, node in world.nodes.items():
        part = int(shape.board.part[world.cluster.nodes.find_row(name)])
        judged = judge.choices(mode, node, pod)
        assert (part >= 0) == bool(judged), (name, pod)
        # This twin of keel is for nodes with GPUs. Others are judged as a whole, see test_places_twin.py.
        if judged and (mode != "keel" or node.has_gpu):
            points, second = divmod(part, shape.ask.prefers.mode.unit)
            assert judge.agrees(mode, judged[0][0], points), (node, pod, part, judged[0])
            # Of cards there is no second objective.
            assert not second
        if judged:
            parts[name] = part
    outcome = cycle.schedule([record], explain=False)
    if not parts:
        assert not outcome.binds
        world.gone(uid, pod)
        return None
    (bind,) = outcome.binds
    assert bind.node == first_of_the_best(world, pod, parts)
    node = world.nodes[bind.node]
    charge, judged = chosen(bind), judge.choices(mode, node, pod)
    if not any(charge == one for cost, one in judged if abs(cost - judged[0][0]) < 1e-9):
        raise AssertionError(f"{charge}, not {judged[0]}: {node} {pod}")
    if mode == "keel":
        assert charge == judged[0][1]
    world.nodes[bind.node] = fleet.placed(node, pod, charge)
    return bind


def play(seed: int, kit: Kit, mode: str, pods: int = 12) -> Counter[str]:
    """Some pods one after the other in the world of a seed; how often what was met."""
    rng = random.Random(seed)
    past = rng.choice([0, 450])
    world = twin_worlds.world(rng, kit, 12, load=50, past=past, churn=seed % 2 == 0)
    cycle = twin_worlds.cycle_of(world)
    judge = Judge(world, cycle)
    seen = Counter(departures=judge.tables.departures > 0, learnt=bool(judge.tables.price))
    for _ in range(pods):
        pod = twin_worlds.drawn(rng, kit)
        bind = try_one(world, cycle, judge, pod, mode)
        seen["placed" if bind else "held"] += 1
        seen["share"] += bool(bind and pod.size_class == 0)
        seen["walk"] += bool(bind and pod.walks)
        seen["without GPU"] += bool(bind and pod.gpu is None)
    return seen


def several(seeds: Sequence[int], kit: Kit, mode: str) -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed in seeds:
        seen += play(seed, kit, mode)
    return seen


def test_keel_scores_and_places_as_its_twin() -> None:
    seen = several(slices.pick_part(range(60)), KEEL, "keel")
    assert min(
        seen[what] for what in ("departures", "learnt", "walk", "without GPU", "held")
    ) > slices.scale_bound(5)
    assert seen["share"] > slices.scale_bound(100)


def test_fgd_scores_and_places_as_its_twin() -> None:
    seen = several(slices.pick_part(range(40)), FGD, "fgd")
    assert min(
        seen[what] for what in ("learnt", "walk", "without GPU", "held")
    ) > slices.scale_bound(5)


@pytest.mark.parametrize("mode", PUBLISHED)
def test_a_published_policy_scores_and_places_as_its_twin(mode: str) -> None:
    seen = several(slices.pick_part(range(25)), ANY, mode)
    assert min(
        seen[what] for what in ("share", "walk", "without GPU", "held")
    ) > slices.scale_bound(3)


@pytest.mark.parametrize("wish", ["", "T4"])
def test_host_memory_plays_no_part_in_fgds_measure(wish: str) -> None:
    world = one_node(cards=1)
    typical = asking(WHOLE, memory="128Gi", annotations={names.USE_TYPE: wish})
    for _ in range(300):
        world.see(typical)
    assert twin_worlds.parts(world, asking(WHOLE), "fgd") == {"node": 5 * 1000 * 50}
