"""Who goes for whom, and what is told otherwise, is what the twin says that reads like kube-scheduler's source."""

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from scheduler.api.door import events
from scheduler.engine.allowance import Unlimited
from tests import slices
from tests.model import preemption_worlds as model
from tests.model.preemption_worlds import Json
from tests.oracles import preemption as twin


@settings(max_examples=slices.count_examples(400), deadline=None)
@given(model.worlds(), model.pods("p"), st.integers(0, 3))
def test_victims_and_node_are_the_twins(world: twin.World, pod: Json, urgency: int) -> None:
    pod["spec"]["priority"] = [1, 2, 10, 20][urgency]
    engine = model.engine_of(world)
    running = [one for one in world.pods if one["spec"].get("nodeName")]
    fits = any(not twin.beside_nominated(pod, node, world, running)[0] for node in world.nodes)
    model.see(engine, pod)
    outcome = engine.decide(0.0, Unlimited())
    assert bool(outcome.binds) == fits
    assume(not fits)
    (hold,) = outcome.holds
    found, why = twin.targets(pod, world)
    target, attempt = twin.choose(found), hold.attempt
    assert attempt is not None
    if target is None:
        assert not outcome.evicts
        assert attempt.diagnosis is not None
        told = dict(attempt.diagnosis.reasons)
        for text in (twin.NOBODY, twin.NOT_HELPFUL):
            assert told.pop(text, 0) == list(why.values()).count(text), why
        assert attempt.diagnosis.n_nodes == len(world.nodes)
        return
    (evict,) = outcome.evicts
    assert evict.node == target.node
    assert list(evict.victims) == [twin.uid(one) for one in target.victims]
    assert (attempt.node, attempt.victims) == (target.node, len(target.victims))
    assert engine._cluster.nominations.find_node("p") == target.node
    # Whoever was nominated there and comes after is told to look elsewhere.
    cleared = {one.uid for one in outcome.nominates if not one.node}
    assert cleared == {
        twin.uid(one)
        for one in world.pods
        if one["status"].get("nominatedNodeName") == target.node
        and twin.priority(one) < twin.priority(pod)
    }


@settings(max_examples=slices.count_examples(200), deadline=None)
@given(model.worlds(), model.pods("p"))
def test_an_eviction_lets_the_pod_in(world: twin.World, pod: Json) -> None:
    """Else somebody would have been sent away for nothing."""
    pod["spec"]["priority"] = 20
    engine = model.engine_of(world)
    model.see(engine, pod)
    outcome = engine.decide(0.0, Unlimited())
    assume(outcome.evicts)
    (evict,) = outcome.evicts
    for uid in evict.victims:
        engine.handle(events.Gone("Pod", uid), 1.0)
    at = 1.0
    for _ in range(5):
        at = max(at, engine.find_due(at))
        if at == float("inf"):
            break
        binds = engine.decide(at, Unlimited()).binds
        if binds:
            assert [(bind.uid, bind.node) for bind in binds] == [("p", evict.node)]
            return
    raise AssertionError("it waits though its victims are gone")
