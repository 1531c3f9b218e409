"""A search over nodes and cards for a group that did not fit at the first try, bounded by counted work.

The first try takes no choice back. The search does: members come one after another, those that ask most first, each in
every way; what was found to lead nowhere is not tried again.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from scheduler.api.door.decisions import Bind
from scheduler.placing.groups.alike import AlikeRows
from scheduler.placing.groups.ways import Ways
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord

# Larger groups are not searched for.
MEMBERS_MAX = 16


class Search:
    """One search for places for pods among some rows."""

    def __init__(self, cluster: Cluster, ways: Ways, rows: c.Ints) -> None:
        self._cluster, self._ways, self._rows = cluster, ways, rows
        self._dead: set[Hashable] = set()

    def find(self, pods: list[PodRecord], least: int) -> list[Bind] | None:
        """Place at least so many of the pods, in the open trial; None if that is impossible, or takes too long."""
        alike = self._ways.find_alike(pods, self._rows)
        return self._place_rest(sorted(pods, key=_find_size), least, alike)

    def _place_rest(self, pods: list[PodRecord], least: int, alike: AlikeRows) -> list[Bind] | None:
        if least <= 0:
            return []
        if len(pods) < least:
            return None
        state = len(pods), least, alike.describe_taken()
        if state in self._dead:
            return None
        first, *rest = pods
        for way in self._ways.list_ways(first, alike):
            if self._ways.is_spent:
                return None
            self._ways.spent += 1
            with self._cluster.trial() as trial:
                bind = self._ways.put(first, way)
                alike.take(way.row)
                found = self._place_rest(rest, least - 1, alike)
                alike.release(way.row)
                if found is not None:
                    trial.commit()
                    return [bind, *found]
        found = self._place_rest(rest, least, alike)
        if found is None:
            self._dead.add(state)
        return found


def list_rows(cluster: Cluster, among: c.Flags) -> c.Ints:
    """List the rows of nodes, or those of them that may be chosen."""
    valid = cluster.nodes.columns.valid
    return np.flatnonzero(valid & among if among.size else valid)


def have_room(cluster: Cluster, pods: list[PodRecord], least: int, rows: c.Ints) -> bool:
    """Whether rows together have as much of each resource free as the pods that ask least of it request."""
    nodes = cluster.nodes.columns
    asked: dict[int, list[int]] = {}
    for pod in pods:
        for name, amount in pod.template.requests.amounts:
            row = cluster.nodes.resources.find(name)
            if row >= 0 and not nodes.managed[:, rows].any():
                asked.setdefault(row, []).append(amount)
    for row, amounts in asked.items():
        # Pods that do not request it ask for nothing of it.
        wanted = sorted([0] * (len(pods) - len(amounts)) + amounts)[:least]
        free = nodes.allocatable[row, rows] - nodes.requested[row, rows]
        if int(np.maximum(free, 0).sum()) < sum(wanted):
            return False
    return True


def _find_size(pod: PodRecord) -> tuple[int, ...]:
    """Return a key that puts the pod first that asks most: of cards, then of everything."""
    gpu = pod.template.gpu
    n_cards = sum(one.cards for one in gpu.containers) if gpu is not None else 0
    amounts = [amount for _, amount in pod.template.requests.amounts]
    return -n_cards, -sum(amounts), pod.order
