"""Domains that have not enough free for all pods of a group together are not tried, and none is ruled out that would do."""

from __future__ import annotations

import random
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.placing.groups import amounts
from scheduler.placing.groups.attempts import Attempt
from scheduler.schema.world import ANYWHERE
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Team
from scheduler.state.pods import PodRecord
from tests import make, slices
from tests.unit.calls import record_calls

N_RACKS = 20


def make_racks(engine: Engine, gpus: int = 8) -> None:
    """Make racks of two nodes each."""
    for number in range(2 * N_RACKS):
        labels = {"rack": f"r{number // 2:02}"}
        engine.handle(events.Seen(make.node(name=f"n{number:02}", cpu=64, gpus=gpus, labels=labels)), 0.0)  # fmt: skip


def see_gang(engine: Engine, n_pods: int, **more: Any) -> None:
    """A gang of two kinds of pods that requires a rack."""
    engine.handle(events.Seen(make.pod_group("gang", n_pods, topology="rack")), 0.0)
    for number in range(n_pods):
        pod = make.pod(name=f"m{number:02}", cpu=1 + number % 2, **more)
        engine.handle(events.Seen(make.member(pod)), 0.0)


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The teams that were tried, and in which domain."""
    return record_calls(monkeypatch, Attempt, "_place_by_wish")


def test_domains_with_too_little_for_all_kinds_together_are_not_tried(
    tries: list[tuple[Any, ...]],
) -> None:
    """A rack has 16 GPUs, which are enough for each kind by itself."""
    engine = Engine(Config(), is_shared=False)
    make_racks(engine)
    see_gang(engine, 20, gpu=1)
    outcome = engine.decide(0.0, Unlimited())
    assert not outcome.binds
    # The rack that comes closest is tried, to find out what it lacks; so it is once more for a later time.
    assert len(tries) <= 2
    (hold,) = outcome.holds
    assert hold.diagnosis is not None
    n_tried = len(tries)
    # Nothing that comes wakes the group while no rack has enough.
    engine.handle(events.Seen(make.node(name="x", cpu=64, gpus=8, labels={"rack": "x"})), 1.0)
    engine.decide(20.0, Unlimited())
    assert len(tries) == n_tried


def test_a_domain_that_has_enough_is_found(
    tries: list[tuple[Any, ...]],
) -> None:
    engine = Engine(Config(), is_shared=False)
    make_racks(engine)
    engine.handle(events.Seen(make.node(name="x", cpu=64, gpus=8, labels={"rack": "r13"})), 0.0)
    see_gang(engine, 20, gpu=1)
    outcome = engine.decide(0.0, Unlimited())
    assert len(outcome.binds) == 20
    assert {bind.node for bind in outcome.binds} == {"n26", "n27", "x"}
    assert len(tries) == 1


def test_devices_that_are_allocated_by_cards_are_not_summed_up() -> None:
    """A card of HAMi's takes several pods, whatever number of GPUs the node offers."""
    engine = Engine(Config(), is_shared=False)
    node = make.hami_node(name="n", cards=2, cpu=64)
    node.metadata.labels = {**(node.metadata.labels or {}), "rack": "r"}
    engine.handle(events.Seen(node), 0.0)
    see_gang(engine, 8, gpu=1, gpumem=1000)
    assert len(engine.decide(0.0, Unlimited()).binds) == 8


class Brute:
    """A cluster and pods that request random amounts of two resources."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.cluster = Cluster()
        self.n_domains = self.rng.randint(1, 3)
        self.domain = np.full(self.cluster.nodes.capacity, -1, np.int64)
        self.free: dict[int, list[tuple[int, int]]] = {}
        for number in range(self.rng.randint(1, 5)):
            cpu, gpus = self.rng.randint(1, 6), self.rng.randint(0, 4)
            self.cluster.see_node(make.node(name=f"n{number}", cpu=cpu, gpus=gpus))
            at = self.domain[number] = self.rng.randrange(-1, self.n_domains)
            self.free.setdefault(int(at), []).append((cpu, gpus))
        self._n = 0

    def make_team(self, depth: int = 0) -> Team:
        if depth < 2 and self.rng.random() < 0.5:
            teams = tuple(self.make_team(depth + 1) for _ in range(self.rng.randint(1, 3)))
            return Team("t", self.rng.randint(1, len(teams)), teams=teams)
        pods = tuple(self._make_pod() for _ in range(self.rng.randint(1, 4)))
        return Team("t", self.rng.randint(0, len(pods)), pods=pods)

    def _make_pod(self) -> PodRecord:
        self._n += 1
        cpu, gpu = self.rng.randint(1, 3), self.rng.randrange(3)
        pod = self.cluster.see_pod(make.pod(name=f"p{self._n}", cpu=cpu, gpu=gpu or None))
        assert pod is not None
        return pod


def read_amount(pod: PodRecord, resource: str) -> int:
    return dict(pod.template.requests.amounts).get(resource, 0)


def find_smallest(team: Team, resource: str) -> int:
    """Find the smallest sum of a resource over all choices of pods that are enough."""
    if team.teams:
        each = [find_smallest(one, resource) for one in team.teams]
    else:
        each = [read_amount(pod, resource) for pod in team.pods]
    return min(sum(chosen) for chosen in combinations(each, team.minimum))


@pytest.mark.parametrize("seed", slices.pick_part(tuple(range(400))))
def test_the_least_and_who_has_enough_are_those_of_brute_force(seed: int) -> None:
    world = Brute(seed)
    team = world.make_team()
    least = amounts.sum_least(world.cluster, team, amounts.find_all_waiting)
    wanted = [find_smallest(team, "cpu"), find_smallest(team, "nvidia.com/gpu")]
    find = world.cluster.nodes.resources.find
    assert [least[find("cpu")], least[find("nvidia.com/gpu")]] == wanted
    enough = amounts.find_enough(world.cluster, least, world.domain, world.n_domains, ANYWHERE)
    for number in range(world.n_domains):
        there = world.free.get(number, [])
        sums = [1000 * sum(cpu for cpu, _ in there), sum(gpus for _, gpus in there)]
        assert enough[number] == all(n <= have for n, have in zip(wanted, sums, strict=True))
