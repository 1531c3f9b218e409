"""Clusters that never had Kueue: our definitions of its kinds take and refuse what Kueue's own do, and queues work."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster import test_queues
from tests.controlplane import plane
from tests.controlplane.auditlog import AuditLog
from tests.operator import installed, kueue_shapes, servers
from tests.operator.world import World

Json = dict[str, Any]
_API = "/apis/kueue.x-k8s.io/v1beta2"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_FOLDER = installed.ROOT / "crds" / "kueue"
log = test_queues.log


@pytest.fixture(scope="module")
def server(log: AuditLog) -> Iterator[servers.Server]:
    """An API server with our definitions of Kueue's kinds."""

    def install(cp: plane.ControlPlane) -> None:
        cp.kubectl("apply", "--server-side", "-k", str(_FOLDER))
        installed.with_queues(cp)

    with servers.real(extra_apiserver_flags=log.flags, install=install) as running:
        yield running


async def test_queues_are_managed_by_our_definitions_of_kueues_kinds(
    world: World, log: AuditLog
) -> None:
    await test_queues.test_queues_are_managed_as_kueue_does_it(world, log)


async def test_older_objects_are_served_where_they_look_the_same(world: World) -> None:
    for kind, plural, spec in (
        ("ResourceFlavor", "resourceflavors", {"nodeLabels": {"a": "b"}}),
        ("Topology", "topologies", {"levels": [{"nodeLabel": "a/rack"}]}),
        ("Cohort", "cohorts", {}),
    ):
        older = "kueue.x-k8s.io/v1beta1"
        made = {"apiVersion": older, "kind": kind, "metadata": {"name": "older"}, "spec": spec}
        await world.call("POST", f"/apis/{older}/{plural}", made)
        assert (await world.call("GET", f"{_API}/{plural}/older"))["spec"] == spec


@pytest.fixture(scope="module")
def alone() -> Iterator[plane.ControlPlane]:
    """An API server that knows nothing of either."""
    with plane.start() as cp:
        yield cp


def test_they_take_and_refuse_what_kueues_own_do(
    alone: plane.ControlPlane, kueue_crds: list[Json]
) -> None:
    ours = [yaml.safe_load(path.read_text()) for path in sorted(_FOLDER.glob("*s.yaml"))]
    wanted = {one["metadata"]["name"] for one in ours}
    theirs = [one for one in kueue_crds if one["metadata"]["name"] in wanted]
    assert len(theirs) == len(ours) == 8
    found = []
    for crds in ours, theirs:
        _install(alone, crds)
        found.append(_try_all(alone))
        _remove(alone, crds)
    by_ours, by_theirs = found
    assert by_ours == by_theirs
    # Both kinds of answers are there, or the comparison would say nothing.
    assert 30 < sum(by_ours.values()) < len(by_ours) - 40


def _install(cp: plane.ControlPlane, crds: list[Json]) -> None:
    for crd in crds:
        answer = cp.request("POST", _CRDS, crd)
        assert answer.status < 400, answer.body
    for crd in crds:
        path = f"{_API}/{crd['spec']['names']['plural']}"
        _wait(lambda path=path: cp.request("GET", path).status == 200)  # type: ignore[misc]


def _remove(cp: plane.ControlPlane, crds: list[Json]) -> None:
    for crd in crds:
        path = f"{_CRDS}/{crd['metadata']['name']}"
        cp.request("DELETE", path)
        _wait(lambda path=path: cp.request("GET", path).status == 404)  # type: ignore[misc]


def _wait(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _try_all(cp: plane.ControlPlane) -> dict[str, bool]:
    """Return which objects and which changes an API server takes."""
    found = {}
    for name, body in kueue_shapes.list_shapes():
        answer = cp.request("POST", f"{_find_path(body)}?dryRun=All", body)
        assert answer.status < 500, answer.body
        assert name not in found
        found[name] = answer.status < 400
    work = kueue_shapes.WORKLOAD
    path = f"{_find_path(work)}/{work['metadata']['name']}"
    assert cp.request("POST", _find_path(work), work).status < 400
    for status in kueue_shapes.STATUSES:
        answer = cp.request("PATCH", f"{path}/status?dryRun=All", {"status": status})
        found[f"status {json.dumps(status)}"] = answer.status < 400
    assert cp.request("PATCH", f"{path}/status", {"status": kueue_shapes.STATUS}).status < 400
    for spec in kueue_shapes.LATER:
        answer = cp.request("PATCH", f"{path}?dryRun=All", {"spec": spec})
        found[f"later {json.dumps(spec)}"] = answer.status < 400
    return found


def _find_path(body: Json) -> str:
    plural = {"Topology": "topologies", "WorkloadPriorityClass": "workloadpriorityclasses"}
    kind = body["kind"]
    where = "/namespaces/default" if kind in {"LocalQueue", "Workload"} else ""
    return f"{_API}{where}/{plural.get(kind, kind.lower() + 's')}"


def test_the_chart_installs_what_is_not_there_and_changes_nothing_else(
    helm: None, alone: plane.ControlPlane, kueue_crds: list[Json]
) -> None:
    del helm
    theirs = next(one for one in kueue_crds if one["metadata"]["name"].startswith("cohorts."))
    _install(alone, [theirs])
    before = alone.request("GET", f"{_CRDS}/{theirs['metadata']['name']}").body
    values = ["--set=kueueCRDs=true", "--set=config.queues.kueue=true"]
    installed.helm(alone, "install", "evenkeel", installed.CHART, "--create-namespace", *values)
    installed.helm(alone, "upgrade", "evenkeel", installed.CHART, *values)
    _wait(lambda: alone.request("GET", f"{_API}/workloads").status == 200)
    installed.helm(alone, "uninstall", "evenkeel")
    for path in sorted(_FOLDER.glob("*s.yaml")):
        name = f"{path.stem}.kueue.x-k8s.io"
        found = alone.request("GET", f"{_CRDS}/{name}").body
        if name == theirs["metadata"]["name"]:
            assert found["spec"] == before["spec"]
            assert found["metadata"]["uid"] == before["metadata"]["uid"]
        else:
            ours = yaml.safe_load(Path(path).read_text())
            assert found["spec"]["versions"][0]["schema"] == ours["spec"]["versions"][0]["schema"]
