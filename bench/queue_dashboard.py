"""Draw what the dashboard of queues shows: `python -m bench.queue_dashboard docs/pictures/queues-dashboard.png`.

Three teams share an embedded cluster through Kueue's queues: one after another has more work than it is owed, borrows,
and gives back. As in ``bench.dashboard`` the figures and the queries are real, and the drawing is not Grafana's.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench import dashboard
from scheduler.api import names
from scheduler.embedded.agents import nodes
from tests.operator import installed, prometheus, servers
from tests.operator.manifests import container, pod
from tests.operator.prometheus import Scrape
from tests.operator.world import World, enter

Json = dict[str, Any]
API = "kueue.x-k8s.io/v1beta2"
TEAMS = ("search", "speech", "vision")
# GPUs of each team; together the cluster's.
OWED = dashboard.N_NODES * dashboard.CARDS // len(TEAMS)
# Seconds between two pods of the busy team and of the others, and the time until another team is busy.
BUSY, QUIET, TURN = 0.9, 5.0, 80.0


def make_queues() -> list[Json]:
    """Make a cohort in which each team takes back what it is owed."""
    quota: list[Json] = [
        {"name": names.GPU, "nominalQuota": OWED},
        {"name": names.CPU, "nominalQuota": 1000},
        {"name": names.MEMORY, "nominalQuota": "4Ti"},
    ]
    group = {
        "coveredResources": [one["name"] for one in quota],
        "flavors": [{"name": "gpu-nodes", "resources": quota}],
    }
    spec = {
        "cohortName": "research",
        "namespaceSelector": {},
        "resourceGroups": [group],
        "preemption": {"reclaimWithinCohort": "Any"},
    }
    made: list[Json] = [
        {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": "gpu-nodes"}}
    ]
    for team in TEAMS:
        meta, local = {"name": team}, {"name": "team", "namespace": team}
        points = {"clusterQueue": team}
        made += [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": meta},
            {"apiVersion": API, "kind": "ClusterQueue", "metadata": meta, "spec": spec},
            {"apiVersion": API, "kind": "LocalQueue", "metadata": local, "spec": points},
        ]
    return made


def make_pod(i: int, team: str, lots: random.Random) -> Json:
    asks = container(
        requests={"cpu": "1", "memory": "4Gi"}, limits={names.GPU: lots.choice((1, 1, 2, 4))}
    )
    return pod(
        f"p{i}", namespace=team, labels={"kueue.x-k8s.io/queue-name": "team"}, containers=[asks]
    )


async def live(world: World) -> None:
    """Pods come, most of them of the team whose turn it is, and go after a while."""
    lots, started, leaving = random.Random(7), time.monotonic(), set()

    async def run(one: Json) -> None:
        meta = one["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        for _ in range(600):
            await asyncio.sleep(1.0)
            with suppress(Exception):
                found = await world.call("GET", path)
                if found["spec"].get("nodeName"):
                    break
        await asyncio.sleep(lots.uniform(10, 40))
        with suppress(Exception):
            await world.delete(path)

    async def submit(team: str) -> None:
        for i in range(100_000):
            turn = int((time.monotonic() - started) // TURN) % len(TEAMS)
            await asyncio.sleep(lots.expovariate(1 / (BUSY if TEAMS[turn] == team else QUIET)))
            one = make_pod(i, team, lots)
            await world.create(one)
            task = asyncio.create_task(run(one))
            leaving.add(task)
            task.add_done_callback(leaving.discard)

    await asyncio.gather(*map(submit, TEAMS))


async def scrape_all() -> list[Scrape]:
    """Scrape one replica while the teams work."""
    found = []
    with servers.embedded() as server:
        assert server.embedded is not None
        server.embedded.run(lambda inside: inside.add(*servers.queue_crds()))
        async with enter(server) as world:
            fleet = (
                nodes.make_gpu_node(f"gpu-{i:02}", cards=dashboard.CARDS)
                for i in range(dashboard.N_NODES)
            )
            await world.create(*fleet)
            server.embedded.run(lambda inside: inside.add(*make_queues()))
            config = Path(installed.QUEUES) / "config.yaml"
            one = await world.start_operator(args=("--config", str(config)))
            await world.leads(one)
            async with world.agents():
                living = asyncio.create_task(live(world))
                started = time.monotonic()
                while (now := time.monotonic() - started) < dashboard.SECONDS:
                    found.append(
                        await asyncio.to_thread(prometheus.scrape, one.port, "evenkeel-0", now)
                    )
                    await asyncio.sleep(dashboard.EVERY)
                living.cancel()
                with suppress(asyncio.CancelledError):
                    await living
    return found


if __name__ == "__main__":
    panels = prometheus.panels(
        f"{dashboard.INTERVAL:.0f}s", dashboard=prometheus.QUEUES, resource=names.GPU
    )
    dashboard.draw(asyncio.run(scrape_all()), Path(sys.argv[1]), panels)
