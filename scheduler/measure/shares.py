"""Each pod's share of the used capacity of its node; the shares add up to what is used.

CPU and memory are what the pod is charged. Of a card, the pod has the part that it holds; a pod without a limit on compute
has the same share of the compute as of the memory. If pods hold more of a card than the card has, all parts are reduced
by the same factor. Of devices that are only counted, a pod has as many as it requests; each may be a part of a card.
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
    """The shares of P pods on given nodes."""

    pods: list[PodRecord]  # [P] the pods that are charged to one of the nodes
    node: c.Ints  # [P] the place of the pod's node among the nodes
    amounts: c.Floats  # [4, P] in natural units, by ``figures.DIMENSIONS``


def measure_shares(cluster: Cluster, names: Sequence[str]) -> Shares:
    """Measure the share of every pod on the named nodes. O(pods + cards)."""
    place = {name: i for i, name in enumerate(names)}
    pods = [pod for pod in cluster.pods.values() if pod.row >= 0 and pod.node in place]
    node = np.array([place[pod.node] for pod in pods], np.int64)
    cards = all_cards.read_cards(
        cluster, np.array([cluster.nodes.find_row(name) for name in names], np.int64)
    )
    families = cluster.registers.devices.families
    requested = _find_requests(pods, [resources.CPU, resources.MEMORY, *families])
    amounts = np.zeros((len(m.DIMENSIONS), len(pods)))
    amounts[: m.GPU] = requested[: m.GPU] / m.UNITS
    _add_held(cluster, cards, pods, amounts)
    _add_counted(cards, requested[m.GPU :], node, amounts)
    return Shares(pods, node, amounts)


def _find_requests(pods: Sequence[PodRecord], wanted: Sequence[str]) -> c.Floats:
    """Find [resources, P] what each pod requests; each template is read once."""
    templates = {id(pod.template): pod.template for pod in pods}
    column = {template: i for i, template in enumerate(templates)}
    by_template = np.zeros((len(wanted), len(templates)))
    for i, template in enumerate(templates.values()):
        amounts = dict(template.requests.amounts)
        by_template[:, i] = [amounts.get(resource, 0) for resource in wanted]
    return by_template[:, np.array([column[id(pod.template)] for pod in pods], np.int64)]


def _add_held(cluster: Cluster, cards: Cards, pods: Sequence[PodRecord], amounts: c.Floats) -> None:
    """Add the shares of cards that are reported one by one."""
    table = cluster.cards.columns
    entered = cluster.ledger.pods.columns
    first, n_held = entered.held[:, np.array([pod.row for pod in pods], np.int64)]
    pod = np.repeat(np.arange(len(pods)), n_held)
    # Rows of parts of cards have no figures: they are in the row of the card.
    holds = entered.holds[all_cards.list_run_rows(first, n_held)]
    of_cards = holds[:, c.HOLD_PART] >= c.NO_PART
    pod, (card, cores, mib) = pod[of_cards], holds[of_cards, : c.HOLD_SLOTS].T
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
    """Add the shares of devices of which a node reports only the number; ``requested`` [F, P] by family."""
    n = int(max(node.max(initial=-1), cards.owner.max(initial=-1))) + 1
    for family, asked in enumerate(requested):
        entries = np.flatnonzero((cards.row < 0) & (cards.family == family))
        total = np.bincount(node, asked, n)
        for figure, dimension in enumerate((m.GPU, m.GPU_MEMORY)):
            used = np.zeros(n)
            used[cards.owner[entries]] = cards.used[figure][entries]
            factor = np.divide(used, total, where=total > 0, out=np.zeros(n))
            amounts[dimension] += asked * factor[node]
