"""The search for places for a small group: nodes that are alike are tried once, and the work is bounded."""

import random
from typing import Any

import numpy as np
import pytest

from scheduler.api import wire
from scheduler.api.door import events
from scheduler.api.groups.objects import CompositePodGroup
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.placing.groups import alike, ways
from scheduler.schema import columns as c
from scheduler.state import checks
from tests import make, slices

_ZONE, _HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def keep_apart(key: str, **labels: str) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": labels}}
    return {
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    }


def spread(key: str, **labels: str) -> dict[str, Any]:
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [constraint | {"labelSelector": {"matchLabels": labels}}]}


def make_engine(seed: int) -> tuple[Engine, int]:
    """Up to seven nodes, some of them alike but for a label that nobody looks at, and a group that hardly fits."""
    rng = random.Random(seed)
    engine = Engine(Config())
    sizes = [(rng.randint(2, 4), rng.choice((0, 2)), rng.choice("ab")) for _ in range(3)]
    for i in range(rng.randint(2, 7)):
        cpu, cards, zone = rng.choice(sizes)
        labels = {_ZONE: zone, "machine": f"m{i}", "disk": rng.choice(("ssd", "hdd"))}
        figures: dict[str, Any] = {"name": f"n{i}", "cpu": cpu, "labels": labels}
        node = make.hami_node(cards=cards, **figures) if cards else make.node(**figures)
        engine.handle(events.Seen(node), 0.0)
    n = rng.randint(2, 5)
    engine.handle(events.Seen(make.pod_group("gang", n)), 0.0)
    for i in range(n):
        app = rng.choice("xy")
        rules: list[dict[str, Any]] = [
            {},
            {},
            keep_apart(_ZONE, app=rng.choice("xy")),
            keep_apart(_HOST, app=rng.choice("xy")),
            spread(rng.choice((_ZONE, _HOST)), app=app),
            {"nodeSelector": {"disk": "ssd"}},
        ]
        asked: dict[str, Any] = {}
        if rng.random() < 0.4:
            asked = {"gpu": 1, "gpumem": rng.choice((6000, 9000))}
        spec = rng.choice(rules)
        pod = make.pod(name=f"p{i}", cpu=rng.randint(1, 3), labels={"app": app}, spec=spec, **asked)
        engine.handle(events.Seen(make.member(pod)), 0.0)
    return engine, n


def is_placed(engine: Engine, n: int) -> bool:
    binds = engine.decide(0.0, Unlimited()).binds
    checks.verify(engine._cluster)
    assert len(binds) in {0, n}
    return bool(binds)


