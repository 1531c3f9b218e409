"""Groups whose pods want others of the group near them are placed whenever they can be placed, whoever is first by name.

A slow twin tries every order, every node and every set of cards.
"""

import random
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pytest

from scheduler.api import wire
from scheduler.api.door import events
from scheduler.api.groups.objects import CompositePodGroup
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.placing.groups.needs import read_pods
from scheduler.placing.groups.turns import Turns
from scheduler.placing.groups.wanting import put_wanted_first
from tests import make, slices
from tests.oracles import together
from tests.oracles.together import Group, Member, Near, Node, Parted
from tests.unit.test_groups_placed import decide, make_engine, make_member, make_nodes
from tests.unit.together_worlds import keeps_near

Json = dict[str, Any]
_HOST, _ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
_APPS = "abc"


@dataclass(frozen=True)
class World:
    """Members with apps; ``wants`` are (app, label) pairs by member: it wants pods of the app near it."""

    members: tuple[Member, ...]
    nodes: list[Node]
    apps: dict[str, str]
    wants: dict[str, list[tuple[str, str]]]

    @property
    def near(self) -> tuple[Near, ...]:
        return tuple(
            Near(
                members=frozenset({name}),
                wanted=frozenset(one for one, its in self.apps.items() if its == app),
                label=label,
            )
            for name, wants in self.wants.items()
            for app, label in wants
        )

    def make_pod(self, member: Member) -> wire.Pod:
        terms = [wish(label, app=app) for app, label in self.wants[member.name]]
        cards: Json = {"gpu": member.cards, "gpumem": member.memory, "gpucores": member.cores}
        return make.pod(
            name=member.name,
            cpu=member.requests["cpu"],
            labels={"app": self.apps[member.name]},
            spec=near_to(*terms) if terms else {},
            **cards if member.cards else {},
        )


def wish(label: str, **labels: str) -> Json:
    return {"topologyKey": label, "labelSelector": {"matchLabels": labels}}


def near_to(*terms: Json) -> Json:
    return {
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}
    }


def make_world(seed: int) -> World:
    """Up to six members and five nodes, which are about as large: chains, pods that want each other, or whatever comes."""
    rng = random.Random(seed)
    nodes = [
        replace(
            one,
            labels={_HOST: one.name} | ({_ZONE: rng.choice("xy")} if rng.random() < 0.9 else {}),
        )
        for one in make_nodes(rng, rng.randint(2, 5))
    ]
    apps: dict[str, str] = {}
    members: list[Member] = []
    for i in range(rng.randint(2, 6)):
        one = make_member(rng, f"m{i}")
        if members and rng.random() < 0.3:
            one = replace(members[-1], name=one.name)
        members.append(one)
        apps[one.name] = rng.choice(_APPS)
    there = sorted(set(apps.values()))
    style = rng.choice(("chain", "each other", "themselves", "any"))
    wanted = {
        "chain": dict(pairwise(there)),
        "each other": dict(zip(there, there[1:] + there[:1], strict=True)),
        "themselves": {app: app for app in there[:2]},
        "any": {},
    }[style]
    by_app = {app: rng.choice((_HOST, _ZONE)) for app in there}
    wants: dict[str, list[tuple[str, str]]] = {name: [] for name in apps}
    for name, app in apps.items():
        if style == "any":
            n = rng.choice((0, 0, 1, 1, 2))
            wants[name] = [(rng.choice(there), rng.choice((_HOST, _ZONE))) for _ in range(n)]
        elif app in wanted:
            wants[name] = [(wanted[app], by_app[app])]
    return World(tuple(members), nodes, apps, wants)


def make_group(seed: int) -> tuple[World, Group]:
    rng, world = random.Random(-seed), make_world(seed)
    n = len(world.members)
    group = Group(
        members=world.members,
        minimum=rng.choice((n, n, max(1, n - 1))),
        domain=rng.choice(("", "", _ZONE)),
        near=world.near,
    )
    return world, group


def make_parted(seed: int) -> tuple[World, Parted]:
    rng, world = random.Random(-seed), make_world(seed)
    members, n_first = world.members, rng.randint(1, len(world.members) - 1)
    parts = tuple(
        Group(
            members=mine,
            minimum=rng.choice((len(mine), len(mine), rng.randint(1, len(mine)))),
            domain=rng.choice(("", "", _ZONE)),
        )
        for mine in (members[:n_first], members[n_first:])
    )
    return world, Parted(parts=parts, minimum=rng.choice((2, 2, 1)), near=world.near)


