"""A search over nodes and cards for a group that did not fit at the first try, bounded by counted work.

The first try takes no choice back. The search does: the pods of all parts come one after another, those that ask most
first, each in every way; what was found to lead nowhere is not tried again. Pods whose place depends on others of the
group are tried before and after these.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from scheduler.api.door.decisions import Bind
from scheduler.placing.groups.needs import MEMBERS_MAX, Needs, narrow_down
from scheduler.placing.groups.turns import Turn, Turns
from scheduler.placing.groups.ways import Way, Ways
from scheduler.schema import columns as c
from scheduler.schema.world import ANYWHERE
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord

# A try takes so many times as long where a pod requires others near it.
_WORK_NEAR = 4


def search_ways(
    cluster: Cluster,
    ways: Ways,
    needs: Needs,
    get_places: Callable[[PodRecord], c.Ints],
    among: c.Flags,
    *,
    leaves_half: bool,
) -> list[Bind]:
    """Place what is needed, in the open trial; nothing if that is impossible, would take too long, or is not needed.

    Args:
        cluster: the cluster.
        ways: the ways to place a pod.
        needs: what is needed.
        get_places: counts [N] how many pods like one fit on each node at most.
        among: [N] the only nodes that may be chosen; [0] for all.
        leaves_half: whether half of the work of this call is left to a wider search.
    """
    if needs.n_pods > MEMBERS_MAX or ways.is_spent:
        return []
    rows = _list_rows(cluster, among)
    able = narrow_down(needs, get_places, among)
    if able is None or not _have_room(cluster, able, rows):
        return []
    return _Search(cluster, ways, rows, able, leaves_half=leaves_half).find()


class _Search:
    """One search for places for what a team needs, among some rows."""

    def __init__(
        self, cluster: Cluster, ways: Ways, rows: c.Ints, needs: Needs, *, leaves_half: bool
    ) -> None:
        self._cluster, self._ways, self._needs = cluster, ways, needs
        self._leaves_half = leaves_half
        self._turns = Turns(cluster, needs)
        self._placed = [0] * len(needs.parts)
        # The domain that the pods of each bound share; -1 until one is placed.
        self._chosen = [-1] * len(needs.bounds)
        self._alike = ways.find_alike(
            self._turns.list_pods(), rows, [bound.domain for bound in needs.bounds]
        )
        self._dead: set[Hashable] = set()

    def find(self) -> list[Bind]:
        """Place what is needed; nothing if that is impossible, or takes too long."""
        return self._place_rest() or []

    def _place_rest(self) -> list[Bind] | None:
        """Place what is needed of the pods that have not had their turn."""
        verdict = self._needs.judge(self._placed, self._turns.count_left())
        if verdict.is_met:
            return []
        if not verdict.can_be_met:
            return None
        state = *self._turns.at, *self._placed, *self._chosen, self._alike.describe_taken()
        if state in self._dead:
            return None
        upcoming = self._turns.list_next()
        for turn in upcoming.turns:
            part = self._needs.parts[turn.part]
            if self._placed[turn.part] >= part.least and not self._turns.is_wanted(turn):
                continue
            for way in self._ways.list_ways(turn.pod, self._alike, self._find_usable(part.bounds)):
                if self._ways.is_half_spent if self._leaves_half else self._ways.is_spent:
                    return None
                found = self._place_in(way, turn)
                if found is not None:
                    return found
        found = self._leave_out(upcoming.lanes) if upcoming.lanes else None
        if found is None:
            self._dead.add(state)
        return found

    def _leave_out(self, lanes: list[int]) -> list[Bind] | None:
        """Place what is needed without the next pods of some lanes, and those like them."""
        at = [*self._turns.at]
        self._turns.leave_out(lanes)
        found = self._place_rest()
        self._turns.at = at
        return found

    def _place_in(self, way: Way, turn: Turn) -> list[Bind] | None:
        """Place one pod in one way, and the others as they fit."""
        self._cluster.pauses.take()
        self._ways.spent += _WORK_NEAR if self._turns.want_each_other else 1
        begins = [i for i in self._needs.parts[turn.part].bounds if self._chosen[i] < 0]
        with self._cluster.trial() as trial:
            bind = self._ways.put(turn.pod, way)
            self._alike.take(way.row, turn.kind)
            self._placed[turn.part] += 1
            self._turns.take(turn)
            for i in begins:
                self._chosen[i] = int(self._needs.bounds[i].domain[way.row])
            found = self._place_rest()
            for i in begins:
                self._chosen[i] = -1
            self._turns.release(turn)
            self._placed[turn.part] -= 1
            self._alike.release(way.row)
            if found is None:
                return None
            trial.commit()
        return [bind, *found]

    def _find_usable(self, bounds: tuple[int, ...]) -> c.Flags:
        """Find [N] the rows that bounds leave to the next pod; [0] for all."""
        usable = ANYWHERE
        for i in bounds:
            domain, chosen = self._needs.bounds[i].domain, self._chosen[i]
            mine = domain >= 0 if chosen < 0 else domain == chosen
            usable = usable & mine if usable.size else mine
        return usable


def _list_rows(cluster: Cluster, among: c.Flags) -> c.Ints:
    """List the rows of nodes, or those of them that may be chosen."""
    valid = cluster.nodes.columns.valid
    return np.flatnonzero(valid & among if among.size else valid)


def _have_room(cluster: Cluster, needs: Needs, rows: c.Ints) -> bool:
    """Whether rows together have as much of each resource free as the pods that ask least of it request."""
    nodes = cluster.nodes.columns
    if cluster.nodes.find_any_managed()[rows].any():
        return True
    wanted: dict[int, int] = {}
    for part in needs.list_musts():
        asked: dict[int, list[int]] = {}
        for pod in part.pods:
            for name, amount in pod.template.requests.amounts:
                row = cluster.nodes.resources.find(name)
                if row >= 0:
                    asked.setdefault(row, []).append(amount)
        for row, amounts in asked.items():
            # Pods that do not request it ask for nothing of it.
            each = sorted([0] * (len(part.pods) - len(amounts)) + amounts)
            wanted[row] = wanted.get(row, 0) + sum(each[: part.least])
    for row, amount in wanted.items():
        free = nodes.allocatable[row, rows] - nodes.requested[row, rows]
        if int(np.maximum(free, 0).sum()) < amount:
            return False
    return True
