"""Room for pods of KAI's queues that others make: those of other queues, then those of their own."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from scheduler.api.door.decisions import Hold, Plan
from scheduler.api.queues.settings import KaiSettings
from scheduler.cycle.schedule import Cycle
from scheduler.disruption.group_units import Unit
from scheduler.disruption.queue_room import Search
from scheduler.disruption.queue_turns import Rival, Rivals, TakersQuota
from scheduler.disruption.queue_victims import Action, QueueVictims, sum_by_queue
from scheduler.state.entities import AnyEntity
from scheduler.tenancy.kai.accounts import Accounts
from scheduler.tenancy.kai.rules import Taker, is_fair, make_taker, may_reclaim
from scheduler.tenancy.kai.turns import cut_turn, list_next
from scheduler.waiting.orders import First
from scheduler.waiting.pending import Pending


@dataclass(slots=True)
class Wanting:
    """An entity that fitted nowhere, or whose queue had no room for it.

    Attributes:
        hold: what keeps it waiting.
        over: why its queue has no room for it, in one of KAI's words; empty if it has room.
        about: equal for reasons that differ only in figures.
        tried_at: what was known when others were last looked for that could go for it; None: never yet.
        again_at: when more of them may go; None for never.
    """

    hold: Hold
    over: str = ""
    about: Hashable = None
    tried_at: Hashable = None
    again_at: float | None = None


class KaiRoom:
    """Makes room for those that wait."""

    def __init__(
        self, settings: KaiSettings, cycle: Cycle, pending: Pending, accounts: Accounts
    ) -> None:
        self._settings, self._cycle, self._pending = settings, cycle, pending
        self._accounts, self._cluster = accounts, accounts.cluster
        self._victims = QueueVictims(accounts.cluster, accounts, settings)

    def make_all(
        self, left: dict[str, AnyEntity], wanting: Mapping[str, Wanting], action: Action
    ) -> list[Plan]:
        """Make room for entities in the order of their queues; those that have it are taken out of ``left``."""
        order, rivals = self._pending.order, self._list_rivals(wanting)
        self._victims.begin()
        lanes: dict[str, list[str]] = {}
        for uid in sorted(left, key=lambda uid: order.find_place(left[uid]), reverse=True):
            lanes.setdefault(order.find_lane(left[uid]), []).append(uid)
        found: list[Plan] = []
        while lanes:
            self._cluster.pauses.take()
            firsts = {
                lane: First(order.find_place(left[some[-1]]), left[some[-1]])
                for lane, some in lanes.items()
            }
            lane = order.pick_lane(firsts)
            uid = lanes[lane].pop()
            if not lanes[lane]:
                del lanes[lane]
            plan = self._make_for(left[uid], wanting[uid], action, rivals)
            if plan is not None:
                found.append(plan)
                del left[uid]
                gone = [uid for one in plan.evicts for unit in one.units for uid in unit]
                self._victims.note_sent_away(gone)
                for some in rivals.values():
                    some[:] = [one for one in some if one.uid != uid]
        return found

    def _make_for(
        self, entity: AnyEntity, one: Wanting, action: Action, rivals: Rivals
    ) -> Plan | None:
        self._accounts.settle_shares()
        terms = self._accounts.find_terms_of(entity)
        if not all(pod.preempts for pod in entity.members):
            return None
        with self._accounts.lift_promises(entity):
            taker = make_taker(self._accounts, entity)
            if taker is None or (action == Action.RECLAIM and not may_reclaim(taker)):
                return None
            ends: list[float] = []
            units = self._victims.list_units(taker, terms, action, ends)
            allows: Callable[[Sequence[Unit]], bool] = lambda _: True  # noqa: E731
            if action == Action.RECLAIM:
                allows = partial(self._is_fair, taker)
            quota = TakersQuota(taker, entity.uid, self._accounts, rivals)
            search = Search(units, (quota, allows))
            turn = cut_turn(self._cluster, entity)
            plan = self._cycle.make_room_in_queues(turn, search, one.hold)
            if ends:
                again_at = min(ends)
                one.again_at = again_at if one.again_at is None else min(one.again_at, again_at)
            return plan

    def _list_rivals(self, wanting: Mapping[str, Wanting]) -> dict[str, list[Rival]]:
        """List who waits, by queue and in its order: before a victim goes, it is seen whose turn it would be."""
        find_place = self._pending.order.find_place
        found: dict[str, list[Rival]] = {}
        for uid in wanting:
            entry = self._pending.find_entry(uid)
            if entry is not None:
                one = entry.entity
                wants = self._accounts.sum_wants(list_next(self._cluster, one))
                queue = self._accounts.find_terms_of(one).queue
                found.setdefault(queue, []).append(Rival(find_place(one), wants, uid))
        for some in found.values():
            some.sort(key=lambda one: one.place)
        return found

    def _is_fair(self, taker: Taker, units: Sequence[Unit]) -> bool:
        victims = sum_by_queue(units, self._accounts)
        return is_fair(self._accounts.tree, taker, victims, self._settings.multiplier)
