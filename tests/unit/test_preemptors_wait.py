"""A pod that takes the place of others is tried at once when its victims have gone.

Else it sits out its backoff, though nobody else is active: pods that take from each other what is promised would else
do so without end.
"""

from typing import Any

from scheduler.api.door import events
from scheduler.api.door.decisions import Outcome
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.chores import PROMPT
from scheduler.engine.engine import Engine
from scheduler.waiting.entries import Where
from tests import make


class Town:
    """One node of 4 CPU, and pods of other schedulers on it."""

    def __init__(self, **running: dict[str, Any]) -> None:
        self.engine = Engine(Config(), pace=PROMPT, is_shared=False)
        self.engine.handle(events.Seen(make.node(name="n", cpu=4)), 0.0)
        for name, figures in running.items():
            pod = make.pod(name=name, uid=name, node="n", scheduler_name="other", **figures)
            self.engine.handle(events.Seen(pod), 0.0)

    def wait(self, name: str, at: float, **figures: Any) -> Outcome:
        """A pod comes, and what is decided of it."""
        pod = make.pod(name=name, uid=name, **figures)
        self.engine.handle(events.Seen(pod), at)
        return self.decide(at)

    def decide(self, at: float) -> Outcome:
        return self.engine.decide(at, Unlimited())

    def where(self, name: str) -> Where | None:
        entry = self.engine._pending.find_entry(name)
        return entry.where if entry else None


def test_where_an_eviction_failed_it_is_not_tried_again_at_once() -> None:
    town = Town(victim={"cpu": 4})
    assert town.wait("p", 10.0, cpu=4, priority=5).evicts
    town.engine.handle(events.EvictFailed("victim", "no"), 10.1)
    assert town.where("p") == Where.BACKOFF
    assert not town.decide(10.5).evicts
    assert [evict.victims for evict in town.decide(11.0).evicts] == [("victim",)]


def test_victims_that_have_gone_let_the_pod_in_at_once() -> None:
    town = Town(one={"cpu": 2}, other={"cpu": 2})
    assert town.wait("p", 10.0, cpu=4, priority=5).evicts
    town.engine.handle(events.Gone("Pod", "one"), 10.1)
    assert not town.decide(10.1).binds
    assert town.where("p") == Where.UNSCHEDULABLE
    town.engine.handle(events.Gone("Pod", "other"), 10.2)
    assert [bind.uid for bind in town.decide(10.2).binds] == ["p"]


def test_who_lost_what_was_promised_is_not_tried_again_at_once() -> None:
    town = Town(victim={"cpu": 4})
    assert town.wait("p", 10.0, cpu=4, priority=5).evicts
    assert town.wait("higher", 10.1, cpu=4, priority=9).nominates
    assert town.where("p") == Where.BACKOFF
    assert not town.decide(10.5).holds
    assert [hold.uid for hold in town.decide(11.0).holds] == ["p"]


def test_who_may_take_the_place_of_others_by_now_does_when_its_backoff_is_over() -> None:
    town = Town(stays={"cpu": 2, "priority": 9}, goes={"cpu": 2})
    assert not town.wait("p", 10.0, cpu=4, priority=5).evicts
    town.engine.handle(events.Gone("Pod", "stays"), 10.1)
    assert not town.decide(10.5).evicts
    assert [evict.victims for evict in town.decide(11.0).evicts] == [("goes",)]
