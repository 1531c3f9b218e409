"""Each attack on each scheduler, one after another: the normal pods go on beside it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp

from bench.floors import Floor
from bench.hostile import candidates, normal, waiting
from bench.hostile.candidates import Candidate
from bench.hostile.normal import Normal
from scheduler.embedded.agents import fleet as agents
from scheduler.embedded.agents import nodes
from tests.controlplane import access, objects
from tests.operator import attacks, paced_attacks, servers

FLOORS = (
    Floor("*.evenkeel.p99_over_bound", at_most=1.0),
    Floor("*.evenkeel.never_bound", at_most=0),
    Floor("*.evenkeel.terms_lost", at_most=0),
    Floor("*.evenkeel.restarts", at_most=0),
    Floor("*.evenkeel.rss_mib", at_most=600),
    Floor("*.evenkeel.rss_after_mib", at_most=400),
)
# A normal pod is to be bound within a second, or twice as long as the null scheduler needs.
_BOUND_SECONDS, _BOUND_OF_NULL = 1.0, 2.0
_LEAD_IN_SECONDS = 4.0
_LATE_SECONDS = 60.0


class Size(NamedTuple):
    """How large an attack is, and how long the normal pods go on when it is over."""

    scale: float
    rest_seconds: float
    # From the deletion of all the tenants' pods until memory is read again.
    after_seconds: float


_FULL, _QUICK = Size(1.0, 30.0, 60.0), Size(0.1, 5.0, 10.0)


async def _attack(
    plane: access.Access, spaces: list[str], names: tuple[str, ...], scale: float
) -> tuple[int, int]:
    """Attack from a process of its own, so that what is measured does not wait for it.

    Returns how many objects were created, and of how many. What the API server refuses is not tried again.
    """
    given = [plane.url, str(plane.ca_file), plane.token, spaces, names, scale]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.hostile.attacker", json.dumps(given)),
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await process.communicate()
    n_created, n_pods = json.loads(said)
    return n_created, n_pods


@asynccontextmanager
async def _background(*work: Any) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(one) for one in work]
    try:
        yield
        for task in tasks:
            if task.done():
                task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def measure(scheduler: str, names: tuple[str, ...], size: Size) -> dict[str, Any]:
    """One scheduler under some attacks at once, each from a namespace of its own."""
    kinds = ("cpu", "gpu", "high") if "repels" in names else ("cpu", "gpu")
    with servers.real() as server:
        plane = server.plane
        assert plane is not None
        spaces = [f"tenant-{i}" for i in range(max(10, len(names)))]
        await objects.create_many(
            plane, [objects.namespace(s) for s in (*spaces, normal.NAMESPACE)]
        )
        await normal.create_class(server)
        n_plain = round(500 * min(1.0, size.scale * 2))
        fleet = [nodes.make_plain_node(f"plain-{i:03}") for i in range(n_plain)]
        # A card for 25 pods: the normal GPU pods of the longest attack, one a second, all have room.
        fleet += [nodes.make_gpu_node(f"gpu-{i:02}", split=25) for i in range(10)]
        await objects.create_many(plane, fleet)
        candidate = candidates.ALL[scheduler](server, kinds)
        pods = Normal(candidate.kinds)
        try:
            await candidate.start()
            before_mib = candidate.read_rss()
            gpu_nodes = [node["metadata"]["name"] for node in fleet[-10:]]
            kubelets = agents.run(server.url, nodes=gpu_nodes, token=server.token, ssl=server.tls)
            async with (
                kubelets,
                _background(
                    candidate.watch(),
                    normal.watch_binds(server, pods),
                    normal.bind_null(server, fleet[0]["metadata"]["name"]),
                ),
            ):
                attacked = await _attack_beside_normal_pods(
                    server, candidate, pods, spaces, names, size
                )
                more: dict[str, Any] = {}
                if "unlike" in names:
                    space = spaces[names.index("unlike")]
                    more = await waiting.measure_help(plane, space, size.scale)
                    more |= await waiting.count_untold(plane, spaces)
                peak = candidate.rss_mib
                for space in spaces:
                    await _clear(plane, space)
                await asyncio.sleep(size.after_seconds)
                after_mib = candidate.read_rss()
            memory = {"rss_before_mib": before_mib, "rss_mib": peak, "rss_after_mib": after_mib}
            lost = {"terms_lost": candidate.count_lost_terms(), "restarts": candidate.restarts}
            return _compare_with_null(pods.measure()) | lost | memory | more | attacked
        finally:
            candidate.kill()


async def _attack_beside_normal_pods(
    server: servers.Server,
    candidate: Candidate,
    pods: Normal,
    spaces: list[str],
    names: tuple[str, ...],
    size: Size,
) -> dict[str, Any]:
    """Attack while normal pods are created, and wait until these are bound."""
    plane = server.plane
    assert plane is not None
    async with _background(normal.create(server, pods)):
        await asyncio.sleep(_LEAD_IN_SECONDS)
        began = time.monotonic()
        n_created, n_pods = await _attack(plane, spaces, names, size.scale)
        attacked = time.monotonic() - began
        if "bulk" in names:
            await candidate.replace_leader()
        await asyncio.sleep(size.rest_seconds)
    gives_up_at = time.monotonic() + _LATE_SECONDS
    own = {name for name in pods.created if name.startswith((*pods.kinds, "null"))}
    while own - pods.bound.keys() and time.monotonic() < gives_up_at:
        await asyncio.sleep(0.2)
    return {"attack_pods": f"{n_created} of {n_pods}", "attack_seconds": round(attacked, 1)}


def _compare_with_null(figures: dict[str, Any]) -> dict[str, Any]:
    """The figures, and the 99th percentile over what is allowed for it."""
    waited, by_null = figures["p99_seconds"], figures["null_p99_seconds"] or 0.0
    bound = max(_BOUND_SECONDS, _BOUND_OF_NULL * by_null)
    return figures | {"p99_over_bound": None if waited is None else round(waited / bound, 3)}


async def _clear(plane: access.Access, space: str) -> None:
    """Delete what the tenant made: an API server gives up amid many thousands, and goes on when asked again."""
    paths = (
        f"/api/v1/namespaces/{space}/pods",
        f"/apis/policy/v1/namespaces/{space}/poddisruptionbudgets",
        f"/api/v1/namespaces/{space}/services",
        f"/apis/resource.k8s.io/v1/namespaces/{space}/resourceclaims",
    )
    for path in paths:
        for _ in range(20):
            with contextlib.suppress(objects.CallError, aiohttp.ClientError, TimeoutError):
                await objects.delete_all(plane, path)
                break
        else:
            raise AssertionError(f"{path} cannot be emptied")


def run(quick: bool) -> dict[str, dict[str, Any]]:
    """Every attack alone, then all at once that only create pods, each on every scheduler.

    A quick run is the last of them on Evenkeel, which is whom the floors are about.
    ``ATTACKS=soft,terms+peers`` and ``SCHEDULERS=evenkeel`` in the environment pick some.
    """
    chosen = [tuple(attacks.ALL)]
    if not quick:
        chosen[:0] = [(name,) for name in (*attacks.ALL, *paced_attacks.ALL)]
    if given := os.environ.get("ATTACKS"):
        chosen = [tuple(one.split("+")) for one in given.split(",")]
    usual = ("evenkeel",) if quick else candidates.ALL
    schedulers = os.environ.get("SCHEDULERS", ",".join(usual)).split(",")
    results: dict[str, dict[str, Any]] = {}
    for names in chosen:
        row = results["+".join(names)] = {}
        for scheduler in schedulers:
            row[scheduler] = asyncio.run(measure(scheduler, names, _QUICK if quick else _FULL))
            print(
                f"bench: {'+'.join(names)}, {scheduler}: {row[scheduler]}",
                file=sys.stderr,
                flush=True,
            )
    return results
