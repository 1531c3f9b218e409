"""Reads a team as Koordinator reads a gang, and says which of its pods go to which nodes by Koordinator's rules."""

from __future__ import annotations

import numpy as np

from scheduler.api import names
from scheduler.placing.groups import koordinator
from scheduler.placing.groups.choices import Choice, Part, Step
from scheduler.placing.groups.domains import Level
from scheduler.placing.groups.koordinator import Layer, Room
from scheduler.schema import columns as c
from scheduler.state.entities import Where
from scheduler.state.pods import PodRecord

_LAST = 2**62


def list_steps(choice: Choice) -> list[Step]:
    """List the one step in which the pods of a team go to nodes; none if Koordinator finds no place for all."""
    where = choice.team.where
    pods = _list_in_order(choice)
    if where is None or not pods:
        return []
    levels = _list_levels(choice, where)
    rows = _find_rows(choice, levels)
    layers = _make_layers(choice, where, levels, rows)
    room = Room(
        _count_offers(choice, pods)[rows],
        _count_existing(choice, pods[0])[rows],
    )
    found = koordinator.plan(layers, room, len(pods), where.required)
    if found is None:
        return []
    shares = [(int(rows[node]), n) for node, n in found]
    return [Step(_make_parts(shares, pods, choice.cluster.nodes.capacity), [])]


def _list_in_order(choice: Choice) -> list[PodRecord]:
    """List the pods by index, then by name."""
    ranks = {
        pod.uid: rank if rank >= 0 else _LAST
        for leaf, _ in choice.waiting
        for pod, rank in zip(leaf.pods, leaf.ranks, strict=True)
    }
    pods = [pod for _, pods in choice.waiting for pod in pods]
    return sorted(pods, key=lambda pod: (ranks[pod.uid], pod.name))


def _list_levels(choice: Choice, where: Where) -> list[Level]:
    """List the levels above the nodes. Nodes are a layer of their own, whatever labels they have."""
    labels = where.labels[:-1] if where.labels[-1] == names.HOSTNAME else where.labels
    return [choice.domains.get_level(labels[: i + 1]) for i in range(len(labels))]


def _find_rows(choice: Choice, levels: list[Level]) -> c.Ints:
    """Find the nodes in the tree: those with the labels of all layers; the label of the finest one may be missing."""
    nodes = choice.cluster.nodes.columns
    could = nodes.valid.copy()
    if len(levels) > 1:
        could &= levels[-2].domain >= 0
    if choice.among.size:
        could &= choice.among
    return np.flatnonzero(could)


def _make_layers(choice: Choice, where: Where, levels: list[Level], rows: c.Ints) -> list[Layer]:
    multiples = dict(where.slices)
    nodes = choice.cluster.nodes
    nodes.refresh_ranks()
    layers: list[Layer] = []
    domain = np.zeros(rows.size, np.int64)
    for i, level in enumerate(levels):
        domain, parent = level.domain[rows], level.parent
        words = [name[-1] for name in level.names]
        if i == len(levels) - 1:
            # A node without the label of the finest layer is a domain of its own, which has the node's name.
            lost = np.flatnonzero(domain < 0)
            above = levels[-2].domain[rows[lost]] if i else np.zeros(lost.size, np.int64)
            domain[lost] = np.arange(len(words), len(words) + lost.size)
            parent = np.concatenate((parent, above))
            words += [nodes.find_name(row) for row in rows[lost].tolist()]
        places = {word: place for place, word in enumerate(sorted(set(words)))}
        rank = np.array([places[word] for word in words], np.int64)
        layers.append(Layer(parent, rank, multiples.get(i, 1)))
    finest = multiples.get(len(levels), 1)
    layers.append(Layer(domain, nodes.columns.rank[rows].astype(np.int64), finest))
    return layers


def _count_offers(choice: Choice, pods: list[PodRecord]) -> c.Ints:
    """Count [N] how many of the pods fit on each node, one after the other until one does not fit."""
    templates = {id(pod.template): pod for pod in pods}
    places = {key: choice.count_places(pod, None) for key, pod in templates.items()}
    if len(places) == 1:
        return np.minimum(next(iter(places.values())), len(pods))
    nodes = choice.cluster.nodes
    free = nodes.columns.allocatable - nodes.columns.requested
    offers = np.zeros(free.shape[1], np.int64)
    fits = np.ones(free.shape[1], np.bool_)
    asked = np.zeros(free.shape[0], np.int64)
    counted = dict.fromkeys(places, 0)
    for pod in pods:
        counted[id(pod.template)] += 1
        fits &= places[id(pod.template)] >= counted[id(pod.template)]
        for name, amount in pod.template.requests.amounts:
            resource = nodes.resources.find(name)
            if resource < 0:
                continue
            asked[resource] += amount
            # The figures of cards count in the places of each kind of pod.
            taken = asked[resource] <= free[resource]
            fits &= taken | choice.cluster.nodes.find_any_managed()
        offers += fits
    return offers


def _count_existing(choice: Choice, first: PodRecord) -> c.Ints:
    """Count [N] the pods on each node whose company the first pod asks for by its selector."""
    cluster = choice.cluster
    counts = np.zeros(cluster.nodes.capacity, np.int64)
    says = first.member
    if says is None or not says.company:
        return counts
    for uid in cluster.groups.list_company(says.company):
        row = cluster.nodes.find_row(cluster.pods[uid].node)
        if row >= 0:
            counts[row] += 1
    return counts


def _make_parts(shares: list[tuple[int, int]], pods: list[PodRecord], n_rows: int) -> list[Part]:
    """Give each node of the plan the next pods in order."""
    parts, at = list[Part](), 0
    for row, n in shares:
        rows = np.zeros(n_rows, np.bool_)
        rows[row] = True
        parts.append(Part(pods[at : at + n], rows))
        at += n
    return parts
