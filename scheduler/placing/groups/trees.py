"""The tree of a topology, and how many pods of a group fit in each domain, counted as Kueue counts.

At each level domains have places 0, 1, 2 … in the order of their names, so the children of a domain are side by side.
Domains without a leaf have no place. "Beside" in a name means: while the leader is in the domain, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from scheduler.placing.groups.domains import Level
from scheduler.schema import columns as c

_MANY = 1 << 60
_NO_LAYERS: Mapping[int, int] = {}


class Wanted(NamedTuple):
    """What is placed, and between which levels; a level is its place in the topology, the widest being 0.

    Attributes:
        n_slices: how many slices there are.
        size: how many pods a slice has.
        has_leader: whether a leader goes with them.
        level: the level that is asked for.
        slice_level: the level of which the pods of a slice share a domain.
        layers: the size of the slices within slices, for each level at which they are kept whole.
    """

    n_slices: int
    size: int
    has_leader: bool
    level: int
    slice_level: int
    layers: Mapping[int, int]


class Leaves(NamedTuple):
    """What fits in each leaf: [leaves] pods, pods beside the leader, and 1 where the leader fits, else 0."""

    pods: c.Ints
    pods_beside: c.Ints
    leaders: c.Ints


class Room(NamedTuple):
    """What fits in each domain of one level, all [domains]; slices are 0 below the level of the slices."""

    pods: c.Ints
    pods_beside: c.Ints
    slices: c.Ints
    slices_beside: c.Ints
    leaders: c.Ints


class Tree(NamedTuple):
    """The domains of all levels.

    Attributes:
        parents: for each level, [domains] the place of the domain above; empty at the widest level.
        firsts: for each level but the finest, [domains + 1] the place of the first child, and behind the last one.
        rooms: for each level, what fits in its domains.
    """

    parents: tuple[c.Ints, ...]
    firsts: tuple[c.Ints, ...]
    rooms: tuple[Room, ...]

    @property
    def finest(self) -> int:
        """The finest level."""
        return len(self.rooms) - 1

    def list_children(self, level: int, places: c.Ints) -> c.Ints:
        """List the children of domains of a level by name."""
        is_parent = np.zeros(self.rooms[level].pods.size, np.bool_)
        is_parent[places] = True
        return np.flatnonzero(is_parent[self.parents[level + 1]])

    def find_ancestors(self, below: int, above: int) -> c.Ints:
        """Find for each domain of a level the domain of a wider level within which it lies."""
        found = np.arange(self.rooms[below].pods.size)
        for level in range(below, above, -1):
            found = self.parents[level][found]
        return found


def grow_tree(levels: Sequence[Level], leaves: Leaves, wanted: Wanted) -> Tree:
    """Grow the tree above leaves, of which there is at least one, and count what fits."""
    numbers = np.arange(leaves.pods.size)
    parents, firsts = [], []
    for level in reversed(levels[1:]):
        above = level.parent[numbers]
        is_first = np.diff(above, prepend=-1) != 0
        parents.append(np.cumsum(is_first) - 1)
        firsts.append(np.append(np.flatnonzero(is_first), numbers.size))
        numbers = above[is_first]
    parents.append(np.zeros(0, np.int64))
    tree = Tree(tuple(parents[::-1]), tuple(firsts[::-1]), ())
    return count_up(tree, leaves, wanted, wanted.layers)


def prune_tree(tree: Tree, level: int, least: c.Ints, wanted: Wanted) -> Tree:
    """Count again without the domains of a level that take fewer slices than ``least`` [domains].

    Those that take fewer beside the leader take no leader. Layers of slices are not heeded, as in Kueue.
    """
    room, leaves = tree.rooms[level], tree.rooms[-1]
    is_small = room.slices < least
    lacks_host = (room.leaders > 0) & (room.slices_beside < least)
    ancestors = tree.find_ancestors(tree.finest, level)
    is_out, is_no_host = is_small[ancestors], (is_small | lacks_host)[ancestors]
    rest = Leaves(
        np.where(is_out, 0, leaves.pods),
        np.where(is_no_host, 0, leaves.pods_beside),
        np.where(is_no_host, 0, leaves.leaders),
    )
    return count_up(tree, rest, wanted, _NO_LAYERS)


def count_up(tree: Tree, leaves: Leaves, wanted: Wanted, layers: Mapping[int, int]) -> Tree:
    """Count what fits in the domains of all levels.

    Beside the leader there fits what fits without it, less what the child loses that loses least of those that take
    the leader. Beside a leader that no child takes nothing fits.
    """
    nothing = np.zeros(leaves.pods.size, np.int64)
    room = Room(leaves.pods, leaves.pods_beside, nothing, nothing, leaves.leaders)
    finest = len(tree.firsts)
    rooms = []
    for level in range(finest, -1, -1):
        if level < finest:
            room = _sum_up(room, tree.firsts[level][:-1], layers.get(level + 1, 1), wanted)
        if level == wanted.slice_level:
            slices, beside = room.pods // wanted.size, room.pods_beside // wanted.size
            room = room._replace(slices=slices, slices_beside=beside)
        rooms.append(room)
    return tree._replace(rooms=tuple(rooms[::-1]))


def _sum_up(below: Room, firsts: c.Ints, unit: int, wanted: Wanted) -> Room:
    """Sum up what fits in the children of each domain; a child counts for whole units of pods."""
    pods = below.pods // unit * unit
    all_pods, all_slices = np.add.reduceat(pods, firsts), np.add.reduceat(below.slices, firsts)
    leaders = np.maximum.reduceat(below.leaders, firsts)
    if not wanted.has_leader:
        return Room(all_pods, all_pods, all_slices, all_slices, leaders)
    beside = []
    for one, one_beside, total in (
        (pods, below.pods_beside // unit * unit, all_pods),
        (below.slices, below.slices_beside, all_slices),
    ):
        lost = np.minimum.reduceat(np.where(below.leaders > 0, one - one_beside, _MANY), firsts)
        beside.append(np.where(leaders > 0, total - lost, 0))
    return Room(all_pods, beside[0], all_slices, beside[1], leaders)


def rank_for_leader(room: Room, places: c.Ints, *, smallest_first: bool = False) -> c.Ints:
    """Rank domains, given by name, by the slices beside the leader; those that take a leader come first."""
    sign = 1 if smallest_first else -1
    keys = room.pods_beside[places], sign * room.slices_beside[places], -room.leaders[places]
    return places[np.lexsort(keys)]


def rank_for_workers(room: Room, places: c.Ints, *, smallest_first: bool = False) -> c.Ints:
    """Rank domains, given by name, by the slices that fit without a leader."""
    sign = 1 if smallest_first else -1
    return places[np.lexsort((room.pods[places], sign * room.slices[places]))]
