"""Who may go from places: units, each of which goes as a whole or stays. Today a place is a node, and a unit a pod."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.disruption import protectors
from scheduler.kernels import preempt as kernel
from scheduler.schema import columns as c
from scheduler.schema import preempting as p
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord

# Of so few nodes the pods are found by name in less time than those of all nodes.
_FEW = 8


def find_units(cluster: Cluster, asker: PodRecord, rows: c.Ints) -> tuple[p.Units, int]:
    """Find whom protectors let go for a pod from node rows [n], and at what cost.

    Returns:
        The units, and the work that it took to find the costs, in nodes that are asked.
    """
    first, pods = _list_pods(cluster, rows)
    may_go = protectors.find_who_may_go(cluster, asker, pods)
    units = _gather(cluster, rows, (first, pods), may_go)
    return units, protectors.add_costs(cluster, units)


def find_costs(cluster: Cluster, pods: Sequence[PodRecord]) -> dict[str, int]:
    """Find by uid what protectors say that it costs if pods go together, by whomever they are sent away."""
    if not protectors.has_costs(cluster):
        return dict.fromkeys([pod.uid for pod in pods], 0)
    rows, costs = find_costs_of_rows(cluster, np.array([pod.row for pod in pods], np.int64))
    uid_of = {pod.row: pod.uid for pod in cluster.pauses.go_through(pods)}
    return {uid_of[row]: cost for row, cost in zip(rows.tolist(), costs.tolist(), strict=True)}


def find_costs_of_rows(cluster: Cluster, rows: c.Ints) -> tuple[c.Ints, c.Ints]:
    """Find what protectors say that it costs if the pods of rows [k] go together: [k] the rows in order, [k] the costs."""
    table = cluster.ledger.pods.columns
    # The kernel sorts by insertion: thousands of pods on one place have to come to it in order.
    rows = rows[np.lexsort((table.start[rows], -table.priority[rows]))]
    first = np.array([0, rows.size], np.int64)
    # All pods count as on one place; -1 is the row of no node.
    units = _gather(cluster, np.array([-1]), (first, rows), np.ones(rows.size, np.bool_))
    protectors.add_costs(cluster, units)
    return units.pods, units.cost


def find_unit_costs(cluster: Cluster, units: Sequence[Sequence[PodRecord]]) -> list[int]:
    """Find what protectors say that each unit costs if all go, the most important of them first."""
    begins = np.cumsum([0, *map(len, units)], dtype=np.int64)
    found = p.Units(
        rows=np.array([-1]),
        first=np.array([0, len(units)], np.int64),
        begins=begins,
        pods=np.array([pod.row for unit in units for pod in unit], np.int64),
        cost=np.zeros(len(units), np.int64),
    )
    protectors.add_costs(cluster, found)
    costs: list[int] = found.cost.tolist()
    return costs


def find_costs_alone(cluster: Cluster, pods: c.Ints) -> c.Ints:
    """Find [k] what protectors say that it costs if the pod of a row goes and all others stay, for each row."""
    places = np.arange(pods.size + 1)
    # Each pod counts as on a place of its own; -1 is the row of no node.
    found = p.Units(
        rows=np.full(pods.size, -1, np.int64),
        first=places,
        begins=places,
        pods=pods,
        cost=np.zeros(pods.size, np.int64),
    )
    protectors.add_costs(cluster, found)
    return found.cost


def _gather(
    cluster: Cluster, rows: c.Ints, there: tuple[c.Ints, c.Ints], may_go: c.Flags
) -> p.Units:
    """The pods that may go as units; ``there`` is as ``_list_pods`` answers."""
    most = int(may_go.sum())
    units = p.Units(
        rows=rows,
        first=np.zeros(rows.size + 1, np.int64),
        begins=np.zeros(most + 1, np.int64),
        pods=np.zeros(most, np.int64),
        cost=np.zeros(most, np.int64),
    )
    kernel.gather_units(cluster.ledger.tables, *there, may_go, units)
    return units


def _list_pods(cluster: Cluster, rows: c.Ints) -> tuple[c.Ints, c.Ints]:
    """[n + 1] where the pods of each row begin, and [k] their rows in the pod table, in order."""
    first = np.zeros(rows.size + 1, np.int64)
    if rows.size <= _FEW:
        found: list[int] = []
        for i, row in enumerate(rows.tolist(), 1):
            there = cluster.pods_on.get(cluster.nodes.find_name(row), {})
            found += sorted(pod.row for pod in there.values())
            first[i] = len(found)
        return first, np.array(found, np.int64)
    node = cluster.ledger.pods.columns.node
    place_of = np.full(cluster.nodes.capacity, -1, np.int64)
    place_of[rows] = np.arange(rows.size)
    pods = np.zeros(node.size, np.int64)
    kernel.sort_by_place(node, place_of, first, pods)
    return first, pods[: int(first[-1])]
