"""One bind, written until it is known what became of it.

``POST pods/{name}/binding`` with the pod's uid and version and, where cards were chosen, the device
annotations: the API server merges them in the transaction that sets the node, so a pod is never bound
without its cards.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from enum import Enum
from typing import Any

import msgspec
import structlog

from scheduler.api import kinds
from scheduler.api.door.decisions import Bind
from scheduler.devices import table as devices
from scheduler.errors import ApiError
from scheduler.kube import answers, client, pod_status, wall_clock
from scheduler.kube.bind.fence import Fence, Gate, Target, is_closed
from scheduler.kube.client import ApiClient
from scheduler.state.pods import PodRecord

_ATTEMPTS = 6
_log = structlog.get_logger("evenkeel.binding")


class Fate(Enum):
    """What became of a bind: it took effect, it was refused, the pod is gone or going, or it may be tried anew.

    Whichever it is, no try of it can land any more.
    """

    DONE = 1
    REFUSED = 2
    GONE = 3
    OPEN = 4


class Binding:
    """Carries decisions out, one pod each.

    Args:
        api: the API server.
        fence: makes tries impossible whose answers were lost.
        version: the version of a pod by its uid, as last seen; empty when the pod is gone.
    """

    def __init__(self, api: ApiClient, fence: Fence, version: Callable[[str], str]) -> None:
        self._api, self._fence, self._version = api, fence, version

    async def settle(
        self,
        bind: Bind,
        pod: PodRecord,
        *,
        obstacle: Callable[[], str],
        doubt: Callable[[], Gate],
    ) -> tuple[Fate, str]:
        """Write until the outcome is known; what became of the bind, and the last that was said of it.

        A write whose answer was lost may still take effect, even after a look at the pod says that it
        did not. So it is written again until the API server says yes, conflict or not found. When it
        says nothing of the kind, the pod is fenced: only then can no try land on cards that were given
        away meanwhile.

        Args:
            bind: the decision.
            pod: its pod.
            obstacle: asked before every write, the first included (taking a lock may have lasted longer
                than the lease): why nothing may be written any more, empty when nothing is in the way.
            doubt: called when the first write did not settle it; what it gives is entered for every
                request from then on.
        """
        gate: Gate = contextlib.nullcontext()
        # ``read``: the version as read here, ``at_large``: that of tries whose fate is not known.
        read = at_large = message = ""
        moved = False
        for attempt in range(_ATTEMPTS):
            if attempt and not moved:
                gate = doubt()
                await asyncio.sleep(client.backoff(attempt))
            moved = False
            try:
                async with gate:
                    # The version first: what is sent in a term carries what was known in that term.
                    version = read or self._version(bind.uid)
                    if reason := obstacle() or ("" if version else "the pod is gone"):
                        message = message or reason
                        break
                    await self._api.request(
                        "POST", f"{pod_status.path(pod)}/binding", body=_body(bind, pod, version)
                    )
            except ApiError as error:
                message = str(error)
                if answers.is_unknown(error):
                    at_large = version
                fate = _fate_after(error, unknown=bool(at_large))
                if answers.is_conflict(error):
                    found = await self._look(pod, doubt)
                    fate = _fate_of(found, bind)
                    read = found["metadata"]["resourceVersion"] if found else ""
                    moved = read != version
                    at_large = "" if read != at_large else at_large
                if fate != Fate.OPEN:
                    return fate, message
            else:
                return Fate.DONE, ""
        if not at_large:
            return Fate.OPEN, message
        return await self._seal(bind, pod, at_large, doubt), message

    async def ascertain(self, bind: Bind, pod: PodRecord, doubt: Callable[[], Gate]) -> Fate:
        """What became of a bind of which nobody knows whether it was sent; no try of it lands any more."""
        found = await self._look(pod, doubt)
        fate = _fate_of(found, bind)
        if found is None or fate != Fate.OPEN:
            return fate
        return await self._seal(bind, pod, found["metadata"]["resourceVersion"], doubt)

    async def _seal(
        self, bind: Bind, pod: PodRecord, version: str, doubt: Callable[[], Gate]
    ) -> Fate:
        def trouble(error: Exception) -> Gate:
            _log.warning(
                "a pod whose bind is in doubt cannot be fenced", pod=pod.key, error=str(error)
            )
            return doubt()

        target = Target(pod.namespace, pod.name, pod.uid, version)
        return _fate_of(await self._fence.seal(target, trouble), bind)

    async def _look(self, pod: PodRecord, doubt: Callable[[], Gate]) -> dict[str, Any] | None:
        """The pod as it is; None when it is gone. Asks until it is told: a guess could give cards away twice."""
        gate: Gate = contextlib.nullcontext()
        attempt = 0
        while True:
            try:
                async with gate:
                    found: dict[str, Any] = await self._api.get(pod_status.path(pod))
                    return found if found["metadata"]["uid"] == pod.uid else None
            except Exception as error:  # noqa: BLE001 - whatever keeps it from being told
                if answers.is_not_found(error):
                    return None
                _log.warning(
                    "a pod whose bind is in doubt cannot be read", pod=pod.key, error=str(error)
                )
                gate = doubt()
                attempt += 1
                await asyncio.sleep(client.backoff(attempt))


def _fate_after(error: ApiError, *, unknown: bool) -> Fate:
    """What a refusal says. After a lost answer one by a server that has just started tells nothing."""
    if answers.is_not_found(error):
        return Fate.GONE
    return Fate.OPEN if unknown or answers.is_transient(error) else Fate.REFUSED


def _fate_of(found: dict[str, Any] | None, bind: Bind) -> Fate:
    if found is None:
        return Fate.GONE
    if not is_closed(found):
        return Fate.OPEN
    node = found["spec"].get("nodeName")
    if not node:
        # It is being deleted: no bind of anybody can land, and nothing failed.
        return Fate.GONE
    notes = found["metadata"].get("annotations") or {}
    ours = node == bind.node and (
        not bind.slots or devices.get_card_driver(bind.driver).is_answered(notes, bind.slots)
    )
    return Fate.DONE if ours else Fate.REFUSED


def _body(bind: Bind, pod: PodRecord, version: str) -> bytes:
    metadata: dict[str, object] = {"name": pod.name, "uid": pod.uid, "resourceVersion": version}
    if bind.slots:
        now = int(wall_clock.now().timestamp())
        answer = devices.get_card_driver(bind.driver).write_answer(bind.node, bind.slots, now)
        metadata["annotations"] = answer.annotations
        if answer.labels:
            metadata["labels"] = answer.labels
    node = kinds.NODES
    target = {"apiVersion": node.api_version, "kind": node.name, "name": bind.node}
    return msgspec.json.encode({
        "apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target
    })  # fmt: skip