@pytest.mark.parametrize("seed", slices.pick_part(tuple(range(400))))
def test_a_group_is_placed_as_if_no_nodes_were_alike(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = is_placed(*make_engine(seed))
    monkeypatch.setattr(alike.AlikeRows, "_classify", _classify_none)
    monkeypatch.setattr(ways, "_WORK_MAX", 1 << 20)
    assert is_placed(*make_engine(seed)) == found


def _classify_none(rows: alike.AlikeRows, *_: object) -> c.Ints:
    return np.arange(rows._rows.size)


def _make_gang_in_zones(n_nodes: int, n_pods: int, cards: int) -> Engine:
    """Nodes with labels of their own in three zones, and a gang whose pods need a zone each."""
    engine = Engine(Config())
    for i in range(n_nodes):
        labels = {_ZONE: f"z{i % 3}", "machine": f"m{i}"}
        node = make.hami_node(name=f"n{i:03}", cards=cards, cpu=64, labels=labels)
        engine.handle(events.Seen(node), 0.0)
    engine.handle(events.Seen(make.pod_group("gang", n_pods)), 0.0)
    for i in range(n_pods):
        spec = keep_apart(_ZONE, app="x")
        pod = make.pod(name=f"p{i}", gpu=cards // 2, gpumem=100, labels={"app": "x"}, spec=spec)
        engine.handle(events.Seen(make.member(pod)), 0.0)
    return engine


@pytest.mark.parametrize(("n_nodes", "cards"), [(4, 20), (60, 8), (300, 2)])
def test_a_group_that_fits_nowhere_takes_little_work(n_nodes: int, cards: int) -> None:
    """Without regard to what is alike it were thousands of tries, or sets of cards."""
    engine = _make_gang_in_zones(n_nodes, 4, cards)
    engine._settle_groups(0.0)
    assert not engine._cycle.schedule(engine._pop_batch(64, 0.0)).binds
    assert 0 < engine._cycle._ways.spent < 100


def test_a_long_search_lets_other_groups_wait_for_the_next_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(alike.AlikeRows, "_classify", _classify_none)
    engine = _make_gang_in_zones(60, 4, 2)
    for i in range(2):
        engine.handle(events.Seen(make.pod_group(f"late{i}", 1)), 0.0)
        engine.handle(events.Seen(make.member(make.pod(name=f"late{i}", cpu=1), f"late{i}")), 0.0)
    engine._settle_groups(0.0)
    batch = engine._pop_batch(64, 0.0)
    made = engine._cycle.schedule(batch)
    assert len(made.left) == 2
    assert engine._cycle._ways.spent < 1100


def test_pods_that_ask_the_same_are_not_alike_to_a_pod_that_keeps_away_from_one() -> None:
    """The first try leads nowhere: y is on the only node that has room for z. With x there instead it is well."""
    engine = Engine(Config())
    for name, cpu in (("n0", 2), ("n1", 3)):
        engine.handle(events.Seen(make.node(name=name, cpu=cpu)), 0.0)
    engine.handle(events.Seen(make.pod_group("gang", 3)), 0.0)
    for name, cpu, spec in (("x", 2, {}), ("y", 2, {}), ("z", 1, keep_apart(_HOST, app="y"))):
        pod = make.pod(name=name, cpu=cpu, labels={"app": name}, spec=spec)
        engine.handle(events.Seen(make.member(pod)), 0.0)
    assert is_placed(engine, 3)


def test_a_domain_is_tried_that_takes_enough_of_the_pods_but_not_the_first() -> None:
    engine = Engine(Config())
    for name, cpu in (("a0", 4), ("b0", 2), ("b1", 2)):
        node = make.node(name=name, cpu=cpu, labels={_ZONE: name[0]})
        engine.handle(events.Seen(node), 0.0)
    engine.handle(events.Seen(make.pod_group("gang", 2, topology=_ZONE)), 0.0)
    for name, cpu, zone in (("p0", 3, "a"), ("p1", 2, "b"), ("p2", 2, "b")):
        pod = make.pod(name=name, cpu=cpu, spec={"nodeSelector": {_ZONE: zone}})
        engine.handle(events.Seen(make.member(pod)), 0.0)
    assert [bind.node for bind in engine.decide(0.0, Unlimited()).binds] == ["b0", "b1"]


@pytest.mark.parametrize("level", ["", "rack"])
def test_unlike_parts_that_fit_nowhere_take_no_more_work_than_one_search(level: str) -> None:
    """Each needs a block of its own, and there are too few."""
    engine = Engine(Config())
    for i in range(500):
        labels = {_ZONE: f"z{i // 100}", "rack": f"r{i // 10}", "machine": f"m{i}"}
        node = make.hami_node(name=f"n{i:03}", cards=8, cpu=64 - i % 7, labels=labels)
        engine.handle(events.Seen(node), 0.0)
    meta = wire.Meta(name="whole", namespace="default", uid="whole")
    spec = {"schedulingPolicy": {"gang": {"minGroupCount": 12}}}
    engine.handle(events.Seen(CompositePodGroup(metadata=meta, spec=spec)), 0.0)
    for i in range(12):
        above = {"parentCompositePodGroupName": "whole"}
        engine.handle(events.Seen(make.pod_group(f"p{i}", 1, topology=level, **above)), 0.0)
        asked: dict[str, Any] = {"gpu": 1 + i % 8, "gpumem": 1000 + i}
        apart = keep_apart(_ZONE, app="x")
        pod = make.pod(name=f"p{i}", cpu=1 + i, labels={"app": "x"}, spec=apart, **asked)
        engine.handle(events.Seen(make.member(pod, f"p{i}")), 0.0)
    engine._settle_groups(0.0)
    assert not engine._cycle.schedule(engine._pop_batch(64, 0.0)).binds
    assert 0 < engine._cycle._ways.spent < 1100
