"""A long decision pauses, and goes on with the next call; meanwhile nothing changes, and nobody learns of trials."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from scheduler.api.door import events
from scheduler.api.door.decisions import Bind, Outcome
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.disruption import sparing
from scheduler.engine import rerun
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.engine.questions.measures import Departures, Totals
from scheduler.engine.questions.nodes import KnownNode, NodeCounts
from scheduler.engine.questions.pods import BindObjection, KnownPod, PodVersion
from scheduler.engine.recorded import Recorded
from scheduler.state import checks
from scheduler.state.pauses import Pauses
from tests import make, slices
from tests.model.engine_stories import GroupStory
from tests.unit import room_worlds, test_groups_storms
from tests.unit.pausing import decide_at_once, decide_in_steps, decide_one_step
from tests.unit.test_loop_slices import Parts, Silent

N_NODES = 40


def make_reclaim(engine: Engine) -> None:
    """Fill nodes with pods of low priority, and add a gang that needs most of the nodes."""
    for number in range(N_NODES):
        engine.handle(events.Seen(make.node(name=f"n{number:02}", cpu=8)), 0.0)
        low = make.pod(name=f"low-{number:02}", node=f"n{number:02}", priority=number, cpu=8)
        engine.handle(events.Seen(low), 0.0)
    engine.handle(events.Seen(make.pod_group("gang", 30, priority=100)), 0.0)
    for number in range(30):
        pod = make.pod(name=f"m{number:02}", cpu=8, priority=100)
        engine.handle(events.Seen(make.member(pod)), 0.0)


def list_victims(outcome: Outcome) -> list[str]:
    return sorted(uid for evict in outcome.evicts for uid in evict.victims)


def pause_in_trial(engine: Engine) -> None:
    """Decide until pods are away in a trial."""
    for _ in range(1000):
        assert not decide_one_step(engine, 0.0).plans
        if engine._cluster.roster.away:
            return
    raise AssertionError("no pause while pods are away")


LOW = [f"default/low-{number:02}" for number in range(30)]
WORLDS: dict[str, Callable[[int], room_worlds.World]] = {
    "few": room_worlds.make_world,
    "crowded": room_worlds.make_crowded_world,
}


@pytest.mark.parametrize("kind", WORLDS)
@pytest.mark.parametrize("seed", slices.pick_part(tuple(range(150))))
def test_a_decision_with_pauses_is_the_same_as_one_without(kind: str, seed: int) -> None:
    world = WORLDS[kind](seed)
    assert room_worlds.make_room(world, decide_in_steps) == room_worlds.make_room(world)


def test_a_large_search_pauses_often_and_in_the_midst_of_a_trial() -> None:
    engine = Engine(Config())
    make_reclaim(engine)
    pause_in_trial(engine)
    assert engine.is_deciding
    n_calls = 0
    outcome = Outcome()
    while engine.is_deciding:
        outcome = decide_one_step(engine, 0.0)
        n_calls += 1
    assert n_calls > 10
    assert list_victims(outcome) == LOW
    checks.verify(engine._cluster)


def test_after_a_pause_what_is_begun_is_ended_and_nothing_else_is_begun() -> None:
    """The decisions from before the pause are to be carried out soon, however much there is to decide."""
    engine = Engine(Config(), is_shared=False)
    make_reclaim(engine)
    n_pods = 2 * engine.config.slice_pods
    for number in range(n_pods):
        engine.handle(events.Seen(make.pod(name=f"later-{number}", cpu=0)), 1.0)
    pause_in_trial(engine)
    outcome = engine.decide(0.0, Unlimited())
    assert list_victims(outcome) == LOW
    assert len(outcome.plans) <= engine.config.slice_pods
    rest = engine.decide(0.0, Unlimited())
    assert len(outcome.binds) + len(rest.binds) == n_pods


def test_an_event_comes_after_the_decision_that_has_paused() -> None:
    engine = Engine(Config())
    make_reclaim(engine)
    pause_in_trial(engine)
    engine.handle(events.Gone("Pod", "default/low-00"), 1.0)
    checks.verify(engine._cluster)
    assert engine.is_deciding
    assert engine.find_due(1.0) == 1.0
    assert list_victims(decide_one_step(engine, 1.0)) == LOW
    assert not engine.is_deciding


def test_no_answer_is_about_a_trial() -> None:
    engine = Engine(Config())
    make_reclaim(engine)
    pause_in_trial(engine)
    away = next(iter(engine._cluster.roster.away))
    pod = engine.ask(KnownPod(away))
    assert pod is not None
    assert pod.node
    assert not engine._cluster.roster.away
    assert list_victims(decide_one_step(engine, 0.0)) == LOW


def test_an_answer_in_parts_is_not_about_a_trial() -> None:
    """``Totals`` finds that what a trial does is a mistake of the columns."""
    engine = Engine(Config())
    make_reclaim(engine)
    parts = engine.ask(Totals())
    next(parts)
    pause_in_trial(engine)
    assert len(list(parts)) > 1
    assert list_victims(decide_one_step(engine, 0.0)) == LOW


def test_what_no_trial_changes_is_answered_at_once() -> None:
    """The operator asks this for every bind. So a decision is not brought to its end by it."""
    engine = Engine(Config())
    make_reclaim(engine)
    pause_in_trial(engine)
    n_away = len(engine._cluster.roster.away)
    node = engine.ask(KnownNode("n00"))
    assert node is not None
    assert node.name == "n00"
    assert engine.ask(PodVersion("default/low-00")) == engine._cluster.find_version(
        "default/low-00"
    )
    assert engine.ask(BindObjection(Bind("default/m00", "n00"))) == ""
    assert len(engine._cluster.roster.away) == n_away
    assert engine.ask(NodeCounts()).n_nodes == N_NODES
    assert not engine._cluster.roster.away


def test_the_thread_that_holds_the_lease_may_ask_how_fast_pods_leave() -> None:
    """It writes this with the lease, whatever the loop does. Only the loop may go on with its decision."""
    engine = Engine(Config())
    make_reclaim(engine)
    pause_in_trial(engine)
    with ThreadPoolExecutor(1) as lease:
        answer = lease.submit(engine.ask, Departures()).result()
    assert answer == engine.ask(Departures())
    assert engine._cluster.roster.away


def test_an_error_after_a_pause_comes_to_whoever_lets_the_work_go_on() -> None:
    pauses = Pauses()

    def fail() -> None:
        pauses.take()
        raise ZeroDivisionError

    pauses.begin(fail, lambda: False)
    assert pauses.are_open
    with pytest.raises(ZeroDivisionError):
        pauses.resume(lambda: True)
    assert not pauses.are_open


@pytest.mark.parametrize("is_paused", [False, True])
def test_an_error_leaves_no_decision_open(
    monkeypatch: pytest.MonkeyPatch, *, is_paused: bool
) -> None:
    engine = Engine(Config())
    make_reclaim(engine)
    if is_paused:
        pause_in_trial(engine)

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as broken:
        broken.setattr(Cycle, "schedule", fail)
        broken.setattr(sparing, "is_core", fail)
        with pytest.raises(ZeroDivisionError):
            engine.decide(0.0, Unlimited())
    assert not engine.is_deciding


@pytest.mark.parametrize("seed", slices.pick_part(tuple(range(10))))
def test_a_log_with_pauses_gives_the_same_decisions_again(seed: int) -> None:
    story = GroupStory(seed, pauses=True)
    for i in range(150):
        story.happen()
        if i in {60, 110}:
            story.anew()
    assert [rerun.rerun(lines).difference for lines in story.files] == [None] * 3
    assert story.n_questions


def test_a_log_gives_the_decision_again_that_an_answer_brought_to_its_end() -> None:
    lines: list[bytes] = []
    engine = Recorded(Config(), "test", lines.append)
    make_reclaim(engine)
    pause_in_trial(engine)
    engine.ask(NodeCounts())
    assert list_victims(engine.decide(0.0, Unlimited(pods=0))) == LOW
    report = rerun.rerun(lines)
    assert report.difference is None
    assert b'"evicts":[{' in lines[-1]


class PausedWorld(test_groups_storms.World):
    """A world whose scheduler pauses wherever it may."""

    decide = staticmethod(decide_in_steps)


@pytest.mark.parametrize("seed", test_groups_storms.SEEDS)
def test_with_pauses_nothing_stays_promised_either(seed: int) -> None:
    test_groups_storms.play(PausedWorld(seed), seed)


# The loop.


class Binder(Silent):
    """Notes what it is given."""

    def __init__(self) -> None:
        self.n_binds = 0
        self.given_back: list[str] = []

    def submit_binds(self, binds: Any, _: Any) -> None:
        self.n_binds += len(binds)

    def give_back_waiting(self, why: str) -> None:
        self.given_back.append(why)


class Evictor(Silent):
    """Counts what it is given."""

    def __init__(self) -> None:
        self.n_evicted = self.n_nominated = 0

    def evict(self, victims: Any, _: Any) -> None:
        self.n_evicted += len(victims)

    def nominate(self, *_: Any) -> None:
        self.n_nominated += 1


@pytest.fixture
async def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes three milliseconds further with every look at it: a slice has about three steps."""
    now = 0.0

    def read() -> float:
        nonlocal now
        now += 0.003
        return now

    monkeypatch.setattr(asyncio.get_running_loop(), "time", read)


