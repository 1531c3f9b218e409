"""Whether nodes together have enough free for a team whose pods differ: a bound that takes no try.

Each kind of its pods may have places enough in a domain though there is not enough for all kinds together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from scheduler.api import quantities
from scheduler.api.pods.templates import PodTemplate
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Team
from scheduler.state.pods import PodRecord

# Lists the pods of a leaf that have no node yet, and counts how many of them must have one at once.
FindWaiting = Callable[[Team], tuple[Sequence[PodRecord], int]]


def find_all_waiting(team: Team) -> tuple[Sequence[PodRecord], int]:
    """List the pods of a leaf, none of which has a node, and count how many must have one at once."""
    return team.pods, team.n_missing


def sum_least(cluster: Cluster, team: Team, find_waiting: FindWaiting) -> c.Ints:
    """Sum [R] what the pods of a team that must have a node at once request at least, of each resource."""
    if team.teams:
        parts = [sum_least(cluster, one, find_waiting) for one in team.teams]
        return _sum_smallest(np.array(parts, np.int64), team.minimum)
    pods, least = find_waiting(team)
    find, n_resources = cluster.nodes.resources.find, len(cluster.nodes.columns.requested)
    by_template: dict[int, c.Ints] = {}
    for pod in pods:
        if id(pod.template) not in by_template:
            amounts = by_template[id(pod.template)] = np.zeros(n_resources, np.int64)
            for name, amount in pod.template.requests.amounts:
                if (row := find(name)) >= 0:
                    amounts[row] = amount
    if not pods or least <= 0:
        return np.zeros(n_resources, np.int64)
    return _sum_smallest(np.array([by_template[id(pod.template)] for pod in pods]), least)


def sum_requests(cluster: Cluster, counts: Iterable[tuple[PodTemplate, int]]) -> c.Ints:
    """Sum [R] what pods request of each resource, and how many they are; ``counts``: how many pods of each template."""
    find = cluster.nodes.resources.find
    amounts = [0] * len(cluster.nodes.columns.requested)
    for template, n_pods in counts:
        amounts[c.PODS] += n_pods
        for name, amount in template.requests.amounts:
            if (row := find(name)) >= 0:
                amounts[row] += amount * n_pods
    return np.array([min(quantities.INT64_MAX, amount) for amount in amounts], np.int64)


def find_enough(
    cluster: Cluster, least: c.Ints, domain: c.Ints, n_domains: int, among: c.Flags
) -> c.Flags:
    """Find [n_domains] in which domains the nodes together have so much of each resource free.

    Args:
        cluster: the cluster.
        least: [R] the amounts.
        domain: [N] the number of the domain of each node; negative for none.
        n_domains: how many domains there are.
        among: [N] the only nodes that count; [0] for all.
    """
    nodes = cluster.nodes.columns
    counted = nodes.valid & (domain >= 0)
    rows = np.flatnonzero(counted & among if among.size else counted)
    enough = np.ones(n_domains, np.bool_)
    # Where devices are allocated card by card, amounts say nothing of them.
    by_cards = cluster.nodes.find_any_managed()[rows]
    for resource in np.flatnonzero(least).tolist():
        free = np.maximum(nodes.allocatable[resource, rows] - nodes.requested[resource, rows], 0)
        if resource > c.UNKNOWN:
            free = np.where(by_cards, least[resource], free)
        # Sums of floats may be one off, and must not be too small.
        there = np.bincount(domain[rows], free.astype(np.float64), n_domains)
        enough &= there >= least[resource] * (1 - 1e-9)
    return enough


def have_enough(cluster: Cluster, least: c.Ints, among: c.Flags) -> bool:
    """Whether the nodes among some [N], [0] for all, together have so much [R] of each resource free."""
    everywhere = np.zeros(cluster.nodes.capacity, np.int64)
    return bool(find_enough(cluster, least, everywhere, 1, among)[0])


def _sum_smallest(amounts: c.Ints, n: int) -> c.Ints:
    """Sum [R] the n smallest of [k, R] amounts, of each resource by itself."""
    found: c.Ints = np.sort(amounts, axis=0)[:n].sum(axis=0)
    return found
