"""Preemption over time: nobody evicts in turn, batches decide as pods one by one, what is promised is kept."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api.door import events
from scheduler.api.door.decisions import Outcome
from scheduler.disruption.attempts import Attempts
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from tests import slices
from tests.model import preemption_worlds as model
from tests.model.peer_objects import ZONE
from tests.model.preemption_worlds import Json
from tests.oracles import preemption as twin

# Rounds until everything is at rest: every one decides, and sees off whoever had to go.
_ROUNDS = 60


@settings(max_examples=slices.count_examples(150), deadline=None)
@given(model.worlds(), st.lists(model.pods("p"), min_size=2, max_size=6))
def test_a_batch_is_decided_as_its_pods_one_by_one(world: twin.World, pods: list[Json]) -> None:
    waiting = _named(pods)
    together, apart = model.engine_of(world), model.engine_of(world)
    for engine in (together, apart):
        for pod in waiting:
            model.see(engine, pod)
    at_once, by_one = together.decide(0.0, Unlimited()), Outcome()
    for _ in waiting:
        by_one.plans += apart.decide(0.0, Unlimited(pods=1)).plans
    assert [at_once.binds, at_once.evicts] == [by_one.binds, by_one.evicts]
    # Whose nomination was taken by one that came later is told of both.
    assert at_once.nominates == by_one.nominates
    assert [hold.attempt for hold in at_once.holds] == [hold.attempt for hold in by_one.holds]


@settings(max_examples=slices.count_examples(150), deadline=None)
@given(model.worlds(), st.lists(model.pods("p"), min_size=1, max_size=5), st.integers(0, 2))
def test_pods_come_to_rest_and_none_evicts_in_turn(
    world: twin.World, pods: list[Json], grace: int
) -> None:
    """Whoever goes comes again, as a controller would have it, and never sends the other away.

    Where a rule spans nodes, a pod may come to another node of a zone in the time in which a node is being freed,
    and keep the preemptor off it: as with kube-scheduler, what is promised is room on one node. That may go on for
    as long as such pods come.
    """
    engine = model.engine_of(twin.World(world.nodes, [], world.budgets))
    bodies = {one["metadata"]["uid"]: one for one in [*world.pods, *_named(pods)]}
    for body in bodies.values():
        body["status"].pop("nominatedNodeName", None)
        model.see(engine, body)
    sent_away: set[tuple[str, str]] = set()
    leaving: dict[str, int] = {}
    at = 0.0
    for _ in range(_ROUNDS):
        outcome = engine.decide(at, Unlimited())
        for bind in outcome.binds:
            body = bodies[bind.uid]
            body["spec"]["nodeName"] = bind.node
            body["status"] = {"phase": "Running"}
            model.see(engine, body, at)
            engine.handle(events.BindDone(bind.uid), at)
        for evict in outcome.evicts:
            for uid in evict.victims:
                assert _priority(bodies[uid]) < _priority(bodies[evict.makes_room_for])
                sent_away.add((_family(evict.makes_room_for), _family(uid)))
                leaving.setdefault(uid, grace)
        assert not sent_away & {(b, a) for a, b in sent_away}
        _agrees_with_one_that_remembers_nothing(engine, bodies)
        if not leaving and engine.find_due(at) == float("inf"):
            break
        at = max(at + 1.0, min(engine.find_due(at), at + 10.0))
        _see_off(engine, bodies, leaving, at)
    else:
        assert any(map(_spans_nodes, bodies.values())), "they never come to rest"
        return
    # Nobody waits for a promise that will not be kept.
    for uid in bodies:
        node = engine._cluster.nominations.find_node(uid)
        assert not node or engine._cluster.pods[uid].node == "", uid
    assert not engine._cluster.nominations.going


def _agrees_with_one_that_remembers_nothing(engine: Engine, bodies: dict[str, Json]) -> None:
    """What is kept of nodes that did not change is what asking them again would give."""
    cycle = engine._cycle
    fresh = Attempts(engine._cluster, cycle.boards, cycle.promises)
    for uid in bodies:
        pod = engine._cluster.pods[uid]
        hold = cycle.explain_hold(pod) if not pod.node else None
        key = cycle._make_key(pod)
        if hold is not None and key is not None:
            kept = cycle.attempts.try_to_make_room(pod, key, hold.diagnosis)
            assert kept == fresh.try_to_make_room(pod, key, hold.diagnosis)


def _see_off(engine: Engine, bodies: dict[str, Json], leaving: dict[str, int], at: float) -> None:
    """Whoever's time is over is gone, and comes again as another pod; the others are being deleted."""
    for uid, left in list(leaving.items()):
        body = bodies[uid]
        if left:
            leaving[uid] -= 1
            meta = body["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:00Z"}
            gone: dict[str, Any] = body | {"metadata": meta}
            gone["status"] = body["status"] | {
                "conditions": [
                    {
                        "type": "DisruptionTarget",
                        "status": "True",
                        "reason": "PreemptionByScheduler",
                    }
                ]
            }
            model.see(engine, gone, at)
            continue
        del leaving[uid], bodies[uid]
        engine.handle(events.Gone("Pod", uid), at)
        again = f"{uid}'"
        spec = {key: value for key, value in body["spec"].items() if key != "nodeName"}
        meta = body["metadata"] | {"name": again, "uid": again}
        bodies[again] = {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}}
        model.see(engine, bodies[again], at)


def _spans_nodes(pod: Json) -> bool:
    """Whether the pod has a rule about others that reaches beyond a node."""
    return ZONE in repr(pod["spec"])


def _named(pods: list[Json]) -> list[Json]:
    """Each with a name of its own; every second one comes before most of those that run."""
    return [
        one
        | {"metadata": one["metadata"] | {"name": f"p{i}", "uid": f"p{i}"}}
        | {"spec": one["spec"] | ({"priority": 3 + 4 * i} if i % 2 else {"priority": 4})}
        for i, one in enumerate(pods)
    ]


def _family(uid: str) -> str:
    return uid.rstrip("'")


def _priority(pod: Json) -> int:
    return twin.priority(pod)
