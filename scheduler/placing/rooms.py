"""The buffers to which the placing kernels write where pods go; they are reused from call to call, and read here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from scheduler.api.cards import CardUse, Grant, Grants, Slots, find_slots
from scheduler.api.claims.answers import Allotment
from scheduler.api.door.decisions import Bind
from scheduler.api.pods.templates import PodTemplate
from scheduler.errors import BrokenInvariant
from scheduler.kernels import place
from scheduler.kernels.devices import gpus
from scheduler.modes.learning import Learner
from scheduler.plugins.claims import answering
from scheduler.plugins.claims.grouping import reserve_for_group
from scheduler.plugins.volumes import giving
from scheduler.schema import columns as c
from scheduler.schema.world import ANY_ROW, ANY_ROWS, ANYWHERE, NOWHERE, Run
from scheduler.shapes.boards import Boards, Shape
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord

# How many sizes of calls have their parts of the buffers kept.
_ROOMS_MAX = 64
_NONE: c.Ints = np.zeros(0, np.int64)


class Rows(NamedTuple):
    """Where pods may go.

    Attributes:
        among: [N] the only rows that may be chosen; [0] for all.
        wanted: [K] the row that each pod goes to if it fits there; [0] for the best row each time.
        stops: [N] the rows after which nothing more is placed; [0] for none.
    """

    among: c.Flags = ANYWHERE
    wanted: c.Ints = ANY_ROWS
    stops: c.Flags = NOWHERE


EVERYWHERE = Rows()


class Rooms:
    """The buffers for the calls on one cluster."""

    def __init__(self, cluster: Cluster, boards: Boards, learner: Learner) -> None:
        self._cluster, self._boards, self._learner = cluster, boards, learner
        self._of_pods = np.zeros((5, 1), np.int64)
        self._of_picks = np.zeros(5, np.int64)
        self._of_claims = np.zeros(2, np.int64)
        # The parts of the buffers that calls were given, by the numbers of pods, picks and devices that they are for.
        self._given: dict[tuple[int, int, int], Run] = {}

    def make_room(
        self,
        part: Sequence[PodRecord],
        shape: Shape,
        moved: c.Ints = _NONE,
        where: Rows = EVERYWHERE,
    ) -> Run:
        """Return buffers to which a kernel writes how it places pods of a shape.

        The buffers are valid until the next call.
        """
        cluster, n, picks = self._cluster, len(part), shape.most_picks
        # A part of a card is held beside the card.
        held = (2 * picks if shape.asked.template.gpu else 0) + shape.most_held
        cluster.ledger.pods.make_room(n, held)
        size = n, picks, shape.most_devices
        room = self._given.get(size) or self._cut(*size)
        room.priority[:] = [pod.priority for pod in part]
        room.moved, room.chosen = moved, ANY_ROW
        room.among, room.wanted, room.stops = where
        return room

    def _cut(self, n: int, picks: int, devices: int) -> Run:
        size, of_claims = 5 * n * picks, 2 * n * devices
        if n > self._of_pods.shape[1]:
            self._of_pods = np.zeros((5, n), np.int64)
            self._given.clear()
        if size > self._of_picks.size:
            self._of_picks = np.zeros(size, np.int64)
            self._given.clear()
        if of_claims > self._of_claims.size:
            self._of_claims = np.zeros(of_claims, np.int64)
            self._given.clear()
        if len(self._given) >= _ROOMS_MAX:
            self._given.clear()
        of_picks = self._of_picks[:size].reshape(5, n, picks)
        of_devices = self._of_claims[:of_claims].reshape(2, n, devices)
        fields = [*self._of_pods[:4, :n], *of_picks, self._of_pods[4, :n], *of_devices]
        room = self._given[n, picks, devices] = Run(_NONE, ANY_ROW, *EVERYWHERE, *fields)
        return room

    def list_cards(self, placed: Run, k: int, shape: Shape) -> Grants:
        """List the cards of the k-th pod that was placed, of each driver a tuple per container."""
        cluster, n = self._cluster, len(shape.asked.template.kinds)
        pools, of_pool = cluster.nodes.columns.pools, cluster.cards.columns.pool
        devices = cluster.nodes.devices
        drivers, by_driver = devices.drivers, dict[int, list[list[CardUse]]]()
        template = shape.asked.template
        first = template.gpu.of_pod if template.gpu is not None else ()
        for p in range(int(placed.n_picks[k])):
            d, slot = int(placed.card[k, p]), int(placed.slot[k, p])
            driver = int(pools.driver[of_pool[d]])
            slots = by_driver.setdefault(driver, [[] for _ in range(n)])
            mib, cores = int(placed.mib[k, p]), int(placed.cores[k, p])
            model = cluster.cards.find_model(d) if devices.cards[driver].names_models else ""
            place = cluster.cards.find_place(int(placed.part[k, p]))
            use = CardUse(cluster.cards.find_uuid(d), mib, cores, model, place)
            slots[slot].append(use)
        return tuple(
            Grant(
                drivers[driver].name,
                tuple(map(tuple, slots)),
                _read_of_pod(template, drivers[driver].resources) if template.more else first,
            )
            for driver, slots in by_driver.items()
        )

    def place(
        self, part: Sequence[PodRecord], shape: Shape, moved: c.Ints, where: Rows
    ) -> list[Bind]:
        """Place pods of a shape, one after another, until one fits nowhere; charge those placed.

        ``moved`` are the rows that ``Boards.find_stale_rows`` has returned.
        """
        board = None
        if where.among.size:
            self._boards.refresh(shape)
            board, moved = self._boards.restrict(shape, where.among)
        placed = self.make_room(part, shape, moved, where)
        world = self._boards.get_world(shape)
        n = place.place_run(world, shape.ask, shape.board if board is None else board, placed)
        binds = self.assume(shape, part[:n], placed)
        if board is None and not self.are_shared(shape):
            self._boards.note_placed(shape)
        return binds

    def are_shared(self, shape: Shape) -> bool:
        """Whether devices that the pods of a shape request may be those of a shared pool."""
        if shape.ask.claims.leaves.size and self._cluster.claims.inventory.has_shared:
            return True
        if not self._cluster.shared.are_there:
            return False
        asks, find = (shape.ask, *shape.ask.more), self._cluster.shared.find_family
        return any(ask.family >= 0 and find(ask.family) for ask in asks)

    def put_at(self, pod: PodRecord, shape: Shape, row: int) -> Run:
        """Place a pod on a row, whose cards suffice for it; ranks, tables and the scratch must be up to date."""
        placed = self.make_room([pod], shape)
        placed.chosen = row
        if place.place_run(self._boards.get_world(shape), shape.ask, shape.board, placed) != 1:
            raise BrokenInvariant(f"{pod.key} fits on a node, and there are no devices for it")
        return placed

    def put(self, pod: PodRecord, shape: Shape, row: int) -> None:
        """Place a pod on a row, whose cards suffice for it, and charge it; its claims are given nothing yet."""
        placed = self.put_at(pod, shape, row)
        cards = self.list_cards(placed, 0, shape)
        allotted = self._list_allotments(shape, pod, placed, 0)
        self._cluster.assume_charged(pod.uid, row, cards, int(placed.pod[0]), allotted=allotted)
        self._cluster.moved.add(row)

    def assume(self, shape: Shape, pods: Sequence[PodRecord], placed: Run) -> list[Bind]:
        """Charge ``pods``, which are the first ones of ``placed``, and return how to bind them."""
        cluster, n, binds = self._cluster, len(pods), []
        rows = placed.row[:n].tolist()
        n_picks, pod_rows = placed.n_picks[:n].tolist(), placed.pod[:n].tolist()
        for k in range(n):
            uid = pods[k].uid
            cards = self.list_cards(placed, k, shape) if n_picks[k] else ()
            given = giving.list_given(pods[k], shape.view.storage, cluster, rows[k])
            allotted = self._list_allotments(shape, pods[k], placed, k)
            node = cluster.assume_charged(uid, rows[k], cards, pod_rows[k], given, allotted)
            binds.append(Bind(uid, node, cards, given, allotted))
        cluster.moved.add_many(rows)
        return binds

    def _list_allotments(
        self, shape: Shape, pod: PodRecord, placed: Run, k: int
    ) -> tuple[Allotment, ...]:
        """List what the claims of the k-th pod that was placed get."""
        cluster = self._cluster
        if not cluster.claims.has_claims(pod):
            return ()
        at = placed, k, cluster.nodes.find_name(int(placed.row[k]))
        found = answering.list_allotments(
            pod, shape.view.claims, cluster.claims, shape.ask.claims, at
        )
        return reserve_for_group(pod, found, cluster)

    def assume_at(self, shape: Shape, pod: PodRecord, row: int, cards: Grants) -> Bind:
        """Charge a pod to a row with exactly these cards, and return how to bind it."""
        cluster, node = self._cluster, self._cluster.nodes.find_name(row)
        given = giving.list_given(pod, shape.view.storage, cluster, row)
        cluster.assume(pod.uid, node, cards, given)
        cluster.moved.add(row)
        return Bind(pod.uid, node, cards, given)


def _read_of_pod(template: PodTemplate, resources: tuple[str, ...]) -> tuple[str, ...]:
    """Read what the driver of these resources needs of a pod for its answer; most drivers need nothing."""
    for part in template.list_by_family():
        if part.gpu is not None and part.gpu.of_pod and part.gpu.family in resources:
            return part.gpu.of_pod
    return ()


def suffice_cards(
    cluster: Cluster, boards: Boards, pod: PodRecord, shape: Shape, at: tuple[int, Grants]
) -> bool:
    """Whether a pod that is not placed could get these cards of a row now; ``at`` is the row with the cards."""
    row, grants = at
    world = boards.get_world(shape)
    for ask in (shape.ask, *shape.ask.more):
        driver = cluster.registers.find_driver(ask.family, row)
        if driver is None:
            continue
        there = cluster.registers.list_cards(pod.uid, ask.family, row)
        slots = find_slots(grants, driver.name)
        picks = [_find_pick(cluster, there, i, use) for i, uses in enumerate(slots) for use in uses]
        if driver.chooser == c.SPANS and _are_bits_used(cluster, there, slots):
            return False
        cards = np.array(picks, np.int64).reshape(-1, 3)
        if not gpus.suffices(world, ask, row, cards):
            return False
    return True


def _find_pick(
    cluster: Cluster, there: Mapping[str, int], container: int, use: CardUse
) -> tuple[int, int, int]:
    """Find the row of a card, with the container that has it and the part that it has; -1 for a card without that part."""
    d = there.get(use.uuid, -1)
    part = cluster.cards.find_part(d, use.place)
    return (-1 if use.place is not None and part == c.NO_PART else d), container, part


def _are_bits_used(cluster: Cluster, there: Mapping[str, int], slots: Slots) -> bool:
    """Whether other pods have cores of devices that are given core by core; ``there`` are the rows of the devices."""
    used = cluster.cards.columns.used[c.CORES]
    return any(
        bool(int(used[there[use.uuid]]) & use.cores)
        for uses in slots
        for use in uses
        if there.get(use.uuid, -1) >= 0
    )


def are_by_cards(cluster: Cluster, shape: Shape, row: int) -> bool:
    """Whether any devices that the pods of a shape request are allocated one by one on a row."""
    asks = (shape.ask, *shape.ask.more)
    return any(cluster.registers.find_driver(ask.family, row) is not None for ask in asks)
