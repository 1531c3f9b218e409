"""Who is held may not be tried, and is asked about again when what it is held until has happened."""

import pytest

from scheduler.api.door.decisions import Outcome
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.chores import PROMPT, Chores
from scheduler.plugins.contract import Change, Hint
from scheduler.state.cluster import Cluster
from scheduler.state.entities import AnyEntity
from scheduler.waiting.admissions import ADMISSIONS, Held
from scheduler.waiting.entries import Came, Where
from scheduler.waiting.pending import Pending
from tests import make

HINTS = {
    "label": Hint(here=((Change.NODE_LABELS, ("quota", "more")),)),
    "amount": Hint(amounts=(("cpu", 6000),)),
    "pod": Hint(anywhere=((Change.POD_LEFT, ("TCP", 80)),)),
}


class Quota:
    """Holds pods as long as it is full."""

    def __init__(self, until: Hint) -> None:
        self.is_full = True
        self.held = Held("Quota", until)

    def judge(self, _: AnyEntity) -> Held | None:
        return self.held if self.is_full else None


class Room:
    """A cluster of one node, a pod that is held, and the chores."""

    def __init__(self, quota: Quota) -> None:
        self.cluster, self.quota = Cluster(), quota
        self.see_node()
        self.cluster.see_pod(make.pod(name="goes", node="n", cpu="4", host_ports=[80]))
        self.pending = Pending(Config(), admissions=(*ADMISSIONS, quota))
        cycle = make.cycle(cluster=self.cluster)
        self.chores = Chores(self.cluster, cycle, self.pending, PROMPT)
        pod = self.cluster.see_pod(make.pod(name="p"))
        assert pod is not None
        self.pending.offer(pod, 0.0)
        self.work()

    def see_node(self, **labels: str) -> None:
        self.cluster.see_node(make.node(name="n", cpu="8", labels=labels))

    def work(self) -> None:
        self.chores.work(0.0, Unlimited(), Outcome())

    def where(self) -> Where:
        entry = self.pending.find_entry("default/p")
        assert entry is not None
        assert (entry.held == self.quota.held) == (entry.where == Where.GATED)
        return entry.where


def happen(room: Room, what: str) -> None:
    if what == "label":
        room.see_node(quota="more")
    else:
        room.cluster.drop_pod("default/goes")


@pytest.mark.parametrize("what", HINTS)
def test_who_is_held_is_asked_about_when_its_hint_happens(what: str) -> None:
    room = Room(Quota(HINTS[what]))
    assert room.where() == Where.GATED
    room.quota.is_full = False
    room.see_node(other="label")
    room.work()
    assert room.where() == Where.GATED
    happen(room, what)
    assert room.chores.find_due() == 0.0
    room.work()
    assert room.where() == Where.ACTIVE
    assert [one.uid for one in room.pending.pop(9, 0.0)] == ["default/p"]
    assert not room.pending.parked.hooks


def test_who_is_still_held_then_waits_on() -> None:
    room = Room(Quota(HINTS["label"]))
    happen(room, "label")
    room.work()
    assert room.where() == Where.GATED
    room.quota.is_full = False
    room.see_node()
    room.work()
    happen(room, "label")
    room.work()
    assert room.where() == Where.ACTIVE


def test_nothing_is_left_of_one_that_goes_while_it_is_held() -> None:
    room = Room(Quota(HINTS["label"]))
    room.pending.drop("default/p")
    assert not room.pending.parked.hooks
    happen(room, "label")
    room.work()
    assert len(room.pending) == 0


def test_who_failed_is_asked_about_before_it_is_tried_again() -> None:
    """Others may have used up what it could have had when it was tried first."""
    room = Room(Quota(HINTS["label"]))
    room.quota.is_full = False
    happen(room, "label")
    room.work()
    room.pending.pop(9, 0.0)
    room.pending.retry_pod("default/p", 0.0)
    room.quota.is_full = True
    assert room.pending.pop(9, 10.0) == []
    assert room.where() == Where.GATED
    assert room.pending.came[Where.GATED, Came.BACKOFF_OVER] == 1
