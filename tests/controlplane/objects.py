"""Manifests in one line each, and quick ways to load thousands of them and to list them.

Builders return plain dicts as the API takes them. The loaders need no client library and know no
kind by heart: a path is made from `apiVersion`, `kind` and `metadata`.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

import aiohttp
import msgspec

from tests.controlplane.access import Access

Manifest = dict[str, Any]

_PAGE = 2_000
_ATTEMPTS = 5


class CallError(RuntimeError):
    """The API server refused a call, or was too slow for it; ``status`` is its code."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


# Builders.


def node(
    name: str,
    *,
    cpu: str | int = 32,
    memory: str | int = "128Gi",
    extended: Mapping[str, str | int] | None = None,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
) -> Manifest:
    """A ready node, which could be real; `extended` adds to its resources or replaces `pods`."""
    resources = {"cpu": cpu, "memory": memory, "pods": 110, **(extended or {})}
    quantities = {resource: str(amount) for resource, amount in resources.items()}
    usual = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**usual, **(labels or {})},
            "annotations": dict(annotations or {}),
        },
        "spec": {"taints": [dict(taint) for taint in taints]},
        "status": {
            "capacity": quantities,
            "allocatable": quantities,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def pod(
    name: str,
    namespace: str = "default",
    *,
    requests: Mapping[str, str | int] | None = None,
    limits: Mapping[str, str | int] | None = None,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> Manifest:
    """A pod of one container, for Evenkeel unless `schedulerName` says otherwise.

    `spec` is any field of a pod's spec under its own name: `schedulerName`, `nodeSelector`,
    `priorityClassName`, `tolerations`, `affinity`, `topologySpreadConstraints`, `nodeName`, …
    """
    resources = {
        "requests": {resource: str(amount) for resource, amount in (requests or {}).items()},
        "limits": {resource: str(amount) for resource, amount in (limits or {}).items()},
    }
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": dict(labels or {}),
            "annotations": dict(annotations or {}),
        },
        "spec": {"schedulerName": "evenkeel", "containers": [container], **spec},
    }


def namespace(name: str, *, labels: Mapping[str, str] | None = None) -> Manifest:
    """A namespace."""
    metadata = {"name": name, "labels": dict(labels or {})}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def priority_class(name: str, value: int, **fields: Any) -> Manifest:
    """A priority class; a pod can have a priority only through one."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **fields,
    }


def binding(
    pod: Manifest, node_name: str, uid: str, *, annotations: Mapping[str, str] | None = None
) -> Manifest:
    """What a scheduler posts: this pod goes to that node, with these annotations."""
    name, space = pod["metadata"]["name"], pod["metadata"]["namespace"]
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {
            "name": name,
            "namespace": space,
            "uid": uid,
            "annotations": dict(annotations or {}),
        },
        "target": {"apiVersion": "v1", "kind": "Node", "name": node_name},
    }


# Loaders.


@contextlib.asynccontextmanager
async def connect(cp: Access, token: str | None = None) -> AsyncIterator[aiohttp.ClientSession]:
    """Open a session for the bearer of the token (the admin); ask it for paths alone."""
    session = aiohttp.ClientSession(
        base_url=cp.url,
        headers={"Authorization": f"Bearer {token or cp.token}"},
        connector=aiohttp.TCPConnector(ssl=cp.trust(), limit=0),
    )
    async with session:
        yield session


def collection(manifest: Manifest) -> str:
    """Return the path that a manifest is posted to."""
    group, kind = manifest["apiVersion"], manifest["kind"]
    metadata = manifest["metadata"]
    root = "/apis" if "/" in group else "/api"
    scope = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    if kind == "Binding":
        return f"{root}/{group}{scope}/pods/{metadata['name']}/binding"
    return f"{root}/{group}{scope}/{_plural(kind.lower())}"


async def create_many(
    cp: Access, manifests: Iterable[Manifest], *, concurrency: int = 32, token: str | None = None
) -> list[str]:
    """Create all, many at a time, each with the status that it is given; return their uids.

    The server keeps a node's status on creation; of any other kind it is patched in afterwards.
    A Binding has no uid, and "" stands in its place.

    Raises:
        CallError: one was refused; those on their way by then are created nevertheless.
    """
    todo = list(manifests)
    uids = [""] * len(todo)
    queue = iter(enumerate(todo))

    async def work(session: aiohttp.ClientSession) -> None:
        for index, manifest in queue:  # one iterator, shared: each takes the next
            uids[index] = await _create(session, manifest)

    async with connect(cp, token) as session, asyncio.TaskGroup() as group:
        for _ in range(min(concurrency, len(todo))):
            group.create_task(work(session))
    return uids


async def list_all(
    cp: Access, path: str, *, token: str | None = None, **selectors: str
) -> list[Manifest]:
    """List a collection page by page; `fieldSelector` and `labelSelector` as the API has them."""
    items: list[Manifest] = []
    query = {"limit": str(_PAGE), **selectors}
    async with connect(cp, token) as session:
        while True:
            page = msgspec.json.decode(await call(session, "GET", path, params=query))
            items += page["items"]
            query["continue"] = page["metadata"].get("continue", "")
            if not query["continue"]:
                return items


async def delete_all(cp: Access, path: str, **selectors: str) -> None:
    """Delete a collection at once, pods without waiting for a kubelet that is not there."""
    query = {"gracePeriodSeconds": "0", **selectors}
    async with connect(cp) as session:
        await call(session, "DELETE", path, params=query)


async def _create(session: aiohttp.ClientSession, manifest: Manifest) -> str:
    path = collection(manifest)
    answer = await call(session, "POST", path, manifest)
    if "status" in manifest and manifest["kind"] != "Node":
        status = {"status": manifest["status"]}
        await call(session, "PATCH", f"{path}/{manifest['metadata']['name']}/status", status)
    return msgspec.json.decode(answer, type=_Created).metadata.uid


class _Metadata(msgspec.Struct):
    uid: str = ""


class _Created(msgspec.Struct):
    metadata: _Metadata


async def call(
    session: aiohttp.ClientSession,
    method: str,
    path: str,
    body: object = None,
    *,
    params: Mapping[str, str] | None = None,
) -> bytes:
    """Make one call; when the server is too busy, wait as long as it says and ask again."""
    data = None if body is None else msgspec.json.encode(body)
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    headers = {"Content-Type": kind}
    for _ in range(_ATTEMPTS):
        async with session.request(method, path, data=data, headers=headers, params=params) as got:
            answer = await got.read()
            if got.status != 429:
                break
        await asyncio.sleep(float(got.headers.get("Retry-After", "1")))
    if got.status >= 400:
        raise CallError(
            f"{method} {path}: {got.status} {answer.decode(errors='replace')}", got.status
        )
    return answer


def _plural(kind: str) -> str:
    if kind.endswith("y"):
        return f"{kind[:-1]}ies"
    return f"{kind}es" if kind.endswith("s") else f"{kind}s"
