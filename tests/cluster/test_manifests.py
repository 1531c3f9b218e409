"""The manifests as a real API server takes them."""

import json

import pytest
import yaml

from scheduler import config
from tests.controlplane.plane import ControlPlane


@pytest.fixture(scope="module")
def installed(control_plane: ControlPlane) -> ControlPlane:
    """`kubectl apply -k`, as the README says."""
    applied = control_plane.kubectl("apply", "--server-side", "-k", "manifests/base")
    assert "deployment.apps/evenkeel serverside-applied" in applied
    return control_plane


def _get(plane: ControlPlane, *what: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(plane.kubectl("get", *what, "-o", "json"))
    return found


def test_the_kind_variant_differs_in_its_pull_policy_only(control_plane: ControlPlane) -> None:
    base = control_plane.kubectl("kustomize", "manifests/base")
    kind = control_plane.kubectl("kustomize", "manifests/kind")
    assert kind.replace("        imagePullPolicy: Never\n", "") == base


def test_everything_is_there_after_one_apply(installed: ControlPlane) -> None:
    namespaced = installed.kubectl(
        "get", "deployment,service,serviceaccount,role,rolebinding,configmap", "-n", "evenkeel-system",
        "-o", "name",
    )  # fmt: skip
    for name in (
        "deployment.apps/evenkeel",
        "service/evenkeel",
        "serviceaccount/evenkeel",
        "role.rbac.authorization.k8s.io/evenkeel",
        "rolebinding.rbac.authorization.k8s.io/evenkeel",
        "configmap/evenkeel-",
    ):
        assert name in namespaced
    cluster_wide = installed.kubectl(
        "get", "clusterrole/evenkeel", "clusterrolebinding/evenkeel", "flowschema/evenkeel",
        "crd/balancepolicies.scheduling.evenkeel.dev", "-o", "name",
    )  # fmt: skip
    assert cluster_wide.count("\n") == 4


def test_the_flow_schema_points_at_a_level_that_exists(installed: ControlPlane) -> None:
    waited = installed.kubectl(
        "wait", "--for=condition=Dangling=false", "flowschema/evenkeel", "--timeout=20s"
    )
    assert "condition met" in waited


def test_the_deployment_runs_as_nobody_on_a_read_only_root(installed: ControlPlane) -> None:
    spec = _get(installed, "deployment", "evenkeel", "-n", "evenkeel-system")["spec"]
    assert isinstance(spec, dict)
    pod = spec["template"]["spec"]
    container = pod["containers"][0]
    assert spec["replicas"] == 2
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert {"livenessProbe", "readinessProbe", "startupProbe"} <= container.keys()


def test_the_config_map_holds_the_defaults(installed: ControlPlane) -> None:
    found = _get(installed, "configmap", "-n", "evenkeel-system")["items"]
    assert isinstance(found, list)
    texts = [
        c["data"]["config.yaml"] for c in found if c["metadata"]["name"].startswith("evenkeel-")
    ]
    assert [config.parse(yaml.safe_load(text)) for text in texts] == [config.Config()]
