"""Room for pods of KAI's queues: victims are added in their order until the pods fit; those that need not go come back.

Source: KAI-Scheduler (2026-03), ``actions/common/solvers``. A victim stays where it is, or goes: KAI may give it another
node in the same step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from scheduler.api.door.decisions import Bind, Plan
from scheduler.disruption import protectors
from scheduler.disruption.cleared import Cleared
from scheduler.disruption.group_units import Unit
from scheduler.disruption.narrowing import Narrowing
from scheduler.disruption.promises import Promises
from scheduler.disruption.queue_turns import TakersQuota
from scheduler.disruption.queue_victims import Allows
from scheduler.disruption.sparing import Guard, Shapes, make_shapes, put_back
from scheduler.disruption.units import find_unit_costs
from scheduler.disruption.weighing import find_hours, sum_costs
from scheduler.schema import columns as c
from scheduler.schema.world import ANYWHERE
from scheduler.shapes.boards import Boards
from scheduler.shapes.keys import Keys
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Entity
from scheduler.state.pods import Life

# So many victims are added one by one, then ever more at a time.
_ONE_BY_ONE = 32
_GROWTH = 1.25
# Places a group among some rows, in the open trial.
PlaceAmong = Callable[[c.Flags], Plan]


class Search(NamedTuple):
    """Whom pods may take the place of, see ``QueueRoom.find_room``."""

    units: Iterator[Unit]
    by: tuple[TakersQuota, Allows]


class _QuotaGuard(Guard):
    """Judges as well whether the queues keep their limits."""

    def __init__(
        self,
        boards: Boards,
        shapes: Shapes,
        binds: Sequence[Bind],
        cluster: Cluster,
        by: tuple[Promises, TakersQuota],
    ) -> None:
        promises, self._quota = by
        super().__init__(boards, shapes, binds, cluster, promises)

    def still_fits(self, unit: Unit) -> bool:
        return self._quota.is_kept() and super().still_fits(unit)


class QueueRoom:
    """Looks for room on one cluster."""

    def __init__(
        self,
        cluster: Cluster,
        boards: Boards,
        keys: Keys,
        promises: Promises,
        narrowing: Narrowing,
    ) -> None:
        self._cluster, self._boards, self._keys = cluster, boards, keys
        self._promises, self._narrowing = promises, narrowing

    def find_room(
        self,
        entity: Entity,
        units: Iterator[Unit],
        by: tuple[TakersQuota, Allows],
        place: PlaceAmong,
    ) -> Cleared | None:
        """Find room for a pod or group that takes the place of some units.

        Args:
            entity: the group, or a pod as one.
            units: who may go, in order. Those whose going violates a budget go only where nobody else can.
            by: what the queues have room for, and whether it is fair that some units go.
            place: places the group among some rows, in the open trial.
        """
        if not protectors.has_costs(self._cluster):
            return self._find_among(entity, units, by, place)
        everybody = list(units)
        # Those who go last use up what budgets allow first.
        last_first = [unit.pods for unit in reversed(everybody)]
        costs = find_unit_costs(self._cluster, last_first)[::-1] if everybody else []
        spared = [unit for unit, cost in zip(everybody, costs, strict=True) if not cost]
        found = self._find_among(entity, iter(spared), by, place)
        if found is None and len(spared) < len(everybody):
            found = self._find_among(entity, iter(everybody), by, place)
        return found

    def _find_among(
        self,
        entity: Entity,
        units: Iterator[Unit],
        by: tuple[TakersQuota, Allows],
        place: PlaceAmong,
    ) -> Cleared | None:
        some, units = self._take_enough(entity, units)
        is_single = len(entity.members) == 1
        before, n = max(0, len(some) - 1), len(some)
        while before < n:
            self._cluster.pauses.take()
            # A pod by itself fits only where the last ones go: where others go it did not fit, or that was not fair.
            rows = self._find_rows(some[before:n]) if is_single else ANYWHERE
            found = self._clear(entity, some, rows, (by[0], place))
            if found is not None and by[1](found.units):
                return found
            before = n
            some += islice(units, 1 if n < _ONE_BY_ONE else int(n * (_GROWTH - 1)))
            n = len(some)
        return None

    def _take_enough(
        self, entity: Entity, units: Iterator[Unit]
    ) -> tuple[list[Unit], Iterator[Unit]]:
        """Take as few units, in order, as could be enough by amounts; none if all together are not.

        Returns:
            The units, and those that follow them.
        """
        some: list[Unit] = []
        low, high = 0, 1
        while True:
            some += islice(units, high - len(some))
            if len(some) == low:
                return [], units
            if self._could_fit(entity, some):
                break
            low, high = len(some), 2 * high
        # Without the first ``low`` units it does not fit, without all of them it does.
        high = len(some)
        while low + 1 < high:
            middle = (low + high) // 2
            if self._could_fit(entity, some[:middle]):
                high = middle
            else:
                low = middle
        return some[:high], chain(some[high:], units)

    def _could_fit(self, entity: Entity, units: Sequence[Unit]) -> bool:
        """Whether a pod or group could fit by amounts without some units and without those that leave anyway."""
        pods = self._cluster.pods
        if any(pods[pod.uid].life != Life.PENDING for pod in entity.members):
            # Those that have a node by now are not among those that there must be room for.
            return True
        gone = [pods[uid].row for uid in self._list_leaving()]
        gone += [pod.row for unit in units for pod in unit.pods]
        return self._narrowing.could_fit(entity, ANYWHERE, np.array(gone, np.int64))

    def _list_leaving(self) -> list[str]:
        """List the pods on nodes that leave anyway: room that is promised to others counts as taken, without them."""
        cluster = self._cluster
        away = {*cluster.roster.leaving, *cluster.nominations.going}
        return [uid for uid in sorted(away) if uid in cluster.pods and cluster.pods[uid].row >= 0]

    def _find_rows(self, units: Sequence[Unit]) -> c.Flags:
        rows = np.zeros(self._cluster.nodes.capacity, np.bool_)
        for pod in (pod for unit in units for pod in unit.pods):
            row = self._cluster.nodes.find_row(pod.node)
            if row >= 0:
                rows[row] = True
        return rows

    def _clear(
        self,
        entity: Entity,
        units: Sequence[Unit],
        rows: c.Flags,
        by: tuple[TakersQuota, PlaceAmong],
    ) -> Cleared | None:
        """Place a group without some units and without pods that leave anyway, then let those come back that may."""
        quota, place = by
        cluster = self._cluster
        leaving = self._list_leaving()
        if rows.size:
            # Who is elsewhere need not be taken away, and put back again.
            find_row, node_of = cluster.nodes.find_row, cluster.pods
            leaving = [uid for uid in leaving if rows[find_row(node_of[uid].node)]]
            units = [unit for unit in units if any(rows[find_row(pod.node)] for pod in unit.pods)]
        shapes = make_shapes(self._boards, self._keys, entity.members)
        with quota.open(leaving), cluster.trial() as trial:
            trial.take_away(*leaving, *(pod.uid for unit in units for pod in unit.pods))
            units = quota.put_back_first(trial, units)
            if not quota.has_room():
                return None
            plan = place(rows)
            if not plan.binds:
                return None
            guard = _QuotaGuard(self._boards, shapes, plan.binds, cluster, (self._promises, quota))
            gone = put_back(trial, _list_last_first(units), guard)
        pods = [pod for unit in gone for pod in unit.pods]
        hours = find_hours(cluster, entity, pods)
        return Cleared(plan.binds, gone, sum_costs(cluster, gone, hours), rows)


def _list_last_first(units: Sequence[Unit]) -> list[Unit]:
    """List units as they come back: who was to go last first, but an extra pod only after the minimum of its group."""
    back = list(reversed(units))
    return [one for one in back if not one.is_extra] + [one for one in back if one.is_extra]
