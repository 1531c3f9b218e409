"""API servers to run the operator against, in one form: the embedded one and a real control plane."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml

from scheduler.embedded import cluster
from scheduler.embedded.api.server import Settings
from tests.controlplane import plane
from tests.operator import installed

Json = dict[str, Any]
T = TypeVar("T")

ROOT = Path(__file__).parents[2]
OPERATOR_NAMESPACE = installed.NAMESPACE
EMBEDDED_TOKEN = "embedded-token"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where an API server is, for an admin and for the operator.

    Attributes:
        url, token, tls: an admin's access; ``tls`` is None for plain HTTP.
        kubeconfig: the operator's access, with its rights and no others where the server knows rights.
        folder: for logs.
        embedded: the embedded server behind it, None for a real one.
        plane: the real control plane behind it, None for an embedded one.
    """

    url: str
    token: str
    tls: ssl.SSLContext | None
    kubeconfig: Path
    folder: Path
    embedded: Embedded | None = None
    plane: plane.ControlPlane | None = None


class Embedded:
    """The embedded cluster in a thread of its own, so that it outlives the event loop of a test."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="embedded", daemon=True)
        self._stack = AsyncExitStack()

    def start(self) -> cluster.Cluster:
        """Serve; return the cluster, which only ``run`` may touch."""
        self._thread.start()
        self.cluster = asyncio.run_coroutine_threadsafe(self._enter(), self._loop).result()
        return self.cluster

    def run(self, work: Callable[[cluster.Cluster], T]) -> T:
        """Do something to the cluster between two of its requests."""

        async def call() -> T:
            return work(self.cluster)

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result()

    def stop(self) -> None:
        """Stop serving."""
        asyncio.run_coroutine_threadsafe(self._stack.aclose(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _enter(self) -> cluster.Cluster:
        return await self._stack.enter_async_context(cluster.start(settings=self._settings))


def crd() -> Json:
    """The BalancePolicy CRD as users apply it."""
    loaded: Json = yaml.safe_load((ROOT / "crds" / "balancepolicies.yaml").read_text())
    return loaded


def queue_crds() -> list[Json]:
    """The CRDs of Kueue's kinds as users without Kueue apply them."""
    folder = ROOT / "crds" / "kueue"
    listed = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
    return [one for name in listed for one in yaml.safe_load_all((folder / name).read_text())]


def _namespace() -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OPERATOR_NAMESPACE}}


@contextmanager
def embedded(*, history: int = 10_000) -> Iterator[Server]:
    """An embedded cluster with the CRD and the operator's namespace."""
    settings = Settings(token=EMBEDDED_TOKEN, history=history, bookmark_seconds=1.0)
    inside = Embedded(settings)
    running = inside.start()
    try:
        inside.run(lambda c: c.add(crd(), _namespace()))
        with tempfile.TemporaryDirectory(prefix="evenkeel-operator-") as folder:
            yield Server(
                url=running.url,
                token=EMBEDDED_TOKEN,
                tls=None,
                kubeconfig=running.write_kubeconfig(Path(folder) / "kubeconfig"),
                folder=Path(folder),
                embedded=inside,
            )
    finally:
        inside.stop()


@contextmanager
def real(
    *,
    extra_apiserver_flags: tuple[str, ...] = (),
    install: Callable[[plane.ControlPlane], None] = installed.by_kustomize,
) -> Iterator[Server]:
    """A control plane with Evenkeel installed, where the operator is its ServiceAccount and nobody else."""
    with plane.start(extra_apiserver_flags=extra_apiserver_flags) as cp:
        install(cp)
        yield Server(
            url=cp.url,
            token=cp.token,
            tls=cp.trust(),
            kubeconfig=cp.kubeconfig(token=installed.token(cp)),
            folder=cp.folder,
            plane=cp,
        )


@contextmanager
def with_queues(
    crds: Iterable[Json],
    *,
    extra_apiserver_flags: tuple[str, ...] = (),
    controllers: tuple[str, ...] = (),
) -> Iterator[Server]:
    """A control plane with more kinds, Evenkeel with the rights to manage queues, and Kubernetes' own controllers."""
    with real(
        extra_apiserver_flags=extra_apiserver_flags, install=installed.with_queues
    ) as running:
        assert running.plane is not None
        for crd in crds:
            answer = running.plane.request("POST", _CRDS, crd)
            assert answer.status < 400, answer
        if controllers:
            running.plane.start_controller_manager(controllers)
        yield running
