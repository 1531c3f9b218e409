"""A group that lives: members come and go, binds fail, nodes come. It is never placed in part, and never forgotten."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.chores import PROMPT
from scheduler.engine.engine import Engine
from scheduler.state import checks
from tests import make, slices

GROUP = "group PodGroup.scheduling.k8s.io default/group"


class World:
    """An engine, a group and some pods beside, and what is known of them outside of it.

    Attributes:
        waiting: members that no bind is known to have succeeded for.
        bound: members that are bound, and not gone.
        under_way: pods of which nobody knows yet what became of their bind.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.engine, self.now = Engine(Config(), pace=PROMPT), 0.0
        self.n_made = 0
        self.bound: list[str] = []
        self.minimum = self.rng.randrange(1, 6)
        topology = self.rng.choice(("", "rack"))
        self.handle(events.Seen(make.pod_group("group", self.minimum, topology=topology)))
        self.waiting: list[str] = []
        self.under_way: list[str] = []
        for _ in range(3):
            self.add_node()

    def handle(self, event: events.Event) -> None:
        self.engine.handle(event, self.now)

    def add_node(self, cpu: int = 0, rack: str = "") -> None:
        self.n_made += 1
        cpu = cpu or self.rng.choice((2, 4, 6))
        labels = {"rack": rack or self.rng.choice("xxy")}
        self.handle(events.Seen(make.node(name=f"n{self.n_made}", cpu=cpu, labels=labels)))

    def add_pod(self, *, joins: bool = False) -> str:
        self.n_made += 1
        pod = make.pod(name=f"p{self.n_made}", cpu=self.rng.choice((1, 2, 3)))
        if joins:
            make.member(pod, "group")
        self.handle(events.Seen(pod))
        return pod.metadata.uid

    def add_member(self) -> None:
        self.waiting.append(self.add_pod(joins=True))

    def delete(self) -> None:
        if uids := sorted(self.engine._cluster.pods):
            uid = self.rng.choice(uids)
            for there in (self.waiting, self.bound):
                if uid in there:
                    there.remove(uid)
            self.handle(events.Gone("Pod", uid))

    def end_bind(self) -> None:
        if self.under_way:
            uid = self.under_way.pop(self.rng.randrange(len(self.under_way)))
            is_there = uid in self.engine._cluster.pods
            if not is_there or self.rng.random() < 0.3:
                self.handle(events.BindFailed(uid, "refused", gone=not is_there))
                return
            self.handle(events.BindDone(uid))
            if uid in self.waiting:
                self.waiting.remove(uid)
                self.bound.append(uid)

    def wait(self) -> None:
        self.now += self.rng.choice((0.5, 2.0, 12.0))

    def decide(self) -> None:
        for plan in self.engine.decide(self.now, Unlimited()).plans:
            uids = [bind.uid for bind in plan.binds]
            assert not set(uids) & set(self.under_way)
            self.under_way += uids
            if plan.entity == GROUP and uids:
                assert set(uids) <= set(self.waiting)
                n_under_way = sum(uid in self.under_way for uid in self.waiting)
                assert len(self.bound) + n_under_way >= self.minimum
        checks.verify(self.engine._cluster)
        left = {pod.uid for pod in self.engine._pending.list_pods()}
        assert left >= set(self.waiting)


@pytest.mark.parametrize("seed", slices.pick_part(tuple(range(200))))
def test_a_group_is_never_placed_in_part_and_never_forgotten(seed: int) -> None:
    """Where it can be complete, all of it is bound once there is room and binds succeed."""
    world = World(seed)
    happenings: list[Callable[[], Any]] = [world.add_member, world.add_pod, world.add_node, world.delete, world.end_bind,
                  world.end_bind, world.wait, world.decide, world.decide]  # fmt: skip
    for _ in range(60):
        happen = world.rng.choice(happenings)
        happen()
    is_complete = len(world.waiting) + len(world.bound) >= world.minimum
    for rack in "xyxyxy":
        world.add_node(64, rack)
    for _ in range(60):
        world.decide()
        world.end_bind()
        world.now += 2.0
    if is_complete:
        assert not world.waiting
    else:
        assert {pod.uid for pod in world.engine._pending.list_pods()} >= set(world.waiting)
