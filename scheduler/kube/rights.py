"""Missing rights, as the API server reports them, so that they need not be guessed from 403s."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import msgspec
import structlog

from scheduler.api import names
from scheduler.errors import ApiError
from scheduler.kube.client import ApiClient

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
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
        """The right in words: ``create pods/binding at the cluster scope``."""
        what = "/".join(filter(None, (self.resource, self.subresource)))
        group = f".{self.group}" if self.group else ""
        named = f" {self.name}" if self.name else ""
        where = f"in namespace {self.namespace}" if self.namespace else "at the cluster scope"
        return f"{self.verb} {what}{group}{named} {where}"


def needed(reads: list[Right], lease_namespace: str, lease_name: str) -> list[Right]:
    """Every right without which something does not work.

    Args:
        reads: those that reading the cluster takes.
        lease_namespace: where the Lease is; empty without leader election.
        lease_name: its name.
    """
    rights = [
        *reads,
        Right("get", "", "pods"),
        Right("delete", "", "pods"),
        Right("get", "", "nodes"),
        Right("patch", "", "nodes"),
        Right("create", "", "pods", "binding"),
        Right("patch", "", "persistentvolumeclaims"),
        Right("patch", "", "persistentvolumes"),
        Right("patch", "", "pods", "status"),
        Right("create", "events.k8s.io", "events"),
        Right("get", names.GROUP, names.POLICIES),
        Right("patch", names.GROUP, names.POLICIES, "status"),
    ]
    if lease_namespace:
        leases = "coordination.k8s.io", "leases", "", lease_namespace
        rights += [Right(verb, *leases, lease_name) for verb in ("get", "update", "watch")]
        rights.append(Right("create", *leases))
    return rights


class Rights:
    """Asks at the start and again from time to time, so that a mended Role is noticed.

    Attributes:
        missing: the rights that the API server said no to; replaced as a whole.
    """

    def __init__(self, api: ApiClient, rights: list[Right]) -> None:
        self._api, self._rights = api, rights
        self.missing: tuple[str, ...] = ()

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            try:
                self._told(await self._ask())
            except (ApiError, msgspec.MsgspecError) as error:
                # Not every server knows the question. A missing right then shows when it is needed.
                _log.info("rights cannot be checked", error=str(error))
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _ask(self) -> tuple[str, ...]:
        answers = await asyncio.gather(*(self._has(right) for right in self._rights))
        return tuple(str(r) for r, has in zip(self._rights, answers, strict=True) if not has)

    async def _has(self, right: Right) -> bool:
        asked = {key: value for key, value in right._asdict().items() if value}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": asked},
        }
        answer = msgspec.json.decode(await self._api.send("POST", _REVIEWS, review))
        return bool(answer.get("status", {}).get("allowed"))

    def _told(self, missing: tuple[str, ...]) -> None:
        for right in missing:
            if right not in self.missing:
                _log.error("a right is missing", right=right)
        if self.missing and not missing:
            _log.info("no right is missing any more")
        self.missing = missing
