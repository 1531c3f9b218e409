"""What is done for those who wait: it takes as many turns as it takes, and nobody is left out."""

from collections.abc import Callable, Hashable

import pytest

from scheduler.api.door import events
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.engine.allowance import Allowance, SpentAllowance, Unlimited
from scheduler.engine.chores import Pace
from scheduler.engine.engine import Engine
from scheduler.state.budgets.budgets import Budgets
from scheduler.state.pods import PodRecord
from scheduler.waiting.looks import Looks
from tests import make

_OFTEN = Pace(help=0.0, explain=1.0)


def crowded(n_others: int) -> Engine:
    """Kinds of pods that fit nowhere and may preempt wait, then one that could preempt once a pod is gone."""
    engine = Engine(Config(), pace=_OFTEN, is_shared=False)
    engine.handle(events.Seen(make.node(name="n", cpu=8)), 0.0)
    for name, cpu, priority in (("high", 5, 1000), ("goes", 2, 1000), ("low", 1, -5)):
        running = make.pod(name=name, node="n", cpu=cpu, priority=priority)
        engine.handle(events.Seen(running), 0.0)
    for i in range(n_others):
        engine.handle(events.Seen(make.pod(name=f"other{i}", cpu=20 + i)), 0.0)
    engine.decide(0.0, Unlimited())
    engine.handle(events.Seen(make.pod(name="p", cpu=3)), 0.0)
    for i in range(10):
        assert not engine.decide(1.0 + i, Unlimited()).evicts
    return engine


def little() -> Allowance:
    return SpentAllowance(9, (9, 1, 9))


@pytest.mark.parametrize(("n_others", "budget"), [(200, Unlimited), (5, little)])
def test_who_could_preempt_is_found_among_many_and_in_little_time(
    n_others: int, budget: Callable[[], Allowance]
) -> None:
    """One tenant's kinds do not stand before the others, nor is a round forgotten that was not finished in time."""
    engine = crowded(n_others)
    engine.handle(events.Gone("Pod", "default/goes"), 20.0)
    found = [
        evict.makes_room_for
        for i in range(40)
        for evict in engine.decide(20.0 + i / 10, budget()).evicts
    ]
    assert found == ["default/p"]


def test_pods_that_are_told_apart_are_all_looked_at_however_little_time_there_is() -> None:
    engine = Engine(Config(), pace=_OFTEN, is_shared=False)
    for name in "nm":
        engine.handle(events.Seen(make.node(name=name, cpu=8)), 0.0)
        full = make.pod(name=f"on-{name}", node=name, cpu=8)
        engine.handle(events.Seen(full), 0.0)
    for i in range(4):
        engine.handle(events.Seen(make.pod(name=f"p{i}", cpu=2, labels={"a": str(i)})), 0.0)
    engine.decide(0.0, Unlimited())
    terms = [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": str(i)}}}
        for i in range(4)
    ]
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    shy = make.pod(name="shy", node="m", spec={"affinity": rules})
    engine.handle(events.Seen(shy), 1.0)
    engine.decide(1.0, Unlimited())
    engine.handle(events.Gone("Pod", "default/on-n"), 20.0)
    found = [bind.uid for i in range(40) for bind in engine.decide(20.0 + i, little()).binds]
    assert sorted(found) == [f"default/p{i}" for i in range(4)]


def test_a_pod_of_high_priority_is_looked_at_before_many_kinds_of_low_priority() -> None:
    engine = Engine(Config(), pace=_OFTEN, is_shared=False)
    engine.handle(events.Seen(make.node(name="n", cpu=8)), 0.0)
    for name, cpu in (("goes", 7), ("stays", 1)):
        running = make.pod(name=name, node="n", cpu=cpu, priority=2000, labels={"a": "x"})
        engine.handle(events.Seen(running), 0.0)
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "x"}}}
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for i in range(60):
        # By what they request no two are of one kind.
        pod = make.pod(name=f"p{i}", cpu=f"{500 + i}m", spec={"affinity": rules})
        engine.handle(events.Seen(pod), 0.0)
    engine.decide(0.0, Unlimited())
    engine.handle(events.Seen(make.pod(name="high", cpu=6, priority=1000)), 0.5)
    engine.decide(0.5, Unlimited())
    for i in range(10):
        engine.decide(1.0 + i, Unlimited())
    engine.handle(events.Gone("Pod", "default/goes"), 20.0)
    turns = [i for i in range(100) if engine.decide(20.0 + i / 10, little()).binds]
    assert turns, "the pod is never bound"
    assert turns[0] <= 5


