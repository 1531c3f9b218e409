"""Checks of invariants: every total in the columns is counted again from the pods, in the slow and obvious way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from scheduler.api import names
from scheduler.api.groups.definitions import GroupKey
from scheduler.api.pods import gpus
from scheduler.errors import BrokenInvariant
from scheduler.schema import columns as c
from scheduler.state.charging.charges import find_mark
from scheduler.state.claims import recount as of_claims
from scheduler.state.cluster import Cluster
from scheduler.state.counting import classes
from scheduler.state.groups import forming
from scheduler.state.groups.running import list_kept, list_running, split_pods
from scheduler.state.pods import PodRecord
from scheduler.state.told_cards import NOTHING
from scheduler.state.volumes import recount


def take_fingerprint(cluster: Cluster) -> dict[str, Any]:
    """Collect all figures by name, without rows: equal for equal clusters, whatever their history."""
    return {name: _read_figures(cluster, row) for name, row in cluster.nodes.rows.items()}


def _read_columns(cluster: Cluster, pod: PodRecord) -> tuple[Any, ...]:
    """Read the priority and the start of a pod that has a node, and what it holds on cards."""
    pods = cluster.ledger.pods
    held = sorted(
        (cluster.cards.find_uuid(d), *figures, cluster.cards.find_place(part))
        for d, *figures, part in pods.read_held(pod.row).tolist()
    )
    return int(pods.columns.priority[pod.row]), int(pods.columns.start[pod.row]), held


def _read_figures(cluster: Cluster, row: int) -> dict[str, Any]:
    nodes, cards = cluster.nodes.columns, cluster.cards.columns
    name = cluster.nodes.find_name(row)
    return {
        "facts": cluster.nodes.facts[row],
        "valid": bool(nodes.valid[row]),
        "allocatable": _name_resources(cluster, nodes.allocatable, row),
        "requested": {
            resource: amount
            for resource, amount in _name_resources(cluster, nodes.requested, row).items()
            if resource not in gpus.SIZES
        },
        "nonzero": nodes.nonzero[:, row].tolist(),
        "has_gpu": bool(nodes.has_gpu[row]),
        "pools": [
            (
                cluster.registers.devices.families[int(nodes.pools.family[pool])],
                cluster.registers.devices.drivers[int(nodes.pools.driver[pool])].name,
                bool(nodes.pools.managed[pool]),
                cluster.nodes.resources.values[int(nodes.pools.resource[pool])],
                int(nodes.pools.node[pool]) == row,
                nodes.pools.total[:, pool].tolist(),
            )
            for pool in cluster.registers.list_pools(row)
        ],
        "gpu_used": [
            nodes.pools.used[:, pool].tolist() for pool in cluster.registers.list_pools(row)
        ],
        "ports": cluster.nodes.ports.list_on(row),
        "pods": {
            uid: _read_columns(cluster, pod) for uid, pod in cluster.pods_on.get(name, {}).items()
        },
        "cards": {
            cluster.cards.find_uuid(d): (
                cards.total[:, d].tolist(),
                cards.used[:, d].tolist(),
                bool(cards.healthy[d]),
                bool(cards.cordoned[d]),
                bool(cards.mig[d]),
                cluster.cards.carvings.list_places(int(cards.carving[d])),
                int(nodes.pools.family[cards.pool[d]]),
                int(cards.numa[d]),
                int(cards.position[d]),
                cluster.cards.models.values[int(cards.model[d])],
                cluster.cards.modes.values[int(cards.mode[d])],
                cluster.cards.kinds.values[int(cards.kind[d])],
                int(cards.marks[d]),
            )
            for d in cluster.registers.list_card_rows(row)
        },
    }


def verify(cluster: Cluster) -> None:
    """Recount what is in use on every node and card.

    Raises:
        BrokenInvariant: a total is not the sum of its pods.
    """
    for _ in verify_by_node(cluster):
        pass


def verify_by_node(cluster: Cluster) -> Iterator[None]:
    """As ``verify``, one node at a time; figures that may change between two steps are checked within one step."""
    for name in list(cluster.nodes.rows):
        if name in cluster.nodes.rows:
            _verify_node(cluster, name)
            yield
    for root in dict.fromkeys(cluster.groups.list_roots().values()):
        _verify_group(cluster, root)
        yield
    _verify_kept_rows(cluster)
    _verify_shared(cluster)
    _verify_terms(cluster)
    nodes = cluster.nodes
    if (signed := nodes.was_signed.sum(axis=1).tolist()) != nodes.n_signed:
        raise BrokenInvariant(
            f"plugins have written on {signed} nodes, {nodes.n_signed} are counted"
        )
    storage, charged = cluster.storage, cluster.roster.list_charged()
    if problem := recount.find_difference(storage, cluster.nodes, charged):
        raise BrokenInvariant(problem)
    if problem := of_claims.find_difference(cluster.claims):
        raise BrokenInvariant(problem)
    # Records are compared by identity: an old record of a pod would be charged and taken back with other figures.
    rows = [pod.row for pod in cluster.pods.values() if pod.node]
    if len(set(rows)) < len(rows) or min(rows, default=0) < 0:
        raise BrokenInvariant("two pods have one row of the pod table, or one with a node has none")
    there = {(node, id(pod)) for node, pods in cluster.pods_on.items() for pod in pods.values()}
    placed = {(pod.node, id(pod)) for pod in cluster.pods.values() if pod.node}
    if there != placed:
        raise BrokenInvariant(
            f"pods by node and pods by uid differ on {len(there ^ placed)} records"
        )


def _verify_group(cluster: Cluster, root: GroupKey) -> None:
    """Find anew which pods of a root group are on nodes, and which of them do not go by themselves."""
    groups = cluster.groups
    within = forming.list_groups_within(root, groups)
    known, found = groups.kept.list_running(root, groups), list_running(within, groups)
    if known != found:
        raise BrokenInvariant(f"of {root} {known} are known to run, {found} do")
    split = split_pods(groups.find_definition(root), found)
    if (told := groups.kept.find_split(root, groups)) != split:
        raise BrokenInvariant(f"{root} is known to be split as {told}, not as {split}")
    kept, anew = groups.kept.list_kept(root), list_kept(split)
    if kept != anew:
        raise BrokenInvariant(f"of {root} {kept} are known to be kept, {anew} are")


def _verify_kept_rows(cluster: Cluster) -> None:
    """Find anew which rows of the pod table have pods that do not go by themselves."""
    kept = cluster.groups.kept
    known = np.flatnonzero(kept.find_rows(cluster.ledger.pods.columns.node.size)).tolist()
    roots = cluster.groups.list_roots().values()
    rows = {cluster.pods[uid].row for root in roots for uid in kept.list_kept(root)} - {-1}
    if known != sorted(rows):
        raise BrokenInvariant(f"rows {known} are known to be kept, {sorted(rows)} are")


def _verify_shared(cluster: Cluster) -> None:
    """Count again what pods hold of the devices that belong to no single node."""
    nodes, cards = cluster.nodes.columns, cluster.cards.columns
    for pool in nodes.shared.tolist():
        first, n = int(nodes.pools.start[pool]), int(nodes.pools.count[pool])
        used = np.zeros((3, n), np.int64)
        for _, pod in cluster.roster.list_charged():
            for d, figures in cluster.read_held(pod).items():
                if first <= d < first + n:
                    used[:, d - first] += figures
        _check_same(
            "a shared pool", "cards", cards.used[:, first : first + n].tolist(), used.tolist()
        )
        _check_same(
            "a shared pool", "used", nodes.pools.used[:, pool].tolist(), used.sum(axis=1).tolist()
        )


def _verify_terms(cluster: Cluster) -> None:
    """Count the pods of every class again."""
    held = cluster.terms.read_held()
    if held is None:
        return
    counted: dict[Any, Counter[int]] = {}
    for name, pods in cluster.pods_on.items():
        row = cluster.nodes.find_row(name)
        for pod in pods.values() if row >= 0 else ():
            counted.setdefault(classes.make_key(pod), Counter())[row] += 1
    if held != counted:
        raise BrokenInvariant(f"pods by class are {held}, the pods on nodes are {counted}")


def _verify_node(cluster: Cluster, name: str) -> None:
    row = cluster.nodes.rows[name]
    figures = _read_figures(cluster, row)
    pods = list(cluster.pods_on.get(name, {}).values())
    requested: Counter[str] = Counter()
    nonzero, sizes = [0, 0], Counter[str]()
    ports: Counter[tuple[str, int, str]] = Counter()
    used: dict[str, list[int]] = {uuid: [0, 0, 0] for uuid in figures["cards"]}
    marks = dict.fromkeys(used, 0)
    by_pool = {pool: [0, 0, 0] for pool in cluster.registers.list_pools(row)}
    for pod in pods:
        asked = pod.template.requests
        # A resource that no node offers is charged to no pod.
        row_asked = cluster.nodes.find_row_asked
        requested.update({name: n for name, n in asked.amounts if row_asked(name) != c.UNKNOWN})
        requested[names.PODS] += 1
        nonzero[0] += asked.nonzero_cpu
        nonzero[1] += asked.nonzero_memory
        ports.update(pod.template.ports)
        if pod.template.size >= 0:
            sizes[gpus.SIZES[pod.template.size]] += 1
        _verify_row(cluster, name, pod)
        for d, figures_held in cluster.read_held(pod).items():
            if cluster.nodes.columns.pools.node[cluster.cards.columns.pool[d]] < 0:
                # Pods of all nodes hold devices of shared pools: see ``_verify_shared``.
                continue
            marks[cluster.cards.find_uuid(d)] += find_mark(pod.template)
            for i, figure in enumerate(figures_held):
                used[cluster.cards.find_uuid(d)][i] += figure
                by_pool[int(cluster.cards.columns.pool[d])][i] += figure
    _check_same(name, "requested", figures["requested"], dict(requested))
    _check_same(name, "nonzero", figures["nonzero"], nonzero)
    kept = {total: n for total, n in sizes.items() if cluster.nodes.resources.find(total) >= 0}
    totals = _name_resources(cluster, cluster.nodes.columns.requested, row)
    found = {total: n for total, n in totals.items() if total in gpus.SIZES}
    _check_same(name, "pods by size", found, kept)
    _check_same(name, "ports", figures["ports"], dict(ports))
    if cluster.registers.is_misjudged(row):
        raise BrokenInvariant(f"{name} has other pools than its drivers say")
    closed = {
        uuid
        for number, driver in cluster.registers.devices.cards.items()
        for uuid in driver.list_closed(figures["facts"].find_reading(number).words)
    }
    closed |= cluster.registers.probation.get_cards(name).keys()
    silent = bool(cluster.nodes.silent[row])
    for uuid, counted in used.items():
        _check_same(name, f"card {uuid}", figures["cards"][uuid][1], counted)
        _check_same(name, f"card {uuid} marks", figures["cards"][uuid][-1], marks[uuid])
        _check_same(
            name, f"card {uuid} cordoned", figures["cards"][uuid][3], silent or uuid in closed
        )
    _check_same(name, "gpu_used", figures["gpu_used"], list(by_pool.values()))


def _verify_row(cluster: Cluster, name: str, pod: PodRecord) -> None:
    """Compare a pod's row of the pod table with its record and its claim."""
    ledger, row = cluster.ledger, cluster.nodes.rows[name]
    columns = ledger.pods.columns
    holds = NOTHING
    if pod.template.most:
        holds = cluster.registers.list_holds(pod, ledger.get_containers, row)
    found = (
        int(columns.node[pod.row]),
        int(columns.priority[pod.row]),
        int(columns.charge[pod.row]),
        sorted(ledger.pods.read_held(pod.row).tolist()),
    )
    expected = (
        row,
        pod.priority,
        ledger.charges.number_template(pod.template),
        sorted(holds.tolist()),
    )
    _check_same(name, f"row of pod {pod.key}", found, expected)


