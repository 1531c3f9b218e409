"""The domains that Kueue chooses for a pod set: topology-aware scheduling to the letter.

Source: kubernetes-sigs/kueue, pkg/cache/scheduler/tas_flavor_snapshot.go at ff69552e. Counts go up the tree, the level
is chosen at which the pods have a place, and from there they are shared out downwards, so that few domains are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec
import numpy as np

from scheduler.placing.groups import balanced, sharing, trees
from scheduler.placing.groups.domains import Level
from scheduler.placing.groups.sharing import Line, Shares
from scheduler.placing.groups.trees import Leaves, Room, Tree, Wanted
from scheduler.schema import columns as c


class Mode(StrEnum):
    """How strictly a pod set asks for a level; without constraints it asks for none."""

    REQUIRED = "required"
    PREFERRED = "preferred"
    UNCONSTRAINED = "unconstrained"


class Counts(NamedTuple):
    """What fits on each node: [N] workers, whether the leader does, and workers beside it."""

    places: c.Ints
    has_leader: c.Flags
    places_with_leader: c.Ints

    def keep(self, among: c.Flags) -> Counts:
        """Return what fits on some nodes, [N] or [0] for all; nothing on the others."""
        if not among.size:
            return self
        return Counts(
            np.where(among, self.places, 0),
            self.has_leader & among,
            np.where(among, self.places_with_leader, 0),
        )


class Ask(msgspec.Struct, frozen=True):
    """What a pod set asks for; a level is its place in the topology, the widest being 0.

    Attributes:
        count: how many workers there are.
        mode: how strictly the level is asked for.
        level: the level that is required or preferred; not read without constraints.
        slices: (level, size) of the layers of slices, the outermost first. No layer is at a wider level than the asked
            one, each is at a finer level than the layer around it, and its size divides that of the layer around it.
        has_leader: whether one pod more, the leader, goes with the workers.
        balanced: whether domains get shares of like size if a level is preferred; Kueue's TASBalancedPlacement.
        least_free_capacity: whether the smallest domains come first without constraints; Kueue's TASProfileMixed.
    """

    count: int
    mode: Mode = Mode.UNCONSTRAINED
    level: int = 0
    slices: tuple[tuple[int, int], ...] = ()
    has_leader: bool = False
    balanced: bool = False
    least_free_capacity: bool = True

    @property
    def smallest_first(self) -> bool:
        """Whether the smallest domains come first."""
        return self.mode == Mode.UNCONSTRAINED and self.least_free_capacity


class Share(NamedTuple):
    """What one domain of the finest level gets; ``number`` is that of the domain, or the row of the node."""

    number: int
    pods: int
    leaders: int


class Assignment(NamedTuple):
    """Where the pods go, by the values of the levels.

    ``is_by_row`` says that each domain of the finest level is one node, and that the shares name rows.
    """

    shares: tuple[Share, ...]
    is_by_row: bool


class Refusal(NamedTuple):
    """How many slices fit out of how many; pods, where a slice is one pod.

    Attributes:
        fits: how many fit at the widest level that was tried.
        needed: how many there are.
        layers: for several layers of slices, (fit, needed) of each in the domain that takes the most; else empty.
    """

    fits: int
    needed: int
    layers: tuple[tuple[int, int], ...] = ()


class _Choice(NamedTuple):
    """The domains of a level that together have a place for all, in the order in which they get their shares."""

    level: int
    places: c.Ints


class _Shortage(NamedTuple):
    """How many slices fit at the level at which the search has ended."""

    level: int
    fits: int


def assign(levels: Sequence[Level], counts: Counts, ask: Ask) -> Assignment | Refusal:
    """Assign the pods of a pod set to domains of the finest level.

    Args:
        levels: the levels of the topology, the widest first. Nodes that lack the label of a level have no domain at the
            finest one and count for nothing.
        counts: what fits on each node. What fits in a domain of several nodes is the sum of what fits on them.
        ask: what the pod set asks for.
    """
    wanted = _read_ask(ask, len(levels))
    if not levels[-1].names:
        return Refusal(0, wanted.n_slices)
    tree = trees.grow_tree(levels, _count_leaves(levels[-1], counts, ask), wanted)
    even = None
    if ask.balanced and ask.mode == Mode.PREFERRED:
        even = balanced.share_evenly(tree, wanted)
    if even is None:
        chosen = _choose_level(tree, wanted, ask)
        if isinstance(chosen, _Shortage):
            return _explain_shortage(tree, chosen, wanted, ask)
        level, shares = wanted.slice_level, _share_above_slices(tree, chosen, wanted, ask)
    else:
        tree, level, shares = even
    placed = None if shares is None else _share_below(tree, level, shares, wanted, ask)
    # Counts may promise more than the children take. Kueue then assigns less than all, which would start in vain.
    return Refusal(0, wanted.n_slices) if placed is None else _name_shares(placed, levels[-1])


def _read_ask(ask: Ask, n_levels: int) -> Wanted:
    level = ask.level
    if ask.mode == Mode.UNCONSTRAINED:
        level = 0 if ask.slices else n_levels - 1
    slice_level, size = ask.slices[0] if ask.slices else (n_levels - 1, 1)
    layers: dict[int, int] = {}
    above = slice_level
    for inner_level, inner_size in ask.slices[1:]:
        layers |= dict.fromkeys(range(above + 1, inner_level + 1), inner_size)
        above = inner_level
    return Wanted(ask.count // size, size, ask.has_leader, level, slice_level, layers)


def _count_leaves(finest: Level, counts: Counts, ask: Ask) -> Leaves:
    """Count what fits in the domains of the finest level.

    Beside the leader there fits what fits without it, less what the node loses that loses least of those that take it.
    """
    n = len(finest.names)
    rows = np.flatnonzero(finest.domain >= 0)
    domain, places = finest.domain[rows], counts.places[rows]
    # Sums of whole numbers below 2**53 are exact.
    pods = np.bincount(domain, places, n).astype(np.int64)
    if not ask.has_leader:
        return Leaves(pods, pods, np.zeros(n, np.int64))
    takes = counts.has_leader[rows]
    lost = pods.copy()
    np.minimum.at(lost, domain[takes], (places - counts.places_with_leader[rows])[takes])
    leaders = (np.bincount(domain, takes, n) > 0).astype(np.int64)
    return Leaves(pods, np.where(leaders > 0, pods - lost, pods), leaders)


def _choose_level(tree: Tree, wanted: Wanted, ask: Ask) -> _Choice | _Shortage:
    """Choose the tightest domain that takes all, at the level asked for or, if it is preferred, above; else several."""
    last = 0 if ask.mode == Mode.PREFERRED else wanted.level
    for level in range(wanted.level, last - 1, -1):
        room = tree.rooms[level]
        could = (room.slices_beside >= wanted.n_slices) & (room.leaders >= ask.has_leader)
        if could.any():
            places = np.flatnonzero(could)
            return _Choice(level, trees.rank_for_leader(room, places, smallest_first=True)[:1])
    if ask.mode == Mode.REQUIRED:
        first = trees.rank_for_leader(room, np.arange(room.pods.size))[0]
        return _Shortage(last, int(room.slices[first]))
    return _choose_several(tree, last, wanted, ask)


def _choose_several(tree: Tree, level: int, wanted: Wanted, ask: Ask) -> _Choice | _Shortage:
    """Choose domains in their order, the one that gets the leader first."""
    room, left = tree.rooms[level], wanted.n_slices
    places, hosts = np.arange(room.pods.size), np.zeros(0, np.int64)
    if ask.has_leader:
        ranked = trees.rank_for_leader(room, places, smallest_first=ask.smallest_first)
        line = sharing.put_host_first(_line_up(room, ranked), left)
        if not line.leaders[0]:
            return _Shortage(level, 0)
        left -= int(line.beside[0])
        hosts, places = line.places[:1], np.sort(line.places[1:])
    places = trees.rank_for_workers(room, places, smallest_first=ask.smallest_first)
    found = sharing.fill_in_order(room.slices[places], left, smallest_first=ask.smallest_first)
    if found is None:
        return _Shortage(level, wanted.n_slices - left + int(room.slices[places].sum()))
    return _Choice(level, np.concatenate((hosts, places[found[0]])))


def _line_up(room: Room, places: c.Ints) -> Line:
    """Line up domains for slices."""
    beside = room.slices_beside[places]
    return Line(places, room.slices[places], beside, room.leaders[places])


def _share_above_slices(tree: Tree, chosen: _Choice, wanted: Wanted, ask: Ask) -> Shares | None:
    """Share out pods down to the level of the slices, at each level among the children of all domains together."""
    level, places = chosen
    while True:
        shares = sharing.share_out(
            _line_up(tree.rooms[level], places),
            wanted.n_slices,
            has_leader=ask.has_leader,
            smallest_first=ask.smallest_first,
        )
        if shares is None or level >= wanted.slice_level:
            break
        children = tree.list_children(level, shares.places)
        level += 1
        places = trees.rank_for_workers(
            tree.rooms[level], children, smallest_first=ask.smallest_first
        )
    return None if shares is None else shares._replace(units=shares.units * wanted.size)


def _share_below(tree: Tree, level: int, shares: Shares, wanted: Wanted, ask: Ask) -> Shares | None:
    """Share out the pods of each domain among its own children, down to the finest level."""
    for below in range(level + 1, tree.finest + 1):
        size = wanted.size if below <= wanted.slice_level else wanted.layers.get(below, 1)
        lower = []
        for place, pods in zip(shares.places.tolist(), shares.units.tolist(), strict=True):
            if not pods and place != shares.host:
                continue
            first, end = tree.firsts[below - 1][place : place + 2].tolist()
            line = _line_up_children(tree.rooms[below], np.arange(first, end), size, ask)
            part = sharing.share_out(
                line,
                pods // size,
                has_leader=place == shares.host,
                smallest_first=ask.smallest_first,
            )
            if part is None:
                return None
            lower.append(part)
        places = [place for part in lower for place in part.places.tolist()]
        units = [units * size for part in lower for units in part.units.tolist()]
        host = max((part.host for part in lower), default=-1)
        shares = Shares(np.array(places, np.int64), np.array(units, np.int64), host)
    return shares


def _line_up_children(room: Room, places: c.Ints, size: int, ask: Ask) -> Line:
    """Line up the children of one domain for slices of a size."""
    # Below the level of the slices all have 0 slices, so those with the fewest pods come first.
    places = trees.rank_for_workers(room, places, smallest_first=ask.smallest_first)
    beside = room.pods_beside[places] // size
    return Line(places, room.pods[places] // size, beside, room.leaders[places])


def _name_shares(shares: Shares, finest: Level) -> Assignment:
    rows = np.flatnonzero(finest.domain >= 0)
    is_by_row = rows.size == len(finest.names)
    numbers = np.arange(len(finest.names))
    if is_by_row:
        numbers[finest.domain[rows]] = rows
    pairs = sorted(zip(shares.places.tolist(), shares.units.tolist(), strict=True))
    named = tuple(
        Share(int(numbers[place]), pods, int(place == shares.host))
        for place, pods in pairs
        if pods or place == shares.host
    )
    return Assignment(named, is_by_row)


def _explain_shortage(tree: Tree, shortage: _Shortage, wanted: Wanted, ask: Ask) -> Refusal:
    """Say how many slices fit, for each layer if there are several."""
    if len(ask.slices) < 2:
        return Refusal(shortage.fits, wanted.n_slices)
    best = int(tree.rooms[shortage.level].slices.argmax())
    layers = []
    for level, size in ask.slices:
        is_within = tree.find_ancestors(level, shortage.level) == best
        fit = int((tree.rooms[level].pods[is_within] // size).sum())
        layers.append((fit, ask.count // size))
    return Refusal(shortage.fits, wanted.n_slices, tuple(layers))
