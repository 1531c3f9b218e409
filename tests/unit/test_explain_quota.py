"""``evenkeel explain pod`` says that the quota of a queue holds the pod, and who could give some back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler.embedded.agents import nodes
from tests.prose import unwrapped
from tests.unit.test_explain import answer, explain

Json = dict[str, Any]
_EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "queues.yaml"
_NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n0", "labels": {"gpu": "h100"}},
    "status": {"allocatable": {"cpu": "64", "pods": "99", "nvidia.com/gpu": "8"}},
}


def make_objects(workload: str, namespace: str = "speech") -> list[Json]:
    """The queues of the example, a node with room, and a pod of one of their workloads."""
    meta = {
        "name": "it",
        "namespace": namespace,
        "annotations": {"kueue.x-k8s.io/workload": workload},
    }
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": 4}}}
    spec = {"schedulerName": "evenkeel", "containers": [container]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    return [*yaml.safe_load_all(_EXAMPLE.read_text(encoding="utf-8")), _NODE, pod]


def test_a_pod_waits_with_its_workload_though_it_would_fit() -> None:
    objects = make_objects("translate")
    found = answer("pod", "speech/it", objects=objects)
    assert found["state"] == "queued"
    held = found["queue"]["heldBy"]
    assert held.startswith("Held by quota of ClusterQueue speech: workload speech/translate waits")
    assert "1 workload could give quota back: vision/detect (InCohortReclamation)." in held
    assert held in unwrapped(explain("pod", "speech/it", objects=objects).output)


@pytest.mark.parametrize("workload", ["transcribe", "none"])
def test_a_pod_whose_workload_has_quota_or_that_has_none_is_not_held(workload: str) -> None:
    found = answer("pod", "speech/it", objects=make_objects(workload))
    assert found["state"] != "queued"


def test_of_a_workload_for_which_nobody_can_give_way_it_says_what_is_missing() -> None:
    found = answer("pod", "vision/it", objects=make_objects("depth", "vision"))
    held = found["queue"]["heldBy"]
    assert "(WaitingForQuota)" in held
    assert "8 more needed" in held
    assert "give quota back" not in held


@pytest.mark.parametrize(
    ("asked", "hard", "says"),
    [
        ({"nvidia.com/gpumem": 8000}, 7000, "requested: limits.nvidia.com/gpumem=8000"),
        ({"nvidia.com/gpumem-percentage": 50}, 7000, "requested: limits.nvidia.com/gpumem=7680"),
        ({"nvidia.com/gpumem": 8000}, 8000, None),
        ({"nvidia.com/gpumem-percentage": 50}, 7680, None),
    ],
)
def test_a_quota_of_the_namespace_holds_a_pod_though_it_would_fit(
    asked: Json, hard: int, says: str | None
) -> None:
    meta = {"name": "cards", "namespace": "default"}
    spec = {"hard": {"limits.nvidia.com/gpumem": hard}}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": spec}
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1} | asked}}
    share = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "share", "namespace": "default"},
        "spec": {"schedulerName": "evenkeel", "containers": [container]},
    }
    objects = [nodes.make_gpu_node("shared"), _NODE, quota, share]
    found = answer("pod", "default/share", objects=objects)
    if says is None:
        assert (found["state"], found["queue"]["heldBy"]) == ("fits", None)
        return
    assert found["state"] == "queued"
    assert found["queue"]["heldBy"].startswith(f"exceeded quota: cards, {says}, used: ")
    printed = unwrapped(explain("pod", "default/share", objects=objects).output)
    assert "Pod default/share is held back." in printed
    assert "Tried now, it would go to" not in printed
