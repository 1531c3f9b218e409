"""What is decided in a trial leaves nothing behind: no nomination, nobody who is on the way out, no lot."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api.placement import Mode, Placement
from scheduler.config import Config
from scheduler.engine.engine import Engine
from scheduler.state import checks
from scheduler.state.nominations import Nominations
from scheduler.state.pods import Life
from tests import make, slices
from tests.model import preemption_worlds as worlds
from tests.oracles.preemption import World


def fingerprint(engine: Engine) -> dict[str, Any]:
    """All that a decision may change, byte by byte."""
    cluster = engine._cluster
    nodes, cards, pods = cluster.nodes.columns, cluster.cards.columns, cluster.ledger.pods
    return {
        "totals": nodes.totals.tobytes(),
        "pools": nodes.pools.used.tobytes(),
        "cards": cards.used.tobytes(),
        "pods": [column.tobytes() for column in pods.columns.list_values()],
        "records": list(cluster.pods.items()),
        "nominated": [(node, list(cluster.nominations.list_on(node).items())) for node in cluster.nominations.list_nodes()],
        "promised": {uid: cluster.nominations.find_cards(uid) for uid in cluster.pods},
        "top": cluster.nominations.top,
        "going": list(cluster.nominations.going.items()),
        "lots": cluster.lots.drawn,
        "terms": cluster.terms.version,
    }  # fmt: skip


def decide(engine: Engine) -> Any:
    """What is decided for all pods that wait."""
    waiting = [pod for pod in engine._cluster.pods.values() if pod.life == Life.PENDING]
    outcome = engine._cycle.schedule(waiting)
    return outcome.binds, outcome.evicts, outcome.nominates, [one.uid for one in outcome.holds]


def built(world: World, incoming: list[Any], mode: Mode) -> Engine:
    config = Config(preemption=True, placement=Placement(mode=mode))
    engine = worlds.engine_of(world, config)
    for pod in incoming:
        worlds.see(engine, pod)
    # Room for what a trial adds is made once, and stays.
    engine._cluster.ledger.pods.make_room(64, 16)
    return engine


@given(
    worlds.worlds(),
    st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True).flatmap(
        lambda numbers: st.tuples(*[worlds.pods(f"w{number}") for number in numbers])
    ),
    st.sampled_from([Mode.KEEL, Mode.LEAST_ALLOCATED, Mode.RANDOM]),
    st.lists(st.booleans(), max_size=3),
)
@settings(max_examples=slices.count_examples(150), deadline=None)
def test_a_decision_in_a_trial_that_is_rolled_back_leaves_no_trace(
    world: World, incoming: tuple[Any, ...], mode: Mode, keeps: list[bool]
) -> None:
    """Also of decisions in trials within it, whether these are kept or not; and the next decision is the same."""
    engine = built(world, list(incoming), mode)
    before = fingerprint(engine)
    with engine._cluster.trial():
        for is_kept in keeps:
            within = fingerprint(engine)
            with engine._cluster.trial() as inner:
                decide(engine)
                if is_kept:
                    inner.commit()
            assert is_kept or fingerprint(engine) == within
        decide(engine)
    assert fingerprint(engine) == before
    checks.verify(engine._cluster)
    assert decide(engine) == decide(built(world, list(incoming), mode))


def test_what_is_decided_in_a_trial_that_is_committed_stays() -> None:
    cluster = make.cluster(
        nodes=[make.node(name="n", cpu=1)],
        pods=[make.pod(name="low", node="n", cpu=1), make.pod(name="high", cpu=1, priority=1)],
    )
    cycle = make.cycle(cluster=cluster, config=Config(preemption=True))
    with cluster.trial() as trial:
        outcome = cycle.schedule([cluster.pods["default/high"]])
        trial.commit()
    assert outcome.evicts
    assert cluster.nominations.find_node("default/high") == "n"
    assert cluster.nominations.going == {"default/low": "default/high"}


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_nominations_are_restored_with_their_order_at_any_depth(depth: int) -> None:
    told: list[str] = []
    nominations = Nominations(told.append, lambda _: None)
    for i in range(4):
        nominations.put(f"p{i}", f"n{i % 2}", i)
    nominations.send_away(["v"], "p1")
    for _ in range(depth):
        nominations.begin_trial()
    nominations.drop("p0")
    nominations.put("p0", "n0", 7)
    assert nominations.let_stay("v") == "p1"
    for _ in range(depth - 1):
        nominations.keep()
    version, n_told = nominations.version, len(told)
    nominations.restore()
    assert [list(nominations.list_on(node)) for node in nominations.list_nodes()] == [
        ["p0", "p2"],
        ["p1", "p3"],
    ]
    assert (nominations.top, dict(nominations.going)) == (3, {"v": "p1"})
    # Who looked at them in the trial has to look again, and only at what is another.
    assert nominations.list_since(version) == {"n0"} == set(told[n_told:])
    nominations.put("p9", "n1", 9)
    assert nominations.top == 9
