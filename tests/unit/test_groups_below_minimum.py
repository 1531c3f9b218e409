"""Running groups that lose pods: the missing ones join them, or the group goes as a whole to start anew."""

from typing import Any

import pytest

from scheduler.api import names, wire
from scheduler.api.door import events
from scheduler.api.door.decisions import Evict, Outcome, Why
from scheduler.api.door.notes import GroupHeld
from scheduler.api.groups import objects
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.telling.departures import describe_departure
from tests import make

GANG = "gang.scheduling.koordinator.sh/"


class Scene:
    """Racks of two nodes with four CPUs each, and time."""

    def __init__(self, n_nodes: int = 4) -> None:
        self.engine = Engine(Config())
        self.now = 1000.0
        self.bodies: dict[str, wire.Pod] = {}
        for i in range(n_nodes):
            self.see(make.node(name=f"n{i}", cpu=4, labels={"rack": f"r{i // 2}"}))

    def see(self, *found: events.Object) -> None:
        for one in found:
            self.engine.handle(events.Seen(one), self.now)

    def gone(self, *pods: str) -> None:
        for name in pods:
            self.engine.handle(events.Gone("Pod", f"default/{name}"), self.now)

    def decide(self, after: float = 1.0) -> Outcome:
        self.now += after
        return self.engine.decide(self.now, Unlimited())

    def evicts(self, after: float) -> list[Evict]:
        return self.decide(after).evicts


def train(on_failure: str = "", *, topology: str = "rack") -> objects.KubePodGroup:
    group = make.pod_group("gang", 2, topology=topology)
    if on_failure:
        group.metadata.annotations = {names.ON_FAILURE: on_failure}
    return group


def member(name: str, node: str = "", **more: Any) -> wire.Pod:
    return make.member(make.pod(name=name, cpu=4, node=node, **more))


def make_broken(on_failure: str) -> Scene:
    """A gang of two in rack r0, one of which is lost with its node; its replacement has room in rack r1 alone."""
    scene = Scene()
    scene.see(train(on_failure), member("a", "n0"), member("b", "n1"))
    assert not scene.evicts(1)
    scene.engine.handle(events.Gone("Node", "n1"), scene.now)
    scene.gone("b")
    scene.see(member("b2"))
    return scene


def test_a_group_that_wants_to_start_anew_goes_whole_once_the_lost_pod_fits_nowhere() -> None:
    scene = make_broken("restart")
    assert not scene.evicts(1)
    assert not scene.evicts(50)
    (evict,) = scene.evicts(20)
    assert (evict.units, evict.why, evict.is_asked) == (
        (("default/a",),),
        Why.BELOW_MINIMUM,
        True,
    )
    scene.gone("a")
    scene.see(member("a2"))
    binds = {bind.uid: bind.node for bind in scene.decide(1).binds}
    assert sorted(binds.values()) == ["n2", "n3"]


@pytest.mark.parametrize("on_failure", ["", "replace"])
def test_a_group_that_does_not_want_it_waits_for_room_in_its_domain(on_failure: str) -> None:
    scene = make_broken(on_failure)
    assert not [evict for _ in range(5) for evict in scene.evicts(100)]
    scene.see(make.node(name="n5", cpu=4, labels={"rack": "r0"}))
    assert [(bind.uid, bind.node) for bind in scene.decide(20).binds] == [("default/b2", "n5")]


def test_nobody_goes_if_the_group_would_fit_nowhere_as_a_whole() -> None:
    scene = make_broken("restart")
    scene.see(make.pod(name="x", cpu=4, node="n3"))
    assert not [evict for _ in range(5) for evict in scene.evicts(100)]
    scene.gone("x")
    assert [evict for _ in range(3) for evict in scene.evicts(70)]


def test_a_group_whose_lost_pod_is_placed_in_time_stays() -> None:
    scene = make_broken("restart")
    scene.decide(30)
    scene.see(make.node(name="n1", cpu=4, labels={"rack": "r0"}))
    assert scene.decide(15).binds
    assert not [evict for _ in range(5) for evict in scene.evicts(100)]


def test_a_group_whose_lost_pod_nobody_makes_again_goes_if_it_asks_for_that() -> None:
    scene = Scene()
    scene.see(train("restart"), member("a", "n0"), member("b", "n1"))
    scene.decide()
    scene.gone("b")
    assert not scene.evicts(1)
    assert len(scene.evicts(70)) == 1


def test_a_pod_that_stays_is_evicted_again_after_another_grace_period() -> None:
    scene = Scene()
    scene.see(train("restart"), member("a", "n0"))
    scene.decide()
    assert len(scene.evicts(70)) == 1
    scene.engine.handle(events.EvictFailed("default/a", "a budget says no"), scene.now)
    assert not scene.evicts(30)
    assert len(scene.evicts(61)) == 1


