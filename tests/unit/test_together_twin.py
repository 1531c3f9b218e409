"""The twin that places a group by trying everything, against a list of all placements there are in tiny worlds."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles import together
from tests.oracles.together import WHOLE, Apart, Card, Group, Member, Node, Places


def list_placements(group: Group, nodes: Sequence[Node]) -> Iterator[Places]:
    """Yield all placements that keep the rules, each judged as a whole."""
    choices = []
    for member in group.members:
        ways: list[tuple[str, tuple[int, ...]] | None] = [None]
        for node in nodes:
            ways += [(node.name, c) for c in combinations(range(len(node.cards)), member.cards)]
        choices.append(ways)
    for picked in product(*choices):
        names = [one.name for one in group.members]
        places = {name: way for name, way in zip(names, picked, strict=True) if way is not None}
        if keeps_rules(group, nodes, places):
            yield places


def keeps_rules(group: Group, nodes: Sequence[Node], places: Places) -> bool:
    where = {name: node for name, (node, _) in places.items()}
    labels = {node.name: node.labels for node in nodes}
    if group.domain:
        values = {labels[node].get(group.domain) for node in where.values()}
        if None in values or len(values) > 1:
            return False
    for rule in group.apart:
        met = [labels[where[one]].get(rule.label) for one in sorted(rule.members & set(where))]
        met = [value for value in met if value is not None]
        if len(met) != len(set(met)):
            return False
    return all(fits_on(group, node, places) for node in nodes)


def fits_on(group: Group, node: Node, places: Places) -> bool:
    there = [
        one for one in group.members if one.name in places and places[one.name][0] == node.name
    ]
    total: Counter[str] = Counter()
    for one in there:
        total.update(one.requests)
    if any(each > node.free.get(key, 0) for key, each in total.items() if each):
        return False
    for row, card in enumerate(node.cards):
        on = [one for one in there if row in places[one.name][1]]
        if len(on) > card.sharers:
            return False
        if sum(one.memory for one in on) > card.memory or sum(one.cores for one in on) > card.cores:
            return False
        if any(one.cores == WHOLE for one in on) and (card.is_used or len(on) > 1):
            return False
    return True


@st.composite
def draw_node(draw: st.DrawFn, name: str) -> Node:
    cards = draw(
        st.lists(
            st.builds(
                Card,
                memory=st.integers(0, 6),
                cores=st.sampled_from([0, 50, 100, 100]),
                sharers=st.integers(0, 3),
                is_used=st.booleans(),
            ),
            max_size=2,
        )
    )
    labels = {
        label: draw(st.sampled_from("ab")) for label in ("rack", "zone") if draw(st.integers(0, 3))
    }
    free = {"cpu": draw(st.integers(-1, 6)), "memory": draw(st.integers(0, 6))}
    return Node(name=name, free=free, cards=tuple(cards), labels=labels)


@st.composite
def draw_group(draw: st.DrawFn) -> Group:
    members = []
    for n in range(draw(st.integers(1, 3))):
        requests = {"cpu": draw(st.integers(0, 4)), "memory": draw(st.integers(0, 3))}
        cards = draw(st.integers(0, 2))
        memory, cores = draw(st.integers(0, 4)), draw(st.sampled_from([0, 0, 50, 100]))
        members.append(
            Member(name=f"m{n}", requests=requests, cards=cards, memory=memory, cores=cores)
        )
    names = [one.name for one in members]
    apart = draw(
        st.lists(
            st.builds(
                Apart,
                members=st.frozensets(st.sampled_from(names)),
                label=st.sampled_from(["rack", "zone"]),
            ),
            max_size=2,
        )
    )
    return Group(
        members=tuple(members),
        minimum=draw(st.integers(1, len(members))),
        domain=draw(st.sampled_from(["", "", "rack", "zone"])),
        apart=tuple(apart),
    )


@given(group=draw_group(), nodes=st.tuples(draw_node("n1"), draw_node("n2")))
def test_as_many_are_placed_as_in_the_best_of_all_placements(
    group: Group, nodes: tuple[Node, Node]
) -> None:
    placements = list(list_placements(group, nodes))
    found = together.place_group(group, nodes)
    assert found.most == max(len(one) for one in placements) == len(found.places)
    assert found.fits == any(len(one) >= group.minimum for one in placements)
    assert found.places in placements


def whole(name: str, cards: int) -> Member:
    return Member(name=name, requests={"cpu": 1}, cards=cards, memory=10, cores=WHOLE)


CARD = Card(memory=10)


@pytest.mark.parametrize(
    ("asked", "has", "most"),
    [
        pytest.param([2, 2, 1, 1], [3, 3], 4, id="a pair is not put where it splits the rest"),
        pytest.param([3, 3, 2, 2], [5, 5], 4, id="unlike members fill two nodes"),
        pytest.param([3, 3, 3, 1], [5, 5], 3, id="cards on two nodes are no node's cards"),
        pytest.param([2] * 6, [4, 4, 4], 6, id="six members on three nodes"),
        pytest.param([2] * 6, [4, 4, 3, 1], 5, id="six members, one card in the wrong place"),
    ],
)
def test_whole_cards_are_packed(asked: list[int], has: list[int], most: int) -> None:
    nodes = [
        Node(name=f"n{at}", free={"cpu": 9}, cards=(CARD,) * cards) for at, cards in enumerate(has)
    ]
    members = tuple(whole(f"m{at}", cards) for at, cards in enumerate(asked))
    found = together.place_group(Group(members=members, minimum=len(members)), nodes)
    assert (found.most, found.fits) == (most, most == len(members))


def test_six_members_on_six_nodes_of_eight_cards_do_not_take_for_ever() -> None:
    """Without the states that were seen before, these are 10**15 placements."""
    cards = tuple(Card(memory=10 + row, sharers=2) for row in range(4))
    nodes = [
        Node(name=f"n{at}", free={"cpu": 3}, cards=cards, labels={"rack": f"r{at // 2}"})
        for at in range(6)
    ]
    members = tuple(
        Member(name=f"m{at}", requests={"cpu": 2}, cards=2, memory=6, cores=60) for at in range(6)
    )
    apart = (Apart(members=frozenset(f"m{at}" for at in range(4)), label="rack"),)
    found = together.place_group(Group(members=members, minimum=5, apart=apart), nodes)
    assert (found.most, found.fits) == (5, True)
