"""Which cards each node has, as their driver reads them, and what left them under pods."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from scheduler.api import gpus
from scheduler.devices.contract import Driver, Seen
from scheduler.kernels.devices import claims as kernel
from scheduler.schema import columns as c
from scheduler.state.cards import CardTable
from scheduler.state.charging import claims
from scheduler.state.charging.holders import NOTHING
from scheduler.state.nodes import NodeTable
from scheduler.state.pods import PodRecord


class Registers:
    """Writes the columns that tell a node's cards; nobody is charged to a node while its cards change."""

    def __init__(self, nodes: NodeTable, cards: CardTable, driver: Driver) -> None:
        self._nodes, self._cards = nodes, cards
        self.driver = driver
        # Of each row its card rows by UUID, in the order of the register, and what left that under pods.
        self._cards_on: dict[int, dict[str, int]] = {}
        self._gone_from: dict[int, claims.Gone] = {}
        self._work: c.Ints = np.zeros((1, kernel.N_WORK), np.int64)

    @property
    def any_signed(self) -> bool:
        """Whether the driver's plugin has written on any node."""
        return bool(self._nodes.was_signed.any())

    def serves(self, row: int) -> bool:
        """Whether the cards of a node are the driver's to give away."""
        facts = self._nodes.facts[row]
        was_signed = bool(self._nodes.was_signed[row])
        if facts is None:
            return was_signed
        offered = int(self._nodes.columns.allocatable[c.GPU, row])
        return self.driver.serves(
            Seen(facts.devices, facts.labels, offered, was_signed, self.any_signed)
        )

    def misjudged(self) -> list[int]:
        """Rows of nodes that look otherwise than they are taken."""
        managed = self._nodes.columns.managed
        return [row for row in self._nodes.rows.values() if bool(managed[row]) != self.serves(row)]

    def write(self, row: int, pods: Collection[PodRecord]) -> None:
        """The cards of a node are those of its register now; ``pods`` are there, and are not charged."""
        facts = self._nodes.facts[row]
        # A node that is left out has no cards, whatever was registered before its mistake.
        cards = self.driver.cards(facts.devices) if facts and not facts.problem else ()
        held = ((pod.uid, pod.claim, self.cards_of(pod.uid, row)) for pod in pods)
        there = {card.id for card in cards}
        gone = claims.gone(held, there, self._cards.columns, self.driver.whole_of)
        self.clear(row)
        nodes = self._nodes.columns
        start = self._cards.place(cards)
        nodes.card_start[row], nodes.card_count[row] = start, len(cards)
        nodes.managed[row] = self.serves(row)
        self._cards_on[row] = {card.id: d for d, card in enumerate(cards, start)}
        self._gone_from[row] = gone
        self.cordon(row)

    def cordon(self, row: int) -> None:
        """Close the cards that somebody has closed; all of them while the plugin does not answer."""
        facts = self._nodes.facts[row]
        named = self.driver.closed(facts.devices) if facts else frozenset()
        closed = bool(self._nodes.silent[row])
        for d in self._span(row):
            self._cards.columns.cordoned[d] = closed or self._cards.uuid_of(d) in named

    def clear(self, row: int) -> None:
        """The node has no cards any more, or is another."""
        nodes = self._nodes.columns
        self._cards_on.pop(row, None)
        self._gone_from.pop(row, None)
        self._cards.give_back(int(nodes.card_start[row]), int(nodes.card_count[row]))
        nodes.card_count[row] = 0
        nodes.managed[row] = False

    def sum_up(self, row: int) -> None:
        """What GPUs the node has in all."""
        nodes, span = self._nodes.columns, self._span(row)
        whole = int(nodes.allocatable[c.GPU, row])
        if nodes.managed[row]:
            total = self._cards.columns.total[:, span.start : span.stop]
            nodes.gpu_total[:, row] = total.sum(axis=1)
        else:
            nodes.gpu_total[:, row] = (whole * gpus.FULL_CORES, 0, 0)
        nodes.has_gpu[row] = nodes.managed[row] or whole > 0

    def are_usable(self, row: int, uuids: Iterable[str]) -> bool:
        """Whether cards are registered on a node, healthy and not over-full."""
        there, cards = self._cards_on.get(row, {}), self._cards.columns
        return all(
            d >= 0
            and bool(cards.healthy[d])
            and bool((cards.used[:, d] <= cards.total[:, d]).all())
            for d in (there.get(uuid, -1) for uuid in uuids)
        )

    def cards_of(self, uid: str, row: int) -> dict[str, int]:
        """The cards that a pod on the node of a row may tell: those that are there, and left under it."""
        there, gone = self._cards_on.get(row, {}), self._gone_from.get(row)
        return there | gone.get(uid, {}) if gone else there

    def has_cards(self, row: int) -> bool:
        """Whether the node of a row has any."""
        return bool(self._cards_on.get(row))

    def holds(self, pod: PodRecord, containers: c.Ints, row: int) -> c.Ints:
        """[h, 4] what a pod holds at most of the cards of a node, as ``Pods.holds``; until the next call.

        ``containers`` [5, C] is what its containers ask.
        """
        n = int(self._nodes.columns.card_count[row])
        if not n:
            return NOTHING
        if n > len(self._work):
            self._work = np.zeros((n, kernel.N_WORK), np.int64)
        work = self._work[:n]
        n_held = kernel.hold(
            self._cards.columns,
            containers,
            claims.told(pod.claim, self.cards_of(pod.uid, row), self.driver.whole_of),
            pod.initialized,
            int(self._nodes.columns.card_start[row]),
            work,
        )
        return work[:n_held, :4]

    def _span(self, row: int) -> range:
        start = int(self._nodes.columns.card_start[row])
        return range(start, start + int(self._nodes.columns.card_count[row]))
