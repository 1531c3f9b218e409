"""Single rules of the twin of Kueue's admission cycle answer Kueue's tables as Kueue does."""

from collections.abc import Callable

import pytest

from tests.oracles.kueue import cases
from tests.oracles.kueue.amounts import Amounts
from tests.oracles.kueue.assignments import Assignment, Fine
from tests.oracles.kueue.cases import Fields
from tests.oracles.kueue.cycle import check_outdated, find_reserve
from tests.oracles.kueue.flavors import check_preferred
from tests.oracles.kueue.order import Entry
from tests.oracles.kueue.partial import search_counts
from tests.oracles.kueue.tree import add_usage
from tests.oracles.kueue.victims import Hunt, Settings, check_policy
from tests.oracles.kueue.workloads import Info, Progress, read_workload
from tests.oracles.kueue.world import Queue, World, build_world


def make_info(priority: int = 0, created: int = 0) -> Info:
    said = {"asks": {"cpu": 1}, "priority": priority, "created": created, "in": "queue"}
    return read_workload(cases.make_workload("default/one", said), "queue")


def ask_preferred(one: Fields) -> bool:
    said = {"prefers": one["prefers"]} if "prefers" in one else {}
    queue = Queue("queue", spec=cases.make_queue("queue", said)["spec"])
    a, b = ((Fine[fine], borrow) for fine, borrow in (one["a"], one["b"]))
    return check_preferred(a, b, queue)


def read_amounts(nested: Fields) -> Amounts:
    return {(flavor, k): v for flavor, one in nested.items() for k, v in one.items()}


def ask_reserved(one: Fields) -> dict[str, dict[str, int]]:
    world = build_world(cases.make_objects({"queues": {"queue": one["queue"]}}))
    queue = world.queues["queue"]
    for fr, amount in read_amounts(one["usage"]).items():
        add_usage(queue, fr, amount)
    assignment = Assignment(Progress([], 0, 0, ""), borrowing=one.get("borrowing", 0))
    assignment.usage = read_amounts(one["asks"])
    reserve = find_reserve(Entry(make_info(), queue, assignment))
    told: dict[str, dict[str, int]] = {}
    for (flavor, resource), amount in reserve.items():
        told.setdefault(flavor, {})[resource] = amount
    return told


def ask_outdated(one: Fields) -> bool:
    cycle, generation, shape = one["now"]
    before, seen, was = one["last"]
    info = make_info()
    info.shape = shape
    return check_outdated(Progress([], seen, before, was), info, generation, cycle)


def ask_search(one: Fields) -> int | None:
    manifest = {"spec": {"podSets": [{"count": n, "minCount": least} for n, least in one["sets"]]}}

    def try_counts(counts: list[int]) -> int | None:
        return sum(counts) if sum(counts) <= one["limit"] else None

    return search_counts(manifest, try_counts)


def ask_policy(one: Fields) -> bool:
    hunt = Hunt(World(), Settings(), 0.0, make_info(*one["preemptor"]), Queue("queue"), {})
    return check_policy(hunt, make_info(*one["candidate"]), one["policy"])


RULES: dict[str, Callable[[Fields], object]] = {
    "preferred": ask_preferred,
    "reserved": ask_reserved,
    "outdated": ask_outdated,
    "search": ask_search,
    "policy": ask_policy,
}


@pytest.mark.parametrize("one", cases.read_file("rules"), ids=lambda one: one["name"])
def test_a_rule_answers_as_kueues_does(one: Fields) -> None:
    assert RULES[one["rule"]](one) == one["want"]


def test_all_rules_have_cases() -> None:
    assert {one["rule"] for one in cases.read_file("rules")} == set(RULES)
