"""A fresh embedded cluster per test, and a small client that shows what went over the wire.

With EVENKEEL_API_URL (and EVENKEEL_API_TOKEN) set, the same tests run against that API server:
tests/cluster does so, to hold the embedded one to the real one. Tests that reach into the embedded cluster
are left out then.
"""

import asyncio
import inspect
import itertools
import os
import ssl
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web

from scheduler.embedded import cluster as embedded
from scheduler.embedded.api.server import Serve
from tests.operator.world import World

Json = dict[str, Any]
PODS = "/api/v1/namespaces/{namespace}/pods"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Against another API server, only tests run that ask it something, and do not reach into the embedded cluster."""
    if "EVENKEEL_API_URL" in os.environ:
        left_out = [item for item in items if not _asks_server(item)]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


def _asks_server(item: pytest.Item) -> bool:
    """Whether a test has a client of the API server; others start a cluster of their own."""
    asked = [name for marker in item.iter_markers("usefixtures") for name in marker.args]
    if not isinstance(item, pytest.Function):
        return False
    asked += inspect.signature(item.function).parameters
    return "api" in item.fixturenames and "cluster" not in asked


class Reply:
    """An answer: HTTP code, decoded body, headers."""

    def __init__(self, code: int, body: Any, headers: Any) -> None:
        self.code = code
        self.body = body
        self.headers = headers

    def __getitem__(self, key: str) -> Any:
        return self.body[key]

    def __repr__(self) -> str:
        return f"{self.code} {self.body}"


class Watch:
    """An open watch."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response
        self._rest = b""
        self._ready: list[Json] = []

    async def next(self, seconds: float = 30.0) -> Json:
        """Return the next event that is no bookmark."""
        while True:
            event = await self.any(seconds)
            if event["type"] != "BOOKMARK":
                return event

    async def any(self, seconds: float = 30.0) -> Json:
        """Return the next event."""
        while not self._ready:
            chunk = await asyncio.wait_for(self.response.content.readany(), seconds)
            if not chunk:
                raise EOFError
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            self._ready = [msgspec.json.decode(line) for line in lines]
        return self._ready.pop(0)

    async def take(self, count: int) -> list[tuple[str, str]]:
        """Return type and name of the next events."""
        events = [await self.next() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"]["name"]) for event in events]

    async def silent(self, seconds: float = 0.15) -> bool:
        """Tell whether nothing comes for a while."""
        try:
            await self.next(seconds)
        except TimeoutError:
            return True
        return False

    async def ended(self, seconds: float = 30.0) -> bool:
        """Tell whether the server ends the stream."""
        try:
            await self.next(seconds)
        except EOFError:
            return True
        return False


class Api:
    """A client of one API server and one namespace of its own."""

    def __init__(
        self,
        url: str,
        session: aiohttp.ClientSession,
        token: str | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.url = url
        # For others that have to reach the same server.
        self.token = token
        self.context = context
        self.session = session
        self.namespace = f"t-{uuid.uuid4().hex[:8]}"
        self.cleanup: list[str] = []

    @property
    def pods(self) -> str:
        return PODS.format(namespace=self.namespace)

    def at(self, plural: str, group: str = "api/v1") -> str:
        """Return the path of a namespaced collection."""
        return f"/{group}/namespaces/{self.namespace}/{plural}"

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        media: str = "application/json",
        **query: Any,
    ) -> Reply:
        accept = query.pop("accept", None)
        headers = {"Content-Type": media} if body is not None else {}
        if accept:
            headers["Accept"] = accept
        data = body if isinstance(body, bytes) or body is None else msgspec.json.encode(body)
        params = {key: str(value) for key, value in query.items()}
        async with self.session.request(
            method, self.url + path, data=data, headers=headers, params=params
        ) as response:
            raw = await response.read()
            decoded = msgspec.json.decode(raw) if raw[:1] in b"{[" else raw.decode()
            return Reply(response.status, decoded, response.headers)

    async def get(self, path: str, **query: Any) -> Reply:
        return await self.call("GET", path, **query)

    async def post(self, path: str, body: Any, **query: Any) -> Reply:
        return await self.call("POST", path, body, **query)

    async def put(self, path: str, body: Any, **query: Any) -> Reply:
        return await self.call("PUT", path, body, **query)

    async def delete(self, path: str, body: Any = None, **query: Any) -> Reply:
        return await self.call("DELETE", path, body, **query)

    async def merge(self, path: str, body: Any, **query: Any) -> Reply:
        return await self.call("PATCH", path, body, "application/merge-patch+json", **query)

    async def strategic(self, path: str, body: Any, **query: Any) -> Reply:
        media = "application/strategic-merge-patch+json"
        return await self.call("PATCH", path, body, media, **query)

    async def operations(self, path: str, body: Any, **query: Any) -> Reply:
        return await self.call("PATCH", path, body, "application/json-patch+json", **query)

    async def apply(self, path: str, body: Any, manager: str = "m", **query: Any) -> Reply:
        media = "application/apply-patch+yaml"
        return await self.call("PATCH", path, body, media, fieldManager=manager, **query)

    async def made(self, path: str, body: Any) -> Json:
        """Create an object that must be accepted."""
        reply = await self.post(path, body)
        assert reply.code == 201, reply
        made: Json = reply.body
        return made

    async def pod(self, name: str = "p", labels: Json | None = None, **spec: Any) -> Json:
        """Create a pod in the test's namespace."""
        return await self.made(self.pods, pod(name, labels=labels, **spec))

    async def cluster_wide(self, path: str, body: Json) -> Json:
        """Create an object outside of the namespace; it is removed after the test."""
        made = await self.made(path, body)
        self.cleanup.append(f"{path}/{made['metadata']['name']}")
        return made

    async def bind(self, name: str, node: str, meta: Json | None = None) -> Reply:
        body = {
            "metadata": {"name": name, **(meta or {})},
            "target": {"kind": "Node", "name": node},
        }
        return await self.post(f"{self.pods}/{name}/binding", body)

    async def bound(self, name: str, node: str) -> None:
        """Bind a pod that is to be deleted, and wait until the server's own cache knows its node.

        A real API server tries a delete on the cached pod first. If that has no node yet, it takes away the
        grace period for good, and the pod is gone at once.
        """
        reply = await self.bind(name, node)
        assert reply.code == 201, reply
        await World.wait_until(
            lambda: self.get(f"{self.pods}/{name}", resourceVersion="0"),
            lambda cached: cached.code == 200 and cached["spec"].get("nodeName") == node,
        )

    @asynccontextmanager
    async def watch(self, path: str, **query: Any) -> AsyncIterator[Watch]:
        accept = query.pop("accept", None)
        headers = {"Accept": accept} if accept else {}
        params = {"watch": "true", **{key: str(value) for key, value in query.items()}}
        async with self.session.get(self.url + path, params=params, headers=headers) as response:
            assert response.status == 200, await response.text()
            yield Watch(response)


def listen(cluster: embedded.Cluster) -> list[tuple[str, str]]:
    """Method and path of every request from now on."""
    asked: list[tuple[str, str]] = []

    async def around(request: web.BaseRequest, serve: Serve) -> web.StreamResponse:
        asked.append((request.method, request.path))
        return await serve(request)

    cluster.server.around = around
    return asked


def pod(name: str = "p", labels: Json | None = None, **spec: Any) -> Json:
    """Return a small pod."""
    meta: Json = {"name": name}
    if labels:
        meta["labels"] = labels
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [{"name": "c", "image": "busybox:1"}], **spec},
    }


