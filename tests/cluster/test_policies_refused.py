"""`kubectl apply` of a bad BalancePolicy is refused with a message that names the field."""

import json
from typing import Any

import pytest

from tests.controlplane.plane import ControlPlane
from tests.operator import installed

_CURVE = "requested-to-capacity-ratio"

BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "empty": ({}, "spec", "at least one of scoring, nodePolicy and gpuPolicy"),
    "node-policy": ({"nodePolicy": "bin"}, "spec.nodePolicy", '"binpack", "spread"'),
    "gpu-policy": ({"gpuPolicy": "mutx"}, "spec.gpuPolicy", "topology-aware"),
    "gpu-list": ({"gpuPolicy": "numa,pack"}, "spec.gpuPolicy", "binpack"),
    "priority": ({"priority": "high", "nodePolicy": "spread"}, "spec.priority", "integer"),
    "mode": ({"scoring": {"mode": "best"}}, "spec.scoring.mode", "lambda-g"),
    "objective": ({"scoring": {"objective": "fill"}}, "spec.scoring.objective", '"spread", "pack"'),
    "objective-of-another-mode": (
        {"scoring": {"mode": "fgd", "objective": "pack"}},
        "spec.scoring.objective",
        "is allowed with mode keel",
    ),
    "weight": ({"scoring": {"weights": {"cpu": 101}}}, "spec.scoring.weights.cpu", "100"),
    "negative": ({"scoring": {"weights": {"iops": -1}}}, "spec.scoring.weights.iops", "0"),
    "all-zero": ({"scoring": {"weights": {"cpu": 0}}}, "spec.scoring.weights", "above 0"),
    "resource": ({"scoring": {"iopsResource": "iops"}}, "spec.scoring.iopsResource", "match"),
    "one-resource-twice": (
        {"scoring": {"iopsResource": "a.b/c", "networkResource": "a.b/c"}},
        "spec.scoring.networkResource",
        "differ",
    ),
    "curve-without-its-mode": (
        {"scoring": {"curve": [{"utilization": 3, "score": 1}]}},
        "spec.scoring.curve",
        _CURVE,
    ),
    "curve-that-falls-back": (
        {"scoring": {"mode": _CURVE, "curve": [
            {"utilization": 30, "score": 1}, {"utilization": 30, "score": 2}]}},
        "spec.scoring.curve",
        "rise strictly",
    ),
    "curve-too-high": (
        {"scoring": {"mode": _CURVE, "curve": [{"utilization": 30, "score": 11}]}},
        "spec.scoring.curve[0].score",
        "10",
    ),
    "operator": (
        {"nodePolicy": "spread", "podSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}},
        "spec.podSelector.matchExpressions[0].operator",
        "NotIn",
    ),
    "in-without-values": (
        {
            "nodePolicy": "spread",
            "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]},
        },
        "spec.namespaceSelector.matchExpressions[0]",
        "values must be set",
    ),
    "unknown-field": ({"nodePolicy": "spread", "gpupolicy": "x"}, "spec.gpupolicy", "unknown field"),
}  # fmt: skip


@pytest.fixture(scope="module")
def with_crd(control_plane: ControlPlane) -> ControlPlane:
    control_plane.kubectl("apply", "--server-side", "-k", "crds")
    installed.wait_for_crd(control_plane)
    return control_plane


def _apply(plane: ControlPlane, name: str, spec: dict[str, Any]) -> str:
    body = {
        "apiVersion": "scheduling.evenkeel.dev/v1alpha1",
        "kind": "BalancePolicy",
        "metadata": {"name": name},
        "spec": spec,
    }
    return plane.kubectl("apply", "-f", "-", stdin=json.dumps(body), check=False)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_policy_is_refused_and_the_field_is_named(name: str, with_crd: ControlPlane) -> None:
    spec, field, words = BAD[name]
    said = _apply(with_crd, name, spec)
    assert field in said
    assert words in said
    assert "NotFound" in with_crd.kubectl("get", "balancepolicy", name, check=False)


def test_a_good_policy_with_every_field_is_taken_and_listed(with_crd: ControlPlane) -> None:
    spec = {
        "priority": 7,
        "namespaceSelector": {"matchLabels": {"team": "a"}},
        "podSelector": {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["x"]}]},
        "nodePolicy": "spread",
        "gpuPolicy": "numa, binpack",
        "scoring": {
            "mode": _CURVE,
            "weights": {"cpu": 1, "gpuMemory": 3},
            "iopsResource": "example.com/iops",
            "networkResource": "example.com/net",
            "curve": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}],
        },
    }
    assert "created" in _apply(with_crd, "good", spec)
    header, row = with_crd.kubectl("get", "bp", "good").strip().splitlines()
    assert header.split() == ["NAME", "PRIORITY", "MODE", "NODE", "GPU", "READY", "PODS", "AGE"]
    assert row.split()[:4] == ["good", "7", _CURVE, "spread"]
    with_crd.kubectl("delete", "bp", "good")
