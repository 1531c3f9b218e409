"""One bind, written until it is known what became of it.

``POST pods/{name}/binding`` with the pod's uid and, where HAMi serves the node, the device annotations:
the API server merges them in the transaction that sets the node, so a pod is never bound without its
cards.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from enum import Enum
from typing import Any

import msgspec
import structlog

from scheduler.api import hami, names
from scheduler.api.decisions import Bind
from scheduler.errors import ApiError
from scheduler.kube import client, wall_clock
from scheduler.kube.client import ApiClient
from scheduler.state.pods import PodRecord

Gate = contextlib.AbstractAsyncContextManager[None]

_NOT_FOUND, _CONFLICT = 404, 409
_ATTEMPTS = 6
# A write whose answer was lost may take effect that long after it was sent: as long as the lease leaves
# room for requests in flight.
LATE_SECONDS = 5.0
_log = structlog.get_logger("evenkeel.binding")


class Fate(Enum):
    """What became of a bind: it took effect, it never will, the pod is gone, or it still might."""

    DONE = 1
    REFUSED = 2
    GONE = 3
    OPEN = 4


async def settle(
    api: ApiClient,
    bind: Bind,
    pod: PodRecord,
    *,
    obstacle: Callable[[], str],
    doubt: Callable[[], Gate],
) -> tuple[Fate, str]:
    """Write until the outcome is known; what became of the bind, and the last that was said of it.

    A write whose answer was lost may still take effect, even after a look at the pod says that it
    did not. So it is written again, the same, until the API server says yes, conflict or not found.
    When it says nothing of the kind, the pod is looked at once no try can be on its way any more: only
    then can none land on cards that were given away meanwhile.

    Args:
        api: the API server.
        bind: the decision.
        pod: its pod.
        obstacle: asked before every write, the first included (taking a lock may have lasted longer
            than the lease): why nothing may be written any more, empty when nothing is in the way.
        doubt: called when the first write did not settle it; what it gives is entered for every
            request from then on.

    Returns:
        ``OPEN`` when it was given up and no try is on its way.
    """
    clock = asyncio.get_running_loop().time
    path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
    body = _body(bind, pod)
    gate: Gate = contextlib.nullcontext()
    late_until, message = 0.0, ""
    for attempt in range(_ATTEMPTS):
        if attempt:
            gate = doubt()
            await asyncio.sleep(client.backoff(attempt))
        try:
            async with gate:
                if reason := obstacle():
                    message = message or reason
                    break
                await api.request("POST", f"{path}/binding", body=body)
        except ApiError as error:
            message = str(error)
            if client.is_unknown(error):
                late_until = clock() + LATE_SECONDS
            fate = _fate_after(error, unknown=late_until > 0)
            if error.status == _CONFLICT:
                fate = await _fate(api, path, bind, doubt)
            if fate != Fate.OPEN:
                return fate, message
        else:
            return Fate.DONE, ""
    if not late_until:
        return Fate.OPEN, message
    return await _fate(api, path, bind, doubt, late_until), message


def _fate_after(error: ApiError, *, unknown: bool) -> Fate:
    """What a refusal says. After a lost answer one by a server that has just started tells nothing."""
    if error.status == _NOT_FOUND:
        return Fate.GONE
    return Fate.OPEN if unknown or client.is_transient(error) else Fate.REFUSED


async def _fate(
    api: ApiClient, path: str, bind: Bind, doubt: Callable[[], Gate], until: float = 0.0
) -> Fate:
    """What became of the pod meanwhile. Asks until it is told: a guess could give cards away twice.

    As long as a try may be on its way, until loop time ``until``, a pod without a node tells nothing.
    """
    clock = asyncio.get_running_loop().time
    gate: Gate = contextlib.nullcontext()
    attempt = 0
    while True:
        is_final = clock() >= until
        try:
            async with gate:
                fate = _fate_of(await api.get(path), bind)
        except (ApiError, KeyError, TypeError) as error:
            if isinstance(error, ApiError) and error.status == _NOT_FOUND:
                return Fate.GONE
            _log.warning("a pod in doubt cannot be read", path=path, error=str(error))
            gate = doubt()
            attempt += 1
            await asyncio.sleep(client.backoff(attempt))
            continue
        if fate != Fate.OPEN or is_final:
            return fate
        await asyncio.sleep(max(0.0, until - clock()))


def _fate_of(found: dict[str, Any], bind: Bind) -> Fate:
    metadata, node = found["metadata"], found["spec"].get("nodeName")
    if metadata["uid"] != bind.uid:
        return Fate.GONE
    if not node:
        # A pod that is being deleted is bound no more.
        return Fate.REFUSED if metadata.get("deletionTimestamp") else Fate.OPEN
    written = (metadata.get("annotations") or {}).get(names.HAMI_ALLOCATED)
    ours = node == bind.node and (not bind.slots or written == hami.encode_devices(bind.slots))
    return Fate.DONE if ours else Fate.REFUSED


def _body(bind: Bind, pod: PodRecord) -> bytes:
    metadata: dict[str, object] = {"name": pod.name, "uid": pod.uid}
    if bind.slots:
        now = int(wall_clock.now().timestamp())
        metadata["annotations"] = hami.bind_annotations(bind.node, bind.slots, now)
        if len(bind.node) <= names.LABEL_VALUE_MAX:
            metadata["labels"] = {names.HAMI_NODE: bind.node}
    target = {"apiVersion": "v1", "kind": "Node", "name": bind.node}
    return msgspec.json.encode({
        "apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target
    })  # fmt: skip
