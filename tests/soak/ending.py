"""What must hold when all is calm: every pod runs or has no room, no lock is left, and nothing is under way."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from scheduler.embedded.agents.apiclient import CallError, Client
from tests.operator.manifests import pod
from tests.operator.servers import Server
from tests.soak.watching import Watch

Json = dict[str, Any]
_PODS = "/api/v1/namespaces/default/pods"
_DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
# Pods that a silent plugin kept from their turn wait for a minute or two before they try again.
CALM_SECONDS, _QUIET_SECONDS, _KNOCK_SECONDS, _AGAIN_SECONDS = 240.0, 12.0, 120.0, 150.0


async def become_calm(watch: Watch) -> None:
    """Wait until no pod has changed for a while and none is starting, or for as long as that may take."""
    gives_up_at = time.monotonic() + CALM_SECONDS
    while time.monotonic() < gives_up_at:
        await asyncio.sleep(1.0)
        is_quiet = time.monotonic() - watch.changed_at > _QUIET_SECONDS
        if is_quiet and not watch.list_starting() and not _list_untold(watch):
            return


def _list_untold(watch: Watch) -> list[Json]:
    return [one for one in watch.list_waiting() if not _read_reason(one)]


def _read_reason(one: Json) -> str:
    """Why a pod waits, by its condition; empty if it does not say so."""
    for condition in (one.get("status") or {}).get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("message") or condition.get("reason") or "")
    return ""


async def check(server: Server, client: Client, watch: Watch, config: Path) -> list[str]:
    """All that is wrong in a calm cluster."""
    wrongs = [f"{_name(one)} is on {one['spec']['nodeName']} and does not start" for one in watch.list_starting()]  # fmt: skip
    wrongs += [f"{_name(one)} waits and does not say why" for one in _list_untold(watch)]
    wrongs += [
        f"{_name(one)} is on {one['spec']['nodeName']}, which is gone"
        for one in watch.pods.values()
        if one["spec"].get("nodeName") and one["spec"]["nodeName"] not in watch.nodes
    ]
    wrongs += await _find_room(server, watch, config)
    wrongs += await _find_locks(client, watch)
    for node in watch.nodes:
        wrongs += watch.ledger.list_problems(node)
    return wrongs


def _name(one: Json) -> str:
    return str(one["metadata"]["name"])


async def _find_room(server: Server, watch: Watch, config: Path) -> list[str]:
    """Pods that wait although a scheduler that begins anew would place them."""
    waiting = {_name(one) for one in watch.list_waiting()}
    command = [sys.executable, "-m", "scheduler", "simulate", "-o", "json", "--config", str(config)]
    # An admin asks, who may read all kinds.
    assert server.plane is not None
    command += ["--kubeconfig", str(server.plane.kubeconfig())]
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, check=False
    )
    if not done.stdout:
        return [f"simulate failed: {done.stderr[-2000:]}"]
    room = {
        one["name"]: one["node"]
        for one in json.loads(done.stdout)["pods"]
        if one["node"] and one["name"] in waiting
    }
    # A pod that a lock or a silent plugin kept from its turn tries again within a bounded time.
    gives_up_at = time.monotonic() + _AGAIN_SECONDS
    left = {_name(one): one for one in watch.list_waiting()}
    while room.keys() & left.keys() and time.monotonic() < gives_up_at:
        await asyncio.sleep(1.0)
        left = {_name(one): one for one in watch.list_waiting()}
    return [
        f"{name} waits, and there is room on {room[name]}: {_read_reason(left[name])}"
        for name in sorted(room.keys() & left.keys())
    ]


async def _find_locks(client: Client, watch: Watch) -> list[str]:
    """Locks that are left: of pods that are there none, and those of pods that are gone go when the next pod comes."""
    there = {_name(one) for one in watch.pods.values()}
    held = [
        f"{node} has the lock {text} of a pod that is there"
        for node, locks in watch.list_locked().items()
        for text in locks.values()
        if text.rpartition(",")[2] in there
    ]
    await _delete_all(client, watch)
    for node in watch.list_locked():
        limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 100}
        place = {"kubernetes.io/hostname": node}
        await client.post(_PODS, pod(f"knock-{node}", limits=limits, nodeSelector=place))
    gives_up_at = time.monotonic() + _KNOCK_SECONDS
    while watch.list_locked() and time.monotonic() < gives_up_at:
        await asyncio.sleep(0.5)
    left = watch.list_locked()
    return [*held, *(f"{node} stays locked: {locks}" for node, locks in left.items())]


async def _delete_all(client: Client, watch: Watch) -> None:
    for one in [*(await client.get(_DEPLOYMENTS))["items"]]:
        await client.delete(f"{_DEPLOYMENTS}/{_name(one)}")
    while watch.pods:
        for one in list(watch.pods.values()):
            with suppress(CallError):
                await client.delete(f"{_PODS}/{_name(one)}", {"gracePeriodSeconds": 0})
        await asyncio.sleep(0.5)
