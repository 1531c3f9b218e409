"""Several pods that are decided about as one: enough of them are placed at once, or none is."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from scheduler.api import wire
from scheduler.api.cards import list_uses
from scheduler.api.door import events
from scheduler.api.door.decisions import Outcome, Plan
from scheduler.api.groups import objects
from scheduler.config import Config
from scheduler.engine.allowance import SpentAllowance, Unlimited
from scheduler.engine.chores import PROMPT, Pace
from scheduler.engine.engine import Engine
from scheduler.state import checks
from scheduler.state.budgets.budgets import Budgets
from scheduler.waiting.entries import Where
from tests import make

ALL = ["a", "b", "c", "d"]
GANG, LATER = (f"group PodGroup.scheduling.k8s.io default/{one}" for one in ("gang", "later"))


class Gang:
    """An engine with some nodes, and a group of pods on it."""

    def __init__(self, *nodes: wire.Node, pace: Pace = PROMPT) -> None:
        self.engine = Engine(Config(), pace=pace)
        self.now = 0.0
        for one in nodes:
            self.see(one)

    def see(self, found: wire.Node | wire.Pod) -> None:
        self.engine.handle(events.Seen(found), self.now)

    def gone(self, name: str) -> None:
        self.engine.handle(events.Gone("Pod", f"default/{name}"), self.now)

    def group(self, *pods: wire.Pod, minimum: int, topology: str = "", name: str = "gang") -> None:
        """A group is described, and its pods come."""
        priority = pods[0].spec.priority
        group = make.pod_group(name, minimum, topology=topology, priority=priority)
        self.engine.handle(events.Seen(group), self.now)
        for pod in pods:
            self.see(make.member(pod, name))

    def decide(self, pods: int = 2**40) -> Outcome:
        outcome = self.engine.decide(self.now, Unlimited(pods))
        checks.verify(self.engine._cluster)
        return outcome

    def end(self, *names: str, failed: bool = False) -> None:
        for name in names:
            uid = f"default/{name}"
            event = events.BindFailed(uid, "refused") if failed else events.BindDone(uid)
            self.engine.handle(event, self.now)
        self.engine._settle_groups(self.now)

    @property
    def counts(self) -> dict[str, int]:
        return {str(where): n for where, n in self.engine._pending.count_pods().items() if n}


def pods(*names: str, cpu: str = "4", **more: object) -> list[wire.Pod]:
    return [make.pod(name=name, cpu=cpu, **more) for name in names]  # type: ignore[arg-type]


def bound(plan: Plan) -> list[str]:
    return [bind.uid.removeprefix("default/") for bind in plan.binds]


@contextmanager
def unchanged(gang: Gang) -> Iterator[None]:
    """What is decided leaves all columns as they are."""
    before = checks.take_fingerprint(gang.engine._cluster)
    yield
    assert checks.take_fingerprint(gang.engine._cluster) == before


def test_a_group_that_fits_is_one_plan() -> None:
    gang = Gang(make.node(name="m", cpu="8"), make.node(name="n", cpu="8"))
    gang.group(*pods(*ALL), minimum=4)
    (plan,) = gang.decide().plans
    assert (plan.entity, bound(plan), plan.hold) == (GANG, ALL, None)
    assert {bind.node for bind in plan.binds} == {"m", "n"}
    gang.end(*ALL)
    assert len(gang.engine._pending) == 0


def test_each_member_gets_cards_of_its_own() -> None:
    cards = make.cards(count=4, mib=16_000)
    gang = Gang(make.hami_node(name="n", cards=cards))
    members = [make.pod(name=name, cpu="1", gpu=1, gpumem=16_000) for name in ALL]
    gang.group(*members, minimum=4)
    (plan,) = gang.decide().plans
    assert len({use.uuid for bind in plan.binds for use in list_uses(bind.devices)}) == 4


def test_a_group_that_does_not_fit_takes_nothing_and_is_told_once_why() -> None:
    """Who comes after it finds all the room; the group is placed when there is room for all of it."""
    gang = Gang(make.node(name="n", cpu="12"))
    gang.group(*pods(*ALL), minimum=4)
    with unchanged(gang):
        (plan,) = gang.decide().plans
    assert (plan.entity, plan.binds) == (GANG, ())
    assert plan.hold is not None
    assert plan.hold.uid == "default/d"
    assert plan.hold.diagnosis is not None
    assert plan.hold.diagnosis.reasons == (("Insufficient cpu", 1),)
    assert gang.counts == {"unschedulable": 4}
    gang.see(make.pod(name="other", cpu="12"))
    (other,) = gang.decide().plans
    assert bound(other) == ["other"]
    gang.see(make.node(name="m", cpu="16"))
    (plan,) = gang.decide().plans
    assert bound(plan) == ALL


def test_a_group_that_does_not_fit_waits_for_nobody_who_looks_whose_place_it_could_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It takes nobody's place, so it is told at once while it is not known yet what budgets cover."""
    monkeypatch.setattr(Budgets, "is_behind", property(lambda _: True))
    gang = Gang(make.node(name="n", cpu="12"))
    gang.group(*pods(*ALL), minimum=4)
    pod = make.pod(name="alone", cpu="16")
    gang.see(pod)
    outcome = gang.engine.decide(0.0, SpentAllowance(9, (9, 9, 1)))
    assert [hold.uid for hold in outcome.holds] == ["default/d"]
    assert gang.counts == {"unschedulable": 4, "active": 1}


