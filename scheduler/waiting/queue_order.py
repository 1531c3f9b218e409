"""The order of entities where KAI has queues: which queue is next changes with every pod that is placed."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.api.queues.kai import Vector
from scheduler.state.cluster import Cluster
from scheduler.state.entities import AnyEntity
from scheduler.state.seniority import Seniority
from scheduler.tenancy.kai.accounts import Accounts
from scheduler.tenancy.kai.ordering import comes_before, pick
from scheduler.tenancy.kai.tree import Queue
from scheduler.tenancy.kai.turns import find_fill, list_next
from scheduler.waiting.orders import First, PriorityAndAge

# No namespace has such a name.
_LANE = "queue/"


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
        name = self._pick_queue(firsts)
        if name is None:
            # Nothing that is in queues could be tried.
            return super().pick_lane(firsts)
        best = f"{_LANE}{name}"
        if not plain:
            return best
        lane = super().pick_lane(plain)
        return lane if plain[lane].place[0] <= firsts[best].place[0] else best

    def _pick_queue(self, firsts: Mapping[str, First]) -> str | None:
        """Pick the queue that is next."""
        accounts = self._accounts
        accounts.settle()
        accounts.share_out()
        heads = {
            lane.removeprefix(_LANE): accounts.sum_wants(list_next(self._cluster, one.entity))
            for lane, one in firsts.items()
            if lane.startswith(_LANE)
        }
        return pick(accounts.tree.queues, heads, self._comes_before)

    def _comes_before(self, one: tuple[Queue, Vector], other: tuple[Queue, Vector]) -> bool:
        return comes_before(one[0], other[0], (one[1], other[1]), self._accounts.total)
