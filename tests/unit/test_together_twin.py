"""The twin that places a group by trying everything, against a list of all placements there are in tiny worlds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles import together
from tests.oracles.together import WHOLE, Apart, Card, Group, Member, Node, Parted
from tests.unit.together_worlds import (
    draw_group,
    draw_node,
    draw_parted,
    keeps_parts,
    list_placements,
)


@given(group=draw_group(is_near=True), nodes=st.tuples(draw_node("n1"), draw_node("n2")))
def test_as_many_are_placed_as_in_the_best_of_all_placements(
    group: Group, nodes: tuple[Node, Node]
) -> None:
    placements = list(list_placements(group, nodes))
    found = together.place_group(group, nodes)
    assert found.most == max(len(one) for one in placements) == len(found.places)
    assert found.fits == any(len(one) >= group.minimum for one in placements)
    assert found.places in placements


@given(group=draw_parted(), nodes=st.tuples(draw_node("n1"), draw_node("n2")))
def test_a_group_of_parts_fits_if_a_placement_has_the_minimum_of_each(
    group: Parted, nodes: tuple[Node, Node]
) -> None:
    members = tuple(one for part in group.parts for one in part.members)
    placements = list_placements(Group(members=members, minimum=1, near=group.near), nodes)
    expected = any(keeps_parts(group, nodes, one) for one in placements)
    assert together.fits_parted(group, nodes) == expected


def whole(name: str, cards: int) -> Member:
    return Member(name=name, requests={"cpu": 1}, cards=cards, memory=10, cores=WHOLE)


CARD = Card(memory=10)


@pytest.mark.parametrize(
    ("asked", "has", "most"),
    [
        pytest.param(
            [1, 2, 2], [2, 3], 3, id="the first node is the wrong one for the first member"
        ),
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


@pytest.mark.parametrize(
    ("card", "asked", "most"),
    [
        pytest.param(Card(memory=10, sharers=3), [(5, 0), (5, 0)], 2, id="memory is enough"),
        pytest.param(Card(memory=10, sharers=3), [(6, 0), (5, 0)], 1, id="memory is short"),
        pytest.param(Card(memory=10, sharers=3), [(1, 60), (1, 40)], 2, id="cores are enough"),
        pytest.param(Card(memory=10, sharers=3), [(1, 60), (1, 41)], 1, id="cores are short"),
        pytest.param(Card(memory=10, sharers=3), [(1, 0)] * 4, 3, id="sharers are short"),
        pytest.param(Card(memory=10, sharers=3), [(1, WHOLE), (1, 0)], 1, id="whole is alone"),
        pytest.param(Card(memory=10, is_used=True), [(1, WHOLE)], 0, id="used is not whole"),
        pytest.param(Card(memory=10, is_used=True), [(1, 99)], 1, id="used is shared"),
    ],
)
def test_a_card_takes_what_is_left_of_it(
    card: Card, asked: list[tuple[int, int]], most: int
) -> None:
    members = tuple(
        Member(name=f"m{at}", requests={}, cards=1, memory=memory, cores=cores)
        for at, (memory, cores) in enumerate(asked)
    )
    nodes = [Node(name="n", free={}, cards=(card,))]
    assert together.place_group(Group(members=members, minimum=1), nodes).most == most


def test_of_domains_that_take_as_many_the_first_by_name_is_taken() -> None:
    nodes = [
        Node(name=name, free={"cpu": 9}, cards=(CARD,) * 2, labels={"rack": rack})
        for name, rack in (("n1", "r3"), ("n2", "r2"), ("n3", "r1"))
    ]
    group = Group(members=(whole("m0", 2), whole("m1", 1)), minimum=1, domain="rack")
    assert together.place_group(group, nodes).places == {"m0": ("n3", (0, 1))}


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
