"""What the documentation shows of a cluster: its commands run with a real kubectl and helm, its YAML is accepted.

Every page has a real API server of its own with the nodes of the examples. Commands that need none are run by
tests/docs.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane import build, plane
from tests.docs import blocks, examples, runner
from tests.operator import installed, kai_shapes

PAGES: dict[str, list[blocks.Block]] = {}
for _page in blocks.PAGES:
    for _block in blocks.of(_page):
        if _block.language == "console" and _block.steps_to_run and runner.needs_more(_block):
            PAGES.setdefault(str(_page.relative_to(blocks.ROOT)), []).append(_block)


def _installs(page: str) -> bool:
    """Whether its commands bring the CRD themselves."""
    return any(
        re.search(r"\bhelm |-k crds", s.command) for b in PAGES[page] for s in b.steps_to_run
    )


@contextmanager
def _cluster(page: str) -> Iterator[Path]:
    with plane.start() as cp:
        # A namespace ends only when somebody has emptied it.
        cp.start_controller_manager(["namespace-controller"])
        if not _installs(page):
            installed.crds(cp)
        yield cp.kubeconfig()


@pytest.mark.usefixtures("control_plane", "helm", "peers")
@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_do_what_it_says(page: str, tmp_path: Path) -> None:
    folder = runner.clone(tmp_path)
    programs = build.ensure("kubectl", "helm")
    with _cluster(page) as kubeconfig:
        env = runner.environment(folder, kubeconfig, programs.values())
        ours = ["docs/examples/nodes.yaml", "docs/examples/inference.yaml"]
        for name in ours:
            subprocess.run(["kubectl", "apply", "-f", name], cwd=folder, env=env, check=True)
        for block in PAGES[page]:
            assert not (complaint := runner.complaint(block, folder, env)), complaint


@pytest.fixture(scope="module")
def with_crd(
    control_plane: plane.ControlPlane, kueue_crds: list[dict[str, Any]]
) -> plane.ControlPlane:
    installed.crds(control_plane)
    bodies = [*kueue_crds, kai_shapes.QUEUES_CRD]
    names = [one["metadata"]["name"] for one in bodies]
    for body in bodies:
        control_plane.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(body))
    for name in names:
        control_plane.kubectl("wait", "--for=condition=Established", f"crd/{name}")
    return control_plane


@pytest.mark.parametrize("path", [examples.NODES, *examples.ALL], ids=lambda path: str(path.name))
def test_an_example_is_accepted_as_it_is(path: Path, with_crd: plane.ControlPlane) -> None:
    try:
        said = with_crd.kubectl("apply", "--server-side", "-f", str(path)).splitlines()
        assert len(said) == len(examples.read(path))
    finally:
        # A namespace would end only when somebody has emptied it, and other examples have the same ones.
        made = [one for one in examples.read(path) if one["kind"] != "Namespace"]
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": made})
        with_crd.kubectl("delete", "--ignore-not-found", "--wait=false", "-f", "-", stdin=listed)


def _objects() -> list[blocks.Block]:
    """Those that an API server has; kube-scheduler's configuration is a file, and unit tests read that."""
    every = [
        block for page in blocks.PAGES for block in blocks.of(page) if block.language == "yaml"
    ]
    return [
        block
        for block in every
        if "kind: " in block.text and "kind: KubeSchedulerConfiguration" not in block.text
    ]


@pytest.mark.parametrize("block", _objects(), ids=lambda block: block.place)
def test_an_object_in_a_page_is_accepted(block: blocks.Block, with_crd: plane.ControlPlane) -> None:
    apply = ("apply", "--server-side", "--dry-run=server", "-f", "-")
    assert "serverside-applied" in with_crd.kubectl(*apply, stdin=block.text)
