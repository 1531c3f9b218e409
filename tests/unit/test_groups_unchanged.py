"""Groups are formed anew only if a change of a pod means something to them: a pod of a large job changes all the time."""

from typing import Any

import pytest

from scheduler.api import names
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from tests import make


def make_engine() -> Engine:
    engine = Engine(Config())
    engine.handle(events.Seen(make.node(name="n", cpu=8)), 0.0)
    engine.handle(events.Seen(make.pod_group("gang", 2)), 0.0)
    engine.handle(see_member("runs", node="n"), 0.0)
    engine.handle(see_member("waits", cpu=9), 0.0)
    engine.decide(0.0, Unlimited())
    return engine


def see_member(name: str, *, version: str = "1", **more: Any) -> events.Seen:
    pod = make.member(make.pod(name=name, **({"cpu": 1} | more)))
    pod.metadata.resource_version = version
    return events.Seen(pod)


@pytest.mark.parametrize(
    "seen",
    [
        see_member("runs", node="n", version="2"),
        see_member("runs", node="n", labels={"step": "2"}),
        see_member("runs", node="n", annotations={"note": "2"}),
        see_member("waits", cpu=9, version="2"),
        see_member("waits", cpu=9, annotations={"note": "2"}),
    ],
)
def test_a_change_that_means_nothing_to_a_group_leaves_it_as_it_is(seen: events.Seen) -> None:
    engine = make_engine()
    engine.handle(seen, 1.0)
    assert not engine._cluster.groups.has_changed


@pytest.mark.parametrize(
    "seen",
    [
        see_member("runs", node="n", priority=3),
        see_member("runs", node="n", phase="Succeeded"),
        see_member("waits", cpu=9, labels={"app": "web"}),
        see_member("waits", cpu=9, annotations={names.RUN_TIME: "1h"}),
        see_member("waits", cpu=2),
        see_member("waits", cpu=9, node="n"),
        see_member("another"),
        events.Gone("Pod", "default/runs"),
    ],
)
def test_a_change_that_means_something_to_a_group_is_noted(seen: events.Event) -> None:
    engine = make_engine()
    engine.handle(seen, 1.0)
    assert engine._cluster.groups.has_changed
