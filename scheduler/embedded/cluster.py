"""Start the embedded cluster: ``async with cluster.start() as c: ... c.url``."""

import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from scheduler.documents import writing
from scheduler.embedded.api.server import Server, Settings
from scheduler.embedded.store.store import Store

Json = dict[str, Any]


class Cluster:
    """A running cluster: its address and its content."""

    def __init__(self, server: Server, port: int) -> None:
        self.server = server
        self.url = f"http://127.0.0.1:{port}"

    @property
    def store(self) -> Store:
        """Return the store, for tests that look or poke inside."""
        return self.server.store

    def add(self, *objects: Json) -> list[Json]:
        """Create objects without HTTP, by the same rules; return what was stored."""
        stored = []
        for sent in objects:
            kind = self.server.kinds.find_kind(sent.get("apiVersion", ""), sent.get("kind", ""))
            if kind is None:
                raise ValueError(f"no kind {sent.get('apiVersion')} {sent.get('kind')} is served")
            namespace = (sent.get("metadata") or {}).get("namespace", "default")
            # The registry may fill in defaults in place; the caller's object stays as it is.
            record = self.server.registry.create(kind, namespace, copy.deepcopy(sent))
            stored.append(record.body)
        return stored

    @property
    def kubeconfig_text(self) -> str:
        """Return a kubeconfig that reaches this cluster."""
        name = "embedded"
        user: Json = {}
        if self.server.settings.token is not None:
            user["token"] = self.server.settings.token
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {"server": self.url}}],
            "users": [{"name": name, "user": user}],
            "contexts": [
                {"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}
            ],
            "current-context": name,
        }
        return writing.dump(config)

    def write_kubeconfig(self, path: Path | str) -> Path:
        """Write the kubeconfig to a file that only its owner can read; return its path."""
        target = Path(path)
        target.touch(mode=0o600)
        target.write_text(self.kubeconfig_text, encoding="utf-8")
        return target


@asynccontextmanager
async def start(port: int = 0, settings: Settings | None = None) -> AsyncIterator[Cluster]:
    """Serve a new, empty cluster on the loopback address (port 0: any free one)."""
    server = Server(settings)
    # Access logs would cost more than the requests. A client that hangs up cancels its handler: otherwise a
    # silent watch would stay registered until its next line.
    web_server = web.Server(
        server.handle, access_log=None, keepalive_timeout=3600, handler_cancellation=True
    )
    runner = web.ServerRunner(web_server, shutdown_timeout=0.5)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        chosen = runner.addresses[0][1]
        yield Cluster(server, chosen)
    finally:
        server.store.drop_watches()
        await runner.cleanup()
