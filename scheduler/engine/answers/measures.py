"""Answers about what is in use, free and stranded."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scheduler.api.door.events import DemandRecalled
from scheduler.engine.answers.inside import Inside
from scheduler.engine.questions import measures as ask
from scheduler.engine.questions.contract import Readings, Steps
from scheduler.measure import cards as all_cards
from scheduler.measure import figures, shares, typical
from scheduler.modes.fragmentation import FragmentGauge
from scheduler.schema import columns as c
from scheduler.state import checks
from scheduler.state.cluster import Cluster


def recall_departures(inside: Inside, _: ask.Departures) -> DemandRecalled:
    """How fast pods leave."""
    devices, plain = inside.cluster.demand.devices, inside.cluster.demand.plain
    return DemandRecalled(devices.departures, devices.horizon, plain.departures, plain.horizon)


def recount(inside: Inside, _: ask.Totals) -> Steps[None]:
    """Recount every total."""
    yield from checks.verify_by_node(inside.cluster)


def copy_devices(inside: Inside, _: ask.Devices) -> ask.DeviceColumns:
    """The columns of all devices."""
    cluster = inside.cluster
    table, cards = cluster.nodes, cluster.cards
    nodes, card = table.columns, cards.columns
    devices = cluster.registers.devices
    names, rows = list(table.rows), np.array(list(table.rows.values()), np.int64)
    own, pools = all_cards.stack_pools(cluster, rows), nodes.pools
    managed, at = pools.managed[own], pools.resource[own]
    runs = np.array([pools.start[own], pools.count[own]])
    return ask.DeviceColumns(
        names,
        tuple(devices.families),
        np.array([nodes.allocatable[at, rows], nodes.requested[at, rows]])
        * ~managed
        * pools.part[c.PART_GPUS, own],
        managed,
        np.array([pools.total[:, own], pools.used[:, own]]).transpose(0, 2, 1, 3),
        runs * managed,
        np.array([card.total, card.used]),
        np.array([card.position, card.uuid, card.model]),
        tuple(map(devices.show, devices.families)),
        cards.uuids.values,
        cards.models.values,
    )


def copy_holds(inside: Inside, _: ask.Holds) -> ask.HoldColumns:
    """What every pod holds on cards."""
    cluster = inside.cluster
    pods = cluster.ledger.pods.columns
    rows = np.flatnonzero(pods.node >= 0)
    first, n = pods.held[:, rows]
    holds = pods.holds[all_cards.list_run_rows(first, n)]
    # What is held of a part of a card is in the row of the card.
    of_cards = holds[:, c.HOLD_PART] == c.NO_PART
    return ask.HoldColumns(
        tuple(cluster.pods.values()),
        np.repeat(rows, n)[of_cards],
        holds[of_cards][:, : c.HOLD_PART],
    )


def copy_parts(inside: Inside, _: ask.Instances) -> ask.PartColumns | None:
    """What pods hold of parts of cards."""
    cluster = inside.cluster
    if not cluster.cards.has_parts:
        return None
    pods = cluster.ledger.pods.columns
    rows = np.flatnonzero(pods.node >= 0)
    first, n = pods.held[:, rows]
    holds = pods.holds[all_cards.list_run_rows(first, n)]
    of_parts = holds[:, c.HOLD_PART] > c.NO_PART
    cards = holds[of_parts, c.HOLD_CARD]
    some = np.unique(cards).tolist()
    uuids = {d: cluster.cards.find_uuid(d) for d in some}
    kinds = cluster.cards.columns.carving[some].tolist()
    places = {kind: cluster.cards.carvings.list_places(kind) for kind in set(kinds)}
    return ask.PartColumns(
        tuple(cluster.pods.values()),
        np.repeat(rows, n)[of_parts],
        cards,
        uuids,
        {d: places[kind] for d, kind in zip(some, kinds, strict=True)},
    )


def measure_stranded(inside: Inside, _: ask.Stranded) -> Steps[ask.StrandedFigures]:
    """What is stranded, and who has the GPUs."""
    cluster = inside.cluster
    judges = typical.find_typical(cluster)
    yield
    gpus = _sum_gpus(cluster)
    yield
    return ask.StrandedFigures((yield from figures.measure_in_steps(cluster, judges)), gpus)


def _sum_gpus(cluster: Cluster) -> dict[str, float]:
    """GPUs by namespace, as ``evenkeel audit --by namespace`` counts them; namespaces without GPUs are left out."""
    found = shares.measure_shares(cluster, figures.list_node_names(cluster))
    has = np.flatnonzero(found.amounts[figures.GPU] > 0)
    sums: dict[str, float] = {}
    for i, gpus in zip(has.tolist(), found.amounts[figures.GPU, has].tolist(), strict=True):
        namespace = found.pods[i].namespace
        sums[namespace] = sums.get(namespace, 0.0) + gpus
    return sums


def read_fragments(inside: Inside, question: ask.Fragments) -> Readings[float]:
    """How much of the idle GPU no typical pod can use."""
    gauge = FragmentGauge(inside.cluster, question.demand)
    while True:
        yield gauge.read()


def read_changed(inside: Inside, question: ask.ChangedNodes) -> Readings[ask.NodeColumns]:
    """What the nodes are that changed."""
    cluster, position = inside.cluster, -1
    resources = [cluster.nodes.find_row_asked(name) for name in question.resources]
    asked = np.array(resources, np.int64)[:, None]
    while True:
        moved = cluster.moved.list_since(position) if position >= 0 else None
        nodes = cluster.nodes.columns
        rows = np.flatnonzero(nodes.valid) if moved is None else moved
        position = cluster.moved.position
        yield ask.NodeColumns(
            rows,
            cluster.nodes.capacity,
            nodes.allocatable[asked, rows],
            nodes.requested[asked, rows],
            all_cards.read_cards(cluster, rows),
            cluster.cards.models.values,
        )


def read_use(inside: Inside, _: ask.UseByNode) -> Mapping[str, ask.NodeUse]:
    """What is in use on every node."""
    nodes, cards = inside.cluster.nodes.columns, inside.cluster.cards.columns
    found = {}
    for name, row in inside.cluster.nodes.rows.items():
        pool = int(nodes.first_pool[row])
        start, n_cards = int(nodes.pools.start[pool]), int(nodes.pools.count[pool])
        used = cards.used[c.CORES, start : start + n_cards]
        found[name] = ask.NodeUse(
            int(nodes.requested[c.CPU, row]),
            int(nodes.requested[c.MEMORY, row]),
            tuple(used.tolist()),
        )
    return found


def count_occupied(inside: Inside, _: ask.OccupiedNodes) -> int:
    """How many nodes have any pod."""
    return len(inside.cluster.pods_on)
