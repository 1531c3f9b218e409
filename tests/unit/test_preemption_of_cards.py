"""Who goes from cards that are given away one by one: as many as must, and then the pod fits."""

from typing import Any

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from scheduler.api import names, wire
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.chores import PROMPT
from scheduler.engine.engine import Engine
from tests import make, slices

Ask = dict[str, Any]
SMALL: Ask = {"gpu": 1, "cpu": 0, "gpumem": 1000, "gpucores": 0}
PAIR = SMALL | {"gpu": 2}


@st.composite
def asks(draw: st.DrawFn) -> Ask:
    found: Ask = {"gpu": draw(st.integers(1, 2)), "cpu": draw(st.integers(0, 2))}
    return found | {
        "gpumem": draw(st.sampled_from([1000, 5000, 8000, 15000])),
        "gpucores": draw(st.sampled_from([0, 30, 60, 100])),
    }


@st.composite
def holders(draw: st.DrawFn) -> tuple[str, int, Ask, list[int]]:
    """Node, priority, what is asked, and the cards held: more than there is of them, now and then."""
    ask, node = draw(asks()), draw(st.sampled_from(["a", "b"]))
    cards = draw(st.lists(st.integers(0, 2), min_size=ask["gpu"], max_size=ask["gpu"], unique=True))
    return node, draw(st.integers(0, 3)), ask, cards


def engine_of(there: list[tuple[str, int, Ask, list[int]]]) -> Engine:
    engine = Engine(Config(), pace=PROMPT, is_shared=False)
    for name, cpu in (("a", 6), ("b", 4)):
        engine.handle(events.Seen(make.hami_node(name=name, cards=3, cpu=cpu)), 0.0)
    for i, (node, priority, ask, cards) in enumerate(there):
        held = "".join(
            f"{node}-GPU-{card},NVIDIA,{ask['gpumem']},{ask['gpucores']}:" for card in cards
        )
        notes = {names.HAMI_NODE: node, names.HAMI_ALLOCATED: f"{held};"}
        see(engine, make.pod(name=f"q{i}", node=node, priority=priority, annotations=notes, **ask))
    return engine


def see(engine: Engine, pod: wire.Pod) -> None:
    engine.handle(events.Seen(pod), 0.0)


def bound(engine: Engine, at: float) -> list[tuple[str, str]]:
    return [(bind.uid, bind.node) for bind in engine.decide(at, Unlimited()).binds]


@settings(max_examples=slices.count_examples(150), deadline=None)
@given(st.lists(holders(), min_size=4, max_size=8), asks(), st.integers(0, 6))
def test_as_many_go_as_must_and_then_the_pod_fits(
    there: list[tuple[str, int, Ask, list[int]]], ask: Ask, spared: int
) -> None:
    engine = engine_of(there)
    see(engine, make.pod(name="p", priority=10, **ask | {"gpu": 3}))
    outcome = engine.decide(0.0, Unlimited())
    assume(outcome.evicts)
    (evict,) = outcome.evicts
    assert all(engine._cluster.pods[uid].node == evict.node for uid in evict.victims)
    one = evict.victims[spared % len(evict.victims)]
    for uid in evict.victims:
        if uid != one:
            engine.handle(events.Gone("Pod", uid), 5.0)
    assert bound(engine, 5.0) == [], "it fits beside one who was to go"
    engine.handle(events.Gone("Pod", one), 60.0)
    assert bound(engine, 60.0) == [("default/p", evict.node)]


@settings(max_examples=slices.count_examples(100), deadline=None)
@given(st.lists(holders(), min_size=5, max_size=9), asks(), asks())
@example(
    [*[("a", 0, SMALL, [0])] * 3, ("a", 0, PAIR, [0, 1]), ("b", 0, PAIR, [0, 1])],
    SMALL,
    SMALL | {"gpucores": 30},
)
def test_what_is_promised_of_cards_is_there_when_the_victims_are_gone(
    there: list[tuple[str, int, Ask, list[int]]], ask: Ask, other: Ask
) -> None:
    """Whoever comes meanwhile with a lower priority takes nothing of it."""
    engine = engine_of(there)
    see(engine, make.pod(name="p", priority=10, **ask | {"gpu": 2, "gpumem": 15000}))
    outcome = engine.decide(0.0, Unlimited())
    assume(outcome.evicts)
    (evict,) = outcome.evicts
    for i in range(4):
        see(engine, make.pod(name=f"low{i}", priority=0, **other))
    engine.decide(1.0, Unlimited())
    for uid in evict.victims:
        engine.handle(events.Gone("Pod", uid), 60.0)
    assert ("default/p", evict.node) in bound(engine, 60.0)
