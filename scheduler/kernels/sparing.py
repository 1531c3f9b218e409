"""Which of the pods that were taken away for a group could come back, by amounts alone."""

from __future__ import annotations

from scheduler.kernels._jit import kernel
from scheduler.schema import columns as c
from scheduler.schema.handles import Flags2, Ints1, Ints2


@kernel
def find_unit_within(
    tables: c.Tables,
    counted: Flags2,
    begins: Ints1,
    pods: Ints1,
    node_rows: Ints1,
    first: int,
    wanted: Ints2,
) -> int:
    """Find the first unit, from ``first`` on, with which no node exceeds what it has of the resources that count there.

    O(parts of the pods that are looked at). R = resources, U = units, k = pods.

    Args:
        tables: without the pods.
        counted: [R, N] whether a resource counts on a node.
        begins: [U + 1] where the pods of each unit begin.
        pods: [k] their rows in the pod table.
        node_rows: [k] the rows of the nodes on which they were; -1 for a node that is not there.
        first: a unit.
        wanted: [R, N] working space: 0, and 0 again in the end.

    Returns:
        The number of the unit; U if there is none.
    """
    nodes, charges = tables.nodes, tables.charges
    for unit in range(first, begins.size - 1):
        is_over = False
        # First the amounts are added up, then the working space is cleared.
        for turn in range(2):
            for i in range(begins[unit], begins[unit + 1]):
                row = node_rows[i]
                if row < 0:
                    continue
                charge = tables.pods.charge[pods[i]]
                for k in range(
                    charges.run[0, charge], charges.run[0, charge] + charges.run[1, charge]
                ):
                    resource = charges.parts[k, 0] - c.REQUESTED_AT
                    if not 0 <= resource < counted.shape[0] or not counted[resource, row]:
                        continue
                    if turn == 1:
                        wanted[resource, row] = 0
                        continue
                    wanted[resource, row] += charges.parts[k, 1]
                    total = nodes.requested[resource, row] + wanted[resource, row]
                    if wanted[resource, row] > 0 and total > nodes.allocatable[resource, row]:
                        is_over = True
        if not is_over:
            return unit
    return int(begins.size - 1)
