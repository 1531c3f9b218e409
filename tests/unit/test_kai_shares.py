"""Fair shares, the order of queues and the rules of reclaiming, against their twin and against figures of KAI's docs."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api.queues.kai import CARD, UNITS, UNLIMITED, KaiQueue, Vector, add
from scheduler.tenancy.kai.ordering import comes_before
from scheduler.tenancy.kai.rules import (
    Taker,
    find_over,
    find_preempt_seconds,
    find_reclaim_seconds,
    is_fair,
    may_reclaim,
)
from scheduler.tenancy.kai.shares import Claimant, divide
from scheduler.tenancy.kai.tree import BAD, CYCLE, INNER, MISSING, ORPHAN, Figures, Tree
from tests.oracles import kai_queues as twin
from tests.slices import count_examples

K = 1.0
PLAIN: Vector = (0, 0, 0)


def vector(cpu: int = 0, memory: int = 0, gpu: float = 0) -> Vector:
    return cpu, memory, round(gpu * CARD)


def amounts(of: Vector) -> twin.Amounts:
    return {"cpu": float(of[0]), "memory": float(of[1]), "gpu": of[2] / CARD}


def quota(of: Vector) -> twin.Amounts:
    return {
        what: -1.0 if one == UNLIMITED else one / unit
        for what, one, unit in zip(twin.RESOURCES, of, (1, 1, UNITS[2]), strict=True)
    }


class World:
    """Queues with pods in them, here and in the twin."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(seed)
        self.tree = Tree(K)
        self.twins: dict[str, twin.Queue] = {}
        self.leaves: list[str] = []
        self.total = vector(rng.randint(0, 40), rng.randint(0, 40), rng.choice((0, 3, 8, 8.5, 17)))
        usage = {}
        names = [f"q{i}" for i in range(rng.randint(2, 7))]
        for i, name in enumerate(names):
            parent = rng.choice(["", "", *names[:i]])
            one = KaiQueue(
                name,
                created=f"2026-01-0{rng.randint(1, 3)}T00:00:00Z",
                parent=parent,
                priority=rng.choice((100, 100, 100, 50)),
                quota=self.draw((0, 1, 2, 4, UNLIMITED)),
                limit=self.draw((UNLIMITED, UNLIMITED, 0, 3, 6)),
                weights=(rng.randint(0, 3), rng.randint(0, 3), rng.choice((0.0, 1.0, 2.5))),
            )
            self.tree.put(one)
            if rng.random() < 0.3:
                usage[name] = rng.random(), rng.random(), rng.random()
            self.twins[name] = twin.Queue(
                name,
                parent,
                one.created,
                one.priority,
                quota(one.quota),
                quota(one.limit),
                dict(zip(twin.RESOURCES, one.weights, strict=True)),
                dict(zip(twin.RESOURCES, usage.get(name, (0.0, 0.0, 0.0)), strict=True)),
            )
        parents = {one.parent for one in self.twins.values()}
        self.leaves = [name for name in names if name not in parents]
        for name in self.leaves:
            for _ in range(rng.randint(0, 5)):
                self.add_pod(name)
        self.tree.share_out(self.total, usage)
        twin.share_out(list(self.twins.values()), amounts(self.total), K)

    def draw(self, choices: tuple[int, ...]) -> Vector:
        cpu, memory, gpu = (self.rng.choice(choices) for _ in range(3))
        return cpu, memory, gpu if gpu == UNLIMITED else gpu * CARD

    def draw_pod(self) -> Vector:
        rng = self.rng
        return vector(rng.randint(0, 3), rng.randint(0, 3), rng.choice((0, 0.25, 0.5, 1, 2)))

    def add_pod(self, queue: str) -> None:
        asks = self.draw_pod()
        is_held, is_fixed = self.rng.random() < 0.7, self.rng.random() < 0.3
        held = asks if is_held else PLAIN
        fixed = held if is_fixed else PLAIN
        self.tree.add(queue, Figures(held, fixed, asks), 1)
        for one in twin.path(self.twins, queue):
            one.held = twin.plus(one.held, amounts(held))
            one.fixed = twin.plus(one.fixed, amounts(fixed))
            one.request = twin.plus(one.request, amounts(asks))


@given(st.integers(0, 10**9))
@settings(max_examples=count_examples(2000))
def test_shares_are_those_of_the_twin(seed: int) -> None:
    world = World(seed)
    for name, one in world.twins.items():
        fair = world.tree.queues[name].fair
        assert (fair[0], fair[1]) == (one.fair["cpu"], one.fair["memory"])
        assert fair[2] / CARD == pytest.approx(one.fair["gpu"], abs=1e-9)


