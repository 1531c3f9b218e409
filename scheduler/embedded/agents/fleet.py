"""Kubelet and device plugin for many nodes in one task: ``async with agents.run(url) as a:``.

A node that appears later is played, too. The agents speak HTTP only, so they serve the embedded cluster and a real
"""

import asyncio
import ssl as tls
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from scheduler.embedded.agents.apiclient import CallError, Client
from scheduler.embedded.agents.dra_driver import Driver
from scheduler.embedded.agents.hami_plugin import Allocation, Knobs, Plugin
from scheduler.embedded.agents.kubelet import Kubelet, Pace, Plugins
from scheduler.embedded.agents.vendor_plugins import VendorPlugins

Json = dict[str, Any]


class Agents:
    """The running agents: what they did, and the knobs that a test may turn."""

    def __init__(self, kubelet: Kubelet, plugins: Plugins) -> None:
        self.kubelet = kubelet
        self.plugin, self.vendors, self.dra = plugins

    @property
    def allocations(self) -> list[Allocation]:
        """Return every allocation so far, in order."""
        return self.plugin.allocations

    @property
    def knobs(self) -> Knobs:
        """Return the plugin's knobs; changes count from the next call on."""
        return self.plugin.knobs

    @property
    def pace(self) -> Pace:
        """Return the kubelet's delays; changes count from the next pod on."""
        return self.kubelet.pace

    def fail_allocate(self, pod: str, namespace: str = "default", why: str = "") -> None:
        """Make the next Allocate for a pod fail."""
        self.knobs.failing[f"{namespace}/{pod}"] = why or "injected failure"

    def list_allocated(self, pod: str, namespace: str = "default") -> list[Allocation]:
        """Return the allocations of one pod's containers, in order."""
        return [one for one in self.allocations if (one.namespace, one.pod) == (namespace, pod)]


@asynccontextmanager
async def run(
    url: str,
    *,
    nodes: Collection[str] | None = None,
    token: str | None = None,
    ssl: tls.SSLContext | None = None,
    pace: Pace | None = None,
    knobs: Knobs | None = None,
) -> AsyncIterator[Agents]:
    """Play the kubelet and HAMi's plugin on some nodes (None: on all)."""
    client = Client(url, token, ssl)
    plugin = Plugin(client, knobs or Knobs())
    plugins = Plugins(plugin, VendorPlugins(client), Driver(client))
    kubelet = Kubelet(client, plugins, pace or Pace(), nodes)
    work = [
        asyncio.create_task(
            _follow_nodes(client, kubelet, plugin, _select("metadata.name", nodes))
        ),
        asyncio.create_task(_follow_pods(client, kubelet, _select("spec.nodeName", nodes))),
        asyncio.create_task(_announce_again(kubelet, plugin)),
    ]
    try:
        yield Agents(kubelet, plugins)
    finally:
        for task in work:
            task.cancel()
        results = await asyncio.gather(*work, return_exceptions=True)
        results += await kubelet.close()
        await client.close()
        for result in results:
            if isinstance(result, Exception):
                raise result


def _select(field: str, nodes: Collection[str] | None) -> Mapping[str, str]:
    """What is watched: who plays one node watches what is of it, as every kubelet does; who plays more, all that is bound."""
    if nodes is not None and len(nodes) == 1:
        return {"fieldSelector": f"{field}={next(iter(nodes))}"}
    return {"fieldSelector": "spec.nodeName!="} if field == "spec.nodeName" else {}


async def _follow_nodes(
    client: Client, kubelet: Kubelet, plugin: Plugin, selected: Mapping[str, str]
) -> None:
    async for kind, node in client.follow("/api/v1/nodes", selected):
        name = node["metadata"]["name"]
        if not kubelet.is_played(name):
            continue
        if kind == "DELETED":
            kubelet.drop_node(name)
            plugin.drop_node(name)
            continue
        with _ignore_gone():
            await kubelet.see_node(node)
            await plugin.see_node(node)


@contextmanager
def _ignore_gone() -> Iterator[None]:
    """Ignore that an object was deleted or changed meanwhile: the watch reports it again."""
    try:
        yield
    except CallError as error:
        if error.code not in {404, 409}:
            raise


async def _follow_pods(client: Client, kubelet: Kubelet, selected: Mapping[str, str]) -> None:
    async for kind, pod in client.follow("/api/v1/pods", selected):
        if not kubelet.is_played(pod["spec"]["nodeName"]):
            continue
        if kind == "DELETED":
            kubelet.drop_pod(pod)
        else:
            kubelet.see_pod(pod)


async def _announce_again(kubelet: Kubelet, plugin: Plugin) -> None:
    while True:
        await asyncio.sleep(plugin.knobs.register_seconds)
        for node in kubelet.list_nodes():
            with _ignore_gone():
                await plugin.register(node)
