"""The table of what protects pods on nodes from those that need their place. A line says who may go, or at what cost.

Only this room decides by priority which running pods may go.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from scheduler.kernels import preempt as kernel
from scheduler.schema import columns as c
from scheduler.schema import preempting as p
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord

# Budgets of that many pods are looked at together.
_PODS_A_PART = 1024
# So many budgets of pods take as long as a node.
_BUDGETS_A_NODE = 2048


class Protector:
    """A line of the table. A line that overrides none of these functions protects no pod."""

    def find_who_may_go(self, cluster: Cluster, asker: PodRecord, pods: c.Ints) -> c.Flags | None:
        """[k] whether pods of the pod table may go for another pod at all; None: all of them."""
        del cluster, asker, pods
        return None

    def has_costs(self, cluster: Cluster) -> bool:
        """Whether it may say of any pod that its going costs something."""
        del cluster
        return False

    def add_costs(self, cluster: Cluster, units: p.Units) -> int:
        """Add to the cost of units; how much work it was, in nodes that are asked."""
        del cluster, units
        return 0

    def get_version(self, cluster: Cluster) -> int:
        """Return a number that rises when the line may say something else of pods that have not moved."""
        del cluster
        return 0

    def find_changed(self, cluster: Cluster, version: int) -> list[int] | None:
        """Rows of the pods of which it may say something else since a version; None when nobody knows any more."""
        del cluster, version
        return []


class Priority(Protector):
    """A pod goes only for one of a higher priority."""

    def find_who_may_go(self, cluster: Cluster, asker: PodRecord, pods: c.Ints) -> c.Flags:
        """[k] whether their priority is lower."""
        found: c.Flags = cluster.ledger.pods.columns.priority[pods] < asker.priority
        return found


class Budgets(Protector):
    """Whoever violates a PodDisruptionBudget goes only where nobody else can."""

    def has_costs(self, cluster: Cluster) -> bool:
        """Whether there is a budget."""
        return bool(len(cluster.budgets))

    def add_costs(self, cluster: Cluster, units: p.Units) -> int:
        """1 for each pod of a unit whose going violates a budget."""
        if not len(cluster.budgets) or not units.pods.size:
            return 0
        may_go = set(units.pods.tolist())
        size = cluster.ledger.pods.columns.node.size
        most = int(np.diff(units.begins[units.first]).max())
        work = 0
        for begin, end in _split_places(units):
            # The pods of a place need not be on one node.
            there = units.pods[units.begins[units.first[begin]] : units.begins[units.first[end]]]
            rows = np.unique(cluster.ledger.pods.columns.node[there])
            names = (cluster.nodes.find_name(row) for row in rows.tolist())
            pods = [
                pod
                for name in names
                for pod in cluster.pods_on.get(name, {}).values()
                if pod.row in may_go
            ]
            sets = cluster.budgets.make_sets(pods, size, most)
            kernel.use_up_budgets(units, begin, end, sets)
            work += sets.budgets.size // _BUDGETS_A_NODE
        return work

    def get_version(self, cluster: Cluster) -> int:
        """Return the version of the budgets."""
        return cluster.budgets.figures

    def find_changed(self, cluster: Cluster, version: int) -> list[int] | None:
        """Rows of the pods whose budgets may say something else."""
        return cluster.budgets.list_rows_since(version)


class Gangs(Protector):
    """No pod goes alone that its group needs: a pod by itself takes nothing from a gang but extra pods."""

    def find_who_may_go(self, cluster: Cluster, asker: PodRecord, pods: c.Ints) -> c.Flags | None:
        """[k] whether their groups do not need them."""
        del asker
        if not cluster.groups.have_pods:
            return None
        kept = cluster.groups.kept.find_rows(cluster.ledger.pods.columns.node.size)
        found: c.Flags = ~kept[pods]
        return found

    def get_version(self, cluster: Cluster) -> int:
        """Return the version of what groups need."""
        return cluster.groups.kept.changed.position

    def find_changed(self, cluster: Cluster, version: int) -> list[int] | None:
        """Rows of the pods that may go or not go now."""
        rows = cluster.groups.kept.changed.list_since(version)
        return None if rows is None else rows.tolist()


TABLE: tuple[Protector, ...] = (Priority(), Gangs(), Budgets())


def find_who_may_go(cluster: Cluster, asker: PodRecord, pods: c.Ints) -> c.Flags:
    """[k] whether every line lets pods of the pod table go for another pod."""
    found = np.ones(pods.size, np.bool_)
    for one in TABLE:
        if (may_go := one.find_who_may_go(cluster, asker, pods)) is not None:
            found &= may_go
    return found


def has_costs(cluster: Cluster) -> bool:
    """Whether any line may say of a pod that its going costs something."""
    return any(one.has_costs(cluster) for one in TABLE)


def add_costs(cluster: Cluster, units: p.Units) -> int:
    """Add what all lines say that the going of units costs; how much work it was, in nodes that are asked."""
    return sum(one.add_costs(cluster, units) for one in TABLE)


def get_versions(cluster: Cluster) -> tuple[int, ...]:
    """The version of each line."""
    return tuple(one.get_version(cluster) for one in TABLE)


def find_changed(cluster: Cluster, versions: tuple[int, ...]) -> list[int] | None:
    """Rows of the pods of which a line may say something else since then; None when nobody knows any more."""
    found: list[int] = []
    for one, version in zip(TABLE, versions, strict=True):
        changed = one.find_changed(cluster, version)
        if changed is None:
            return None
        found += changed
    return found


def find_lowest_priority(cluster: Cluster, rows: c.Ints | None = None) -> int:
    """The lowest priority of a pod on some node rows, or on any; above every priority where there is none."""
    pods = cluster.ledger.pods.columns
    there = pods.node >= 0
    if rows is not None:
        there &= np.isin(pods.node, rows)
    return int(pods.priority[there].min()) if there.any() else p.NO_PRIORITY


def list_kept_priorities(cluster: Cluster, priority: int) -> list[int]:
    """List the priorities of pods on nodes that do not go for a pod of this priority, the lowest first."""
    pods = cluster.ledger.pods.columns
    known = np.unique(pods.priority[pods.node >= 0])
    return [one for one in known.tolist() if not outranks(priority, one)]


def outranks(priority: int, other: int) -> bool:
    """Whether a pod that runs, of the other priority, may go for a pod of a priority."""
    return other < priority


def find_outranked(cluster: Cluster, priority: int) -> c.Flags:
    """Find [P] which rows of the pod table have pods that may go, by their priority, for a pod of a priority."""
    found: c.Flags = cluster.ledger.pods.columns.priority < priority
    return found


def _split_places(units: p.Units) -> Iterator[tuple[int, int]]:
    """The places in parts, from one to before another, on which there are so many pods: any budget may count of each."""
    pods = units.begins[units.first]
    parts = np.flatnonzero(np.diff(pods[1:] // _PODS_A_PART)) + 1
    ends = [*parts.tolist(), units.rows.size]
    yield from zip([0, *ends[:-1]], ends, strict=True)
