"""The twin that makes room for a group, against the sets of units and the placements that tiny worlds have."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.oracles import making_room, together
from tests.oracles.making_room import NOBODY, Budget, Running, Unit, World
from tests.oracles.together import WHOLE, Card, Group, Member, Node
from tests.unit.together_worlds import draw_group, draw_member, draw_node, fits_on, list_placements


@st.composite
def draw_world(draw: st.DrawFn) -> World:
    """Draw nodes and units that run there; what has no room there does not run."""
    nodes = (draw(draw_node("n1")), draw(draw_node("n2")))
    left = {node.name: node for node in nodes}
    units = []
    for at in range(draw(st.integers(0, 4))):
        pods = []
        for n in range(draw(st.sampled_from([1, 1, 2]))):
            pod, name = draw(draw_member(f"p{at}.{n}")), draw(st.sampled_from(sorted(left)))
            ways = list(together.list_fits(pod, left[name]))
            if ways:
                cards, left[name] = draw(st.sampled_from(ways))
                one = Running(
                    pod=pod,
                    node=name,
                    cards=cards,
                    # No two are of one age: it is the order in which budgets are used up.
                    age=draw(st.integers(0, 2)) + (2 * at + n) / 8,
                    saves=draw(st.sampled_from([None, None, 0.5])),
                    is_leaving=draw(st.integers(0, 7)) == 0,
                    shuns=draw(st.sampled_from(["", "", "", "rack"])),
                )
                pods.append(one)
        if pods:
            minimum = draw(st.sampled_from([None, None, 1]))
            priority = draw(st.integers(0, 3))
            units.append(Unit(name=f"u{at}", pods=tuple(pods), priority=priority, minimum=minimum))
    names = st.sampled_from([f"p{at}.{n}" for at in range(4) for n in range(2)])
    budgets = draw(
        st.lists(
            st.builds(Budget, pods=st.frozensets(names), allowed=st.integers(0, 2)), max_size=2
        )
    )
    return World(nodes=nodes, units=tuple(units), budgets=tuple(budgets))


def is_room(group: Group, world: World, gone: frozenset[str]) -> bool:
    """Whether the group has a placement beside all pods that stay."""
    pods = [one for unit in world.units for one in unit.pods]
    stays = [one for one in pods if one.pod.name not in gone and not one.is_leaving]
    members = [*group.members, *(one.pod for one in stays)]
    fixed = {one.pod.name: (one.node, one.cards) for one in stays}
    labels = {node.name: node.labels for node in world.nodes}
    return any(
        all(fits_on(members, node, fixed | places) for node in world.nodes)
        and not any(
            one.shuns in labels[one.node]
            and labels[one.node][one.shuns] == labels[node].get(one.shuns)
            for one in stays
            for node, _ in places.values()
        )
        for places in list_placements(group, world.nodes)
        if len(places) >= group.minimum
    )


def is_allowed(unit: Unit, gone: frozenset[str]) -> bool:
    """Whether a unit may lose these pods and no others: none, pods beyond its minimum, or all."""
    stay = [one.pod.name for one in unit.pods if not one.is_leaving]
    left = [name for name in stay if name not in gone]
    return len(left) in (0, len(stay)) or (unit.minimum is not None and len(left) >= unit.minimum)


def is_split(unit: Unit, gone: frozenset[str]) -> bool:
    """Whether a unit is a group that loses pods and has no minimum any more."""
    names = {one.pod.name for one in unit.pods}
    left = [one for one in unit.pods if not one.is_leaving and one.pod.name not in gone]
    is_enough = unit.minimum is not None and len(left) >= unit.minimum
    return len(unit.pods) > 1 and bool(names & gone) and not is_enough


def count_violations(going: list[tuple[Unit, Running]], budgets: tuple[Budget, ...]) -> int:
    """Count the pods that violate a budget, in kube-scheduler's order."""
    used: Counter[int] = Counter()
    violated = 0
    for _, one in sorted(going, key=lambda pair: (pair[0].priority, pair[1].age), reverse=True):
        for at, budget in enumerate(budgets):
            used[at] += one.pod.name in budget.pods
            if one.pod.name in budget.pods and used[at] > budget.allowed:
                violated += 1
                break
    return violated


def count_gpus(pod: Member) -> float:
    return pod.cards * pod.cores / WHOLE if pod.cores else pod.cards


@given(group=draw_group(), priority=st.integers(0, 4), world=draw_world())
def test_the_cheapest_of_all_sets_that_make_room_goes(
    group: Group, priority: int, world: World
) -> None:
    may_go = [unit for unit in world.units if unit.priority < priority]
    pods = [(unit, one) for unit in may_go for one in unit.pods if not one.is_leaving]
    costs = []
    for chosen in range(2 ** len(pods)):
        going = [pair for at, pair in enumerate(pods) if chosen >> at & 1]
        gone = frozenset(one.pod.name for _, one in going)
        if not all(is_allowed(unit, gone) for unit in may_go) or not is_room(group, world, gone):
            continue
        violated = count_violations(going, world.budgets)
        highest = max([unit.priority for unit, _ in going] or [NOBODY])
        broken = len([unit for unit in may_go if is_split(unit, gone)])
        hours = sum(count_gpus(one.pod) * min(one.age, one.saves or one.age) for _, one in going)
        costs.append((violated, highest, broken, hours, len(going), tuple(sorted(gone))))
    room = making_room.make_room(group, priority, world)
    if room is None:
        assert not costs
        return
    assert room.cost == min(costs)
    assert room.victims == room.cost[-1]
    assert is_room(group, world, frozenset(room.victims))
    assert not any(set(cost[-1]) < set(room.victims) for cost in costs)


