"""``evenkeel explain pod`` says that the quota of a queue holds the pod, and who could give some back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

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
