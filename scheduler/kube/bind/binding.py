"""Writes one bind until it is known what became of it.

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
from scheduler.devices import answers as marks
from scheduler.devices.answers import Drivers
from scheduler.devices.table import CARD_DRIVERS
from scheduler.errors import ApiError
from scheduler.kube import answers, client, pod_status, wall_clock
from scheduler.kube.bind.fence import Fence, Gate, Target, is_closed
from scheduler.kube.client import ApiClient
from scheduler.state.pods import PodRecord

_ATTEMPTS = 6
_log = structlog.get_logger("evenkeel.binding")


class Fate(Enum):
    """What became of a bind: it took effect, it was refused, the pod is gone or going, or it may be tried anew.

    In each case, no try of the bind can land any more.
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
        get_version: gives the version of a pod by its uid, as last seen; empty when the pod is gone.
        get_drivers: gives the drivers of cards by name.
    """

    def __init__(
        self,
        api: ApiClient,
        fence: Fence,
        get_version: Callable[[str], str],
        get_drivers: Callable[[], Drivers] = lambda: CARD_DRIVERS,
    ) -> None:
        self._api, self._fence, self._get_version = api, fence, get_version
        self._get_drivers = get_drivers

    async def settle_bind(
        self,
        bind: Bind,
        pod: PodRecord,
        *,
        find_obstacle: Callable[[], str],
        note_doubt: Callable[[], Gate],
        since: str = "",
    ) -> tuple[Fate, str]:
        """Write until the outcome is known; return what became of the bind, and the last message about it.

        A write whose answer was lost may still take effect, even after a look at the pod says that it
        did not. So it is written again until the API server says yes, conflict or not found. If it
        says none of these, the pod is fenced: only then can no try land on cards that were allocated
        to others meanwhile.

        Args:
            bind: the decision.
            pod: its pod.
            find_obstacle: called before every write, the first included (taking a lock may have lasted longer
                than the lease); says why nothing may be written any more, empty if nothing is in the way.
            note_doubt: called when the first write did not settle the bind; what it returns is entered for
                every request from then on.
            since: the version of the pod that a step has written; empty for none. The watch may not have it yet.
        """
        gate: Gate = contextlib.nullcontext()
        # ``version_in_doubt``: the version of tries whose fate is not known.
        version_read = version_in_doubt = message = ""
        has_changed = False
        for attempt in range(_ATTEMPTS):
            if attempt and not has_changed:
                gate = note_doubt()
                await asyncio.sleep(client.get_backoff(attempt))
            has_changed = False
            try:
                async with gate:
                    # The version first: what is sent in a term carries what was known in that term.
                    version = version_read or _choose_newer(self._get_version(bind.uid), since)
                    if reason := find_obstacle() or ("" if version else "the pod is gone"):
                        message = message or reason
                        break
                    await self._api.request(
                        "POST",
                        f"{pod_status.get_path(pod)}/binding",
                        body=_make_body(bind, pod, version, self._get_drivers()),
                    )
            except ApiError as error:
                message = str(error)
                if answers.is_unknown(error):
                    version_in_doubt = version
                fate = _get_fate_after(error, is_unknown=bool(version_in_doubt))
                if answers.is_conflict(error):
                    found = await self._read_pod(pod, note_doubt)
                    fate = _get_fate(found, bind, self._get_drivers())
                    version_read = found["metadata"]["resourceVersion"] if found else ""
                    has_changed = version_read != version
                    version_in_doubt = "" if version_read != version_in_doubt else version_in_doubt
                if fate != Fate.OPEN:
                    return fate, message
            else:
                return Fate.DONE, ""
        if not version_in_doubt:
            return Fate.OPEN, message
        return await self._seal_pod(bind, pod, version_in_doubt, note_doubt), message

    async def ascertain_fate(
        self, bind: Bind, pod: PodRecord, note_doubt: Callable[[], Gate]
    ) -> Fate:
        """Find out what became of a bind that may have been sent; after that, no try of it lands any more."""
        found = await self._read_pod(pod, note_doubt)
        fate = _get_fate(found, bind, self._get_drivers())
        if found is None or fate != Fate.OPEN:
            return fate
        return await self._seal_pod(bind, pod, found["metadata"]["resourceVersion"], note_doubt)

    async def _seal_pod(
        self, bind: Bind, pod: PodRecord, version: str, note_doubt: Callable[[], Gate]
    ) -> Fate:
        def note_trouble(error: Exception) -> Gate:
            _log.warning(
                "a pod whose bind is in doubt cannot be fenced", pod=pod.key, error=str(error)
            )
            return note_doubt()

        target = Target(pod.namespace, pod.name, pod.uid, version)
        found = await self._fence.seal_pod(target, note_trouble)
        return _get_fate(found, bind, self._get_drivers())

    async def _read_pod(
        self, pod: PodRecord, note_doubt: Callable[[], Gate]
    ) -> dict[str, Any] | None:
        """Read the pod until there is an answer; None if the pod is gone. A guess could allocate cards twice."""
        gate: Gate = contextlib.nullcontext()
        attempt = 0
        while True:
            try:
                async with gate:
                    found: dict[str, Any] = await self._api.get(pod_status.get_path(pod))
                    return found if found["metadata"]["uid"] == pod.uid else None
            except Exception as error:  # noqa: BLE001 - whatever keeps it from being read
                if answers.is_not_found(error):
                    return None
                _log.warning(
                    "a pod whose bind is in doubt cannot be read", pod=pod.key, error=str(error)
                )
                gate = note_doubt()
                attempt += 1
                await asyncio.sleep(client.get_backoff(attempt))


def _choose_newer(seen: str, written: str) -> str:
    """Choose the newer of two versions of a pod, which are numbers that rise; none if the pod is gone."""
    if seen.isdecimal() and written.isdecimal():
        return str(max(int(seen), int(written)))
    return seen


def _get_fate_after(error: ApiError, *, is_unknown: bool) -> Fate:
    """Return what a refusal says about the bind; after a lost answer, a server that has just started refuses for other reasons."""
    if answers.is_not_found(error):
        return Fate.GONE
    return Fate.OPEN if is_unknown or answers.is_transient(error) else Fate.REFUSED


def _get_fate(found: dict[str, Any] | None, bind: Bind, drivers: Drivers) -> Fate:
    if found is None:
        return Fate.GONE
    if not is_closed(found):
        return Fate.OPEN
    node = found["spec"].get("nodeName")
    if not node:
        # It is being deleted: no bind can land, and nothing failed.
        return Fate.GONE
    notes = found["metadata"].get("annotations") or {}
    is_ours = node == bind.node and marks.are_answered(drivers, notes, bind.devices)
    return Fate.DONE if is_ours else Fate.REFUSED


def _make_body(bind: Bind, pod: PodRecord, version: str, drivers: Drivers) -> bytes:
    metadata: dict[str, object] = {"name": pod.name, "uid": pod.uid, "resourceVersion": version}
    if bind.devices:
        now = int(wall_clock.now().timestamp())
        answer = marks.write_answers(drivers, bind.node, bind.devices, now)
        # A Binding cannot remove an annotation; an empty one means the same as none to those who read it.
        metadata["annotations"] = dict.fromkeys(pod.left_notes, "") | answer.annotations
        if answer.labels:
            metadata["labels"] = answer.labels
    node = kinds.NODES
    target = {"apiVersion": node.api_version, "kind": node.name, "name": bind.node}
    return msgspec.json.encode({
        "apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target
    })  # fmt: skip
