"""All that pods of KAI's queues could hold: what nodes that are ready have, without what pods of no queue hold."""

from __future__ import annotations

from scheduler.api import names, plugin_parts
from scheduler.api.queues.kai import CARD, NOTHING, Vector, add, count_mig_cards
from scheduler.state.cluster import Cluster

# A node with one of these taints is not ready.
_NOT_READY = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
# The row of memory among the totals of cards.
_MIB = 1


class Totals:
    """The totals of one cluster; they are found anew when nodes have changed.

    Attributes:
        total: what there is.
        card_mib: of so many MiB is the smallest card; 0 if there is none.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.total: Vector = NOTHING
        self.card_mib = 0
        # What pods of no queue hold, by node row.
        self._apart: dict[int, Vector] = {}
        self._n_changes = 0
        # The cluster's log of described nodes, and the number of changes, as of the last look.
        self._seen: tuple[int, int] | None = None

    def add_apart(self, node_row: int, holds: Vector, sign: int) -> None:
        """Add what a pod of no queue holds on a node, or take it back."""
        self._apart[node_row] = add(self._apart.get(node_row, NOTHING), holds, sign)
        self._n_changes += 1

    def forget_apart(self) -> None:
        """Forget what pods of no queue hold."""
        self._apart.clear()
        self._n_changes += 1

    def settle(self) -> bool:
        """Find the totals if anything has changed; return whether the smallest card has another size."""
        position = self._cluster.described.position
        now, before = (position, self._n_changes), self._seen
        if now == before:
            return False
        self._seen = now
        self.total = self._sum_up()
        if before is not None and before[0] == position:
            return False
        mib, self.card_mib = self.card_mib, self._find_smallest_card()
        return mib != self.card_mib

    def _sum_up(self) -> Vector:
        nodes, total = self._cluster.nodes, NOTHING
        columns = nodes.columns
        rows = [nodes.resources.find(name) for name in (names.CPU, names.MEMORY)]
        in_cards = [count_mig_cards(name) for name in nodes.resources.values]
        slices = [(i, n) for i, n in enumerate(in_cards) if n]
        for row in nodes.rows.values():
            facts = nodes.facts[row]
            is_ready = facts is not None and _NOT_READY.isdisjoint(
                key for key, _, _ in facts.taints
            )
            if is_ready and columns.valid[row]:
                cpu, memory = (
                    int(columns.allocatable[one, row]) if one >= 0 else 0 for one in rows
                )
                cards = sum(n * int(columns.allocatable[i, row]) for i, n in slices)
                total = add(total, (cpu, memory, CARD * (cards + self._count_cards(row))))
                total = add(total, self._apart.get(row, NOTHING), -1)
        cpu, memory, gpu = (max(0, one) for one in total)
        return cpu, memory, gpu

    def _count_cards(self, row: int) -> int:
        nodes, n = self._cluster.nodes.columns, 0
        registers = self._cluster.registers
        for pool in registers.list_pools(row):
            if plugin_parts.is_part(registers.devices.families[int(nodes.pools.family[pool])]):
                continue
            offered = nodes.allocatable[nodes.pools.resource[pool], row]
            n += int(nodes.pools.count[pool] if nodes.pools.managed[pool] else offered)
        return n

    def _find_smallest_card(self) -> int:
        mib = self._cluster.cards.columns.total[_MIB]
        there = (
            int(mib[d])
            for row in self._cluster.nodes.rows.values()
            for d in self._cluster.registers.list_card_rows(row)
        )
        return min((one for one in there if one > 0), default=0)
