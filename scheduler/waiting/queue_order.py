"""The order of entities where KAI has queues: which queue is next changes with every pod that is placed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from scheduler.api.queues.kai import Vector
from scheduler.state.cluster import Cluster
from scheduler.state.entities import AnyEntity
from scheduler.state.seniority import Seniority
from scheduler.tenancy.kai.accounts import Accounts
from scheduler.tenancy.kai.ordering import comes_before
from scheduler.tenancy.kai.tree import Queue
from scheduler.tenancy.kai.turns import find_fill, list_next
from scheduler.waiting.orders import First, PriorityAndAge

# No namespace has such a name.
_LANE = "queue/"


class _Best(NamedTuple):
    """The entity that is next in a queue, or in the queues within it."""

    lane: str
    entity: AnyEntity
    wants: Vector


class QueueOrder(PriorityAndAge):
    """Orders the entities of a queue by priority, fill and age, and the queues as KAI does.

    Entities without a queue come before the queues if their priority is not lower than that of the entity that is next.
    """

    def __init__(self, seniority: Seniority, cluster: Cluster, accounts: Accounts) -> None:
        """``seniority`` orders what is in no queue."""
        super().__init__(seniority)
        self._cluster, self._accounts = cluster, accounts

    def find_place(self, entity: AnyEntity) -> tuple[float, float, str, int]:
        """Return the place of an entity in its queue, or among those without one."""
        if not len(self._accounts.tree):
            return super().find_place(entity)
        terms = self._accounts.find_terms_of(entity)
        if not terms.queue:
            return super().find_place(entity)
        fill = find_fill(self._cluster, entity)
        return -terms.priority, fill, entity.created, entity.order

    def find_lane(self, entity: AnyEntity) -> str:
        """Return the lane of the entity's queue."""
        if not len(self._accounts.tree):
            return super().find_lane(entity)
        queue = self._accounts.find_terms_of(entity).queue
        return f"{_LANE}{queue}" if queue else super().find_lane(entity)

    def goes_alone(self, entity: AnyEntity) -> bool:
        """Whether an entity is in a queue: with every pod that is placed another queue may be next."""
        return bool(len(self._accounts.tree) and self._accounts.find_terms_of(entity).queue)

    def pick_lane(self, firsts: Mapping[str, First]) -> str:
        """Return the lane that is next now."""
        plain = {lane: one for lane, one in firsts.items() if not lane.startswith(_LANE)}
        if len(plain) == len(firsts):
            return super().pick_lane(firsts)
        best = self._find_best(firsts)
        if best is None:
            # Nothing that is in queues could be tried.
            return super().pick_lane(firsts)
        if not plain:
            return best.lane
        lane = super().pick_lane(plain)
        return lane if plain[lane].place[0] <= firsts[best.lane].place[0] else best.lane

    def _find_best(self, firsts: Mapping[str, First]) -> _Best | None:
        """Find what is next in all queues: level by level from the leaves."""
        self._accounts.settle()
        self._accounts.share_out()
        tree = self._accounts.tree
        best: dict[str, _Best] = {}
        inner: dict[str, list[Queue]] = {}
        for lane, one in firsts.items():
            queue = tree.queues.get(lane.removeprefix(_LANE)) if lane.startswith(_LANE) else None
            if queue is None:
                continue
            wants = self._accounts.sum_wants(list_next(self._cluster, one.entity))
            best[queue.name] = _Best(lane, one.entity, wants)
            for below, above in zip(queue.path, (*queue.path[1:], None), strict=True):
                name = "" if above is None else above.name
                beside = inner.setdefault(name, [])
                if below in beside:
                    break
                beside.append(below)
        return self._find_best_of("", inner, best)

    def _find_best_of(
        self, name: str, inner: Mapping[str, list[Queue]], best: Mapping[str, _Best]
    ) -> _Best | None:
        found: tuple[Queue, _Best] | None = None
        for queue in inner.get(name, ()):
            one = best.get(queue.name) or self._find_best_of(queue.name, inner, best)
            if one is None:
                continue
            if found is None or comes_before(
                queue, found[0], (one.wants, found[1].wants), self._accounts.total
            ):
                found = queue, one
        return None if found is None else found[1]