def run_unit(name: str, *places: tuple[str, int], priority: int = 0, hours: int = 0) -> Unit:
    """A unit with a pod of one whole card for each (node, card)."""
    pods = [
        Running(pod=ask_cards(f"{name}.{at}", 1), node=node, cards=(card,), age=hours)
        for at, (node, card) in enumerate(places)
    ]
    return Unit(name=name, pods=tuple(pods), priority=priority)


def ask_cards(name: str, cards: int) -> Member:
    return Member(name=name, requests={"cpu": 1}, cards=cards, memory=10, cores=WHOLE)


def make_node(name: str, cards: int = 2, cpu: int = 9) -> Node:
    rack = {"rack": f"r{name[1]}"}
    return Node(name=name, free={"cpu": cpu}, cards=(Card(memory=10),) * cards, labels=rack)


PAIR = Group(members=(ask_cards("m0", 1), ask_cards("m1", 1)), minimum=2, domain="rack")


def find_victims(units: list[Unit], group: Group = PAIR, *budgets: Budget) -> tuple[str, ...]:
    nodes = (make_node("n1"), make_node("n2"))
    room = making_room.make_room(group, 9, World(nodes=nodes, units=tuple(units), budgets=budgets))
    assert room is not None
    return room.victims


def test_a_rack_is_emptied_rather_than_a_card_in_each() -> None:
    """The cheapest two of all are of no use in different racks."""
    units = [
        run_unit("a", ("n1", 0), hours=1),
        run_unit("b", ("n1", 1), hours=5),
        run_unit("c", ("n2", 0), hours=1),
        run_unit("d", ("n2", 1), hours=6),
    ]
    assert find_victims(units) == ("a.0", "b.0")


def test_a_blocker_without_cards_is_found() -> None:
    blocker = Unit(
        name="cpu", pods=(Running(pod=Member(name="c", requests={"cpu": 8}), node="n1"),)
    )
    others = [run_unit("x", ("n2", 0), hours=1), run_unit("y", ("n2", 1), hours=1)]
    assert find_victims([blocker, *others]) == ("c",)


def test_the_cost_is_compared_in_its_order() -> None:
    """Of two ways to make room, one is worse in one entry and better in the next."""
    one = Group(members=(ask_cards("m0", 1),), minimum=1)
    stay = [run_unit("x", ("n1", 1), priority=9), run_unit("y", ("n2", 1), priority=9)]
    budget = Budget(pods=frozenset({"a.0"}), allowed=0)
    other = Running(pod=Member(name="h", requests={}), node="n2")

    def run_a(priority: int = 0, hours: int = 0, name: str = "a") -> Unit:
        return run_unit(name, ("n1", 0), priority=priority, hours=hours)

    def run_b(priority: int = 0) -> Unit:
        return run_unit("b", ("n2", 0), priority=priority)

    gang = Unit(name="g", pods=(*run_b().pods, other))
    # Beside it the second node has no CPU for the group, even if b goes.
    heavy = Unit(name="c", pods=(Running(pod=Member(name="c", requests={"cpu": 8}), node="n2"),))
    assert find_victims([*stay, run_a(), run_b(priority=8)], one, budget) == ("b.0",)
    assert find_victims([*stay, run_a(priority=1), gang], one) == ("b.0", "h")
    assert find_victims([*stay, run_a(hours=7), gang], one) == ("a.0",)
    assert find_victims([*stay, run_a(hours=1), run_b(), heavy], one) == ("b.0", "c")
    assert find_victims([*stay, run_a(name="z"), run_b(), heavy], one) == ("z.0",)
    assert find_victims([*stay, run_a(name="z"), run_b()], one) == ("b.0",)


def test_nobody_goes_if_the_group_fits_or_nothing_helps() -> None:
    nodes = (make_node("n1"), make_node("n2"))
    unit = run_unit("a", ("n1", 0))
    room = making_room.make_room(PAIR, 9, World(nodes=nodes, units=(unit,)))
    assert room is not None
    assert room.cost == (0, NOBODY, 0, 0, 0, ())
    assert {node for node, _ in room.places.values()} == {"n2"}
    small = (make_node("n1", cards=1), make_node("n2", cards=1))
    assert making_room.make_room(PAIR, 9, World(nodes=small, units=(unit,))) is None


def test_who_has_the_same_priority_stays() -> None:
    nodes = (make_node("n1"),)
    units = (run_unit("a", ("n1", 0), priority=5),)
    world = World(nodes=nodes, units=units)
    assert making_room.make_room(PAIR, 5, world) is None
    assert making_room.make_room(PAIR, 6, world) is not None