@pytest.mark.usefixtures("coarse")
async def test_events_wait_while_a_decision_has_paused_and_is_carried_out() -> None:
    evictor = Evictor()
    parts = Parts(evictor=evictor)
    make_reclaim(parts.engine)
    for _ in range(1000):
        parts.loop.turn()
        if parts.engine.is_deciding:
            break
    assert parts.engine.is_deciding
    parts.put(events.Seen(make.node(name="new", cpu=8)))
    turns = 0
    while not evictor.n_evicted:
        assert "new" not in parts.cluster.nodes.rows
        parts.loop.turn()
        turns += 1
    assert turns > 5
    assert not parts.engine.is_deciding
    turns = 0
    while evictor.n_nominated < 30:
        assert "new" not in parts.cluster.nodes.rows
        parts.loop.turn()
        turns += 1
    assert turns > 5
    parts.turns_until(lambda: "new" in parts.cluster.nodes.rows)


@pytest.mark.usefixtures("coarse")
async def test_the_last_decisions_are_carried_out_though_the_loop_has_ended() -> None:
    evictor = Evictor()
    parts = Parts(evictor=evictor)
    make_reclaim(parts.engine)
    parts.turns_until(lambda: evictor.n_evicted)
    assert evictor.n_nominated < 30
    parts.loop.finish()
    assert evictor.n_nominated == 30


