"""In a process of its own: warm, run what every command runs, and print which kernels ``warm`` did not get ready.

A kernel that is compiled, or read from the cache, after ``warm`` is one that a first start would wait for. So no
empty cache is needed to find one.
"""

from __future__ import annotations

import ast
import json
import pkgutil
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from scheduler import cli, kernels
from scheduler.api.placement import MODES
from scheduler.engine import rerun
from scheduler.kernels import compiling
from tests import make
from tests.differential import ours
from tests.differential.run import sample
from tests.model import mixed_fleet
from tests.model.engine_stories import Story

ROOT = Path(__file__).parents[2]
_KERNELS = kernels.__name__
_MODULES = {one.name for one in pkgutil.walk_packages(kernels.__path__, f"{_KERNELS}.")}
_N_WORLDS = 30


def called() -> Iterator[tuple[str, Any]]:
    """Every kernel that a module of the scheduler calls from Python, and where."""
    for path in sorted((ROOT / "scheduler").rglob("*.py")):
        if "kernels" in path.parts:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        # A module is imported whole; what is imported of one is no kernel.
        imported = {
            one.asname or one.name: f"{node.module}.{one.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_KERNELS)
            for one in node.names
        }
        modules = {name: import_module(at) for name, at in imported.items() if at in _MODULES}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                kernel = getattr(modules.get(node.value.id), node.attr, None)
                if hasattr(kernel, "signatures"):
                    yield f"{path.relative_to(ROOT)}: {node.value.id}.{node.attr}", kernel


def ready() -> dict[str, set[str]]:
    """By kernel the types of arguments that it is compiled for."""
    every = compiling.list_kernels()
    return {key: {str(one) for one in kernel.signatures} for key, kernel in every.items()}


def commands(folder: Path) -> Iterator[list[str]]:
    """What a user may type first."""
    objects = [make.raw(one) | {"kind": "Node"} for one in mixed_fleet.nodes()]
    pods = [*mixed_fleet.running(), *mixed_fleet.pending()]
    objects += [make.raw(one) | {"kind": "Pod"} for one in pods]
    file = folder / "fleet.json"
    file.write_text(json.dumps({"kind": "List", "items": objects}), encoding="utf-8")
    of = ["-f", str(file)]
    yield ["simulate", *of, "--explain"]
    yield ["simulate", *of, "--mode", ",".join(MODES), "-o", "markdown"]
    for pod in (pods[0], pods[100], *pods[-12:]):
        yield ["explain", "pod", pod.metadata.name, *of]
    yield ["explain", "node", "node-3", *of]
    yield ["audit", *of, "--orders", "1"]
    yield ["audit", *of, "--by", "namespace"]
    yield ["replay", str(ROOT / "docs/examples/web-and-batch"), "--experiment", "recorded"]
    modes = "keel,fgd,lambda-g-v3"
    yield ["replay", str(ROOT / "bench/data/openb"), "--load", "0.05", "--mode", modes]


class Look:
    """Prints what was not ready, since the last look."""

    def __init__(self) -> None:
        self._before = ready()

    def after(self, what: str) -> None:
        """Print which kernels it needed that were not ready."""
        now = ready()
        for key, types in now.items():
            if new := types - self._before[key]:
                print(f"{what}: {key} for {sorted(new)}")
        self._before = now


def main() -> None:
    """Print a line for each kernel that is missed, with what needed it."""
    compiling.compile_kernels(lambda _: None)
    for where, kernel in called():
        if not kernel.signatures:
            print(f"never called: {where}")
    look = Look()
    with tempfile.TemporaryDirectory() as folder:
        for command in commands(Path(folder)):
            done = CliRunner().invoke(cli.app, command)
            if done.exit_code:
                print(f"{command}: {done.output}")
            look.after(" ".join(command[:3]))
    # What `run` does, and `rerun` again: pods and nodes that come and go, binds that fail.
    for seed in range(2):
        story = Story(seed)
        for _ in range(100):
            story.happen()
        for lines in story.files:
            rerun.rerun(lines)
        look.after(f"story {seed}")
    # Volumes, affinity, spread, preemption, profiles; alone and in pairs.
    for world, features in sample(7, _N_WORLDS):
        for pod in world.incoming:
            ours.answer(world.objects, pod, ours.settings(1))
        look.after(f"world {world.seed} with {[one.name for one in features]}")


if __name__ == "__main__":
    main()
