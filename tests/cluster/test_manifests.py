"""The kustomization as a real API server takes it."""

import json
import re

import pytest
import yaml

from scheduler import config
from tests.controlplane.plane import ControlPlane
from tests.operator import installed


@pytest.fixture(scope="module")
def applied(control_plane: ControlPlane) -> ControlPlane:
    """As docs/install.md says."""
    installed.by_kustomize(control_plane)
    return control_plane


def _get(plane: ControlPlane, *what: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(plane.kubectl("get", *what, "-o", "json"))
    return found


def test_the_kind_variant_differs_in_its_pull_policy_only(control_plane: ControlPlane) -> None:
    base = control_plane.kubectl("kustomize", "manifests/base")
    kind = control_plane.kubectl("kustomize", "manifests/kind")
    assert kind.replace("        imagePullPolicy: Never\n", "") == base


def test_rendering_renames_nothing_but_the_configuration(control_plane: ControlPlane) -> None:
    """kustomize takes what is called like a generated ConfigMap for a reference to it, the lease too."""
    text = control_plane.kubectl("kustomize", "manifests/base")
    rendered = installed.objects(text)
    (role,) = (one for one in rendered if one["kind"] == "Role")
    assert [rule.get("resourceNames") for rule in role["rules"]] == [None, ["evenkeel"]]
    assert set(re.findall(r"evenkeel-[-a-z0-9]+", text)) == {
        installed.NAMESPACE, next(o["metadata"]["name"] for o in rendered if o["kind"] == "ConfigMap")
    }  # fmt: skip


def test_what_has_no_namespace_is_given_none(control_plane: ControlPlane) -> None:
    everywhere = control_plane.kubectl(
        "api-resources", "--namespaced=false", "--no-headers", "-o", "name"
    )
    plurals = {name.partition(".")[0] for name in everywhere.split()}
    for one in installed.objects(control_plane.kubectl("kustomize", "manifests/base")):
        kind = one["kind"].lower()
        plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
        assert ("namespace" in one["metadata"]) == (plural not in plurals), one


def test_everything_is_there_after_two_applies(applied: ControlPlane) -> None:
    namespaced = applied.kubectl(
        "get", "deployment,service,serviceaccount,role,rolebinding,configmap", "-n", "evenkeel-system",
        "-o", "name",
    )  # fmt: skip
    for name in (
        "deployment.apps/evenkeel",
        "service/evenkeel",
        "serviceaccount/evenkeel",
        "role.rbac.authorization.k8s.io/evenkeel",
        "rolebinding.rbac.authorization.k8s.io/evenkeel",
        "configmap/evenkeel-config-",
    ):
        assert name in namespaced
    cluster_wide = applied.kubectl(
        "get", "clusterrole/evenkeel", "clusterrolebinding/evenkeel", "flowschema/evenkeel",
        "crd/balancepolicies.scheduling.evenkeel.dev", "validatingadmissionpolicy/evenkeel",
        "validatingadmissionpolicybinding/evenkeel", "-o", "name",
    )  # fmt: skip
    assert cluster_wide.count("\n") == 6


def test_the_flow_schema_points_at_a_level_that_exists(applied: ControlPlane) -> None:
    waited = applied.kubectl(
        "wait", "--for=condition=Dangling=false", "flowschema/evenkeel", "--timeout=20s"
    )
    assert "condition met" in waited


def test_the_deployment_runs_as_nobody_on_a_read_only_root(applied: ControlPlane) -> None:
    spec = _get(applied, "deployment", "evenkeel", "-n", "evenkeel-system")["spec"]
    assert isinstance(spec, dict)
    pod = spec["template"]["spec"]
    container = pod["containers"][0]
    assert spec["replicas"] == 2
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert {"livenessProbe", "readinessProbe", "startupProbe"} <= container.keys()


def test_the_config_map_holds_the_defaults(applied: ControlPlane) -> None:
    found = _get(applied, "configmap", "-n", "evenkeel-system")["items"]
    assert isinstance(found, list)
    texts = [
        c["data"]["config.yaml"] for c in found if c["metadata"]["name"].startswith("evenkeel-")
    ]
    assert [config.parse_config(yaml.safe_load(text)) for text in texts] == [config.Config()]
