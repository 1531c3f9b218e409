"""Cohorts may be deeper in each other than Python's calls may be: nothing ends because of that."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from scheduler.api.queues import configuration
from scheduler.config import Config
from scheduler.simulate.run import schedule
from tests.unit.test_queues_places import (
    API,
    make_flavor,
    make_node,
    make_queue,
    make_running,
    make_workload,
)

Json = dict[str, Any]


@pytest.mark.parametrize("is_fair", [False, True], ids=["by the tree", "by shares"])
def test_a_chain_of_cohorts_lends_to_the_queue_at_its_end(is_fair: bool) -> None:
    depth = sys.getrecursionlimit() + 10
    chain: list[Json] = [
        {
            "apiVersion": API,
            "kind": "Cohort",
            "metadata": {"name": f"c{i}"},
            "spec": {"parentName": f"c{i + 1}"},
        }
        # Its parent first: every cohort lists those below it when it comes.
        for i in range(depth, -1, -1)
    ]
    settings = configuration.read_settings({"fairSharing": {}} if is_fair else {})
    result = schedule(
        [
            *(make_node(f"n{i}", "r0") for i in range(2)),
            make_flavor("gpus", "gpu"),
            *chain,
            *make_queue("deep", {"gpus": 0}, cohortName="c0"),
            *make_queue("top", {"gpus": 8}, cohortName=f"c{depth}"),
            *make_running("borrows", "deep", "n0", "gpus", 1),
            make_workload("also", "deep", 1, 4, second=2),
            make_workload("owed", "top", 2, 4, second=3),
        ],
        config=Config(queues=settings),
        strict=True,
    )
    rows = {row["name"]: row["state"] for row in result["workloads"]}
    # The queue at the top takes back what it is owed.
    assert rows == {"borrows": "waits", "also": "waits", "owed": "admitted"}
