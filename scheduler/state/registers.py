"""The pools of devices of each node, as their drivers read them, and the devices that left while pods held them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from scheduler.devices.contract import CardDriver, NodeReading
from scheduler.devices.table import Families, find_place
from scheduler.kernels.devices import told_cards as kernel
from scheduler.schema import columns as c
from scheduler.state import told_cards
from scheduler.state.cards import CardTable
from scheduler.state.nodes import NodeTable
from scheduler.state.pods import PodRecord
from scheduler.state.told_cards import NOTHING


class Registers:
    """Writes the columns of a node's pools; no pod is charged to a node while its cards change.

    Attributes:
        families: the families of devices, in the order of ``Nodes``.
    """

    def __init__(self, nodes: NodeTable, cards: CardTable, families: Families) -> None:
        self._nodes, self._cards = nodes, cards
        self.families = families
        self._drivers = [(pool, one.cards) for pool, one in enumerate(families) if one.cards]
        # By family and node row: the rows of the cards by UUID, in the order of the register.
        self._cards_on: dict[tuple[int, int], dict[str, int]] = {}
        # By node row: the cards that left while pods held them.
        self._gone_from: dict[int, told_cards.Gone] = {}
        self._work: c.Ints = np.zeros((1, kernel.N_WORK), np.int64)

    @property
    def signed(self) -> tuple[bool, ...]:
        """For each driver of cards: whether its plugin has written on any node."""
        return tuple(self._nodes.n_signed[pool] > 0 for pool, _ in self._drivers)

    def list_signed_before(self, row: int) -> tuple[str, ...]:
        """List the drivers whose plugin wrote on a node earlier, and has written nothing on the node as it is now."""
        facts = self._nodes.facts[row]
        return tuple(
            driver.name
            for pool, driver in self._drivers
            if facts and self._nodes.was_signed[pool, row] and not facts.devices[pool].is_signed
        )

    def find_pool(self, pod: PodRecord) -> int:
        """Find the family of the devices that a pod asks; -1 for a pod that asks no devices."""
        return find_place(pod.template.family)

    def find_driver(self, pool: int) -> CardDriver | None:
        """Find the driver of a family's cards; None for a family whose cards are never reported."""
        return self.families[pool].cards if pool >= 0 else None

    def find_driver_name(self, pool: int) -> str:
        """Find the name of the driver of a family's cards; empty for none."""
        cards = self.find_driver(pool)
        return cards.name if cards is not None else ""

    def serves(self, pool: int, row: int) -> bool:
        """Whether the driver allocates the devices of a node's pool one by one."""
        driver, facts = self.families[pool].cards, self._nodes.facts[row]
        if driver is None:
            return False
        was_signed = bool(self._nodes.was_signed[pool, row])
        if facts is None:
            return was_signed
        offered = int(self._nodes.columns.allocatable[c.DEVICES_AT + pool, row])
        words, any_signed = facts.devices[pool].words, self._nodes.n_signed[pool] > 0
        return driver.serves(NodeReading(words, facts.labels, offered, was_signed, any_signed))

    def is_misjudged(self, row: int) -> bool:
        """Whether the columns of a node say something else of its pools than the drivers do."""
        managed = self._nodes.columns.managed
        return any(bool(managed[pool, row]) != self.serves(pool, row) for pool, _ in self._drivers)

    def list_misjudged(self) -> list[int]:
        """List the rows of misjudged nodes."""
        return [row for row in self._nodes.rows.values() if self.is_misjudged(row)]

    def write(self, row: int, pods: Collection[PodRecord]) -> None:
        """Write the cards in the registers of a node; ``pods`` are its pods, and are not charged meanwhile."""
        facts = self._nodes.facts[row]
        # A node that is left out has no cards, whatever it had registered before its mistake.
        told = facts.devices if facts and not facts.problem else None
        found = [
            (pool, driver, driver.list_cards(told[pool].words) if told else ())
            for pool, driver in self._drivers
        ]
        gone: told_cards.Gone = {}
        for pool, driver, cards in found:
            of_family = [pod for pod in pods if self.find_pool(pod) == pool]
            held = ((pod.uid, pod.claim, self.list_cards(pod.uid, pool, row)) for pod in of_family)
            there = {card.id for card in cards}
            gone |= told_cards.find_gone(held, there, self._cards.columns, driver.find_whole)
        self.clear(row)
        nodes = self._nodes.columns
        for pool, _, cards in found:
            start = self._cards.place_cards(cards, pool)
            nodes.card_start[pool, row], nodes.card_count[pool, row] = start, len(cards)
            nodes.managed[pool, row] = self.serves(pool, row)
            self._cards_on[pool, row] = {card.id: d for d, card in enumerate(cards, start)}
        self._gone_from[row] = gone
        self.cordon(row)

    def cordon(self, row: int) -> None:
        """Close the cards that the node names as closed; all cards while the plugin does not answer."""
        facts, closed = self._nodes.facts[row], bool(self._nodes.silent[row])
        for pool, driver in self._drivers:
            named = driver.list_closed(facts.devices[pool].words) if facts else frozenset()
            for d in self._find_span(pool, row):
                self._cards.columns.cordoned[d] = closed or self._cards.find_uuid(d) in named

    def clear(self, row: int) -> None:
        """Drop the cards of a node that lost its cards or was replaced by another one."""
        nodes = self._nodes.columns
        self._gone_from.pop(row, None)
        for pool, _ in self._drivers:
            self._cards_on.pop((pool, row), None)
            start, n = int(nodes.card_start[pool, row]), int(nodes.card_count[pool, row])
            self._cards.give_back(start, n)
            nodes.card_count[pool, row] = 0
            nodes.managed[pool, row] = False

    def sum_up(self, row: int) -> None:
        """Sum up the devices of a node."""
        nodes, there = self._nodes.columns, []
        for pool, family in enumerate(self.families):
            offered = int(nodes.allocatable[c.DEVICES_AT + pool, row])
            managed = bool(nodes.managed[pool, row])
            if managed:
                span = self._find_span(pool, row)
                total = self._cards.columns.total[:, span.start : span.stop]
                nodes.gpu_total[pool, :, row] = total.sum(axis=1)
            else:
                nodes.gpu_total[pool, :, row] = family.whole.sum_figures(offered)
            if managed or offered > 0:
                there.append(pool)
        facts = self._nodes.facts[row]
        nodes.has_gpu[row] = bool(there) or (
            facts is not None
            and self.families.are_marked(facts.labels, (name for name, _ in facts.allocatable))
        )
        nodes.pool[row] = there[0] if there else 0

    def are_usable(self, row: int, uuids: Iterable[str]) -> bool:
        """Whether cards are registered on a node, healthy and not over-full."""
        there, cards = self._cards_on, self._cards.columns
        return all(
            d >= 0
            and bool(cards.healthy[d])
            and bool((cards.used[:, d] <= cards.total[:, d]).all())
            for d in (
                max(there.get((pool, row), {}).get(uuid, -1) for pool, _ in self._drivers)
                for uuid in uuids
            )
        )

    def list_cards(self, uid: str, pool: int, row: int) -> dict[str, int]:
        """List the cards that a pod's claim may name: those of the node's pool, and those that left while the pod held them."""
        there, gone = self._cards_on.get((pool, row), {}), self._gone_from.get(row)
        return there | gone.get(uid, {}) if gone else there

    def has_cards(self, pool: int, row: int) -> bool:
        """Whether the node of a row has cards in a pool."""
        return bool(self._cards_on.get((pool, row)))

    def list_holds(self, pod: PodRecord, containers: c.Ints, row: int) -> c.Ints:
        """Return [h, 4] what a pod holds at most of a node's cards, as ``Pods.holds``; valid until the next call.

        ``containers`` [5, C] is what its containers ask.
        """
        pool = self.find_pool(pod)
        driver = self.find_driver(pool)
        n = int(self._nodes.columns.card_count[pool, row]) if driver is not None else 0
        if driver is None or not n:
            return NOTHING
        if n > len(self._work):
            self._work = np.zeros((n, kernel.N_WORK), np.int64)
        work = self._work[:n]
        n_held = kernel.hold_cards(
            self._cards.columns,
            containers,
            told_cards.read_told(pod.claim, self.list_cards(pod.uid, pool, row), driver.find_whole),
            pod.initialized,
            int(self._nodes.columns.card_start[pool, row]),
            work,
        )
        # A slice of several rows is not contiguous, and kernels would be compiled a second time for such an array.
        return np.ascontiguousarray(work[:n_held, :4])

    def _find_span(self, pool: int, row: int) -> range:
        start = int(self._nodes.columns.card_start[pool, row])
        return range(start, start + int(self._nodes.columns.card_count[pool, row]))
