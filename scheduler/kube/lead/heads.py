"""Versions of pods: which pods a new leader must have received, and which it must fence.

A standby has watched all the time, so it knows the newest state of nearly every pod already. Another list of the pods
would be hundreds of megabytes to read before the first decision, if a tenant has put as much into them. So only their
metadata is listed; the watch delivers the rest a moment later.
"""

from __future__ import annotations

import asyncio

import msgspec
import structlog

from scheduler.api import kinds
from scheduler.engine.engine import Engine
from scheduler.engine.questions.pods import KnownPod, KnownPods, PodVersion
from scheduler.errors import ApiError
from scheduler.kube import client
from scheduler.kube.bind.fence import Target
from scheduler.kube.client import ApiClient
from scheduler.kube.patience import Patience
from scheduler.kube.watch import listing, sources
from scheduler.kube.watch.listing import Expired

# A server that does not know this form sends whole pods, which contain all that is read.
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
# How long to wait for a page of metadata at first, and the longest wait after a list that failed: nothing is decided
# meanwhile.
_PATIENCE_SECONDS, _BACKOFF_SECONDS = 1.0, 1.0
_log = structlog.get_logger("evenkeel.heads")


class _HeadMeta(msgspec.Struct, rename="camel"):
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None


class _Head(msgspec.Struct):
    metadata: _HeadMeta


_heads = msgspec.json.Decoder(_Head)


class Heads:
    """Compares the versions of the API server with those that are known here.

    Args:
        api: the API server.
        schedulers: the scheduler names of this process.
        engine: knows the pods that this replica has received.
    """

    def __init__(self, api: ApiClient, schedulers: tuple[str, ...], engine: Engine) -> None:
        self._api, self._schedulers, self._engine = api, schedulers, engine
        self._patience = Patience(_PATIENCE_SECONDS)
        # Pods that have been known at any time since the last list was requested.
        self._known: set[str] = set()

    async def list_unbound(self) -> list[Target]:
        """List our pods that a bind could land on: the API server binds no pod that is being deleted or is gated.

        No gate can be added to a pod that has none, so no bind was ever sent for a pod that still has one.
        """
        return [
            _make_target(pod)
            for name in self._schedulers
            for pod in await self._list_pods(f"spec.nodeName=,spec.schedulerName={name}")
            if not (pod.deletion_timestamp or self._is_gated(pod))
        ]

    def has_changed(self, pod: Target) -> bool:
        """Whether a newer version of a pod is known here."""
        return _is_newer(self._engine.ask(PodVersion(pod.uid)), pod.version)

    def is_changed_placed_or_gone(self, pod: Target) -> bool:
        """Whether ``has_changed`` holds, or a node is chosen for the pod here, or the pod is known to be gone."""
        known = self._engine.ask(KnownPod(pod.uid))
        return known is None or bool(known.node) or self.has_changed(pod)

    def requests_devices(self, pod: Target) -> bool:
        """Whether a pod requests devices; true for a pod that is not known here."""
        known = self._engine.ask(KnownPod(pod.uid))
        return known is None or known.template.gpu is not None

    async def list_newer(self) -> list[Target]:
        """List the pods with a node, ours or not, that are newer at the API server than here."""
        self._known = set(self._engine.ask(KnownPods()))
        pods = [_make_target(pod) for pod in await self._list_pods("spec.nodeName!=")]
        return self.keep_newer(pods)

    def keep_newer(self, pods: list[Target]) -> list[Target]:
        """Keep the pods of the last list that are neither known at that version or a newer one nor gone since."""
        known = self._engine.ask(KnownPods())
        self._known.update(pod.uid for pod in pods if pod.uid in known)
        return [pod for pod in pods if not self._is_known(pod)]

    def _is_known(self, pod: Target) -> bool:
        known = self._engine.ask(PodVersion(pod.uid))
        if not known:
            return pod.uid in self._known
        return known == pod.version or _is_newer(known, pod.version)

    def _is_gated(self, pod: _HeadMeta) -> bool:
        known = self._engine.ask(KnownPod(pod.uid))
        return known is not None and known.gated and known.version == pod.resource_version

    async def _list_pods(self, selector: str) -> list[_HeadMeta]:
        """List pods; try until that succeeds, because no replica can lead without."""
        params = {"fieldSelector": f"{selector},{sources.UNFINISHED}"}
        attempt = 0
        while True:
            try:
                found, _ = await listing.read_list(
                    self._api,
                    kinds.PODS.path,
                    params,
                    _heads.decode,
                    accept=_METADATA,
                    patience=self._patience,
                )
            except (ApiError, Expired, msgspec.MsgspecError) as error:
                wait = client.get_backoff(attempt, first=0.1, most=_BACKOFF_SECONDS)
                attempt += 1
                _log.warning("pods cannot be listed", error=str(error), retry_seconds=wait)
                await asyncio.sleep(wait)
            else:
                return [one.metadata for one in found]


def _make_target(pod: _HeadMeta) -> Target:
    return Target(pod.namespace, pod.name, pod.uid, pod.resource_version)


def _is_newer(one: str, other: str) -> bool:
    """Whether one version is newer than another. Versions of one kind are compared as numbers (KEP-5504)."""
    return one.isdecimal() and other.isdecimal() and int(one) > int(other)
