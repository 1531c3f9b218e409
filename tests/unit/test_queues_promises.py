"""The first large workload of a queue is promised quota and a place: smaller ones behind it do not delay it."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from scheduler.api.queues import configuration
from scheduler.config import Config
from scheduler.queues import forecast, whys
from scheduler.queues.scene import Scene
from scheduler.simulate.changes.what_if import Changes
from scheduler.simulate.run import schedule
from scheduler.simulate.situation import prepare
from tests.unit.test_queues_places import (
    make_flavor,
    make_node,
    make_queue,
    make_running,
    make_workload,
)

Json = dict[str, Any]
PROMISES = {"promises": True}
PLAIN = Config(queues=configuration.read_settings(PROMISES))
KEEPS = {"reclaimWithinCohort": "Never", "withinClusterQueue": "Never"}
THEIRS = {"scheduler": "default-scheduler"}
NODES = [make_node("n0", "r0"), make_node("n1", "r1")]
ADMITTED_AT = "2026-01-01T00:00:01Z"


def limit(workload: Json, seconds: int | None) -> Json:
    if seconds is not None:
        workload["spec"]["maximumExecutionTimeSeconds"] = seconds
    return workload


def make_run(name: str, queue: str, node: str, gpus: int, seconds: int | None) -> list[Json]:
    """A workload that has run since the first second."""
    bodies = make_running(name, queue, node, "gpus", 0, gpus=gpus)
    for body in bodies:
        if body["kind"] == "Workload":
            limit(body, seconds)
            for one in body["status"]["conditions"]:
                one["lastTransitionTime"] = ADMITTED_AT
    return bodies


def run(*objects: Json, config: Config = PLAIN) -> dict[str, Json]:
    result = schedule(objects, config=config, strict=True)
    assert result["warnings"] == []
    return {row["name"]: row for row in result["workloads"]}


def make_world(quota: int = 8, **more: Any) -> list[Json]:
    """On two nodes with four GPUs each one uses three, for a minute; a large one waits for all four of a node."""
    return [
        *NODES,
        make_flavor("gpus", "gpu"),
        *make_queue("a", {"gpus": quota}, **{"preemption": KEEPS, **more}),
        *make_run("runs", "a", "n0", 3, 60),
        *make_run("stays", "a", "n1", 3, None),
        make_workload("large", "a", 1, 4, second=10),
    ]


@pytest.mark.parametrize(
    ("seconds", "gpus", "state"),
    [(None, 1, "waits"), (3600, 1, "waits"), (40, 1, "admitted"), (55, 1, "waits")],
)
def test_one_behind_it_starts_if_it_has_ended_in_time(
    seconds: int | None, gpus: int, state: str
) -> None:
    """Quota is there for both; the place of the large one is free at 00:01:01, and it is 00:00:12."""
    behind = limit(make_workload("behind", "a", 1, gpus, second=12), seconds)
    other = limit(make_workload("other", "a", 1, 2, second=11), 1)
    # Only n0 will do for it: on n1 the other one is for ever.
    for one in (behind, other):
        template = one["spec"]["podSets"][0]["template"]["spec"]
        template["nodeSelector"] = {"kubernetes.io/hostname": "n0"}
    rows = run(*make_world(), other, behind)
    assert rows["behind"]["state"] == state
    assert rows["large"]["state"] == "waits"
    if state == "waits":
        assert rows["behind"]["reason"] == "WaitingForQuota"
        assert rows["behind"]["message"] == (
            "Workload team/large comes first, and starts at 2026-01-01T00:01:01Z at the latest; this one would delay it,"
            " as it will not have ended by then"
        )
        assert not rows["behind"]["uses"]


def test_one_behind_it_starts_if_the_large_one_starts_all_the_same() -> None:
    """Its pod goes to n1, which the large one will not have, even where n0 would be as good."""
    behind = make_workload("behind", "a", 1, 1, second=12)
    rows = run(*make_world(12), behind)
    assert rows["behind"]["state"] == "admitted"
    assert rows["large"]["state"] == "waits"
    first = make_workload("first", "a", 1, 1, second=2)
    template = first["spec"]["podSets"][0]["template"]["spec"]
    template["nodeSelector"] = {"kubernetes.io/hostname": "n1"}
    rows = run(*make_world(8), first, behind)
    # The quota will do for one of them: three of eight stay in use, and four are promised.
    assert rows["first"]["state"] == "admitted"
    assert rows["behind"]["state"] == "waits"


@pytest.mark.parametrize(
    ("world", "config"),
    [
        pytest.param(
            make_world(),
            Config(),
            id="it is not switched on",
        ),
        pytest.param(make_world()[:-1], PLAIN, id="nobody waits"),
        pytest.param(
            [one for one in make_world() if one["metadata"]["name"] != "large"]
            + [make_workload("large", "a", 1, 5, second=10)],
            PLAIN,
            id="it fits at no time",
        ),
        pytest.param(
            [one for one in make_world() if one["metadata"]["name"] != "large"]
            + [make_workload("large", "a", 1, 4, second=30)],
            PLAIN,
            id="it comes later",
        ),
    ],
)
def test_nothing_is_kept_free(world: list[Json], config: Config) -> None:
    behind = make_workload("behind", "a", 1, 1, second=12)
    template = behind["spec"]["podSets"][0]["template"]["spec"]
    template["nodeSelector"] = {"kubernetes.io/hostname": "n0"}
    assert run(*world, behind, config=config)["behind"]["state"] == "admitted"


def test_nothing_is_promised_where_nobody_says_how_long_it_runs() -> None:
    world = [one for one in make_world() if one["metadata"]["name"] not in {"runs", "runs-pod"}]
    world += make_run("runs", "a", "n0", 3, None)
    world.append(limit(make_workload("behind", "a", 1, 1, second=12), 3600))
    assert run(*world)["behind"]["state"] == "admitted"


def test_who_borrows_does_not_delay_the_one_whose_queue_is_owed_the_quota() -> None:
    """Nobody takes anything back here: without a promise, b would borrow for ever."""

    def make(borrower: str, *, owed: int) -> dict[str, Json]:
        return run(
            *NODES,
            make_flavor("gpus", "gpu"),
            *make_queue("a", {"gpus": owed}, preemption=KEEPS),
            *make_queue("b", {"gpus": 8 - owed}, preemption=KEEPS),
            *make_run("runs", "b", "n0", 3, 60),
            *make_run("stays", "b", "n1", 3, None),
            make_workload("large", "a", 1, 4, second=10, **THEIRS),
            make_workload("more", borrower, 1, 2, second=12, **THEIRS),
        )

    assert make("b", owed=4)["more"]["state"] == "waits"
    # The large one would borrow itself, and b may be the first to borrow.
    assert make("b", owed=3)["more"]["state"] == "admitted"


@pytest.mark.parametrize(("seconds", "state"), [(100, "waits"), (85, "waits"), (80, "admitted")])
def test_nobody_knows_when_one_ends_that_is_a_minute_late(seconds: int, state: str) -> None:
    """It is 00:02:26, and the one that runs since 00:00:01 has said how long: until 00:01:41, 00:01:26 or 00:01:21."""
    behind = limit(make_workload("behind", "a", 1, 1), 1)
    behind["metadata"]["creationTimestamp"] = "2026-01-01T00:02:26Z"
    world = [*make_world(), behind]
    for one in world:
        if one["metadata"]["name"] == "runs" and one["kind"] == "Workload":
            one["spec"]["maximumExecutionTimeSeconds"] = seconds
    template = behind["spec"]["podSets"][0]["template"]["spec"]
    template["nodeSelector"] = {"kubernetes.io/hostname": "n0"}
    # Before that, it may end at any time, and the large one then starts.
    assert run(*world)["behind"]["state"] == state


@pytest.mark.parametrize(("runs_alike", "state"), [(3600, "waits"), (None, "waits"), (20, "admitted")])  # fmt: skip
def test_one_that_is_kept_back_keeps_back_no_other_that_is_like_it(
    runs_alike: int | None, state: str
) -> None:
    first = limit(make_workload("first", "a", 1, 1, second=12), 3600)
    alike = limit(make_workload("alike", "a", 1, 1, second=13), runs_alike)
    for one in (first, alike):
        template = one["spec"]["podSets"][0]["template"]["spec"]
        template["nodeSelector"] = {"kubernetes.io/hostname": "n0"}
    rows = run(*make_world(), first, alike)
    assert rows["first"]["state"] == "waits"
    assert rows["alike"]["state"] == state


@pytest.mark.parametrize("policy", ["Never", "Any", "LowerPriority"])
def test_quota_that_can_be_taken_back_is_not_kept_free(policy: str) -> None:
    """The large one waits for its own queue: when that has ended, it takes back what others borrow."""
    takes = {"reclaimWithinCohort": policy, "withinClusterQueue": "Never"}
    rows = run(
        *NODES,
        make_flavor("gpus", "gpu"),
        *make_queue("a", {"gpus": 7}, preemption=takes),
        *make_queue("b", {"gpus": 1}, preemption=KEEPS),
        *make_run("own", "a", "n0", 4, 60),
        *make_run("stays", "a", "n1", 2, None),
        make_workload("large", "a", 1, 5, second=10, priority=5, **THEIRS),
        make_workload("more", "b", 1, 2, second=12, **THEIRS),
    )
    assert rows["large"]["state"] == "waits"
    assert rows["more"]["state"] == ("waits" if policy == "Never" else "admitted")


def test_many_that_are_alike_are_kept_back_and_tried_again() -> None:
    """More than are tried one by one; when the large one has gone, all start that can."""
    world = [one for one in make_world(30) if one["metadata"]["name"] != "n1"]
    world += [make_node("n1", "r1", gpus=40)]
    many = []
    for i in range(20):
        one = make_workload(f"small{i}", "a", 1, 1, second=12 + i)
        one["spec"]["podSets"][0]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "n0"}  # fmt: skip
        many.append(one)
    for one in world:
        if one["metadata"]["name"] == "large":
            template = one["spec"]["podSets"][0]["template"]["spec"]
            template["nodeSelector"] = {"kubernetes.io/hostname": "n0"}
    rows = run(*world, *many)
    assert {rows[f"small{i}"]["state"] for i in range(20)} == {"waits"}
    rows = run(*[one for one in world if one["metadata"]["name"] != "large"], *many)
    assert [rows[f"small{i}"]["state"] for i in range(2)] == ["admitted", "waits"]


def test_queue_why_names_the_promise() -> None:
    behind = make_workload("behind", "a", 1, 1, second=12)
    template = behind["spec"]["podSets"][0]["template"]["spec"]
    template["nodeSelector"] = {"kubernetes.io/hostname": "n0"}
    situation = prepare([*make_world(), behind], Changes(), strict=True)
    scene = Scene(situation, PLAIN, is_live=False)
    found = whys.explain(scene, scene.workloads["team/behind"])
    assert found["state"] == "waits"
    assert "Workload team/large comes first, and starts at 2026-01-01T00:01:01Z" in found["message"]


class Task(NamedTuple):
    """A workload: its GPUs, its pods, for how long it runs, and its queue."""

    gpus: int
    n_pods: int
    seconds: int
    queue: str = "a"


TASK = st.builds(Task, st.integers(1, 4), st.integers(1, 2), st.integers(5, 900))


@given(
    st.lists(TASK, min_size=1, max_size=5),
    st.builds(Task, st.integers(2, 4), st.integers(1, 3), st.integers(5, 900)),
    st.lists(TASK, min_size=1, max_size=4),
    st.integers(4, 12),
)
@settings(max_examples=60, deadline=None)
def test_whoever_comes_later_does_not_delay_the_first_one(
    running: list[Task], large: Task, later: list[Task], quota: int
) -> None:
    """The future is played with those behind it and without them, on nodes."""
    world = [
        *(make_node(f"n{i}", f"r{i}") for i in range(3)),
        make_flavor("gpus", "gpu"),
        *make_queue("a", {"gpus": quota}, preemption=KEEPS),
    ]
    for i, one in enumerate(running):
        world.append(
            limit(make_workload(f"r{i}", "a", one.n_pods, one.gpus, second=i), one.seconds)
        )
    world.append(
        limit(make_workload("large", "a", large.n_pods, large.gpus, second=20), large.seconds)
    )
    behind = [
        limit(make_workload(f"w{i}", "a", one.n_pods, one.gpus, second=30 + i), one.seconds)
        for i, one in enumerate(later)
    ]
    # Only the first one that waits is promised anything.
    assume(all(find_start(world, f"r{i}") == 0 for i in range(len(running))))
    alone, among = find_start(world, "large"), find_start([*world, *behind], "large")
    assert alone is None or (among is not None and among <= alone)


def find_start(world: list[Json], name: str) -> float | None:
    # All are seen at the same time.
    clock = make_workload("clock", "a", 1, 99, second=59)
    situation = prepare([*world, clock], Changes(), strict=True)
    found = forecast.foresee(situation, PLAIN, [f"team/{name}"], is_live=False)
    return found[f"team/{name}"].seconds
