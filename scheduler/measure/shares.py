"""Each pod's share of the used capacity of its node; the shares add up to what is used.

CPU and memory are what the pod is charged. Of a card it has what it holds; a pod without a limit on compute is taken to
use as much of it as it holds of the memory. Where more is held of a card than there is, all parts are less by the same
factor. Of devices that are counted, a pod has as many as it requests; where a plugin reports each card several
times, each is a part of its card.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scheduler.api import names as resources
from scheduler.measure import cards as all_cards
from scheduler.measure import figures as m
from scheduler.measure.cards import Cards
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord


class Shares(NamedTuple):
    """Of P pods on N nodes, whose names were given."""

    pods: list[PodRecord]  # [P] those that are charged to one of the nodes
    node: c.Ints  # [P] its place among the nodes
    amounts: c.Floats  # [4, P] in natural units, by ``figures.DIMENSIONS``


def of_pods(cluster: Cluster, names: Sequence[str]) -> Shares:
    """What every pod has of the nodes. O(pods + cards)."""
    place = {name: i for i, name in enumerate(names)}
    pods = [pod for pod in cluster.pods.values() if pod.row >= 0 and pod.node in place]
    node = np.array([place[pod.node] for pod in pods], np.int64)
    cards = all_cards.of_rows(
        cluster, np.array([cluster.nodes.row_of(name) for name in names], np.int64)
    )
    families = [family.resource for family in cluster.registers.families]
    requested = _find_requests(pods, [resources.CPU, resources.MEMORY, *families])
    amounts = np.zeros((len(m.DIMENSIONS), len(pods)))
    amounts[: m.GPU] = requested[: m.GPU] / m.UNITS
    _add_held(cluster, cards, pods, amounts)
    _add_counted(cards, requested[m.GPU :], node, amounts)
    return Shares(pods, node, amounts)


def _find_requests(pods: Sequence[PodRecord], wanted: Sequence[str]) -> c.Floats:
    """[resources, P] what each pod requests; read once for each template."""
    templates = {id(pod.template): pod.template for pod in pods}
    column = {template: i for i, template in enumerate(templates)}
    by_template = np.zeros((len(wanted), len(templates)))
    for i, template in enumerate(templates.values()):
        amounts = dict(template.requests.amounts)
        by_template[:, i] = [amounts.get(resource, 0) for resource in wanted]
    return by_template[:, np.array([column[id(pod.template)] for pod in pods], np.int64)]


def _add_held(cluster: Cluster, cards: Cards, pods: Sequence[PodRecord], amounts: c.Floats) -> None:
    """Of cards that are told one by one."""
    table = cluster.cards.columns
    entered = cluster.ledger.pods.columns
    first, n_held = entered.held[:, np.array([pod.row for pod in pods], np.int64)]
    pod = np.repeat(np.arange(len(pods)), n_held)
    card, cores, mib, _ = entered.holds[all_cards.rows_of_runs(first, n_held)].T
    memory = mib * table.milli[c.MIB, card] / c.WHOLE
    compute = np.where(cores > 0, cores * table.milli[c.CORES, card] / c.WHOLE, memory)
    is_told = cards.row >= 0
    for dimension, part, used in (
        (m.GPU, compute, cards.used[0]),
        (m.GPU_MEMORY, memory, cards.used[1]),
    ):
        held = np.bincount(card, part, table.numa.size)
        of_card = np.zeros(table.numa.size)
        of_card[cards.row[is_told]] = used[is_told]
        factor = np.divide(of_card, held, where=held > 0, out=np.zeros(held.size))
        amounts[dimension] += np.bincount(pod, part * factor[card], len(pods))


def _add_counted(cards: Cards, requested: c.Floats, node: c.Ints, amounts: c.Floats) -> None:
    """Of devices of which a node reports the number alone; ``requested`` [F, P] by families."""
    n = int(max(node.max(initial=-1), cards.owner.max(initial=-1))) + 1
    for pool, asked in enumerate(requested):
        entries = np.flatnonzero((cards.row < 0) & (cards.pool == pool))
        used = np.zeros(n)
        used[cards.owner[entries]] = cards.used[0][entries]
        total = np.bincount(node, asked, n)
        factor = np.divide(used, total, where=total > 0, out=np.zeros(n))
        amounts[m.GPU] += asked * factor[node]
