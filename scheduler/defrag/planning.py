"""Makes a plan: the best bundle of moves first, then the best one of what is left, as far as it is allowed.

The work is bounded by the number of moves that are tried. A bundle that was tried before others were carried out is tried
again when its turn comes, because they may have changed what it gains.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

from scheduler.cycle.schedule import Cycle
from scheduler.defrag.contract import Plan, Terms, Totals
from scheduler.defrag.movable import find_movable
from scheduler.defrag.sets import Sets
from scheduler.defrag.trying import Bundle, Trier
from scheduler.defrag.waiters import Limits, Waiters
from scheduler.defrag.whole import Gauge
from scheduler.state.cluster import Cluster
from scheduler.state.entities import AnyEntity
from scheduler.state.pods import Life, PodRecord
from scheduler.telling.advice.asking import Asking

# The most moves that are tried for a plan.
TRIES_MAX = 4096


class Planning:
    """Makes one plan in one cluster, and leaves the cluster as it was."""

    def __init__(
        self,
        cluster: Cluster,
        cycle: Cycle,
        waiting: list[AnyEntity],
        terms: Terms,
        find_minimum: Callable[[PodRecord], float],
        limits: Limits,
    ) -> None:
        """``waiting``: who was tried and has no room, in order; ``find_minimum``: as for ``find_movable``."""
        self._cluster, self._cycle, self._terms = cluster, cycle, terms
        if terms.only_for:
            waiting = [one for one in waiting if terms.only_for in {p.uid for p in one.members}]
        self._movable = find_movable(cluster, terms, find_minimum)
        self._waiters = Waiters(cluster, cycle, waiting, limits)
        self._gauge = Gauge(cluster, terms.own)
        self._trier = self._make_trier()

    def make_plan(self) -> Plan:
        """Make the plan."""
        before, tried = self._sum_up(), 0
        with self._cluster.trial():
            bundles, is_cut = self._choose()
            after = self._sum_up()
        tried += self._trier.tried
        if self._terms.only_for and bundles:
            bundles, after = self._keep_needed(bundles)
        moves = tuple(bundle.moves for bundle in bundles)
        stays, movable = self._movable.stays, len(self._movable.uids)
        return Plan(moves, stays, movable, before, after, tried, is_cut)

    def _make_trier(self) -> Trier:
        return Trier(self._cluster, self._gauge, self._waiters, self._movable.uids, self._terms)

    def _sum_up(self) -> Totals:
        whole = self._gauge.read()
        return Totals(whole.n_cards, whole.n_nodes, self._waiters.count())

    def _choose(self) -> tuple[list[Bundle], bool]:
        """Choose bundles, and carry each out in the caller's trial; whether more could have been tried."""
        chosen: list[Bundle] = []
        heap: list[tuple[object, Bundle, tuple[str, ...]]] = []
        left, is_cut = self._terms.most, False

        def put(uids: tuple[str, ...]) -> None:
            if uids and (found := self._trier.try_set(uids, most=left)) is not None:
                heapq.heappush(heap, (found.rank, found, uids))

        for uids in self._list_sets():
            if self._trier.tried >= TRIES_MAX:
                is_cut = True
                break
            put(uids)
        while heap and left and not self._is_satisfied():
            if self._trier.tried >= 2 * TRIES_MAX:
                return chosen, True
            rank, _, uids = heapq.heappop(heap)
            again = self._trier.try_set(uids, most=left)
            if again is None:
                continue
            if again.rank != rank:
                heapq.heappush(heap, (again.rank, again, uids))
                continue
            done = self._trier.carry_out(again.uids)
            if done is not None:
                chosen.append(done)
                left -= len(done.moves)
                # A bundle may have fewer pods than its set: the others may gain something by themselves.
                put(tuple(uid for uid in uids if uid not in done.uids))
        return chosen, is_cut

    def _list_sets(self) -> Iterator[tuple[str, ...]]:
        """List the sets that are tried, each once."""
        sets = Sets(self._cluster, self._gauge, self._movable.uids)
        asking = Asking(self._cluster, self._cycle)
        seen: set[frozenset[str]] = set()
        for uids in (
            *sets.list_for_waiting(asking, self._waiters.entities),
            *sets.list_on_cards(),
            *sets.list_on_nodes(),
        ):
            if frozenset(uids) not in seen:
                seen.add(frozenset(uids))
                yield uids

    def _is_satisfied(self) -> bool:
        """Whether the pod that the plan is for has room."""
        uid = self._terms.only_for
        return bool(uid) and self._cluster.pods[uid].life != Life.PENDING

    def _keep_needed(self, chosen: list[Bundle]) -> tuple[list[Bundle], Totals]:
        """Keep the bundles without which the pod that the plan is for would not have room; none if it has none at all."""
        needed, after = self._carry_out(chosen)
        if not needed:
            return [], self._sum_up()
        for bundle in chosen:
            fewer = [one for one in needed if one.uids != bundle.uids]
            found, totals = self._carry_out(fewer)
            if found:
                needed, after = found, totals
        return needed, after

    def _carry_out(self, bundles: list[Bundle]) -> tuple[list[Bundle], Totals]:
        """Carry bundles out in a trial; return them as they went, none if the pod has no room then, and the totals."""
        trier = self._make_trier()
        with self._cluster.trial():
            done = [trier.carry_out(bundle.uids) for bundle in bundles]
            if not self._is_satisfied():
                return [], self._sum_up()
            return [one for one in done if one is not None], self._sum_up()
