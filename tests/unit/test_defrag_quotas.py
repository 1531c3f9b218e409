"""What quotas of namespaces mean for moves: whose successors they would refuse, and who is let in."""

from typing import Any

import pytest

from scheduler.plan.quotas import EXCEEDED
from tests import make
from tests.unit.test_defrag import (
    LARGE,
    NODES,
    SMALL,
    Json,
    moved,
    planned,
    share,
    stays,
    waiting,
)
from tests.unit.test_simulate_what_if import gpu_node


def quota(hard: Json, used: Any = None, namespace: str = "default") -> Json:
    status = {} if used is None else {"status": {"hard": hard, "used": used}}
    meta = {"name": "limits", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": hard}} | status  # fmt: skip


@pytest.mark.parametrize(
    ("name", "hard", "used"),
    [("requests.nvidia.com/gpu", "1", "2"), ("pods", 1, 2), ("memory", "1Gi", "1025Mi"), ("limits.cpu", "500m", "1")],
)  # fmt: skip
def test_pods_whose_successors_a_quota_would_refuse_are_not_moved(
    name: str, hard: Any, used: Any
) -> None:
    found = planned(*NODES, SMALL, LARGE, quota({name: hard}, {name: used}))
    assert moved(found) == []
    assert stays(found) == {EXCEEDED: 2}


def test_a_quota_of_devices_that_is_exceeded_keeps_pods_too() -> None:
    """Kubernetes does not count them, so the status says nothing; the webhook would refuse the successor."""
    found = planned(*NODES, SMALL, LARGE, quota({"limits.nvidia.com/gpumem": "699"}))
    assert stays(found) == {EXCEEDED: 2}


@pytest.mark.parametrize(
    "given",
    [
        quota({"pods": 2}, {"pods": 2}),
        quota({"pods": 1}, {"pods": 2}, namespace="others"),
        quota({"services": 1, "requests.storage": "1Gi"}, {"services": 2, "requests.storage": "2Gi"}),
        quota({"limits.nvidia.com/gpumem": "700"}),
        quota({"pods": 1}),
        quota({"pods": 1}, ["pods"]),
        quota({"pods": 1}, {"pods": "many"}),
    ],
)  # fmt: skip
def test_other_quotas_keep_nobody(given: Json) -> None:
    assert moved(planned(*NODES, SMALL, LARGE, given)) == [("small", "a", "b")]


def test_nobody_is_let_in_whom_a_quota_of_devices_refuses() -> None:
    wide = waiting("wide", gpu=1, gpumem=1000)
    for most, let_in in (("1700", ["wide"]), ("1699", [])):
        found = planned(*NODES, SMALL, LARGE, wide, quota({"limits.nvidia.com/gpumem": most}))
        assert moved(found) == [("small", "a", "b")]
        (move,) = found["bundles"][0]["moves"]
        assert [one["pod"]["name"] for one in move["letsIn"]] == let_in


@pytest.mark.parametrize(("most", "let_in"), [("1900", ["wide"]), ("1899", [])])
def test_a_part_of_a_card_counts_by_the_card_that_has_room(most: str, let_in: list[str]) -> None:
    """All of the smallest card would be within the quota, but it is in use."""
    small = gpu_node("c", cards=[make.card(uuid="c-0", mib=200, sharers=9)])
    wide = waiting("wide", gpu=1)
    for given in wide["spec"]["containers"][0]["resources"].values():
        given["nvidia.com/gpumem-percentage"] = "100"
    objects = (*NODES, small, SMALL, LARGE, share("busy", "c-0", 200, kind=""), wide)
    found = planned(*objects, quota({"limits.nvidia.com/gpumem": most}))
    assert moved(found) == [("small", "a", "b")]
    (move,) = found["bundles"][0]["moves"]
    assert [one["pod"]["name"] for one in move["letsIn"]] == let_in
