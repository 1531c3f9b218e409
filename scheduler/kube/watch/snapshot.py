"""One snapshot of all objects that affect placement, as plain objects, for simulations.

All kinds of the table are read: a rule that needs a kind finds it here as well as in the operator.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from scheduler.api import kinds
from scheduler.api.kind import Kind
from scheduler.errors import ApiError
from scheduler.kube import answers
from scheduler.kube.client import Access, ApiClient
from scheduler.kube.watch import listing

Json = dict[str, Any]
_NEEDED = (kinds.NODES, kinds.PODS)
_HELPFUL = tuple(kind for kind in kinds.TABLE if kind not in _NEEDED)
# It is long, and not read here.
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The objects of a cluster.

    Attributes:
        objects: the objects as ``kubectl get -o yaml`` prints them, without ``managedFields``.
        unlisted: kinds that cannot be listed, and why: the right is missing, or the API server does not serve them; and, by
            kind and namespace/name, ConfigMaps that cannot be read.
    """

    objects: list[Json] = field(default_factory=list)
    unlisted: dict[str, str] = field(default_factory=dict)


async def read_snapshot(access: Access, config_maps: Iterable[str] = ()) -> Snapshot:
    """Read each kind as of one moment. Needs the right to list nodes and pods; other kinds are read if they may be listed.

    ``config_maps``: the ConfigMaps that are read as well, as namespace/name.

    Raises:
        ApiError: nodes or pods are refused, or the API server could not be reached.
    """
    found = Snapshot()
    api = ApiClient(access, connections=4)
    try:
        for kind in _NEEDED:
            found.objects.extend(await _read_objects(api, kind))
        lists = await asyncio.gather(
            *(_read_objects(api, kind) for kind in _HELPFUL), return_exceptions=True
        )
        for key in config_maps:
            await _add_config_map(api, key, found)
    finally:
        await api.close()
    for kind, answer in zip(_HELPFUL, lists, strict=True):
        if not isinstance(answer, BaseException):
            found.objects.extend(answer)
        elif not isinstance(answer, ApiError) or not _is_unlisted(answer):
            raise answer
        elif not (kind.absent and answers.is_not_found(answer)):
            found.unlisted[kind.name] = f"{answer.status} {answer.reason}"
    return found


async def _add_config_map(api: ApiClient, key: str, found: Snapshot) -> None:
    kind = kinds.CONFIG_MAPS
    namespace, name = kinds.split_key(key)
    try:
        body = await api.get(kind.find_path(name, namespace))
    except ApiError as error:
        if not _is_unlisted(error):
            raise
        found.unlisted[f"{kind.name} {key}"] = f"{error.status} {error.reason}"
    else:
        found.objects.append({"apiVersion": kind.api_version, "kind": kind.name, **body})


def _is_unlisted(error: ApiError) -> bool:
    """Whether an answer says that this kind cannot be listed; others may still be."""
    return answers.is_forbidden(error) or answers.is_not_found(error)


async def _read_objects(api: ApiClient, kind: Kind) -> list[Json]:
    def read(raw: bytes | msgspec.Raw) -> Json:
        # Items of a list do not repeat their kind.
        body = {"apiVersion": kind.api_version, "kind": kind.name, **listing.read_plain(raw)}
        metadata = body.get("metadata")
        if isinstance(metadata, dict):
            metadata.pop("managedFields", None)
            annotations = metadata.get("annotations")
            if isinstance(annotations, dict):
                annotations.pop(_LAST_APPLIED, None)
        return body

    *newer, oldest = kind.list_versions()
    for version in newer:
        with contextlib.suppress(ApiError):
            return await listing.read_items(api, version.path, read)
    return await listing.read_items(api, oldest.path, read)
