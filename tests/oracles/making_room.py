"""Whose place a group takes at the least cost: every set of units that may go is tried, the cheapest first.

For worlds of up to five nodes and eight units. A unit is what goes together: a pod, or a gang. It may go for a group
of a higher priority. A set of units makes room if the group then has its minimum of members placed at once; who
wants all members placed says so by the minimum. The cost of a set is compared entry by entry:

1. how many pods more go than budgets allow, over all budgets;
2. the highest priority among those who go;
3. how many groups are broken: units of several pods that go;
4. how many GPU-hours of work are lost;
5. how many pods go;
6. the names of the units, in their order.

Every entry grows, or stays, when a unit is added, and the number of pods grows: in the cheapest set nobody goes in
vain.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from tests.oracles import together
from tests.oracles.together import Group, Member, Node, Places


@dataclass(frozen=True, kw_only=True)
class Running:
    """A pod on its node, with the indices of its cards there."""

    pod: Member
    node: str
    cards: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Unit:
    name: str
    pods: tuple[Running, ...]
    priority: int = 0
    hours: int = 0


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How many of these pods may go."""

    pods: frozenset[str]
    allowed: int


@dataclass(frozen=True, kw_only=True)
class World:
    """``nodes`` have free what is free when all units have gone."""

    nodes: tuple[Node, ...]
    units: tuple[Unit, ...]
    budgets: tuple[Budget, ...] = ()


Cost = tuple[int, int, int, int, int, tuple[str, ...]]
# Below all priorities there are.
NOBODY = -(2**31) - 1


@dataclass(frozen=True, kw_only=True)
class Room:
    """Who goes, at what cost, and one way to place the group then."""

    victims: tuple[str, ...] = ()
    cost: Cost = (0, NOBODY, 0, 0, 0, ())
    places: Places = field(default_factory=dict)


def make_room(group: Group, priority: int, world: World) -> Room | None:
    """Find the cheapest units to evict for a group; none if it has no place even without all that may go."""
    sets = list(list_sets(world, priority))
    if not together.place_group(group, list_left(world, sets[-1])).fits:
        return None
    for units in sorted(sets, key=lambda units: price(units, world.budgets)):
        found = together.place_group(group, list_left(world, units))
        if found.fits:
            cost = price(units, world.budgets)
            return Room(victims=cost[-1], cost=cost, places=found.places)
    raise AssertionError("the last set makes room")


def list_sets(world: World, priority: int) -> Iterator[tuple[Unit, ...]]:
    """Yield all sets of units that may go, from the empty one to the one of all."""
    may_go = [unit for unit in world.units if unit.priority < priority]
    for n in range(len(may_go) + 1):
        yield from combinations(may_go, n)


def price(units: Sequence[Unit], budgets: Sequence[Budget]) -> Cost:
    """Say what it costs if these units go."""
    pods = [one.pod.name for unit in units for one in unit.pods]
    over = [sum(name in one.pods for name in pods) - one.allowed for one in budgets]
    return (
        sum(each for each in over if each > 0),
        max((unit.priority for unit in units), default=NOBODY),
        sum(len(unit.pods) > 1 for unit in units),
        sum(unit.hours for unit in units),
        len(pods),
        tuple(sorted(unit.name for unit in units)),
    )


def list_left(world: World, gone: Sequence[Unit]) -> list[Node]:
    """List the nodes with what the units leave free that have not gone."""
    nodes: Mapping[str, Node] = {node.name: node for node in world.nodes}
    for unit in world.units:
        for one in () if unit in gone else unit.pods:
            nodes = {**nodes, one.node: charge(nodes[one.node], one)}
    return list(nodes.values())


def charge(node: Node, one: Running) -> Node:
    """Return a node beside a pod that runs there."""
    left = {key: node.free.get(key, 0) - each for key, each in one.pod.requests.items()}
    cards = list(node.cards)
    for row in one.cards:
        cards[row] = together.take(cards[row], one.pod)
    return replace(node, free={**node.free, **left}, cards=tuple(cards))