@given(st.integers(0, 10**9))
@settings(max_examples=count_examples(2000))
def test_the_order_is_that_of_the_twin(seed: int) -> None:
    world = World(seed)
    rng, queues = world.rng, world.tree.queues
    for name, other in ((a, b) for a in queues for b in queues if a != b):
        if queues[name].defined.parent != queues[other].defined.parent:
            continue
        wants = world.draw_pod(), world.draw_pod()
        gone = (world.draw_pod(), world.draw_pod()) if rng.random() < 0.5 else (PLAIN, PLAIN)
        found = comes_before(queues[name], queues[other], wants, world.total, gone)
        expected = twin.first(
            world.twins[name],
            world.twins[other],
            (amounts(wants[0]), amounts(wants[1])),
            amounts(world.total),
            (amounts(gone[0]), amounts(gone[1])),
        )
        assert found == (expected == name)


@given(st.integers(0, 10**9))
@settings(max_examples=count_examples(2000))
def test_what_is_fair_to_take_is_what_the_twin_says(seed: int) -> None:
    world = World(seed)
    rng, tree = world.rng, world.tree
    if len(world.leaves) < 2:
        return
    taker, *others = rng.sample(world.leaves, len(world.leaves))
    wants, is_preemptible = world.draw_pod(), rng.random() < 0.7
    multiplier = rng.choice((1.0, 1.0, 1.5))
    victims = {name: [world.draw_pod() for _ in range(rng.randint(1, 2))] for name in others[:2]}
    who = Taker(tree.queues[taker], wants, is_preemptible)
    found = is_fair(tree, who, victims, multiplier)
    assert found == twin.may_take(
        world.twins,
        taker,
        amounts(wants),
        [(name, list(map(amounts, parts))) for name, parts in victims.items()],
        preemptible=is_preemptible,
        multiplier=multiplier,
    )
    own = world.twins[taker]
    may = twin.within(twin.plus(own.held, amounts(wants)), own.fair)
    if not is_preemptible:
        may = may and twin.within(twin.plus(own.fixed, amounts(wants)), own.quota)
    assert may_reclaim(who) == may


@pytest.mark.parametrize(
    ("total", "queues", "shares"),
    [
        # Of each queue: quota, limit, weight, request and priority.
        (8, [(2, -1, 1, 8, 100), (2, -1, 1, 8, 100)], [4, 4]),
        (8, [(2, -1, 3, 8, 100), (2, -1, 1, 8, 100)], [5, 3]),
        (8, [(2, -1, 1, 3, 100), (2, -1, 1, 8, 100)], [3, 5]),
        (8, [(0, -1, 1, 8, 100), (0, -1, 1, 8, 50)], [8, 0]),
        # Five cards for three: one each, then the two that nobody got whole go to the oldest.
        (5, [(0, -1, 1, 9, 100), (0, -1, 1, 9, 100), (0, -1, 1, 9, 100)], [2, 2, 1]),
        (8, [(-1, -1, 0, 8, 100), (2, -1, 1, 8, 100)], [8, 2]),
        (8, [(4, 3, 1, 8, 100), (0, -1, 1, 8, 100)], [3, 5]),
        (8, [(0, 0, 1, 8, 100), (0, -1, 1, 8, 100)], [0, 8]),
        # Without a weight nothing that is over quotas.
        (8, [(1, -1, 0, 8, 100), (1, -1, 0, 8, 100)], [1, 1]),
        # Half a card that nobody asks whole stays whole.
        (1, [(0, -1, 1, 0.5, 100), (0, -1, 1, 2, 100)], [0.5, 0.5]),
    ],
)
def test_shares_by_hand(total: float, queues: list[tuple[float, ...]], shares: list[float]) -> None:
    claimants = [
        Claimant(q, limit, weight, request, priority=int(priority), age=("", str(i)))
        for i, (q, limit, weight, request, priority) in enumerate(queues)
    ]
    divide(total, K, claimants)
    assert [one.share for one in claimants] == shares


def test_what_was_used_counts_against_the_weight() -> None:
    claimants = [
        Claimant(0, -1, 1, 100, usage=0.5, age=("", "0")),
        Claimant(0, -1, 1, 100, usage=0.0, age=("", "1")),
    ]
    divide(10, 1.0, claimants)
    # 0.5 + (0.5 - 0.5) against 0.5 + 0.5.
    assert [one.share for one in claimants] == [3, 7]


