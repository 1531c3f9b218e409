"""What happens to the cluster beside its pods: plugins, cards, registers, nodes, configuration, quotas and locks of others."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import yaml

from scheduler.embedded.agents import cards
from scheduler.embedded.agents.apiclient import CallError, Client
from tests.operator.left_by_hami import CHART, MAP, MAPS, QUOTAS
from tests.operator.manifests import pod
from tests.soak.agents import NodeAgents
from tests.soak.fleet import Fleet
from tests.soak.holdings import GARBLED, LOCKS, REGISTER

Json = dict[str, Any]
_QUOTA = "devices"
_NODES, _PODS = "/api/v1/nodes", "/api/v1/namespaces/default/pods"
_REGISTERS = ("register", "node-gpu-devices", "gcu-drs-capacity")
_HARD = ("limits.nvidia.com/gpumem", "limits.nvidia.com/gpucores")


class Troubles:
    """Makes trouble, and clears it away again.

    Each trouble lasts for a while and then ends by itself: the task of a trouble returns when its node is as it was.
    """

    def __init__(
        self, client: Client, rng: random.Random, fleet: Fleet, agents: NodeAgents, seconds: float
    ) -> None:
        """``seconds``: how long a trouble lasts at most."""
        self.counts = Counter[str]()
        self._client, self._rng, self._fleet, self._agents = client, rng, fleet, agents
        self._seconds = seconds
        self._busy: set[str] = set()
        self._serial = 0
        self._on_nodes: list[Callable[[str], Awaitable[None]]] = [
            self._agent_dies,
            self._agent_dies,
            self._node_goes,
            self._node_goes,
            self._register_goes,
            self._card_is_ill,
            self._lock_of_a_pod_that_is_gone,
            self._lock_is_lost,
        ]
        self._on_cluster: list[Callable[[], Awaitable[None]]] = [self._map_changes, self._quota_changes]  # fmt: skip

    async def make(self) -> None:
        """One trouble from its begin to its end."""
        rng = self._rng
        free = sorted(set(self._fleet.nodes) - self._busy)
        if rng.random() < 0.15 or not free:
            await self._count(rng.choice(self._on_cluster))()
            return
        node = rng.choice(free)
        self._busy.add(node)
        try:
            await self._count(rng.choice(self._on_nodes))(node)
        finally:
            self._busy.discard(node)

    def _count(self, happen: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        self.counts[happen.__name__.strip("_").replace("_", " ")] += 1
        return happen

    async def _last(self) -> None:
        await asyncio.sleep(self._rng.uniform(0.0, self._seconds))

    # Of nodes.

    async def _agent_dies(self, node: str) -> None:
        """Kubelet and plugins answer nothing: locks stay, and what is bound does not start."""
        await self._agents.stop(node)
        await self._last()
        await self._agents.start(node)

    async def _node_goes(self, node: str) -> None:
        """A node is deleted and comes again, with its pods or without them."""
        await self._agents.stop(node)
        await self._client.delete(f"{_NODES}/{node}")
        await self._last()
        if self._rng.random() < 0.7:
            await self._collect_pods(node)
        await self.create_node(node)
        await self._agents.start(node)

    async def _collect_pods(self, node: str) -> None:
        """As the controller of pods on nodes that are gone."""
        listed = await self._client.get("/api/v1/pods", {"fieldSelector": f"spec.nodeName={node}"})
        for one in listed["items"]:
            await self._delete_pod(one["metadata"]["name"])

    async def create_node(self, name: str) -> None:
        """A node as it registers itself, with what it can allocate."""
        body = self._fleet.nodes[name]
        await self._client.post(_NODES, body)
        status = {part: body["status"][part] for part in ("capacity", "allocatable", "conditions")}
        await self._client.patch(f"{_NODES}/{name}/status", {"status": status})

    async def _register_goes(self, node: str) -> None:
        """The register of every plugin is removed, and written again."""
        notes = self._fleet.nodes[node]["metadata"]["annotations"]
        mine = {key: text for key, text in notes.items() if any(one in key for one in _REGISTERS)}
        await self._annotate(node, dict.fromkeys(mine))
        await self._last()
        if REGISTER in mine and self._rng.random() < 0.3:
            await self._annotate(node, {REGISTER: GARBLED})
            await self._last()
        await self._annotate(node, mine)

    async def _card_is_ill(self, node: str) -> None:
        """A card of NVIDIA falls ill, which its plugin registers, and gets well."""
        notes = self._fleet.nodes[node]["metadata"]["annotations"]
        if cards.HARDWARE not in notes:
            return
        told = json.loads(notes[cards.HARDWARE])
        self._rng.choice(told["cards"])["health"] = False
        await self._annotate(node, {cards.HARDWARE: json.dumps(told)})
        await self._last()
        await self._annotate(node, {cards.HARDWARE: notes[cards.HARDWARE]})

    async def _lock_of_a_pod_that_is_gone(self, node: str) -> None:
        """Another scheduler takes the lock for a pod of its own, and then both of them are gone."""
        if cards.HARDWARE not in self._fleet.nodes[node]["metadata"]["annotations"]:
            return
        self._serial += 1
        name, since = f"foreign-{self._serial}", dt.datetime.now(dt.UTC)
        if self._rng.random() < 0.5:
            since -= dt.timedelta(seconds=self._rng.randrange(400))
        await self._client.post(_PODS, pod(name, schedulerName="hami-scheduler"))
        found = await self._client.get(f"{_NODES}/{node}")
        if LOCKS[0] not in (found["metadata"].get("annotations") or {}):
            text = f"{since.strftime('%Y-%m-%dT%H:%M:%SZ')},default,{name}"
            version = found["metadata"]["resourceVersion"]
            body = {"annotations": {LOCKS[0]: text}, "resourceVersion": version}
            await self._ignore_refusal(
                self._client.patch(f"{_NODES}/{node}", {"metadata": body}), 409
            )
        await self._last()
        await self._delete_pod(name)

    async def _lock_is_lost(self, node: str) -> None:
        """Somebody removes the lock of a node while it is held."""
        await self._annotate(node, dict.fromkeys(LOCKS))

    # Of the cluster.

    async def _map_changes(self) -> None:
        """HAMi's configuration is edited, also so that nobody can read it, or so that requests mean something else."""
        changes: Json = self._rng.choice(
            ({}, {"deviceSplitCount": 5}, {"memoryFactor": 2}, {"defaultCores": 20})
        )
        await self._configure(self._rng.choice((_write_config(**changes), "nvidia: [")))
        await self._last()
        await self.restore_map()

    async def restore_map(self) -> None:
        """The configuration as it is when nobody edits it."""
        await self._configure(_write_config())

    async def _configure(self, text: str) -> None:
        await self._client.patch(f"{MAPS}/{MAP}", {"data": {"device-config.yaml": text}})

    async def _quota_changes(self) -> None:
        rng = self._rng
        hard = {_HARD[0]: str(rng.choice((0, 50_000, 300_000))), _HARD[1]: str(rng.choice((200, 2000)))}  # fmt: skip
        await self._client.patch(f"{QUOTAS}/{_QUOTA}", {"spec": {"hard": hard}})
        await self._last()
        await self.restore_quota()

    async def restore_quota(self) -> None:
        """So much that it holds nobody back."""
        hard = dict.fromkeys(_HARD, "100000000")
        await self._client.patch(f"{QUOTAS}/{_QUOTA}", {"spec": {"hard": hard}})

    async def begin(self) -> None:
        """Write what troubles change."""
        data = {"device-config.yaml": _write_config()}
        await self._client.post(MAPS, {"metadata": {"name": MAP}, "data": data})
        hard = dict.fromkeys(_HARD, "100000000")
        await self._client.post(QUOTAS, {"metadata": {"name": _QUOTA}, "spec": {"hard": hard}})

    # Writes.

    async def _annotate(self, node: str, notes: dict[str, Any]) -> None:
        await self._client.patch(f"{_NODES}/{node}", {"metadata": {"annotations": notes}})

    async def _delete_pod(self, name: str) -> None:
        await self._ignore_refusal(
            self._client.delete(f"{_PODS}/{name}", {"gracePeriodSeconds": 0}), 404
        )

    @staticmethod
    async def _ignore_refusal(call: Awaitable[Any], code: int) -> None:
        try:
            await call
        except CallError as error:
            if error.code != code:
                raise


def _write_config(**nvidia: Any) -> str:
    """The device configuration of HAMi's chart, with changes."""
    config = yaml.safe_load(CHART.read_text(encoding="utf-8"))
    config["nvidia"] |= nvidia
    return yaml.safe_dump(config)
