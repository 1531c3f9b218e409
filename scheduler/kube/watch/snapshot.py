"""All that decides where pods go, once, as plain objects: for who asks what would happen."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import msgspec

from scheduler.errors import ApiError
from scheduler.kube import answers
from scheduler.kube.client import Access, ApiClient
from scheduler.kube.watch import kinds, listing
from scheduler.kube.watch.kinds import Kind

Json = dict[str, Any]
_NEEDED = {"Node": kinds.NODES, "Pod": kinds.PODS}
_HELPFUL = {
    "Namespace": kinds.NAMESPACES,
    "PriorityClass": kinds.PRIORITY_CLASSES,
    "BalancePolicy": kinds.POLICIES,
    "LimitRange": kinds.LIMIT_RANGES,
    "Service": kinds.SERVICES,
    "ReplicationController": kinds.REPLICATION_CONTROLLERS,
    "ReplicaSet": kinds.REPLICA_SETS,
    "StatefulSet": kinds.STATEFUL_SETS,
    "Deployment": kinds.DEPLOYMENTS,
    "DaemonSet": kinds.DAEMON_SETS,
    "Job": kinds.JOBS,
    "CronJob": kinds.CRON_JOBS,
    **kinds.STORAGE,
}
# Long, and nobody reads them here.
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a cluster has.

    Attributes:
        objects: as ``kubectl get -o yaml`` prints them, without ``managedFields``.
        unlisted: kinds that may not be listed, and why. A kind that is not served has no objects.
    """

    objects: list[Json] = field(default_factory=list)
    unlisted: dict[str, str] = field(default_factory=dict)


async def of_cluster(access: Access) -> Snapshot:
    """Each kind as of one moment. Needs the right to list nodes and pods, and takes what else it may.

    Raises:
        ApiError: nodes or pods are refused, or the API server could not be reached.
    """
    found = Snapshot()
    api = ApiClient(access, connections=4)
    try:
        for kind, served in _NEEDED.items():
            found.objects.extend(await _objects(api, kind, served))
        lists = await asyncio.gather(
            *(_objects(api, kind, served) for kind, served in _HELPFUL.items()),
            return_exceptions=True,
        )
    finally:
        await api.close()
    for kind, answer in zip(_HELPFUL, lists, strict=True):
        if not isinstance(answer, BaseException):
            found.objects.extend(answer)
        elif isinstance(answer, ApiError) and answers.is_forbidden(answer):
            found.unlisted[kind] = f"{answer.status} {answer.reason}"
        elif not (isinstance(answer, ApiError) and answers.is_not_found(answer)):
            raise answer
    return found


async def _objects(api: ApiClient, kind: str, served: Kind) -> list[Json]:
    version = f"{served.group}/{served.version}" if served.group else served.version

    def read(raw: bytes | msgspec.Raw) -> Json:
        # Items of a list do not repeat what they are.
        body = {"apiVersion": version, "kind": kind, **listing.read_plain(raw)}
        metadata = body.get("metadata")
        if isinstance(metadata, dict):
            metadata.pop("managedFields", None)
            annotations = metadata.get("annotations")
            if isinstance(annotations, dict):
                annotations.pop(_LAST_APPLIED, None)
        return body

    return await listing.once(api, served.path, read)