def repelled(n_others: int) -> Engine:
    """Kinds of pods that a running pod repels wait, beside one of a high priority that needs the room of another."""
    engine = Engine(Config(), pace=_OFTEN, is_shared=False)
    engine.handle(events.Seen(make.node(name="n", cpu=8)), 0.0)
    for name, cpu, priority in (("goes", 7, 0), ("stays", 1, 2000)):
        labels = {"a": "x"}
        running = make.pod(name=name, node="n", cpu=cpu, priority=priority, labels=labels)
        engine.handle(events.Seen(running), 0.0)
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "x"}}}
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for i in range(n_others):
        # By what they request no two are of one kind.
        pod = make.pod(name=f"p{i}", cpu=f"{500 + i}m", spec={"affinity": rules})
        engine.handle(events.Seen(pod), 0.0)
    engine.decide(0.0, Unlimited())
    engine.handle(events.Seen(make.pod(name="high", cpu=6, priority=1000)), 0.5)
    evicts = engine.decide(0.5, Unlimited()).evicts
    assert [one.victims for one in evicts] == [("default/goes",)]
    for i in range(10):
        engine.decide(1.0 + i, Unlimited())
    return engine


def test_room_that_was_made_for_a_pod_does_not_wait_until_all_kinds_were_looked_at() -> None:
    engine = repelled(60)
    engine.handle(events.Gone("Pod", "default/goes"), 20.0)
    turns = [i for i in range(100) if engine.decide(20.0 + i / 10, little()).binds]
    assert turns, "the pod is never bound"
    assert turns[0] <= 2


def test_a_pod_whose_victims_have_gone_does_not_sit_out_its_backoff() -> None:
    """Others are active all the time, so nobody is let out of the backoff early."""
    engine = Engine(Config(), pace=_OFTEN, is_shared=False)
    engine.handle(events.Seen(make.node(name="n", cpu=8)), 0.0)
    engine.handle(events.Seen(make.node(name="m", cpu=991)), 0.0)
    wide = make.pod(name="wide", node="m", cpu=990, priority=2000)
    engine.handle(events.Seen(wide), 0.0)
    engine.handle(events.Seen(make.pod(name="goes", node="n", cpu=8)), 0.0)
    engine.handle(events.Seen(make.pod(name="high", cpu=8, priority=1000)), 0.0)
    outcome = engine.decide(0.0, Unlimited())
    assert [one.victims for one in outcome.evicts] == [("default/goes",)]
    engine.handle(events.Gone("Pod", "default/goes"), 0.1)
    bound: list[str] = []
    for i in range(5):
        engine.handle(events.Seen(make.pod(name=f"other{i}", cpu="1m", priority=1500)), 0.1)
        bound += [bind.uid for bind in engine.decide(0.1 + i / 100, Unlimited()).binds]
    assert "default/high" in bound


def test_kinds_come_by_priority_and_those_that_wait_no_longer_are_forgotten() -> None:
    priorities: dict[Hashable, int] = {"low": 0, "high": 5, "later": 5}
    looks = Looks(lambda kind: (-priorities[kind],))
    for kind in ("low", "high", "later"):
        looks.note_kind(kind, frozenset({1}))
    looks.note_kind("low", frozenset({2}))
    assert [looks.take() for _ in range(3)] == [
        ("high", frozenset({1})),
        ("later", frozenset({1})),
        ("low", frozenset({1, 2})),
    ]
    assert not looks
    for i in range(10_000):
        priorities[i] = 1
        looks.note_kind(i, None)
        del priorities[i]
        looks.keep_waiting(priorities, len(priorities))
        assert len(looks) < 100


def test_thousands_of_kinds_share_the_rows_that_woke_them() -> None:
    looks = Looks(lambda _: (0,))
    events_of_a_turn = [frozenset({1, 2}), frozenset({3}), frozenset(range(100, 200))]
    for rows in events_of_a_turn:
        for kind in range(5000):
            looks.note_kind(kind, rows)
    found = [looks.take()[1] for _ in range(5000)]
    assert found[0] == frozenset().union(*events_of_a_turn)
    assert len({id(rows) for rows in found}) == 1
    # Each of these kinds was woken by rows of its own, until they are so many that all rows are looked at.
    for kind in range(50):
        for row in range(1000):
            looks.note_kind(kind, frozenset({1000 * kind + row}))
    assert [looks.take()[1] for _ in range(50)] == [None] * 50


