"""Pods that wait are told anew why when the cluster changes: all of them in turn, and not too many a second."""

from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine.allowance import Allowance, Unlimited, Work
from scheduler.engine.chores import Pace
from scheduler.engine.engine import Engine
from tests import make


class AFewChores:
    """A turn that ends after some chores."""

    pods = 1

    def __init__(self, n: int) -> None:
        self._left = n

    def allows(self, work: Work) -> bool:
        self._left -= work == Work.CHORE
        return self._left > 0


class Told:
    """Pods that wait on one node that changes each turn, and how often each was told why."""

    def __init__(self, n: int, *, alike: bool) -> None:
        self.engine = Engine(Config(), pace=Pace(flush=float("inf")))
        self.times: dict[str, int] = {f"default/p{i}": 0 for i in range(n)}
        self.now, self._n = 0.0, 0
        self.change()
        for i in range(n):
            cpu = 9 if alike else 9 + i
            self.engine.handle(events.Seen(make.pod(name=f"p{i}", cpu=cpu)), 0.0)
        outcome = self.engine.decide(0.0, Unlimited())
        assert len(outcome.holds) == n

    def change(self) -> None:
        """In nothing that helps."""
        self._n += 1
        node = make.node(name="n", cpu=4, memory=f"{self._n}Gi")
        self.engine.handle(events.Seen(node), self.now)

    def turn(self, seconds: float, budget: Allowance) -> None:
        self.now += seconds
        self.change()
        outcome = self.engine.decide(self.now, budget)
        assert not outcome.holds
        for hold in outcome.explained:
            self.times[hold.uid] += 1


def test_a_hundred_pods_a_second_are_told_anew_at_most() -> None:
    told = Told(500, alike=True)
    for _ in range(120):
        told.turn(0.5, Unlimited())
    # Once in five seconds, and so many that it is a hundred a second.
    assert set(told.times.values()) == {12}
    told = Told(1500, alike=True)
    for _ in range(120):
        told.turn(0.5, Unlimited())
    assert set(told.times.values()) == {4}


def test_all_that_wait_have_their_turn_however_long_one_round_takes() -> None:
    told = Told(40, alike=False)
    for _ in range(100):
        told.turn(10.0, AFewChores(4))
    assert min(told.times.values()) >= 1
    assert max(told.times.values()) - min(told.times.values()) <= 1
