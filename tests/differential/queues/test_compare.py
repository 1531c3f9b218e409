"""What is compared, what is chance, and what is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.differential.queues import known, quotas
from tests.differential.queues.compare import compare, find_chance, find_differences
from tests.differential.queues.outcomes import (
    ADMITTED,
    PENDING,
    Eviction,
    Fate,
    Outcome,
    PodSet,
    StepOutcome,
)
from tests.differential.queues.worlds import Step, World

Json = dict[str, Any]


def workload(name: str, *resources: str) -> Json:
    requests = dict.fromkeys(resources, "1")
    containers = [{"resources": {"requests": requests}}]
    pod_sets = [{"name": "set-0", "count": 1, "template": {"spec": {"containers": containers}}}]
    return quotas.make("Workload", name, spec={"queueName": "local", "podSets": pod_sets})


HAS_ROOM = Fate(ADMITTED, "queue-0", [PodSet("set-0", 2, {"cpu": "flavor-0"})])
WAITS = Fate(PENDING, reason="Pending", message="1 more needed")
WORLD = World(
    seed=1,
    objects=(
        quotas.make("LocalQueue", "local", spec={"clusterQueue": "queue-0"}),
        quotas.make(
            "ClusterQueue",
            "queue-0",
            spec={"resourceGroups": [{"flavors": [{"name": "flavor-0"}]}]},
        ),
    ),
    steps=(Step(created=(workload("a", "cpu"), workload("b", "cpu", "memory"))),),
)


def outcome(*steps: dict[str, Fate]) -> Outcome:
    return Outcome([StepOutcome(fates) for fates in steps])


def kinds(theirs: Outcome, ours: Outcome) -> list[tuple[int, str, str]]:
    return [(one.step, one.what, one.workload) for one in find_differences(theirs, ours)]


def test_the_same_is_the_same_whatever_holds_it() -> None:
    as_tuple = Fate(ADMITTED, "queue-0", (PodSet("set-0", 2, {"cpu": "flavor-0"}),))
    assert not find_differences(outcome({"a": HAS_ROOM}), outcome({"a": as_tuple}))


def test_each_part_of_a_fate_is_compared() -> None:
    fewer = Fate(ADMITTED, "queue-0", [PodSet("set-0", 1, {"cpu": "flavor-0"})])
    elsewhere = Fate(ADMITTED, "queue-0", [PodSet("set-0", 2, {"cpu": "flavor-1"})])
    for other in (fewer, elsewhere):
        assert kinds(outcome({"a": HAS_ROOM}), outcome({"a": other})) == [(0, "pod_sets", "a")]
    found = kinds(outcome({"a": HAS_ROOM}), outcome({"a": WAITS}))
    assert [what for _, what, _ in found] == ["status", "queue", "pod_sets", "reason", "message"]


def test_who_is_missing_is_different() -> None:
    assert kinds(outcome({"a": WAITS}), outcome({})) == [(0, "status", "a")]
    assert kinds(outcome({}), outcome({"a": WAITS})) == [(0, "status", "a")]


def test_evictions_are_compared_in_their_order_and_with_who_came_instead() -> None:
    one = Eviction(1, "a", "Preempted", "InClusterQueue", "b")
    other = Eviction(1, "a", "Preempted", "InClusterQueue", "c")
    later = Eviction(2, "a", "Preempted", "InClusterQueue", "b")
    theirs = Outcome([StepOutcome({}, [one])])
    for wrong in ([other], [later], [], [one, later]):
        assert kinds(theirs, Outcome([StepOutcome({}, wrong)])) == [(0, "evictions", "")]


def test_what_follows_from_another_step_is_not_told() -> None:
    theirs = outcome({"a": HAS_ROOM}, {"a": HAS_ROOM, "b": WAITS})
    ours = outcome({"a": WAITS}, {"a": WAITS, "b": HAS_ROOM})
    assert {step for step, _, _ in kinds(theirs, ours)} == {0}


def test_other_words_hide_nothing_of_what_is_done_later() -> None:
    told = Fate(PENDING, reason="Pending", message="2 more needed")
    found = kinds(outcome({"a": WAITS}, {"a": WAITS}), outcome({"a": told}, {"a": HAS_ROOM}))
    assert found[0] == (0, "message", "a")
    assert (1, "status", "a") in found


def test_more_steps_are_different() -> None:
    assert kinds(outcome({}, {}), outcome({})) == [(1, "steps", "")]


def test_a_world_is_ambiguous_if_kueue_does_two_things() -> None:
    assert find_chance([outcome({"a": WAITS}), outcome({"a": HAS_ROOM})]).is_ambiguous
    assert not find_chance([outcome({"a": WAITS}), outcome({"a": WAITS})]).is_ambiguous
    assert not find_chance([outcome({"a": WAITS})]).is_ambiguous


def test_words_that_kueue_chooses_by_chance_are_not_compared() -> None:
    told = Fate(PENDING, reason="Pending", message="2 more needed")
    chance = find_chance([outcome({"a": WAITS, "b": WAITS}), outcome({"a": told, "b": WAITS})])
    assert not chance.is_ambiguous
    third = Fate(PENDING, reason="Pending", message="3 more needed")
    assert not compare(chance, outcome({"a": third, "b": WAITS}))
    (found,) = compare(chance, outcome({"a": third, "b": third}))
    assert (found.what, found.workload) == ("message", "b")
    assert (found.theirs, found.ours) == ("1 more needed", "3 more needed")


def test_a_reason_of_a_newer_kueue_is_known_and_another_is_not() -> None:
    chance = find_chance([outcome({"a": WAITS})])
    for reason, is_known in (("ExceedsMaxQuota", True), ("Sunday", False)):
        ours = outcome({"a": Fate(PENDING, reason=reason, message="1 more needed")})
        (found,) = compare(chance, ours)
        assert bool(known.find_title(found, WORLD)) is is_known
    (found,) = compare(find_chance([outcome({"a": HAS_ROOM})]), outcome({"a": HAS_ROOM}, {}))
    assert not known.find_title(found, WORLD)


def test_a_message_is_compared_where_there_is_one_only() -> None:
    told = Fate(PENDING, reason="Pending", message="2 more needed")
    chance = find_chance([outcome({"a": WAITS, "b": WAITS})])
    one, several = compare(chance, outcome({"a": told, "b": told}))
    assert (one.workload, several.workload) == ("a", "b")
    assert not known.find_title(one, WORLD)
    assert known.find_title(several, WORLD)


def test_of_a_stopped_queue_no_words_are_compared() -> None:
    told = Fate(PENDING, reason="Inadmissible", message="it is inactive")
    found = compare(find_chance([outcome({"a": WAITS})]), outcome({"a": told}))
    assert not any(known.find_title(one, WORLD) for one in found)
    stopped = quotas.make("ClusterQueue", "queue-0", spec={"stopPolicy": "Hold"})
    (step,) = WORLD.steps
    world = replace(WORLD, steps=(replace(step, changed=(stopped,)),))
    assert all(known.find_title(one, world) for one in found)
