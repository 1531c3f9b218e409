"""Who is on which node: records by uid and by node, in step with what they are charged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from msgspec.structs import replace

from scheduler.schema import columns as c
from scheduler.state.cards import CardTable
from scheduler.state.changes import Changes
from scheduler.state.charging.holders import NOTHING
from scheduler.state.charging.ledger import Ledger
from scheduler.state.nodes import NodeTable
from scheduler.state.pods import PodRecord, followed
from scheduler.state.registers import Registers


class Follower(Protocol):
    """Somebody who keeps a figure about the pods on nodes that is no total of ``Nodes``."""

    def follow(self, pod: PodRecord, node_row: int, sign: int) -> None:
        """A pod was charged to a node (1), or its charge was taken back (-1), by the same record."""


class Roster:
    """Pods and where they are; the only one who enters pods in the ledger and strikes them out.

    Attributes:
        pods: all pods that are not finished, by uid.
        pods_on: those that have a node, by its name; the node may not be there.
        ledger: who of them is charged what.
        registers: which cards the nodes have.
        followers: told of every pod that is charged or not charged any more, in this order.
    """

    def __init__(
        self, nodes: NodeTable, cards: CardTable, registers: Registers, moved: Changes
    ) -> None:
        self._nodes, self._moved = nodes, moved
        self.pods: dict[str, PodRecord] = {}
        self.pods_on: dict[str, dict[str, PodRecord]] = {}
        self.ledger = Ledger(nodes, cards)
        self.registers = registers
        self.followers: list[Follower] = [nodes.ports]

    def keep(self, pod: PodRecord) -> PodRecord:
        """The record of a pod is this from now on."""
        self.pods[pod.uid] = pod
        return pod

    def replace(self, pod: PodRecord, start: int) -> PodRecord:
        """A pod changed in nothing that it is charged for."""
        old = self.pods[pod.uid]
        if pod.node:
            self.pods_on[pod.node][pod.uid] = pod
            self.ledger.pods.update(pod.row, pod.priority, start)
            if followed(old) != followed(pod):
                node_row = self._nodes.row_of(pod.node)
                self._struck(old, node_row)
                self._tell(pod, node_row, 1)
        return self.keep(pod)

    def attach(self, pod: PodRecord, start: int) -> PodRecord:
        """A pod has a node: charge it, if the node is there."""
        node_row = self._nodes.row_of(pod.node)
        holds = self._holds(pod, node_row)
        row = self.ledger.enter(pod.template, pod.priority, start, node_row, holds)
        if node_row >= 0:
            self._moved.add(node_row)
        return self.adopt(replace(pod, row=row), node_row)

    def adopt(self, pod: PodRecord, node_row: int) -> PodRecord:
        """As ``attach`` of a pod that has a row of the ledger already; that its node moved is for who charged it."""
        self.pods_on.setdefault(pod.node, {})[pod.uid] = pod
        self._tell(pod, node_row, 1)
        return self.keep(pod)

    def detach(self, pod: PodRecord) -> None:
        """A pod has the node no more that it had, if any."""
        if not pod.node:
            return
        there = self.pods_on[pod.node]
        del there[pod.uid]
        if not there:
            del self.pods_on[pod.node]
        self._struck(pod, self.ledger.leave(pod.row))

    def strike(self, node: str) -> list[PodRecord]:
        """The pods of a node, none of which is charged to it any more, until ``charge`` says where."""
        pods = list(self.pods_on.get(node, {}).values())
        for pod in pods:
            self._struck(pod, self.ledger.strike(pod.row))
        return pods

    def charge(self, pods: list[PodRecord], node_row: int) -> None:
        """Charge pods that were struck to the node of a row, with what they hold of its cards; -1: to none."""
        for pod in pods:
            self.ledger.move(pod.row, node_row, self._holds(pod, node_row))
            if node_row >= 0:
                self._moved.add(node_row)
            self._tell(pod, node_row, 1)

    def charged_to(self) -> Iterator[tuple[int, PodRecord]]:
        """The pods that are charged to a node, with its row."""
        node_of = self.ledger.pods.columns.node
        for pods in self.pods_on.values():
            for pod in pods.values():
                if node_of[pod.row] >= 0:
                    yield int(node_of[pod.row]), pod

    def _holds(self, pod: PodRecord, node_row: int) -> c.Ints:
        # Most pods ask no card, and are charged as often as others.
        if node_row < 0 or not pod.template.most:
            return NOTHING
        return self.registers.holds(pod, self.ledger.containers_of(pod.template), node_row)

    def _struck(self, pod: PodRecord, node_row: int) -> None:
        """The charge of a pod was taken back from the node of a row, -1: from none."""
        if node_row >= 0:
            self._moved.add(node_row)
            self._tell(pod, node_row, -1)

    def _tell(self, pod: PodRecord, node_row: int, sign: int) -> None:
        # A node that is not there has no row, and nothing is counted on it.
        for follower in self.followers if node_row >= 0 else ():
            follower.follow(pod, node_row, sign)