@pytest.mark.usefixtures("coarse")
async def test_who_no_longer_leads_gives_back_the_binds_of_a_decision_that_had_paused() -> None:
    """The next leader may have decided otherwise."""
    leads, binder = [True], Binder()
    parts = Parts(leads=lambda: leads[0], binder=binder)
    for number in range(N_NODES):
        parts.engine.handle(events.Seen(make.node(name=f"n{number:02}", cpu=8)), 0.0)
    parts.engine.handle(events.Seen(make.pod_group("gang", 30)), 0.0)
    for number in range(30):
        parts.engine.handle(events.Seen(make.member(make.pod(name=f"m{number}", cpu=8))), 0.0)
    parts.turns_until(lambda: parts.engine.is_deciding)
    leads[0] = False
    parts.turns_until(lambda: binder.n_binds)
    parts.turns_until(lambda: binder.given_back)
    assert binder.given_back == ["no longer the leader"]


def test_both_ways_to_decide_end() -> None:
    """The twin of this file is no twin if it never pauses."""
    engine = Engine(Config())
    make_reclaim(engine)
    assert list_victims(decide_at_once(engine, 0.0)) == LOW
    other = Engine(Config())
    make_reclaim(other)
    assert not decide_one_step(other, 0.0).plans
    assert list_victims(decide_in_steps(other, 0.0)) == LOW
