"""Statuses of RebalancePolicies: read before a plan, and written before and after each move.

A status is written only if nobody has written the policy since it was read: a process that led until a moment ago must not
take the moves of the next leader out of it, nor begin a move that it does not know of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from scheduler.api import times, values
from scheduler.api.limits import shorten
from scheduler.api.rebalancing.policy import REBALANCE_POLICIES
from scheduler.api.steering import RebalancePolicy
from scheduler.errors import ApiError
from scheduler.kube import client, wall_clock
from scheduler.kube.client import ApiClient
from scheduler.rebalance import budgets
from scheduler.rebalance.budgets import PastMove

Json = dict[str, Any]
_MESSAGE_MAX = 1024


class Reason(StrEnum):
    """Why a policy moves pods now, or does not."""

    IN_FORCE = "InForce"
    DRY_RUN = "DryRun"
    OUTSIDE_HOURS = "OutsideHours"
    BUDGET_SPENT = "BudgetSpent"
    NO_PLAN = "NoPlan"
    INVALID = "Invalid"

    @property
    def is_ready(self) -> bool:
        """Whether the policy is understood and a plan could be made."""
        return self not in {Reason.INVALID, Reason.NO_PLAN}


class Statuses:
    """Reads and writes the statuses of policies."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    async def read_policy(self, name: str) -> RebalancePolicy:
        """Read a policy as it is now.

        Raises:
            ApiError: it is not there, or cannot be read.
        """
        return _decode_policy(
            name, await self._api.request("GET", REBALANCE_POLICIES.find_path(name))
        )

    async def write_state(
        self,
        policy: RebalancePolicy,
        reason: Reason,
        message: str,
        moves: Sequence[PastMove],
        **more: Any,
    ) -> RebalancePolicy:
        """Write whether the policy moves pods and why, the moves of the last hour, and what else is to be in the status.

        Returns the policy as it is then.

        Raises:
            ApiError: it is not written, for instance because somebody has written the policy meanwhile.
        """
        status = "True" if reason.is_ready else "False"
        condition = {
            "type": "Ready",
            "status": status,
            "reason": reason,
            "message": shorten(message, _MESSAGE_MAX),
            "observedGeneration": policy.metadata.generation,
            "lastTransitionTime": _find_transition(policy.status, status),
        }
        body = {
            "observedGeneration": policy.metadata.generation,
            "conditions": [condition],
            **_list_moves(moves),
            **more,
        }
        return await self._write_status(policy, body)

    async def write_moves(
        self, policy: RebalancePolicy, moves: Sequence[PastMove]
    ) -> RebalancePolicy:
        """Write the moves of the last hour, and return the policy as it is then.

        Raises:
            ApiError: they are not written, for instance because somebody has written the policy meanwhile.
        """
        return await self._write_status(policy, _list_moves(moves))

    async def _write_status(self, policy: RebalancePolicy, status: Json) -> RebalancePolicy:
        meta = policy.metadata
        path = f"{REBALANCE_POLICIES.find_path(meta.name)}/status"
        read = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        body = {"metadata": read, "status": status}
        answer = await self._api.send("PATCH", path, body, content_type=client.MERGE_PATCH)
        return _decode_policy(meta.name, answer)


def _decode_policy(name: str, payload: bytes) -> RebalancePolicy:
    try:
        return msgspec.json.decode(payload, type=RebalancePolicy)
    except msgspec.MsgspecError as error:
        raise ApiError(0, "Unreadable", f"RebalancePolicy {name}: {error}") from error


def _list_moves(moves: Sequence[PastMove]) -> Json:
    counted = budgets.count_by_namespace(moves).total()
    return {"movesLastHour": counted, "moves": budgets.write_moves(moves)}


def _find_transition(status: Any, wanted: str) -> str:
    """Find since when the condition is as it is."""
    conditions = values.read_mapping(status, "status").get("conditions")
    for one in conditions if isinstance(conditions, list) else ():
        if isinstance(one, Mapping) and one.get("type") == "Ready" and one.get("status") == wanted:
            since = one.get("lastTransitionTime")
            if isinstance(since, str) and times.read_time(since) is not None:
                return since
    return wall_clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
