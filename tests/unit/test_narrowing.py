"""A large place is narrowed down before it is searched: the room that is found is as good as that of the whole search."""

import random
from typing import Any

import numpy as np
import pytest

from scheduler.api.door import events
from scheduler.config import Config
from scheduler.disruption import clearing
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.state import checks
from tests import make, slices

_N_NODES = 60


def make_engine(seed: int) -> Engine:
    """Sixty nodes with some hundred pods on them, of which many belong to groups that go as a whole, and a gang."""
    rng = random.Random(seed)
    engine = Engine(Config())

    def see(found: events.Object) -> None:
        engine.handle(events.Seen(found), 0.0)

    free = {}
    for i in range(_N_NODES):
        free[f"n{i:02}"] = gpus = rng.choice((4, 8))
        labels = {"zone": "ab"[i % 2]}
        see(make.node(name=f"n{i:02}", cpu=64, gpus=gpus, labels=labels))
    unit = 0
    while len(free) > rng.randint(0, 6):
        unit += 1
        n_pods = rng.choice((1, 1, 1, 2, 4))
        priority = rng.choice((0, 1, 2, 9))
        mode: dict[str, Any] = {"all": {}}
        if n_pods > 1:
            see(make.pod_group(f"u{unit}", 1, priority=priority, disruptionMode=mode))
        for i in range(n_pods):
            node = rng.choice(sorted(free)) if free else ""
            gpus = rng.randint(0, 2)
            if not node or free[node] < gpus:
                free.pop(node, None)
                continue
            free[node] -= gpus
            pod = make.pod(name=f"u{unit}-{i}", cpu=1, gpu=gpus, node=node, priority=priority)
            see(make.member(pod, f"u{unit}") if n_pods > 1 else pod)
    n = rng.choice((1, 3, 10, 30, 50, 60))
    each = rng.choice((2, 4, 8))
    has_leader = rng.random() < 0.4
    topology = rng.choice(("", "zone"))
    see(make.pod_group("gang", n + has_leader, topology=topology, priority=5))
    if has_leader:
        see(make.member(make.pod(name="leader", cpu=rng.choice((1, 60)), priority=5)))
    for i in range(n):
        see(make.member(make.pod(name=f"m{i}", cpu=2, gpu=each, priority=5)))
    return engine


def find_cost(engine: Engine) -> tuple[int, int] | None:
    """The highest priority of those that go, and how many go; None if no room is made."""
    cluster = engine._cluster
    outcome = engine.decide(0.0, Unlimited())
    checks.verify(cluster)
    if outcome.binds:
        return -1, 0
    gone = [cluster.pods[uid] for evict in outcome.evicts for uid in evict.victims]
    return (max(pod.priority for pod in gone), len(gone)) if gone else None


def find_costs(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    """What the room costs that is found in narrowed places, and what it costs in whole ones.

    Nobody is spared for whom others could go instead: that compares more units in a whole place than in a narrowed one.
    """
    monkeypatch.setattr(clearing, "spare_dearest", lambda _, __, found, *___: found)
    monkeypatch.setattr(clearing, "_FEW_PODS", 1)
    narrowed = find_cost(make_engine(seed))
    monkeypatch.setattr(clearing, "_FEW_PODS", 1 << 30)
    return narrowed, find_cost(make_engine(seed))


@pytest.mark.parametrize("seed", slices.pick_part(tuple(range(200))))
def test_room_is_found_if_the_whole_search_finds_some(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrowed, whole = find_costs(seed, monkeypatch)
    assert (narrowed is None) == (whole is None)
    if narrowed is not None and whole is not None:
        assert narrowed[0] <= whole[0]


def test_no_more_pods_go_than_after_the_whole_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Either search may end with a pod more or less; in sum over many worlds they are alike."""
    costs = [find_costs(seed, monkeypatch) for seed in range(40)]
    pairs = [(one[1], other[1]) for one, other in costs if one is not None and other is not None]
    n_narrowed, n_whole = map(sum, zip(*pairs, strict=True))
    assert n_whole > 500
    assert n_narrowed <= 1.05 * n_whole


def test_charges_are_lifted_for_a_question_only() -> None:
    engine = make_engine(1)
    cluster = engine._cluster
    before = cluster.nodes.columns.totals.copy(), cluster.ledger.pods.columns.node.copy()
    rows = np.flatnonzero(before[1] >= 0)
    with cluster.roster.lift_charges(rows):
        assert not cluster.nodes.columns.requested.any()
        assert not cluster.nodes.columns.pools.used.any()
    assert (cluster.nodes.columns.totals == before[0]).all()
    assert (cluster.ledger.pods.columns.node == before[1]).all()
    checks.verify(cluster)


def test_the_room_of_a_pod_that_is_leaving_counts_whatever_its_priority(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clearing, "_FEW_PODS", 1)
    engine = Engine(Config())
    for name, priority in (("leaves", 9), ("low", 0), ("stays", 9)):
        engine.handle(events.Seen(make.node(name=f"of-{name}", cpu=4)), 0.0)
        pod = make.pod(name=name, cpu=4, node=f"of-{name}", priority=priority)
        if name == "leaves":
            pod.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
        engine.handle(events.Seen(pod), 0.0)
    engine.handle(events.Seen(make.pod_group("gang", 2, priority=5)), 0.0)
    for i in range(2):
        pod = make.pod(name=f"m{i}", cpu=4, priority=5)
        engine.handle(events.Seen(make.member(pod)), 0.0)
    outcome = engine.decide(0.0, Unlimited())
    assert [one.victims for one in outcome.evicts] == [("default/low",)]
    assert {one.node for one in outcome.nominates} == {"of-leaves", "of-low"}
