"""The nodes that Koordinator chooses for a gang that is gathered in layers of the network, to the letter.

Source: koordinator-sh/koordinator, pkg/scheduler/plugins/coscheduling/core/network_topology_solver.go at a7a1b76b. The
places of nodes ("offer slots") are summed up from layer to layer. Of the domains of the finest layer that take all pods
the smallest is chosen, and within it the largest ones are filled first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scheduler.schema import columns as c


class Layer(NamedTuple):
    """The domains of one layer; in the finest one each is a node.

    Attributes:
        parent: [domains] the domain of the layer above within which each lies; 0 at the widest layer.
        rank: [domains] the place of its name in sorted order; equal names have equal ranks.
        multiple: a domain takes a multiple of so many pods.
    """

    parent: c.Ints
    rank: c.Ints
    multiple: int = 1


class Room(NamedTuple):
    """What is in the domains of one layer, all [domains]: places, and pods that are to have company."""

    places: c.Ints
    existing: c.Ints


def plan(
    layers: Sequence[Layer], nodes: Room, wanted: int, must: int
) -> list[tuple[int, int]] | None:
    """Plan how many pods go to which nodes, in the order of the pods; None if no domain takes them all.

    Args:
        layers: the layers, the widest first; the cluster, which is above them all, is not one of them.
        nodes: what is on the nodes. No node has places for more pods than are wanted.
        wanted: how many pods there are.
        must: the layer of which all pods share a domain; -1: of none.
    """
    cluster = Layer(np.zeros(1, np.int64), np.zeros(1, np.int64))
    tree = _Tree((cluster, *layers), nodes)
    for layer, domain in tree.list_candidates(wanted, must + 1):
        found = tree.share_out(layer, domain, wanted)
        if sum(n for _, n in found) >= wanted:
            return found
    return None


class _Tree:
    """The layers with what is in their domains."""

    def __init__(self, layers: Sequence[Layer], nodes: Room) -> None:
        self._layers = layers
        rooms = [nodes._replace(places=_round_down(nodes.places, layers[-1].multiple))]
        for above, layer in zip(layers[-2::-1], layers[:0:-1], strict=True):
            below, n = rooms[-1], above.parent.size
            # Sums of whole numbers below 2**53 are exact.
            places, existing = (np.bincount(layer.parent, one, n).astype(np.int64) for one in below)
            rooms.append(Room(_round_down(places, above.multiple), existing))
        self._rooms = rooms[::-1]

    def list_candidates(self, wanted: int, must: int) -> list[tuple[int, int]]:
        """List the domains of the finest layer, at the required one or below it, that take all pods, the best first."""
        found, at = np.flatnonzero(self._rooms[must].places >= wanted), must
        for layer in range(must + 1, len(self._layers)):
            could = np.isin(self._layers[layer].parent, found)
            below = np.flatnonzero(could & (self._rooms[layer].places >= wanted))
            if not below.size:
                break
            found, at = below, layer
        # From the domain itself up to the cluster: more company first, then fewer places.
        existing, places = [], []
        up = found
        for layer in range(at, -1, -1):
            existing.append(-self._rooms[layer].existing[up])
            places.append(self._rooms[layer].places[up])
            up = self._layers[layer].parent[up]
        keys = (self._layers[at].rank[found], *places[::-1], *existing[::-1])
        return [(at, domain) for domain in found[np.lexsort(keys)].tolist()]

    def share_out(self, layer: int, domain: int, wanted: int) -> list[tuple[int, int]]:
        """Share out pods among the nodes of a domain; fewer than are wanted if the multiples leave some over."""
        own = int(self._rooms[layer].places[domain])
        multiple = max(1, self._layers[layer].multiple)
        left = min(own, wanted) // multiple * multiple
        if layer == len(self._layers) - 1:
            return [(domain, left)] if left else []
        children = self._rank_children(layer + 1, domain)
        if layer == len(self._layers) - 2:
            return self._share_among_nodes(children, left)
        found: list[tuple[int, int]] = []
        for child in children.tolist():
            if left <= 0:
                break
            part = self.share_out(layer + 1, child, left)
            left -= sum(n for _, n in part)
            found += part
        return found

    def _rank_children(self, layer: int, domain: int) -> c.Ints:
        """Rank the domains within a domain: more company first, then more places."""
        children = np.flatnonzero(self._layers[layer].parent == domain)
        room, rank = self._rooms[layer], self._layers[layer].rank[children]
        return children[np.lexsort((rank, -room.places[children], -room.existing[children]))]

    def _share_among_nodes(self, nodes: c.Ints, left: int) -> list[tuple[int, int]]:
        """Fill one node after the other; the last one gets what is left over, in whole multiples."""
        places, multiple = self._rooms[-1].places[nodes], max(1, self._layers[-1].multiple)
        totals = np.cumsum(places)
        last = int(np.searchsorted(totals, left, side="right"))
        found = list(zip(nodes[:last].tolist(), places[:last].tolist(), strict=True))
        if last < nodes.size:
            rest = left - (int(totals[last - 1]) if last else 0)
            found.append((int(nodes[last]), rest // multiple * multiple))
        return [(node, n) for node, n in found if n]


def _round_down(places: c.Ints, multiple: int) -> c.Ints:
    return places // multiple * multiple if multiple > 1 else places