def place(world: World, group: Group) -> dict[str, str]:
    engine = make_engine(world.nodes)
    made = make.pod_group("gang", group.minimum, topology=group.domain)
    engine.handle(events.Seen(made), 0.0)
    for member in group.members:
        engine.handle(events.Seen(make.member(world.make_pod(member))), 0.0)
    return decide(engine)


def place_parted(world: World, group: Parted) -> dict[str, str]:
    engine = make_engine(world.nodes)
    meta = wire.Meta(name="whole", namespace="default", uid="whole")
    spec = {"schedulingPolicy": {"gang": {"minGroupCount": group.minimum}}}
    engine.handle(events.Seen(CompositePodGroup(metadata=meta, spec=spec)), 0.0)
    for i, part in enumerate(group.parts):
        above = {"parentCompositePodGroupName": "whole"}
        made = make.pod_group(f"part{i}", part.minimum, topology=part.domain, **above)
        engine.handle(events.Seen(made), 0.0)
        for member in part.members:
            engine.handle(events.Seen(make.member(world.make_pod(member), f"part{i}")), 0.0)
    return decide(engine)


def is_kept(world: World, placed: dict[str, str]) -> bool:
    return keeps_near(world.near, {one.name: one.labels for one in world.nodes}, placed)


@pytest.mark.parametrize("seed", slices.pick_part(tuple(range(600))))
def test_a_group_is_placed_where_the_twin_finds_a_way(seed: int) -> None:
    world, group = make_group(seed)
    twin = together.place_group(group, world.nodes)
    placed = place(world, group)
    assert bool(placed) == twin.fits
    assert not placed or group.minimum <= len(placed) <= twin.most
    assert is_kept(world, placed)


@pytest.mark.parametrize("seed", slices.pick_part(tuple(range(600))))
def test_a_group_of_parts_is_placed_where_the_twin_finds_a_way(seed: int) -> None:
    world, group = make_parted(seed)
    placed = place_parted(world, group)
    assert bool(placed) == together.fits_parted(group, world.nodes)
    assert is_kept(world, placed)


def test_the_worlds_are_of_both_kinds() -> None:
    worlds = [make_group(seed) for seed in range(100)]
    fits = [together.place_group(group, world.nodes).fits for world, group in worlds]
    assert 20 < sum(fits) < 80
    parted = [make_parted(seed) for seed in range(100)]
    fits = [together.fits_parted(group, world.nodes) for world, group in parted]
    assert 20 < sum(fits) < 80


def make_pods(*asked: tuple[str, str, list[Json]]) -> list[wire.Pod]:
    """Make pods of (name, app, what they want near them)."""
    return [
        make.pod(name=name, cpu=1, labels={"app": app}, spec=near_to(*terms) if terms else {})
        for name, app, terms in asked
    ]


def list_order(pods: list[wire.Pod]) -> list[str]:
    engine = Engine(Config())
    for pod in pods:
        engine.handle(events.Seen(pod), 0.0)
    records = list(engine._cluster.pods.values())
    return [one.name for one in put_wanted_first(engine._cluster, records)]


A, B, C = (wish(_HOST, app=app) for app in _APPS)
ANY = {
    "topologyKey": _HOST,
    "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
}


@pytest.mark.parametrize(
    ("asked", "order"),
    [
        pytest.param([("0", "a", []), ("1", "b", [])], "01", id="nobody wants any"),
        pytest.param([("0", "a", [B]), ("1", "c", []), ("2", "b", [])], "120", id="one wants the last"),
        pytest.param([("0", "a", [B]), ("1", "b", [C]), ("2", "c", [])], "210", id="a chain"),
        pytest.param([("0", "a", [A]), ("1", "a", [A]), ("2", "b", [])], "012", id="its like"),
        pytest.param([("0", "a", [A]), ("1", "b", []), ("2", "a", [])], "120", id="its like, without wishes"),
        pytest.param([("0", "a", [B]), ("1", "b", [ANY])], "10", id="one of two may be first"),
        pytest.param([("0", "a", [B]), ("1", "b", [A])], "01", id="neither may be first"),
        pytest.param([("0", "a", [B, C]), ("1", "b", []), ("2", "c", [])], "012", id="nobody is all it wants"),
        pytest.param([("0", "a", [C]), ("1", "b", [ANY]), ("2", "c", [B])], "120", id="a chain from the middle"),
    ],
)  # fmt: skip
def test_those_that_others_want_come_first(asked: list[Any], order: str) -> None:
    assert "".join(list_order(make_pods(*asked))) == order


