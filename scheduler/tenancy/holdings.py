"""Those who hold quota in a tree of queues, as columns."""

from __future__ import annotations

import numpy as np

from scheduler.kernels import reclaim
from scheduler.schema import quotas as q
from scheduler.schema.handles import Ints

_LEAST = 16


class Holdings:
    """A row for each workload that has quota. F = columns of the tree.

    Attributes:
        handle: the table as kernels take it.
        keys: the key of the workload in each row; None where a row is free.
    """

    def __init__(self, n_columns: int) -> None:
        self.handle = q.Held(
            node=np.full(_LEAST, -1, np.int64), amounts=np.zeros((_LEAST, n_columns), np.int64)
        )
        # [rows, F] of which columns each has been given anything, even nothing of it.
        self._given = np.zeros((_LEAST, n_columns), np.bool_)
        self.keys: list[str | None] = [None] * _LEAST
        self._rows: dict[str, int] = {}
        self._of_node: dict[int, set[int]] = {}
        self._free = list(range(_LEAST - 1, -1, -1))

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: str) -> bool:
        return key in self._rows

    def list_keys(self) -> list[str]:
        """List the keys of those who hold quota."""
        return list(self._rows)

    def find_row(self, key: str) -> int:
        """Return the row of a workload; -1 if it holds nothing."""
        return self._rows.get(key, -1)

    def add(self, tree: q.QuotaTree, key: str, node: int, columns: Ints, amounts: Ints) -> None:
        """Let a workload hold amounts of some columns in a queue; it holds nothing yet."""
        if not self._free:
            self._grow()
        row = self._rows[key] = self._free.pop()
        self.keys[row] = key
        self.handle.node[row] = node
        self._of_node.setdefault(node, set()).add(row)
        self.handle.amounts[row, columns] = amounts
        self._given[row, columns] = True
        reclaim.move_workload(tree, self.handle, row, 1)

    def drop(self, tree: q.QuotaTree, key: str) -> None:
        """Let a workload hold nothing any more."""
        row = self._rows.pop(key)
        reclaim.move_workload(tree, self.handle, row, -1)
        self.keys[row] = None
        self._of_node[int(self.handle.node[row])].discard(row)
        self.handle.node[row] = -1
        self.handle.amounts[row] = 0
        self._given[row] = False
        self._free.append(row)

    def list_rows(self, node: int, needed: Ints) -> list[int]:
        """List the rows of those in a queue who were given some columns, even if they ask for nothing of them."""
        known = self._of_node.get(node)
        if not known:
            return []
        rows = np.array(sorted(known), np.int64)
        # A cycle hides those who were asked to go: their node in the table is another one for a while.
        is_there = self.handle.node[rows] == node
        found: list[int] = rows[is_there & self._given[rows][:, needed].any(axis=1)].tolist()
        return found

    def _grow(self) -> None:
        n = len(self.keys)
        node = np.full(2 * n, -1, np.int64)
        amounts = np.zeros((2 * n, self.handle.amounts.shape[1]), np.int64)
        node[:n], amounts[:n] = self.handle.node, self.handle.amounts
        self.handle.node, self.handle.amounts = node, amounts
        given = np.zeros(amounts.shape, np.bool_)
        given[:n] = self._given
        self._given = given
        self.keys += [None] * n
        self._free = list(range(2 * n - 1, n - 1, -1))
