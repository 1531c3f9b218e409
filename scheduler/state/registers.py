"""The pools of devices of each node, as their drivers read them, and devices that went while pods held them."""

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
    """Writes the columns that tell a node's pools; nobody is charged to a node while its cards change.

    Attributes:
        families: the families of devices, by the place that ``Nodes`` has them at.
    """

    def __init__(self, nodes: NodeTable, cards: CardTable, families: Families) -> None:
        self._nodes, self._cards = nodes, cards
        self.families = families
        self._drivers = [(pool, one.cards) for pool, one in enumerate(families) if one.cards]
        # Of each family and row its card rows by UUID, in the order of the register.
        self._cards_on: dict[tuple[int, int], dict[str, int]] = {}
        # Of each row what left it under pods.
        self._gone_from: dict[int, told_cards.Gone] = {}
        self._work: c.Ints = np.zeros((1, kernel.N_WORK), np.int64)

    @property
    def signed(self) -> tuple[bool, ...]:
        """Of each driver of cards whether its plugin has written on any node."""
        return tuple(bool(self._nodes.was_signed[pool].any()) for pool, _ in self._drivers)

    def signed_before(self, row: int) -> tuple[str, ...]:
        """The drivers whose plugin wrote on a node earlier, and has not written on what is seen of it now."""
        facts = self._nodes.facts[row]
        return tuple(
            driver.name
            for pool, driver in self._drivers
            if facts and self._nodes.was_signed[pool, row] and not facts.devices[pool].is_signed
        )

    def find_pool(self, pod: PodRecord) -> int:
        """The family by whose pools a pod is judged, -1 for a pod that asks no devices."""
        return find_place(pod.template.family)

    def find_driver(self, pool: int) -> CardDriver | None:
        """The driver of a family's cards, None when they are never told."""
        return self.families[pool].cards if pool >= 0 else None

    def find_driver_name(self, pool: int) -> str:
        """The name of the driver of a family's cards."""
        cards = self.find_driver(pool)
        return cards.name if cards is not None else ""

    def serves(self, pool: int, row: int) -> bool:
        """Whether the devices of a node's pool are its driver's to give away one by one."""
        driver, facts = self.families[pool].cards, self._nodes.facts[row]
        if driver is None:
            return False
        was_signed = self._nodes.was_signed[pool]
        if facts is None:
            return bool(was_signed[row])
        offered = int(self._nodes.columns.allocatable[c.DEVICES_AT + pool, row])
        words = facts.devices[pool].words
        return driver.serves(
            NodeReading(words, facts.labels, offered, bool(was_signed[row]), bool(was_signed.any()))
        )

    def is_misjudged(self, row: int) -> bool:
        """Whether a node looks otherwise than it is taken."""
        managed = self._nodes.columns.managed
        return any(bool(managed[pool, row]) != self.serves(pool, row) for pool, _ in self._drivers)

    def list_misjudged(self) -> list[int]:
        """Rows of nodes that look otherwise than they are taken."""
        return [row for row in self._nodes.rows.values() if self.is_misjudged(row)]

    def write(self, row: int, pods: Collection[PodRecord]) -> None:
        """The cards of a node are those of its registers now; ``pods`` are there, and are not charged."""
        facts = self._nodes.facts[row]
        # A node that is left out has no cards, whatever was registered before its mistake.
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
            gone |= told_cards.gone(held, there, self._cards.columns, driver.find_whole)
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
        """Close the cards that somebody has closed; all of them while the plugin does not answer."""
        facts, closed = self._nodes.facts[row], bool(self._nodes.silent[row])
        for pool, driver in self._drivers:
            named = driver.list_closed(facts.devices[pool].words) if facts else frozenset()
            for d in self._span(pool, row):
                self._cards.columns.cordoned[d] = closed or self._cards.find_uuid(d) in named

    def clear(self, row: int) -> None:
        """The node has no cards any more, or is another."""
        nodes = self._nodes.columns
        self._gone_from.pop(row, None)
        for pool, _ in self._drivers:
            self._cards_on.pop((pool, row), None)
            start, n = int(nodes.card_start[pool, row]), int(nodes.card_count[pool, row])
            self._cards.give_back(start, n)
            nodes.card_count[pool, row] = 0
            nodes.managed[pool, row] = False

    def sum_up(self, row: int) -> None:
        """What devices the node has in all."""
        nodes, there = self._nodes.columns, []
        for pool, family in enumerate(self.families):
            offered = int(nodes.allocatable[c.DEVICES_AT + pool, row])
            managed = bool(nodes.managed[pool, row])
            if managed:
                span = self._span(pool, row)
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
        """The cards of a node's pool that a pod there may tell: those that are there, and left under it."""
        there, gone = self._cards_on.get((pool, row), {}), self._gone_from.get(row)
        return there | gone.get(uid, {}) if gone else there

    def has_cards(self, pool: int, row: int) -> bool:
        """Whether the node of a row has any in a pool."""
        return bool(self._cards_on.get((pool, row)))

    def list_holds(self, pod: PodRecord, containers: c.Ints, row: int) -> c.Ints:
        """[h, 4] what a pod holds at most of the cards of a node, as ``Pods.holds``; until the next call.

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
        # Of several cards the rows are not neighbours, and kernels would be compiled a second time for such an array.
        return np.ascontiguousarray(work[:n_held, :4])

    def _span(self, pool: int, row: int) -> range:
        start = int(self._nodes.columns.card_start[pool, row])
        return range(start, start + int(self._nodes.columns.card_count[pool, row]))