def test_a_stale_gang_of_kai_goes_after_its_grace_period_whatever_it_says() -> None:
    scene = Scene()
    meta = wire.Meta(name="g", namespace="default", uid="g")
    scene.see(objects.KaiPodGroup(meta, {"minMember": 2}))
    notes = {names.KAI_GROUP: "g"}
    scene.see(make.pod(name="a", cpu=4, node="n0", annotations=notes))
    scene.see(make.pod(name="b", cpu=4, node="n1", annotations=notes))
    assert not scene.evicts(100)
    scene.gone("b")
    assert not scene.evicts(0)
    assert not scene.evicts(59)
    (evict,) = scene.evicts(2)
    words = describe_departure(evict, "evenkeel")
    assert evict.victims == ("default/a",)
    assert words.note == (
        "PodGroup default/g lacks 1 pod until it has its minimum: all its pods go, so that it can start anew"
    )


class Kai(Scene):
    """Pods of a gang of KAI, each of which needs a node for itself, and of a gang that is told to start anew."""

    def __init__(self, minimum: int, *, restarts: bool = False) -> None:
        super().__init__(n_nodes=0)
        for i in range(minimum):
            self.add_node(f"n{i}", "r0")
        self.notes = {names.KAI_GROUP: "g"}
        if restarts:
            self.notes = {GANG + "name": "g", GANG + "min-available": str(minimum)}
            self.notes |= {names.ON_FAILURE: "restart", names.KUEUE_REQUIRED: "rack"}
            guarded = wire.GuardedMeta(name="t", uid="t")
            self.see(objects.KueueTopology(guarded, {"levels": [{"nodeLabel": "rack"}]}))
        else:
            meta = wire.Meta(name="g", namespace="default", uid="g")
            self.see(objects.KaiPodGroup(meta, {"minMember": minimum}))
        for i in range(minimum):
            self.come(f"g-{i}", f"n{i}")
        self.decide()

    def add_node(self, name: str, rack: str) -> None:
        self.see(make.node(name=name, cpu=4, labels={"rack": rack}))

    def come(self, name: str, node: str = "") -> None:
        pod = make.pod(name=name, cpu=4, node=node, priority=5, annotations=self.notes)
        self.see(pod)

    def lose(self, *others: tuple[int, int]) -> None:
        """Lose pods by their numbers, each with the priority of the pod that comes in its place."""
        for i, priority in others:
            self.gone(f"g-{i}")
            self.see(make.pod(name=f"other-{i}", cpu=4, node=f"n{i}", priority=priority))
        self.decide()


@pytest.mark.parametrize("seconds", [15, 25])
@pytest.mark.parametrize("restarts", [False, True])
def test_a_gang_stays_while_victims_leave_for_the_pod_that_it_lacks(
    *, restarts: bool, seconds: int
) -> None:
    scene = Kai(2, restarts=restarts)
    scene.lose((1, 0))
    scene.come("again")
    (evict,) = scene.evicts(40)
    assert evict.victims == ("default/other-1",)
    if restarts:
        # The whole gang has room there.
        scene.add_node("m0", "r1")
        scene.add_node("m1", "r1")
    assert not scene.evicts(seconds)
    scene.gone("other-1")
    outcome = scene.decide(10)
    assert [bind.uid for bind in outcome.binds] == ["default/again"]
    assert not outcome.evicts


def test_a_gang_goes_after_all_if_no_room_is_made_for_the_pod_that_it_lacks() -> None:
    scene = Kai(2)
    scene.lose((1, 0))
    scene.come("again")
    assert scene.evicts(40)
    scene.engine.handle(events.EvictFailed("default/other-1", "no", is_refused=True), scene.now)
    found = [one.victims for _ in range(8) for one in scene.evicts(10)]
    assert found == [("default/g-0",)]


@pytest.mark.parametrize("restarts", [False, True])
def test_nobody_goes_for_a_gang_that_lacks_pods_that_do_not_exist(*, restarts: bool) -> None:
    scene = Kai(3, restarts=restarts)
    scene.lose((1, 0), (2, 0))
    scene.come("again")
    assert not scene.evicts(40)
    scene.come("again-too")
    (evict,) = scene.evicts(5)
    assert set(evict.victims) == {"default/other-1", "default/other-2"}


def test_a_gang_goes_if_a_pod_is_gone_again_for_which_others_leave() -> None:
    scene = Kai(3)
    scene.lose((1, 0), (2, 0))
    scene.come("again")
    scene.come("again-too")
    assert scene.evicts(40)
    scene.gone("again-too")
    assert [one.victims for one in scene.evicts(30)] == [("default/g-0",)]


def test_nobody_goes_for_one_pod_of_a_gang_that_lacks_two() -> None:
    scene = Kai(3)
    scene.lose((1, 0), (2, 9))
    scene.come("again")
    scene.come("again-too")
    assert not scene.evicts(40)
    assert [one.victims for one in scene.evicts(30)] == [("default/g-0",)]


def test_a_gang_whose_binds_are_under_way_is_not_below_its_minimum() -> None:
    scene = Scene()
    scene.see(train("restart", topology=""), member("a"), member("b"))
    first, _ = scene.decide().binds
    scene.engine.handle(events.BindDone(first.uid), scene.now)
    assert not [evict for _ in range(3) for evict in scene.evicts(100)]


