"""How often the pods of a group are judged again while pods come back that need not go for it."""

import pytest

from scheduler.api import names
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.disruption.sparing import Guard
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from tests import make
from tests.unit.calls import record_calls

_ZONE = "topology.kubernetes.io/zone"
_AWAY_FROM_X = {
    "requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": _ZONE, "labelSelector": {"matchLabels": {"app": "x"}}}
    ]
}


def test_who_is_away_again_makes_nobody_be_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """One pod on another node of the zone has to go because of its label; those that come back after it mean nothing."""
    engine = Engine(Config(), is_shared=False)
    for name in ("n0", "n1"):
        labels = {names.HOSTNAME: name, _ZONE: "z"}
        engine.handle(events.Seen(make.node(name=name, cpu=16, labels=labels)), 0.0)
    engine.handle(events.Seen(make.pod(name="low", cpu=16, node="n0", priority=1)), 0.0)
    x = make.pod(name="x", cpu=1, node="n1", priority=2, labels={"app": "x"})
    engine.handle(events.Seen(x), 0.0)
    for i in range(12):
        engine.handle(events.Seen(make.pod(name=f"p{i:02}", cpu=1, node="n1")), 0.0)
    engine.handle(events.Seen(make.pod_group("gang", 1, priority=5)), 0.0)
    spec = {"affinity": {"podAntiAffinity": _AWAY_FROM_X}, "nodeSelector": {names.HOSTNAME: "n0"}}
    pod = make.pod(name="m", cpu=16, priority=5, spec=spec)
    engine.handle(events.Seen(make.member(pod)), 0.0)
    judged = record_calls(monkeypatch, Guard, "_fits")
    outcome = engine.decide(0.0, Unlimited())
    victims = {uid for evict in outcome.evicts for uid in evict.victims}
    assert victims == {"default/low", "default/x"}
    # Once beside each of the two that have to go.
    assert len(judged) == 2
