"""What a search has to place for a team: so many pods of each part, and each part where its constraint allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from scheduler.api.groups.definitions import Rule
from scheduler.placing.groups import choosing
from scheduler.placing.groups.capacity import MANY
from scheduler.placing.groups.domains import Domains, find_domains_there
from scheduler.schema import columns as c
from scheduler.schema.world import ANYWHERE
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Team, Where, list_kinds
from scheduler.state.pods import Life, PodRecord

# Larger groups are not searched for.
MEMBERS_MAX = 16


class Part(NamedTuple):
    """Pods of which so many must have a node.

    Attributes:
        pods: the pods.
        least: how many of them; of the others only those are placed that pods want near them.
        bounds: which of the bounds hold for them.
    """

    pods: list[PodRecord]
    least: int
    bounds: tuple[int, ...]


class Bound(NamedTuple):
    """Pods that share a domain.

    Attributes:
        domain: [N] the number of each node's domain; -1 for a node on which none of the pods may be.
    """

    domain: c.Ints


class Tree(NamedTuple):
    """How many parts must have their pods placed.

    Attributes:
        part: the number of the part that a leaf stands for; -1 for a tree with branches.
        minimum: how many of the branches must have their minimum.
        branches: the trees within.
    """

    part: int
    minimum: int = 0
    branches: tuple[Tree, ...] = ()


class Verdict(NamedTuple):
    """How far a tree has come.

    Attributes:
        is_begun: a pod is placed.
        is_met: it has its minimum, and no part within has some pods but too few.
        can_be_met: it may come to that.
    """

    is_begun: bool
    is_met: bool
    can_be_met: bool


class Needs(NamedTuple):
    """What has to be placed."""

    parts: list[Part]
    bounds: list[Bound]
    tree: Tree

    @property
    def n_pods(self) -> int:
        """How many pods may be placed."""
        return sum(len(part.pods) for part in self.parts)

    def judge(self, placed: Sequence[int], left: Sequence[int]) -> Verdict:
        """Judge by how many pods of each part are placed, and how many more may be placed at most."""
        return self._judge(self.tree, placed, left)

    def _judge(self, tree: Tree, placed: Sequence[int], left: Sequence[int]) -> Verdict:
        if tree.part >= 0:
            n, least = placed[tree.part], self.parts[tree.part].least
            return Verdict(n > 0, n >= least, n + left[tree.part] >= least)
        each = [self._judge(one, placed, left) for one in tree.branches]
        begun = [one for one in each if one.is_begun]
        is_met = sum(one.is_met for one in each) >= tree.minimum
        can_be_met = sum(one.can_be_met for one in each) >= tree.minimum
        return Verdict(
            bool(begun),
            is_met and all(one.is_met for one in begun),
            can_be_met and all(one.can_be_met for one in begun),
        )

    def list_musts(self) -> list[Part]:
        """List the parts that all must have their pods placed."""
        return [self.parts[i] for i in _list_musts(self.tree)]


def _list_musts(tree: Tree) -> Iterator[int]:
    if tree.part >= 0:
        yield tree.part
    elif tree.minimum >= len(tree.branches):
        for one in tree.branches:
            yield from _list_musts(one)


def read_pods(pods: list[PodRecord], least: int) -> Needs:
    """Return the needs of pods without parts."""
    return Needs([Part(pods, least, ())], [], Tree(0))


class Reader:
    """Reads what has to be placed for a team with parts."""

    def __init__(
        self, cluster: Cluster, domains: Domains, list_waiting: Callable[[Team], list[PodRecord]]
    ) -> None:
        """``list_waiting`` lists the pods of a leaf that may be placed."""
        self._cluster, self._domains, self._list_waiting = cluster, domains, list_waiting
        self._needs = Needs([], [], Tree(-1))

    def read_team(self, team: Team) -> Needs | None:
        """Read the needs of a team without its own constraint; None if a part is cut in slices."""
        if any(one.where is not None and one.where.slices for one in team.list_all()):
            return None
        tree = self._read(team, (), is_root=True)
        return self._needs._replace(tree=tree)

    def _read(self, team: Team, bounds: tuple[int, ...], *, is_root: bool = False) -> Tree:
        if team.where is not None and not is_root:
            bounds += tuple(self._read_bound(team, team.where))
        if team.teams:
            branches = tuple(self._read(one, bounds) for one in team.teams)
            return Tree(-1, team.minimum, branches)
        n_assumed = sum(self._cluster.pods[pod.uid].life != Life.PENDING for pod in team.pods)
        least = max(0, team.n_missing - n_assumed)
        pods = self._list_waiting(team) if least else []
        self._needs.parts.append(Part(pods, least, bounds))
        return Tree(len(self._needs.parts) - 1)

    def _read_bound(self, team: Team, where: Where) -> Iterator[int]:
        """Yield the number of the bound of a constraint, if it keeps pods off any nodes."""
        domain = None
        if where.required >= 0:
            domain = self._domains.get_level(where.labels[: where.required + 1]).domain
            there = find_domains_there(self._cluster, team, domain)
            if there:
                # Pods that come later join the others. If these are in several domains, no domain has them all.
                numbers = sorted(there - {-1}) if len(there) == 1 else []
                domain = np.where(np.isin(domain, numbers), domain, -1)
        if where.rule == Rule.KAI:
            # KAI uses the nodes with all labels of the topology.
            inside = self._domains.get_level(where.labels).domain >= 0
            domain = np.where(inside, 0 if domain is None else domain, -1)
        if domain is not None:
            self._needs.bounds.append(Bound(domain))
            yield len(self._needs.bounds) - 1


def narrow_down(
    needs: Needs, get_places: Callable[[PodRecord], c.Ints], among: c.Flags
) -> Needs | None:
    """Leave out domains that have no room for a part; None if by amounts there is none for all.

    Each kind of pods is counted as if it had all room for itself.
    """
    most: list[int] = []
    bounds = list(needs.bounds)
    for part in needs.parts:
        kinds = [
            (len(like), _find_room(like[0], get_places, among)) for like in list_kinds(part.pods)
        ]
        for at in part.bounds:
            kinds = [(n, np.where(bounds[at].domain >= 0, places, 0)) for n, places in kinds]
        if not (part.bounds and kinds):
            most.append(sum(min(n, int(places.sum())) for n, places in kinds))
            continue
        at = part.bounds[-1]
        domain = bounds[at].domain
        n_domains = int(domain.max(initial=-1)) + 1
        room = np.zeros(n_domains, np.int64)
        for n, places in kinds:
            room += np.minimum(n, choosing.sum_places(places, domain, n_domains, ANYWHERE))
        most.append(int(room.max(initial=0)))
        if sum(at in other.bounds for other in needs.parts) == 1:
            takes = np.append(room >= part.least, False)
            bounds[at] = Bound(np.where(takes[domain], domain, -1))
    found = needs._replace(bounds=bounds)
    return found if found.judge([0] * len(most), most).can_be_met else None


def _find_room(pod: PodRecord, get_places: Callable[[PodRecord], c.Ints], among: c.Flags) -> c.Ints:
    """Find [N] how many pods like one may fit on each node at most, whatever other pods of the group do."""
    places = get_places(pod)
    if pod.template.affinity or pod.template.spread:
        # Where others of the group go decides where it fits.
        places = np.full_like(places, MANY)
    return np.where(among, places, 0) if among.size else places
