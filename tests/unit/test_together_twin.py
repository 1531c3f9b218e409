"""The twin that places a group by trying everything, against a list of all placements there are in tiny worlds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles import together
from tests.oracles.together import WHOLE, Apart, Card, Group, Member, Node
from tests.unit.together_worlds import draw_group, draw_node, list_placements


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
