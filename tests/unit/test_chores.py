"""What is done for those who wait: it takes as many turns as it takes, and nobody is left out."""

from collections.abc import Callable

import pytest

from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine.budget import Budget, Counted, Unlimited
from scheduler.engine.chores import Pace
from scheduler.engine.engine import Engine
from tests import make

_OFTEN = Pace(help=0.0, explain=1.0)


def crowded(n_others: int) -> Engine:
    """Kinds of pods that fit nowhere and may preempt wait, then one that could preempt once a pod is gone."""
    engine = Engine(Config(), pace=_OFTEN, is_shared=False)
    engine.handle(events.NodeSeen(make.node(name="n", cpu=8)), 0.0)
    for name, cpu, priority in (("high", 5, 1000), ("goes", 2, 1000), ("low", 1, -5)):
        running = make.pod(name=name, node="n", cpu=cpu, priority=priority)
        engine.handle(events.PodSeen(running), 0.0)
    for i in range(n_others):
        engine.handle(events.PodSeen(make.pod(name=f"other{i}", cpu=20 + i)), 0.0)
    engine.decide(0.0, Unlimited())
    engine.handle(events.PodSeen(make.pod(name="p", cpu=3)), 0.0)
    for i in range(10):
        assert not engine.decide(1.0 + i, Unlimited()).evicts
    return engine


def little() -> Budget:
    return Counted(9, (9, 1, 9))


@pytest.mark.parametrize(("n_others", "budget"), [(200, Unlimited), (5, little)])
def test_who_could_preempt_is_found_among_many_and_in_little_time(
    n_others: int, budget: Callable[[], Budget]
) -> None:
    """One tenant's kinds do not stand before the others, nor is a round forgotten that was not finished in time."""
    engine = crowded(n_others)
    engine.handle(events.PodGone("default/goes"), 20.0)
    found = [
        evict.uid for i in range(40) for evict in engine.decide(20.0 + i / 10, budget()).evicts
    ]
    assert found == ["default/p"]


def test_pods_that_are_told_apart_are_all_looked_at_however_little_time_there_is() -> None:
    engine = Engine(Config(), pace=_OFTEN, is_shared=False)
    for name in "nm":
        engine.handle(events.NodeSeen(make.node(name=name, cpu=8)), 0.0)
        full = make.pod(name=f"on-{name}", node=name, cpu=8)
        engine.handle(events.PodSeen(full), 0.0)
    for i in range(4):
        engine.handle(events.PodSeen(make.pod(name=f"p{i}", cpu=2, labels={"a": str(i)})), 0.0)
    engine.decide(0.0, Unlimited())
    terms = [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": str(i)}}}
        for i in range(4)
    ]
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    shy = make.pod(name="shy", node="m", spec={"affinity": rules})
    engine.handle(events.PodSeen(shy), 1.0)
    engine.decide(1.0, Unlimited())
    engine.handle(events.PodGone("default/on-n"), 20.0)
    found = [bind.uid for i in range(40) for bind in engine.decide(20.0 + i, little()).binds]
    assert sorted(found) == [f"default/p{i}" for i in range(4)]
