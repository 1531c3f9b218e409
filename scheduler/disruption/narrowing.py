"""Which nodes of a large place are worth a search for room, by amounts and priorities alone.

A search takes pods from their nodes, one unit after another. A place with thousands of pods is narrowed down first: to the
nodes that would have room for a pod of the group, and of these to the ones that cost least to clear.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.disruption import protectors
from scheduler.disruption.units import find_costs_of_rows
from scheduler.placing.groups.bounds import Bounds
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Entity, list_kinds
from scheduler.state.pods import PodRecord

# Of the cheapest nodes, the places for so many times the pods of the group are kept: not every node takes as many pods as
# its amounts say, and some pods do not go though their priority is lower.
_SPARE = 1.25


class Narrowing:
    """Narrows places down for one cluster.

    Attributes:
        bounds: how many pods fit at most.
    """

    def __init__(self, cluster: Cluster, bounds: Bounds) -> None:
        self._cluster, self.bounds = cluster, bounds

    def narrow_place(self, entity: Entity, rows: c.Flags) -> c.Flags | None:
        """Choose [N] the nodes of a place that are worth a search; None if the group does not fit there in any case.

        Args:
            entity: the group.
            rows: [N] the nodes of the place, [0] for all nodes.

        Returns:
            The nodes; ``rows`` itself if all are, or amounts do not say which.
        """
        pods, there = self._list_outranked(entity, rows)
        kinds = list_kinds(entity.members)
        if len(kinds) > 1 and not self.bounds.have_enough_without(entity, rows, pods):
            return None
        counts = self._count_places(kinds, rows, pods)
        if counts is None:
            return rows
        if not _are_enough(entity, kinds, counts):
            return None
        order = self._order_by_cost(pods, there)
        chosen = np.zeros(self._cluster.nodes.capacity, np.bool_)
        for like, places in zip(kinds, counts, strict=True):
            useful = order[places[order] > 0]
            enough = np.cumsum(places[useful]) >= _SPARE * len(like)
            chosen[useful[: int(enough.argmax()) + 1] if enough.any() else useful] = True
        return chosen

    def could_fit(self, entity: Entity, rows: c.Flags, pods: c.Ints) -> bool:
        """Whether a group may fit on some rows, [0] for all, without the pods [k]; False only if it certainly does not."""
        kinds = list_kinds(entity.members)
        if len(kinds) > 1 and not self.bounds.have_enough_without(entity, rows, pods):
            return False
        counts = self._count_places(kinds, rows, pods)
        return counts is None or _are_enough(entity, kinds, counts)

    def _count_places(
        self, kinds: Sequence[Sequence[PodRecord]], rows: c.Flags, pods: c.Ints
    ) -> list[c.Ints] | None:
        """Count [N] for each kind of pods how many fit on some rows without other pods; None if amounts do not say so."""
        counts = self.bounds.count_without(kinds, pods)
        if counts is None or not rows.size:
            return counts
        return [np.where(rows, places, 0) for places in counts]

    def _list_outranked(self, entity: Entity, rows: c.Flags) -> tuple[c.Ints, c.Ints]:
        """List [k] the rows of pods that may go or are leaving, and [k] the rows of their nodes."""
        cluster = self._cluster
        table = cluster.ledger.pods.columns
        chosen = protectors.find_outranked(cluster, entity.priority)
        chosen[self._list_leaving()] = True
        own = (pod for leaf in entity.team.list_leaves() for pod in (*leaf.pods, *leaf.there))
        chosen[[pod.row for pod in own if pod.row >= 0]] = False
        chosen &= table.node >= 0
        pods = np.flatnonzero(chosen)
        there = table.node[pods]
        if rows.size:
            pods, there = pods[rows[there]], there[rows[there]]
        return pods, there

    def _list_leaving(self) -> list[int]:
        """List the rows of pods on nodes that are being deleted."""
        pods = (self._cluster.pods[uid] for uid in self._cluster.roster.leaving)
        return [pod.row for pod in pods if pod.row >= 0]

    def _order_by_cost(self, pods: c.Ints, there: c.Ints) -> c.Ints:
        """Order the nodes by what it costs to clear them: by budgets, the highest priority, groups, the number of pods."""
        nodes, table = self._cluster.nodes, self._cluster.ledger.pods.columns
        # Who is leaving leaves in any case.
        stays = ~np.isin(pods, self._list_leaving())
        pods, there = pods[stays], there[stays]
        highest = np.full(nodes.capacity, -(2**62))
        np.maximum.at(highest, there, table.priority[pods])
        in_group = self._cluster.groups.kept.find_rows(table.node.size)
        has_group = np.zeros(nodes.capacity, np.bool_)
        has_group[there[in_group[pods]]] = True
        n_pods = np.bincount(there, minlength=nodes.capacity)
        budgets: c.Ints | c.Floats = np.zeros(nodes.capacity)
        if protectors.has_costs(self._cluster):
            rows, costs = find_costs_of_rows(self._cluster, pods)
            budgets = np.bincount(table.node[rows], costs, nodes.capacity)
        order: c.Ints = np.lexsort((nodes.columns.rank, n_pods, has_group, highest, budgets))
        return order


def _are_enough(
    entity: Entity, kinds: Sequence[Sequence[PodRecord]], counts: Sequence[c.Ints]
) -> bool:
    """Whether there are as many places for each kind of pods as a group needs of it."""
    most = {id(like[0].template): int(n.sum()) for like, n in zip(kinds, counts, strict=True)}
    return all(most[id(pod.template)] >= n for pod, n in entity.team.list_needs())
