"""Kueue's balanced placement: as few domains as the greedy choice needs, and each gets nearly the same.

Source: kubernetes-sigs/kueue, pkg/cache/scheduler/tas_balanced_placement.go at ff69552e. All domains with the same parent
are a family; one family gets all pods. A family's threshold is how many slices each of its domains can be given.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from scheduler.placing.groups import trees
from scheduler.placing.groups.sharing import Shares
from scheduler.placing.groups.trees import Room, Tree, Wanted
from scheduler.schema import columns as c


class _Greedy(NamedTuple):
    """The greedy choice in each family: all [families].

    Attributes:
        fits: whether all slices, and the leader, have a place.
        n_domains: how many domains are taken.
        host: the place of the domain that takes the leader; -1 for none.
        last: the place of the domain that is taken last for workers alone; -1 for none.
    """

    fits: c.Flags
    n_domains: c.Ints
    host: c.Ints
    last: c.Ints


class _Family(NamedTuple):
    """The domains of the family that gets the pods, in the tree without the domains below the threshold."""

    tree: Tree
    places: c.Ints
    threshold: int


def share_evenly(tree: Tree, wanted: Wanted) -> tuple[Tree, int, Shares] | None:
    """Share out pods evenly; return the tree that was left, the level, and the shares there, or None if it fails."""
    family = _choose_family(tree, wanted)
    if family is None:
        return None
    level, places = wanted.level, family.places
    if level < wanted.slice_level:
        picked = _pick_set(family.tree, level, places, wanted, by_entropy=True)
        if picked is None:
            return None
        places = family.tree.list_children(level, picked)
        level += 1
    picked = _pick_set(family.tree, level, places, wanted, by_entropy=False)
    if picked is None:
        return None
    shares = _give_evenly(family.tree.rooms[level], picked, family.threshold, wanted)
    return None if shares is None else (family.tree, level, shares)


def _choose_family(tree: Tree, wanted: Wanted) -> _Family | None:
    """Choose the family with the highest threshold, then the one that needs the fewest domains, then the first."""
    lower = wanted.level + (wanted.level < wanted.slice_level)
    family = tree.parents[wanted.level]
    if not wanted.level:
        family = np.zeros(tree.rooms[0].pods.size, np.int64)
    n_families = int(family[-1]) + 1
    below = family[tree.find_ancestors(lower, wanted.level)]
    room = tree.rooms[lower]
    greedy = _choose_greedily(room, np.arange(below.size), below, n_families, wanted)
    thresholds = np.where(greedy.fits, wanted.n_slices // np.maximum(greedy.n_domains, 1), 0)
    has_host, has_last = greedy.host >= 0, greedy.last >= 0
    thresholds = _lower(thresholds, has_host, room.slices_beside[greedy.host])
    thresholds = _lower(thresholds, has_last, room.slices[greedy.last])
    # Where all thresholds are too high, one is tried that the last domain keeps beside the leader.
    reserved = _lower(thresholds, has_host & has_last, room.slices_beside[greedy.last])
    tries = []
    for tried in (thresholds, reserved):
        pruned = _prune(tree, tried[family], wanted)
        places = np.arange(family.size)
        again = _choose_greedily(pruned.rooms[wanted.level], places, family, n_families, wanted)
        tries.append((pruned, tried.tolist(), again))
    best: tuple[int, int, int, Tree] | None = None
    for number in np.flatnonzero(greedy.fits).tolist():
        for pruned, tried_thresholds, again in tries:
            threshold = tried_thresholds[number]
            if threshold <= 0 or (best and threshold < best[0]):
                break
            if again.fits[number]:
                n_domains = int(again.n_domains[number])
                if not best or (threshold, -n_domains) > best[:2]:
                    best = threshold, -n_domains, number, pruned
                break
    if best is None:
        return None
    return _Family(best[3], np.flatnonzero(family == best[2]), best[0])


def _lower(thresholds: c.Ints, where: c.Flags, bound: c.Ints) -> c.Ints:
    return np.where(where, np.minimum(thresholds, bound), thresholds)


def _prune(tree: Tree, least: c.Ints, wanted: Wanted) -> Tree:
    """Count again without the domains of the level, and their children, that take fewer slices than ``least``."""
    if wanted.level < tree.finest:
        of_children = least[tree.parents[wanted.level + 1]]
        tree = trees.prune_tree(tree, wanted.level + 1, of_children, wanted)
    return trees.prune_tree(tree, wanted.level, least, wanted)


def _choose_greedily(
    room: Room, places: c.Ints, family: c.Ints, n_families: int, wanted: Wanted
) -> _Greedy:
    """Take in each family the largest domains one by one, the leader's first, until all slices have a place.

    Args:
        room: what fits in the domains of the level.
        places: the domains to choose from, by name.
        family: [places] the number of each one's family.
        n_families: how many families there are.
        wanted: what is placed.
    """
    left = np.full(n_families, wanted.n_slices)
    host, last = np.full(n_families, -1), np.full(n_families, -1)
    if wanted.has_leader:
        ranked, families = _sort_stably(trees.rank_for_leader(room, places), places, family)
        is_first = np.diff(families, prepend=-1) != 0
        firsts = ranked[is_first & (room.leaders[ranked] > 0)]
        of_hosts = family[np.searchsorted(places, firsts)]
        host[of_hosts] = firsts
        left[of_hosts] -= room.slices_beside[firsts]
        is_rest = ~np.isin(places, firsts)
        places, family = places[is_rest], family[is_rest]
    ranked, families = _sort_stably(trees.rank_for_workers(room, places), places, family)
    slices = room.slices[ranked]
    before = np.cumsum(slices) - slices
    is_first = np.diff(families, prepend=-1) != 0
    before -= before[is_first][np.cumsum(is_first) - 1]
    is_taken = before < left[families]
    taken = families[is_taken]
    # Of several values for one family the last one stays.
    last[taken] = ranked[is_taken]
    n_domains = np.bincount(taken, minlength=n_families) + (host >= 0)
    fits = np.bincount(taken, slices[is_taken], n_families) >= left
    return _Greedy(fits & ((host >= 0) | (not wanted.has_leader)), n_domains, host, last)


def _sort_stably(ranked: c.Ints, places: c.Ints, family: c.Ints) -> tuple[c.Ints, c.Ints]:
    """Sort ranked domains by family, and within a family by rank; return the families, too."""
    families = family[np.searchsorted(places, ranked)]
    order = np.argsort(families, kind="stable")
    return ranked[order], families[order]


def _pick_set(
    tree: Tree, level: int, places: c.Ints, wanted: Wanted, *, by_entropy: bool
) -> c.Ints | None:
    """Pick as many domains as the greedy choice takes, with the least room that is enough; None if there are none.

    Of sets with the same room the one wins that is met first: domains are added in their order, and to the sets that
    leave the fewest leaders and pods first.
    """
    room = tree.rooms[level]
    greedy = _choose_greedily(room, places, np.zeros_like(places), 1, wanted)
    if not greedy.fits[0]:
        return None
    if by_entropy:
        places = _rank_by_entropy(tree, level, places)
    places = places[(room.slices[places] > 0) | (room.leaders[places] > 0)]
    sets = _Sets(int(greedy.n_domains[0]), int(room.pods[places].max()), wanted)
    for n_left, place in zip(range(places.size - 1, -1, -1), places.tolist(), strict=True):
        sets.add(place, room, n_left)
    return sets.find_best(room)


class _Sets:
    """The sets of domains that can be made, by how many domains they have and what they leave to be placed.

    What they leave is a bit of a number: bit ``zero + p`` is set if a set leaves p pods, and p is negative if it has
    more room than is needed. For each bit it is known which domain was added when it was first set.
    """

    def __init__(self, n_domains: int, most: int, wanted: Wanted) -> None:
        self._n = n_domains
        self._zero = n_domains * most
        # [leaders left][domains of the set]
        self._left = [[0] * (n_domains + 1) for _ in range(2)]
        self._left[wanted.has_leader][0] = 1 << (self._zero + wanted.n_slices * wanted.size)
        # [leaders left][domains of the set]: the domain, whether it takes the leader, and the bits it was first to set.
        self._added: list[list[list[tuple[int, bool, int]]]] = [
            [[] for _ in range(n_domains + 1)] for _ in range(2)
        ]

    def add(self, place: int, room: Room, n_left: int) -> None:
        """Add a domain to all sets that need more; ``n_left`` domains are still to come."""
        pods, beside = int(room.pods[place]), int(room.pods_beside[place])
        takes_workers, takes_leader = bool(room.slices[place] > 0), bool(room.leaders[place] > 0)
        without, with_leader = self._left
        # Sets that cannot have all domains in the end are left out.
        for n in range(self._n, max(0, self._n - n_left - 1), -1):
            # A set that leaves nothing is not added to.
            unfilled = without[n - 1] >> (self._zero + 1) << (self._zero + 1)
            if takes_workers:
                self._note(0, n, (place, False, unfilled >> pods))
            if takes_leader:
                self._note(0, n, (place, True, with_leader[n - 1] >> beside))
            if takes_workers:
                self._note(1, n, (place, False, with_leader[n - 1] >> pods))

    def _note(self, leaders: int, n: int, added: tuple[int, bool, int]) -> None:
        place, takes_leader, bits = added
        new = bits & ~self._left[leaders][n]
        if new:
            self._left[leaders][n] |= new
            self._added[leaders][n].append((place, takes_leader, new))

    def find_best(self, room: Room) -> c.Ints | None:
        """Find the set that leaves no leader, no pod and the least room; None if there is none."""
        enough = self._left[0][self._n] & ((1 << (self._zero + 1)) - 1)
        if not enough:
            return None
        bit, leaders, places = enough.bit_length() - 1, 0, []
        for n in range(self._n, 0, -1):
            place, takes_leader = next(
                (place, takes) for place, takes, bits in self._added[leaders][n] if bits >> bit & 1
            )
            bit += int(room.pods_beside[place] if takes_leader else room.pods[place])
            leaders |= takes_leader
            places.append(place)
        return np.array(sorted(places))


def _rank_by_entropy(tree: Tree, level: int, places: c.Ints) -> c.Ints:
    """Rank domains for the leader, then those first whose pods are spread most evenly over their children."""
    room = tree.rooms[level]
    children = tree.list_children(level, places)
    pods, parents = tree.rooms[level + 1].pods[children], tree.parents[level + 1][children]
    pods, parents = pods[pods > 0], parents[pods > 0]
    totals = np.bincount(parents, pods, room.pods.size)
    parts = (pods / totals[parents]).tolist()
    bits = [-part * math.log2(part) for part in parts]
    entropy = np.bincount(parents, bits, room.pods.size)[places]
    keys = -entropy, -room.slices_beside[places], -room.leaders[places]
    return places[np.lexsort(keys)]


def _give_evenly(room: Room, places: c.Ints, threshold: int, wanted: Wanted) -> Shares | None:
    """Give each domain the threshold, and what is left over to the first ones that take more."""
    extra = wanted.n_slices - places.size * threshold
    if extra < 0:
        return None
    ranked = trees.rank_for_leader(room, places)
    host = int(ranked[0]) if wanted.has_leader else -1
    given = []
    for place in ranked.tolist():
        slices = room.slices_beside[place] if place == host else room.slices[place]
        more = min(int(slices) - threshold, extra)
        given.append(threshold + more)
        extra -= more
    return None if extra else Shares(ranked, np.array(given) * wanted.size, host)
