"""One API server, the operators on it, and the calls by which a test uses both."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import aiohttp
import msgspec

from scheduler.embedded.agents import fleet as agents
from scheduler.embedded.agents import hami_plugin, kubelet
from tests.operator import audit
from tests.operator.manifests import pod
from tests.operator.process import Operator
from tests.operator.servers import Server

Json = dict[str, Any]
T = TypeVar("T")

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
POLICIES = "/apis/scheduling.evenkeel.dev/v1alpha1/balancepolicies"
_EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
_PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
_NAMESPACES = "/api/v1/namespaces"
_COLLECTIONS = {
    "Pod": PODS,
    "Node": NODES,
    "BalancePolicy": POLICIES,
    "PriorityClass": _PRIORITIES,
    "Namespace": _NAMESPACES,
}
_MEDIA = "application/merge-patch+json"
# The API server's admission reads classes from a watch of its own, some time after they were created.
_UNHEARD_OF = "no PriorityClass with name"
_PAGE = "2000"
WAIT_SECONDS = 20.0


class Refused(Exception):  # noqa: N818
    """The API server refused a call."""


class World:
    """What a test holds: the server, calls to it, and its operators.

    Attributes:
        operator: the one that all tests of a module share, None where tests start their own.
        rights_in_doubt: set by a test that restarts the API server.
    """

    def __init__(
        self, server: Server, session: aiohttp.ClientSession, operator: Operator | None
    ) -> None:
        self.server = server
        self.operator = operator
        self.operators: list[Operator] = []
        self.rights_in_doubt = False
        self._has_new_nodes = False
        self._session = session

    # The API.

    async def call(self, method: str, path: str, body: Any = None, **query: str) -> Json:
        """One call; the answer decoded."""
        media = _MEDIA if method == "PATCH" else "application/json"
        # As a file: aiohttp warns of a megabyte in one piece.
        data = None if body is None else io.BytesIO(msgspec.json.encode(body))
        async with self._session.request(
            method,
            self.server.url + path,
            data=data,
            params=query,
            headers={"Content-Type": media},
        ) as answer:
            raw = await answer.read()
            if answer.status >= 400:
                raise Refused(f"{method} {path}: {answer.status} {raw.decode(errors='replace')}")
            decoded: Json = msgspec.json.decode(raw)
            return decoded

    async def create(self, *manifests: Json) -> list[Json]:
        """Create objects, one after another.

        Nodes and pods come to the operator by watches of their own: before the first pod that follows nodes, it
        is waited until the shared operator has heard of these.
        """
        made: list[Json] = []
        for one in manifests:
            if one["kind"] == "Pod" and self._has_new_nodes:
                await self._nodes_are_heard_of()
            made.append(await self._create(one))
            self._has_new_nodes |= one["kind"] == "Node"
        return made

    async def _create(self, manifest: Json) -> Json:
        """Create an object; a pod once the API server's admission has heard of its priority class, too."""
        gives_up_at = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                return await self.call("POST", _path(manifest), manifest)
            except Refused as refused:
                if _UNHEARD_OF not in str(refused) or time.monotonic() > gives_up_at:
                    raise
            await asyncio.sleep(0.03)

    async def create_all(self, manifests: Sequence[Json], *, at_once: int = 16) -> None:
        """Create many objects, many at a time."""
        queue = iter(manifests)

        async def work() -> None:
            for one in queue:
                await self.create(one)

        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(work())

    async def listed(self, path: str, **query: str) -> list[Json]:
        """All objects of a collection."""
        found: list[Json] = []
        query = {"limit": _PAGE, **query}
        while True:
            page = await self.call("GET", path, **query)
            found += page["items"]
            query["continue"] = page["metadata"].get("continue", "")
            if not query["continue"]:
                return found

    async def pod(self, name: str) -> Json:
        """A pod as it is now."""
        return await self.call("GET", f"{PODS}/{name}")

    async def pods(self) -> list[Json]:
        """All pods."""
        return await self.listed("/api/v1/pods")

    async def node(self, name: str) -> Json:
        """A node as it is now."""
        return await self.call("GET", f"{NODES}/{name}")

    async def nodes(self) -> list[Json]:
        """All nodes."""
        return await self.listed(NODES)

    async def annotate(self, path: str, annotations: Mapping[str, str | None]) -> None:
        """Set annotations of an object; None removes one."""
        await self.call("PATCH", path, {"metadata": {"annotations": annotations}})

    async def delete(self, path: str) -> None:
        """Delete an object at once."""
        await self.call("DELETE", path, {"gracePeriodSeconds": 0})

    async def events(self, reason: str, name: str) -> list[Json]:
        """Events of a reason about the object of that name, oldest first."""
        found = await self.listed(_EVENTS)
        return sorted(
            (e for e in found if (e["reason"], e["regarding"]["name"]) == (reason, name)),
            key=lambda event: str(event["eventTime"]),
        )

    # Waiting.

    @staticmethod
    async def wait_until(
        read: Callable[[], Awaitable[T]],
        accept: Callable[[T], Any] = bool,
        seconds: float = WAIT_SECONDS,
    ) -> T:
        """Read again and again until what is read is accepted; return it."""
        gives_up_at = time.monotonic() + seconds
        while not accept(found := await read()):
            assert time.monotonic() < gives_up_at, f"not so after {seconds} s: {found}"
            await asyncio.sleep(0.03)
        return found

    async def bound(self, *names: str, seconds: float = WAIT_SECONDS) -> list[str]:
        """Wait until these pods are bound; return their nodes in the same order."""

        async def read() -> list[str]:
            nodes = {
                p["metadata"]["name"]: p["spec"].get("nodeName", "") for p in await self.pods()
            }
            return [nodes.get(name, "") for name in names]

        return await self.wait_until(read, all, seconds)

    async def all_bound(self, count: int, seconds: float = 120.0) -> list[Json]:
        """Wait until that many pods are bound; return all pods."""
        return await self.wait_until(
            self.pods,
            lambda pods: sum("nodeName" in pod["spec"] for pod in pods) >= count,
            seconds,
        )

    async def running(self, *names: str, seconds: float = WAIT_SECONDS) -> list[Json]:
        """Wait until the agents run these pods; return them."""

        async def read() -> list[Json]:
            return [await self.pod(name) for name in names]

        return await self.wait_until(
            read, lambda pods: all(pod["status"].get("phase") == "Running" for pod in pods), seconds
        )

    async def refused(self, name: str, text: str = "", seconds: float = WAIT_SECONDS) -> Json:
        """Wait for a FailedScheduling event with that text about a pod; return the event."""
        events = await self.wait_until(
            lambda: self.events("FailedScheduling", name),
            lambda found: any(text in event["note"] for event in found),
            seconds,
        )
        return next(event for event in events if text in event["note"])

    async def leads(self, operator: Operator) -> None:
        """Wait until this replica leads and has caught up with the cluster: a lease may have to run out first."""
        await self.wait_until(lambda: asyncio.to_thread(lambda: operator.is_deciding), seconds=60.0)

    async def measured(
        self, operator: Operator, accept: Callable[[dict[str, float]], Any]
    ) -> dict[str, float]:
        """Wait until the metrics of a replica are accepted; return them. A bind is there before it hears of it."""
        return await self.wait_until(partial(asyncio.to_thread, operator.metrics), accept)

    async def told(self, *names: str) -> None:
        """Wait until these pods have their event of success, which comes behind all said before."""
        for name in names:
            await self.wait_until(partial(self.events, "Scheduled", name))

    async def settle(self, seconds: float = WAIT_SECONDS) -> None:
        """Wait until the operator has seen what is in the cluster: a pod behind it all is decided.

        The pod asks for a node that does not exist, so it needs no room. Nodes come by a watch of
        their own, so they are counted.
        """
        await self._nodes_are_heard_of()
        marker = f"marker-{time.monotonic_ns()}"
        await self.create(pod(marker, nodeSelector={"no-such": "node"}))
        await self.refused(marker, seconds=seconds)
        await self.delete(f"{PODS}/{marker}")

    async def heard_of(self, *names: str) -> None:
        """Wait until the shared operator has heard of pods of others, which come by a watch of their own."""
        assert self.operator is not None
        for name in names:
            uid = (await self.pod(name))["metadata"]["uid"]
            await self.wait_until(partial(asyncio.to_thread, self.operator.heard, uid))

    async def _nodes_are_heard_of(self) -> None:
        if self.operator is not None:
            n_nodes = len(await self.nodes())
            await self.measured(self.operator, lambda m: m.get("evenkeel_nodes") == n_nodes)
        self._has_new_nodes = False

    # Operators and agents.

    async def start_operator(
        self,
        *,
        name: str = "a",
        lease: bool = True,
        env: Mapping[str, str] | None = None,
        args: Sequence[str] = (),
    ) -> Operator:
        """Start a replica and wait until it is ready; it is checked and stopped with the test."""
        operator = Operator(self.server, name=name, lease=lease, env=env, args=args)
        self.operators.append(operator)
        await asyncio.to_thread(operator.wait_ready)
        return operator

    def agents(
        self,
        *,
        nodes: Collection[str] | None = None,
        pace: kubelet.Pace | None = None,
        knobs: hami_plugin.Knobs | None = None,
    ) -> AbstractAsyncContextManager[agents.Agents]:
        """Kubelets and HAMi's plugin on some nodes (None: on all)."""
        url, token, tls = self.server.url, self.server.token, self.server.tls
        return agents.run(url, nodes=nodes, token=token, ssl=tls, pace=pace, knobs=knobs)

    @asynccontextmanager
    async def recorded(self, path: str) -> AsyncIterator[list[Json]]:
        """Every change of a collection while the block runs, as watch events in order."""
        version = (await self.call("GET", path))["metadata"]["resourceVersion"]
        seen: list[Json] = []
        watching = asyncio.create_task(self._watch(path, version, seen))
        try:
            yield seen
            newest = max((_version(one) for one in await self.listed(path)), default=0)

            async def heard() -> int:
                return max((_version(change["object"]) for change in seen), default=int(version))

            await self.wait_until(heard, lambda so_far: so_far >= newest)
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching

    async def _watch(self, path: str, version: str, seen: list[Json]) -> None:
        query = {"watch": "true", "resourceVersion": version}
        async with self._session.get(self.server.url + path, params=query) as answer:
            rest = b""
            async for chunk in answer.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                seen += [msgspec.json.decode(line) for line in lines]

    # Before and after a test.

    async def clear(self) -> None:
        """Remove all that tests make, and wait until the shared operator knows."""
        if self.operator is not None:
            assert self.operator.is_running, self.operator.log
        for path in ("/api/v1/pods", _EVENTS, POLICIES, NODES, _PRIORITIES):
            for one in await self.listed(path):
                if not one["metadata"]["name"].startswith("system-"):
                    with suppress(Refused):
                        await self.delete(_at(path, one))
        if self.operator is not None:
            await self.measured(
                self.operator, lambda m: m.get("evenkeel_nodes") == 0 and nothing_waits(m)
            )

    async def check(self) -> None:
        """Nothing is over-allocated and no operator was refused a right or failed in part."""
        for operator in [*self.operators, *([self.operator] if self.operator else [])]:
            operator.check_log(rights_in_doubt=self.rights_in_doubt)
        assert audit.problems(await self.nodes(), await self.pods()) == []


