"""Runs the demo: starts everything, applies the patterns one after another, and compares two modes."""

from __future__ import annotations

import asyncio
import shlex
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

import aiohttp
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from scheduler.demo import beside, cards, comparison, keeping, operator, patterns, picture
from scheduler.documents import reading, writing
from scheduler.embedded import cluster
from scheduler.embedded.agents import claims, dra_devices, nodes
from scheduler.embedded.agents import fleet as agents
from scheduler.embedded.agents.dra_driver import Driver
from scheduler.embedded.agents.workloads import controllers
from scheduler.embedded.api.server import Settings

_START_SECONDS = 180.0  # a few seconds, unless every kernel has to be compiled first
_PATTERN_SECONDS = 20.0
_PODS = "/api/v1/namespaces/default/pods"
_DEVICES = "/apis/resource.k8s.io/v1"
_CLAIMS = f"{_DEVICES}/namespaces/default/resourceclaim"
# As many cards, and as large, as the nodes with HAMi's device plugin have.
_CARDS, _CARD_MIB = 4, 15_360
_TITLE = "Four pods of 7,500 MiB on 2 nodes × 4 cards of 15,360 MiB"
_CONFIG = {"profiles": [{"schedulerName": "default-scheduler"}]}
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class DemoFailed(Exception):  # noqa: N818
    """The demo could not run to its end; the error says at which step."""


async def run_demo(console: Console, *, keep: bool) -> bool:
    """Run the four patterns with HAMi's resources and with claims, then compare two modes.

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
            agents.run(embedded.url) as playing,
            claims.run(embedded.url),
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
                    show = _Show(api, console, running.check)
                    await show.run_patterns(patterns.BY_SHARES)
                    await _furnish_claims(api, playing.dra)
                    await show.run_patterns(patterns.BY_CLAIMS)
                    results = show.results
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
    for file in (patterns.NODES, patterns.BY_SHARES[-1].file):
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


async def _furnish_claims(api: aiohttp.ClientSession, driver: Driver) -> None:
    """Make two more nodes, whose cards a DRA driver publishes, and the template of claims for them."""
    for name in ("node-c", "node-d"):
        async with api.post("/api/v1/nodes", json=nodes.make_plain_node(name)):
            pass
        await driver.publish(name, dra_devices.make_hami_gpus(_CARDS, _CARD_MIB))
    for one in dra_devices.make_classes():
        async with api.post(f"{_DEVICES}/deviceclasses", json=one):
            pass
    for one in patterns.read_file(patterns.TEMPLATE):
        async with api.post(f"{_CLAIMS}templates", json=one):
            pass


class _Show:
    """Applies patterns one after another, and draws them.

    Attributes:
        results: the patterns so far, each with the cards that were used.
    """

    def __init__(
        self, api: aiohttp.ClientSession, console: Console, check: Callable[[], None]
    ) -> None:
        self._api, self._console, self._check = api, console, check
        self.results: list[tuple[patterns.Pattern, tuple[int, ...]]] = []

    async def run_patterns(self, shown: Sequence[patterns.Pattern]) -> None:
        """Run some patterns; the pods of the last one stay until the next call.

        Raises:
            DemoFailed: pods were not placed in time.
        """
        progress = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=self._console
        )  # fmt: skip
        first = "claims" if self.results else "starting the operator"
        bar = progress.add_task(first, total=4 * len(shown))
        with Live(progress, console=self._console, refresh_per_second=20, transient=True) as live:
            for number, pattern in enumerate(shown):
                await self._delete_pods()
                for manifest in pattern.read_manifests():
                    async with self._api.post(_PODS, json=manifest):
                        pass

                def update(
                    running: int,
                    drawn: RenderableType,
                    at: int = number,
                    name: str = pattern.policies,
                ) -> None:
                    progress.update(bar, completed=4 * at + running)
                    if running:
                        progress.update(bar, description=name)
                    live.update(Group(drawn, progress))

                there, drawn = await self._wait_until_running(pattern, update)
                by = " with claims" if pattern.by == patterns.CLAIMS else ""
                heading = f"\n[bold]{pattern.policies}[/bold]{by}  node policy / GPU policy"
                self._console.print(heading, highlight=False)
                self._console.print(drawn)
                self.results.append((pattern, cards.count_cards(there)))

    async def _wait_until_running(
        self, pattern: patterns.Pattern, update: Callable[[int, RenderableType], None]
    ) -> tuple[list[cards.NodeCards], RenderableType]:
        clock = asyncio.get_running_loop().time
        seconds = _PATTERN_SECONDS if self.results else _START_SECONDS
        deadline = clock() + seconds
        while True:
            self._check()
            pods = await self._list_objects(_PODS)
            there = await self._read_cards(pattern, pods)
            drawn = picture.draw_nodes(there, [pod["metadata"]["name"] for pod in pods])
            running = sum(pod["status"].get("phase") == "Running" for pod in pods)
            update(running, drawn)
            if pods and running == len(pods):
                return there, drawn
            if clock() > deadline:
                states = {pod["metadata"]["name"]: pod["status"] for pod in pods}
                raise DemoFailed(f"pods not running after {seconds:.0f} s: {states}")
            await asyncio.sleep(0.05)

    async def _read_cards(
        self, pattern: patterns.Pattern, pods: list[dict[str, Any]]
    ) -> list[cards.NodeCards]:
        if pattern.by == patterns.SHARES:
            return cards.read_registers(await self._list_objects("/api/v1/nodes"), pods)
        slices = await self._list_objects(f"{_DEVICES}/resourceslices")
        return cards.read_slices(slices, await self._list_objects(f"{_CLAIMS}s"))

    async def _list_objects(self, path: str) -> list[dict[str, Any]]:
        async with self._api.get(path) as answer:
            found: list[dict[str, Any]] = (await answer.json())["items"]
            return found

    async def _delete_pods(self) -> None:
        """Delete all pods, and wait until their claims are gone, too."""
        async with self._api.delete(_PODS):
            pass
        while await self._list_objects(_PODS) or await self._list_objects(f"{_CLAIMS}s"):
            await asyncio.sleep(0.02)


def _print_result(
    console: Console, results: Sequence[tuple[patterns.Pattern, tuple[int, ...]]]
) -> None:
    for by, what in ((patterns.SHARES, "HAMi's resources"), (patterns.CLAIMS, "ResourceClaims")):
        table = Table(title=f"{_TITLE}, by {what}")
        for heading in ("nodes", "GPUs", "expected", "seen", ""):
            table.add_column(heading, no_wrap=True)
        for pattern, seen in results:
            if pattern.by == by:
                good = seen == pattern.cards_per_node
                verdict = "[green]ok[/green]" if good else "[red]DIFFERS[/red]"
                words = pattern.expectation, patterns.describe_cards(seen)
                table.add_row(pattern.node_policy, pattern.gpu_policy, *words, verdict)
        console.print()
        console.print(table)
