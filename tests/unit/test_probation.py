"""Cards that were ill and are reported healthy again: no new pod gets them at once."""

from __future__ import annotations

from scheduler.api import wire
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine import rerun
from scheduler.engine.allowance import Unlimited
from scheduler.engine.recorded import Recorded
from scheduler.state import checks
from tests import make


class World:
    def __init__(self, seconds: float = 60.0) -> None:
        self.lines: list[bytes] = []
        self.engine = Recorded(Config(card_probation_seconds=seconds), "test", self.lines.append)
        self.now = 1000.0

    def see(self, found: wire.Node | wire.Pod) -> None:
        self.engine.handle(events.Seen(found), self.now)
        checks.verify(self.engine._cluster)

    def node(self, *, healthy: bool, uid: str = "u") -> None:
        cards = [make.card(uuid="GPU-0", healthy=healthy)]
        self.see(make.hami_node(name="n", uid=uid, cards=cards))

    def decide(self, after: float = 0.0) -> list[str]:
        """The pods that get a node."""
        self.now += after
        outcome = self.engine.decide(self.now, Unlimited())
        checks.verify(self.engine._cluster)
        return [bind.uid.rpartition("/")[2] for bind in outcome.binds]


def ask(name: str) -> wire.Pod:
    return make.pod(name=name, gpu=1, gpumem=1000)


def test_a_card_that_was_ill_waits_before_pods_get_it() -> None:
    world = World()
    world.node(healthy=False)
    world.see(ask("a"))
    assert world.decide() == []
    world.node(healthy=True)
    assert world.decide(after=30.0) == []
    # The end of the probation wakes the pod, even if nothing else happens.
    assert world.engine.find_due(world.now) == 1060.0
    assert world.decide(after=31.0) == ["a"]
    assert rerun.rerun(world.lines).difference is None


def test_a_card_that_was_never_ill_is_given_at_once_and_keeps_its_pods() -> None:
    world = World()
    world.node(healthy=True)
    world.see(ask("a"))
    assert world.decide() == ["a"]
    world.node(healthy=False)
    world.node(healthy=True)
    assert world.engine._cluster.pods["default/a"].node == "n"
    world.see(ask("b"))
    assert world.decide() == []
    # It falls ill again: the time begins anew when it is well.
    world.node(healthy=False)
    assert world.decide(after=70.0) == []
    world.node(healthy=True)
    assert world.decide(after=59.0) == []
    assert world.decide(after=2.0) == ["b"]


def test_without_probation_cards_are_given_at_once() -> None:
    world = World(seconds=0.0)
    world.node(healthy=False)
    world.see(ask("a"))
    world.node(healthy=True)
    assert world.decide() == ["a"]


def test_a_node_that_is_replaced_has_other_cards() -> None:
    world = World()
    world.node(healthy=False)
    world.node(healthy=True)
    world.engine.handle(events.Gone("Node", "n"), world.now)
    world.node(healthy=True, uid="other")
    world.see(ask("a"))
    assert world.decide() == ["a"]


def test_a_log_that_begins_anew_knows_what_is_on_probation() -> None:
    world = World()
    world.node(healthy=False)
    world.node(healthy=True)
    world.see(ask("a"))
    world.lines.clear()
    world.engine.start_anew(world.now)
    assert world.decide(after=50.0) == []
    assert world.decide(after=11.0) == ["a"]
    report = rerun.rerun(world.lines)
    assert report.difference is None
    assert report.n_binds == 1


def test_a_log_says_when_a_probation_ended_without_a_decision() -> None:
    world = World()
    world.node(healthy=False)
    world.node(healthy=True)
    n_lines = len(world.lines)
    world.engine.decide(world.now + 61.0, Unlimited(pods=0))
    assert len(world.lines) == n_lines + 1
    assert rerun.rerun(world.lines).difference is None
