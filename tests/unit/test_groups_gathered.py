"""Groups of unlike pods with GPUs and without a constraint go to as few racks as there is a way."""

import random

import pytest

from scheduler.api import names, wire
from scheduler.api.door import events
from scheduler.api.groups.objects import VolcanoPodGroup
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from tests import make, slices

_RACK = "topology.kubernetes.io/rack"


@pytest.mark.parametrize("seed", slices.pick_part(tuple(range(100))))
def test_a_leader_and_its_workers_go_to_as_few_racks_as_they_need(seed: int) -> None:
    """Each worker takes the GPUs of a node, and the leader, which needs none, goes to a rack of theirs."""
    rng = random.Random(seed)
    engine, rack_of = Engine(Config()), {}
    sizes = [rng.randint(1, 6) for _ in range(rng.randint(2, 5))]
    for rack, size in enumerate(sizes):
        for _ in range(size):
            name, label = f"n{rng.random()}", f"r{rack}"
            rack_of[name] = label
            node = make.node(name=name, cpu=32, gpus=8, labels={_RACK: label})
            engine.handle(events.Seen(node), 0.0)
    n = rng.randint(1, sum(sizes))
    engine.handle(events.Seen(make.pod_group("gang", n + 1)), 0.0)
    pods = [make.pod(name=f"w{i}", cpu=4, gpu=8) for i in range(n)]
    pods.insert(rng.randrange(n + 1), make.pod(name="leader", cpu=rng.choice((1, 8))))
    for pod in pods:
        engine.handle(events.Seen(make.member(pod)), 0.0)
    binds = engine.decide(0.0, Unlimited()).binds
    assert len(binds) == n + 1
    n_racks, left = 0, n
    for size in sorted(sizes, reverse=True):
        n_racks += left > 0
        left -= size
    assert len({rack_of[bind.node] for bind in binds}) == n_racks


def test_a_rack_that_takes_only_the_minimum_is_not_enough() -> None:
    engine = Engine(Config())
    for name, label in (("n0", "r1"), ("n1", "r2"), ("n2", "r2")):
        node = make.node(name=name, cpu=32, gpus=8, labels={_RACK: label})
        engine.handle(events.Seen(node), 0.0)
    engine.handle(events.Seen(make.pod_group("gang", 3)), 0.0)
    pods = [make.pod(name="leader", cpu=1), *(make.pod(name=f"w{i}", gpu=8) for i in range(3))]
    for pod in pods:
        engine.handle(events.Seen(make.member(pod)), 0.0)
    plans = engine.decide(0.0, Unlimited()).plans
    assert [len(plan.binds) for plan in plans] == [4]


def test_parts_go_to_the_rack_that_takes_both_though_many_take_one() -> None:
    engine, rack_of = Engine(Config()), {}
    for i, size in enumerate((2, 2, 2, 2, 2, 2, 5, 4)):
        for k in range(size):
            rack_of[f"n{i}-{k}"] = i
            node = make.node(name=f"n{i}-{k}", cpu=32, gpus=8, labels={_RACK: f"r{i}"})
            engine.handle(events.Seen(node), 0.0)
    engine.handle(events.Seen(make.pod_group("gang", 4)), 0.0)
    for i in range(4):
        pod = make.pod(name=f"w{i}", cpu=1 + i % 2, gpu=8)
        engine.handle(events.Seen(make.member(pod)), 0.0)
    assert {rack_of[bind.node] for bind in engine.decide(0.0, Unlimited()).binds} == {7}


