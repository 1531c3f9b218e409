"""What is known of devices and of the pods that wait for them, in a form in which two clusters can be compared."""

from __future__ import annotations

from typing import Any

from scheduler.cycle.schedule import Cycle
from scheduler.schema import devices as d
from scheduler.state.cluster import Cluster
from scheduler.state.pods import Life, PodRecord


def list_waiting(cluster: Cluster) -> list[PodRecord]:
    return [pod for pod in cluster.pods.values() if pod.life == Life.PENDING]


def list_offers(cluster: Cluster) -> dict[str, Any]:
    """By node what a class serves there, and the amounts of all resources."""
    found = {}
    for name, row in cluster.nodes.rows.items():
        resources = [one for one in cluster.nodes.resources.values if one]
        at = {one: cluster.nodes.resources.find(one) for one in resources}
        columns = cluster.nodes.columns
        amounts = {one: (int(columns.allocatable[i, row]), bool(columns.by_class[i, row])) for one, i in at.items()}  # fmt: skip
        facts = cluster.nodes.facts[row]
        found[name] = facts and facts.by_class, {k: v for k, v in amounts.items() if any(v)}
    return found


def find_fits(cluster: Cluster, cycle: Cycle) -> dict[str, set[str]]:
    """By waiting pod the nodes that could take it, as the boards have them that the cycle keeps."""
    found = {}
    # Brings ranks and tables up to date.
    cycle.schedule([])
    for pod in list_waiting(cluster):
        key = cycle.keys.make_key(pod)
        assert key is not None
        if key.refusal is None:
            shape = cycle.boards.get_shape(key)
            cycle.boards.refresh(shape)
            rows = cluster.nodes.rows.items()
            found[pod.uid] = {name for name, row in rows if shape.board.key[row] >= 0}
    return found


def take_fingerprint(cluster: Cluster) -> dict[str, Any]:
    """All that the columns say, by names in the place of rows."""
    claims, found = cluster.claims, dict[str, Any]()
    columns, table = claims.table.columns, claims.table
    for name, row in cluster.nodes.rows.items():
        there: list[Any] = []
        first, n = columns.spans_of[:, row].tolist()
        for start, count in columns.spans[first : first + n].tolist():
            for device in range(start, start + count):
                reach = int(columns.reach[device])
                if reach < 0 or columns.reaches[reach, row]:
                    there.append(_describe(cluster, device))
        found[name] = there, bool(columns.unsure[row]), claims.inventory.problems.get(row, ())
    found["given"] = {key: claims.find_given(key) for key in claims.claims}
    del table
    return found


def _describe(cluster: Cluster, row: int) -> Any:
    table = cluster.claims.table
    columns = table.columns
    kind = table.kinds.table.values[int(columns.kind[row])]
    cells = []
    if columns.cell[row] >= 0:
        first = int(columns.cell[row])
        cells = columns.cells[:, first : first + len(kind.capacities)].tolist()
    draws = []
    for in_set, pattern in d.DRAWS:
        if columns.draws[in_set, row] >= 0:
            first, n = columns.sets[:2, columns.draws[in_set, row]].tolist()
            at, length = columns.patterns[:2, columns.draws[pattern, row]].tolist()
            draws.append(
                (
                    columns.counters[:, first : first + n].tolist(),
                    columns.pattern[at : at + length].tolist(),
                )
            )
    return (
        table.find_key(row),
        table.find_attributes(row),
        kind.taints,
        int(columns.owners[row]),
        int(columns.sharers[row]),
        cells,
        draws,
    )
