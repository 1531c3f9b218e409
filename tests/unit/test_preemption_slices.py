"""Preemption takes its time in slices: others get their turn between them."""

from scheduler.api.door import events
from scheduler.config import Config
from scheduler.cycle import schedule
from scheduler.engine.allowance import SpentAllowance, Unlimited
from scheduler.engine.engine import Engine
from tests import make


def test_pods_for_which_there_is_no_time_come_again_and_lose_nothing() -> None:
    engine = Engine(Config())
    for i in range(80):
        engine.handle(events.Seen(make.node(name=f"n{i}", cpu=4)), 0.0)
        engine.handle(events.Seen(make.pod(name=f"v{i}", node=f"n{i}", cpu=4)), 0.0)
    for i in range(60):
        engine.handle(events.Seen(make.pod(name=f"p{i}", cpu=4, priority=1)), 0.0)
    found: list[str] = []
    n_calls = 0
    while len(found) < 60:
        outcome = engine.decide(0.0, SpentAllowance(64, (0, 0, 1)))
        n_calls += 1
        assert 0 < len(outcome.evicts) <= schedule._ASKED_MAX // 512 + 1
        found += [evict.makes_room_for for evict in outcome.evicts]
        waiting = [engine._pending.find_entry(f"default/p{i}") for i in range(60)]
        assert all(one is not None and one.attempts <= 1 for one in waiting)
    assert n_calls > 3
    assert sorted(found) == sorted(f"default/p{i}" for i in range(60))
    assert not engine.decide(0.0, Unlimited()).evicts


def test_a_namespace_pays_for_whom_its_pods_have_asked_to_make_room() -> None:
    """Thousands of pods that would preempt do not keep another namespace's pod waiting, of the same priority."""
    engine = Engine(Config())
    for i in range(40):
        engine.handle(events.Seen(make.node(name=f"n{i}", cpu=4)), 0.0)
        engine.handle(events.Seen(make.pod(name=f"v{i}", node=f"n{i}", cpu=4)), 0.0)
    for i in range(400):
        pod = make.pod(name=f"p{i}", namespace="many", cpu=5, priority=1)
        engine.handle(events.Seen(pod), 0.0)
    engine.handle(events.Seen(make.pod(name="other", cpu=4, priority=1)), 0.0)
    n_before = 0
    while not (outcome := engine.decide(0.0, SpentAllowance(10_000, (0, 0, 1)))).evicts:
        n_before += len(outcome.holds)
    assert [one.makes_room_for for one in outcome.evicts] == ["default/other"]
    # To ask costs as much as 512 nodes each, though they are alike; 100 units of 500 nodes are free.
    assert n_before < 150
