"""One control plane for all cluster tests of a worker, and one for each module that runs operators; each starts when
first asked for.
"""

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.controlplane import build, objects, plane
from tests.differential.queues import program
from tests.operator import servers
from tests.operator.shared import world  # noqa: F401 - a fixture


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Who brings KUBEBUILDER_ASSETS and no Go has etcd, kube-apiserver and kubectl, and no peers to compare.

    What needs no peers is all of Evenkeel's own but the chart; the others are deselected, and pytest
    says how many.
    """
    if not os.environ.get("KUBEBUILDER_ASSETS") or shutil.which("go"):
        return
    without = [item for item in items if _needs_go(item)]
    items[:] = [item for item in items if item not in without]
    config.hook.pytest_deselected(items=without)


def _needs_go(item: pytest.Item) -> bool:
    chosen = getattr(getattr(item, "callspec", None), "params", {}).values()
    return not {"peers", "helm", "promql", "kueue_crds", "dra_allocator", "dra_cel"}.isdisjoint(
        {*getattr(item, "fixturenames", ()), *chosen}
    )


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Iterator[plane.ControlPlane]:
    build_in_sight(request, "etcd", "kube-apiserver", "kubectl")
    with plane.start() as cp:
        yield cp


@pytest.fixture(scope="session")
def peers(request: pytest.FixtureRequest) -> None:
    """The programs that few ready-made sets have."""
    build_in_sight(request, "kube-scheduler", "kube-controller-manager", "kwok")


@pytest.fixture(scope="session")
def helm(request: pytest.FixtureRequest) -> None:
    """For the chart."""
    build_in_sight(request, "helm")


@pytest.fixture(scope="session")
def kueue_crds() -> list[dict[str, Any]]:
    """Kueue's CRDs, as its Go module has them."""
    return list(program.read_crds())


@pytest.fixture(scope="session")
def promql(request: pytest.FixtureRequest) -> None:
    """Prometheus's engine, for alerts and the dashboard."""
    build_in_sight(request, "promql")


@pytest.fixture(scope="session")
def dra_allocator(request: pytest.FixtureRequest) -> None:
    """Kubernetes' allocator of devices."""
    build_in_sight(request, "dra-allocator")


@pytest.fixture(scope="session")
def dra_cel(request: pytest.FixtureRequest) -> None:
    """Kubernetes' judge of devices."""
    build_in_sight(request, "dra-cel")


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    """An API server of the module's own, with Evenkeel's manifests; one that needs others makes its own fixture."""
    with servers.real() as running:
        yield running


@pytest.fixture
def kubectl(control_plane: plane.ControlPlane) -> Callable[..., str]:
    return control_plane.kubectl


@pytest.fixture
def namespace(control_plane: plane.ControlPlane) -> Iterator[str]:
    """A namespace that no other test uses, emptied afterwards of what may hold or make pods."""
    made = control_plane.request(
        "POST", "/api/v1/namespaces", {"metadata": {"generateName": "test-"}}
    )
    name = made.body["metadata"]["name"]
    yield name
    for path in ("/apis/apps/v1/{}/deployments", "/apis/apps/v1/{}/replicasets", "/api/v1/{}/pods"):
        asyncio.run(objects.delete_all(control_plane, path.format(f"namespaces/{name}")))


def build_in_sight(request: pytest.FixtureRequest, *names: str) -> None:
    """Build with the progress shown: the first time takes minutes."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        build.ensure(*names)
