"""Preemption takes its time in slices: others get their turn between them."""

from scheduler.api.door import events
from scheduler.config import Config
from scheduler.cycle import schedule
from scheduler.engine.budget import Counted, Unlimited
from scheduler.engine.engine import Engine
from tests import make


def test_pods_for_which_there_is_no_time_come_again_and_lose_nothing() -> None:
    engine = Engine(Config())
    for i in range(80):
        engine.handle(events.NodeSeen(make.node(name=f"n{i}", cpu=4)), 0.0)
        engine.handle(events.PodSeen(make.pod(name=f"v{i}", node=f"n{i}", cpu=4)), 0.0)
    for i in range(60):
        engine.handle(events.PodSeen(make.pod(name=f"p{i}", cpu=4, priority=1)), 0.0)
    found: list[str] = []
    n_calls = 0
    while len(found) < 60:
        outcome = engine.decide(0.0, Counted(64, (0, 0, 1)))
        n_calls += 1
        assert 0 < len(outcome.evicts) <= schedule._ASKED_MAX // 512 + 1
        found += [evict.uid for evict in outcome.evicts]
        waiting = [engine.pending.entry(f"default/p{i}") for i in range(60)]
        assert all(one is not None and one.attempts <= 1 for one in waiting)
    assert n_calls > 3
    assert sorted(found) == sorted(f"default/p{i}" for i in range(60))
    assert not engine.decide(0.0, Unlimited()).evicts
