"""Pods that are seen before their owner wait for it for a moment: it may ask that they be a group."""

import pytest

from scheduler.api import names, wire
from scheduler.api.door import events
from scheduler.api.groups import objects
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.engine.questions.waiting import WhatWaits
from scheduler.engine.recorded import Recorded
from scheduler.engine.rerun import rerun
from tests import make

START = 1000.0


def make_engine(*, is_listed: bool = True, engine: Engine | None = None) -> Engine:
    engine = engine or Engine(Config())
    engine.handle(events.Seen(make.node(name="a", cpu=8)), START)
    if is_listed:
        engine.handle(events.ListBegins("Job"), START)
        engine.handle(events.ListEnds("Job"), START)
    return engine


def make_pod(name: str, kind: str = "Job") -> wire.Pod:
    pod = make.pod(name=name, cpu=1)
    group = {"Job": "batch/v1", "ReplicaSet": "apps/v1"}[kind]
    pod.metadata.owner_references = [
        wire.Owner(kind=kind, name="j", api_version=group, controller=True)
    ]
    return pod


def make_job(*, is_gang: bool) -> objects.Job:
    meta = wire.Meta(name="j", namespace="default", uid="j")
    meta.annotations = {names.GANG: "all"} if is_gang else {}
    return objects.Job(metadata=meta, spec={"parallelism": 2})


def see(engine: Engine, found: events.Object, after: float = 0.0) -> None:
    engine.handle(events.Seen(found), START + after)


def decide(engine: Engine, after: float) -> list[str]:
    return sorted(bind.uid for bind in engine.decide(START + after, Unlimited()).binds)


def test_a_gang_whose_owner_comes_after_its_pods_is_placed_as_a_gang() -> None:
    engine = make_engine()
    see(engine, make_pod("p"))
    assert decide(engine, 0.1) == []
    see(engine, make_job(is_gang=True), 0.2)
    assert decide(engine, 60) == []
    see(engine, make_pod("q"), 60)
    assert decide(engine, 61) == ["default/p", "default/q"]


def test_pods_of_an_owner_that_asks_for_nothing_wait_no_longer_once_it_is_there() -> None:
    engine = make_engine()
    see(engine, make_pod("p"))
    assert decide(engine, 0.1) == []
    see(engine, make_job(is_gang=False), 0.2)
    assert decide(engine, 0.2) == ["default/p"]


def test_pods_whose_owner_does_not_come_go_alone_and_nobody_reads_of_it() -> None:
    engine = make_engine()
    see(engine, make_pod("p"))
    assert decide(engine, 0.0) == []
    due = engine.find_due(START)
    assert START < due < START + 2
    outcome = engine.decide(due, Unlimited())
    assert [bind.uid for bind in outcome.binds] == ["default/p"]
    assert not outcome.notes
    # It does not wait for its owner again.
    engine.handle(events.BindFailed("default/p", "no"), due)
    assert decide(engine, 60) == ["default/p"]


def test_a_question_in_between_stops_no_clock() -> None:
    engine = make_engine()
    see(engine, make_pod("p"))
    engine.ask(WhatWaits())
    assert engine.find_due(START) <= START
    assert decide(engine, 0.0) == []
    assert decide(engine, 2.0) == ["default/p"]


def test_a_pod_that_is_gone_is_not_waited_with() -> None:
    engine = make_engine()
    see(engine, make_pod("p"))
    engine.decide(START, Unlimited())
    engine.handle(events.Gone("Pod", "default/p"), START)
    assert decide(engine, 10) == []
    assert not engine._cluster.groups.awaited.list_waiting()


@pytest.mark.parametrize(("kind", "is_listed"), [("ReplicaSet", True), ("Job", False)])
def test_pods_do_not_wait_for_owners_that_are_no_groups_or_that_nobody_can_list(
    kind: str, *, is_listed: bool
) -> None:
    engine = make_engine(is_listed=is_listed)
    see(engine, make_pod("p", kind))
    assert decide(engine, 0.0) == ["default/p"]


def test_a_fresh_start_of_the_log_goes_on_waiting() -> None:
    lines: list[bytes] = []
    recorded = Recorded(Config(), "test", lines.append)
    engine = make_engine(engine=recorded)
    see(engine, make_pod("p"))
    assert decide(engine, 0.1) == []
    first = len(lines)
    recorded.start_anew(START + 0.2)
    assert decide(engine, 0.3) == []
    assert decide(engine, 5) == ["default/p"]
    for part in (lines[:first], lines[first:]):
        assert rerun(part).difference is None