def test_if_all_have_used_too_much_nothing_is_divided() -> None:
    claimants = [Claimant(1, -1, 1, 9, usage=1.0, age=("", str(i))) for i in range(2)]
    divide(8, 4.0, claimants)
    assert [one.share for one in claimants] == [1, 1]


def test_queues_that_start_no_pod_are_named() -> None:
    tree = Tree(K)
    for name, parent, mistake in (
        ("top", "", ""),
        ("leaf", "top", ""),
        ("orphan", "gone", ""),
        ("below", "orphan", ""),
        ("a", "b", ""),
        ("b", "a", ""),
        ("wrong", "", "spec.priority: is no number"),
    ):
        tree.put(KaiQueue(name, parent=parent, mistake=mistake))
    tree.put(KaiQueue("c", parent="a"))
    tree.settle()
    wanted = {"top": INNER, "leaf": "", "orphan": INNER, "below": ORPHAN, "a": INNER, "c": CYCLE}
    assert {name: tree.find_problem(name) for name in wanted} == wanted
    assert tree.find_problem("wrong") == BAD
    assert tree.find_problem("nowhere") == MISSING


def test_what_is_held_follows_queues_that_move() -> None:
    tree = Tree(K)
    held = Figures(vector(gpu=2), PLAIN, vector(gpu=2))
    tree.add("leaf", held, 1)
    for one in (KaiQueue("top"), KaiQueue("other"), KaiQueue("leaf", parent="top")):
        tree.put(one)
    tree.settle()
    assert tree.queues["top"].figures == held
    tree.put(KaiQueue("leaf", parent="other"))
    tree.settle()
    assert tree.queues["top"].figures == Figures()
    assert tree.queues["other"].figures == tree.queues["leaf"].figures == held
    tree.drop("leaf")
    tree.add("leaf", held, -1)
    tree.settle()
    assert tree.queues["other"].figures == Figures()


def test_limits_hold_at_every_level_and_quotas_for_what_stays() -> None:
    tree = Tree(K)
    free = (UNLIMITED,) * 3
    tree.put(KaiQueue("top", limit=(UNLIMITED, UNLIMITED, 3 * CARD), quota=free))
    tree.put(KaiQueue("leaf", parent="top", limit=free, quota=(UNLIMITED, UNLIMITED, CARD)))
    tree.add("leaf", Figures(vector(gpu=2), vector(gpu=1), vector(gpu=2)), 1)
    tree.settle()
    leaf = tree.queues["leaf"]
    assert find_over(Taker(leaf, vector(gpu=1), is_preemptible=True)) is None
    over = find_over(Taker(leaf, vector(gpu=2), is_preemptible=True))
    assert over is not None
    assert (over.reason, over.queue, over.held, over.most) == ("OverLimit", "top", 2 * CARD, 3 * CARD)  # fmt: skip
    over = find_over(Taker(leaf, vector(gpu=0.5), is_preemptible=False))
    assert over is not None
    assert (over.reason, over.queue) == ("NonPreemptibleOverQuota", "leaf")
    # What wants nothing of a resource is not held by it.
    assert find_over(Taker(leaf, vector(cpu=9), is_preemptible=False)) is None


def test_protection_is_found_where_the_ways_part() -> None:
    tree = Tree(K)
    for one in (
        KaiQueue("east", reclaim_seconds=60.0, preempt_seconds=5.0),
        KaiQueue("west", reclaim_seconds=30.0),
        KaiQueue("a", parent="east", reclaim_seconds=10.0),
        KaiQueue("b", parent="east"),
        KaiQueue("c", parent="west"),
    ):
        tree.put(one)
    tree.settle()
    a, b, c = (tree.queues[name] for name in "abc")
    assert find_reclaim_seconds(a, b, by_common=True) == 10.0
    assert find_reclaim_seconds(b, a, by_common=True) == 60.0
    assert find_reclaim_seconds(a, c, by_common=True) == 60.0
    assert find_reclaim_seconds(a, c, by_common=False) == 10.0
    assert find_reclaim_seconds(c, a, by_common=True) == 30.0
    assert (find_preempt_seconds(a), find_preempt_seconds(c)) == (5.0, 0.0)


def test_amounts_add_up() -> None:
    assert add((1, 2, 3), (1, 1, 1)) == (2, 3, 4)
    assert add((1, 2, 3), (1, 1, 1), -1) == (0, 1, 2)
