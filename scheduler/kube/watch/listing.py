"""Reads whole lists in pages, and reads nodes and pods once for commands that do not watch."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from scheduler.api import kinds, steering, wire
from scheduler.api.kind import Kind
from scheduler.api.limits import DEFAULT, PodLimits
from scheduler.api.pods import bounded
from scheduler.errors import ApiError
from scheduler.kube import answers, client
from scheduler.kube.client import Access, ApiClient, TooLarge
from scheduler.kube.patience import Patience

T = TypeVar("T")
Read = Callable[[bytes | msgspec.Raw], T]

_PAGE = 500
# A page of large objects is requested again as smaller pages, because a whole page is in memory. While one page is
# read, the next one comes in: two pages are in memory.
_PAGE_BYTES = 16 << 20
_PAGE_SMALLER = 8
_PAGE_SECONDS = 60.0
# After so much of a page, other tasks get their turn.
_SLICE_ITEMS, _SLICE_BYTES = 100, 1 << 20
_TRIES = 3


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _RawPage(msgspec.Struct):
    metadata: _ListMeta
    # In a list of metadata the API server writes an empty list as null.
    items: list[msgspec.Raw] | None


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list.

    Attributes:
        items: the objects of the page.
        version: the version of the whole list, to watch from.
        is_last: whether the list is complete with this page.
    """

    items: list[T]
    version: str
    is_last: bool


_pages = msgspec.json.Decoder(_RawPage)
_plain = msgspec.json.Decoder(dict[str, Any])
_small_pods = msgspec.json.Decoder(wire.Pod)


class Expired(Exception):  # noqa: N818
    """The version to resume from is too old: list again."""


def make_reader(kind: Kind) -> Read[Any]:
    """Return a function that reads objects of a kind from their JSON; for pods use ``make_pod_reader``."""
    if kind.kind == kind.name:
        return msgspec.json.Decoder(kind.shape).decode

    def read(raw: bytes | msgspec.Raw) -> Any:
        # Other API groups have a kind of this name: in here the kind has another name.
        return msgspec.convert({**_plain.decode(raw), "kind": kind.name}, kind.shape)

    return read


def read_plain(raw: bytes | msgspec.Raw) -> dict[str, Any]:
    """Read an object of any kind from its JSON, as plain values."""
    return _plain.decode(raw)


def make_pod_reader(limits: PodLimits) -> Read[wire.Pod]:
    """Return a function that reads a pod from its JSON; of a pod beyond the limits it reads only what is charged."""

    def read(raw: bytes | msgspec.Raw) -> wire.Pod:
        if len(raw) <= bounded.LARGE_BYTES:
            return _small_pods.decode(raw)
        return bounded.decode_pod(raw, limits)

    return read


async def read_list(
    api: ApiClient,
    path: str,
    params: Mapping[str, str],
    read: Read[T],
    *,
    accept: str = client.JSON,
    patience: Patience | None = None,
) -> tuple[list[T], str]:
    """Read everything under a path, and the version to watch from; arguments and errors are those of ``read_pages``."""
    items: list[T] = []
    version = ""
    pages = read_pages(api, path, params, read, accept=accept, patience=patience)
    async with contextlib.aclosing(pages):
        async for page in pages:
            items += page.items
            version = page.version
    return items, version


