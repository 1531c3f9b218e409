"""Room for a group: the domain in which the fewest and least important pods have to go.

The search goes by place, not by victim. In a trial, all units that may go leave a domain, and the group is placed there.
Then the units come back, the dearest first, each if the group still fits as it was placed. The domain whose victims
cost the least wins. So a pod is sent away only where the group is then placed whole, with its cards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from scheduler.api.door.decisions import Plan
from scheduler.disruption.beyond import list_elsewhere
from scheduler.disruption.cleared import Cleared, Cost, choose_cheaper
from scheduler.disruption.dearest import Tries, spare_dearest
from scheduler.disruption.elastic import (
    choose_extras,
    find_alike,
    is_better,
    list_elastic,
    list_sets,
)
from scheduler.disruption.group_units import Unit, is_core, list_kube_units, list_units
from scheduler.disruption.narrowing import Narrowing
from scheduler.disruption.promises import Promises
from scheduler.disruption.sparing import Guard, make_shapes, put_back
from scheduler.disruption.units import find_costs, find_unit_costs
from scheduler.disruption.weighing import find_hours, find_worth, sum_costs
from scheduler.schema import columns as c
from scheduler.schema.world import ANYWHERE
from scheduler.shapes.boards import Boards
from scheduler.shapes.keys import Keys
from scheduler.shapes.views import ALONE
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Entity
from scheduler.state.pods import PodRecord

# kube-scheduler's words if nobody may go for a group.
NOBODY = "No preemption victims found for incoming preemptor"
# If so few units may go for a group of so few members, all sets of units are compared, up to so many of them.
_FEW_UNITS, _FEW_MEMBERS, _TRIES_MAX = 8, 16, 128
# Of more units, only those on the cheapest nodes are tried if they are enough.
_MANY_UNITS = 64
# Of the nodes on which a single pod could take the place of groups, so many are compared thoroughly.
_NODES_COMPARED = 2
# A place with so many pods or fewer is looked at without being narrowed down.
_FEW_PODS = 256
_NO_PLACES: c.Ints = np.zeros(0, np.int64)


# Places a group among some rows, in the open trial.
PlaceAmong = Callable[[c.Flags], Plan]


class Clearing:
    """Looks for room for groups on one cluster."""

    def __init__(
        self,
        cluster: Cluster,
        boards: Boards,
        keys: Keys,
        count_places: Callable[[PodRecord], c.Ints],
        promises: Promises,
        narrowing: Narrowing,
    ) -> None:
        """``count_places`` counts [N] how many pods like one fit on each node at most."""
        self._narrowing = narrowing
        self._cluster, self._boards, self._keys = cluster, boards, keys
        self._pauses = cluster.pauses
        self._count_places, self._promises = count_places, promises

    def find_room(
        self, entity: Entity, places: Sequence[c.Flags], place: PlaceAmong
    ) -> Cleared | None:
        """Find the place where the group fits at the least cost; None if it fits nowhere even then.

        Args:
            entity: the group.
            places: [N] the nodes of each domain in which all of it would be, [0] for all nodes.
            place: places the group among some rows.
        """
        best: Cleared | None = None
        for rows in places:
            best = choose_cheaper(best, self._clear_parts(entity, rows, place))
        return best

    def find_room_for_pod(
        self, entity: Entity, nodes: Sequence[c.Flags], place: PlaceAmong
    ) -> Cleared | None:
        """Find the node where a single pod fits at the least cost, as ``find_room`` does.

        There may be many nodes. So it is only on the cheapest of them that all sets of units are compared.
        """
        found = [self.clear_place(entity, rows, place, is_thorough=False) for rows in nodes]
        cheapest = sorted((one for one in found if one is not None), key=lambda one: one.cost)
        return self.find_room(entity, [one.rows for one in cheapest[:_NODES_COMPARED]], place)

    def _clear_parts(self, entity: Entity, rows: c.Flags, place: PlaceAmong) -> Cleared | None:
        """Place a group on the nodes of a place that cost least to clear, or on all its nodes if these do not do."""
        for part in self.list_parts(entity, rows):
            if (found := self.clear_place(entity, part, place)) is not None:
                return found
        return None

    def list_parts(self, entity: Entity, rows: c.Flags) -> list[c.Flags]:
        """List what to look at of a place: the nodes that cost least, and all nodes if these are not enough."""
        if self.count_pods(rows) <= _FEW_PODS:
            return [rows]
        narrow = self._narrowing.narrow_place(entity, rows)
        if narrow is None:
            return []
        return [rows] if narrow is rows else [narrow, rows]

    def count_pods(self, rows: c.Flags) -> int:
        """Count the pods on some rows, [0] for all."""
        nodes = self._cluster.ledger.pods.columns.node
        return int(rows[nodes[nodes >= 0]].sum()) if rows.size else int((nodes >= 0).sum())

    def list_evictable(self, entity: Entity) -> list[PodRecord]:
        """List the pods on nodes that may go for a group, wherever they are."""
        pods = sorted(self._list_pods(entity, ANYWHERE), key=lambda pod: (pod.node, pod.key))
        units = list_units(self._cluster, pods, entity.priority)
        return [pod for unit in units for pod in unit.pods]

    def find_room_as_kube(self, entity: Entity, place: PlaceAmong) -> Cleared | str:
        """Find room as kube-scheduler does: all units of lower priority go, and come back if the group still fits.

        Which nodes the group gets is decided once, while all are gone. Returns why there is no room, if there is none.
        Source: kube-scheduler 1.37.1, ``preemption.PodGroupEvaluator``.
        """
        units = [Unit(one.pods) for one in list_kube_units(self._cluster, entity.priority)]
        if not units:
            return NOBODY
        # Budgets cover pods on nodes.
        costs = find_unit_costs(self._cluster, [unit.pods for unit in units])
        shapes = make_shapes(self._boards, self._keys, entity.members)
        with self._cluster.trial() as trial:
            trial.take_away(*_list_uids(units))
            plan = place(ANYWHERE)
            if not plan.binds:
                return "" if plan.group is None else plan.group.status
            order = sorted(range(len(units)), key=lambda i: not costs[i])
            guard = Guard(self._boards, shapes, plan.binds, self._cluster, None)
            gone = put_back(trial, [units[i] for i in order], guard)
        gone_ids = set(map(id, gone))
        going = tuple(unit for unit in units if id(unit) in gone_ids)
        hours = find_hours(self._cluster, entity, [pod for unit in going for pod in unit.pods])
        return Cleared(plan.binds, going, sum_costs(self._cluster, going, hours), ANYWHERE)

    def clear_place(
        self, entity: Entity, rows: c.Flags, place: PlaceAmong, *, is_thorough: bool = True
    ) -> Cleared | None:
        """Clear a place in a trial, place a group there, and let those come back that may stay.

        ``is_thorough``: other nodes and other sets of units are tried as well. Returns None if the group does not fit.
        """
        pods = self._list_pods(entity, rows) + list_elsewhere(self._cluster, entity, rows)
        # Who is being deleted leaves room in any case, and nobody else need go for it.
        leaving = [Unit((pod,)) for pod in pods if pod.deleting]
        others = self._pauses.go_through(pod for pod in pods if not pod.deleting)
        staying = list_units(self._cluster, others, entity.priority)
        if not (leaving or staying):
            return None
        parts = leaving, staying
        if len(staying) > _MANY_UNITS:
            # The dearest units need not be taken away and put back if cheap nodes are enough.
            places = self._count_cleared(entity, parts)
            if places.size and not self._has_places(entity, rows, places):
                return None
            found = self._place_on_cheap(entity, rows, parts, places, place)
            found = found or self._place_on_cleared(entity, rows, parts, place)
            return found and self._spare_dearest(entity, rows, found, parts, place)
        found = self._place_on_cleared(entity, rows, parts, place)
        if found is None or not is_thorough:
            return found
        if len(staying) <= _FEW_UNITS and len(entity.members) <= _FEW_MEMBERS:
            return self._find_cheaper(entity, found, parts, place)
        # The group may have been placed where dear pods were, though cheaper nodes would have been enough.
        places = self._count_cleared(entity, parts)
        other = self._place_on_cheap(entity, rows, parts, places, place)
        found = choose_cheaper(found, other) or found
        return self._spare_dearest(entity, rows, found, parts, place)

    def _spare_dearest(
        self,
        entity: Entity,
        rows: c.Flags,
        found: Cleared,
        units: tuple[Sequence[Unit], Sequence[Unit]],
        place: PlaceAmong,
    ) -> Cleared:
        """Spare dear units for which others can go instead, as the group then goes elsewhere."""
        leaving, staying = units

        def could_fit(gone: Sequence[Unit]) -> bool:
            pods = [pod.row for part in (leaving, gone) for unit in part for pod in unit.pods]
            return self._narrowing.could_fit(entity, rows, np.array(pods, np.int64))

        def fits(gone: Sequence[Unit]) -> bool:
            with self._cluster.trial() as trial:
                trial.take_away(*_list_uids(leaving), *_list_uids(gone))
                return bool(place(rows).binds)

        def clear(gone: Sequence[Unit]) -> Cleared | None:
            return self._place_on_cleared(entity, rows, (leaving, gone), place)

        return spare_dearest(self._cluster, entity, found, staying, Tries(could_fit, fits, clear))

    def _count_cleared(
        self, entity: Entity, units: tuple[Sequence[Unit], Sequence[Unit]]
    ) -> c.Ints:
        """Count [N] how many pods like the group's fit on each node without the units; [0] if its pods differ."""
        if entity.team.template is None:
            return _NO_PLACES
        pods = [pod.row for part in units for unit in part for pod in unit.pods]
        counts = self._narrowing.bounds.count_without([entity.members], np.array(pods, np.int64))
        if counts is not None:
            return counts[0]
        with self._cluster.trial() as trial:
            trial.take_away(*(uid for part in units for uid in _list_uids(part)))
            return self._count_places(entity.members[0])

    def _has_places(self, entity: Entity, rows: c.Flags, places: c.Ints) -> bool:
        """Whether there are places for as many pods of a group as must have a node at once."""
        there = places[rows] if rows.size else places
        return int(there.sum()) >= entity.team.n_missing

    def _place_on_cheap(
        self,
        entity: Entity,
        rows: c.Flags,
        units: tuple[Sequence[Unit], Sequence[Unit]],
        places: c.Ints,
        place: PlaceAmong,
    ) -> Cleared | None:
        """Place a group on the nodes that cost least to clear; None if these do not do, or all nodes are needed."""
        leaving, staying = units
        self._pauses.take()
        cheap = self._choose_cheap_rows(entity, rows, staying, places)
        if cheap is None:
            return None
        self._pauses.take()
        here = self._list_units_on(staying, cheap)
        return self._place_on_cleared(entity, cheap, (leaving, here), place)

    def _place_on_cleared(
        self,
        entity: Entity,
        rows: c.Flags,
        units: tuple[Sequence[Unit], Sequence[Unit]],
        place: PlaceAmong,
    ) -> Cleared | None:
        """Place a group on rows without the units, and let those come back that may stay."""
        leaving, staying = units
        # Budgets cover pods on nodes.
        pods = [pod for unit in self._pauses.go_through(staying) for pod in unit.pods]
        costs = find_costs(self._cluster, pods)
        self._pauses.take()
        hours = find_hours(self._cluster, entity, pods)
        self._pauses.take()
        elastic = list_elastic(self._cluster, staying)
        shapes = make_shapes(self._boards, self._keys, entity.members)
        with self._cluster.trial() as trial:
            trial.take_away(*_list_uids(leaving), *_list_uids(staying))
            plan = place(rows)
            if not plan.binds:
                return None
            if elastic:
                staying = choose_extras(staying, elastic, {bind.node for bind in plan.binds})
            each = self._pauses.go_through(staying)
            worth = [find_worth(one, costs, hours) for one in each]
            order = [staying[i] for i in sorted(range(len(worth)), key=worth.__getitem__)]
            self._pauses.take()
            guard = Guard(self._boards, shapes, plan.binds, self._cluster, self._promises)
            gone = put_back(trial, order, guard)
        self._pauses.take()
        return Cleared(plan.binds, gone, sum_costs(self._cluster, gone, hours), rows)

    def _choose_cheap_rows(
        self, entity: Entity, rows: c.Flags, units: Sequence[Unit], places: c.Ints
    ) -> c.Flags | None:
        """Choose the nodes that cost least to clear and have places for the group together; None if all are needed."""
        if not places.size:
            return None
        there, number = self._list_places(units)
        self._pauses.take()
        highest = np.full(self._cluster.nodes.capacity, -(2**62))
        priority = np.array([unit.priority for unit in units], np.int64)
        np.maximum.at(highest, there, priority[number])
        is_group = np.array([is_core(unit) for unit in units], np.bool_)
        n_groups = np.bincount(there[is_group[number]], minlength=highest.size)
        n_units = np.bincount(there, minlength=highest.size)
        self._pauses.take()
        useful = np.flatnonzero(places > 0 if not rows.size else rows & (places > 0))
        costs = find_costs(self._cluster, [pod for unit in units for pod in unit.pods])
        cost = np.array([sum(costs[pod.uid] for pod in unit.pods) for unit in units], np.int64)
        budgets = np.bincount(there, cost[number], minlength=highest.size)
        by_cost = self._cluster.nodes.columns.rank, n_units, n_groups, highest, budgets
        order = useful[np.lexsort([one[useful] for one in by_cost])]
        enough = np.cumsum(places[order]) >= len(entity.members)
        if not enough.any():
            return None
        n = int(enough.argmax()) + 1
        if n == order.size:
            return None
        chosen = np.zeros(highest.size, np.bool_)
        chosen[order[:n]] = True
        return chosen

    def _list_units_on(self, units: Sequence[Unit], rows: c.Flags) -> list[Unit]:
        """List the units with a pod on one of the rows, and the extra pods, wherever they are, of groups among them."""
        there, number = self._list_places(units)
        is_on = np.zeros(len(units), np.bool_)
        is_on[number[rows[there]]] = True
        pairs = list(zip(units, is_on.tolist(), strict=True))
        broken = {unit.group for unit, is_here in pairs if is_here and is_core(unit)}
        return [
            unit for unit, is_here in pairs if is_here or (unit.is_extra and unit.group in broken)
        ]

    def _list_places(self, units: Sequence[Unit]) -> tuple[c.Ints, c.Ints]:
        """List each node of each unit once: [k] the rows of the nodes, and [k] the numbers of the units."""
        pods = np.array([pod.row for unit in units for pod in unit.pods], np.int64)
        number = np.repeat(np.arange(len(units)), [len(unit.pods) for unit in units])
        there = self._cluster.ledger.pods.columns.node[pods]
        pairs = np.unique((there * (len(units) + 1) + number)[there >= 0])
        return np.divmod(pairs, len(units) + 1)

    def _find_cheaper(
        self,
        entity: Entity,
        found: Cleared,
        units: tuple[Sequence[Unit], Sequence[Unit]],
        place: PlaceAmong,
    ) -> Cleared:
        """Try the sets of units that cost less than those found, the cheapest first; ``units`` leave anyway, or may stay.

        The units that came back did so beside one placement of the group. Another placement may need cheaper ones.
        """
        leaving, staying = units
        hours = find_hours(self._cluster, entity, [pod for unit in staying for pod in unit.pods])
        sets = [
            (sum_costs(self._cluster, chosen, hours), chosen)
            for chosen in list_sets(staying, list_elastic(self._cluster, staying))
        ]
        cheaper = sorted(
            (one for one in sets if is_better(*one, found, staying)), key=lambda one: one[0]
        )
        for cost, chosen in self._leave_out_hopeless(entity, cheaper, found, leaving, place):
            with self._cluster.trial() as trial:
                trial.take_away(*_list_uids(leaving), *_list_uids(chosen))
                plan = place(found.rows)
                if plan.binds:
                    return Cleared(plan.binds, chosen, cost, found.rows)
        return found

    def _leave_out_hopeless(
        self,
        entity: Entity,
        sets: Sequence[tuple[Cost, tuple[Unit, ...]]],
        found: Cleared,
        leaving: Sequence[Unit],
        place: PlaceAmong,
    ) -> Sequence[tuple[Cost, tuple[Unit, ...]]]:
        """Leave out the sets without pods that have to go: the group does not fit beside them even if all others go.

        This holds unless the group wants pods near it, or spreads itself among pods.
        """
        alike = find_alike(sets)
        shapes = make_shapes(self._boards, self._keys, entity.members).values()
        if len(sets) <= len(alike) or any(one is None or one.view is not ALONE for one in shapes):
            return sets[:_TRIES_MAX]
        kept = set(range(len(sets)))
        for stay, within in alike.items():
            others = [uid for uids in alike if uids != stay for uid in uids]
            with self._cluster.trial() as trial:
                trial.take_away(*_list_uids(leaving), *others)
                if not place(found.rows).binds:
                    kept &= within
        return [sets[i] for i in sorted(kept)][:_TRIES_MAX]

    def _list_pods(self, entity: Entity, rows: c.Flags) -> list[PodRecord]:
        """List the pods on some rows that are not the group's own."""
        own = {pod.uid for leaf in entity.team.list_leaves() for pod in (*leaf.pods, *leaf.there)}
        cluster = self._cluster
        names = map(cluster.nodes.find_name, np.flatnonzero(rows).tolist())
        return [
            pod
            for name in (names if rows.size else cluster.nodes.rows)
            for pod in cluster.pods_on.get(name, {}).values()
            if pod.uid not in own
        ]


def _list_uids(units: Sequence[Unit]) -> list[str]:
    return [pod.uid for unit in units for pod in unit.pods]
