"""Why a workload has no quota: what the next decision finds, found without deciding."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from scheduler.api import wire
from scheduler.api.door import events
from scheduler.api.door.workload_decisions import Admit, Preempt, QuotaDecision
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.engine.questions.queues import (
    KnownQueues,
    KnownWorkloads,
    QuotaWait,
    WaitersOf,
    WhyNoQuota,
)
from scheduler.queues import whys
from scheduler.simulate.changes.what_if import Changes
from scheduler.simulate.situation import make_engine, prepare
from tests.unit.test_queues_places import (
    FOUR_NODES,
    RACKS,
    make_flavor,
    make_node,
    make_queue,
    make_workload,
)

Json = dict[str, Any]


def give(body: Json, flavor: str = "gpus") -> Json:
    """A workload that has quota since it was created."""
    at, (pod_set,) = body["metadata"]["creationTimestamp"], body["spec"]["podSets"]
    requests = pod_set["template"]["spec"]["containers"][0]["resources"]["requests"]
    used = {name: f"{int(n) * pod_set['count']}" for name, n in requests.items()}
    given = {
        "name": "main",
        "count": pod_set["count"],
        "flavors": dict.fromkeys(used, flavor),
        "resourceUsage": used,
    }
    admission = {"clusterQueue": body["spec"]["queueName"], "podSetAssignments": [given]}
    conditions = [
        {"type": kind, "status": "True", "reason": kind, "lastTransitionTime": at}
        for kind in ("QuotaReserved", "Admitted")
    ]
    return {**body, "status": {"admission": admission, "conditions": conditions}}


def make(*objects: Json) -> Engine:
    return make_engine(prepare(objects, Changes(), strict=True).inventory, Config())


def decide(engine: Engine) -> list[QuotaDecision]:
    # Late enough that those with quota have had their places taken again, as in any process that has started.
    return list(engine.decide(100.0, Unlimited()).quotas)


def why(engine: Engine, name: str) -> QuotaWait:
    found = engine.ask(WhyNoQuota(f"team/{name}"))
    assert found is not None
    return found


def make_world(rng: random.Random) -> list[Json]:
    """Queues of one or two cohorts, workloads that have quota, and as many that wait."""
    policies = ("Never", "LowerPriority", "Any")
    objects = [*FOUR_NODES, RACKS, make_flavor("gpus", "gpu"), make_flavor("more", "gpu")]
    names = [f"q{i}" for i in range(rng.randint(1, 4))]
    for name in names:
        quotas = {"gpus": rng.randint(0, 6)} | ({"more": 2} if rng.random() < 0.3 else {})
        preemption = {
            "reclaimWithinCohort": rng.choice(policies),
            "withinClusterQueue": rng.choice(("Never", "LowerPriority")),
        }
        cohort, strategy = f"c{rng.randint(0, 1)}", rng.choice(("StrictFIFO", "BestEffortFIFO"))
        objects += make_queue(
            name, quotas, cohortName=cohort, preemption=preemption, queueingStrategy=strategy
        )
    for i in range(12):
        scheduler = rng.choice(("evenkeel", "other"))
        body = make_workload(
            f"w{i}", rng.choice(names), rng.randint(1, 2), rng.randint(1, 3), second=i,
            priority=rng.randint(0, 2), scheduler=scheduler,
        )  # fmt: skip
        objects.append(give(body) if i < 6 else body)
    return objects


@pytest.mark.parametrize("seed", range(12))
def test_questions_change_no_decision_about_quota(seed: int) -> None:
    objects = make_world(random.Random(seed))
    left_alone, asked = make(*objects), make(*objects)
    for _ in range(3):
        before = list(asked.ask(KnownQueues()))
        for one in asked.ask(KnownWorkloads()):
            asked.ask(WhyNoQuota(one.key))
        for queue in before:
            asked.ask(WaitersOf(queue.name, 100))
        assert list(asked.ask(KnownQueues())) == before
        assert decide(asked) == decide(left_alone)


@pytest.mark.parametrize("seed", range(30))
def test_the_only_one_who_waits_gets_what_was_foreseen(seed: int) -> None:
    objects = make_world(random.Random(seed))
    # Of those who wait the last one stays.
    engine = make(*objects[:-6], objects[-1])
    found = why(engine, "w11")
    decided = [one for one in decide(engine) if isinstance(one, Admit | Preempt)]
    match found.verdict:
        case "fits":
            assert [one.key for one in decided] == ["team/w11"]
        case "preempts":
            assert {one.key for one in decided} == {one.key for one in found.victims}
            assert {str(one.reason) for one in decided if isinstance(one, Preempt)} == {
                one.why for one in found.victims
            }
            assert why(engine, "w11").verdict == "goes"
        case _:
            assert decided == []
            (known,) = (one for one in engine.ask(KnownWorkloads()) if one.key == "team/w11")
            assert (known.reason, known.message) == (found.reason, found.message)


def test_the_places_of_those_whose_pods_do_not_exist_count() -> None:
    """Nothing was decided yet. Both could give the quota back, and the older one is where a place would be."""
    on_one = "kubernetes.io/hostname"
    holders = [
        give(make_workload(name, "b", 1, gpus, second=i, required=on_one))
        for i, (name, gpus) in enumerate((("large", 4), ("small", 2)))
    ]
    world = [
        make_node("n0", "r0", 4),
        make_node("n1", "r0", 3),
        RACKS,
        make_flavor("gpus", "gpu", "racks"),
        *make_queue("a", {"gpus": 8}),
        *make_queue("b", {"gpus": 0}),
        *holders,
        make_workload("asker", "a", 1, 4, second=9, required=on_one),
    ]
    engine = make(*world)
    found = why(engine, "asker")
    assert (found.verdict, [one.key for one in found.victims]) == ("preempts", ["team/large"])
    assert [one.verdict for one in engine.ask(WaitersOf("a", 9))] == ["preempts"]
    gone = [one.key for one in decide(engine) if isinstance(one, Preempt)]
    assert gone == ["team/large"]


def test_worlds_have_all_verdicts() -> None:
    """Else the test above would say less than it seems to."""
    found = set()
    for seed in range(30):
        objects = make_world(random.Random(seed))
        found.add(why(make(*objects[:-6], objects[-1]), "w11").verdict)
    assert found == {"fits", "preempts", "waits"}


def test_what_is_missing_is_held_by_ones_own_and_by_those_who_borrow() -> None:
    engine = make(
        *FOUR_NODES,
        make_flavor("gpus", "gpu"),
        *make_queue("a", {"gpus": 4}),
        *make_queue("b", {"gpus": 4}),
        give(make_workload("own", "a", 1, 2)),
        give(make_workload("borrows", "b", 2, 3, second=1)),
        make_workload("waits", "a", 1, 2, second=2),
    )
    found = why(engine, "waits")
    assert (found.verdict, [one.key for one in found.victims]) == ("preempts", ["team/borrows"])
    (flavor,) = found.flavors
    (lack,) = flavor.lacks
    assert (lack.requested, lack.available, lack.nominal, lack.used, lack.most) == (2, 0, 4, 2, 8)
    assert [tuple(one) for one in lack.others] == [("b", 2, 1)]
    assert [one.key for one in flavor.givers] == ["team/borrows"]
    by_name = {one.name: one for one in engine.ask(KnownQueues())}
    assert [(one.borrowed, one.lent) for one in by_name["a"].uses] == [(0, 2)]
    assert [(one.borrowed, one.lent) for one in by_name["b"].uses] == [(2, 0)]


def test_who_has_quota_or_is_not_known_has_no_reason() -> None:
    engine = make(
        make_flavor("gpus", "gpu"),
        *make_queue("a", {"gpus": 4}),
        give(make_workload("has", "a", 1, 2)),
        make_workload("lost", "nowhere", 1, 2),
    )
    assert engine.ask(WhyNoQuota("team/has")) is None
    assert engine.ask(WhyNoQuota("team/nobody")) is None
    assert why(engine, "lost").verdict == "aside"
    assert why(engine, "lost").reason == "Misconfigured"


def test_queues_are_known_before_anything_was_decided_and_without_workloads() -> None:
    engine = make(make_flavor("gpus", "gpu"), *make_queue("a", {"gpus": 4}))
    assert [(one.name, len(one.uses)) for one in engine.ask(KnownQueues())] == [("all", 1), ("a", 1)]  # fmt: skip


def test_those_who_wait_are_listed_in_their_order_and_not_more_than_wanted() -> None:
    waits = [make_workload(f"w{i}", "a", 1, i + 1, second=i) for i in range(4)]
    engine = make(make_flavor("gpus", "gpu"), *make_queue("a", {"gpus": 2}), *waits)
    found = engine.ask(WaitersOf("a", 3))
    assert [one.key for one in found] == ["team/w0", "team/w1", "team/w2"]
    assert [one.verdict for one in found] == ["waits"] * 3
    assert found[2].reason == "ExceedsMaxQuota"
    assert engine.ask(WaitersOf("b", 3)) == []


def test_a_question_has_nobody_tried_again() -> None:
    """What a question tries is undone, so nothing has changed for those who wait for a place."""
    lows = [give(make_workload(f"low-{i}", "a", 1, 4, second=i)) for i in range(3)]
    big = make_workload("big", "a", 2, 4, required="rack", second=9)
    queue = make_queue("a", {"gpus": 100})
    engine = make(*FOUR_NODES, RACKS, make_flavor("gpus", "gpu", "racks"), *queue, *lows, big)
    for now in range(100, 120):
        engine.decide(float(now), Unlimited())
    assert engine.find_due(120.0) == float("inf")
    found = engine.ask(WhyNoQuota("team/big"))
    assert found is not None
    assert found.reason == "TopologyPlacementFailed"
    assert len(engine.ask(WaitersOf("a", 10))) == 1
    assert engine.find_due(120.0) == float("inf")
    # What lasts still counts.
    for body in (make_node("n8", "r8"), make_node("n9", "r8")):
        engine.handle(events.Seen(msgspec.convert(body, wire.Node)), 120.0)
    assert engine.find_due(120.0) <= 121.0
    (given,) = engine.decide(122.0, Unlimited()).quotas
    assert isinstance(given, Admit)


@pytest.mark.parametrize(
    ("least", "given"), [(None, (8, ())), (1, (4, (("main", 2, 4),)))], ids=["all", "minCount"]
)
def test_of_one_that_would_start_with_fewer_pods_these_are_counted(
    least: int | None, given: tuple[int, tuple[tuple[str, int, int], ...]]
) -> None:
    """There is quota for two of its four pods."""
    big = make_workload("big", "a", 4, 2)
    if least is not None:
        big["spec"]["podSets"][0]["minCount"] = least
    world = [make_node("n0", "r0"), make_flavor("gpus", "gpu"), *make_queue("a", {"gpus": 4}), big]
    inventory = prepare(world, Changes(), strict=True).inventory
    engine = make_engine(inventory, Config(), only_ours=False)
    found = engine.ask(WhyNoQuota("team/big"))
    assert found is not None
    assert found.verdict == ("fits" if least else "waits")
    (flavor,) = found.flavors
    assert (flavor.lacks[0].requested, found.fewer) == given
    if least:
        needs = list(whys._list_needs(found.verdict, found, ()))
        assert needs[-1] == "it starts with 2 of the 4 pods of pod set main, as its minCount allows"
