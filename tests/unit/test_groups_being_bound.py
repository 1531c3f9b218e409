"""A gang whose binds are under way goes as a whole or not at all, like one that runs."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from scheduler.api import wire
from scheduler.api.door import events
from scheduler.api.door.decisions import Outcome
from scheduler.config import Config
from scheduler.engine import rerun
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.engine.recorded import Recorded
from scheduler.state import checks
from tests import make

_GANG = "gang.scheduling.koordinator.sh/"


def make_elastic(name: str, gang: str, minimum: int, **more: Any) -> wire.Pod:
    """A pod of a gang that may lose pods beyond its minimum."""
    notes = {_GANG + "name": gang, _GANG + "min-available": str(minimum)}
    return make.pod(name=name, annotations=notes, **more)


def list_victims(outcome: Outcome) -> list[str]:
    return sorted(uid for evict in outcome.evicts for uid in evict.victims)


def end_binds(engine: Engine, pods: dict[str, wire.Pod], outcome: Outcome, n: int) -> None:
    """Let the first binds be done."""
    for bind in outcome.binds[:n]:
        pod = copy.deepcopy(pods[bind.uid])
        pod.spec.node_name = bind.node
        engine.handle(events.BindDone(bind.uid), 1.0)
        engine.handle(events.Seen(pod), 1.0)


@pytest.mark.parametrize("n_done", range(4))
@pytest.mark.parametrize("is_gang", [False, True])
def test_a_gang_is_not_split_while_it_is_bound(n_done: int, *, is_gang: bool) -> None:
    engine = Engine(Config(), is_shared=False)
    for number in range(3):
        engine.handle(events.Seen(make.node(name=f"n{number}", cpu=4)), 0.0)
    engine.handle(events.Seen(make.pod_group("low", 3, disruptionMode={"all": {}})), 0.0)
    found = [make.member(make.pod(name=f"low-{i}", cpu=4), "low") for i in range(3)]
    pods = {pod.metadata.uid: pod for pod in found}
    for pod in found:
        engine.handle(events.Seen(pod), 0.0)
    outcome = engine.decide(0.0, Unlimited())
    assert len(outcome.binds) == 3
    end_binds(engine, pods, outcome, n_done)
    high = make.pod(name="high", cpu=4, priority=5)
    if is_gang:
        engine.handle(events.Seen(make.pod_group("high", 1, priority=5)), 1.0)
        make.member(high, "high")
    engine.handle(events.Seen(high), 1.0)
    victims = list_victims(engine.decide(1.0, Unlimited()))
    assert victims == ["default/low-0", "default/low-1", "default/low-2"]
    checks.verify(engine._cluster)


def test_no_extra_pod_stays_behind_while_it_is_bound() -> None:
    """It would run alone, below the minimum of its gang."""
    engine = Engine(Config(), is_shared=False)
    for number, cpu in enumerate((4, 4, 2)):
        engine.handle(events.Seen(make.node(name=f"n{number}", cpu=cpu)), 0.0)
    for number in range(2):
        pod = make_elastic(f"low-{number}", "low", 2, node=f"n{number}", cpu=4)
        engine.handle(events.Seen(pod), 0.0)
    engine.decide(0.0, Unlimited())
    engine.handle(events.Seen(make_elastic("low-2", "low", 2, cpu=2)), 0.0)
    assert [bind.uid for bind in engine.decide(0.0, Unlimited()).binds] == ["default/low-2"]
    for number in range(2):
        pod = make_elastic(f"high-{number}", "high", 2, cpu=4, priority=5)
        engine.handle(events.Seen(pod), 0.0)
    outcome = engine.decide(0.0, Unlimited())
    assert list_victims(outcome) == ["default/low-0", "default/low-1", "default/low-2"]
    checks.verify(engine._cluster)


def test_an_extra_pod_goes_alone_also_while_it_is_bound() -> None:
    """What may fail is beyond the minimum, whatever its rank."""
    engine = Engine(Config(), is_shared=False)
    for number in range(3):
        engine.handle(events.Seen(make.node(name=f"n{number}", cpu=4)), 0.0)
    for number in (1, 2):
        pod = make_elastic(f"low-{number}", "low", 2, node=f"n{number}", cpu=4)
        engine.handle(events.Seen(pod), 0.0)
    engine.handle(events.Seen(make_elastic("low-0", "low", 2, cpu=4)), 0.0)
    assert len(engine.decide(0.0, Unlimited()).binds) == 1
    engine.handle(events.Seen(make.pod(name="high", cpu=4, priority=5)), 1.0)
    assert list_victims(engine.decide(1.0, Unlimited())) == ["default/low-0"]


def test_after_a_fresh_start_a_gang_is_not_split_while_it_is_bound() -> None:
    lines: list[bytes] = []
    engine = Recorded(Config(), "test", lines.append)
    for number in range(2):
        engine.handle(events.Seen(make.node(name=f"n{number}", cpu=4)), 0.0)
    engine.handle(events.Seen(make.pod_group("low", 2, disruptionMode={"all": {}})), 0.0)
    for number in range(2):
        pod = make.member(make.pod(name=f"low-{number}", cpu=4), "low")
        engine.handle(events.Seen(pod), 0.0)
    assert len(engine.decide(0.0, Unlimited()).binds) == 2
    begin = len(lines)
    engine.start_anew(1.0)
    engine.handle(events.Seen(make.pod(name="high", cpu=4, priority=5)), 1.0)
    assert list_victims(engine.decide(1.0, Unlimited())) == ["default/low-0", "default/low-1"]
    assert rerun.rerun(lines[begin:]).difference is None
