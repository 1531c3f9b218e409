"""Gangs that name each other in an annotation: whoever makes a pod writes the names, with any characters."""

import json
from collections.abc import Mapping, Sequence

import pytest

from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from tests import make

GANG = "gang.scheduling.koordinator.sh/"


def bind_gangs(gangs: Mapping[str, Sequence[str]]) -> set[str]:
    """Bind one pod for each gang that can be placed; a gang names other gangs as `namespace/name`."""
    engine = Engine(Config())
    engine.handle(events.Seen(make.node(name="n", cpu=8)), 0.0)
    for i, (gang, together) in enumerate(gangs.items()):
        notes = {"name": gang, "min-available": "1", "groups": json.dumps(together)}
        written = {GANG + key: value for key, value in notes.items()}
        pod = make.pod(name=f"p{i}", cpu=1, annotations=written)
        engine.handle(events.Seen(pod), 0.0)
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