@pytest.fixture
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[embedded.Cluster | None]:
    """A cluster of the test's own; ``@pytest.mark.parametrize`` may hand it ``Settings``."""
    if "EVENKEEL_API_URL" in os.environ:
        yield None
        return
    async with embedded.start(settings=getattr(request, "param", None)) as running:
        yield running


@pytest.fixture
async def api(cluster: embedded.Cluster | None) -> AsyncIterator[Api]:
    """A client of the test's cluster, or of the API server that the environment names."""
    token = os.environ.get("EVENKEEL_API_TOKEN") if cluster is None else None
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    context = None
    url = cluster.url if cluster else os.environ["EVENKEEL_API_URL"]
    if cluster is None:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    connector = aiohttp.TCPConnector(ssl=context if context is not None else True)
    async with aiohttp.ClientSession(headers=headers, connector=connector) as session:
        client = Api(url, session, token, context)
        path = "/api/v1/namespaces"
        await client.made(path, {"metadata": {"name": client.namespace}})
        yield client
        for made in reversed(client.cleanup):
            await client.delete(made)
        await client.delete(f"{path}/{client.namespace}")


@pytest.fixture
def unique() -> Callable[[str], str]:
    """Names for objects outside of namespaces, different on every run."""
    counter = itertools.count()
    start = uuid.uuid4().hex[:6]
    return lambda stem: f"{stem}-{start}-{next(counter)}"


async def settled(check: Callable[[], Any], seconds: float = 30.0) -> Any:
    """Wait until a function returns something true; return that."""
    for _ in range(int(seconds / 0.01)):
        if found := check():
            return found
        await asyncio.sleep(0.01)
    raise AssertionError(f"still not true after {seconds} s")


@pytest.fixture(name="eventually")
def _eventually() -> Callable[..., Any]:
    return World.wait_until


@pytest.fixture(name="settled")
def _settled() -> Callable[..., Any]:
    return settled


@pytest.fixture(name="pod")
def _pod() -> Callable[..., Json]:
    return pod