def test_a_rack_is_found_behind_three_that_take_each_kind_of_pods_but_not_both() -> None:
    """The small racks have CPUs for the leader, or for its workers. By what they lose they come before the large one."""
    engine, rack_of = Engine(Config()), {}
    for rack, size in enumerate((1, 1, 1, 2)):
        for k in range(size):
            rack_of[f"n{rack}-{k}"] = rack
            node = make.node(name=f"n{rack}-{k}", cpu=30, gpus=8, labels={_RACK: f"r{rack}"})
            engine.handle(events.Seen(node), 0.0)
    engine.handle(events.Seen(make.pod_group("gang", 4)), 0.0)
    pods = [make.pod(name=f"w{i}", cpu=4, gpu=1) for i in range(3)]
    for pod in (make.pod(name="leader", cpu=20, gpu=1), *pods):
        engine.handle(events.Seen(make.member(pod)), 0.0)
    binds = engine.decide(0.0, Unlimited()).binds
    assert len(binds) == 4
    assert {rack_of[bind.node] for bind in binds} == {3}


def test_a_group_that_fits_nowhere_is_told_what_it_lacks_on_all_nodes() -> None:
    """The first rack has room for each kind of pods, but not for both, and takes as many as all nodes do."""
    engine = Engine(Config())
    for name, label in (("n0", "r1"), ("n1", "r1"), ("n2", "r2")):
        node = make.node(name=name, cpu=32, gpus=8, labels={_RACK: label})
        engine.handle(events.Seen(node), 0.0)
    engine.handle(events.Seen(make.pod(name="old", node="n2", gpu=8)), 0.0)
    engine.handle(events.Seen(make.pod_group("gang", 3)), 0.0)
    for name, gpu in (("w0", 8), ("w1", 8), ("leader", 4)):
        engine.handle(events.Seen(make.member(make.pod(name=name, gpu=gpu))), 0.0)
    (plan,) = engine.decide(0.0, Unlimited()).plans
    assert plan.hold is not None
    assert plan.hold.diagnosis is not None
    assert plan.hold.diagnosis.n_nodes == 3


@pytest.mark.parametrize(("n_kinds", "rack"), [(16, "r2"), (17, "r1")])
def test_pods_of_more_than_sixteen_kinds_are_not_gathered(n_kinds: int, rack: str) -> None:
    """The second rack is the smaller one, and the first has the nodes that are first by name."""
    engine, rack_of = Engine(Config()), {}
    for i in range(7):
        rack_of[f"n{i}"] = label = "r1" if i < 4 else "r2"
        node = make.node(name=f"n{i}", cpu=32, gpus=8, labels={_RACK: label})
        engine.handle(events.Seen(node), 0.0)
    engine.handle(events.Seen(make.pod_group("gang", n_kinds)), 0.0)
    for i in range(n_kinds):
        engine.handle(events.Seen(make.member(make.pod(name=f"w{i}", cpu=f"{i + 1}m", gpu=1))), 0.0)
    binds = engine.decide(0.0, Unlimited()).binds
    assert len(binds) == n_kinds
    assert {rack_of[bind.node] for bind in binds} == {rack}


def test_parts_of_many_kinds_are_gathered_one_by_one_beside_those_that_are_placed() -> None:
    """There are too many kinds to gather all of them at once."""
    engine = Engine(Config())
    for i in range(9):
        node = make.node(name=f"n{i}", cpu=32, gpus=4, labels={_RACK: f"r{i // 3}"})
        engine.handle(events.Seen(node), 0.0)
    tasks = {f"t{i:02}": 2 for i in range(17)}
    meta = wire.Meta(name="gang", namespace="default", uid="gang")
    group = VolcanoPodGroup(meta, {"minMember": 34, "minTaskMember": tasks})
    engine.handle(events.Seen(group), 0.0)
    for i, task in enumerate(tasks):
        words, labels = {names.VOLCANO_GROUP: "gang"}, {names.VOLCANO_TASK: task}
        for k in range(2):
            name, cpu = f"{task}-{k}", f"{i + 1}m"
            pod = make.pod(name=name, cpu=cpu, gpu=1, annotations=words, labels=labels)
            engine.handle(events.Seen(pod), 0.0)
    assert len(engine.decide(0.0, Unlimited()).binds) == 34