def test_a_member_by_itself_takes_nobodys_place_and_is_told_nothing_by_itself() -> None:
    """It alone could have the place of the low pod, but the group could not: nothing would be won by an eviction."""
    gang = Gang(make.node(name="n", cpu="8"), pace=Pace(help=0.0, explain=1.0))
    for pod in (make.pod(name="low", cpu="4", node="n"), make.pod(name="goes", cpu="1", node="n")):
        gang.see(pod)
    gang.see(make.pod(name="high", cpu="3", node="n", priority=100))
    gang.group(*pods("a", "b", priority=10), minimum=2)
    assert gang.decide().holds
    gang.gone("goes")
    for _ in range(20):
        gang.now += 2.0
        outcome = gang.decide()
        assert not outcome.plans
        assert not outcome.explained
    entry = gang.engine._pending.find_entry("default/a")
    assert entry is not None
    assert (entry.attempts, entry.where) == (1, Where.UNSCHEDULABLE)


def test_a_group_is_placed_without_those_that_it_can_do_without() -> None:
    """The rest waits, and each of it is placed as soon as it fits."""
    gang = Gang(make.node(name="n", cpu="12"))
    gang.group(*pods(*ALL), minimum=2)
    (plan,) = gang.decide().plans
    assert bound(plan) == ["a", "b", "c"]
    assert plan.hold is not None
    assert plan.hold.uid == "default/d"
    gang.end("a", "b")
    gang.see(make.node(name="m", cpu="4"))
    (rest,) = gang.decide().plans
    assert (rest.entity, bound(rest), rest.hold) == (GANG, ["d"], None)
    gang.end("c", "d")
    assert len(gang.engine._pending) == 0


def test_a_group_stays_within_its_domain() -> None:
    """There is room for it elsewhere, and it is told of the domain's nodes alone; a node that joins the domain helps."""
    racks = [
        make.node(name=f"{rack}{i}", cpu="4", labels={"rack": rack})
        for rack in "xy"
        for i in range(3)
    ]
    gang = Gang(*racks, make.node(name="spare", cpu="8"))
    gang.group(*pods(*ALL), minimum=4, topology="rack")
    with unchanged(gang):
        (plan,) = gang.decide().plans
    assert plan.hold is not None
    assert plan.hold.diagnosis is not None
    assert plan.hold.diagnosis.n_nodes == 3
    gang.see(make.node(name="spare", cpu="8", labels={"rack": "x"}))
    (plan,) = gang.decide().plans
    assert {bind.node for bind in plan.binds} <= {"x0", "x1", "x2", "spare"}
    assert bound(plan) == ALL


