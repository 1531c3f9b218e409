"""Whose place a group takes at the least cost: every set of pods that may go is tried, the cheapest first.

For worlds of up to five nodes and eight pods. A unit is what belongs together: a pod, or a gang. It may go for a group
of a higher priority. Of an elastic gang any pods beyond its minimum may go one by one; otherwise all of a unit go, or
none. Who is being deleted leaves in any case: that makes room and costs nothing. A set of pods makes room if the group
then has its minimum of members placed at once; who wants all members placed says so by the minimum. The cost of a set
is compared entry by entry:

1. how many pods go although a budget forbids it: pods are asked in the order of their priority, then of their age, and
   each uses up one of every budget that it is under, until one of these allows nobody any more. Then the pod counts, and
   uses up no further budget;
2. the highest priority among those who go;
3. how many groups are broken: units of several pods that lose more than pods beyond their minimum;
4. how many GPU-hours of work are lost: for each card, or part of a card, the time since the start, or since the work
   was saved the last time at the latest;
5. how many pods go;
6. their names, in their order.

Every entry grows, or stays, when a unit is added, and the number of pods grows: in the cheapest set nobody goes in
vain.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product

from tests.oracles import together
from tests.oracles.together import WHOLE, Group, Member, Node, Places


@dataclass(frozen=True, kw_only=True)
class Running:
    """A pod on its node, with the indices of its cards there.

    Attributes:
        age: for how many hours it runs.
        saves: after how many hours at the latest it saves its work, if it does.
        is_leaving: it is being deleted.
        shuns: a label: no pod of the group may be where the value of this label is that of the node of this pod.
    """

    pod: Member
    node: str
    cards: tuple[int, ...] = ()
    age: float = 0
    saves: float | None = None
    is_leaving: bool = False
    shuns: str = ""


@dataclass(frozen=True, kw_only=True)
class Unit:
    """``minimum`` is that of an elastic gang; all other units go as a whole."""

    name: str
    pods: tuple[Running, ...]
    priority: int = 0
    minimum: int | None = None


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


Cost = tuple[int, int, int, float, int, tuple[str, ...]]
# Below all priorities there are.
NOBODY = -(2**31) - 1


@dataclass(frozen=True, kw_only=True)
class Room:
    """Which pods go, at what cost, and one way to place the group then."""

    victims: tuple[str, ...] = ()
    cost: Cost = (0, NOBODY, 0, 0, 0, ())
    places: Places = field(default_factory=dict)


def make_room(group: Group, priority: int, world: World) -> Room | None:
    """Find the cheapest pods to evict for a group; none if it has no place even without all that may go."""
    for cost, gone in sorted((price(gone, world), gone) for gone in list_sets(world, priority)):
        found = together.place_group(group, list_left(world, gone | list_leaving(world)))
        if found.fits:
            return Room(victims=cost[-1], cost=cost, places=found.places)
    return None


def list_sets(world: World, priority: int) -> Iterator[frozenset[str]]:
    """Yield the names of the pods of each set that may go, nobody's among them."""
    choices = [list_choices(unit) for unit in world.units if unit.priority < priority]
    for chosen in product(*choices):
        yield frozenset[str]().union(*chosen)


def list_choices(unit: Unit) -> list[frozenset[str]]:
    """List the sets of pods of a unit that may go."""
    names = list_staying(unit)
    sets = [combinations(names, n) for n in range(count_extras(unit) + 1)]
    return list({frozenset(names), *(frozenset(one) for some in sets for one in some)})


def count_extras(unit: Unit) -> int:
    """Count the pods of a unit that may go one by one."""
    return 0 if unit.minimum is None else max(0, len(list_staying(unit)) - unit.minimum)


def list_staying(unit: Unit) -> list[str]:
    return [one.pod.name for one in unit.pods if not one.is_leaving]


def list_leaving(world: World) -> frozenset[str]:
    return frozenset(one.pod.name for unit in world.units for one in unit.pods if one.is_leaving)


def price(gone: frozenset[str], world: World) -> Cost:
    """Say what it costs if these pods go."""
    pods = [(unit, one) for unit in world.units for one in unit.pods if one.pod.name in gone]
    return (
        count_forbidden(pods, world.budgets),
        max((unit.priority for unit, _ in pods), default=NOBODY),
        sum(is_broken(unit, gone) for unit in world.units),
        sum(count_hours(one) for _, one in pods),
        len(pods),
        tuple(sorted(gone)),
    )


def count_forbidden(pods: Sequence[tuple[Unit, Running]], budgets: Sequence[Budget]) -> int:
    """Count the pods that go although a budget forbids it."""
    left = [budget.allowed for budget in budgets]
    n_forbidden = 0
    for _, one in sorted(pods, key=lambda pair: (-pair[0].priority, -pair[1].age)):
        for at, budget in enumerate(budgets):
            if one.pod.name not in budget.pods:
                continue
            left[at] -= 1
            if left[at] < 0:
                n_forbidden += 1
                break
    return n_forbidden


def is_broken(unit: Unit, gone: frozenset[str]) -> bool:
    """Whether a unit is a group that loses more than pods beyond its minimum."""
    n_gone = sum(one.pod.name in gone for one in unit.pods)
    return len(unit.pods) > 1 and n_gone > count_extras(unit)


def count_hours(one: Running) -> float:
    """Count the GPU-hours of work that are lost with a pod."""
    of_a_card = one.pod.cores / WHOLE if one.pod.cores else 1
    n_gpus = one.pod.requests.get("gpu", 0) + one.pod.cards * of_a_card
    return n_gpus * (one.age if one.saves is None else min(one.age, one.saves))


def list_left(world: World, gone: frozenset[str]) -> list[Node]:
    """List the nodes on which the group may be, with what the pods leave free that have not gone."""
    nodes: Mapping[str, Node] = {node.name: node for node in world.nodes}
    stay = [one for unit in world.units for one in unit.pods if one.pod.name not in gone]
    for one in stay:
        nodes = {**nodes, one.node: charge(nodes[one.node], one)}
    shunned = [(one.shuns, nodes[one.node].labels.get(one.shuns)) for one in stay if one.shuns]
    return [
        node
        for node in nodes.values()
        if not any(value is not None and node.labels.get(key) == value for key, value in shunned)
    ]


def charge(node: Node, one: Running) -> Node:
    """Return a node beside a pod that runs there."""
    left = {key: node.free.get(key, 0) - each for key, each in one.pod.requests.items()}
    cards = list(node.cards)
    for row in one.cards:
        cards[row] = together.take(cards[row], one.pod)
    return replace(node, free={**node.free, **left}, cards=tuple(cards))
