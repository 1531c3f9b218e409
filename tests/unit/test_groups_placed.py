"""Groups are placed whenever they can be placed: a slow twin tries every node and every set of cards for every member."""

import random
from dataclasses import replace
from typing import Any

import pytest

from scheduler.api import wire
from scheduler.api.door import events
from scheduler.api.groups.objects import CompositePodGroup
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.state import checks
from tests import make, slices
from tests.oracles import together
from tests.oracles.together import Card, Group, Member, Node, Parted

# Levels that Evenkeel knows without being told. Not all nodes have a rack.
_BLOCK, _RACK = "topology.kubernetes.io/block", "topology.kubernetes.io/rack"


def make_world(seed: int) -> tuple[Group, list[Node]]:
    """A group of up to six members, and up to five nodes with cards, which are about as large as the group."""
    rng = random.Random(seed)
    nodes = make_nodes(rng, rng.randint(1, 5))
    members: list[Member] = []
    is_alike = rng.random() < 0.3
    for i in range(rng.randint(2, 6)):
        if members and is_alike:
            members.append(replace(members[0], name=f"m{i}"))
            continue
        members.append(make_member(rng, f"m{i}"))
    minimum = rng.choice((len(members), len(members), max(1, len(members) - 1)))
    return Group(members=tuple(members), minimum=minimum, domain=rng.choice(("", _BLOCK))), nodes


def make_nodes(rng: random.Random, n: int) -> list[Node]:
    nodes = []
    for i in range(n):
        sizes = [rng.choice((8000, 12000, 16000)) for _ in range(rng.randint(0, 3))]
        cards = tuple(Card(memory=size, cores=100, sharers=4) for size in sizes)
        labels = {_BLOCK: rng.choice("xy")}
        if rng.random() < 0.6:
            labels[_RACK] = rng.choice("12")
        nodes.append(
            Node(name=f"n{i}", free={"cpu": rng.randint(2, 8)}, cards=cards, labels=labels)
        )
    return nodes


def make_member(rng: random.Random, name: str) -> Member:
    n_cards = rng.choice((0, 1, 1, 2))
    memory, cores = rng.choice((2000, 4000, 6000, 8000)), rng.choice((0, 30, 50, 100))
    return Member(
        name=name,
        requests={"cpu": rng.randint(1, 4)},
        cards=n_cards,
        memory=memory if n_cards else 0,
        cores=cores if n_cards else 0,
    )


def make_parted_world(seed: int) -> tuple[Parted, list[Node]]:
    """A group of two or three parts with up to six members, and up to six nodes."""
    rng = random.Random(seed)
    nodes = make_nodes(rng, rng.randint(2, 6))
    members: list[Member] = []
    for i in range(rng.randint(2, 6)):
        one = make_member(rng, f"m{i}")
        if members and rng.random() < 0.3:
            one = replace(members[-1], name=one.name)
        elif rng.random() < 0.2:
            one = replace(one, labels={_BLOCK: rng.choice("xy")})
        members.append(one)
    cuts = sorted(rng.sample(range(1, len(members)), min(rng.randint(1, 2), len(members) - 1)))
    parts = []
    for start, end in zip((0, *cuts), (*cuts, len(members)), strict=True):
        mine = tuple(members[start:end])
        minimum = rng.choice((len(mine), len(mine), rng.randint(1, len(mine))))
        domain = rng.choice(("", "", _RACK, _BLOCK))
        parts.append(Group(members=mine, minimum=minimum, domain=domain))
    minimum = rng.choice((len(parts), len(parts), rng.randint(1, len(parts))))
    domain = rng.choice(("", "", _BLOCK))
    return Parted(parts=tuple(parts), minimum=minimum, domain=domain), nodes


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


def place(group: Group, nodes: list[Node]) -> dict[str, str]:
    """Place a group by the engine; return the nodes of its members."""
    engine = make_engine(nodes)
    made = make.pod_group("gang", group.minimum, topology=group.domain)
    engine.handle(events.Seen(made), 0.0)
    for member in group.members:
        engine.handle(events.Seen(make.member(make_pod(member))), 0.0)
    return decide(engine)


def place_parted(group: Parted, nodes: list[Node]) -> dict[str, str]:
    """Place a group of parts by the engine; return the nodes of its members."""
    engine = make_engine(nodes)
    spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minGroupCount": group.minimum}}}
    if group.domain:
        spec["schedulingConstraints"] = {"topology": [{"key": group.domain}]}
    meta = wire.Meta(name="whole", namespace="default", uid="whole")
    engine.handle(events.Seen(CompositePodGroup(metadata=meta, spec=spec)), 0.0)
    for i, part in enumerate(group.parts):
        made = make.pod_group(
            f"part{i}", part.minimum, topology=part.domain, parentCompositePodGroupName="whole"
        )
        engine.handle(events.Seen(made), 0.0)
        for member in part.members:
            engine.handle(events.Seen(make.member(make_pod(member), f"part{i}")), 0.0)
    return decide(engine)


def make_engine(nodes: list[Node]) -> Engine:
    engine = Engine(Config())
    for node in nodes:
        engine.handle(events.Seen(make_node(node)), 0.0)
    return engine


def make_pod(member: Member) -> wire.Pod:
    cards: dict[str, Any] = {
        "gpu": member.cards,
        "gpumem": member.memory,
        "gpucores": member.cores,
    }
    spec = {"nodeSelector": dict(member.labels)} if member.labels else {}
    cpu = member.requests["cpu"]
    return make.pod(name=member.name, cpu=cpu, spec=spec, **cards if member.cards else {})


def decide(engine: Engine) -> dict[str, str]:
    """Return the node of each pod that is placed."""
    binds = engine.decide(0.0, Unlimited()).binds
    checks.verify(engine._cluster)
    # Nothing is charged that is not bound.
    pods = engine._cluster.pods
    assert {pod.uid for pod in pods.values() if pod.node} == {bind.uid for bind in binds}
    return {pods[bind.uid].name: bind.node for bind in binds}


@pytest.mark.parametrize("seed", slices.pick_part(tuple(range(600))))
def test_a_group_is_placed_where_the_twin_finds_a_way(seed: int) -> None:
    group, nodes = make_world(seed)
    twin = together.place_group(group, nodes)
    placed = place(group, nodes)
    assert bool(placed) == twin.fits
    if placed:
        assert group.minimum <= len(placed) <= twin.most
        blocks = {node.name: node.labels[_BLOCK] for node in nodes}
        assert not group.domain or len({blocks[node] for node in placed.values()}) == 1


@pytest.mark.parametrize("seed", slices.pick_part(tuple(range(1000))))
def test_a_group_of_parts_is_placed_where_the_twin_finds_a_way(seed: int) -> None:
    group, nodes = make_parted_world(seed)
    placed = place_parted(group, nodes)
    assert bool(placed) == together.fits_parted(group, nodes)
    labels = {node.name: node.labels for node in nodes}
    n_met = 0
    for part in group.parts:
        there = [labels[placed[one.name]] for one in part.members if one.name in placed]
        assert not there or len(there) >= part.minimum
        assert not part.domain or len({one[part.domain] for one in there}) <= 1
        n_met += bool(there)
    assert not placed or n_met >= group.minimum
    assert not group.domain or len({labels[node][group.domain] for node in placed.values()}) <= 1


def test_the_worlds_are_of_both_kinds() -> None:
    fits = [together.place_group(*make_world(seed)).fits for seed in range(100)]
    assert 25 < sum(fits) < 75
    fits = [together.fits_parted(*make_parted_world(seed)) for seed in range(100)]
    assert 25 < sum(fits) < 75