def test_in_a_domain_without_nodes_nothing_fits() -> None:
    gang = Gang(make.node(name="n", cpu="64", labels={"block": "x"}))
    gang.group(*pods(*ALL), minimum=1, topology="rack")
    assert not gang.decide().binds


def test_a_group_is_placed_without_a_member_that_would_take_the_place_of_two() -> None:
    """The first comes first, but with it the group would not have its minimum."""
    gang = Gang(make.node(name="n", cpu="12"))
    gang.group(*pods("large", cpu="8"), *pods("a", "b", "c"), minimum=3)
    (plan,) = gang.decide().plans
    assert bound(plan) == ["a", "b", "c"]
    assert gang.counts["unschedulable"] == 4


def test_a_pod_waits_no_longer_by_itself_once_it_belongs_to_a_group() -> None:
    gang = Gang(make.node(name="n", cpu="1"))
    for pod in pods("a", "b"):
        gang.see(pod)
    assert len(gang.decide().plans) == 2
    gang.group(*pods("a", "b"), minimum=2)
    (plan,) = gang.decide().plans
    assert plan.entity == GANG
    assert gang.counts == {"unschedulable": 2}


def test_room_for_a_second_member_on_a_node_helps_the_group() -> None:
    """There was room for one all the time, so no pod alone would wait for this."""
    gang = Gang(make.node(name="n", cpu="8"))
    gang.see(make.pod(name="old", cpu="3", node="n"))
    gang.group(*pods("a", "b"), minimum=2)
    assert not gang.decide().binds
    gang.gone("old")
    (plan,) = gang.decide().plans
    assert bound(plan) == ["a", "b"]


def test_a_member_whose_bind_failed_is_tried_again_without_those_that_are_bound() -> None:
    gang = Gang(make.node(name="n", cpu="16"))
    gang.group(*pods(*ALL), minimum=4)
    gang.decide()
    gang.end("a", "b")
    gang.end("c", failed=True)
    assert not gang.decide().plans
    gang.now = 1.0
    # The bind of one is still under way.
    (plan,) = gang.decide().plans
    assert (plan.entity, bound(plan)) == (GANG, ["c"])
    gang.end("c", "d")
    assert len(gang.engine._pending) == 0


def test_a_group_of_which_no_bind_was_sent_comes_back_whole() -> None:
    gang = Gang(make.node(name="n", cpu="16"))
    gang.group(*pods(*ALL), minimum=4)
    gang.decide()
    gang.end(*ALL, failed=True)
    assert gang.counts == {"backoff": 4}
    gang.see(make.pod(name="other", cpu="4", node="n"))
    gang.now = 1.0
    (plan,) = gang.decide().plans
    assert plan.binds == ()
    assert gang.counts == {"unschedulable": 4}


@pytest.mark.parametrize("most", [1, 3, 5])
def test_a_group_counts_by_its_pods_and_is_never_cut(most: int) -> None:
    """A shell that has room for a few pods gets the next group, and nothing beyond."""
    gang = Gang(make.node(name="n", cpu="64"))
    gang.group(*pods(*ALL, priority=1), minimum=4)
    for pod in pods("x", "y", "z"):
        gang.see(pod)
    plans: Sequence[Plan] = gang.decide(pods=most).plans
    assert [plan.entity for plan in plans] == [GANG, *(["default/x"] if most == 5 else [])]
    assert gang.engine._pending.count_pods()[Where.ACTIVE] == 7


def test_groups_and_pods_take_turns_by_priority() -> None:
    gang = Gang(make.node(name="n", cpu="12"))
    gang.group(*pods("a", "b", priority=1), minimum=2)
    gang.group(*pods("c", "d"), minimum=2, name="later")
    for pod in (*pods("urgent", priority=2), *pods("x", "y")):
        gang.see(pod)
    plans = gang.decide().plans
    assert [plan.entity for plan in plans if plan.binds] == ["default/urgent", GANG]
    assert [plan.entity for plan in plans if plan.hold] == [LATER, "default/x", "default/y"]


