"""The status of BalancePolicies: understood or not, and how many pods each governs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import structlog

from scheduler.api import kinds
from scheduler.errors import ApiError
from scheduler.kube import answers, client, wall_clock
from scheduler.kube.client import ApiClient

_PERIOD_SECONDS = 2.0
_IN_FORCE = "the policy applies to pods that are not placed yet"
_log = structlog.get_logger("evenkeel.policies")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the status of a policy says.

    Attributes:
        generation: the generation of the policy that was checked.
        problem: why the policy is not in force; empty if it is.
        remark: which part of the policy has no effect; empty if all of it has.
    """

    generation: int
    problem: str
    remark: str

    @property
    def message(self) -> str:
        """The message for the person who wrote the policy."""
        return self.problem or "; ".join(filter(None, (_IN_FORCE, self.remark)))


class PolicyStatus:
    """Remembers verdicts and what was written; writes differences every two seconds."""

    def __init__(self, api: ApiClient, *, is_leading: Callable[[], bool]) -> None:
        self._api, self._is_leading = api, is_leading
        self._verdicts: dict[str, Verdict] = {}
        self._written: dict[str, tuple[Verdict, int]] = {}

    def note_verdict(self, name: str, verdict: Verdict) -> None:
        """Note the verdict on a policy that was parsed."""
        self._verdicts[name] = verdict

    def forget_policy(self, name: str) -> None:
        """Forget a policy that was deleted."""
        self._verdicts.pop(name, None)
        self._written.pop(name, None)

    async def run(self, count_governed: Callable[[], Awaitable[Mapping[str, int]]]) -> None:
        """Write what changed, until cancelled."""
        while True:
            await asyncio.sleep(_PERIOD_SECONDS)
            if not self._verdicts or not self._is_leading():
                continue
            governed = await count_governed()
            for name, verdict in list(self._verdicts.items()):
                wanted = (verdict, governed.get(name, 0))
                if self._written.get(name) != wanted and await self._write_status(name, *wanted):
                    self._written[name] = wanted

    async def _write_status(self, name: str, verdict: Verdict, governed: int) -> bool:
        previous = self._written.get(name)
        is_ready = not verdict.problem
        condition = {
            "type": "Ready",
            "status": "True" if is_ready else "False",
            "reason": "InForce" if is_ready else "Invalid",
            "message": verdict.message,
            "observedGeneration": verdict.generation,
        }
        if previous is None or bool(previous[0].problem) == is_ready:
            condition["lastTransitionTime"] = wall_clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        path = kinds.POLICIES.find_path(name)
        try:
            if "lastTransitionTime" not in condition:
                found = await self._api.get(path)
                condition["lastTransitionTime"] = found["status"]["conditions"][0][
                    "lastTransitionTime"
                ]
            status = {
                "observedGeneration": verdict.generation,
                "governedPods": governed,
                "conditions": [condition],
            }
            await self._api.send(
                "PATCH", f"{path}/status", {"status": status}, content_type=client.MERGE_PATCH
            )
        except (ApiError, KeyError, IndexError) as error:
            if not answers.is_not_found(error):
                _log.warning("policy status not written", policy=name, error=str(error))
            self._written.pop(name, None)
            return False
        return True
