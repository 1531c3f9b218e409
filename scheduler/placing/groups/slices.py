"""Slices of a group some of whose pods have a node: where the others go.

So many pods in a row of ranks are a slice and share a domain of a level; slices may lie within slices. Pods that come
again join the domain of their slice. A slice none of whose pods has a node goes to one domain as a whole, which must have
room for all of it: the first pods to come leave room for the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import NamedTuple

import numpy as np

from scheduler.api.groups.readers.owners import ROW
from scheduler.placing.groups.choices import Choice
from scheduler.placing.groups.domains import Level
from scheduler.schema import columns as c
from scheduler.state.entities import Team, Where
from scheduler.state.pods import PodRecord

# (level, size) of slices, the outermost first.
Layers = Sequence[tuple[int, int]]


class PodSet(NamedTuple):
    """A team as Kueue sees it.

    Attributes:
        choice: the team, and what there is to choose for it.
        where: where its pods go.
        levels: the levels of its topology.
        balances: whether it gets balanced placement if it prefers a level.
    """

    choice: Choice
    where: Where
    levels: Sequence[Level]
    balances: bool


class Gap(NamedTuple):
    """Free places in the row of pods that is cut in slices, and the domain to which their pods go.

    Attributes:
        places: the places in the row, in order.
        layers: the slices none of whose pods has a node: each pod goes to the domain that its slice gets. None: all pods go
            to the domain one by one.
        level: the level of the domain; -1 if they may go anywhere.
        number: the number of the domain; -1 if there is none for them, as pods that should share one do not.
    """

    places: Sequence[int]
    layers: Layers
    level: int = -1
    number: int = -1

    @property
    def is_stuck(self) -> bool:
        """Whether there is no domain to which the pods could go."""
        return self.level >= 0 and self.number < 0

    def find_rows(self, pod_set: PodSet) -> c.Flags:
        """Find [N] the nodes to which the pods may go, of those that count."""
        among = pod_set.choice.among
        if self.level < 0:
            return among
        rows: c.Flags = pod_set.levels[self.level].domain == self.number
        return rows & among if among.size else rows

    def say_where(self, pod_set: PodSet) -> str:
        """Say where the pods have to go."""
        if self.level < 0:
            place = "The nodes have"
        else:
            label = pod_set.where.labels[self.level]
            if self.is_stuck:
                return f"The pods with which it must share a {label} are not in one domain of it"
            place = f"{label} {'/'.join(pod_set.levels[self.level].names[self.number])}"
            if not self.layers:
                return f"The others of its slice are in {place}"
            place = f"{place} has"
        level, size = self.layers[0]
        return f"{place} no places for a slice of {size} that share a {pod_set.where.labels[level]}"


class Row(NamedTuple):
    """The pods of a team in a row, which is cut in slices.

    Attributes:
        waiting: the pods without a node by their places in the row.
        taken: the rows of nodes by the places of pods that have one.
    """

    waiting: dict[int, PodRecord]
    taken: dict[int, int]


def line_up(pod_set: PodSet) -> Row:
    """Line up the pods of a team by their ranks; without ranks by the domains in which they are."""
    team, cluster = pod_set.choice.team, pod_set.choice.cluster
    pods = [cluster.pods[one.uid] for one in (*team.there, *team.pods)]
    waiting = [pod for pod in pods if not pod.node]
    found = ((pod.uid, cluster.nodes.find_row(pod.node)) for pod in pods if pod.node)
    # A node that is gone is in no domain.
    rows = {uid: row for uid, row in found if row >= 0}
    ranks = _find_ranks(team, pods)
    if ranks:
        taken = {ranks[uid]: row for uid, row in rows.items()}
        return Row({ranks[pod.uid]: pod for pod in waiting}, taken)
    taken = dict(_lay_out(list(rows.values()), pod_set.where.slices, pod_set.levels))
    free = (at for at in count() if at not in taken)
    return Row(dict(zip(free, waiting, strict=False)), taken)


def find_gaps(pod_set: PodSet, row: Row) -> list[Gap]:
    """Find the gaps that the waiting pods of a team fill, those first that leave no choice of the domain."""
    whole, required = Gap(sorted(row.waiting), pod_set.where.slices), pod_set.where.required
    if required >= 0 and row.taken:
        whole = _join(whole, required, row.taken.values(), pod_set.levels)
    return sorted(_split(whole, row.taken, pod_set.levels), key=lambda gap: len(gap.layers))


def spare_places(pod_set: PodSet, places: c.Ints) -> c.Ints:
    """Return the [N] places that are left beside the pods that are still to come into slices of which pods have a node."""
    if pod_set.choice.team.n_short <= len(pod_set.choice.team.pods):
        return places
    row, layers = line_up(pod_set), pod_set.where.slices
    size = layers[0][1]
    firsts = {at // size for at in row.taken}
    known = [at for at in (*row.taken, *row.waiting) if at // size in firsts]
    left = places.copy()
    whole = Gap((), layers)
    for gap, n in _count_to_come(whole, len(firsts) * size, known, row.taken, pod_set.levels):
        rows = np.flatnonzero(gap.find_rows(pod_set))
        totals = np.maximum(np.cumsum(left[rows]) - n, 0)
        left[rows] = np.diff(totals, prepend=0)
    return left


def _find_ranks(team: Team, pods: Sequence[PodRecord]) -> dict[str, int]:
    """Find the ranks of pods; none if these are no places in one row: some are missing, alike, or beyond its end.

    Ranks are beyond the end of a Job that makes new pods for those that have succeeded. The Jobs of a JobSet have rows of
    their own, one after the other.
    """
    n_pods = len(team.there) + max(len(team.pods), team.n_short) + team.n_done
    ranks: dict[str, int] = {}
    for pod in pods:
        says = pod.member or pod.owned
        ranks[pod.uid] = -1 if says is None else says.index
        if says is not None and says.definition is not None:
            n_pods = max(n_pods, says.definition.root.total)
    per_row = max((rank % ROW for rank in ranks.values()), default=0) + 1
    if max(ranks.values(), default=0) >= ROW and n_pods % per_row == 0:
        ranks = {uid: rank // ROW * per_row + rank % ROW for uid, rank in ranks.items()}
    found = set(ranks.values())
    is_row = len(found) == len(pods) and all(0 <= rank < n_pods for rank in found)
    return ranks if is_row else {}


def _lay_out(
    rows: list[int], layers: Layers, levels: Sequence[Level], first: int = 0
) -> list[tuple[int, int]]:
    """Lay out pods without ranks in slices from a place on: list the places that they take, each with the row of its node."""
    if not layers:
        return list(enumerate(rows, first))
    (level, size), *inner = layers
    by_domain: dict[int, list[int]] = {}
    for row in rows:
        by_domain.setdefault(int(levels[level].domain[row]), []).append(row)
    taken: list[tuple[int, int]] = []
    for number in sorted(by_domain):
        taken += _lay_out(by_domain[number], inner, levels, first)
        # The next domain begins a slice; a tenant writes how large it is.
        first += -(-(taken[-1][0] + 1 - first) // size) * size
    return taken


def _count_to_come(
    gap: Gap, length: int, known: Sequence[int], taken: Mapping[int, int], levels: Sequence[Level]
) -> Iterator[tuple[Gap, int]]:
    """Count the pods that are still to come into some slices, by the domains to which they will go.

    They are not listed: a tenant writes how large a slice is.

    Args:
        gap: where the pods of the slices go; its places are not read.
        length: how many places the slices have.
        known: those of their places whose pods are there or wait.
        taken: the rows of nodes by those of their places whose pods are there.
        levels: the levels of the topology.
    """
    if not gap.layers or gap.is_stuck:
        yield gap, length - len(known)
        return
    (level, size), *inner = gap.layers
    of_slices: dict[int, dict[int, int]] = {}
    for at, row in taken.items():
        of_slices.setdefault(at // size, {})[at] = row
    known_of: dict[int, list[int]] = {}
    for at in known:
        known_of.setdefault(at // size, []).append(at)
    for number, there in sorted(of_slices.items()):
        joined = _join(gap._replace(layers=inner), level, there.values(), levels)
        yield from _count_to_come(joined, size, known_of[number], there, levels)
    n_free = length - len(of_slices) * size
    n_known = len(known) - sum(len(known_of[number]) for number in of_slices)
    if n_free > n_known:
        yield gap, n_free - n_known


def _split(gap: Gap, taken: Mapping[int, int], levels: Sequence[Level]) -> Iterator[Gap]:
    """Split the places of a gap by the domains in which the pods of their slices are."""
    if not gap.layers or gap.is_stuck:
        yield gap
        return
    (level, size), *inner = gap.layers
    of_slices: dict[int, dict[int, int]] = {}
    for at, row in taken.items():
        of_slices.setdefault(at // size, {})[at] = row
    joining: dict[int, list[int]] = {}
    free: list[int] = []
    for at in gap.places:
        number = at // size
        (joining.setdefault(number, []) if number in of_slices else free).append(at)
    for number, places in joining.items():
        there = of_slices[number]
        joined = _join(Gap(places, inner), level, there.values(), levels)
        yield from _split(joined, there, levels)
    if free:
        yield gap._replace(places=free)


def _join(gap: Gap, level: int, rows: Iterable[int], levels: Sequence[Level]) -> Gap:
    """Say that the pods for a gap go to the domain of a level in which some nodes are."""
    found = np.unique(levels[level].domain[list(rows)])
    return gap._replace(level=level, number=int(found[0]) if found.size == 1 else -1)
