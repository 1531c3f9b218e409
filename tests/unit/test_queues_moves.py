"""A queue that is owed its quota gets it where it is scattered: others are moved, if they find another place at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api.queues import configuration
from scheduler.config import Config
from scheduler.simulate.run import schedule
from tests.unit.test_queues_places import (
    make_flavor,
    make_node,
    make_queue,
    make_running,
    make_workload,
)

Json = dict[str, Any]
MOVES = Config(queues=configuration.read_settings({"moves": True}))
KEEPS = {"reclaimWithinCohort": "Never", "withinClusterQueue": "Never"}


class Runs(NamedTuple):
    """A workload of queue b that runs: its node, its GPUs, and its priority."""

    node: int
    gpus: int
    priority: int = 0


def make_world(
    running: Sequence[Runs], n_nodes: int, *, owed: int = 4, wants: int = 4, **asker: Any
) -> list[Json]:
    """Nodes with four GPUs each; queue a is owed some, and one workload of it wants a node's GPUs."""
    return [
        *(make_node(f"n{i}", "r0") for i in range(n_nodes)),
        make_flavor("gpus", "gpu"),
        *make_queue("a", {"gpus": owed}, preemption=KEEPS),
        *make_queue("b", {"gpus": 4 * n_nodes - owed}, preemption=KEEPS),
        *(
            body
            for i, one in enumerate(running)
            for body in make_running(f"b{i}", "b", f"n{one.node}", "gpus", i, gpus=one.gpus, priority=one.priority)
        ),
        make_workload("asker", "a", 1, wants, second=30, **asker),
    ]  # fmt: skip


def run(world: list[Json], config: Config = MOVES) -> dict[str, Json]:
    result = schedule(world, config=config, strict=True)
    assert result["warnings"] == []
    return {row["name"]: row for row in result["workloads"]}


def list_moved(rows: dict[str, Json]) -> list[str]:
    moved = [name for name, row in rows.items() if row["preempted"]]
    for name in moved:
        assert rows[name]["preempted"] == {"by": "team/asker", "reason": "InCohortRelocation"}
    return moved


SCATTERED = (Runs(0, 2), Runs(1, 2), Runs(2, 2))


def test_one_is_moved_and_all_run() -> None:
    rows = run(make_world(SCATTERED, 3))
    assert rows["asker"]["state"] == "admitted"
    [moved] = list_moved(rows)
    # It has quota and a place again, elsewhere.
    assert rows[moved]["state"] == "admitted"
    assert sum(row["state"] in {"admitted", "running"} for row in rows.values()) == 4


@pytest.mark.parametrize(
    ("world", "config"),
    [
        pytest.param(make_world(SCATTERED, 3), Config(), id="it is not switched on"),
        pytest.param(
            make_world((Runs(0, 3), Runs(1, 3)), 2, owed=2, wants=2),
            MOVES,
            id="there is no other place",
        ),
        pytest.param(make_world(SCATTERED, 3, owed=3), MOVES, id="it would borrow"),
        pytest.param(
            make_world([one._replace(priority=1) for one in SCATTERED], 3),
            MOVES,
            id="the others are more important",
        ),
    ],
)
def test_nobody_is_moved(world: list[Json], config: Config) -> None:
    rows = run(world, config)
    assert list_moved(rows) == []
    assert rows["asker"]["state"] == "waits"
    assert rows["asker"]["reason"] == "TopologyPlacementFailed"


def test_those_who_matter_least_and_as_few_as_possible_are_moved() -> None:
    # On n0 two would have to move, on n1 a large one that fits nowhere else, on n2 one.
    rows = run(make_world((Runs(0, 1), Runs(0, 1), Runs(1, 3), Runs(2, 1)), 3))
    assert list_moved(rows) == ["b3"]
    running = (Runs(0, 1, priority=1), Runs(0, 1, priority=2), Runs(1, 2), Runs(2, 2))
    rows = run(make_world(running, 3, wants=3, priority=5))
    # Others are larger, but matter less.
    assert list_moved(rows) in (["b2"], ["b3"])


def test_several_move_together_where_one_is_not_enough() -> None:
    rows = run(make_world((Runs(0, 1), Runs(0, 1), Runs(1, 3), Runs(2, 3)), 3))
    assert sorted(list_moved(rows)) == ["b0", "b1"]
    assert {row["state"] for row in rows.values()} == {"admitted", "running"}


def test_a_moved_workload_does_not_move_the_one_it_was_moved_for() -> None:
    """Both queues are owed what they use, so each could call for the other."""
    world = make_world(SCATTERED, 3)
    world.append(make_workload("later", "b", 1, 2, second=40))
    rows = run(world)
    assert rows["asker"]["state"] == "admitted"
    assert len(list_moved(rows)) == 1
    assert rows["later"]["state"] == "admitted"


@given(
    st.lists(st.builds(Runs, st.integers(0, 3), st.integers(1, 3), st.integers(0, 2)), max_size=7),
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 4), st.integers(0, 2)), max_size=5),
)
@settings(max_examples=100, deadline=None)
def test_moves_end_and_nobody_who_is_owed_quota_loses_it_for_good(
    running: list[Runs], askers: list[tuple[str, int, int]]
) -> None:
    free, kept = [4] * 4, list[Runs]()
    for one in running:
        if free[one.node] >= one.gpus and sum(other.gpus for other in kept) + one.gpus <= 8:
            free[one.node] -= one.gpus
            kept.append(one)
    world = make_world(kept, 4, owed=8, wants=1)
    world += [
        make_workload(f"w{i}", queue, 1, gpus, second=31 + i, priority=priority)
        for i, (queue, gpus, priority) in enumerate(askers)
    ]
    # Without an end, the simulation would say so in a warning.
    rows = run(world)
    for name, row in rows.items():
        if row["preempted"]:
            assert row["preempted"]["reason"] == "InCohortRelocation"
            # Whoever was moved runs again, unless somebody who came before it in its turn has the place.
            assert row["state"] in {"admitted", "waits"}
        elif name.startswith("b"):
            assert row["state"] == "running"
    held = {queue: sum(int(use["amount"]) for row in rows.values() if row["queue"] == queue for use in row["uses"]) for queue in "ab"}  # fmt: skip
    assert sum(held.values()) <= 16


@given(
    st.lists(
        st.builds(Runs, st.integers(0, 3), st.integers(1, 3), st.integers(-9, 0)),
        min_size=1,
        max_size=7,
    ),
    st.integers(2, 4),
)
@settings(max_examples=150, deadline=None)
def test_nobody_loses_and_a_single_move_that_would_do_is_found(
    running: list[Runs], wants: int
) -> None:
    free = [4] * 4
    kept = []
    for one in running:
        if free[one.node] >= one.gpus:
            free[one.node] -= one.gpus
            kept.append(one)
    if sum(one.gpus for one in kept) > 12:
        return
    rows = run(make_world(kept, 4, wants=wants))
    moved = list_moved(rows)
    if rows["asker"]["state"] == "admitted":
        assert {row["state"] for row in rows.values()} <= {"admitted", "running"}
        assert (max(free) >= wants) == (moved == [])
        return
    assert moved == []
    for one in kept:
        left = free[one.node] + one.gpus - wants
        others = [amount for node, amount in enumerate(free) if node != one.node]
        assert left < 0 or max([left, *others]) < one.gpus
