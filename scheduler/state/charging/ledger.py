"""The ledger: only the ledger and the placing kernel enter pods in totals and strike them out again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from scheduler.api.pods.templates import PodTemplate
from scheduler.kernels import charge as kernel
from scheduler.schema import columns as c
from scheduler.state.cards import CardTable
from scheduler.state.charging.charges import ChargeTable
from scheduler.state.charging.holders import PodTable
from scheduler.state.claims.table import DeviceTable
from scheduler.state.nodes import NodeTable


class Ledger:
    """Knows which pods are charged to which nodes.

    Attributes:
        pods: a table of the pods that have a node.
        charges: what a pod of each template adds to a node.
        tables: the tables as kernels take them; the tables grow in place.
    """

    def __init__(self, nodes: NodeTable, cards: CardTable, devices: DeviceTable) -> None:
        self._nodes = nodes
        self.pods = PodTable()
        self.charges = ChargeTable(nodes)
        self.tables = c.Tables(
            nodes.columns,
            cards.columns,
            self.pods.columns,
            self.charges.columns,
            devices.columns,
        )

    def enter(
        self, template: PodTemplate, priority: int, start: int, node_row: int, holds: c.Ints
    ) -> int:
        """Charge a pod to its node, and return the pod's row; while the node is unknown (-1) it is charged to none.

        ``holds`` [h, 4] is what the pod holds on the cards there, as ``Pods.holds``.
        """
        charge = self.charges.number_template(template)
        row = kernel.enter_pod(self.tables, charge, priority, start, node_row, holds)
        if row < 0:
            self.pods.make_room(1, len(holds))
            row = kernel.enter_pod(self.tables, charge, priority, start, node_row, holds)
        return row

    def move(self, row: int, node_row: int, holds: c.Ints) -> None:
        """Charge a pod that is charged to no node to this node (-1: still to none), with what it holds there."""
        if not kernel.move_pod(self.tables, row, node_row, holds):
            self.pods.make_room(1, len(holds))
            kernel.move_pod(self.tables, row, node_row, holds)

    def strike(self, row: int) -> int:
        """Take back the charge of a pod; return the row of the node that it was charged to, -1 for none."""
        return kernel.strike_pod(self.tables, row)

    def strike_many(self, rows: c.Ints) -> c.Ints:
        """As ``strike``, of several pods [k]; return [k] the rows of the nodes."""
        node_rows = np.zeros(rows.size, np.int64)
        kernel.strike_pods(self.tables, rows, node_rows)
        return node_rows

    def leave(self, row: int) -> int:
        """As ``strike``, of a pod that has no node any more; its row is given back."""
        return kernel.remove_pod(self.tables, row)

    def charge_again(self, row: int, node_row: int) -> None:
        """Charge a pod that was struck out to the same node again; -1: it was charged to none."""
        if node_row >= 0:
            kernel.charge_again(self.tables, row, node_row)

    def charge_many_again(self, rows: c.Ints, node_rows: c.Ints) -> None:
        """As ``charge_again``, of several pods [k]."""
        kernel.charge_pods_again(self.tables, rows, node_rows)

    def charge_devices(self, holds: c.Ints, sign: int) -> None:
        """Charge what a claim that no pod is charged for holds, [h, N_HOLD] as ``Pods.holds``; -1: take the charge back."""
        kernel.charge_devices(self.tables, holds, sign)

    @contextmanager
    def add_amounts(self, pods: Sequence[tuple[PodTemplate, int]]) -> Iterator[None]:
        """Charge nodes for pods that are in no table, by template and row of the node, while a question is answered.

        No card is charged. Nobody else notices, so only the totals of these nodes may be read meanwhile.
        """
        charges = np.array([self.charges.number_template(one) for one, _ in pods], np.int64)
        node_rows = np.array([row for _, row in pods], np.int64)
        kernel.add_amounts(self.tables, charges, node_rows, 1)
        try:
            yield
        finally:
            kernel.add_amounts(self.tables, charges, node_rows, -1)

    def undo(self, rows: c.Ints, ends: tuple[int, int]) -> c.Ints:
        """As ``leave``, of the pods [k] that were entered last, the last one first; return [k] the rows of their nodes.

        No pod may have left since ``PodTable.ends`` were ``ends``.
        """
        node_rows = np.zeros(rows.size, np.int64)
        kernel.undo_entries(self.tables, rows, node_rows, *ends)
        return node_rows

    def get_containers(self, template: PodTemplate) -> c.Ints:
        """Return [6, C] what the containers of a template may hold on cards, as in ``Ask``; C = 0 for none."""
        return self.charges.get_containers(self.charges.number_template(template))

    def offer(self, resource: str) -> c.Ints:
        """Charge pods for a resource that a node is the first to offer; return the rows of the nodes this concerns."""
        return self._point(resource, self._nodes.resources.find(resource))

    def withdraw(self, resource: str) -> c.Ints:
        """Take back the charges for a resource that no node offers any more; return the rows of the nodes this concerns."""
        rows = self._point(resource, -1)
        self._nodes.resources.give_back(resource)
        return rows

    def _point(self, resource: str, row: int) -> c.Ints:
        pods = self.pods.columns
        asks = np.isin(pods.charge, self.charges.list_asking(resource)) & (pods.node >= 0)
        concerned, nodes = np.flatnonzero(asks).tolist(), pods.node[asks]
        for pod in concerned:
            kernel.strike_pod(self.tables, pod)
        self.charges.point(resource, row)
        for pod, node_row in zip(concerned, nodes.tolist(), strict=True):
            kernel.charge_again(self.tables, pod, node_row)
        return np.unique(nodes)