def count_closed_nodes(cluster: Cluster) -> dict[str, int]:
    """Count the nodes with closed GPUs, all or some of them, by reason; O(cards) in columns."""
    nodes, cards = cluster.nodes.columns, cluster.cards.columns
    is_full = cluster.cards.find_overfull(np.arange(cards.numa.size))
    over = np.concatenate(([0], np.cumsum(is_full)))
    pools = nodes.pools
    n_full = over[pools.start + pools.count] - over[pools.start]
    return {
        "malformed": sum(bool(f and f.problem) for f in cluster.nodes.facts),
        "plugin-silent": int(cluster.nodes.silent.sum()),
        "over-full-card": np.unique(pools.node[n_full > 0]).size,
        "cordoned": int((cluster.nodes.unschedulable & nodes.valid).sum()),
    }


def list_overcommitted(cluster: Cluster) -> list[str]:
    """List the cards that are charged more than they have, as ``node/uuid``; the list must always be empty."""
    is_over = cluster.cards.find_overfull(np.arange(cluster.cards.columns.numa.size))
    return [
        f"{name}/{cluster.cards.find_uuid(d)}"
        for name, row in cluster.nodes.rows.items()
        for d in cluster.registers.list_card_rows(row)
        if is_over[d]
    ]


def _name_resources(cluster: Cluster, matrix: c.Ints, row: int) -> dict[str, int]:
    return {
        resource: int(matrix[r, row])
        for r, resource in enumerate(cluster.nodes.resources.values)
        if r < matrix.shape[0] and matrix[r, row]
    }


def _check_same(node: str, what: str, found: object, counted: object) -> None:
    if found != counted:
        raise BrokenInvariant(f"node {node}: {what} is {found}, its pods sum up to {counted}")
