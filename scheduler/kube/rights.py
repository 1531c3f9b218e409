"""Missing rights, as the API server reports them, so that they need not be guessed from 403s."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import structlog

from scheduler.api import kinds, names
from scheduler.api.admission.settings import Served
from scheduler.api.jobs import table as jobs
from scheduler.api.kind import Kind
from scheduler.errors import ApiError
from scheduler.kube.client import ApiClient

_AGAIN_SECONDS = 60.0
_log = structlog.get_logger("evenkeel.rights")


class Right(NamedTuple):
    """A verb on a resource, as RBAC names them; ``namespace`` is empty for all of the cluster."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        """Return the right in words: ``create pods/binding at the cluster scope``."""
        what = "/".join(filter(None, (self.resource, self.subresource)))
        group = f".{self.group}" if self.group else ""
        named = f" {self.name}" if self.name else ""
        where = f"in namespace {self.namespace}" if self.namespace else "at the cluster scope"
        return f"{self.verb} {what}{group}{named} {where}"


def list_needed(
    lease_namespace: str,
    lease_name: str,
    *,
    kueue_namespace: str = "",
    with_kai: bool = False,
    webhook: Served | None = None,
    config_maps: Iterable[str] = (),
    publishes_parts: bool = False,
) -> list[Right]:
    """List every right that Evenkeel needs.

    Args:
        lease_namespace: the namespace of the Lease; empty without leader election.
        lease_name: the name of the Lease.
        kueue_namespace: the namespace in which Kueue may run; empty: its queues are not managed.
        with_kai: whether KAI's queues are managed.
        webhook: the webhook that is served; None for none.
        config_maps: the ConfigMaps that are read, as namespace/name.
        publishes_parts: whether nodes get what their cards have together as resources.
    """
    rights = [
        *(_make_right(verb, kind) for kind in kinds.WATCHED for verb in ("list", "watch")),
        _make_right("get", kinds.PODS),
        _make_right("delete", kinds.PODS),
        _make_right("get", kinds.NODES),
        _make_right("patch", kinds.NODES),
        _make_right("create", kinds.PODS, "binding"),
        _make_right("create", kinds.PODS, "eviction"),
        _make_right("patch", kinds.CLAIMS),
        _make_right("patch", kinds.VOLUMES),
        *(_make_right(verb, kinds.RESOURCE_CLAIMS) for verb in ("get", "create", "delete")),
        *(_make_right("patch", kinds.RESOURCE_CLAIMS, part) for part in ("", "status", "binding")),
        _make_right("patch", kinds.PODS, "status"),
        _make_right("create", kinds.EVENTS),
        _make_right("patch", kinds.POD_GROUPS, "status"),
        _make_right("get", kinds.POLICIES),
        _make_right("patch", kinds.POLICIES, "status"),
    ]
    if kueue_namespace:
        rights += _list_of_queues(kueue_namespace)
    if webhook is not None and not webhook.settings.certificates:
        rights += _list_of_webhook(webhook)
    if with_kai:
        rights += [_make_right(verb, kind) for kind in kinds.OF_KAI for verb in ("list", "watch")]
        rights += [_make_right("patch", kinds.KAI_QUEUES, part) for part in ("status", "")]
    maps = kinds.CONFIG_MAPS.group, kinds.CONFIG_MAPS.plural, ""
    for key in config_maps:
        rights += [Right(verb, *maps, *kinds.split_key(key)) for verb in ("list", "watch")]
    if publishes_parts:
        rights.append(_make_right("patch", kinds.NODES, "status"))
    if lease_namespace:
        leases = kinds.LEASES.group, kinds.LEASES.plural, "", lease_namespace
        rights += [Right(verb, *leases, lease_name) for verb in ("get", "update", "watch")]
        rights.append(Right("create", *leases))
    return rights


def _list_of_queues(kueue_namespace: str) -> list[Right]:
    """List what else is needed where queues are managed."""
    written = kinds.WORKLOADS, kinds.CLUSTER_QUEUES, kinds.LOCAL_QUEUES, kinds.COHORTS
    # Kueue's finalizer keeps them while they are used.
    kept = kinds.KUEUE_TOPOLOGIES, kinds.FLAVORS, kinds.CLUSTER_QUEUES, kinds.ADMISSION_CHECKS
    leases = kinds.LEASES.group, kinds.LEASES.plural, "", kueue_namespace
    return [
        *(_make_right(verb, kind) for kind in kinds.OF_QUEUES for verb in ("list", "watch")),
        *(_make_right(verb, kinds.WORKLOADS) for verb in ("get", "create", "patch", "delete")),
        *(_make_right("patch", kind, "status") for kind in written),
        *(_make_right("patch", kind) for kind in kept),
        *(_make_right(verb, one.kind) for one in jobs.TABLE for verb in ("get", "patch")),
        _make_right("patch", kinds.JOBS, "status"),
        _make_right("patch", kinds.PODS),
        _make_right("list", kinds.PRIORITY_CLASSES),
        Right("get", *leases, names.KUEUE_LEASE),
    ]


def _list_of_webhook(webhook: Served) -> list[Right]:
    """List what else is needed where the webhook has its certificate from Evenkeel itself."""
    secrets = kinds.SECRETS.group, kinds.SECRETS.plural, "", webhook.settings.namespace
    return [
        *(Right(verb, *secrets, webhook.settings.name) for verb in ("get", "update")),
        *(
            Right(verb, kind.group, kind.plural, name=name)
            for kind, name in webhook.list_configurations()
            for verb in ("get", "patch")
        ),
    ]


def _make_right(verb: str, kind: Kind, subresource: str = "") -> Right:
    return Right(verb, kind.group, kind.plural, subresource)


class Rights:
    """Checks rights at the start and again from time to time, so that a corrected Role is noticed.

    Attributes:
        missing: the rights that the API server denies; replaced as a whole.
    """

    def __init__(self, api: ApiClient, rights: list[Right]) -> None:
        self._api, self._rights = api, rights
        self.missing: tuple[str, ...] = ()

    async def run(self) -> None:
        """Check until cancelled."""
        while True:
            try:
                self._note_missing(await self._list_missing())
            except (ApiError, msgspec.MsgspecError) as error:
                # Not every server can answer this. A missing right then shows when it is needed.
                _log.info("rights cannot be checked", error=str(error))
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _list_missing(self) -> tuple[str, ...]:
        answers = await asyncio.gather(*(self._has_right(right) for right in self._rights))
        return tuple(str(r) for r, has in zip(self._rights, answers, strict=True) if not has)

    async def _has_right(self, right: Right) -> bool:
        attributes = {key: value for key, value in right._asdict().items() if value}
        review = {
            "apiVersion": kinds.REVIEWS.api_version,
            "kind": kinds.REVIEWS.name,
            "spec": {"resourceAttributes": attributes},
        }
        answer = msgspec.json.decode(await self._api.send("POST", kinds.REVIEWS.path, review))
        return bool(answer.get("status", {}).get("allowed"))

    def _note_missing(self, missing: tuple[str, ...]) -> None:
        for right in missing:
            if right not in self.missing:
                _log.error("a right is missing", right=right)
        if self.missing and not missing:
            _log.info("no right is missing any more")
        self.missing = missing
