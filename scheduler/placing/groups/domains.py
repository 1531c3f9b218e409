"""The domains of a topology: which nodes belong together at each level."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduler.api import names
from scheduler.placing.groups import choosing
from scheduler.placing.groups.within import find_lost_within
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Team


class Level(NamedTuple):
    """The domains of one level.

    Attributes:
        domain: [N] the number of each node's domain; -1 for a node that lacks the label of this level or of one above.
        names: the values of the labels by which each domain is named, from the widest level on.
        parent: [domains] the number of the domain of the level above within which each lies; 0 at the widest level.
    """

    domain: c.Ints
    names: tuple[tuple[str, ...], ...]
    parent: c.Ints


class Domains:
    """The levels that groups have named since labels of nodes changed last."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._made_at = -1
        self._made: dict[tuple[str, ...], Level] = {}

    def get_level(self, labels: tuple[str, ...]) -> Level:
        """Return the domains of the last of these labels: nodes that share the values of all of them are a domain."""
        position = self._cluster.described.position
        if self._made_at != position:
            self._made, self._made_at = {}, position
        found = self._made.get(labels)
        if found is None:
            found = self._made[labels] = self._make_level(labels)
        return found

    def look_around(
        self,
        labels: tuple[str, ...],
        places: c.Ints,
        wanted: int,
        on_nodes: c.Ints | None,
        among: c.Flags,
    ) -> choosing.Around:
        """Look at the levels around one: the wider and the narrower ones that the cluster has.

        Args:
            labels: the labels down to the level.
            places: [domains] how many pods of a group fit in each domain of the level.
            wanted: how many pods the group has.
            on_nodes: [N] how many fit on each node, if its pods are alike; else narrower levels do not count.
            among: [N] the only nodes that count; [0] for all.
        """
        outer = [
            np.bincount(lies, places, lies.max() + 1).astype(np.int64)[lies]
            for lies in self._list_outer(labels)
        ]
        inner = self.list_inner(labels)
        if not inner or on_nodes is None:
            return choosing.Around(outer)
        level = self.get_level((*labels, inner[0]))
        within = choosing.sum_places(on_nodes, level.domain, len(level.names), among)
        lost = find_lost_within(within, level.parent, places.size, wanted)
        return choosing.Around(outer, max(1, int(within.max(initial=0))), lost)

    def _list_outer(self, labels: tuple[str, ...]) -> list[c.Ints]:
        """List the wider levels of the cluster, the narrowest first: [domains] the domain within which each domain of a level lies.

        Only levels count of which each domain of the level lies within one domain, and of which a domain has several.
        """
        default = self._cluster.groups.default_labels
        if labels[-1] not in default:
            return []
        level, found = self.get_level(labels), []
        for at in range(default.index(labels[-1]) - 1, -1, -1):
            above = self._cluster.nodes.get_label_column(default[at])
            rows = np.flatnonzero(level.domain >= 0)
            lies = np.full(len(level.names), -1, np.int64)
            lies[level.domain[rows]] = above[rows]
            if rows.size and (lies[level.domain[rows]] == above[rows]).all() and lies.min() >= 0:
                found.append(lies)
        return found

    def list_inner(self, labels: tuple[str, ...]) -> tuple[str, ...]:
        """List the labels of the narrower levels of the cluster, the widest first, down to the level above single nodes.

        Without ``labels`` these are all levels above single nodes.
        """
        default = self._cluster.groups.default_labels
        if labels and labels[-1] not in default:
            return ()
        nodes = self._cluster.nodes
        inner = default[default.index(labels[-1]) + 1 :] if labels else default
        return tuple(one for one in inner if one != names.HOSTNAME and nodes.has_label(one))

    def is_one_domain(self, rows: list[int]) -> bool:
        """Whether rows are one, or all in one domain of the narrowest level above nodes that the cluster has."""
        labels = self.list_inner(())
        if len(rows) <= 1 or not labels:
            return True
        there = self.get_level(labels).domain[rows]
        return bool((there == there[0]).all()) and int(there[0]) >= 0

    def find_near(self, rows: list[int], among: c.Flags) -> c.Flags:
        """Find [N] the nodes in the same domains as some rows, of the narrowest level above nodes, and the rows.

        ``among`` [N]: the only nodes that count; [0] for all.
        """
        near = np.zeros(self._cluster.nodes.capacity, np.bool_)
        if labels := self.list_inner(()):
            domain = self.get_level(labels).domain
            near = np.isin(domain, domain[rows]) & (domain >= 0)
        near[rows] = True
        return near & among if among.size else near

    def _make_level(self, labels: tuple[str, ...]) -> Level:
        nodes = self._cluster.nodes
        own = nodes.get_label_column(labels[-1])
        if len(labels) > 1:
            above = self.get_level(labels[:-1])
            outer, outer_names = above.domain, above.names
        else:
            outer, outer_names = np.zeros(nodes.capacity, np.int64), ((),)
        rows = np.flatnonzero(nodes.columns.valid & (own >= 0) & (outer >= 0))
        # Domains are numbered by their names, so that equal clusters number them equally.
        values = nodes.label_values.values
        pairs, inverse = np.unique(np.stack((outer[rows], own[rows])), axis=1, return_inverse=True)
        words = [(*outer_names[above], values[value]) for above, value in pairs.T.tolist()]
        order = sorted(range(len(words)), key=words.__getitem__)
        place = np.empty(len(words), np.int64)
        place[order] = np.arange(len(words))
        domain = np.full(nodes.capacity, -1, np.int64)
        domain[rows] = place[inverse.ravel()]
        return Level(domain, tuple(words[i] for i in order), pairs[0][order])


def find_domains_there(cluster: Cluster, team: Team, domain: c.Ints) -> set[int]:
    """Find the domains in which pods of a team are already; -1 for nodes in no domain."""
    nodes, pods = cluster.nodes, cluster.pods
    there = (
        nodes.find_row(pods[pod.uid].node)
        for leaf in team.list_leaves()
        for pod in (*leaf.there, *leaf.pods)
        if pods[pod.uid].node
    )
    return {int(domain[row]) for row in there if row >= 0}
