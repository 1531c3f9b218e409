"""Runs the demo: starts everything, applies the patterns one after another, and compares two modes."""

from __future__ import annotations

import asyncio
import shlex
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

import aiohttp
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from scheduler.demo import beside, comparison, keeping, operator, patterns, picture
from scheduler.documents import reading, writing
from scheduler.embedded import cluster
from scheduler.embedded.agents import fleet as agents
from scheduler.embedded.agents import nodes
from scheduler.embedded.agents.workloads import controllers
from scheduler.embedded.api.server import Settings

_START_SECONDS = 180.0  # a few seconds, unless every kernel has to be compiled first
_PATTERN_SECONDS = 20.0
_PODS = "/api/v1/namespaces/default/pods"
_CONFIG = {"profiles": [{"schedulerName": "default-scheduler"}]}
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class DemoFailed(Exception):  # noqa: N818
    """The demo could not run to its end; the error says at which step."""


async def run_demo(console: Console, *, keep: bool) -> bool:
    """Run the four patterns, then compare two modes.

    Args:
        console: where to draw.
        keep: leave the cluster running afterwards, until interrupted.

    Returns:
        Whether every pattern came out as expected.

    Raises:
        DemoFailed: pods were not placed in time.
        operator.NeverStartedError: the operator could not start.
    """
    with tempfile.TemporaryDirectory(prefix="evenkeel-demo-") as folder:
        settings = Settings(refused=controllers.NOT_RUN)
        async with (
            cluster.start(settings=settings) as embedded,
            agents.run(embedded.url),
            controllers.run(embedded.url),
        ):
            kubeconfig = embedded.write_kubeconfig(Path(folder) / "kubeconfig")
            config = Path(folder) / "config.yaml"
            # Nothing else places pods here, so pods that name no scheduler are Evenkeel's, too.
            config.write_text(writing.dump(_CONFIG), encoding="utf-8")
            log = Path(folder) / "evenkeel.log"
            say = partial(console.print, markup=False, highlight=False, soft_wrap=True)
            async with aiohttp.ClientSession(embedded.url, raise_for_status=True) as api:
                await _furnish_cluster(api)
                async with operator.run_operator(kubeconfig, config, log, say) as running:
                    results = await _show_patterns(api, console, running.check)
                    _print_result(console, results)
                    sides = await asyncio.to_thread(
                        comparison.compare_modes, comparison.make_pods()
                    )
                    console.print("\n[bold]keel beside least-allocated[/bold]", highlight=False)
                    console.print(beside.draw_sides(sides))
                    if keep:
                        pod = patterns.ALL[-1].read_manifests()[0]["metadata"]["name"]
                        await keeping.keep_running(console, kubeconfig, pod, running)
    return all(pattern.cards_per_node == seen for pattern, seen in results)


def find_next_command() -> str:
    """Find what to type next: a command of this installation, on manifests that come with it."""
    script = Path(sys.argv[0])
    installed = script.name == "evenkeel" and script.exists()
    words = (
        [_shorten_path(script)]
        if installed
        else [_shorten_path(Path(sys.executable)), "-m", "scheduler"]
    )
    words.append("simulate")
    for file in (patterns.NODES, patterns.ALL[-1].file):
        words += ["-f", _shorten_path(file)]
    return shlex.join([*words, "--explain"])


def _shorten_path(path: Path) -> str:
    """Shorten a path to what must be typed in the working directory."""
    here, path = Path.cwd(), path.absolute()
    return f"./{path.relative_to(here)}" if path.is_relative_to(here) else str(path)


async def _furnish_cluster(api: aiohttp.ClientSession) -> None:
    for definition in _read_crds():
        async with api.post(_CRDS, json=definition):
            pass
    for name in ("node-a", "node-b"):
        async with api.post("/api/v1/nodes", json=nodes.make_gpu_node(name)):
            pass


def _read_crds() -> list[dict[str, Any]]:
    """Read the CRDs: beside the package in a source tree, inside it in an installed wheel."""
    package = resources.files("scheduler")
    for folder in (package / "crds", package / ".." / "crds"):
        if folder.is_dir():
            found = [
                reading.read_first(file.read_text(encoding="utf-8"))
                for file in folder.iterdir()
                if file.name.endswith(".yaml")
            ]
            # A kustomization is beside them.
            return [body for body in found if body["kind"] == "CustomResourceDefinition"]
    raise DemoFailed("the CRDs are missing from this installation")


async def _show_patterns(
    api: aiohttp.ClientSession, console: Console, check: Callable[[], None]
) -> list[tuple[patterns.Pattern, tuple[int, ...]]]:
    progress = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console
    )  # fmt: skip
    bar = progress.add_task("starting the operator", total=4 * len(patterns.ALL))
    results = []
    with Live(progress, console=console, refresh_per_second=20, transient=True) as live:
        for number, pattern in enumerate(patterns.ALL):
            for manifest in pattern.read_manifests():
                async with api.post(_PODS, json=manifest):
                    pass
            seconds = _START_SECONDS if number == 0 else _PATTERN_SECONDS

            def update(pods: list[dict[str, Any]], drawn: RenderableType, at: int = number) -> None:
                running = sum(pod["status"].get("phase") == "Running" for pod in pods)
                progress.update(bar, completed=4 * at + running)
                if running:
                    progress.update(bar, description=patterns.ALL[at].name)
                live.update(Group(drawn, progress))

            pods, drawn = await _wait_until_running(api, update, check, seconds)
            heading = f"\n[bold]{pattern.name}[/bold]  node policy / GPU policy"
            console.print(heading, highlight=False)
            console.print(drawn)
            results.append((pattern, patterns.count_cards(pods)))
            if pattern is not patterns.ALL[-1]:
                await _delete_pods(api)
    return results


async def _wait_until_running(
    api: aiohttp.ClientSession,
    update: Callable[[list[dict[str, Any]], RenderableType], None],
    check: Callable[[], None],
    seconds: float,
) -> tuple[list[dict[str, Any]], RenderableType]:
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        check()
        async with api.get(_PODS) as answer:
            pods = (await answer.json())["items"]
        async with api.get("/api/v1/nodes") as answer:
            drawn = picture.draw_nodes((await answer.json())["items"], pods)
        update(pods, drawn)
        if pods and all(pod["status"].get("phase") == "Running" for pod in pods):
            return pods, drawn
        if asyncio.get_running_loop().time() > deadline:
            states = {pod["metadata"]["name"]: pod["status"] for pod in pods}
            raise DemoFailed(f"pods not running after {seconds:.0f} s: {states}")
        await asyncio.sleep(0.05)


async def _delete_pods(api: aiohttp.ClientSession) -> None:
    async with api.delete(_PODS):
        pass
    while True:
        async with api.get(_PODS) as answer:
            if not (await answer.json())["items"]:
                return
        await asyncio.sleep(0.02)


def _print_result(
    console: Console, results: list[tuple[patterns.Pattern, tuple[int, ...]]]
) -> None:
    table = Table(title="Four pods of 7,500 MiB on 2 nodes × 4 cards of 15,360 MiB")
    for heading in ("nodes", "GPUs", "expected", "seen", ""):
        table.add_column(heading, no_wrap=True)
    for pattern, seen in results:
        good = seen == pattern.cards_per_node
        verdict = "[green]ok[/green]" if good else "[red]DIFFERS[/red]"
        node_policy, gpu_policy = pattern.name.split("-")
        table.add_row(
            node_policy, gpu_policy, pattern.expectation, patterns.describe_cards(seen), verdict
        )
    console.print()
    console.print(table)