def test_pods_of_very_many_kinds_keep_their_order() -> None:
    terms = [wish(_HOST, app=str(i + 1)) for i in range(100)]
    pods = make_pods(*((f"{i:03}", str(i), [terms[i]]) for i in range(100)))
    assert list_order(pods) == [pod.metadata.name for pod in pods]


def make_gang(*pods: wire.Pod, nodes: dict[str, int]) -> Engine:
    """An engine with nodes of so many CPUs each, and a gang of pods."""
    engine = Engine(Config())
    for name, cpu in nodes.items():
        engine.handle(events.Seen(make.node(name=name, cpu=cpu)), 0.0)
    engine.handle(events.Seen(make.pod_group("gang", len(pods))), 0.0)
    for pod in pods:
        engine.handle(events.Seen(make.member(pod)), 0.0)
    return engine


def test_a_gang_that_is_too_large_for_the_search_is_placed_at_the_first_try() -> None:
    """Its pods differ by their ranks, too, which nobody looks at."""
    workers = [
        make.pod(name=f"a{i:02}", cpu=1, labels={"app": "a", "rank": str(i)}, spec=near_to(B))
        for i in range(70)
    ]
    engine = make_gang(*workers, *make_pods(("z", "b", [])), nodes={"n0": 71, "n1": 9})
    assert len(decide(engine)) == 71
    assert not engine._cycle._ways.spent


def test_a_gang_is_tried_again_when_a_node_comes() -> None:
    pods = make_pods(("p0", "a", [B]), ("p1", "b", []))
    engine = make_gang(*pods, nodes={"n0": 1, "n1": 1})
    assert not decide(engine)
    engine.handle(events.Seen(make.node(name="n2", cpu=2)), 1.0)
    placed = {bind.node for bind in engine.decide(60.0, Unlimited()).binds}
    assert placed == {"n2"}


def test_an_extra_pod_is_placed_that_a_pod_of_another_part_needs() -> None:
    """One pod of the second part is enough, but the one that the first part wants there wants the other.

    The first try leads nowhere: the pod that wants nobody goes to the first node, where the others may not be.
    """
    first, middle, last = make_pods(("p0", "a", [B]), ("p1", "b", [C]), ("p2", "c", []))
    for pod in (first, middle):
        pod.spec.node_selector = {_HOST: "n1"}
    engine = make_engine([Node(name="n0", free={"cpu": 9}), Node(name="n1", free={"cpu": 3})])
    meta = wire.Meta(name="whole", namespace="default", uid="whole")
    spec = {"schedulingPolicy": {"gang": {"minGroupCount": 2}}}
    engine.handle(events.Seen(CompositePodGroup(metadata=meta, spec=spec)), 0.0)
    for name, pods in (("part0", [first]), ("part1", [middle, last])):
        above = {"parentCompositePodGroupName": "whole"}
        engine.handle(events.Seen(make.pod_group(name, 1, **above)), 0.0)
        for pod in pods:
            engine.handle(events.Seen(make.member(pod, name)), 0.0)
    assert decide(engine) == dict.fromkeys(("p0", "p1", "p2"), "n1")


def test_the_first_of_pods_that_want_each_other_goes_anywhere_while_none_is_there() -> None:
    """The larger pod wants nobody: once it is on its node, the other one would have to follow it."""
    free = make.pod(name="p0", cpu=2, labels={"app": "a"}, spec=pin("n0"))
    wanting = make.pod(name="p1", cpu=1, labels={"app": "a"}, spec=pin("n1") | near_to(A))
    placed = decide(make_gang(free, wanting, nodes={"n0": 2, "n1": 1}))
    assert placed == {"p0": "n0", "p1": "n1"}


