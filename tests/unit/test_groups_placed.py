"""Groups are placed whenever they can be placed: a slow twin tries every node and every set of cards for every member."""

import random
from dataclasses import replace
from typing import Any

import pytest

from scheduler.api import wire
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.state import checks
from tests import make, slices
from tests.oracles import together
from tests.oracles.together import Card, Group, Member, Node

# Levels that Evenkeel knows without being told. Not all nodes have a rack.
_BLOCK, _RACK = "topology.kubernetes.io/block", "topology.kubernetes.io/rack"


def make_world(seed: int) -> tuple[Group, list[Node]]:
    """A group of up to six members, and up to five nodes with cards, which are about as large as the group."""
    rng = random.Random(seed)
    nodes = []
    for i in range(rng.randint(1, 5)):
        sizes = [rng.choice((8000, 12000, 16000)) for _ in range(rng.randint(0, 3))]
        cards = tuple(Card(memory=size, cores=100, sharers=4) for size in sizes)
        labels = {_BLOCK: rng.choice("xy")}
        if rng.random() < 0.6:
            labels[_RACK] = rng.choice("12")
        nodes.append(
            Node(name=f"n{i}", free={"cpu": rng.randint(2, 8)}, cards=cards, labels=labels)
        )
    members: list[Member] = []
    is_alike = rng.random() < 0.3
    for i in range(rng.randint(2, 6)):
        if members and is_alike:
            members.append(replace(members[0], name=f"m{i}"))
            continue
        n_cards = rng.choice((0, 1, 1, 2))
        memory, cores = rng.choice((2000, 4000, 6000, 8000)), rng.choice((0, 30, 50, 100))
        members.append(
            Member(
                name=f"m{i}",
                requests={"cpu": rng.randint(1, 4)},
                cards=n_cards,
                memory=memory if n_cards else 0,
                cores=cores if n_cards else 0,
            )
        )
    minimum = rng.choice((len(members), len(members), max(1, len(members) - 1)))
    return Group(members=tuple(members), minimum=minimum, domain=rng.choice(("", _BLOCK))), nodes


def make_node(node: Node) -> wire.Node:
    cards = [
        make.card(uuid=f"{node.name}-{i}", index=i, mib=one.memory, sharers=one.sharers)
        for i, one in enumerate(node.cards)
    ]
    figures: dict[str, Any] = {
        "name": node.name,
        "cpu": node.free["cpu"],
        "labels": dict(node.labels),
    }
    return make.hami_node(cards=cards, **figures) if cards else make.node(**figures)


def place(group: Group, nodes: list[Node]) -> list[str]:
    """Place a group by the engine; return the nodes of its members."""
    engine = Engine(Config())
    for node in nodes:
        engine.handle(events.Seen(make_node(node)), 0.0)
    made = make.pod_group("gang", group.minimum, topology=group.domain)
    engine.handle(events.Seen(made), 0.0)
    for member in group.members:
        of_cards: dict[str, Any] = {
            "gpu": member.cards,
            "gpumem": member.memory,
            "gpucores": member.cores,
        }
        pod = make.pod(
            name=member.name, cpu=member.requests["cpu"], **of_cards if member.cards else {}
        )
        engine.handle(events.Seen(make.member(pod)), 0.0)
    binds = engine.decide(0.0, Unlimited()).binds
    checks.verify(engine._cluster)
    # Nothing is charged that is not bound.
    charged = {pod.uid for pod in engine._cluster.pods.values() if pod.node}
    assert charged == {bind.uid for bind in binds}
    return [bind.node for bind in binds]


@pytest.mark.parametrize("seed", slices.pick_part(tuple(range(600))))
def test_a_group_is_placed_where_the_twin_finds_a_way(seed: int) -> None:
    group, nodes = make_world(seed)
    twin = together.place_group(group, nodes)
    placed = place(group, nodes)
    assert bool(placed) == twin.fits
    if placed:
        assert group.minimum <= len(placed) <= twin.most
        blocks = {node.name: node.labels[_BLOCK] for node in nodes}
        assert not group.domain or len({blocks[name] for name in placed}) == 1


def test_the_worlds_are_of_both_kinds() -> None:
    fits = [together.place_group(*make_world(seed)).fits for seed in range(100)]
    assert 25 < sum(fits) < 75