async def read_pages(
    api: ApiClient,
    path: str,
    params: Mapping[str, str],
    read: Read[T],
    *,
    accept: str = client.JSON,
    patience: Patience | None = None,
) -> AsyncGenerator[Page[T], None]:
    """Read everything under a path, page by page; the API server works on the next page while one is read and used.

    ``patience`` bounds the wait for each page, if the list is tried again soon.

    Raises:
        Expired: the API server has forgotten the version that the pages are of: begin again.
        ApiError: as ``ApiClient.request``.
        MsgspecError: what came is no such list.
    """

    def request(token: str, limit: int) -> asyncio.Future[bytes]:
        page_params = {**params, "limit": str(limit)} | ({"continue": token} if token else {})
        expect = client.Expected(accept, _PAGE_SECONDS, _PAGE_BYTES if limit > 1 else 0)
        return asyncio.ensure_future(_request_page(api, path, page_params, expect, patience))

    token, limit = "", _PAGE
    coming = request(token, limit)
    try:
        while True:
            try:
                payload = await coming
            except TooLarge:
                limit = max(1, limit // _PAGE_SMALLER)
                coming = request(token, limit)
                continue
            page = _pages.decode(payload)
            raws = page.items or []
            # Half of the bound, if the next objects are as large as these.
            fitting = _PAGE_BYTES // 2 * len(raws) // len(payload)
            token, limit = page.metadata.continue_, max(1, min(_PAGE, fitting))
            if token:
                coming = request(token, limit)
            items = await _read_items(raws, read)
            yield Page(items, page.metadata.resource_version, is_last=not token)
            if not token:
                return
    finally:
        coming.cancel()
        await asyncio.gather(coming, return_exceptions=True)


async def _request_page(
    api: ApiClient,
    path: str,
    params: Mapping[str, str],
    expect: client.Expected,
    patience: Patience | None,
) -> bytes:
    """Request one page."""
    try:
        async with patience.limit(_PAGE_SECONDS) if patience else contextlib.nullcontext():
            return await api.request("GET", path, params=params, expect=expect)
    except ApiError as error:
        if answers.is_expired(error):
            raise Expired from error
        raise


async def _read_items(raws: list[msgspec.Raw], read: Read[T]) -> list[T]:
    items: list[T] = []
    n_items = n_bytes = 0
    for raw in raws:
        items.append(read(raw))
        n_items, n_bytes = n_items + 1, n_bytes + len(raw)
        if n_items >= _SLICE_ITEMS or n_bytes >= _SLICE_BYTES:
            n_items = n_bytes = 0
            await asyncio.sleep(0)
    return items


async def read_nodes_and_pods(access: Access) -> tuple[list[wire.Node], list[wire.Pod]]:
    """Read all nodes and pods of a cluster, each list as of one moment; needs the right to list both.

    Raises:
        ApiError: the API server refused, could not be reached, or answered something else.
    """
    api = ApiClient(access, connections=2)
    try:
        nodes = await read_items(api, kinds.NODES.path, make_reader(kinds.NODES))
        pods = await read_items(api, kinds.PODS.path, make_pod_reader(DEFAULT))
    finally:
        await api.close()
    return nodes, pods


async def read_config_maps(access: Access, keys: Iterable[str]) -> list[steering.ConfigMap]:
    """Read these ConfigMaps, by namespace/name, as far as they exist.

    Raises:
        ApiError: as ``read_nodes_and_pods``.
    """
    kind, found = kinds.CONFIG_MAPS, []
    api = ApiClient(access, connections=1)
    try:
        for key in keys:
            namespace, name = kinds.split_key(key)
            try:
                body = await api.get(kind.find_path(name, namespace))
            except ApiError as error:
                if not answers.is_not_found(error):
                    raise
            else:
                found.append(msgspec.convert({**body, "kind": kind.name}, steering.ConfigMap))
    finally:
        await api.close()
    return found


@dataclass(frozen=True, slots=True)
class Listed:
    """Objects of several kinds; ``unlisted`` are the kinds for which the right is missing, and the answer."""

    items: list[Any]
    unlisted: list[str]


async def read_optional(access: Access, of: Iterable[Kind]) -> Listed:
    """Read all objects of some kinds; none of a kind that the API server does not serve, or may not list.

    Raises:
        ApiError: as ``read_nodes_and_pods``.
    """
    found, api = Listed([], []), ApiClient(access, connections=1)
    try:
        for kind in of:
            try:
                found.items.extend(await read_items(api, kind.path, make_reader(kind)))
            except ApiError as error:
                if answers.is_forbidden(error):
                    found.unlisted.append(f"{kind.name}: {error.status} {error.reason}")
                elif not answers.is_not_found(error):
                    raise
    finally:
        await api.close()
    return found


async def read_items(api: ApiClient, path: str, read: Read[T]) -> list[T]:
    """Read everything under a path, as of one moment; read again if the list expires meanwhile.

    Raises:
        ApiError: the API server refused, could not be reached, or answered something else.
    """
    for _ in range(_TRIES):
        try:
            items, _version = await read_list(api, path, {}, read)
        except Expired:
            continue
        except msgspec.MsgspecError as error:
            raise ApiError(0, "Unreadable", f"GET {path}: {error}") from error
        else:
            return items
    raise answers.make_expired_error(f"GET {path}: the list changed faster than it could be read")
