"""One run: everything begins, random things happen for a time, everything becomes calm, and what is wrong is told."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from scheduler.embedded.agents.apiclient import CallError, Client
from tests.controlplane import plane
from tests.operator import installed, servers
from tests.operator.left_by_hami import MAP
from tests.soak import ending
from tests.soak.agents import NodeAgents
from tests.soak.demand import PRIORITIES, Demand
from tests.soak.fleet import Fleet, make_fleet
from tests.soak.ledger import Ledger
from tests.soak.replicas import Replicas
from tests.soak.troubles import Troubles
from tests.soak.watching import Watch

Json = dict[str, Any]
_PODS = "/api/v1/namespaces/default/pods"
_DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
_EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
_CONTROLLERS = ("deployment-controller", "replicaset-controller", "garbage-collector-controller")


class Plan(NamedTuple):
    """How much happens.

    Attributes:
        seconds: how long things happen.
        seed: what draws them.
        size: of the fleet.
        pods_most: how many pods there are at most; then none come.
        pod_seconds: how many seconds there are between two pods that come, on average.
        trouble_seconds: the same for troubles, which also last that long at most, times ten.
        kill_seconds: the same for what happens to replicas.
    """

    seconds: float
    seed: int
    size: int = 2
    pods_most: int = 400
    pod_seconds: float = 0.4
    trouble_seconds: float = 2.0
    kill_seconds: float = 30.0


class Report(NamedTuple):
    """What happened, and what was wrong."""

    figures: Json
    wrongs: list[str]


def install(cp: plane.ControlPlane) -> None:
    """Evenkeel with the rights to read HAMi's configuration."""
    installed.crds(cp)
    folder = installed.ROOT / "manifests" / "hami-config"
    cp.kubectl("apply", "--server-side", "-k", str(folder))


