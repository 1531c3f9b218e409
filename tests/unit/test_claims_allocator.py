"""Claims get what Kubernetes' allocator gives them, in its order; in our own modes whenever there is any allocation."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api.placement import Mode
from scheduler.api.quantities import read_milli
from tests import slices
from tests.differential import allocator as recorded
from tests.model import allocator_worlds, claim_worlds
from tests.oracles import allocator
from tests.oracles.allocator_expressions import judge
from tests.oracles.allocator_rules import RefusedError

Json = dict[str, Any]
# What kube-scheduler has off unless it is told otherwise.
_OFF = frozenset({"ListTypeAttributes", "CompatibilityGroups", "OptionalNodeOperations", "DerivedAttributes"})  # fmt: skip
# Kubernetes' own cases about parts that are switched off, which are always on here.
_SWITCHED_OFF = frozenset({
    "admin-access-disabled", "binding-conditions-without-feature-gate", "consumable-capacity-fractional-range-gate-disabled",
    "partitionable-devices-disabled-other-device-do-not-consume-counters", "partitionable-devices-disabled-per-device-node-selection",
    "prioritized-list-disabled", "tainted-admin-access-disabled", "tainted-all-devices-single-disabled", "tainted-disabled",
    "tainted-prioritized-list-disabled",
})  # fmt: skip
# More than the columns hold: thousandths of exabytes.
_TOO_LARGE = frozenset({
    "consumable-capacity-range-policy-overflow-aborts-not-skip", "partitionable-devices-counter-quantities-are-not-modified",
})  # fmt: skip


def _list_cases(name: str) -> list[Json]:
    return [
        one
        for one in recorded.cases(name)
        if not any(one["world"].get("features", {}).get(key) for key in _OFF)
        and one["name"] not in _SWITCHED_OFF | _TOO_LARGE
    ]


def _is_ours(world: Json) -> bool:
    """Whether a world is about what is decided otherwise here: access for administrators, counters that are overdrawn."""
    text = json.dumps(world)
    return "adminAccess" in text or ('"allocated"' in text and "consumesCounters" in text)


def _simplify(results: list[Json] | None) -> list[Json] | None:
    """Write amounts and tolerations in one way."""
    found: list[Json] | None = json.loads(json.dumps(results))
    for one in found or ():
        for result in one["devices"].get("results", ()):
            for toleration in result.get("tolerations", ()):
                if not toleration.get("value"):
                    toleration.pop("value", None)
            consumed = result.get("consumedCapacity", {})
            consumed.update({key: read_milli(amount) for key, amount in consumed.items()})
    return found


@pytest.mark.parametrize("case", _list_cases(recorded.KUBERNETES), ids=lambda one: one["name"])
def test_kubernetes_own_cases_come_out_the_same(case: Json) -> None:
    assert _simplify(claim_worlds.allocate(case["world"])) == _simplify(case["results"])


def test_recorded_random_worlds_come_out_as_in_kubernetes() -> None:
    cases = [one for one in _list_cases(recorded.RANDOM) if not _is_ours(one["world"])]
    assert len(cases) > 100
    for case in cases:
        if "PrioritizedList" in case["world"].get("features", {}):
            continue
        found = _simplify(claim_worlds.allocate(case["world"]))
        assert found == _simplify(case["results"]), case["name"]


@given(st.integers(0, 2**30))
@settings(max_examples=slices.count_examples(1000), deadline=None)
def test_random_worlds_come_out_as_the_twin_says(seed: int) -> None:
    world = allocator_worlds.draw(seed)
    if world.get("features") or _is_ours(world) or "refused" in allocator_worlds.aspects_of(seed):
        return
    try:
        wanted = allocator.allocate(world, judge)["results"]
    except allocator.TooManyStepsError:
        return
    assert _simplify(claim_worlds.allocate(world)) == _simplify(wanted)


@given(st.integers(0, 2**30))
@settings(max_examples=slices.count_examples(1000), deadline=None)
def test_whenever_there_is_an_allocation_there_is_one_in_our_own_modes_and_it_is_right(seed: int) -> None:  # fmt: skip
    world = allocator_worlds.draw(seed)
    if world.get("features") or "refused" in allocator_worlds.aspects_of(seed):
        return
    mode = (Mode.KEEL, Mode.LEAST_ALLOCATED)[seed % 2]
    found = claim_worlds.allocate(world, mode)
    try:
        first = next(allocator.solve_all(world, judge), None)
        assert (found is None) == (first is None)
        if found is not None:
            assert _is_right(world, found)
    except allocator.TooManyStepsError:
        return
    except RefusedError:
        assert found is None


def _is_right(world: Json, found: list[Json]) -> bool:
    """Whether what was found is among all allocations that are right; the order of a request's devices does not matter."""
    mine = [sorted(_list_given(one)) for one in found]
    for right in allocator.solve_all(world, judge):
        if [sorted((name, *device) for name, device in claim) for claim in right] == mine:
            return True
    return False


def _list_given(one: Json) -> list[tuple[str, ...]]:
    results = one["devices"].get("results", ())
    return [(each["request"], each["driver"], each["pool"], each["device"]) for each in results]