def held_by(gang: Gang) -> str:
    entry = gang.engine._pending.find_entry("default/b")
    assert entry is not None
    assert entry.held is not None
    return entry.held.by


def test_a_group_is_not_tried_before_enough_members_are_there() -> None:
    """No new node would help it, so nothing is said of it that an autoscaler would read."""
    gang = Gang(make.node(name="n", cpu="16"))
    gang.group(*pods("a", "b"), minimum=3)
    assert not gang.decide().plans
    assert (gang.counts, held_by(gang)) == ({"gated": 2}, "Completeness")
    gang.group(*pods("a", "b", "c"), minimum=3)
    (plan,) = gang.decide().plans
    assert bound(plan) == ["a", "b", "c"]


def test_a_group_waits_for_each_of_its_members_gates() -> None:
    gang = Gang(make.node(name="n", cpu="16"))
    gates = {"schedulingGates": [{"name": "g"}]}
    gang.group(*pods("a"), *pods("b", spec=gates), minimum=2)
    assert not gang.decide().plans
    assert (gang.counts, held_by(gang)) == ({"gated": 2}, "SchedulingGates")
    gang.see(make.member(pods("b")[0]))
    (plan,) = gang.decide().plans
    assert bound(plan) == ["a", "b"]


def test_a_member_that_is_deleted_while_its_bind_is_under_way_is_needed_no_less() -> None:
    gang = Gang(make.node(name="n", cpu="16"))
    gang.group(*pods(*ALL), minimum=4)
    gang.decide()
    gang.gone("a")
    gang.end("b", "c", "d", failed=True)
    gang.now = 1.0
    assert not gang.decide().plans
    assert held_by(gang) == "Completeness"
    gang.group(*pods("b", "c", "d", "e"), minimum=4)
    (plan,) = gang.decide().plans
    assert bound(plan) == ["b", "c", "d", "e"]


def test_a_member_that_leaves_may_leave_too_few() -> None:
    gang = Gang(make.node(name="n", cpu="4"))
    gang.group(*pods("a", "b"), minimum=2)
    assert gang.decide().holds
    gang.gone("a")
    assert not gang.decide().plans
    assert held_by(gang) == "Completeness"


def test_a_pod_that_loses_its_owner_and_goes_is_forgotten() -> None:
    """Whoever may create pods may take the owner off a pod: later news of the owner must find nothing there."""
    gang = Gang(make.node(name="n", cpu="16"))
    meta = wire.Meta(
        name="job", namespace="default", uid="u", annotations={"evenkeel.dev/gang": "2"}
    )
    job = objects.Job(meta, {"parallelism": 2})
    owner = wire.Owner("Job", "job", "batch/v1", "u", controller=True)
    gang.engine.handle(events.Seen(job), 0.0)
    for pod in pods("a", "b"):
        pod.metadata.owner_references = [owner]
        gang.see(pod)
    (plan,) = gang.decide().plans
    assert (plan.entity, bound(plan)) == ("group Job.batch default/job", ["a", "b"])
    gang.end("a", "b", failed=True)
    gang.see(*pods("a"))
    gang.gone("a")
    gang.engine.handle(events.Seen(job), 0.0)
    gang.now = 5.0
    assert not gang.decide().binds
    assert held_by(gang) == "Completeness"


def test_a_required_level_that_no_node_has_is_named_until_nodes_have_it() -> None:
    gang = Gang(make.node(name="m", cpu="8"))
    gang.group(*pods("a", "b"), minimum=2, topology="rack")
    (plan,) = gang.decide().plans
    assert plan.hold is not None
    assert plan.hold.said == "No node has the label rack."
    gang.now = 20.0
    gang.see(make.node(name="m", cpu="8", labels={"rack": "r"}))
    (plan,) = gang.decide().plans
    assert bound(plan) == ["a", "b"]