class Soak:
    """All that takes part in a run."""

    def __init__(self, server: servers.Server, plan: Plan) -> None:
        self.plan, self._server = plan, server
        self._rng = random.Random(plan.seed)
        self._fleet: Fleet = make_fleet(size=plan.size)
        self._client = Client(server.url, server.token, server.tls)
        self._config = server.folder / "soak.yaml"
        config = {"hamiConfigMap": f"kube-system/{MAP}", "lockTimeoutSeconds": 30}
        self._config.write_text(yaml.safe_dump(config), encoding="utf-8")
        self._agents = NodeAgents(server)
        self._watch = Watch(self._client, Ledger(self._fleet.vendors), self._agents.since)
        self._replicas = Replicas(server, self._rng, ["--config", str(self._config)])
        seconds = plan.trouble_seconds * 10
        self._troubles = Troubles(self._client, self._rng, self._fleet, self._agents, seconds)
        self._demand = Demand(self._rng, self._fleet.resources, min(60.0, plan.seconds))
        self._serial = 0
        self._refused = Counter[str]()

    async def run(self) -> Report:
        """The whole run; it ends early if the watch does."""
        async with asyncio.TaskGroup() as group:
            beside = [
                group.create_task(work) for work in (self._watch.follow(), self._tell_progress())
            ]
            try:
                return await self._run()
            finally:
                for task in beside:
                    task.cancel()

    async def _tell_progress(self) -> None:
        """Once a minute, on standard error: how far it is, and what was wrong meanwhile."""
        told: set[str] = set()
        while True:
            await asyncio.sleep(60.0)
            found = self._list_wrongs()
            counts = json.dumps(dict(self._watch.counts + self._replicas.counts))
            new = [one for one in found if one not in told]
            print(f"{counts}, wrong: {len(found)}", *new, sep="\n", file=sys.stderr)
            told.update(found)

    def _list_wrongs(self) -> list[str]:
        return [*self._watch.ledger.wrongs, *self._watch.refused, *self._replicas.wrongs]

    async def _run(self) -> Report:
        began = time.monotonic()
        try:
            await self._begin()
            await self._happen()
            await self._calm()
            calm_at = time.monotonic()
            await ending.become_calm(self._watch)
            took = time.monotonic() - calm_at
            wrongs = await self._judge()
            figures = await self._measure(time.monotonic() - began, took)
        finally:
            await self._replicas.stop()
            await self._agents.stop_all()
            await self._client.close()
        return Report(figures, wrongs)

    async def _begin(self) -> None:
        for name, value in PRIORITIES.items():
            await self._client.post(_CLASSES, {"metadata": {"name": name}, "value": value})
        await self._troubles.begin()
        for name in self._fleet.nodes:
            await self._troubles.create_node(name)
            await self._agents.start(name)
        await self._replicas.start()
        for i in range(6):
            await self._client.post(_DEPLOYMENTS, self._demand.make_deployment(f"d{i}"))

    async def _happen(self) -> None:
        """Let things happen until the time is over; troubles that last are waited for."""
        ends_at, plan = time.monotonic() + self.plan.seconds, self.plan
        async with asyncio.TaskGroup() as group:
            for work, seconds in (
                (self._send_pod, plan.pod_seconds),
                (self._delete_pod, plan.pod_seconds * 5),
                (self._scale, plan.pod_seconds * 40),
            ):
                group.create_task(self._repeat(work, seconds, ends_at))
            group.create_task(self._repeat(self._replicas.trouble, plan.kill_seconds, ends_at))
            while time.monotonic() < ends_at:
                await self._pause(plan.trouble_seconds, ends_at)
                group.create_task(self._troubles.make())

    async def _repeat(
        self, work: Callable[[], Awaitable[None]], seconds: float, ends_at: float
    ) -> None:
        while time.monotonic() < ends_at:
            await self._pause(seconds, ends_at)
            await work()

    async def _pause(self, seconds: float, ends_at: float) -> None:
        left = max(0.0, ends_at - time.monotonic())
        await asyncio.sleep(min(left, self._rng.expovariate(1 / seconds)))

    async def _send_pod(self) -> None:
        if len(self._watch.pods) >= self.plan.pods_most:
            await self._delete_pod()
            return
        self._serial += 1
        try:
            await self._client.post(_PODS, self._demand.make_pod(f"p-{self._serial}"))
        except CallError as error:
            # Some of the vendors' cases request what no API server takes.
            self._refused[str(error.code)] += 1

    async def _delete_pod(self) -> None:
        """A pod is deleted; those that have ended or failed go first, as nobody else removes them."""
        listed = list(self._watch.pods.values())
        over = [one for one in listed if one["status"].get("phase") in {"Succeeded", "Failed"}]
        if listed:
            name = self._rng.choice(over or listed)["metadata"]["name"]
            with suppress(CallError):
                await self._client.delete(f"{_PODS}/{name}")

    async def _scale(self) -> None:
        spec = {"replicas": self._rng.randrange(12)}
        name = f"d{self._rng.randrange(6)}"
        await self._client.patch(f"{_DEPLOYMENTS}/{name}", {"spec": spec})

    async def _calm(self) -> None:
        """All plugins are back, and nobody holds anything back."""
        await self._troubles.restore_map()
        await self._troubles.restore_quota()
        for name in self._fleet.nodes:
            await self._agents.start(name)
        await self._replicas.start()

    async def _judge(self) -> list[str]:
        wrongs = await ending.check(self._server, self._client, self._watch, self._config)
        self._replicas.check()
        self._replicas.check_logs()
        return [*self._list_wrongs(), *wrongs]

    async def _measure(self, seconds: float, calm_seconds: float) -> Json:
        events = Counter(one["reason"] for one in await self._list_events())
        longest, who = self._watch.longest_lock
        return {
            "seed": self.plan.seed,
            "seconds": round(seconds),
            "nodes": len(self._fleet.nodes),
            "pods": dict(sorted(self._watch.counts.items())),
            "notCreated": dict(self._refused),
            "replicas": dict(sorted(self._replicas.counts.items())),
            "troubles": dict(sorted(self._troubles.counts.items())),
            "events": dict(sorted(events.items())),
            "longestLockSeconds": round(longest, 1),
            "longestLock": who,
            "calmSeconds": round(calm_seconds),
        }

    async def _list_events(self) -> list[Json]:
        found: list[Json] = []
        query = {"limit": "1000"}
        while True:
            page = await self._client.get(_EVENTS, query)
            found += page["items"]
            query["continue"] = page["metadata"].get("continue", "")
            if not query["continue"]:
                return found


async def soak(plan: Plan, logs: Path | None = None) -> Report:
    """A run on a control plane of its own; ``logs``: where to copy the logs of the replicas to."""
    with servers.real(install=install) as server:
        assert server.plane is not None
        server.plane.start_controller_manager(_CONTROLLERS)
        try:
            return await Soak(server, plan).run()
        finally:
            if logs is not None:
                _copy_logs(server.folder, logs)


def _copy_logs(folder: Path, logs: Path) -> None:
    logs.mkdir(parents=True, exist_ok=True)
    for log in folder.glob("operator-*.log"):
        shutil.copy(log, logs)
