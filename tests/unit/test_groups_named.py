"""Gangs that name each other in an annotation: whoever makes a pod writes the names, with any characters."""

import json
from collections.abc import Mapping, Sequence

import pytest

from scheduler.api.door import events
from scheduler.api.door.notes import GroupHeld
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.engine.questions.waiting import QueueCounts
from tests import make

GANG = "gang.scheduling.koordinator.sh/"


def see_pod(name: str, says: Mapping[str, str]) -> events.Seen:
    written = {GANG + key: value for key, value in says.items()}
    return events.Seen(make.pod(name=name, cpu=1, annotations=written))


def bind_gangs(gangs: Mapping[str, Sequence[str]]) -> set[str]:
    """Bind one pod for each gang that can be placed; a gang names other gangs as `namespace/name`."""
    engine = Engine(Config())
    engine.handle(events.Seen(make.node(name="n", cpu=8)), 0.0)
    for i, (gang, together) in enumerate(gangs.items()):
        notes = {"name": gang, "min-available": "1", "groups": json.dumps(together)}
        engine.handle(see_pod(f"p{i}", notes), 0.0)
    bound = {bind.uid for at in range(9) for bind in engine.decide(float(at), Unlimited()).binds}
    return {gang for i, gang in enumerate(gangs) if f"default/p{i}" in bound}


def test_gangs_that_name_each_other_are_placed_together() -> None:
    both = ["default/a", "default/b"]
    assert bind_gangs({"a": both, "b": both, "alone": []}) == {"a", "b", "alone"}
    assert bind_gangs({"a": both, "alone": []}) == {"alone"}


@pytest.mark.parametrize(
    "named",
    [
        ["default/a and b", "default/odd"],
        ["default/x/y", "default/odd"],
        ["default/", "default/odd"],
        ["/", "default/odd"],
        ["default/odd", "other/z|q"],
        ["default/odd and other/q/r", "default/odd"],
        ["default/" + "a" * 400, "default/odd"],
    ],
)
def test_a_name_with_odd_characters_holds_its_own_gang_and_no_other(named: list[str]) -> None:
    assert bind_gangs({"odd": named, "alone": []}) == {"alone"}


def test_a_name_that_reads_like_several_gangs_stands_for_one() -> None:
    honest = ["default/a", "default/b", "default/c"]
    twisted = "b and default/c"
    # A gang names itself whether or not its list has it.
    gangs = {"a": honest, "b": honest, "c": honest, twisted: ["default/a"]}
    assert bind_gangs(gangs) == {"a", "b", "c"}


def test_gangs_that_name_each_other_no_more_are_groups_by_themselves() -> None:
    engine = Engine(Config())
    engine.handle(events.Seen(make.node(name="n", cpu=1)), 0.0)
    both = {"groups": json.dumps(["default/a", "default/b"])}
    for says in (both, {}):
        for gang in ("a", "b"):
            words = {"name": gang, "min-available": "1", **says}
            engine.handle(see_pod(f"p-{gang}", words), 0.0)
        outcome = engine.decide(0.0, Unlimited())
    # There is room for one of them. It is being bound, the other one waits, and neither is in a third group.
    assert [bind.uid for bind in outcome.binds] == ["default/p-a"]
    figures = engine.ask(QueueCounts())
    assert (sum(figures.groups.values()), sum(figures.pods.values())) == (2, 2)


def test_a_group_that_another_tenant_names_keeps_its_promise() -> None:
    engine = Engine(Config())
    engine.handle(events.Seen(make.node(name="n", cpu=1)), 0.0)
    engine.handle(events.Seen(make.pod(name="low", node="n", cpu=1)), 0.0)
    own = {GANG + "name": "a", GANG + "min-available": "1"}
    engine.handle(events.Seen(make.pod(name="own", cpu=1, priority=9, annotations=own)), 0.0)
    assert [one.victims for one in engine.decide(0.0, Unlimited()).evicts] == [("default/low",)]
    names = json.dumps(["default/a", "hostile/b"])
    says = {GANG + "name": "b", GANG + "min-available": "1", GANG + "groups": names}
    pod = make.pod(name="names-others", namespace="hostile", cpu=1, annotations=says)
    engine.handle(events.Seen(pod), 1.0)
    outcomes = [engine.decide(float(at), Unlimited()) for at in range(1, 60)]
    told = [note for outcome in outcomes for note in outcome.notes]
    assert [one.uid for one in told if isinstance(one, GroupHeld)] == ["hostile/names-others"]
    assert not any(outcome.nominates for outcome in outcomes)
    engine.handle(events.Gone("Pod", "default/low"), 60.0)
    assert [bind.uid for bind in engine.decide(60.0, Unlimited()).binds] == ["default/own"]


def test_a_gang_stays_whole_when_another_that_it_names_has_ended() -> None:
    """Room is looked for before and after that: what is known of who goes together is then brought up to date."""
    engine = Engine(Config())
    for name in ("a0", "b0", "b1", "plain"):
        engine.handle(events.Seen(make.node(name=f"n-{name}", cpu=1)), 0.0)
    both = json.dumps(["default/a", "default/b"])
    for name, least in (("a0", "1"), ("b0", "2"), ("b1", "2")):
        words = {"name": name[0], "min-available": least, "groups": both}
        written = {GANG + key: value for key, value in words.items()}
        pod = make.pod(name=name, node=f"n-{name}", cpu=1, annotations=written)
        engine.handle(events.Seen(pod), 0.0)
    engine.handle(events.Seen(make.pod(name="plain", node="n-plain", cpu=1)), 0.0)
    engine.handle(events.Seen(make.pod(name="early", cpu=1, priority=200)), 0.0)
    evicts = engine.decide(0.0, Unlimited()).evicts
    assert [evict.victims for evict in evicts] == [("default/plain",)]
    engine.handle(events.Gone("Pod", "default/plain"), 1.0)
    assert engine.decide(1.0, Unlimited()).binds
    engine.handle(events.Gone("Pod", "default/a0"), 2.0)
    engine.handle(events.Seen(make.pod(name="fill", node="n-a0", cpu=1, priority=900)), 2.0)
    engine.decide(2.0, Unlimited())
    engine.handle(events.Seen(make.pod(name="late", cpu=1, priority=100)), 3.0)
    evicts = engine.decide(3.0, Unlimited()).evicts
    assert [set(evict.victims) for evict in evicts] == [{"default/b0", "default/b1"}]
