"""Makes a plan for a policy of the cluster as it is: the objects are read, and a thread fills an engine with them."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Mapping, Sequence
from functools import partial
from http import HTTPStatus

from scheduler.api import kinds
from scheduler.api.rebalancing.policy import Rebalancing
from scheduler.config import Config
from scheduler.errors import ApiError
from scheduler.kube import wall_clock
from scheduler.kube.client import Access
from scheduler.kube.watch.snapshot import Snapshot, read_snapshot
from scheduler.plan.making import PlanAnswer, Wish, make_plan
from scheduler.rebalance.budgets import PastMove
from scheduler.rebalance.limits import find_limits
from scheduler.simulate.reading.gathering import Live, gather_objects

# What says who may be moved: a namespace without its labels would match a selector of those that lack a label.
_NEEDED = frozenset({kinds.NAMESPACES.name, kinds.BUDGETS.name})
_FORBIDDEN = f"{HTTPStatus.FORBIDDEN:d} "


class Planner:
    """Makes plans of one cluster, with the settings of its scheduler."""

    def __init__(self, access: Access, config: Config) -> None:
        self._access, self._config = access, config

    async def plan(self, policy: Rebalancing, moves: Sequence[PastMove], most: int) -> PlanAnswer:
        """Plan at most so many moves; ``moves``: as for ``find_limits``.

        Raises:
            ApiError: nodes, pods, namespaces, disruption budgets, or the ConfigMaps of the settings cannot be read.
            BadInput: an object cannot be read at all.
        """
        wish = Wish(
            only_for=None,
            most=most,
            run_seconds=policy.min_run,
            now=wall_clock.now().timestamp(),
            find_limits=partial(find_limits, policy, moves),
        )
        snapshot = await read_snapshot(self._access, self._config.config_maps)
        _check_read(snapshot.unlisted)
        return await asyncio.to_thread(self._make_plan, snapshot, wish)

    def _make_plan(self, snapshot: Snapshot, wish: Wish) -> PlanAnswer:
        live = Live(snapshot.objects, snapshot.unlisted)
        gathered = gather_objects((), live, io.StringIO(), _tell_nobody, command="rebalance")
        return make_plan(gathered, self._config, wish, snapshot.unlisted, _tell_nobody)


def _check_read(unlisted: Mapping[str, str]) -> None:
    """Check that what a plan needs was read; a ConfigMap that is not there is none to the scheduler either.

    Raises:
        ApiError: something was not.
    """
    for what, why in unlisted.items():
        is_hidden = what.startswith(kinds.CONFIG_MAPS.name) and why.startswith(_FORBIDDEN)
        if what in _NEEDED or is_hidden:
            raise ApiError(0, "Unread", f"{what} cannot be read: {why}")


def _tell_nobody(what: str, done: int = 0, total: int | None = None) -> None:
    """Nobody watches the stages."""
    del what, done, total
