"""The pools of devices of each node, as their drivers read them, and the devices that left while pods held them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import numpy as np

from scheduler.api.cards import Card, Place, find_slots
from scheduler.api.plugin_parts import WAYS
from scheduler.api.pods.gpus import FULL_CORES
from scheduler.api.pods.templates import PodTemplate
from scheduler.devices import card_order
from scheduler.devices.contract import CardDriver, CountingDriver, NodeReading
from scheduler.kernels.devices import told_cards as kernel
from scheduler.schema import columns as c
from scheduler.state import told_cards
from scheduler.state.cards import CardTable
from scheduler.state.nodes import NodeFacts, NodeTable
from scheduler.state.pods import PodRecord
from scheduler.state.pools import PoolPlan
from scheduler.state.probation import Probation
from scheduler.state.told_cards import NOTHING


class Registers:
    """Writes the pools of nodes; no pod is charged to a node while its pools change.

    Attributes:
        devices: the drivers and families.
        pools: the pools of all nodes.
        probation: the cards that no new pod gets yet.
    """

    def __init__(self, nodes: NodeTable, cards: CardTable) -> None:
        self._nodes, self._cards = nodes, cards
        self.devices, self.pools = nodes.devices, nodes.pools
        self.probation = Probation()
        # By pool: the rows of the cards by UUID, in the order of the register.
        self._cards_on: dict[int, dict[str, int]] = {}
        # By node row: the cards that left while pods held them.
        self._gone_from: dict[int, told_cards.Gone] = {}
        # By node row: the families of which the node may have devices, as it was planned last.
        self._possible: dict[int, list[int]] = {}
        self._work: c.Ints = np.zeros((1, kernel.N_WORK), np.int64)

    @property
    def signed(self) -> tuple[bool, ...]:
        """For each driver of cards: whether its plugin has written on any node."""
        return tuple(self._nodes.n_signed[driver] > 0 for driver in self.devices.cards)

    def list_signed_before(self, row: int) -> tuple[str, ...]:
        """List the drivers whose plugin wrote on a node earlier, and has written nothing on the node as it is now."""
        facts = self._nodes.facts[row]
        return tuple(
            driver.name
            for number, driver in self.devices.cards.items()
            if facts
            and self._nodes.was_signed[number, row]
            and not facts.find_reading(number).is_signed
        )

    def find_family(self, pod: PodRecord) -> int:
        """Find the family of the devices that a pod asks; -1 for a pod that asks no devices."""
        return self.devices.find_family(pod.template.family)

    def find_pool(self, family: int, row: int) -> int:
        """Find the pool of a family on a node; ``NO_POOL`` for none."""
        if family < 0 or row < 0:
            return c.NO_POOL
        pools, nodes = self.pools.columns, self._nodes.columns
        reached = nodes.shared[nodes.reach[:, row]].tolist() if nodes.shared.size else ()
        own = (*self.list_pools(row), *reached)
        return next((pool for pool in own if int(pools.family[pool]) == family), c.NO_POOL)

    def find_driver(self, family: int, row: int) -> CardDriver | None:
        """Find the driver of the cards of a family on a node; None where the devices are counted, or where there are none."""
        return self.devices.cards.get(int(self.pools.columns.driver[self.find_pool(family, row)]))

    def _plan_pools(self, row: int) -> list[PoolPlan]:
        """Plan which driver allocates the devices of each family on a node."""
        facts, nodes = self._nodes.facts[row], self._nodes
        plans = []
        possible = self._possible[row] = self._list_possible(row, facts)
        for family in possible:
            resource = self.devices.families[family]
            resource_row = nodes.resources.find(resource)
            offered = int(nodes.columns.allocatable[resource_row, row]) if resource_row >= 0 else 0

            def read(number: int, resource: str = resource, offered: int = offered) -> NodeReading:
                return NodeReading(
                    resource,
                    facts.find_reading(number).words if facts else (),
                    facts.labels if facts else {},
                    offered,
                    bool(nodes.was_signed[number, row]),
                    nodes.n_signed[number] > 0,
                )

            driver = self.devices.find_driver(family, read)
            if driver >= 0:
                cards = self.devices.cards.get(driver)
                chooser = c.WALK if cards is None else cards.chooser
                row_of = max(resource_row, c.UNKNOWN)
                plans.append(PoolPlan(family, driver, cards is not None, chooser, row_of))
        return plans

    def _list_possible(self, row: int, facts: NodeFacts | None) -> list[int]:
        """List the families of which a node may have devices: it offers them, or their drivers read or read something there."""
        find = self.devices.find_family
        offered = facts.offered if facts else ()
        found = {family for resource, _ in offered if (family := find(resource)) >= 0}
        for number, driver in self.devices.cards.items():
            has_words = facts is not None and bool(facts.find_reading(number).words)
            if has_words or self._nodes.was_signed[number, row]:
                found.update(map(find, driver.resources))
        return sorted(found)

    def is_misjudged(self, row: int) -> bool:
        """Whether the columns of a node say something else of its pools than the drivers do."""
        columns = self._nodes.columns
        first, n = int(columns.first_pool[row]), int(columns.n_pools[row])
        return self._plan_pools(row) != self.pools.list_plans(first, n)

    def list_misjudged(self, had_signed: tuple[bool, ...], moved: Iterable[str]) -> list[int]:
        """List the rows of misjudged nodes, among those that may have devices of families which are allocated otherwise now.

        ``had_signed`` is ``signed`` as it was before, ``moved`` are resources that a first node offers, or no node any more.
        """
        concerned, possible = self._find_concerned(had_signed, moved), self._possible
        return [
            row
            for row in (self._nodes.rows.values() if concerned else ())
            if not concerned.isdisjoint(possible.get(row, concerned)) and self.is_misjudged(row)
        ]

    def _find_concerned(self, had_signed: tuple[bool, ...], moved: Iterable[str]) -> set[int]:
        devices = self.devices
        concerned = {family for one in moved if (family := devices.find_family(one)) >= 0}
        numbers = zip(devices.cards, had_signed, self.signed, strict=True)
        changed = {number for number, before, after in numbers if before != after}
        for family, resource in enumerate(devices.families if changed else ()):
            drivers = (*devices.list_drivers(family), devices.find_earlier(resource))
            if not changed.isdisjoint(drivers):
                concerned.add(family)
        return concerned

    def write(self, row: int, pods: Collection[PodRecord]) -> None:
        """Write the pools of a node; ``pods`` are its pods, and are not charged meanwhile."""
        facts = self._nodes.facts[row]
        plans = self._plan_pools(row)
        # A node that is left out has no cards, whatever it had registered before its mistake.
        told = facts if facts and not facts.problem else None
        drivers = [self.devices.cards.get(plan.driver) for plan in plans]
        found = [
            driver.list_cards(told.find_reading(plan.driver).words)
            if driver and told and self.devices.has_cards(plan.driver, plan.family)
            else ()
            for plan, driver in zip(plans, drivers, strict=True)
        ]
        gone = self._find_gone(
            row, pods, dict(zip((plan.family for plan in plans), found, strict=True))
        )
        self.clear(row)
        nodes, pools = self._nodes.columns, self.pools.columns
        first = self.pools.place_pools(plans, row)
        nodes.first_pool[row], nodes.n_pools[row] = first, len(plans)
        for pool, cards in enumerate(found, first):
            start = self._cards.place_cards(cards, pool)
            pools.start[pool], pools.count[pool] = start, len(cards)
            pools.carved[pool] = any(card.parts for card in cards)
            self.name_cards(pool, {card.id: d for d, card in enumerate(cards, start)})
        self._gone_from[row] = gone
        self.cordon(row)

    def name_cards(self, pool: int, rows: dict[str, int]) -> None:
        """Note the rows of the cards of a pool by UUID."""
        self._cards_on[pool] = rows

    def _find_gone(
        self, row: int, pods: Collection[PodRecord], there: Mapping[int, Collection[Card]]
    ) -> told_cards.Gone:
        """Find the cards that the pods of a node hold and that are not among those that are ``there`` by family."""
        gone: told_cards.Gone = {}
        columns = self._nodes.columns
        first = int(columns.first_pool[row])
        for pool in range(first, first + int(columns.n_pools[row])):
            family = int(self.pools.columns.family[pool])
            driver = self.devices.cards.get(int(self.pools.columns.driver[pool]))
            if driver is None:
                continue
            resource = self.devices.families[family]
            of_family = [
                pod
                for pod in pods
                if any(part.family == resource for part in pod.template.list_by_family())
            ]
            held = (
                (pod.uid, find_slots(pod.claim, driver.name), self.list_cards(pod.uid, family, row))
                for pod in of_family
            )
            ids = {card.id for card in there.get(family, ())}
            gone |= told_cards.find_gone(held, ids, self._cards.columns, driver.find_whole)
        return gone

    def cordon(self, row: int) -> None:
        """Close the cards that the node names as closed, and those on probation; all while the plugin does not answer."""
        facts, closed = self._nodes.facts[row], bool(self._nodes.silent[row])
        waits = self.probation.get_cards(facts.name) if facts else {}
        for pool in self.list_pools(row):
            number = int(self.pools.columns.driver[pool])
            driver = self.devices.cards.get(number)
            if driver is None:
                continue
            named = driver.list_closed(facts.find_reading(number).words) if facts else frozenset()
            for d in self._find_span(pool):
                uuid = self._cards.find_uuid(d)
                self._cards.columns.cordoned[d] = closed or uuid in named or uuid in waits

    def clear(self, row: int) -> None:
        """Drop the pools of a node that lost its devices or was replaced by another one."""
        nodes = self._nodes.columns
        self._gone_from.pop(row, None)
        for pool in self.list_pools(row):
            self._cards_on.pop(pool, None)
            span = self._find_span(pool)
            self._cards.give_back(span.start, len(span))
        self.pools.give_back(int(nodes.first_pool[row]), int(nodes.n_pools[row]))
        nodes.first_pool[row], nodes.n_pools[row] = c.NO_POOL, 0

    def sum_up(self, row: int) -> None:
        """Sum up the devices of a node."""
        nodes, pools = self._nodes.columns, self.pools.columns
        for pool in self.list_pools(row):
            number = int(pools.driver[pool])
            if number in self.devices.whole:
                self._measure_counted(row, pool, self.devices.whole[number])
            else:
                span = self._find_span(pool)
                pools.total[:, pool] = self._cards.columns.total[:, span.start : span.stop].sum(
                    axis=1
                )
        facts = self._nodes.facts[row]
        nodes.has_gpu[row] = bool(nodes.n_pools[row]) or (
            facts is not None
            and self.devices.are_marked(facts.labels, (name for name, _ in facts.offered))
        )

    def _measure_counted(self, row: int, pool: int, driver: CountingDriver) -> None:
        """Write what the devices of a pool are that are only counted."""
        facts, pools = self._nodes.facts[row], self.pools.columns
        offered = int(self._nodes.columns.allocatable[pools.resource[pool], row])
        resource = self.devices.families[int(pools.family[pool])]
        part = driver.read_part(resource, facts.labels if facts else {}, offered)
        pools.part[:, pool] = part.gpus, part.mib, WAYS.index(part.way)
        pools.total[:, pool] = round(offered * part.gpus * FULL_CORES), offered * part.mib, 0

    def list_pools(self, row: int) -> range:
        """List the pools of a node."""
        first = int(self._nodes.columns.first_pool[row])
        return range(first, first + int(self._nodes.columns.n_pools[row]))

    def list_card_rows(self, row: int) -> list[int]:
        """List the rows of a node's cards, of all its pools."""
        return [d for pool in self.list_pools(row) for d in self._find_span(pool)]

    def find_part(self, d: int, place: Place | None) -> int:
        """Find the part that is cut out of a card at a place; ``NO_PART`` for none."""
        return self._cards.find_part(d, place)

    def find_resource(self, d: int) -> str:
        """Find the resource by which pods ask for a card."""
        family = self.pools.columns.family[self._cards.columns.pool[d]]
        return self.devices.families[int(family)]

    def are_usable(self, row: int, uuids: Iterable[str]) -> bool:
        """Whether cards are registered on a node, healthy and not over-full."""
        there = self.list_all_cards("", row)
        rows = np.array([there.get(uuid, -1) for uuid in uuids], np.int64)
        return bool(
            (rows >= 0).all()
            and self._cards.columns.healthy[rows].all()
            and not self._cards.find_overfull(rows).any()
        )

    def list_by_health(self, row: int, *, healthy: bool) -> set[str]:
        """List the cards of a node that are healthy, or those that are not."""
        rows = np.array(self.list_card_rows(row), np.int64)
        found = rows[self._cards.columns.healthy[rows] == healthy]
        return set(map(self._cards.find_uuid, found.tolist()))

    def list_all_cards(self, uid: str, row: int) -> dict[str, int]:
        """List the cards of all families that a pod's claims may name, as ``list_cards`` does of one."""
        found: dict[str, int] = {}
        reached = self._nodes.columns.shared[self._nodes.columns.reach[:, row]].tolist()
        for pool in (*self.list_pools(row), *reached):
            found |= self.list_cards(uid, int(self.pools.columns.family[pool]), row)
        return found

    def list_cards(self, uid: str, family: int, row: int) -> dict[str, int]:
        """List the cards that a pod's claim may name: those of the node's pool, and those that left while the pod held them."""
        there, gone = self._cards_on.get(self.find_pool(family, row), {}), self._gone_from.get(row)
        return there | gone.get(uid, {}) if gone else there

    def is_told(self, family: int, row: int) -> bool:
        """Whether the driver of a node's cards of a family has read what cards there are, even if there are none."""
        driver, facts = (
            int(self.pools.columns.driver[self.find_pool(family, row)]),
            self._nodes.facts[row],
        )
        return driver >= 0 and facts is not None and facts.find_reading(driver).is_told

    def has_cards(self, family: int, row: int) -> bool:
        """Whether the node of a row has cards of a family."""
        return bool(self._cards_on.get(self.find_pool(family, row)))

    def list_holds(
        self, pod: PodRecord, get_containers: Callable[[PodTemplate], c.Ints], row: int
    ) -> c.Ints:
        """Return [h, N_HOLD] what a pod holds at most of a node's cards, as ``Pods.holds``; valid until the next call.

        ``get_containers`` returns [6, C] what the containers of a template ask.
        """
        held = [
            self._list_of_family(pod, part.family, self._add_parts(get_containers(part), part), row)
            for part in pod.template.list_by_family()
        ]
        return held[0] if len(held) == 1 else np.concatenate(held)

    def _add_parts(self, containers: c.Ints, part: PodTemplate) -> c.Ints:
        if part.gpu is None or part.gpu.find_parts is None:
            return containers
        return card_order.add_parts(containers, part.gpu, self._cards.models.values)

    def _list_of_family(
        self, pod: PodRecord, resource: str, containers: c.Ints, row: int
    ) -> c.Ints:
        family = self.devices.find_family(resource)
        driver, span = self.find_driver(family, row), self._find_span(self.find_pool(family, row))
        n = len(span)
        if driver is None or not n:
            return NOTHING
        if n > len(self._work):
            self._work = np.zeros((n, kernel.N_WORK), np.int64)
        work, slots = self._work[:n], find_slots(pod.claim, driver.name)
        told = told_cards.read_told(
            slots, self.list_cards(pod.uid, family, row), driver.find_whole, self._cards.find_part
        )
        n_held = kernel.hold_cards(
            self._cards.columns,
            containers,
            told,
            pod.initialized,
            span.start,
            work,
        )
        # What one family holds is copied, because the next one writes to the same working space.
        held = np.full((n_held, c.N_HOLD), c.NO_PART, np.int64)
        held[:, : c.HOLD_PART] = work[:n_held, : c.HOLD_PART]
        parts = self._list_parts(held, told, int(containers[c.N_CARDS].sum()))
        return np.concatenate((held, parts)) if len(parts) else held

    def _list_parts(self, held: c.Ints, told: c.Ints, wanted: int) -> c.Ints:
        """List the parts that a pod holds of the cards that it holds, as further rows of ``held``.

        A pod that requests ``wanted`` cards and does not name a part for each, or names one that the card does not have, may
        have any part: then nothing else can be cut out of its cards, so that none is given twice.
        """
        carving = self._cards.columns.carving
        cut = [d for d in held[:, c.HOLD_CARD].tolist() if carving[d]]
        if not cut:
            return NOTHING
        of_cut = told[np.isin(told[:, kernel.CARD], cut)]
        named = set(map(tuple, of_cut[:, [kernel.CARD, kernel.TOLD_PART]].tolist()))
        is_short = len(told) - len(of_cut) + len(named) < wanted
        found = []
        for d in cut:
            parts = sorted(part for card, part in named if card == d)
            if is_short or not parts or c.NO_PART in parts:
                parts = [self._cards.carvings.find_all(int(carving[d]))]
            found += [(d, 0, 0, 0, part) for part in parts]
        return np.array(found, np.int64)

    def _find_span(self, pool: int) -> range:
        start = int(self.pools.columns.start[pool])
        return range(start, start + int(self.pools.columns.count[pool]))
