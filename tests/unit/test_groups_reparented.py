"""A group of groups that comes late, goes or moves takes the pods below it along: they wait in one group at a time."""

from __future__ import annotations

import pytest

from scheduler.api import wire
from scheduler.api.door import events
from scheduler.api.groups.objects import CompositePodGroup
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.engine.questions.waiting import WhatWaits
from scheduler.state import checks
from scheduler.state.entities import Entity
from tests import make

KIND = "CompositePodGroup.scheduling.k8s.io"


class Scene:
    """Three pods in ``g``, which is in ``a``. No node takes any of them."""

    def __init__(self) -> None:
        self.engine, self.now = Engine(Config()), 0.0
        self.see(make.node(name="small", cpu=1))
        group = make.pod_group("g", 2)
        group.spec["parentCompositePodGroupName"] = "a"
        self.see(group)
        for i in range(3):
            self.see(make.member(make.pod(name=f"p{i}", cpu=2), "g"))

    def see(self, found: events.Object) -> None:
        self.engine.handle(events.Seen(found), self.now)

    def see_composite(self, name: str, parent: str = "", *, least: int = 1) -> None:
        spec: dict[str, object] = {"schedulingPolicy": {"gang": {"minGroupCount": least}}}
        if parent:
            spec["parentCompositePodGroupName"] = parent
        meta = wire.Meta(name=name, namespace="default", uid=name)
        self.see(CompositePodGroup(meta, spec))

    def list_waiting(self) -> dict[str, int]:
        """Decide, and list the groups that wait, each with how many pods it has."""
        self.now += 20.0
        assert not self.engine.decide(self.now, Unlimited()).binds
        checks.verify(self.engine._cluster)
        found = self.engine.ask(WhatWaits())
        return {one.group.name: len(one.pods) for one in found if one.group is not None}

    def check_room(self) -> None:
        """A node with room for all of them comes."""
        self.see(make.node(name="large", cpu=8))
        self.now += 20.0
        assert len(self.engine.decide(self.now, Unlimited()).binds) == 3


def test_one_that_is_deleted_leaves_its_pods_to_wait_for_it() -> None:
    scene = Scene()
    scene.see_composite("b")
    scene.see_composite("a", "b")
    assert scene.list_waiting() == {"b": 3}
    scene.engine.handle(events.Gone(KIND, "default/a"), scene.now)
    assert scene.list_waiting() == {"a": 3}
    scene.see(make.node(name="large", cpu=8))
    assert scene.list_waiting() == {"a": 3}
    scene.engine.handle(events.Gone("PodGroup.scheduling.k8s.io", "default/g"), scene.now)
    assert scene.list_waiting() == {"g": 3}
    for i in range(3):
        scene.engine.handle(events.Gone("Pod", f"default/p{i}"), scene.now)
    assert scene.list_waiting() == {}


def test_one_that_comes_late_takes_its_pods_to_the_group_around_it() -> None:
    scene = Scene()
    scene.see_composite("b")
    assert scene.list_waiting() == {"a": 3}
    scene.see_composite("a", "b")
    assert scene.list_waiting() == {"b": 3}
    scene.check_room()


@pytest.mark.parametrize("n_between", [0, 2])
def test_one_that_moves_takes_its_pods_along(n_between: int) -> None:
    scene = Scene()
    scene.see_composite("b")
    scene.see_composite("c")
    middle = ["a", *(f"m{i}" for i in range(n_between))]
    for one, above in zip(middle, [*middle[1:], "b"], strict=True):
        scene.see_composite(one, above)
    assert scene.list_waiting() == {"b": 3}
    scene.see_composite(middle[-1], "c")
    assert scene.list_waiting() == {"c": 3}
    scene.check_room()


def test_a_group_without_pods_that_moves_is_no_part_of_the_former_one_any_more() -> None:
    scene = Scene()
    scene.see_composite("a", least=2)
    scene.see_composite("b")
    for above in ("a", "b"):
        empty = make.pod_group("empty", 1)
        empty.spec |= {"parentCompositePodGroupName": above, "schedulingPolicy": {"basic": {}}}
        scene.see(empty)
        assert scene.list_waiting() == {"a": 3}
    scene.see(make.node(name="large", cpu=8))
    assert scene.list_waiting() == {"a": 3}
    [entry] = scene.engine._pending.list_groups()
    assert isinstance(entry.entity, Entity)
    assert entry.entity.lacks == "CompositePodGroup default/a needs 2 groups, and 1 exist"