def test_once_one_of_pods_that_want_each_other_is_there_the_others_need_not_come_before_anybody() -> (
    None
):
    engine = Engine(Config())
    free = make.pod(name="free", cpu=2, labels={"app": "a"})
    for pod in (free, *make_pods(("0", "a", [A]), ("1", "a", [A]))):
        engine.handle(events.Seen(pod), 0.0)
    pods = list(engine._cluster.pods.values())
    turns = Turns(engine._cluster, read_pods(pods, len(pods)))
    first, wanting = turns.list_next().turns
    assert (first.pod.name, wanting.pod.name) == ("free", "0")
    turns.take(wanting)
    assert [turn.pod.name for turn in turns.list_next().turns] == ["free"]


def pin(node: str) -> Json:
    return {"nodeSelector": {_HOST: node}}


def spread(**labels: str) -> Json:
    rule = {"maxSkew": 1, "topologyKey": _HOST, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [rule | {"labelSelector": {"matchLabels": labels}}]}


def test_a_pod_that_is_spread_comes_before_one_that_it_counts() -> None:
    """Both have room on the larger node only. If one is there, the one that is spread may not be the second one."""
    pods = [
        make.pod(name="p0", cpu=3, labels={"app": "w"}),
        make.pod(name="p1", cpu=2, labels={"app": "w"}, spec=spread(app="w")),
    ]
    assert decide(make_gang(*pods, nodes={"n0": 9, "n1": 1})) == {"p0": "n0", "p1": "n0"}


def test_a_pod_that_is_spread_comes_after_one_that_it_counts() -> None:
    """One is on the larger node already. So another one must be on the other node first."""
    pods = [
        make.pod(name="p0", cpu=3, labels={"app": "w"}, spec=spread(app="w")),
        make.pod(name="p1", cpu=1, labels={"app": "w"}, spec=pin("n1")),
    ]
    engine = make_gang(*pods, nodes={"n0": 9, "n1": 1})
    there = make.pod(name="there", node="n0", cpu=1, labels={"app": "w"})
    engine.handle(events.Seen(there), 0.0)
    binds = engine.decide(0.0, Unlimited()).binds
    assert {bind.uid: bind.node for bind in binds} == {"default/p0": "n0", "default/p1": "n1"}


CARD: Json = {"cpu": 1, "gpu": 1, "gpumem": 1000}


def make_cards(*names: str) -> Engine:
    """An engine with a node for each name, with one card that nine pods may share."""
    cards, labels = (together.Card(memory=16000, sharers=9),), {_ZONE: "z"}
    return make_engine(
        [Node(name=name, free={"cpu": 9}, cards=cards, labels=labels) for name in names]
    )


def test_a_pod_without_cores_comes_between_one_that_it_wants_and_the_one_that_takes_the_rest() -> (
    None
):
    """All share one card, which takes nobody more when its cores are taken."""
    engine = make_cards("n0")
    engine.handle(events.Seen(make.pod_group("gang", 4)), 0.0)
    for pod in (
        make.pod(name="p0", gpucores=50, **CARD),
        make.pod(name="p1", gpucores=50, **CARD),
        make.pod(name="p2", spec=near_to(C), **CARD),
        make.pod(name="p3", cpu=1, labels={"app": "c"}),
    ):
        engine.handle(events.Seen(make.member(pod)), 0.0)
    assert len(decide(engine)) == 4


def test_a_pod_without_cores_comes_before_one_that_another_wants() -> None:
    """What is wanted takes the rest of the card that another pod has to share. Nobody has to come after that pod."""
    engine = make_cards("n0", "n1")
    there = make.pod(name="there", gpucores=50, spec=pin("n0"), **CARD)
    engine.handle(events.Seen(there), 0.0)
    engine.decide(0.0, Unlimited())
    engine.handle(events.Seen(make.pod_group("gang", 3)), 0.0)
    in_the_zone = wish(_ZONE, app="c")
    for pod in (
        make.pod(name="p0", spec=near_to(in_the_zone) | pin("n1"), **CARD),
        make.pod(name="p1", gpucores=50, labels={"app": "c"}, spec=pin("n0"), **CARD),
        make.pod(name="p2", spec=pin("n0"), **CARD),
    ):
        engine.handle(events.Seen(make.member(pod)), 0.0)
    assert len(engine.decide(0.0, Unlimited()).binds) == 3