def test_the_pods_may_say_it_where_no_object_does() -> None:
    scene = Scene()
    notes = {GANG + "name": "g", GANG + "min-available": "2", names.ON_FAILURE: "restart"}
    scene.see(make.pod(name="a", cpu=4, node="n0", annotations=notes))
    scene.see(make.pod(name="b", cpu=4, node="n1", annotations=notes))
    scene.decide()
    scene.gone("b")
    scene.decide()
    assert len(scene.evicts(70)) == 1


def lose_one(group: objects.KubePodGroup, owner: objects.Job | None, **more: Any) -> list[Evict]:
    """Let a gang with an object lose a pod that nobody makes again; return who goes then."""
    scene = Scene()
    pods = [member("a", "n0", **more), member("b", "n1", **more)]
    scene.see(group, *([owner] if owner else []))
    for pod in pods:
        pod.metadata.owner_references = [
            wire.Owner(kind="Job", name="j", api_version="batch/v1", controller=True)
        ]
        scene.see(pod)
    scene.decide()
    scene.gone("b")
    scene.decide()
    return scene.evicts(70)


def job(on_failure: str) -> objects.Job:
    meta = wire.Meta(name="j", namespace="default", uid="j")
    meta.annotations = {names.ON_FAILURE: on_failure}
    return objects.Job(metadata=meta, spec={"parallelism": 2})


@pytest.mark.parametrize(
    ("by_object", "by_owner", "by_pods", "is_to_go"),
    [
        ("", "", "", False),
        ("", "", "restart", True),
        ("", "restart", "", True),
        ("", "replace", "restart", False),
        ("replace", "", "restart", False),
        ("replace", "restart", "restart", False),
        ("restart", "replace", "replace", True),
    ],
)
def test_the_object_has_the_first_word_then_the_owner_then_the_pods(
    by_object: str, by_owner: str, by_pods: str, *, is_to_go: bool
) -> None:
    owner = job(by_owner) if by_owner else None
    annotations = {names.ON_FAILURE: by_pods} if by_pods else {}
    assert bool(lose_one(train(by_object), owner, annotations=annotations)) == is_to_go


def test_an_owner_that_changes_its_mind_is_heard() -> None:
    scene = Scene()
    pod = member("a", "n0")
    pod.metadata.owner_references = [
        wire.Owner(kind="Job", name="j", api_version="batch/v1", controller=True)
    ]
    scene.see(train(), pod, member("b", "n1"))
    scene.decide()
    scene.gone("b")
    assert not scene.evicts(100)
    scene.see(job("restart"))
    scene.decide()
    assert scene.evicts(70)


def test_pods_of_groups_that_name_each_other_may_say_it_too() -> None:
    scene = Scene()
    for name, own, minimum in (("a", "g0", "2"), ("b", "g0", "2"), ("c", "g1", "1")):
        notes = {GANG + "name": own, GANG + "min-available": minimum, names.ON_FAILURE: "restart"}
        notes[GANG + "groups"] = '["default/g0", "default/g1"]'
        scene.see(make.pod(name=name, cpu=1, node="n0", annotations=notes))
    scene.decide()
    scene.gone("b")
    scene.decide()
    (evict,) = scene.evicts(70)
    assert evict.victims == ("default/a", "default/c")


def test_another_word_is_a_mistake_that_names_what_is_allowed() -> None:
    scene = Scene()
    scene.see(train("explode"), member("a"), member("b"))
    found = [note for _ in range(3) for note in scene.decide(2).notes]
    (held,) = [note for note in found if isinstance(note, GroupHeld)]
    assert "on-failure]: 'explode' is neither" in held.why


def test_a_group_of_which_only_some_pods_are_made_again_goes_too() -> None:
    scene = Scene()
    group = make.pod_group("gang", 3)
    group.metadata.annotations = {names.ON_FAILURE: "restart"}
    scene.see(group, member("a", "n0"), member("b", "n1"), member("c", "n2"))
    scene.decide()
    scene.gone("b", "c")
    scene.see(member("b2"))
    scene.decide()
    assert [evict.units for evict in scene.evicts(70)] == [(("default/a",),)]


def test_many_groups_go_a_few_with_each_call() -> None:
    scene = Scene(n_nodes=30)
    for i in range(30):
        group = make.pod_group(f"g{i}", 2)
        group.metadata.annotations = {names.ON_FAILURE: "restart"}
        scene.see(group)
        for j in range(2):
            pod = make.pod(name=f"g{i}-{j}", cpu=1, node=f"n{i}")
            scene.see(make.member(pod, f"g{i}"))
    assert not scene.evicts(1)
    scene.gone(*(f"g{i}-0" for i in range(30)))
    assert not scene.evicts(1)
    gone = [scene.evicts(after) for after in (60, 0, 0, 0)]
    assert max(map(len, gone)) < 30
    assert {uid for evicts in gone for one in evicts for uid in one.victims} == {
        f"default/g{i}-1" for i in range(30)
    }
    assert scene.engine.find_due(scene.now) > scene.now
