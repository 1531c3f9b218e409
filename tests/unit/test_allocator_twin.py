"""The twin of Kubernetes' allocator answers as Kubernetes does, case by case; and where our rules differ from its."""

from __future__ import annotations

import copy
import itertools
import json
from collections import Counter
from typing import Any

import pytest

from tests.differential.allocator import KUBERNETES, RANDOM, cases, outcome
from tests.model import allocator_worlds
from tests.oracles import allocator
from tests.oracles.allocator_expressions import judge
from tests.oracles.allocator_results import normal

Json = dict[str, Any]
# Whether all solutions are looked at is a matter of time; most worlds are small enough.
STEPS = 2_000


def first_of(world: Json) -> allocator.Allocation | None:
    return next(allocator.solve_all(world, judge), None)


def devices_of(answer: Json) -> allocator.Allocation:
    return tuple(
        tuple(
            (one["request"], (one["driver"], one["pool"], one["device"]))
            for one in result.get("devices", {}).get("results", ())
        )
        for result in answer["results"]
    )


@pytest.mark.parametrize(
    "case", [*cases(KUBERNETES), *cases(RANDOM)], ids=lambda case: str(case["name"])
)
def test_the_twin_answers_as_kubernetes(case: Json) -> None:
    answer = allocator.allocate(case["world"], judge)
    assert answer["error"] == case.get("error", "")
    assert normal(answer["results"]) == normal(case["results"])


def test_a_world_is_not_changed() -> None:
    for case in cases(RANDOM):
        before = copy.deepcopy(case["world"])
        allocator.allocate(case["world"], judge)
        assert case["world"] == before


def test_what_is_recorded_has_every_outcome() -> None:
    became = Counter(outcome({"error": "", **case}) for case in cases(RANDOM))
    assert min(became["found"], became["none"]) > 80
    assert len(became) > 20


def test_each_aspect_of_worlds_meets_success_and_failure() -> None:
    became: set[tuple[str, str]] = set()
    for seed in range(600):
        try:
            answer = allocator.allocate(allocator_worlds.draw(seed), judge, steps=STEPS)
        except allocator.TooManyStepsError:
            continue
        said = "error" if answer["error"] else outcome(answer)
        became |= {(aspect, said) for aspect in allocator_worlds.aspects_of(seed)}
    words = ("found", "none", "error")
    assert became == set(itertools.product(allocator_worlds.ASPECTS, words))


def test_our_rules_find_at_least_what_kubernetes_finds() -> None:
    compared = 0
    for case in cases(KUBERNETES) + cases(RANDOM):
        if case["results"] is None or len(json.dumps(case)) > 5_000:
            continue
        try:
            found = list(allocator.solve_all(case["world"], judge, steps=STEPS))
        except allocator.TooManyStepsError:
            continue
        compared += 1
        assert devices_of(case) in found, case["name"]
    assert compared > 200


def world(**parts: Any) -> Json:
    return {
        "node": {"metadata": {"name": "n0"}},
        "classes": [{"metadata": {"name": "any"}, "spec": {}}],
    } | parts


def slice_of(name: str, **spec: Any) -> Json:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    return {
        "metadata": {"name": name},
        "spec": {"driver": "a.example", "nodeName": "n0", "pool": pool} | spec,
    }


def device(name: str, root: str = "r0", **parts: Any) -> Json:
    return {"name": name, "attributes": {"std.example/root": {"string": root}}} | parts


def request(name: str, **parts: Any) -> Json:
    wish = {"deviceClassName": "any", "allocationMode": "ExactCount", "count": 1} | parts
    if wish["allocationMode"] == "All":
        del wish["count"]
    return {"name": name, "exactly": wish}


def claim(name: str, *requests: Json, **parts: Any) -> Json:
    return {"metadata": {"name": name}, "spec": {"devices": {"requests": list(requests)} | parts}}


def test_another_choice_before_all_devices_may_satisfy_their_constraint() -> None:
    big = {"cel": {"expression": 'device.driver == "b.example"'}}
    own = [device("d0", "r0"), device("d1", "r1")]
    others = [device("d2", "r1")]
    given = world(
        slices=[
            slice_of("a", devices=own),
            slice_of("b", driver="b.example", devices=others),
        ],
        claims=[
            claim(
                "c",
                request("one"),
                request("all", allocationMode="All", selectors=[big]),
                constraints=[{"matchAttribute": "std.example/root"}],
            )
        ],
    )
    assert "cannot add device b.example/p/d2" in allocator.allocate(given, judge)["error"]
    assert first_of(given) == (
        (("one", ("a.example", "p", "d1")), ("all", ("b.example", "p", "d2"))),
    )


def counted(name: str, of: str) -> Json:
    drawn = {"counterSet": of, "counters": {"x": {"value": "1"}}}
    return device(name, consumesCounters=[drawn])


def with_counters(devices: list[Json]) -> list[Json]:
    sets = [{"name": name, "counters": {"x": {"value": "1"}}} for name in ("s0", "s1")]
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 2}
    return [
        slice_of("counters", pool=pool, sharedCounters=sets),
        slice_of("devices", pool=pool, devices=devices),
    ]


def held(*names: str) -> Json:
    results = [{"request": "r", "driver": "a.example", "pool": "p", "device": one} for one in names]
    return claim("held") | {"status": {"allocation": {"devices": {"results": results}}}}


def test_an_overdrawn_counter_set_refuses_its_own_devices_only() -> None:
    devices = [counted(f"d{i}", f"s{i // 3}") for i in range(4)]
    given = world(
        slices=with_counters(devices),
        allocated=[held("d0", "d1")],
        claims=[claim("c", request("r"))],
    )
    assert allocator.allocate(given, judge) == {"results": None, "error": ""}
    assert list(allocator.solve_all(given, judge)) == [((("r", ("a.example", "p", "d3")),),)]


def test_access_for_administrators_takes_nothing_from_other_claims() -> None:
    given = world(
        slices=with_counters([counted("d0", "s0"), counted("d1", "s0")]),
        claims=[claim("c0", request("r", adminAccess=True)), claim("c1", request("r"))],
    )
    assert allocator.allocate(given, judge)["results"] is None
    assert first_of(given) == (
        (("r", ("a.example", "p", "d0")),),
        (("r", ("a.example", "p", "d0")),),
    )
    one = world(
        slices=[slice_of("a", devices=[device("d0")])],
        claims=[claim("c0", request("admin", adminAccess=True), request("r"))],
    )
    assert first_of(one) is None


def test_an_expression_that_fails_rules_out_its_device_only() -> None:
    rooted = {"cel": {"expression": 'device.attributes["std.example"].root == "r0"'}}
    given = world(
        slices=[slice_of("a", devices=[device("d0", attributes={}), device("d1")])],
        claims=[claim("c", request("r", selectors=[rooted]))],
    )
    assert "no such key: root" in allocator.allocate(given, judge)["error"]
    assert first_of(given) == ((("r", ("a.example", "p", "d1")),),)


def test_the_twin_gives_up_where_it_would_take_too_long() -> None:
    given = world(
        slices=[slice_of("a", devices=[device(f"d{i}") for i in range(12)])],
        claims=[claim("c", *(request(f"r{i}", count=2) for i in range(7)))],
    )
    with pytest.raises(allocator.TooManyStepsError):
        allocator.allocate(given, judge)
