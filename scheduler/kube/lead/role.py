"""A label on the pods of the replicas that says which of them decides, for Services that select it.

It is written by the status of the pod, as a fence is, so it takes no right that Evenkeel does not have anyway.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from enum import StrEnum

import structlog

from scheduler.api import kinds
from scheduler.errors import ApiError
from scheduler.kube import client
from scheduler.kube.client import ApiClient

_TURN_SECONDS = 0.5
# By these labels the pods of one installation are found.
_OF_INSTALLATION = "app.kubernetes.io/name", "app.kubernetes.io/instance"
_log = structlog.get_logger("evenkeel.lease")


class Role(StrEnum):
    """What a replica is; the words are values of the label."""

    LEADER = "leader"
    FOLLOWER = "follower"


class RoleLabel:
    """Keeps the label of this replica's own pod, and takes the leader's label from pods of leaders that died.

    Args:
        api: the API server.
        key: the key of the label.
        pod: namespace and name of the pod in which this replica runs.
        is_leading: whether this replica decides right now.
    """

    def __init__(
        self, api: ApiClient, key: str, pod: tuple[str, str], is_leading: Callable[[], bool]
    ) -> None:
        self._api, self._key, self._is_leading = api, key, is_leading
        self._namespace, self._name = pod
        # What was written last; None while that is unknown.
        self._written: Role | None = None
        # Whether no other pod of this installation has the label of a leader, and its labels.
        self._is_alone = False
        self._own: dict[str, str] = {}

    async def run(self) -> None:
        """Write what has changed, until cancelled; what fails is tried again."""
        n_failed = 0
        while True:
            try:
                await self._follow()
                n_failed = 0
            except ApiError as error:
                if not n_failed:
                    _log.warning("the role of a replica is not written yet", error=error.message)
                n_failed += 1
                await asyncio.sleep(client.get_backoff(n_failed))
            await asyncio.sleep(_TURN_SECONDS)

    async def step_down(self) -> None:
        """Write once that this replica does not lead; the next leader does it if this fails."""
        try:
            await self._write(self._name, Role.FOLLOWER)
        except ApiError as error:
            _log.info("the role of this replica is left to the next leader", error=error.message)

    async def _follow(self) -> None:
        role = Role.LEADER if self._is_leading() else Role.FOLLOWER
        if role != self._written:
            # Unknown until the answer: a patch without one may have taken effect.
            self._written = None
            labels = await self._write(self._name, role)
            self._written, self._is_alone = role, role == Role.FOLLOWER
            self._own = {key: labels[key] for key in _OF_INSTALLATION if key in labels}
        if not self._is_alone:
            await self._relabel_others()
            self._is_alone = True

    async def _relabel_others(self) -> None:
        """Take the label from pods of this installation whose replica died, or lost the lease, as leader."""
        if not self._own:
            return
        wanted = {**self._own, self._key: Role.LEADER}
        selector = ",".join(f"{key}={value}" for key, value in wanted.items())
        path = kinds.PODS.find_list_path(self._namespace)
        found = await self._api.get(path, {"labelSelector": selector})
        for one in found["items"]:
            name = one["metadata"]["name"]
            if name != self._name and self._is_leading():
                await self._write(name, Role.FOLLOWER)

    async def _write(self, name: str, role: Role) -> Mapping[str, str]:
        """Write the label of a pod, and return all its labels."""
        path = f"{kinds.PODS.find_path(name, self._namespace)}/status"
        body = {"metadata": {"labels": {self._key: role}}}
        payload = await self._api.send("PATCH", path, body, content_type=client.MERGE_PATCH)
        labels: Mapping[str, str] = json.loads(payload)["metadata"].get("labels") or {}
        return labels