def test_pods_of_a_kind_have_one_priority_though_they_take_nobodys_place() -> None:
    """When a pod is nominated, those of a lower priority yield to it: no kind has to be split for that."""
    engine = Engine(Config(), pace=_OFTEN, is_shared=False)
    engine.handle(events.Seen(make.node(name="n", cpu=1)), 0.0)
    never = {"preemptionPolicy": "Never"}
    for name, priority in (("a", 1), ("b", 7), ("c", 1)):
        engine.handle(events.Seen(make.pod(name=name, cpu=2, priority=priority, spec=never)), 0.0)
        engine.decide(0.0, Unlimited())
    parked = engine._pending.parked
    assert [parked.find_place(kind)[0] for kind in parked.list_kinds()] == [-1, -7]
    assert parked.list_takers(lambda _: True) == []


def test_room_that_was_made_does_not_wait_for_what_budgets_cover(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = Engine(Config(), pace=_OFTEN, is_shared=False)
    engine.handle(events.Seen(make.node(name="n", cpu=8)), 0.0)
    engine.handle(events.Seen(make.pod(name="goes", node="n", cpu=8)), 0.0)
    engine.handle(events.Seen(make.pod(name="high", cpu=8, priority=1000)), 0.0)
    assert engine.decide(0.0, Unlimited()).evicts
    monkeypatch.setattr(Budgets, "is_behind", property(lambda _: True))
    engine.handle(events.Gone("Pod", "default/goes"), 0.1)
    found = [bind.uid for i in range(10) for bind in engine.decide(0.1 + i / 50, little()).binds]
    assert found == ["default/high"]


def test_a_nominated_pod_is_looked_at_once_while_budgets_are_behind_and_again_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = Engine(Config(), pace=_OFTEN, is_shared=False)
    engine.handle(events.Seen(make.node(name="n", cpu=8)), 0.0)
    for i in range(2):
        engine.handle(events.Seen(make.pod(name=f"goes{i}", node="n", cpu=4)), 0.0)
    engine.handle(events.Seen(make.pod(name="high", cpu=8, priority=1000)), 0.0)
    assert engine.decide(0.0, Unlimited()).evicts
    asked: list[str] = []

    def count(name: str) -> None:
        found = getattr(Cycle, name)

        def ask(cycle: Cycle, pod: PodRecord) -> bool:
            asked.append(name)
            return bool(found(cycle, pod))

        monkeypatch.setattr(Cycle, name, ask)

    count("fits_nominated")
    count("could_take")
    with monkeypatch.context() as behind:
        behind.setattr(Budgets, "is_behind", property(lambda _: True))
        engine.handle(events.Gone("Pod", "default/goes0"), 20.0)
        engine.decide(20.0, SpentAllowance(9, (9, 1000, 9)))
    assert asked == ["fits_nominated"]
    engine.decide(20.1, Unlimited())
    assert asked == ["fits_nominated", "fits_nominated", "could_take"]


def test_a_pod_that_fits_does_not_wait_for_what_budgets_cover(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever changes budgets all the time keeps only those waiting who would take the place of others."""
    engine = Engine(Config(), pace=_OFTEN, is_shared=False)
    engine.handle(events.Seen(make.node(name="n", cpu=4)), 0.0)
    engine.handle(events.Seen(make.pod(name="on-n", node="n", cpu=4)), 0.0)
    engine.handle(events.Seen(make.pod(name="p", cpu=2)), 0.0)
    engine.decide(0.0, Unlimited())
    monkeypatch.setattr(Budgets, "is_behind", property(lambda _: True))
    engine.handle(events.Gone("Pod", "default/on-n"), 20.0)
    found = [bind.uid for i in range(10) for bind in engine.decide(20.0 + i, little()).binds]
    assert found == ["default/p"]


def test_a_look_is_had_at_the_very_time_at_which_it_is_due() -> None:
    """A driver in virtual time goes on to that time, and would never go on from it."""
    engine = Engine(Config(), pace=Pace(help=0.02), is_shared=False)
    engine.handle(events.Seen(make.node(name="n", cpu=1)), 0.0)
    engine.handle(events.Seen(make.pod(name="p", cpu=200)), 0.0)
    now = 0.0
    for i in range(50):
        engine.decide(now, Unlimited())
        assert engine.find_due(now) > now
        # This helps nobody, and is to be looked at all the same.
        engine.handle(events.Seen(make.node(name="n", cpu=2 + i)), now)
        now = engine.find_due(now)
