"""Pods that wait for others by a rule about pods: what happens on one node may let them go to another."""

from typing import Any

from scheduler.api import wire
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.chores import PROMPT
from scheduler.engine.engine import Engine
from tests import make
from tests.model import peer_objects as objects
from tests.unit.spread_lines import hard

Json = dict[str, Any]
WEB = {"matchLabels": {"app": "web"}}


class Play:
    """An engine in virtual time."""

    def __init__(self, *nodes: wire.Node) -> None:
        self.engine = Engine(Config(), pace=PROMPT)
        self.now = 0.0
        for node in nodes:
            self.engine.handle(events.Seen(node), self.now)

    def see(self, **figures: Any) -> None:
        self.engine.handle(events.Seen(make.pod(**figures)), self.now)

    def gone(self, name: str) -> None:
        self.engine.handle(events.Gone("Pod", f"default/{name}"), self.now)

    def went(self) -> dict[str, str]:
        """Which pods are given which node when a while has gone by."""
        self.now += 20.0
        found = {}
        for _ in range(3):
            for bind in self.engine.decide(self.now, Unlimited()).binds:
                found[bind.uid.removeprefix("default/")] = bind.node
            self.now += 20.0
        return found

    def explained(self, name: str) -> str:
        hold = self.engine._cycle.explain_hold(self.engine._cluster.pods[f"default/{name}"])
        assert hold is not None
        assert hold.diagnosis is not None
        return ", ".join(text for text, _ in hold.diagnosis.reasons)


def zoned(name: str, zone: str, cpu: int = 1) -> wire.Node:
    return make.node(name=name, cpu=cpu, labels={"zone": zone})


def apart(label: str, value: str) -> Json:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {label: value}}}
    return {"affinity": objects.affinity("podAntiAffinity", term)}


def test_a_pod_goes_when_one_elsewhere_evens_the_zones_though_its_own_node_did_not_change() -> None:
    play = Play(zoned("a", "1", 4), zoned("b", "2"))
    rule = {"topologySpreadConstraints": [hard("zone", WEB)]}
    play.see(name="there", node="a", labels={"app": "web"}, cpu=1)
    play.see(name="full", node="b", cpu=1)
    play.see(name="waits", labels={"app": "web"}, cpu=1, spec=rule)
    assert play.went() == {}
    # It changes b, which stays full.
    play.see(name="free", node="b", labels={"app": "web"})
    assert play.went() == {"waits": "a"}


def test_a_pod_goes_when_the_one_that_kept_it_away_leaves_another_node() -> None:
    """It began to wait for room, and was kept away when there was some."""
    play = Play(zoned("a", "1"), zoned("b", "1"))
    play.see(name="full-a", node="a", cpu=1)
    play.see(name="full-b", node="b", cpu=1)
    play.see(name="waits", labels={"app": "noisy"}, cpu=1)
    assert play.went() == {}
    play.see(name="shy", node="a", spec=apart("app", "noisy"))
    play.gone("full-b")
    assert play.went() == {}
    assert "existing pods anti-affinity" in play.explained("waits")
    play.gone("shy")
    assert play.went() == {"waits": "b"}


def test_pods_that_were_alike_when_they_began_to_wait_are_looked_at_each_by_its_labels() -> None:
    play = Play(zoned("a", "1"))
    play.see(name="full", node="a", cpu=1)
    play.see(name="noisy", labels={"app": "noisy"}, cpu=1)
    play.see(name="quiet", labels={"app": "quiet"}, cpu=1)
    assert play.went() == {}
    assert len(play.engine._pending.parked.list_kinds()) == 1
    play.see(name="shy", node="a", spec=apart("app", "noisy"))
    assert play.went() == {}
    play.gone("full")
    assert play.went() == {"quiet": "a"}


def test_a_namespace_that_gets_a_label_is_another_neighbour() -> None:
    play = Play(zoned("a", "1"))
    term = {
        "topologyKey": "zone",
        "labelSelector": {},
        "namespaceSelector": {"matchLabels": {"team": "lab"}},
    }
    play.see(name="shy", node="a", spec={"affinity": objects.affinity("podAntiAffinity", term)})
    play.engine.handle(events.Seen(make.namespace("default", {"team": "lab"})), play.now)
    play.see(name="waits")
    assert play.went() == {}
    play.engine.handle(events.Seen(make.namespace("default", {})), play.now)
    assert play.went() == {"waits": "a"}
