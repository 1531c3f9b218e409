"""Whole lists, in pages; and nodes and pods once, for who only looks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

import msgspec

from scheduler.api import wire
from scheduler.errors import ApiError
from scheduler.kube.client import Access, ApiClient

T = TypeVar("T", wire.Pod, wire.Node)

NODES, PODS = "/api/v1/nodes", "/api/v1/pods"
_PAGE = 500
_GONE = 410
_TRIES = 3


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct, Generic[T]):
    """A page of a list."""

    metadata: _ListMeta
    items: list[T]


class Expired(Exception):  # noqa: N818
    """The version to resume from is too old: list again."""


async def whole(
    api: ApiClient, path: str, params: Mapping[str, str], pages: msgspec.json.Decoder[Page[T]]
) -> tuple[list[T], str]:
    """Everything under a path, and the version to watch from.

    Raises:
        Expired: the snapshot behind the pages was compacted away: begin again.
        ApiError: as ``ApiClient.request``.
        MsgspecError: what came is no such list.
    """
    items: list[T] = []
    token = ""
    while True:
        asked = {**params, "limit": str(_PAGE)}
        if token:
            asked["continue"] = token
        try:
            payload = await api.request("GET", path, params=asked, timeout_seconds=60.0)
        except ApiError as error:
            if error.status == _GONE:
                raise Expired from error
            raise
        page = pages.decode(payload)
        items += page.items
        token = page.metadata.continue_
        if not token:
            return items, page.metadata.resource_version


async def nodes_and_pods(access: Access) -> tuple[list[wire.Node], list[wire.Pod]]:
    """All nodes and pods of a cluster, each list as of one moment; needs the right to list both.

    Raises:
        ApiError: the API server refused, could not be reached, or answered something else.
    """
    api = ApiClient(access, connections=2)
    try:
        nodes = await _again(api, NODES, msgspec.json.Decoder(Page[wire.Node]))
        pods = await _again(api, PODS, msgspec.json.Decoder(Page[wire.Pod]))
    finally:
        await api.close()
    return nodes, pods


async def _again(api: ApiClient, path: str, pages: msgspec.json.Decoder[Page[T]]) -> list[T]:
    for _ in range(_TRIES):
        try:
            items, _version = await whole(api, path, {}, pages)
        except Expired:
            continue
        except msgspec.MsgspecError as error:
            raise ApiError(0, "Unreadable", f"GET {path}: {error}") from error
        else:
            return items
    raise ApiError(_GONE, "Expired", f"GET {path}: the list changed faster than it could be read")
