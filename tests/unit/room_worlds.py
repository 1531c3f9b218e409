"""Small worlds in which room has to be made for a group, and the room that the engine makes there."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from scheduler.api import hami, names, wire
from scheduler.api.cards import CardUse
from scheduler.api.door import events
from scheduler.api.door.decisions import Outcome
from scheduler.config import Config
from scheduler.engine.engine import Engine
from scheduler.state import checks
from tests import make
from tests.oracles import together
from tests.oracles.making_room import Budget, Running, Unit
from tests.oracles.making_room import World as Crowd
from tests.oracles.together import Card, Group, Member, Node
from tests.unit.pausing import decide_at_once

PRIORITY = 5
NOW = 1_000_000.0
RACK, HOST = "rack", "kubernetes.io/hostname"
# Plain nodes count their GPUs; HAMi's nodes have cards, of which pods may take a part.
NONE, PLAIN, HAMI = "none", "plain", "hami"
_PODS_MAX = 8
_GANG = "gang.scheduling.koordinator.sh/"


class World(NamedTuple):
    group: Group
    crowd: Crowd


def make_world(seed: int) -> World:
    """A group of up to four members, and up to four nodes with up to eight pods by themselves and in gangs."""
    rng = random.Random(seed)
    devices = rng.choice((NONE, PLAIN, HAMI))
    nodes = [_make_node(rng, f"n{i}", devices) for i in range(rng.randint(1, 4))]
    # Where nodes are alike and each member needs a whole one, there is a choice whom to send away.
    is_even = rng.random() < 0.5
    if is_even:
        nodes = [replace(node, free=nodes[0].free, cards=nodes[0].cards) for node in nodes]
    priorities = rng.choice(((0,), (0, 0, 1), (0, 1, 2, 9)))
    maker = _Maker(rng, devices, priorities, {node.name: node for node in nodes})
    units = tuple(filter(None, (maker.make_unit(f"u{i}") for i in range(rng.randint(2, 8)))))
    pods = [one.pod.name for unit in units for one in unit.pods]
    budgets = tuple(
        Budget(pods=frozenset(rng.sample(pods, rng.randint(0, len(pods)))), allowed=allowed)
        for allowed in rng.choice(((), (), (0,), (1,), (1, 0), (0, 1), (1, 1)))
    )
    members = [_make_member(rng, "m0", devices)]
    if is_even:
        cpu = nodes[0].free["cpu"]
        members = [replace(members[0], requests={**members[0].requests, "cpu": cpu})]
    is_alike = is_even or rng.random() < 0.5
    for i in range(1, rng.randint(1, 2 if is_even else 4)):
        one = members[0] if is_alike else _make_member(rng, "", devices)
        members.append(replace(one, name=f"m{i}"))
    domain = rng.choice(("", RACK, RACK))
    group = Group(members=tuple(members), minimum=len(members), domain=domain)
    return World(group, Crowd(nodes=tuple(nodes), units=units, budgets=budgets))


def make_crowded_world(seed: int) -> World:
    """A group of up to four members, and up to five nodes with so many pods that not all sets of them can be tried."""
    rng = random.Random(seed)
    devices = rng.choice((NONE, PLAIN, HAMI))
    nodes = [_make_node(rng, f"n{i}", devices) for i in range(rng.randint(2, 5))]
    nodes = [replace(node, free={**node.free, "cpu": node.free["cpu"] + 3}) for node in nodes]
    priorities = rng.choice(((0,), (0, 0, 1), (0, 1, 2, 9)))
    maker = _Maker(rng, devices, priorities, {one.name: one for one in nodes}, pods_max=14)
    units = tuple(filter(None, (maker.make_unit(f"u{i}") for i in range(rng.randint(9, 14)))))
    pods = [one.pod.name for unit in units for one in unit.pods]
    budgets = tuple(
        Budget(pods=frozenset(rng.sample(pods, rng.randint(0, len(pods)))), allowed=allowed)
        for allowed in rng.choice(((), (), (0,), (1,), (1, 0)))
    )
    members = [_make_member(rng, "m0", devices)]
    is_alike = rng.random() < 0.5
    for i in range(1, rng.randint(1, 4)):
        one = members[0] if is_alike else _make_member(rng, "", devices)
        members.append(replace(one, name=f"m{i}"))
    group = Group(members=tuple(members), minimum=len(members), domain=rng.choice(("", RACK)))
    return World(group, Crowd(nodes=tuple(nodes), units=units, budgets=budgets))


def _make_node(rng: random.Random, name: str, devices: str) -> Node:
    free = {"cpu": rng.randint(3, 8)}
    cards: tuple[Card, ...] = ()
    if devices == PLAIN:
        free["gpu"] = rng.randint(1, 3)
    if devices == HAMI:
        cards = (Card(memory=16000, sharers=4),) * rng.randint(1, 3)
    return Node(name=name, free=free, cards=cards, labels={RACK: rng.choice("xy"), HOST: name})


def _make_member(rng: random.Random, name: str, devices: str) -> Member:
    cpu = {"cpu": rng.randint(1, 3 if devices != NONE else 5)}
    n_gpus = 0 if devices == NONE else rng.choice((0, 1, 1, 2))
    if devices == PLAIN:
        return Member(name=name, requests={**cpu, "gpu": n_gpus})
    if not n_gpus:
        return Member(name=name, requests=cpu)
    memory, cores = rng.choice((4000, 8000, 12000)), rng.choice((25, 50, 75, 100))
    return Member(name=name, requests=cpu, cards=n_gpus, memory=memory, cores=cores)


@dataclass
class _Maker:
    """Makes units as long as they have room on the nodes, which have left what ``left`` says."""

    rng: random.Random
    devices: str
    priorities: tuple[int, ...]
    left: dict[str, Node]
    n_pods: int = 0
    pods_max: int = _PODS_MAX

    def make_unit(self, name: str) -> Unit | None:
        pods: list[Running] = []
        node = self.rng.choice(sorted(self.left))
        for i in range(self.rng.choice((1, 1, 1, 2, 3))):
            if self.rng.random() < 0.5:
                node = self.rng.choice(sorted(self.left))
            pod = self._make_running(f"{name}-{i}", node) if self.n_pods < self.pods_max else None
            if pod is not None:
                self.n_pods += 1
                pods.append(pod)
        if not pods:
            return None
        priority = self.rng.choice(self.priorities)
        minimum = None
        if len(pods) > 1 and self.rng.random() < 0.5:
            minimum = self.rng.randint(1, len(pods))
        return Unit(name=name, pods=tuple(pods), priority=priority, minimum=minimum)

    def _make_running(self, name: str, node: str) -> Running | None:
        rng = self.rng
        pod = _make_member(rng, name, self.devices)
        ways = list(together.list_fits(pod, self.left[node]))
        if not ways:
            return None
        cards, self.left[node] = rng.choice(ways)
        return Running(
            pod=pod,
            node=node,
            cards=cards,
            # No two are of one age: it is the order in which budgets are used up.
            age=rng.randint(0, 8) + self.n_pods / 16,
            saves=rng.choice((None, None, 0.5, 2.0)),
            is_leaving=rng.random() < 0.1,
            shuns=rng.choice((*[""] * 8, HOST, RACK)),
        )


class Made(NamedTuple):
    """Which pods the engine binds, evicts and nominates, by name."""

    binds: Mapping[str, str]
    victims: frozenset[str]
    nominates: Mapping[str, str]


def make_room(world: World, decide: Callable[[Engine, float], Outcome] = decide_at_once) -> Made:
    """Decide by the engine."""
    engine = Engine(Config())
    for thing in _list_objects(world):
        engine.handle(events.Seen(thing), NOW)
    outcome = decide(engine, NOW)
    checks.verify(engine._cluster)
    name_of = {uid: pod.name for uid, pod in engine._cluster.pods.items()}
    return Made(
        {name_of[bind.uid]: bind.node for bind in outcome.binds},
        frozenset(name_of[uid] for evict in outcome.evicts for uid in evict.victims),
        {name_of[one.uid]: one.node for one in outcome.nominates if one.node},
    )


def _list_objects(world: World) -> list[events.Object]:
    group, crowd = world
    found: list[events.Object] = [_write_node(node) for node in crowd.nodes]
    for at, budget in enumerate(crowd.budgets):
        selector = wire.LabelSelector({f"budget-{at}": "yes"})
        found.append(make.budget(f"budget-{at}", selector, budget.allowed))
    for unit in crowd.units:
        is_group = len(unit.pods) > 1
        if is_group and unit.minimum is None:
            mode: dict[str, Any] = {"all": {}}
            found.append(make.pod_group(unit.name, 1, priority=unit.priority, disruptionMode=mode))
        found += [_write_running(one, unit, crowd) for one in unit.pods]
    found.append(make.pod_group("gang", group.minimum, topology=group.domain, priority=PRIORITY))
    for member in group.members:
        pod = make.pod(
            name=member.name, priority=PRIORITY, labels={"app": "gang"}, **_write_figures(member)
        )
        found.append(make.member(pod))
    return found


def _write_node(node: Node) -> wire.Node:
    figures: dict[str, Any] = {
        "name": node.name,
        "cpu": node.free["cpu"],
        "labels": dict(node.labels),
    }
    if not node.cards:
        return make.node(gpus=node.free.get("gpu", 0), **figures)
    cards = [
        make.card(uuid=_name_card(node.name, at), index=at, mib=one.memory, sharers=one.sharers)
        for at, one in enumerate(node.cards)
    ]
    return make.hami_node(cards=cards, **figures)


def _name_card(node: str, at: int) -> str:
    return f"{node}-card-{at}"


def _write_running(one: Running, unit: Unit, crowd: Crowd) -> wire.Pod:
    name, member = one.pod.name, one.pod
    labels = {
        f"budget-{at}": "yes" for at, budget in enumerate(crowd.budgets) if name in budget.pods
    }
    notes: dict[str, str] = {}
    if one.cards:
        uses = [CardUse(_name_card(one.node, at), member.memory, member.cores) for at in one.cards]
        notes |= hami.make_bind_annotations(one.node, (tuple(uses),), 1)
    if one.saves is not None:
        notes[names.CHECKPOINT] = f"{int(60 * one.saves)}m"
    if unit.minimum is not None:
        notes |= {_GANG + "name": unit.name, _GANG + "min-available": str(unit.minimum)}
    pod = make.pod(
        name=name,
        node=one.node,
        priority=unit.priority,
        labels=labels,
        annotations=notes,
        spec=_write_shunning(one.shuns) if one.shuns else None,
        **_write_figures(member),
    )
    pod.status.start_time = _write_time(NOW - 3600 * one.age)
    if one.is_leaving:
        pod.metadata.deletion_timestamp = _write_time(NOW)
    return make.member(pod, unit.name) if len(unit.pods) > 1 and unit.minimum is None else pod


def _write_figures(member: Member) -> dict[str, Any]:
    figures: dict[str, Any] = {"cpu": member.requests["cpu"]}
    if n_gpus := member.requests.get("gpu", 0):
        figures["gpu"] = n_gpus
    if member.cards:
        figures |= {"gpu": member.cards, "gpumem": member.memory, "gpucores": member.cores}
    return figures


def _write_shunning(label: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": "gang"}}, "topologyKey": label}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"affinity": {"podAntiAffinity": rule}}


def _write_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
