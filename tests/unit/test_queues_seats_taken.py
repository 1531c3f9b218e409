"""A pod that is more important than a workload takes the place that is held for pods which do not exist yet."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.simulate.run import schedule
from tests.unit.test_queues_places import (
    make_flavor,
    make_node,
    make_queue,
    make_running,
    make_workload,
)

Json = dict[str, Any]
WORLD = [make_node("n0", "r0"), make_flavor("gpus", "gpu"), *make_queue("a", {"gpus": 8})]


def make_urgent(gpus: int, priority: int = 100) -> Json:
    requests = {"nvidia.com/gpu": f"{gpus}"}
    container = {"name": "main", "resources": {"requests": requests, "limits": requests}}
    spec = {"schedulerName": "evenkeel", "priority": priority, "containers": [container]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "urgent", "namespace": "team"},
        "spec": spec,
    }


def run(*objects: Json) -> tuple[dict[str, Json], dict[str, Json]]:
    result = schedule(objects, strict=True)
    workloads = {row["name"]: row for row in result["workloads"]}
    return workloads, {row["name"]: row for row in result["pods"]}


def test_the_workload_gives_its_quota_back_and_the_pod_has_its_node() -> None:
    """Nobody can evict the pod that does not exist: the urgent one would wait until it does."""
    workloads, pods = run(*WORLD, make_workload("waits", "a", 1, 4), make_urgent(4))
    assert pods["urgent"]["node"] == "n0"
    assert workloads["waits"]["state"] == "waits"
    assert not workloads["waits"]["uses"]


@pytest.mark.parametrize(("gpus", "priority"), [(1, 100), (2, 0)])
def test_nothing_is_taken_where_there_is_room_or_no_right(gpus: int, priority: int) -> None:
    held = make_workload("holds", "a", 1, 3)
    workloads, pods = run(*WORLD, held, make_urgent(gpus, priority))
    assert workloads["holds"]["state"] == "admitted"
    assert (pods["urgent"].get("node") == "n0") == (gpus == 1)


def test_a_workload_of_which_one_pod_runs_goes_as_a_whole() -> None:
    """Two of its pods have not come yet: they hold as many cards."""
    workload, pod = make_running("partly", "a", "n0", "gpus", 1, gpus=1)
    workload["spec"]["podSets"][0]["count"] = 3
    assigned = workload["status"]["admission"]["podSetAssignments"][0]
    assigned |= {"count": 3, "resourceUsage": {"nvidia.com/gpu": "3"}}
    workloads, pods = run(*WORLD, workload, pod, make_urgent(3))
    assert pods["urgent"]["node"] == "n0"
    assert workloads["partly"]["state"] == "waits"
    assert not workloads["partly"]["uses"]