def _at(path: str, found: Json) -> str:
    namespace, name = found["metadata"].get("namespace"), found["metadata"]["name"]
    if path == "/api/v1/pods":
        path = f"/api/v1/namespaces/{namespace}/pods"
    return f"{path}/{name}"


def nothing_waits(metrics: Mapping[str, float]) -> bool:
    """Whether metrics, if there are any, say that no pod is in the queue."""
    waiting = [n for name, n in metrics.items() if name.startswith("scheduler_pending_pods")]
    return bool(waiting) and not any(waiting)


def _version(body: Json) -> int:
    return int(body["metadata"]["resourceVersion"])


def _path(manifest: Json) -> str:
    namespace = manifest["metadata"].get("namespace")
    path = _COLLECTIONS[manifest["kind"]]
    return path.replace("/default/", f"/{namespace}/") if namespace else path


@asynccontextmanager
async def enter(server: Server, operator: Operator | None = None) -> AsyncIterator[World]:
    """A world for one test, cleared before and audited after it."""
    connector = aiohttp.TCPConnector(ssl=server.tls if server.tls is not None else True, limit=64)
    headers = {"Authorization": f"Bearer {server.token}"}
    async with aiohttp.ClientSession(headers=headers, connector=connector) as session:
        world = World(server, session, operator)
        await world.clear()
        try:
            yield world
            await world.check()
        finally:
            for one in world.operators:
                if one.is_running:
                    await asyncio.to_thread(one.stop)
