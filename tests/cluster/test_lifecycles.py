"""Install, upgrade, roll back, uninstall, as docs/install.md says it; what users made survives."""

import json
from collections.abc import Iterator

import pytest

from scheduler.embedded.agents import nodes
from tests.controlplane import plane
from tests.operator import installed, servers
from tests.operator.manifests import pod, policy
from tests.operator.process import Operator

_DEPLOYMENT = ("get", "deployment", "evenkeel", "-n", installed.NAMESPACE, "-o", "json")


@pytest.fixture
def without_crd() -> Iterator[servers.Server]:
    with servers.real(install=installed.base) as running:
        yield running


@pytest.fixture
def bare() -> Iterator[plane.ControlPlane]:
    with plane.start() as cp:
        yield cp


def _create(cp: plane.ControlPlane, manifest: object) -> None:
    cp.kubectl("create", "-f", "-", stdin=json.dumps(manifest))


def _log_level(cp: plane.ControlPlane) -> str:
    spec = json.loads(cp.kubectl(*_DEPLOYMENT))["spec"]["template"]["spec"]
    (found,) = (arg for arg in spec["containers"][0]["args"] if arg.startswith("--log-level="))
    return str(found.partition("=")[2])


def test_the_crd_may_come_later_and_outlives_the_scheduler(without_crd: servers.Server) -> None:
    """With the CRD everybody's policies would go."""
    cp = without_crd.plane
    assert cp is not None
    operator = Operator(without_crd, lease=False, args=installed.deployment_args(cp))
    try:
        operator.wait_ready()
        assert "CRD is not installed" in operator.log
        _create(cp, nodes.make_plain_node("n"))
        _create(cp, pod("early", requests={"cpu": "1"}))
        cp.kubectl("wait", "pod/early", "--for=jsonpath={.spec.nodeName}=n", "--timeout=30s")
        installed.crds(cp)
        _create(cp, policy("kept", nodePolicy="spread"))
        cp.kubectl("wait", "balancepolicy/kept", "--for=condition=Ready", "--timeout=60s")
        operator.check_log()
    finally:
        operator.stop()

    # Nobody here empties the namespace, so its end is not waited for.
    cp.kubectl("delete", "-k", installed.BASE, "--wait=false")
    assert "NotFound" in cp.kubectl(*_DEPLOYMENT, check=False)
    assert "kept" in cp.kubectl("get", "balancepolicies")


@pytest.mark.usefixtures("helm")
def test_a_release_is_installed_upgraded_rolled_back_and_uninstalled(
    bare: plane.ControlPlane,
) -> None:
    installed.by_helm(bare)
    _create(bare, policy("kept", nodePolicy="spread"))
    assert _log_level(bare) == "info"

    crds = installed.helm(bare, "show", "crds", installed.CHART)
    again = ("apply", "--server-side", "--force-conflicts", "-f", "-")
    assert "serverside-applied" in bare.kubectl(*again, stdin=crds)
    upgrade = ("upgrade", "evenkeel", installed.CHART, "--reset-then-reuse-values")
    installed.helm(bare, *upgrade, "--set", "logLevel=debug", "--set", "replicas=3")
    assert _log_level(bare) == "debug"
    installed.helm(bare, "rollback", "evenkeel", "1")
    assert _log_level(bare) == "info"

    refused = installed.helm(bare, *upgrade, "--set", "logLevel=loud", check=False)
    assert "/logLevel" in refused
    assert _log_level(bare) == "info"

    installed.helm(bare, "uninstall", "evenkeel")
    everything = "all,configmaps,roles,rolebindings,serviceaccounts"
    left = bare.kubectl("get", everything, "-n", installed.NAMESPACE, "-o", "name")
    assert "evenkeel" not in left
    wide = "clusterroles,clusterrolebindings,flowschemas,validatingadmissionpolicies"
    assert "evenkeel" not in bare.kubectl("get", wide, "-o", "name")
    assert "kept" in bare.kubectl("get", "balancepolicies")
