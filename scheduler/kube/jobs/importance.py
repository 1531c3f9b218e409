"""The classes by which jobs are important, as the API server has them."""

from __future__ import annotations

import asyncio

from scheduler.api import kinds
from scheduler.api.jobs.importance import Ranked, find_importance
from scheduler.api.jobs.workloads import Importance
from scheduler.kube.client import ApiClient

# Classes of pods are read again after so long: their values do not change, but a class may be made anew.
_FRESH_SECONDS = 60.0


class Classes:
    """The classes of priority."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        self._of_workloads: dict[str, int] = {}
        self._of_pods: dict[str, int] = {}
        self._default = Importance()
        self._read_at = float("-inf")

    def see(self, name: str, value: int) -> None:
        """Note a class of workloads."""
        self._of_workloads[name] = value

    def drop(self, name: str) -> None:
        """Forget a class of workloads."""
        self._of_workloads.pop(name, None)

    async def find_importance(self, ranked: Ranked) -> Importance:
        """Find how important a job is, by the class of workloads that it names, else by that of its pods.

        Raises:
            ClassMissing: it names a class that is not there.
            ApiError: the classes cannot be read.
        """
        if not ranked.of_workloads:
            name, now = ranked.of_pods, asyncio.get_running_loop().time()
            if now - self._read_at > _FRESH_SECONDS or (name and name not in self._of_pods):
                await self._read_all()
                self._read_at = now
        return find_importance(ranked, self._of_workloads, self._of_pods, self._default)

    async def _read_all(self) -> None:
        found = await self._api.get(kinds.PRIORITY_CLASSES.path)
        items = {one["metadata"]["name"]: one for one in found.get("items") or ()}
        self._of_pods = {name: one.get("value", 0) for name, one in items.items()}
        defaults = [
            Importance(one.get("value", 0), name)
            for name, one in items.items()
            if one.get("globalDefault")
        ]
        # With several defaults Kubernetes takes the lowest one.
        self._default = min(defaults, default=Importance())
