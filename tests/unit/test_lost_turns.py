"""A pod whose turn before a node did not come: it is tried at once where that can help, and otherwise after its backoff."""

import pytest

from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from tests import make

_WHY = "the device plugin of node a does not answer"


def _start(*nodes: str) -> Engine:
    """A pod is on its way to the node ``a``."""
    engine = Engine(Config())
    for name in nodes:
        engine.handle(events.Seen(make.hami_node(name=name, cards=1)), 0.0)
    engine.handle(events.Seen(make.pod(name="p", gpu=1)), 0.0)
    assert _decide(engine, 0.0) == ["a"]
    return engine


def _decide(engine: Engine, now: float) -> list[str]:
    return [bind.node for bind in engine.decide(now, Unlimited()).binds]


def _give_back(engine: Engine, now: float, behind: str = "a") -> None:
    engine.handle(events.BindFailed("default/p", _WHY, behind=behind), now)


def test_it_goes_elsewhere_at_once_while_the_plugin_is_silent() -> None:
    engine = _start("a", "b")
    engine.handle(events.PluginSilent("a", silent=True), 1.0)
    _give_back(engine, 1.0)
    assert _decide(engine, 1.0) == ["b"]


def test_it_is_tried_at_once_when_the_plugin_is_back() -> None:
    engine = _start("a")
    engine.handle(events.PluginSilent("a", silent=True), 1.0)
    _give_back(engine, 1.0)
    assert _decide(engine, 1.0) == []
    engine.handle(events.PluginSilent("a", silent=False), 1.1)
    assert _decide(engine, 1.1) == ["a"]


def test_it_goes_elsewhere_at_once_when_its_node_is_gone() -> None:
    engine = _start("a", "b")
    engine.handle(events.Gone("Node", "a"), 0.1)
    _give_back(engine, 0.1)
    assert _decide(engine, 0.1) == ["b"]
    assert not engine._pending._behind


@pytest.mark.parametrize("is_looked_at_before", [False, True])
def test_an_older_pod_that_came_while_the_plugin_was_silent_is_not_overtaken_either(
    *, is_looked_at_before: bool
) -> None:
    """It was tried more often, so its backoff is longer. There is room for one; looks have a least time between them."""
    engine = Engine(Config())
    engine.handle(events.Seen(make.hami_node(name="a", cards=[make.card(uuid="a", sharers=1)])), 0)
    engine.handle(events.PluginSilent("a", silent=True), 0.0)
    for now, name, mib in ((0.0, "old", 1000), (0.5, "young", 2000)):
        engine.handle(events.Seen(make.pod(name=name, gpu=1, gpumem=mib)), now)
        assert _decide(engine, now) == []
    entry = engine._pending.find_entry("default/old")
    assert entry is not None
    entry.attempts = 5
    if is_looked_at_before:
        engine.handle(events.Seen(make.node(name="other", cpu=1)), 2.0)
    assert _decide(engine, 2.0) == []
    engine.handle(events.PluginSilent("a", silent=False), 2.001)
    outcomes = [engine.decide(2.0 + i / 1000, Unlimited()) for i in range(1, 30)]
    assert [bind.uid for one in outcomes for bind in one.binds] == ["default/old"]
    assert not engine._pending.opened


@pytest.mark.parametrize("behind", ["a", ""])
def test_it_sits_out_its_backoff_where_nothing_keeps_it_from_the_same_node(behind: str) -> None:
    """Otherwise it would be bound and given back without end."""
    engine = _start("a")
    _give_back(engine, 0.1, behind)
    assert _decide(engine, 0.5) == []
    assert _decide(engine, 1.2) == ["a"]
